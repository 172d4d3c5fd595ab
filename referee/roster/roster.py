"""A new bot to begin with: a sample bot under another name.

The templates are the sample bots themselves, so what a bot author begins with is tested, and played.

The versions of the bots of a league, and how one is named: `greedy`, or `greedy@1.0`.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from referee.bots import snapshot as snapshots
from referee.bots.manifest import FILE_NAME, BotSpec, Manifest, load_manifest
from referee.errors import UserError
from referee.records import BotId
from referee.roster.versions import find_bot, versions_of
from referee.roster.workshop import Copy, Workshop
from referee.store import BotRow, League
from referee.toml_file import Line, Name

SAMPLE_BOTS = Path(__file__).parents[1] / "sample_bots"
"""In the package; in a clone, a link to where they are."""
LANGUAGES = {
    "python": "greedy",
    "go": "greedy_go",
    "rust": "greedy_rust",
    "java": "greedy_java",
    "typescript": "greedy_typescript",
    "cpp": "greedy_cpp",
}
"""The sample bot that each language's bots begin as."""
_KEY = '^{} = ".*"$'
_DESCRIPTION = "Plays by the policy of greedy, until it is taught better"
_README = "README.md"


def make(folder: Path, *, name: str, language: str, author: str) -> None:
    """Write a complete bot into a new folder.

    Args:
        folder: made by this.
        name: of the bot, for its manifest.
        language: one of `LANGUAGES`.
        author: for its manifest.

    Raises UserError for a name or author that no manifest may have, and where there is such a folder
    or none can be made.
    """
    _check(name, author)
    if folder.exists() or folder.is_symlink():
        raise UserError(f"{folder}: is there already")
    template = (SAMPLE_BOTS / LANGUAGES[language]).resolve()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        snapshots.take(template, folder, built=True)
        _rename(folder, template.name, name, author)
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}") from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    load_manifest(folder)


def _check(name: str, author: str) -> None:
    for what, text, kind in (("NAME", name, Name), ("--author", author, Line)):
        try:
            TypeAdapter(kind).validate_python(text)
        except ValidationError as error:
            reason = str(error.errors()[0]["ctx"]["error"])
            raise UserError(f"{what}: {reason}") from error


def _rename(folder: Path, old: str, name: str, author: str) -> None:
    """Give a copy of a sample bot its own name, where the sample has its name."""
    manifest = folder / FILE_NAME
    text = manifest.read_text()
    values = {"name": name, "version": "0.1", "author": author, "description": _DESCRIPTION}
    for key, value in values.items():
        line = f"{key} = {json.dumps(value, ensure_ascii=False)}"
        old_line = re.search(_KEY.format(key), text, flags=re.MULTILINE)
        text = text if old_line is None else text.replace(old_line[0], line)
    manifest.write_text(text)
    readme = folder / _README
    readme.write_text(readme.read_text().replace(f"# {old}\n", f"# {name}\n", 1))


@dataclass(frozen=True, slots=True)
class Entry:
    """A version that came into the league, now or before."""

    spec: BotSpec
    """How it is started, by its name in this league."""
    is_new: bool


class Roster:
    """The bots of a league.

    Args:
        league: it knows the versions.
        workshop: it has their files.
    """

    def __init__(self, league: League, workshop: Workshop) -> None:
        self._league = league
        self._workshop = workshop

    async def enter(self, folder: Path, *, now_us: int, any_author: bool = False) -> Entry:
        """Bring the bot of a folder into the league, as it is now.

        The same content is the same version. Other content is another one, called by the manifest's
        version if that is free, else `1.0+2`, `1.0+3`…

        Args:
            folder: the bot's.
            now_us: the time, in microseconds since 1970-01-01 UTC.
            any_author: it may have the name of another author's bot.

        Raises UserError as `Workshop.copy` does, and for the name of another author's bot.
        """
        if not any_author:
            self.check_author(folder)
        return self.admit(await self._workshop.copy(folder), folder, now_us=now_us)

    def check_author(self, folder: Path) -> None:
        """Raise UserError where the league has a bot of this name by another author."""
        manifest = load_manifest(folder)
        versions = versions_of(self._league, manifest.name)
        if versions and versions[-1].author != manifest.author:
            raise UserError(
                f"{folder / FILE_NAME}: name: {manifest.name!r} is a bot of"
                f" {versions[-1].author} in this league, and this one is by {manifest.author}"
            )

    def knows(self, copy: Copy) -> bool:
        """Whether a copy is that of a version."""
        versions = versions_of(self._league, copy.manifest.name)
        return copy.content_hash in {row.content_hash for row in versions}

    def admit(self, copy: Copy, folder: Path, *, now_us: int) -> Entry:
        """Bring a copy of a folder into the league; as `enter`, which makes the copy."""
        versions = versions_of(self._league, copy.manifest.name)
        for row in versions:
            if row.content_hash == copy.content_hash:
                return Entry(replace(copy.spec, bot=row.bot), is_new=False)
        row = _row(copy, folder, {each.version for each in versions}, now_us)
        self._league.add_bot(row)
        return Entry(replace(copy.spec, bot=row.bot), is_new=True)

    def player(self, text: str) -> BotSpec:
        """How to start the version of `find_bot`. Raises UserError where it is retired or its copy is gone."""
        row = find_bot(self._league, text)
        if row.retired_at_us is not None:
            raise UserError(f"{row.bot} is retired; submit it again to let it play")
        return self.spec(row.bot)

    def spec(self, bot: BotId) -> BotSpec:
        """How to start a version, retired or not. Raises UserError where its copy is gone."""
        row = find_bot(self._league, str(bot))
        return replace(self._workshop.spec(row.name, row.content_hash), bot=bot)

    def manifest(self, bot: BotId) -> Manifest:
        """What a version says about itself. Raises UserError where its copy is gone."""
        return self._workshop.manifest(bot.name, find_bot(self._league, str(bot)).content_hash)

    def build_log(self, bot: BotId) -> str:
        """What the build of a version printed; empty where there was none."""
        return self._workshop.build_log(bot.name, find_bot(self._league, str(bot)).content_hash)


def _row(copy: Copy, folder: Path, taken: set[str], now_us: int) -> BotRow:
    manifest = copy.manifest
    labels = (f"{manifest.version}+{number}" for number in count(2))
    version = manifest.version
    while version in taken:
        version = next(labels)
    return BotRow(
        name=manifest.name,
        version=version,
        author=manifest.author,
        language=manifest.language,
        folder=str(folder.resolve()),
        content_hash=copy.content_hash,
        added_at_us=now_us,
    )
