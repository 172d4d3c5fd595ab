"""Test that new bots are the sample bots with another name, and that the referee knows the sample bots."""

import ast
import errno
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from referee.bots.manifest import load_manifest
from referee.errors import Shortage, UserError
from referee.roster import roster

ROOT = Path(__file__).parents[2]


def make(folder, **changed):
    values = {"name": "mine", "language": "python", "author": "Ada"} | changed
    roster.create_bot(folder, **values)
    return folder


@pytest.mark.parametrize("language", roster.LANGUAGES)
def test_new_bot_is_the_sample_bot_of_its_language_with_a_new_name(tmp_path, language):
    folder = make(tmp_path / "new", language=language)
    sample = ROOT / "sample_bots" / roster.LANGUAGES[language]
    manifest, original = load_manifest(folder), load_manifest(sample)
    assert (manifest.name, manifest.version, manifest.author) == ("mine", "0.1", "Ada")
    assert manifest.description == "Plays by the policy of greedy, until it is taught better"
    assert (manifest.build, manifest.run) == (original.build, original.run)
    assert manifest.language == original.language == language
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        if path.is_file() and str(relative) not in ("bot.toml", "README.md"):
            assert path.read_bytes() == (sample / relative).read_bytes()


@pytest.mark.parametrize("language", roster.LANGUAGES)
def test_new_bot_has_every_file_of_the_sample_that_git_has(tmp_path, language):
    folder = make(tmp_path / "new", language=language)
    sample = roster.LANGUAGES[language]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],  # noqa: S607 - what CI has
        cwd=ROOT / "sample_bots" / sample,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert there == set(listed)


@pytest.mark.parametrize("language", roster.LANGUAGES)
def test_new_bot_does_not_contain_the_name_of_the_sample(tmp_path, language):
    folder = make(tmp_path / "new", language=language)
    sample = roster.LANGUAGES[language]
    if sample != "greedy":  # `greedy` is also an English word, which names the policy
        for path in folder.rglob("*"):
            assert not path.is_file() or sample not in path.read_text()
    assert (folder / "README.md").read_text().startswith("# mine\n")


def test_author_with_special_characters_is_kept(tmp_path):
    author = 'O\'Brien "\\1" Žižek'
    assert load_manifest(make(tmp_path / "new", author=author)).author == author


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            {"name": "../mine"},
            "NAME: '../mine' is not a valid name: use 1 to 32 of a-z, 0-9, - and _",
        ),
        ({"name": "Mine"}, "NAME: 'Mine' is not a valid name"),
        ({"name": ""}, "NAME: '' is not a valid name"),
        (
            {"author": "a\nb"},
            "--author: must be 1 to 200 characters on one line, at least one of them visible, without control characters",
        ),
        (
            {"author": "   "},
            "--author: must be 1 to 200 characters on one line, at least one of them visible, without control characters",
        ),
        ({"author": "a\udcffb"}, "--author: must be UTF-8 text"),
    ],
)
def test_invalid_name_or_author_is_refused(tmp_path, changed, reason):
    with pytest.raises(UserError) as caught:
        make(tmp_path / "new", **changed)
    assert str(caught.value).startswith(reason)
    assert not (tmp_path / "new").exists()


def test_existing_folder_is_refused_and_left_unchanged(tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "work").write_text("of years")
    with pytest.raises(UserError, match=r"/new: exists already; choose a new folder"):
        make(tmp_path / "new")
    assert (tmp_path / "new" / "work").read_text() == "of years"


def test_folder_that_another_program_makes_meanwhile_is_left_unchanged(tmp_path, monkeypatch):
    def take(*arguments, **more):
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "work").write_text("of years")
        return taken(*arguments, **more)

    taken = roster.snapshots.take
    monkeypatch.setattr(roster.snapshots, "take", take)
    with pytest.raises(UserError, match=r"/new: File exists"):
        make(tmp_path / "new")
    assert (tmp_path / "new" / "work").read_text() == "of years"


def test_bot_that_cannot_be_completed_is_removed(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(roster, "_rename", fail)
    with pytest.raises(Shortage, match=r"/new: No space left on device"):
        make(tmp_path / "new")
    assert not (tmp_path / "new").exists()


# Recognising the sample bots


def test_known_hashes_are_those_of_the_sample_bots():
    script = runpy.run_path(str(ROOT / ".github" / "write_sample_hashes.py"))
    known = script["FILE"].read_text()
    assert known == script["sample_hashes"](), (
        "run `.venv/bin/python .github/write_sample_hashes.py`"
    )


@pytest.mark.parametrize("language", roster.LANGUAGES)
def test_sample_bot_is_recognised_and_a_new_bot_is_not(tmp_path, language):
    assert roster.is_sample_bot(roster.SAMPLE_BOTS / roster.LANGUAGES[language])
    assert not roster.is_sample_bot(make(tmp_path / "new", language=language))


@pytest.mark.parametrize("name", ["bot.toml", "README.md", "more.py"])
def test_sample_bot_with_another_content_is_not_recognised(tmp_path, name):
    shutil.copytree(roster.SAMPLE_BOTS / "greedy", tmp_path / "greedy")
    assert roster.is_sample_bot(tmp_path / "greedy")
    with (tmp_path / "greedy" / name).open("a") as file:
        file.write("\n")
    assert not roster.is_sample_bot(tmp_path / "greedy")


def test_folder_that_is_no_bot_is_no_sample_bot(tmp_path):
    assert not roster.is_sample_bot(tmp_path)


def test_sample_bot_that_is_not_built_imports_no_module_of_its_folder():
    """The hash leaves out `__pycache__`, and Python would load a planted file from there instead of the module."""
    programs = 0
    for manifest in roster.SAMPLE_BOTS.glob("*/bot.toml"):
        if load_manifest(manifest.parent).build is not None:
            continue
        others = {each.stem for each in manifest.parent.rglob("*.py")} - {"bot"}
        imported = set()
        for node in ast.walk(ast.parse((manifest.parent / "bot.py").read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level
                imported.add(node.module)
        assert not {name.split(".")[0] for name in imported} & others
        programs += 1
    assert programs
