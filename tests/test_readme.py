"""README.md and the examples of all pages keep their promises: their commands and bots work as they stand there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import PAGES, ROOT, blocks, name_of, table, write_bot_of_readme
from real_runs import run_here
from strongest_isolation import strongest

from referee.bots.manifest import load_manifest
from referee.cli import app
from referee.sandbox import Rung

README = (ROOT / "README.md").read_text()
INSTALL = "python3 -m venv .venv && .venv/bin/pip install -e"
DEMO = f"{INSTALL} . && .venv/bin/referee tournament run tournaments/demo.toml"
TESTS = f"{INSTALL} '.[test]' && .venv/bin/pytest"
PAGES_WITH_EXAMPLES = (
    "README.md",
    "tournaments/README.md",
    "referee/ratings/README.md",
    "sample_bots/README.md",
    "referee/web/README.md",
)
"""In the order in which a reader would type their examples: each builds on those before."""


def examples(*pages):
    """Return the commands of all console blocks of these pages."""
    return [
        line
        for page in pages
        for block in blocks("console", (ROOT / page).read_text())
        for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE)
    ]


EXAMPLES = examples(*PAGES_WITH_EXAMPLES)

# Commands

COMMANDS = app.all_commands()


def referee(*arguments, cwd=None, **environment):
    return subprocess.run(
        [Path(sys.executable).with_name("referee"), *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_help_with_an_example(words):
    assert COMMANDS[words].help, "no help text"
    assert f"Example: {words}" in COMMANDS[words].help, "no example"


def test_everyday_commands_exist():
    everyday = [
        " ".join(re.findall(r"\b[a-z]+\b", row[0]))
        for row in table("README.md", "Everyday commands")
    ]
    assert len(everyday) == len(set(everyday)) == 8
    assert set(everyday) <= set(COMMANDS)


def test_help_lists_all_commands():
    result = referee("--help", COLUMNS="80")
    assert result.returncode == 0
    assert all(words.split()[1] in result.stdout for words in COMMANDS)


def test_readme_has_the_two_commands_that_ci_runs():
    """`.ci/run` runs them as they are."""
    lines = README.splitlines()
    assert DEMO in lines
    assert TESTS in lines
    run = (ROOT / ".ci" / "run").read_text()
    assert DEMO in run
    assert TESTS in run


# Examples


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder like a clone, with the bot of the README in it, and a demo of one match a table."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "sample_bots", folder / "sample_bots")
    (folder / "tournaments").mkdir()
    demo = (ROOT / "tournaments" / "demo.toml").read_text()
    short = re.sub(r"^matches = \d+", "matches = 1\nworkers = 1", demo, flags=re.MULTILINE)
    (folder / "tournaments" / "demo.toml").write_text(short)
    write_bot_of_readme(folder / "my_bot")
    return folder


def test_only_listed_pages_have_console_examples():
    pages = {name_of(page) for page in PAGES if "```console" in page.read_text()}
    assert pages == set(PAGES_WITH_EXAMPLES)


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "pages",
    [
        pytest.param(PAGES_WITH_EXAMPLES[:1], id="README.md"),
        pytest.param(
            PAGES_WITH_EXAMPLES,
            id="all",
            marks=pytest.mark.extended("runs the examples of all pages"),
        ),
    ],
)
def test_examples_work_in_the_order_of_the_pages(workplace, pages):
    lines = examples(*pages)
    assert lines
    assert all(line.split()[0] == "referee" for line in lines)
    environment = os.environ | {"REFEREE_LEAGUE": "", "COLUMNS": "80"}
    if strongest().rung is Rung.NONE:
        environment["REFEREE_ISOLATION"] = "none"
    for line in lines:
        words = shlex.split(line)[1:]
        result = run_here(words, workplace, environment)
        assert result.returncode == 0, f"{line}\n{result.stdout}{result.stderr}"
        assert result.stdout.strip(), line


def test_every_command_is_in_an_example_except_those_that_wait():
    tried = {words for words in COMMANDS if any(f"{line} ".startswith(words) for line in EXAMPLES)}
    assert set(COMMANDS) - tried == {
        "referee tournament resume",
        "referee serve",
        "referee worker",
    }, "add the command to a console example of a page in PAGES_WITH_EXAMPLES"


def test_example_manifest_can_be_loaded(workplace):
    assert load_manifest(workplace / "my_bot").bot.name == "my_bot"
