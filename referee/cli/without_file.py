"""Make a tournament from the arguments of a command instead of a tournament file, and write the equivalent file.

The arguments become the content of a tournament file, so the checks of tournament files apply to them too. The messages
begin with the name of the command instead of the name of a file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from referee import toml_file
from referee.cli.options import parse_path
from referee.errors import UserError, write_error
from referee.rules.ruleset import RULESETS
from referee.schedule.budget import Pace
from referee.tournament.config import BotEntry, TournamentConfig
from referee.tournament.config_file import TournamentFile
from referee.tournament.config_reader import load_tournament, make_config

RUN = Path("tournament run")
"""Stands for the tournament file in messages about the arguments of `tournament run`."""
_NOT_BY_SET = {"name": "give it with --name", "bots": "give the bots as arguments, without --set"}
"""The keys of a file that `--set` refuses, each with the way to give it instead."""
_NAME = "tournament"
"""The name of a tournament that has neither `--name` nor `--ruleset`."""

RulesetKeyOption = Annotated[
    str | None,
    typer.Option("--ruleset", help=f"Without a file: one of {', '.join(RULESETS)}."),
]
SeatsKeyOption = Annotated[
    int | None, typer.Option("--seats", help="Without a file: the number of bots at a table.")
]
MatchesKeyOption = Annotated[
    int | None,
    typer.Option("--matches", help="Without a file: the number of matches at each table."),
]
BudgetKeyOption = Annotated[
    int | None,
    typer.Option(
        "--budget",
        metavar="GAMES",
        help="Without a file: the maximum number of games, instead of --matches.",
    ),
]
NameKeyOption = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="Without a file: the name of the tournament. By default the value of --ruleset, or `tournament` without it.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Without a file: any other key of a tournament file, such as clocks.decision=2 or until={}. Can be repeated."
        " The value is written as in the file; a text needs no quotes.",
    ),
]
SaveOption = Annotated[
    Path | None,
    typer.Option(
        "--save",
        parser=parse_path,
        metavar="FILE",
        help="Without a file: also write the equivalent tournament file. FILE must not exist.",
    ),
]


def read_arguments(
    arguments: Sequence[str],
    keys: Mapping[str, str | int | None],
    settings: Sequence[str],
    pace: Pace,
) -> tuple[TournamentConfig, dict[str, Any] | None]:
    """Return the configuration for `tournament run`, and the content of the equivalent file (None if a file was given).

    Args:
        arguments: a tournament file, or bots as in the key `bots`. A single argument that is no folder is a file.
        keys: the values of the options that are keys of a file; None for an option that was not given.
        settings: the values of `--set`.
        pace: as in `load_tournament`.

    Raises UserError for a wrong file, argument, option or setting.
    """
    if not all(arguments):
        raise UserError("FILE|BOT: the path is missing")
    given = {key: value for key, value in keys.items() if value is not None}
    if len(arguments) == 1 and not toml_file.is_folder(Path(arguments[0])):
        config = load_tournament(Path(arguments[0]), pace)
        if given or settings:
            option = f"--{next(iter(given), 'set')}"
            raise UserError(
                f"{option}: not allowed with a tournament file; change the key in {arguments[0]}"
            )
        return config, None
    for argument in arguments:
        if argument.endswith(".toml") and not toml_file.is_folder(Path(argument)):
            raise UserError(
                f"FILE|BOT: {argument} is a tournament file; give one file and nothing else, or only bots"
            )
    ruleset = given.get("ruleset")
    # An unknown ruleset may also be invalid as a name. It is not used as the name, so that it is reported only once.
    name = ruleset if ruleset in RULESETS else _NAME
    content = {"name": name, "bots": list(arguments), **given}
    for setting in settings:
        added = _read_setting(setting)
        for key in added.keys() & _NOT_BY_SET.keys():
            raise UserError(f"--set: {key}: {_NOT_BY_SET[key]}")
        _merge(content, added)
    config = make_config(RUN, toml_file.check(content, TournamentFile, RUN), pace)
    return replace(config, file=RUN), content


def _read_setting(setting: str) -> dict[str, Any]:
    """Parse `KEY=VALUE`, and return the content of a tournament file that has only this key."""
    key, sign, value = (part.strip() for part in setting.partition("="))
    if not (sign and key and value):
        raise UserError(f"--set: {setting!r}: write KEY=VALUE, such as clocks.decision=2")
    as_typed = f"{key} = {value}"
    as_text = f"{key} = {toml_file.write_value(value)}"
    if value.startswith(("{", "[", '"', "'")):
        return toml_file.parse(Path("--set"), as_typed)
    if toml_file.is_text(TournamentFile, key):  # the text may look like a number
        return toml_file.parse(Path("--set"), as_text)
    try:
        return toml_file.parse(Path("--set"), as_typed)
    except UserError:
        return toml_file.parse(Path("--set"), as_text)


def _merge(content: dict[str, Any], added: Mapping[str, Any], prefix: str = "") -> None:
    """Add keys to the content of a file. Raises UserError if a key is given twice, unless both values are tables."""
    for key, value in added.items():
        inner = content.get(key)
        if key not in content:
            content[key] = value
        elif isinstance(inner, dict) and isinstance(value, Mapping):
            _merge(inner, value, f"{prefix}{key}.")
        else:
            raise UserError(f"--set: {prefix}{key}: given twice")


def check_new(file: Path) -> None:
    """Check that the file of `--save` can be created: create it and remove it again.

    Raises UserError if the path exists or is wrong, and StoreError for other reasons, such as a full disk.
    """
    try:
        file.open("x").close()
        file.unlink()
    except FileExistsError as error:
        raise UserError(f"--save: {file}: exists already; choose a new file") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(f"--save: {file.parent}: no such folder") from error
    except OSError as error:
        raise write_error(f"--save: {file}", error) from error


def save_file(file: Path, content: Mapping[str, Any], config: TournamentConfig) -> None:
    """Write a tournament file. If it has a seed, only the user can read it.

    In the file, the folders of the bots are relative to the folder of the file.

    Args:
        file: a new file.
        content: the content, with folders relative to the working directory.
        config: the configuration that was made of the content.

    Raises OSError if the file cannot be written. Then no part of it is left.
    """
    bots = [_describe(entry, file.parent.resolve()) for entry in config.bots]
    lists = {"challengers": bots[: config.challengers], "bots": bots[config.challengers :]}
    moved = {key: lists.get(key, value) for key, value in content.items()}
    # until the last game is played, the seed is secret
    mode = 0o666 if config.seed is None else 0o600
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    opened = open(descriptor, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - closed below
    try:
        with opened:
            opened.write(toml_file.write(moved))
    except BaseException:
        file.unlink()
        raise


def _describe(entry: BotEntry, place: Path) -> str | dict[str, Any]:
    """Return an entry of `bots` for a file in the folder `place`."""
    path = entry.text if entry.folder is None else _relative(entry.folder, place)
    variant = entry.variant
    return path if variant is None else {"path": path, "name": variant.name, "args": variant.args}


def _relative(folder: Path, place: Path) -> str:
    """Return the path of `folder` from `place`. It begins with a dot, because `bot` alone would mean a bot of the league."""
    path = os.path.relpath(folder, place)
    return path if path.startswith(".") else f"./{path}"
