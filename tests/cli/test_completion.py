"""A shell completes names, and a command is imported only to complete its options."""

import json
import os
import subprocess
import sys

import pytest
from real_runs import SAMPLE_BOTS, place

from referee.cli.app import all_commands
from referee.cli.completion import _ARGUMENTS, _OPTIONS


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A league with a game of `greedy` and `random`; `random` is retired."""
    with place(tmp_path_factory.mktemp("completion")) as made:
        bots = (SAMPLE_BOTS / "random", SAMPLE_BOTS / "greedy")
        done = made.referee("play", *bots, "--ruleset", "duel", "--keep", "--json")
        assert done.returncode == 0, done.stderr
        made.game = json.loads(done.stdout)["game_id"]
        assert made.referee("bots", "retire", "random").returncode == 0
        yield made


def complete(here, line, shell="bash"):
    """Return what the shell offers for the last word of a line."""
    words = line.split(" ")
    variables = {
        "_REFEREE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = here.referee(**variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.extended("starts more commands")
def test_names_of_the_league_are_completed(here):
    assert complete(here, "referee bots show ") == ["greedy"]
    assert complete(here, "referee play ./mine gr") == ["greedy"]
    assert complete(here, "referee ratings --history ") == ["greedy"]
    assert complete(here, "referee ratings compare ") == ["greedy"]
    assert complete(here, "referee game replay play") == [here.game]
    assert complete(here, "referee bots debug gr") == ["greedy"]
    assert complete(here, "referee bots debug greedy play") == [here.game]
    assert complete(here, "referee bots debug --league league gr") == ["greedy"]
    assert complete(here, "referee bots debug greedy --attach --league=league play") == [here.game]
    assert complete(here, "referee ratings --wide compare gr") == ["greedy"]
    assert complete(here, "referee bots show --wide gr") == ["greedy"]
    assert complete(here, "referee tournament status ") == []
    assert complete(here, "referee bots show --league nowhere ") == []


@pytest.mark.extended("starts more commands")
def test_words_that_need_no_league_are_completed(here):
    assert complete(here, "referee ratings --ruleset e") == ["expert", "expert-jokers"]
    assert complete(here, "referee ratings ") == ["compare"]
    assert complete(here, "referee tournament st") == ["status", "standings"]
    assert complete(here, "referee bots list --w") == ["--wide"]
    assert complete(here, "referee bots log --limit ") == []
    assert complete(here, "referee ratings --se") == ["--seats"]
    assert complete(here, "referee ratings compare --conf") == ["--confidence"]


@pytest.mark.extended("starts more commands")
def test_league_in_the_home_folder_is_found(here):
    words = "referee bots show --league ~/league "
    variables = {"HOME": str(here.folder), "_REFEREE_COMPLETE": "complete_bash"}
    done = here.referee(**variables, COMP_WORDS=words, COMP_CWORD="5")
    assert (done.returncode, done.stdout) == (0, "greedy\n")


def test_unknown_home_folder_completes_nothing(here):
    words = "referee bots show --league ~nobody-has-this-name/league "
    done = here.referee(_REFEREE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD="5")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


@pytest.mark.extended("starts more commands")
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_the_same_names(here, shell):
    assert "greedy" in " ".join(complete(here, "referee bots show ", shell))


def test_no_command_is_imported_to_complete_a_name(tmp_path):
    code = (
        "import sys\nfrom referee.cli.app import app\ntry:\n    app(prog_name='referee')\nfinally:\n"
        "    print(sorted(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ
        | {
            "_REFEREE_COMPLETE": "complete_bash",
            "COMP_WORDS": "referee ratings --ruleset b",
            "COMP_CWORD": "3",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "basic\n"
    for module in ("referee.cli.ratings", "numpy", "scipy", "sqlalchemy", "grpc", "pydantic"):
        assert f"'{module}'" not in done.stderr


def test_completed_arguments_and_options_exist():
    commands = all_commands()
    for words in _ARGUMENTS:
        command = commands[f"referee {words}"]
        assert words == "ratings" or any(
            param.param_type_name == "argument" for param in command.params
        )
    options = {
        name for command in commands.values() for param in command.params for name in param.opts
    }
    assert set(_OPTIONS) <= options


@pytest.mark.extended("starts more commands")
def test_bash_accepts_the_script_of_the_completion(here):
    script = 'eval "$(_REFEREE_COMPLETE=source_bash referee)" && complete -p referee'
    assert here.shell(f"bash -c '{script}'").stdout.endswith(" referee\n")
