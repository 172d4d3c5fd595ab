"""`bot.toml`: what a bot says about itself, and how it is built and run.

Nothing is started here; that is `process`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from referee import toml_file
from referee.errors import UserError
from referee.records import BotId
from referee.toml_file import FileModel, Line, Name

FILE_NAME = "bot.toml"
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,31}")


@dataclass(frozen=True, slots=True)
class BotSpec:
    """All that is needed to start a bot."""

    bot: BotId
    folder: Path
    """Absolute; the working directory of the process."""
    command: tuple[str, ...]
    """The program and its arguments."""


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


Command = Annotated[tuple[str, ...], Field(strict=False), AfterValidator(_check_command)]
"""A program and its arguments; a TOML array, so that no shell is involved."""


class Build(FileModel):
    """How the bot is built."""

    command: Command


class Run(FileModel):
    """How the bot is started."""

    command: Command


class Manifest(FileModel):
    """What `bot.toml` says."""

    name: Name
    version: Annotated[str, AfterValidator(_check_version)]
    author: Line
    language: Line
    description: Line | None = None
    build: Build | None = None
    run: Run

    @property
    def bot(self) -> BotId:
        """The bot's identity in records."""
        return BotId(self.name, self.version)


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
    manifest = load_manifest(folder)
    return BotSpec(manifest.bot, folder.resolve(), manifest.run.command)
