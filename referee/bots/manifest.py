"""`bot.toml`: what a bot says about itself, and how it is built and run.

Nothing is started here; that is `build` and `process`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from referee import toml_file
from referee.errors import UserError
from referee.records import BotId
from referee.rules.ruleset import RULESETS
from referee.sandbox.launcher import DEFAULT, Limits, LimitsTable
from referee.toml_file import FileModel, Line, Name

FILE_NAME = "bot.toml"
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,31}")


Transport = Literal["unix", "tcp"]
"""What a bot connects to: a UNIX socket, or a loopback address for clients that know only those."""


@dataclass(frozen=True, slots=True)
class BotSpec:
    """All that is needed to start a bot."""

    bot: BotId
    folder: Path
    """Absolute; the working directory of the process."""
    command: tuple[str, ...]
    """The program and its arguments."""
    rulesets: tuple[str, ...] = tuple(RULESETS)
    """Those that it plays, by name."""
    transport: Transport = "unix"
    limits: Limits = DEFAULT


def _check_command(command: tuple[str, ...]) -> tuple[str, ...]:
    if not command or not command[0]:
        raise ValueError("empty: no program is named")
    if any("\0" in word for word in command):
        raise ValueError("a NUL character cannot be passed to a program")
    return command


def _check_version(version: str) -> str:
    if _VERSION.fullmatch(version) is None:
        raise ValueError(
            f"{version!r} is no version: 1 to 32 letters, digits and . _ + -, "
            "beginning with a letter or digit"
        )
    return version


def _check_rulesets(rulesets: tuple[str, ...]) -> tuple[str, ...]:
    for name in rulesets:
        if name not in RULESETS:
            raise ValueError(f"unknown ruleset {name!r}; there are {', '.join(RULESETS)}")
    return rulesets


Command = Annotated[tuple[str, ...], Field(strict=False), AfterValidator(_check_command)]
"""A program and its arguments; a TOML array, so that no shell is involved."""


class Build(FileModel):
    """How the bot is built."""

    command: Command


class Run(FileModel):
    """How the bot is started."""

    command: Command
    transport: Transport = "unix"


class Manifest(FileModel):
    """What `bot.toml` says."""

    name: Name
    version: Annotated[str, AfterValidator(_check_version)]
    author: Line
    language: Line
    description: Line | None = None
    rulesets: Annotated[
        tuple[str, ...], Field(strict=False, min_length=1), AfterValidator(_check_rulesets)
    ] = tuple(RULESETS)
    """Those that the bot plays."""
    build: Build | None = None
    run: Run
    limits: LimitsTable = LimitsTable()
    """What it asks for, which may be less than the default, or more."""

    @property
    def bot(self) -> BotId:
        """The bot's identity in records."""
        return BotId(self.name, self.version)

    def spec(self, folder: Path) -> BotSpec:
        """What is needed to start the bot, as it lies built in a folder."""
        return BotSpec(
            self.bot,
            folder.resolve(),
            self.run.command,
            self.rulesets,
            self.run.transport,
            self.limits.limits(),
        )


def load_manifest(folder: Path) -> Manifest:
    """Read a bot's manifest from its folder.

    Raises UserError, one line: `FOLDER: reason` where there is no such folder, else
    `FOLDER/bot.toml: KEY: reason`.
    """
    if not toml_file.is_folder(folder):
        raise UserError(f"{folder}: no such folder")
    return toml_file.load(folder / FILE_NAME, Manifest)


def load_bot(folder: Path) -> BotSpec:
    """What is needed to start the bot of a folder. Raises UserError as `load_manifest` does."""
    return load_manifest(folder).spec(folder)
