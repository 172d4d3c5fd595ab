"""Read `bot.toml`, the manifest of a bot: who wrote the bot, which rulesets it plays, how to build and run it.

This module only reads the file. `build` builds the bot, `process` runs the bot.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, WithJsonSchema

from referee import toml_file
from referee.bots import BotSpec, Transport, packages_path
from referee.errors import UserError, did_you_mean
from referee.records import BotId
from referee.rules.ruleset import RULESETS
from referee.sandbox import DEFAULT_LIMITS, Limits
from referee.toml_file import FileModel, Line, Name, text_schema

FILE_NAME = "bot.toml"
MAX_WORDS = 1000
"""The most words in a command. bubblewrap accepts at most 9,000 arguments, which include those for the sandbox."""
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,31}")


class LimitsTable(FileModel):
    """The table `[limits]` of a manifest or of a tournament file: some or all of the values in `sandbox.Limits`."""

    memory_mib: Annotated[int, Field(ge=16, le=1 << 24)] | None = None
    processes: Annotated[int, Field(ge=1, le=32_768)] | None = None
    cpus: Annotated[float, Field(ge=0.01, le=1024, allow_inf_nan=False)] | None = None
    scratch_mib: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    open_files: Annotated[int, Field(ge=32, le=1 << 20)] | None = None
    output_kib: Annotated[int, Field(ge=4, le=1 << 16)] | None = None

    @property
    def explicit(self) -> dict[str, Any]:
        """The limits that the file sets: a dictionary from key to number."""
        return self.model_dump(exclude_none=True)

    def to_limits(self, default: Limits = DEFAULT_LIMITS) -> Limits:
        """Return all limits. A limit that the file does not set is taken from `default`."""
        return replace(default, **self.explicit)


def _check_command(command: tuple[str, ...]) -> tuple[str, ...]:
    if not command:
        raise ValueError("must not be empty: name a program")
    return _check_words(command)


def _check_words(command: tuple[str, ...]) -> tuple[str, ...]:
    if command and not command[0]:
        raise ValueError("the first word must name a program")
    if len(command) > MAX_WORDS:
        raise ValueError(f"must have at most {MAX_WORDS:,} words")
    if any("\0" in word for word in command):
        raise ValueError("a NUL character cannot be passed to a program")
    return command


def _check_version(version: str) -> str:
    if _VERSION.fullmatch(version) is None:
        raise ValueError(
            f"{version!r} is not a valid version: use 1 to 32 letters, digits and . _ + -, "
            "beginning with a letter or digit"
        )
    return version


def _check_ruleset(name: str) -> str:
    if name not in RULESETS:
        similar = did_you_mean(name, RULESETS)
        raise ValueError(f"unknown ruleset {name!r}{similar}; choose one of {', '.join(RULESETS)}")
    return name


def _check_rulesets(rulesets: tuple[str, ...]) -> tuple[str, ...]:
    for number, name in enumerate(rulesets):
        if name in rulesets[:number]:
            raise ValueError(f"{name!r} is given twice")
    return rulesets


RulesetName = Annotated[
    str,
    AfterValidator(_check_ruleset),
    WithJsonSchema({"type": "string", "enum": list(RULESETS)}),
]
"""The name of a ruleset."""
Command = Annotated[
    tuple[str, ...],
    Field(strict=False, json_schema_extra={"minItems": 1, "maxItems": MAX_WORDS}),
    AfterValidator(_check_command),
]
"""A program and its arguments, written as a list in the file. There is no shell, so the list needs no quoting."""


class Build(FileModel):
    """`[build]`: how the bot is built."""

    command: Command
    fetch: (
        Annotated[
            tuple[str, ...],
            Field(strict=False, json_schema_extra={"maxItems": MAX_WORDS}),
            AfterValidator(_check_words),
        ]
        | None
    ) = None
    """The command that fetches the packages; empty to fetch nothing; None to choose the command by the files of the bot, such as
    `Cargo.lock`."""


class Run(FileModel):
    """`[run]`: how the bot is started."""

    command: Command
    transport: Transport = "unix"


class Manifest(FileModel):
    """The content of `bot.toml`."""

    name: Name
    version: Annotated[str, AfterValidator(_check_version), text_schema(_VERSION)]
    author: Line
    language: Line
    description: Line | None = None
    rulesets: Annotated[
        tuple[RulesetName, ...],
        Field(strict=False, min_length=1, json_schema_extra={"uniqueItems": True}),
        AfterValidator(_check_rulesets),
    ] = tuple(RULESETS)
    """The names of the rulesets that the bot plays."""
    build: Build | None = None
    run: Run
    limits: LimitsTable = LimitsTable()
    """The limits that the author wants for the bot, below or above the defaults."""

    @property
    def bot(self) -> BotId:
        """The bot's id, with the version of the manifest. A league may give the bot another version."""
        return BotId(self.name, self.version)

    def to_toml(self) -> str:
        """Return the text of a file with this content. Keys that the author has left out stay out."""
        return toml_file.write(self.model_dump(mode="json", exclude_unset=True, exclude_none=True))

    def spec(self, folder: Path) -> BotSpec:
        """Return how to start the bot in `folder`. If the bot needs a build, the caller must have built it there.

        Raises `UserError` as `packages_path` does.
        """
        folder = folder.resolve()
        packages_path(folder)
        return BotSpec(
            self.bot,
            folder,
            self.run.command,
            self.rulesets,
            self.run.transport,
            self.limits.to_limits(),
        )


@dataclass(frozen=True, slots=True)
class Variant:
    """What a tournament file changes in the manifest of a bot, to compare settings of the bot."""

    name: str
    """The name that the bot gets instead of its own."""
    args: tuple[str, ...] = ()
    """Arguments for the bot's program, after those in the manifest."""

    def apply(self, manifest: Manifest) -> Manifest:
        """Return the changed manifest. Raises `UserError` if its command has more than `MAX_WORDS` words."""
        command = (*manifest.run.command, *self.args)
        if len(command) > MAX_WORDS:
            raise UserError(
                f"{self.name}: run.command and args: must have at most {MAX_WORDS:,} words together"
            )
        run = manifest.run.model_copy(update={"command": command})
        return manifest.model_copy(update={"name": self.name, "run": run})


def load_manifest(folder: Path, variant: Variant | None = None) -> Manifest:
    """Read a bot's manifest from its folder, and change it if there is a `variant`.

    Raises `UserError` if there is no such folder (`FOLDER: no such folder`) or it is a file, if the manifest is missing or wrong
    (`FOLDER/bot.toml: KEY: reason`), or if the manifest is a link out of the folder. Raises also the error of `Variant.apply`.
    """
    if not toml_file.is_folder(folder):
        raise UserError(f"{folder}: {toml_file.explain_no_folder(folder)}")
    manifest = toml_file.load(folder / FILE_NAME, Manifest, _open_inside)
    return manifest if variant is None else variant.apply(manifest)


def _open_inside(file: Path, flags: int) -> int:
    """Open a file of a folder. The file may be a link, but only to a file of the folder, because another file may be secret.

    Below the folder, each part of the resolved path is opened relative to the part before it, and no link is followed. So it
    does no harm if a program replaces one of these parts with a link meanwhile.
    """
    folder, real = (Path(os.path.realpath(path)) for path in (file.parent, file))
    if not real.is_relative_to(folder):
        raise UserError(f"{file}: a link that leads out of the bot's folder, to {real}")
    descriptor = os.open(folder, flags)
    for part in real.relative_to(folder).parts:
        try:
            inner = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor
