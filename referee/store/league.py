"""A league: a folder, with the bots that play and a database of tournaments and games.

The database is a file of the folder, unless it is told where another one is.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from referee.errors import UserError
from referee.records import BotId, ChargedFault, GameRecord, GameResult, ScheduledGame
from referee.store import backends, queries, writes
from referee.store.database import Database
from referee.store.stored import (
    NewExtension,
    NewTournament,
    StoredBot,
    StoredExtension,
    StoredGame,
    StoredTournament,
    StoredUsage,
)

if TYPE_CHECKING:
    from referee.result_columns import ResultColumns

_FILE = "league.db"
_LOCK = "lock"


class League:
    """An open league. Every method is a transaction of its own.

    Those that write raise StoreError, one line, when they cannot (locked, full, read-only) and nothing
    has changed; those that read raise UserError when the database cannot be used.
    """

    def __init__(self, folder: Path, database: Database, db: str | None = None) -> None:
        self.folder = folder
        """Where the copies of its bots are."""
        self.db = db
        """The URL of its database, without a password; None: it is a file of the folder."""
        self.where = str(folder) if db is None else database.where
        """How messages name it."""
        self._database = database

    @staticmethod
    def exists_at(folder: Path, db: str | None = None) -> bool:
        """Whether there is a league in this folder, or in the database of this URL.

        Raises UserError when the database cannot be asked.
        """
        database = _database(folder, db)
        try:
            return database.has_league()
        finally:
            database.close()

    @classmethod
    def open(cls, folder: Path, *, create: bool, db: str | None = None) -> Self:
        """Open a league, or make it where `create` says so.

        Args:
            folder: where the copies of its bots are, and its database, unless that is elsewhere.
            create: make what is not there, the folder or the tables.
            db: the SQLAlchemy URL of a database elsewhere: an SQLite file or PostgreSQL.

        Raises UserError when there is none, when the folder or the database cannot be used, and when
        it was made by a newer version of the referee.
        """
        database = _database(folder, db)
        league = cls(folder, database, None if db is None else url_without_password(db))
        try:
            league._prepare(create=create)
        except UserError:
            database.close()
            raise
        return league

    def _prepare(self, *, create: bool) -> None:
        there = self._database.has_league()
        if create:
            _make(self.folder)
        elif not there:
            raise UserError(
                f"{self.where}: there is no league here; `referee tournament run FILE` makes one"
            )
        self._database.upgrade()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only referee that plays in this league.

        With a database on a server that is also to be the only one on any machine and with any folder.
        Raises UserError, which names its process, when there is one already, and when the folder
        cannot be written. The lock goes with the process, however that ends.
        """
        path = self.folder / _LOCK
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(f"{path}: no lock can be taken: {error.strerror}") from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
                raise UserError(
                    f"{self.folder}: another referee is playing in this league (process {owner})"
                ) from None
            os.truncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            with self._database.lock():
                yield
        finally:
            os.close(descriptor)

    # Bots and tournaments

    def add_bot(self, bot: StoredBot) -> None:
        """Keep a version. Raises UserError when it, or its content, is there already."""
        with self._database.writing() as connection:
            writes.add_bot(connection, bot)

    def mark_checked(self, bot: BotId, *, report: str, at_us: int) -> None:
        """Keep that a version passed the check, and that it plays (again).

        Raises UserError when it is not known, as `mark_retired` does.
        """
        with self._database.writing() as connection:
            writes.change_bot(
                connection, bot, checked_at_us=at_us, check_report=report, retired_at_us=None
            )

    def mark_retired(self, bot: BotId, *, at_us: int) -> None:
        """Keep that a version plays no more."""
        with self._database.writing() as connection:
            writes.change_bot(connection, bot, retired_at_us=at_us)

    def bots(self) -> list[StoredBot]:
        """All versions of all bots, in the order in which they came."""
        with self._database.reading() as connection:
            return queries.bots(connection)

    def add_tournament(self, tournament: NewTournament, schedule: Sequence[ScheduledGame]) -> None:
        """Keep a tournament with its whole schedule.

        Its bots must be known. Raises UserError when the name or a game's id is taken.
        """
        with self._database.writing() as connection:
            writes.add_tournament(connection, tournament, schedule)

    def tournaments(self) -> list[StoredTournament]:
        """All tournaments, in the order in which they were created."""
        with self._database.reading() as connection:
            return queries.tournaments(connection)

    def tournament_names(self) -> list[str]:
        """The names alone, which are quicker read: games are not counted."""
        with self._database.reading() as connection:
            return queries.tournament_names(connection)

    def check_tournament(self, name: str) -> None:
        """Raises NotFoundError, as `tournament` does."""
        with self._database.reading() as connection:
            queries.check_tournament(connection, name, self.where)

    def tournament(self, name: str) -> StoredTournament:
        """One tournament. Raises NotFoundError, which names those there are."""
        with self._database.reading() as connection:
            return queries.tournament(connection, name, self.where)

    def add_extension(
        self, tournament: str, extension: NewExtension, schedule: Sequence[ScheduledGame]
    ) -> None:
        """Keep more games of a tournament, which must be known.

        Raises UserError when a game's id is taken.
        """
        with self._database.writing() as connection:
            writes.add_extension(connection, tournament, extension, schedule)

    def stop_early(self, tournament: str, *, rounds: int, games: int) -> None:
        """Keep that a tournament, which must be known, is finished after so many rounds.

        Its first so many games are those of these rounds, and played; the others are dropped. Raises
        UserError where one of them is played.
        """
        with self._database.writing() as connection:
            writes.stop_early(connection, tournament, rounds=rounds, games=games)

    def extensions(self, tournament: str) -> list[StoredExtension]:
        """What was added to a tournament, in its order."""
        with self._database.reading() as connection:
            return queries.extensions(connection, tournament)

    def schedule(self, tournament: str) -> list[ScheduledGame]:
        """The games of a tournament, played or not, in schedule order."""
        with self._database.reading() as connection:
            return queries.schedule(connection, tournament)

    # Games

    def add_game(self, record: GameRecord) -> None:
        """Keep a played game: one of a schedule by its id, else a free one.

        With the last game that a tournament misses it is kept that the tournament is finished.

        Raises UserError when a game of this id is stored already, or a bot is not known.
        """
        self.add_games([record])

    def add_games(self, records: Iterable[GameRecord]) -> None:
        """Keep games that were played together, all or none; see `add_game`."""
        with self._database.writing() as connection:
            for record in records:
                writes.add_game(connection, record)

    def forfeits(self, tournament: str) -> dict[str, tuple[int, ...]]:
        """The played games of a tournament: id and the seats that forfeited."""
        return {row.game_id: row.forfeited for row in self.results(tournament=tournament)}

    def record(self, game_id: str) -> GameRecord:
        """A game. Raises NotFoundError when none of that id is stored."""
        with self._database.reading() as connection:
            return queries.record(connection, game_id, self.where)

    def games(
        self,
        *,
        tournament: str | None = None,
        bot: str | None = None,
        cause: str | None = None,
    ) -> list[StoredGame]:
        """Stored games, in short: of a tournament, with a bot, with a fault of a cause."""
        with self._database.reading() as connection:
            return queries.games(connection, tournament, bot, cause)

    def results(self, *, tournament: str | None = None, free: bool = False) -> list[GameResult]:
        """Results by tournament, in schedule order; free games, when asked for, come last."""
        with self._database.reading() as connection:
            return queries.results(connection, tournament, free=free)

    def columns(self, *, tournament: str | None = None) -> ResultColumns:
        """The same results in columns, without free games: quick where there are many."""
        from referee.store.columns import read_result_columns  # noqa: PLC0415 - numpy takes a while to load

        with self._database.reading() as connection:
            return read_result_columns(connection, tournament)

    def faults(self, *, tournament: str | None = None) -> list[ChargedFault]:
        """Faults of stored games, their texts as `escape_nul` makes them, in the order of `results`, each game's in its own order."""
        with self._database.reading() as connection:
            return queries.faults(connection, tournament)

    def usage(self) -> list[StoredUsage]:
        """What the bots took of the machine, of those that were measured, as they came."""
        with self._database.reading() as connection:
            return queries.usage(connection)

    # What spares work

    def checkpoint(self, name: str) -> bytes | None:
        """What was kept under a name, whoever knows what it is worth now; None: nothing was."""
        with self._database.reading() as connection:
            return queries.checkpoint(connection, name)

    def keep_checkpoint(self, name: str, content: bytes) -> None:
        """Keep something under a name, in place of what was there."""
        with self._database.writing() as connection:
            writes.keep_checkpoint(connection, name, content)


def url_without_password(db: str) -> str:
    """A database's URL without its password. Raises UserError where it is none."""
    return backends.without_password(backends.parse_url(db))


def _database(folder: Path, db: str | None) -> Database:
    return Database(backends.file_url(folder / _FILE) if db is None else backends.parse_url(db))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: no league can be made here: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder}: the league folder is not writable")
