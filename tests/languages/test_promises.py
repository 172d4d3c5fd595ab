"""The manifests, READMEs and sources of the six bots are as documented."""

import shutil
import subprocess

import pytest
from six_bots import FOLDER, SIX, as_parameters, build

from referee.bots import snapshot
from referee.bots.manifest import load_manifest
from referee.rules.ruleset import RULESETS

pytestmark = [
    pytest.mark.timeout(900),  # the first test with a bot builds it
    pytest.mark.unmeasured,
]

OTHERS = [name for name in SIX if name != "greedy"]
PROTO = ("play.proto", "table.proto")
README_LINES = 20
PORTABLE = ("greedy_rust", "greedy_java")
"""The bots whose build can be copied to another folder, so that the tests need not compile it again."""


@pytest.fixture(params=OTHERS)
def name(request):
    """Return each name except that of the Python bot, which needs no build and no schema."""
    return request.param


@pytest.fixture
def sources(name, tmp_path):
    """Return a copy of a bot's folder without the files that its `.gitignore` files name."""
    return snapshot.take(FOLDER / name, tmp_path / "sources", built=True)


def test_manifest_has_name_language_and_all_rulesets(name):
    manifest = load_manifest(FOLDER / name)
    assert manifest.name == name
    assert manifest.language == SIX[name].language
    assert manifest.description
    assert manifest.rulesets == tuple(RULESETS)
    assert manifest.build is not None


def test_readme_is_short_and_has_the_commands_that_test_and_check_the_bot(name):
    text = (FOLDER / name / "README.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert len(text.splitlines()) <= README_LINES
    assert "`referee bots check .`" in text
    assert all(f"`{command}`" in text for command in SIX[name].tests)


def test_name_of_the_bot_stands_only_in_manifest_and_title(name, sources):
    """`bots init` replaces the name in these two places."""
    found = {
        str(path.relative_to(sources.path)): path.read_text().count(name)
        for path in sources.path.rglob("*")
        if path.is_file() and name in path.read_text()
    }
    assert found == {"bot.toml": 1, "README.md": 1}


def test_sources_have_no_binary_file(sources):
    for path in sources.path.rglob("*"):
        if path.is_file():
            assert "\0" not in path.read_text(encoding="utf-8"), path


def test_sources_have_the_schema_of_bots(sources):
    schema = {path.name for path in (sources.path / "proto" / "linko" / "v1").iterdir()}
    assert schema == set(PROTO)


def test_files_that_the_build_makes_are_ignored_by_git(spec, tmp_path):
    before = snapshot.take(FOLDER / spec.bot.name, tmp_path / "before", built=True)
    after = snapshot.take(spec.folder, tmp_path / "after", built=True)
    assert after.content_hash == before.content_hash


@pytest.mark.parametrize("name", as_parameters(OTHERS))
def test_own_tests_of_the_bot_pass_with_the_commands_of_its_readme(name, sources, league, tmp_path):
    folder = sources.path
    if name in PORTABLE:
        folder = shutil.copytree(build(name, league).folder, tmp_path / "built", symlinks=True)
    for command in SIX[name].tests:
        done = subprocess.run(  # noqa: S602 - as a user types it
            command, shell=True, cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
