"""Submit bots to a league as versions, recognise the sample bots, create new bots from them, and give people an id.

`Roster` combines the versions in the database with the copies in the `Workshop`. A new bot is a copy of a sample bot.
The sample bots are tested and play in tournaments, so every new bot works from the start. On a machine that gives no
isolation, only the sample bots play, unless the user allows more.

A seat of a stored game refers to a version of a bot. So a person who plays in the league has an entry among the bots: its version and
its language are `person`. The entry is retired from the start, so no tournament can choose it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from referee.bots import BotSpec
from referee.bots import snapshot as snapshots
from referee.bots.manifest import FILE_NAME, Manifest, Variant, load_manifest
from referee.errors import StoreError, UserError, copy_errors
from referee.records import BotId
from referee.roster import PERSON, RETIRED_ADVICE, find_bot
from referee.roster.content import hash_content
from referee.roster.workshop import Copy, Workshop, is_unchanged
from referee.sandbox import Isolation
from referee.sandbox.folders import remove_folder
from referee.store import StoredBot
from referee.store.league import League
from referee.toml_file import Line, Name

SAMPLE_BOTS = Path(__file__).parents[1] / "sample_bots"
"""The folder of the sample bots in the package. In a clone of the repository this folder is a symbolic link."""
LANGUAGES = {
    "python": "greedy",
    "go": "greedy_go",
    "rust": "greedy_rust",
    "java": "greedy_java",
    "typescript": "greedy_typescript",
    "cpp": "greedy_cpp",
}
"""Maps each language to the sample bot that is copied for a new bot in this language."""
_SAMPLE_HASHES = Path(__file__).with_name("sample_hashes.txt")
"""The content hash and the name of each sample bot, one bot a line. `.github/write_sample_hashes.py` writes the file."""
_KEY = '^{} = ".*"$'
"""A regular expression for a line of a manifest; the key is put in place of the braces."""
_DESCRIPTION = "Plays by the policy of greedy, until it is taught better"
_README = "README.md"


class StoredCopy(NamedTuple):
    """A version of a league, and the folder of its copy."""

    row: StoredBot
    folder: Path


def is_sample_bot(bot: Path | StoredCopy | Variant) -> bool:
    """Return whether a bot has the name and the content of a sample bot. A variant is never a sample bot.

    The bot is a folder, a version of a league, or a variant of a folder. For a version, the files of its copy are checked
    only if no fetch and no build has run in the copy. Otherwise only the name and the content hash in the league count.
    """
    if isinstance(bot, Variant):
        return False
    hashes = _sample_hashes()
    if isinstance(bot, StoredCopy):
        content_hash = bot.row.content_hash
        return hashes.get(bot.row.name) == content_hash and is_unchanged(bot.folder, content_hash)
    try:
        name = load_manifest(bot).name
        return name in hashes and hashes[name] == hash_content(bot)
    except UserError:  # the folder is no bot
        return False


def _sample_hashes() -> dict[str, str]:
    """Return the content hashes of the sample bots, by their names."""
    lines = [line.split() for line in _SAMPLE_HASHES.read_text().splitlines()]
    return {name: content_hash for content_hash, name in lines}


def allowed_content(isolation: Isolation) -> Collection[str] | None:
    """Return the content hashes of the sample bots if only these may play; return None if all bots may play.

    Only the sample bots may play if this machine gives no isolation and the user has not chosen the rung `none`.
    Pass the result to `Workshop` as `only`. `check_unisolated` checks the bots before anything is created. The workshop
    checks its copies too, because a folder may have changed since then.
    """
    return _sample_hashes().values() if isolation.is_fallback else None


def check_unisolated(
    isolation: Isolation, list_bots: Callable[[], Iterable[Path | StoredCopy | Variant]]
) -> None:
    """Raise UserError if this machine gives no isolation and one of the bots is not a sample bot.

    Args:
        isolation: the isolation of the bots. If the user has chosen the rung `none`, all bots may play.
        list_bots: returns the bots, each as a folder, a version of a league, or a variant of a folder. It is called only if this machine gives
            no isolation.
    """
    if not isolation.is_fallback:
        return
    for bot in list_bots():
        if not is_sample_bot(bot):
            strongest = isolation.refusals[0]
            match bot:
                case StoredCopy(row):
                    name = str(row.bot)
                case Variant():
                    name = bot.name
                case _:
                    name = str(bot)
            raise UserError(
                f"{name}: this machine cannot isolate bots"
                f" ({strongest.reason}), and only the sample bots play without isolation; to isolate bots:"
                f" {strongest.advice}; if you trust the bots: --isolation none"
            )


def check_path(folder: Path) -> None:
    """Raise `UserError` if the path of a bot's folder is not UTF-8, because a database cannot store such a path."""
    try:
        str(folder.resolve()).encode()
    except UnicodeEncodeError:
        raise UserError(f"{folder}: its path is not UTF-8; rename the folder") from None


def create_bot(folder: Path, *, name: str, language: str, author: str) -> None:
    """Create a complete bot in a new folder.

    Args:
        folder: the new folder.
        name: the name of the new bot.
        language: one of `LANGUAGES`.
        author: the author of the new bot.

    Raises `UserError` for an invalid name or author, and if the folder exists or cannot be created. Raises `Shortage` if
    the machine lacks a resource, such as space on the disk.
    """
    _check_names(name, author)
    if folder.exists() or folder.is_symlink():
        raise UserError(f"{folder}: exists already; choose a new folder")
    template = (SAMPLE_BOTS / LANGUAGES[language]).resolve()
    with copy_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        snapshots.take(template, folder, built=True)
        try:
            _rename(folder, template.name, name, author)
        except BaseException:
            remove_folder(folder)
            raise
    load_manifest(folder)


def _check_names(name: str, author: str) -> None:
    for option, text, kind in (("NAME", name, Name), ("--author", author, Line)):
        try:
            TypeAdapter(kind).validate_python(text)
        except ValidationError as error:
            reason = str(error.errors()[0]["ctx"]["error"])
            raise UserError(f"{option}: {reason}") from error


def _rename(folder: Path, old: str, name: str, author: str) -> None:
    """Adapt the manifest and the README in `folder`, which is a copy of the sample bot `old`, to the new bot."""
    manifest = folder / FILE_NAME
    text = manifest.read_text(encoding="utf-8")
    values = {"name": name, "version": "0.1", "author": author, "description": _DESCRIPTION}
    for key, value in values.items():
        line = f"{key} = {json.dumps(value, ensure_ascii=False)}"
        old_line = re.search(_KEY.format(key), text, flags=re.MULTILINE)
        text = text if old_line is None else text.replace(old_line[0], line)
    manifest.write_text(text, encoding="utf-8")
    readme = folder / _README
    readme.write_text(
        readme.read_text(encoding="utf-8").replace(f"# {old}\n", f"# {name}\n", 1), encoding="utf-8"
    )


@dataclass(frozen=True, slots=True)
class Submission:
    """A version in the league that has the content of a submitted folder, with the changes of a variant if there is one."""

    spec: BotSpec
    """How to start this version. `spec.bot` is the version's id in the league; the manifest may say another version."""
    is_new: bool
    """False if the league had this version before the submission."""
    is_retired: bool
    """Whether this version is retired. Then it plays in no new tournament."""


class Roster:
    """The bots of a league.

    Args:
        league: the league; its database has the versions of the bots.
        workshop: keeps the copies of the bots.
    """

    def __init__(self, league: League, workshop: Workshop) -> None:
        self._league = league
        self._workshop = workshop

    @classmethod
    def for_reading(cls, league: League) -> Roster:
        """Return a roster that copies and builds no bot."""
        return cls(league, Workshop(league.folder, None, on_build=lambda _: None))

    async def submit(
        self,
        folder: Path,
        variant: Variant | None = None,
        *,
        now_us: int,
        any_author: bool = False,
    ) -> Submission:
        """Add the current content of a bot's folder to the league.

        If a version of the bot has the same content, return that version. If no version has the same content, add
        a new version, which is named as in the manifest. If, for example, the manifest says `1.0` and this version
        exists already, the new version is named `1.0+2`. If `1.0+2` exists too, the new version is named `1.0+3`.

        Args:
            folder: the bot's folder.
            variant: changes of the bot's manifest; None for the bot as it is.
            now_us: the time in microseconds since 1970-01-01 UTC.
            any_author: True if the folder's bot may have the name of another author's bot.

        Raises `UserError` if the league has another author's bot of this name and `any_author` is False. Raises
        `UserError` also if the name is that of a person, or if the version or the language is `person`. Raises the
        errors of `check_path` and `Workshop.copy` too.
        """
        check_path(folder)
        if not any_author:
            self.check_author(load_manifest(folder, variant), folder)
        copy = await self._workshop.copy(folder, variant=variant, is_kept=False)
        return self.add_copy(copy, folder, now_us=now_us, any_author=any_author)

    async def submit_variant(self, bot: BotId, variant: Variant, *, now_us: int) -> Submission:
        """Add a variant of the version `bot` to the league. The files are those of the league's copy of `bot`.

        Raises the errors of `submit`. Raises `UserError` also if the league's copy of `bot` is missing or was changed.
        """
        folder = self.folder(bot)
        self.check_author(variant.apply(self.manifest(bot)), folder)
        copy = await self._workshop.copy_variant(bot.name, self.content_hash(bot), variant)
        return self.add_copy(copy, folder, now_us=now_us)

    def check_author(self, manifest: Manifest, folder: Path) -> None:
        """Raise `UserError` if the league has another author's bot, or a person, with the name in `manifest`.

        Raise `UserError` also if the version or the language in `manifest` is `person`. The message names `folder`.
        """
        versions = self._league.bots(manifest.name)
        _check_owner(manifest, versions, folder, any_author=False)

    def discard_unused(self, copy: Copy) -> None:
        """Remove `copy` if it is new, unless the league has a version of the bot with the same content.

        A copy that is not new stays, because another command has made it and may play with it. If another command has
        begun a game with a new copy in the meantime, the bot of this game loses its files. If the database fails, the
        copy stays, because the league may use it.
        """
        if not copy.is_new:
            return
        with suppress(StoreError):
            self._workshop.discard(copy, self._use(copy))

    @contextmanager
    def _use(self, copy: Copy) -> Iterator[bool]:
        """Yield whether the league has a version with the content of `copy`. Until the block ends, no other process can add a version."""
        with self._league.unchanged_versions(copy.manifest.name) as versions:
            yield any(row.content_hash == copy.content_hash for row in versions)

    def add_copy(
        self, copy: Copy, folder: Path, *, now_us: int, any_author: bool = False
    ) -> Submission:
        """Add `copy` to the league as `submit` does, and make the copy permanent.

        The league stores `folder` as the folder that a new version was submitted from. The author is checked again, because
        the manifest may have changed, and another process may have added a bot of this name.

        Raises `UserError` if the author, the name, the version or the language is wrong, as in `submit`. Raises `UserError`
        also if the copy is gone, for example because another command has discarded it. After a `UserError` or Ctrl-C, this
        method calls `discard_unused`, which removes the copy only if it is new and the league does not use it. After a
        `StoreError` the copy stays, so that the caller can try again.
        """
        manifest = copy.manifest
        before: list[StoredBot] = []

        def choose(versions: list[StoredBot]) -> StoredBot:
            before.extend(versions)
            _check_owner(manifest, before, folder, any_author=any_author)
            if not self._workshop.has(manifest.name, copy.content_hash):
                home = copy.spec.folder.parent
                raise UserError(
                    f"{home}: the league's copy of {manifest.name} is gone; submit it again"
                )
            self._workshop.keep(copy)
            same = [row for row in before if row.content_hash == copy.content_hash]
            taken = {row.version for row in before}
            return same[0] if same else _new_row(copy, folder, taken, now_us)

        try:
            row = self._league.add_version(manifest.name, choose)
        except (UserError, KeyboardInterrupt):  # not StoreError: a retry needs the copy
            self.discard_unused(copy)
            raise
        return Submission(
            replace(copy.spec, bot=row.bot),
            is_new=row not in before,
            is_retired=row.retired_at_us is not None,
        )

    def versions(self, name: str) -> Sequence[StoredBot]:
        """Return all versions of a bot, oldest first."""
        return self._league.bots(name)

    def hash_folder(self, folder: Path, variant: Variant | None) -> str:
        """Return the content hash that a bot's folder would have as a version of this league.

        Raises `UserError` if the manifest is wrong or the folder cannot be copied. Unlike `submit`, it does not check the author.
        """
        return self._workshop.hash_folder(folder, variant)

    def hash_variant(self, bot: BotId, variant: Variant) -> str:
        """Return the content hash that a variant of a version would have. Raises `UserError` if the version's copy is missing or was changed."""
        return self._workshop.hash_variant(bot.name, self.content_hash(bot), variant)

    def active_spec(self, text: str) -> BotSpec:
        """Return how to start the version that `text` names; `find_bot` explains the names.

        Raises `UserError` if there is no such version, if the version is retired, or if `text` names a person. Raises the errors
        of `spec` too.
        """
        row = find_bot(self._league, text)
        _check_is_bot(row)
        if row.retired_at_us is not None:
            raise UserError(f"{row.bot} is retired; {RETIRED_ADVICE}")
        return self.spec(row.bot)

    def spec(self, bot: BotId) -> BotSpec:
        """Return how to start a version, even a retired one.

        Raises `UserError` for a person, if the copy of the version is missing, and if `packages_path` refuses its path.
        """
        row = find_bot(self._league, str(bot))
        _check_is_bot(row)
        return replace(self._workshop.spec(row.name, row.content_hash), bot=bot)

    def check(self, bot: BotId) -> None:
        """Raise `UserError` if the copy of a version is missing or was changed."""
        self._workshop.check(bot.name, self.content_hash(bot))

    async def refresh(self, bot: BotId) -> None:
        """Check the copy of a version before it plays, and build it again if that is needed; see `Workshop.refresh`."""
        await self._workshop.refresh(bot.name, self.content_hash(bot))

    def stored_copy(self, row: StoredBot) -> StoredCopy:
        """Return a version with the folder of its copy. Raises `UserError` for a person, and if the copy is missing."""
        _check_is_bot(row)
        return StoredCopy(row, self._workshop.folder(row.name, row.content_hash))

    def is_ready(self, bot: BotId) -> bool:
        """Return whether a version can be started and its copy is unchanged; if not, call `refresh` first."""
        return self._workshop.has_unchanged(bot.name, self.content_hash(bot))

    def folder(self, bot: BotId) -> Path:
        """Return the folder that a version was submitted from. It may be gone."""
        return Path(find_bot(self._league, str(bot)).folder)

    def content_hash(self, bot: BotId) -> str:
        """Return the content hash of a version."""
        return find_bot(self._league, str(bot)).content_hash

    def pack(self, bot: BotId) -> bytes:
        """Return the files of a version in an archive; see `Workshop.pack`. Raises `UserError` if its copy is missing."""
        return self._workshop.pack(bot.name, self.content_hash(bot))

    def manifest(self, bot: BotId) -> Manifest:
        """Return the manifest of a version. Raises `UserError` if its copy is missing."""
        return self._workshop.manifest(bot.name, self.content_hash(bot))

    def build_log(self, bot: BotId) -> str:
        """Return the output of a version's build; empty if the bot needs no build or its copy is missing."""
        return self._workshop.build_log(bot.name, self.content_hash(bot))


def _check_is_bot(row: StoredBot) -> None:
    if row.language == PERSON:
        raise UserError(f"{row.bot} is a person, not a bot")


def _check_owner(
    manifest: Manifest, versions: Sequence[StoredBot], folder: Path, *, any_author: bool
) -> None:
    """Raise `UserError` if a bot has the name of a person, or if its version or language is `person`.

    Raise `UserError` also if the newest of the `versions` is by another author and `any_author` is False.
    `versions` are all versions in the league that have the name of the bot.
    """
    for key in ("version", "language"):
        if getattr(manifest, key) == PERSON:
            raise UserError(
                f"{folder / FILE_NAME}: {key}: {PERSON!r} stands for people, not for bots"
            )
    if any(row.language == PERSON for row in versions):
        raise UserError(
            f"{folder / FILE_NAME}: name: {manifest.name!r} is the name of a person who has played in this"
            " league; choose another name"
        )
    if versions and not any_author and versions[-1].author != manifest.author:
        raise UserError(
            f"{folder / FILE_NAME}: name: {manifest.name!r} is a bot of"
            f" {versions[-1].author} in this league, and this one is by {manifest.author}; choose another name,"
            " or, if the name is from bot.toml and not from a tournament file, submit the folder with `referee bots submit --any-author`"
        )


def _new_row(copy: Copy, folder: Path, taken: set[str], now_us: int) -> StoredBot:
    """Return the database row of a new version; `taken` has the names of the existing versions of the bot."""
    manifest = copy.manifest
    labels = (f"{manifest.version}+{number}" for number in count(2))
    version = manifest.version
    while version in taken:
        version = next(labels)
    return StoredBot(
        name=manifest.name,
        version=version,
        author=manifest.author,
        language=manifest.language,
        folder=str(folder.resolve()),
        content_hash=copy.content_hash,
        added_at_us=now_us,
    )


def person_id(league: League, name: str) -> BotId:
    """Return the id of a person: `NAME@person`.

    Raises UserError if `name` is not a valid name, or if it is the name of a bot of the league.
    """
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError as error:
        raise UserError(f"your name: {error.errors()[0]['ctx']['error']}") from error
    _check_no_bot(name, league.bots(name))
    return BotId(name, PERSON)


def _check_no_bot(name: str, versions: Iterable[StoredBot]) -> None:
    """Raise UserError if one of the `versions` of the name is a bot and not a person."""
    if any(row.language != PERSON for row in versions):
        raise UserError(f"your name: {name!r} is the name of a bot of this league")


def enter_person(league: League, person: BotId, *, now_us: int) -> None:
    """Add a person to the bots of a league, unless the league knows the person already.

    Args:
        league: the league, open for writing.
        person: the return value of `person_id`.
        now_us: the time in microseconds since 1970-01-01 UTC.

    Raises UserError if a bot of this name was submitted in the meantime.
    """

    def choose(versions: list[StoredBot]) -> StoredBot:
        _check_no_bot(person.name, versions)
        if versions:
            return versions[0]
        return StoredBot(
            name=person.name,
            version=person.version,
            author=person.name,
            language=PERSON,
            folder="",
            content_hash=hashlib.sha256(PERSON.encode()).hexdigest(),
            added_at_us=now_us,
            retired_at_us=now_us,
        )

    league.add_version(person.name, choose)
