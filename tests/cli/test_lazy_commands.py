"""Help, a typo and `--version` import no command. The help lines are those of the commands."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.core import TyperArgument, TyperOption

import referee.cli
from referee import __version__
from referee.cli.app import _COMMANDS, _GROUPS, all_commands
from referee.cli.options import parse_path

MORE_COMMANDS = pytest.mark.extended("starts more commands")
HEAVY = {"sqlalchemy", "grpc", "google.protobuf", "numpy", "scipy", "pydantic", "uvloop"}
RUN = """
import json
import sys

from referee.cli import main

try:
    main()
except SystemExit as end:
    print(json.dumps([end.code, sorted(sys.modules)]), file=sys.stderr)
"""


def run(*words):
    """Run a command in a new process; return its exit code, its output and the modules that it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=True
    )
    *error, last = done.stderr.splitlines()
    code, modules = json.loads(last)
    return code, done.stdout + "\n".join(error), set(modules)


@pytest.mark.parametrize(
    ("words", "code", "output"),
    [
        (["--help"], 0, "tournament"),
        (["--version"], 0, f"referee {__version__}"),
        ([], 2, "tournament"),
        (["turnament"], 2, "No such command 'turnament'. Did you mean 'tournament'?"),
        pytest.param(["--versoin"], 2, "No such option: --versoin", marks=MORE_COMMANDS),
        (["bots", "lits"], 2, "No such command 'lits'"),
        *(
            pytest.param([group, "--help"], 0, line, marks=MORE_COMMANDS)
            for group, line in _GROUPS.items()
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_help_and_typos_load_nothing_heavy(words, code, output):
    found, printed, modules = run(*words)
    assert found == code
    assert output in printed
    assert HEAVY & modules == set()
    commands = {f"referee.cli.{module}" for module, _ in _COMMANDS.values()}
    assert commands & modules == set()


@pytest.mark.parametrize(
    ("module", "slow"),
    [
        ("referee.tournament.worker", {"sqlalchemy", "numpy", "scipy", "pydantic"}),
        ("referee.cli.run", {"scipy.optimize", "alembic"}),
    ],
)
def test_run_and_worker_start_without_slow_modules(module, slow):
    script = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert module in done.stdout.split()
    assert slow.isdisjoint(done.stdout.split())


def test_help_lists_commands_by_the_first_line_of_their_docstrings():
    commands = all_commands()
    assert {f"referee {words}" for words in _COMMANDS} <= set(commands)
    for words, (_, line) in _COMMANDS.items():
        assert commands[f"referee {words}"].help.startswith(f"{line}\n")


def test_every_function_that_is_a_command_has_an_entry():
    for info in pkgutil.iter_modules(referee.cli.__path__):
        module = importlib.import_module(f"referee.cli.{info.name}")
        if info.name == "app" or not isinstance(getattr(module, "app", None), typer.Typer):
            continue
        group = typer.main.get_group(module.app)
        names = {info.name} if group.invoke_without_command else set(group.commands)
        entries = {words.split()[-1] for words, (name, _) in _COMMANDS.items() if name == info.name}
        missing = sorted(names - entries)
        assert not missing, f"{info.name}: add {missing} to _COMMANDS in referee/cli/app.py"


def test_paragraphs_of_a_help_have_no_line_breaks():
    for words, command in all_commands().items():
        assert not re.search(r"[^\n]\n[^\n]", command.help), words


def test_arguments_have_the_names_of_the_texts():
    for words, command in all_commands().items():
        for param in command.params:
            if param.param_type_name == "argument":
                assert param.metavar.isupper(), words


def test_every_path_is_parsed_by_the_function_that_refuses_an_empty_one():
    paths = [
        param
        for command in all_commands().values()
        for param in command.params
        if isinstance(param, (TyperArgument, TyperOption))
        and param.type_descriptor.annotation is Path
    ]
    assert {"league", "logs", "output", "save", "file", "path"} <= {each.name for each in paths}
    assert all(each.type_descriptor.parameter_info.parser is parse_path for each in paths)
