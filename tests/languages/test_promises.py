"""What is said of the six bots, in their folders and of them, is so."""

import shutil
import subprocess

import pytest
from six_bots import FOLDER, SIX, as_parameters, built

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
"""What their builds have made can be used again elsewhere, which spares compiling all of it twice."""


@pytest.fixture(params=OTHERS)
def name(request):
    """Each but Python's, which needs no build and no schema."""
    return request.param


@pytest.fixture
def sources(name, tmp_path):
    """What git has of a bot's folder: all but what its `.gitignore` files name."""
    return snapshot.take(FOLDER / name, tmp_path / "sources", built=True)


def test_manifest(name):
    manifest = load_manifest(FOLDER / name)
    assert manifest.name == name
    assert manifest.language == SIX[name].language
    assert manifest.description
    assert manifest.rulesets == tuple(RULESETS)
    assert manifest.build is not None


def test_readme(name):
    """It is short, and says how the bot is tested and checked."""
    text = (FOLDER / name / "README.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert len(text.splitlines()) <= README_LINES
    assert "`referee bots check .`" in text
    assert all(f"`{command}`" in text for command in SIX[name].tests)


def test_only_the_manifest_and_the_title_have_its_name(name, sources):
    """So that a new bot can be made of it."""
    found = {
        str(path.relative_to(sources.path)): path.read_text().count(name)
        for path in sources.path.rglob("*")
        if path.is_file() and name in path.read_text()
    }
    assert found == {"bot.toml": 1, "README.md": 1}


def test_all_of_it_is_text(sources):
    """Nothing is built elsewhere and brought along."""
    for path in sources.path.rglob("*"):
        if path.is_file():
            assert "\0" not in path.read_text(encoding="utf-8"), path


def test_it_has_the_schema_of_bots(sources):
    schema = {path.name for path in (sources.path / "proto" / "linko" / "v1").iterdir()}
    assert schema == set(PROTO)


def test_what_the_build_makes_is_ignored_by_git(spec, tmp_path):
    before = snapshot.take(FOLDER / spec.bot.name, tmp_path / "before", built=True)
    after = snapshot.take(spec.folder, tmp_path / "after", built=True)
    assert after.content_hash == before.content_hash


@pytest.mark.parametrize("name", as_parameters(OTHERS))
def test_its_own_tests_pass(name, sources, league, tmp_path):
    """By the commands of its README."""
    folder = sources.path
    if name in PORTABLE:
        folder = shutil.copytree(built(name, league).folder, tmp_path / "built", symlinks=True)
    for command in SIX[name].tests:
        done = subprocess.run(  # noqa: S602 - as a person types it
            command, shell=True, cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
