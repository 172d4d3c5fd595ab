"""The README is a contract: what it says is so, and its commands work as they stand there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest
from real_runs import run_here

from referee import cli, deals
from referee.bots.manifest import Build, Manifest, Run, load_manifest
from referee.cli import app, options
from referee.errors import Cause
from referee.rules.ruleset import RULESETS
from referee.sandbox.launcher import Limits, LimitsTable
from referee.tournament.config_file import TournamentFile
from referee.tournament.reading import load_tournament

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
INSTALL = "python3 -m venv .venv && .venv/bin/pip install -e"
DEMO = f"{INSTALL} . && .venv/bin/referee tournament run tournaments/demo.toml"
TESTS = f"{INSTALL} '.[test]' && .venv/bin/pytest"


def section(title):
    return re.split(r"^## ", README.split(f"\n## {title}\n")[1], flags=re.MULTILINE)[0]


def table(title):
    """The rows of a section's first table, without its header, each a list of cells."""
    lines = re.search(r"(?:^\|.*\n)+", section(title), re.MULTILINE)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def keys(title):
    return [row[0].strip("`") for row in table(title)]


def blocks(language, text=README):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


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
def test_every_command_has_help_with_an_example_and_a_line_here(words):
    assert COMMANDS[words].help, "no help text"
    assert f"Example: {words}" in COMMANDS[words].help, "no example"
    described = [row[0].strip("`") for row in table("Commands")]
    assert [line for line in described if f"{line} ".startswith(f"{words} ")]


def test_no_command_is_described_that_does_not_exist():
    described = {" ".join(re.findall(r"\b[a-z]+\b", row[0])) for row in table("Commands")}
    assert described == set(COMMANDS)


def test_help_is_shown():
    result = referee("--help", COLUMNS="80")
    assert result.returncode == 0
    assert all(words.split()[1] in result.stdout for words in COMMANDS)


def test_the_two_commands_to_begin_with_stand_here():
    """`.ci/run` runs them as they are."""
    assert DEMO in README
    assert TESTS in README
    run = (ROOT / ".ci" / "run").read_text()
    assert DEMO in run
    assert TESTS in run


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder like a clone, with the bot of the README in it, and a demo of one match a table."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "sample_bots", folder / "sample_bots")
    (folder / "tournaments").mkdir()
    demo = (ROOT / "tournaments" / "demo.toml").read_text()
    short = re.sub(r"^matches = \d+", "matches = 1\nworkers = 1", demo, flags=re.MULTILINE)
    (folder / "tournaments" / "demo.toml").write_text(short)
    bot = section("A bot in ten lines")
    (folder / "my_bot").mkdir()
    (folder / "my_bot" / "bot.py").write_text(*blocks("python", bot))
    (folder / "my_bot" / "bot.toml").write_text(*blocks("toml", bot))
    return folder


SESSION = re.findall(r"^\$ (.*)$", "".join(blocks("console")), re.MULTILINE)


@pytest.mark.unmeasured
def test_the_commands_of_the_examples_work_in_their_order(workplace):
    assert all(line.split()[0] == "referee" for line in SESSION)
    league = os.environ | {"REFEREE_LEAGUE": "", "COLUMNS": "80"}
    for line in SESSION:
        words = shlex.split(line)[1:]
        result = run_here(words, workplace, league)
        assert result.returncode == 0, f"{line}\n{result.stdout}{result.stderr}"
        assert result.stdout.strip(), line


def test_every_command_but_resume_is_in_an_example():
    shown = {words for words in COMMANDS if any(f"{line} ".startswith(words) for line in SESSION)}
    assert set(COMMANDS) - shown == {"referee tournament resume"}


# Tables


def test_exit_codes():
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", section("Commands"), re.MULTILINE)}
    assert codes == {0, options.UNSOUND, options.USER_ERROR, options.INTERRUPTED}
    assert all(str(code) in cli.__doc__ for code in codes)


def test_every_cause_of_a_fault_is_listed():
    assert keys("Faults") == [cause.value for cause in Cause]


def test_every_key_of_a_tournament_file_is_listed_with_its_default():
    listed = {row[0].strip("`"): row[1].strip('`"') for row in table("Tournament files")}
    flat = {}
    for name, field in TournamentFile.model_fields.items():
        if name in ("clocks", "faults"):
            flat |= {
                f"{name}.{inner}": part.default
                for inner, part in field.annotation.model_fields.items()
            }
        else:
            flat[{"stage": "[[stage]]", "limits": "[limits]"}.get(name, name)] = field.default
    assert set(listed) == set(flat)
    for key, default in flat.items():
        if isinstance(default, bool | int | float):
            assert listed[key] == str(default).lower(), key


def test_every_key_of_a_bot_manifest_is_listed():
    tables = {"build": Build, "run": Run}
    flat = []
    for name in Manifest.model_fields:
        inner = tables[name].model_fields if name in tables else ()
        own = "[limits]" if name == "limits" else name
        flat += [f"{name}.{part}" for part in inner] or [own]
    assert keys("Bot manifests") == flat


def test_every_limit_is_listed_with_its_default():
    rows = re.findall(r"^\| `limits\.(\w+)` \| (\S+) \|", section("Bot manifests"), re.MULTILINE)
    limits = asdict(Limits())
    assert rows == [(key, str(default)) for key, default in limits.items()]
    assert set(limits) == set(LimitsTable.model_fields)


def test_the_example_of_a_tournament_file_is_one(workplace):
    [example] = blocks("toml", section("Tournament files"))
    path = workplace / "tournaments" / "example.toml"
    path.write_text(example)
    assert load_tournament(path).name == tomllib.loads(example)["name"]


def test_the_example_of_a_manifest_is_one(workplace):
    assert load_manifest(workplace / "my_bot").bot.name == "my_bot"


def test_every_ruling_is_listed():
    assert keys("Rules and rulings") == [f"R{number}" for number in range(1, 16)]


def test_every_part_of_the_project_is_in_the_layout():
    layout = section("How the project is laid out")
    parts = {
        path.name
        for path in (ROOT / "referee").iterdir()
        if not path.name.startswith("_") and path.name != "py.typed"
    }
    assert {
        part for part in parts if f"`{part}`" not in layout and f"/{part}`" not in layout
    } == set()


def test_the_layers_are_those_that_are_enforced():
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = configuration["tool"]["importlinter"]["contracts"][0]
    enforced = [set(layer.split(" | ")) for layer in reversed(contract["layers"])]
    told = re.search(r"`rules` ←.*?`cli`", section("How the project is laid out"), re.DOTALL)[0]
    assert [set(re.findall(r"`(\w+)`", layer)) for layer in told.split("←")] == enforced


def test_the_example_of_a_deal():
    text = section("Deals that anyone can check")
    seed = bytes(32)
    assert deals.commitment(seed) in text
    deck = deals.deck(seed, "demo-deal-1", RULESETS["basic"])
    begins = re.search(r"begins\s+with\s+the\s+cards\s+([\d\s]+)\.", text)[1].split()
    assert [int(card) for card in begins] == list(deck[: len(begins)])
    assert len(begins) == 13
