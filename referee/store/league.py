"""Open a league: a folder with copies of the bots, and a database of bots, tournaments and games.

The database is a file in that folder, or one elsewhere that is given by its URL.
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
from referee.store import (
    NewExtension,
    NewTournament,
    StoredBot,
    StoredExtension,
    StoredGame,
    StoredTournament,
    StoredUsage,
    backends,
    queries,
    writes,
)
from referee.store.database import Database

if TYPE_CHECKING:
    from referee.result_columns import ResultColumns

_FILE = "league.db"
_LOCK = "lock"


class League:
    """An open league. Each method is one transaction.

    Methods that write raise StoreError if the database is locked, full or read-only; then nothing has
    changed. Methods that read raise UserError if the database cannot be used.
    """

    def __init__(self, folder: Path, database: Database, db: str | None = None) -> None:
        self.folder = folder
        """The folder with the copies of the bots."""
        self.db = db
        """URL of the database without the password; None if it is a file in the folder."""
        self.where = str(folder) if db is None else database.where
        """Name of the league in messages."""
        self._database = database

    @staticmethod
    def exists_at(folder: Path, db: str | None = None) -> bool:
        """Return True if this folder, or the database at the URL `db`, has a league.

        Raises UserError if the database cannot be used.
        """
        database = _database(folder, db)
        try:
            return database.has_league()
        finally:
            database.close()

    @classmethod
    def open(cls, folder: Path, *, create: bool, db: str | None = None) -> Self:
        """Open a league.

        Args:
            folder: the folder with the copies of the bots, and with the database if `db` is None.
            create: make a missing folder and missing tables.
            db: the SQLAlchemy URL of an SQLite file or a PostgreSQL database.

        Raises UserError if there is no league, if the folder or the database cannot be used, and if a
        newer version of the referee made the league.
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
        """Hold the lock of the league, so that no other referee plays in it.

        A database on a server is locked too, against referees on other machines or with other folders.
        The lock ends with this process, even if the process is killed. Raises UserError if another
        process has the lock (the message names it), or if the folder cannot be written.
        """
        path = self.folder / _LOCK
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(f"{path}: the lock file cannot be opened: {error.strerror}") from error
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
        """Add a version of a bot. Raises UserError if the version or its content is already stored."""
        with self._database.writing() as connection:
            writes.add_bot(connection, bot)

    def mark_checked(self, bot: BotId, *, report: str, at_us: int) -> None:
        """Note that a version passed the check; this ends a retirement. Raises UserError if it is unknown."""
        with self._database.writing() as connection:
            writes.change_bot(
                connection, bot, checked_at_us=at_us, check_report=report, retired_at_us=None
            )

    def mark_retired(self, bot: BotId, *, at_us: int) -> None:
        """Note that a version is retired. Raises UserError if it is unknown."""
        with self._database.writing() as connection:
            writes.change_bot(connection, bot, retired_at_us=at_us)

    def bots(self) -> list[StoredBot]:
        """Return all versions of all bots, in the order of submission."""
        with self._database.reading() as connection:
            return queries.bots(connection)

    def add_tournament(self, tournament: NewTournament, schedule: Sequence[ScheduledGame]) -> None:
        """Add a tournament with its whole schedule; its bots must be stored.

        Raises UserError if the name or the id of a game is already used.
        """
        with self._database.writing() as connection:
            writes.add_tournament(connection, tournament, schedule)

    def tournaments(self) -> list[StoredTournament]:
        """Return all tournaments, in the order of creation."""
        with self._database.reading() as connection:
            return queries.tournaments(connection)

    def tournament_names(self) -> list[str]:
        """Return the names of all tournaments; faster than `tournaments`, because no games are counted."""
        with self._database.reading() as connection:
            return queries.tournament_names(connection)

    def check_tournament(self, name: str) -> None:
        """Raise NotFoundError if there is no tournament `name`; the message lists those that exist."""
        with self._database.reading() as connection:
            queries.check_tournament(connection, name, self.where)

    def tournament(self, name: str) -> StoredTournament:
        """Return one tournament. Raises NotFoundError as `check_tournament` does."""
        with self._database.reading() as connection:
            return queries.tournament(connection, name, self.where)

    def add_extension(
        self, tournament: str, extension: NewExtension, schedule: Sequence[ScheduledGame]
    ) -> None:
        """Add games to a stored tournament. Raises UserError if the id of a game is already used."""
        with self._database.writing() as connection:
            writes.add_extension(connection, tournament, extension, schedule)

    def stop_early(self, tournament: str, *, rounds: int, games: int) -> None:
        """Note that a stored tournament ended early after `rounds` rounds, and drop the rest of its games.

        The first `games` games of the schedule belong to these rounds and must be stored. Raises
        UserError if a later game is stored.
        """
        with self._database.writing() as connection:
            writes.stop_early(connection, tournament, rounds=rounds, games=games)

    def extensions(self, tournament: str) -> list[StoredExtension]:
        """Return the extensions of a tournament, oldest first."""
        with self._database.reading() as connection:
            return queries.extensions(connection, tournament)

    def schedule(self, tournament: str) -> list[ScheduledGame]:
        """Return all games of a tournament, played or not, in schedule order."""
        with self._database.reading() as connection:
            return queries.schedule(connection, tournament)

    # Games

    def add_game(self, record: GameRecord) -> None:
        """Add a played game. A game whose id is in no schedule becomes a free game, outside tournaments.

        The last missing game of a tournament marks the tournament as finished. Raises UserError if a game
        with this id is stored, or if a bot is unknown.
        """
        self.add_games([record])

    def add_games(self, records: Iterable[GameRecord]) -> None:
        """Add several played games, all or none; see `add_game`."""
        with self._database.writing() as connection:
            for record in records:
                writes.add_game(connection, record)

    def forfeits(self, tournament: str) -> dict[str, tuple[int, ...]]:
        """Return the seats that forfeited in each played game of a tournament, by game id."""
        return {row.game_id: row.forfeited for row in self.results(tournament=tournament)}

    def record(self, game_id: str) -> GameRecord:
        """Return the record of a game. Raises NotFoundError if no game with this id is stored."""
        with self._database.reading() as connection:
            return queries.record(connection, game_id, self.where)

    def games(
        self,
        *,
        tournament: str | None = None,
        bot: str | None = None,
        cause: str | None = None,
    ) -> list[StoredGame]:
        """Return summaries of stored games; each argument that is not None restricts them."""
        with self._database.reading() as connection:
            return queries.games(connection, tournament, bot, cause)

    def results(self, *, tournament: str | None = None, free: bool = False) -> list[GameResult]:
        """Return results by tournament, in schedule order; with `free`, free games at the end."""
        with self._database.reading() as connection:
            return queries.results(connection, tournament, free=free)

    def columns(self, *, tournament: str | None = None) -> ResultColumns:
        """Return the results as columns, without free games. This is much faster than `results`."""
        from referee.store.columns import read_result_columns  # noqa: PLC0415 - numpy takes a while to load

        with self._database.reading() as connection:
            return read_result_columns(connection, tournament)

    def faults(self, *, tournament: str | None = None) -> list[ChargedFault]:
        """Return the faults of stored games, in the order of `results` and then of the game.

        Their texts have no NUL; see `escape_nul`.
        """
        with self._database.reading() as connection:
            return queries.faults(connection, tournament)

    def usage(self) -> list[StoredUsage]:
        """Return the measured CPU time and memory of each bot, in the order of submission."""
        with self._database.reading() as connection:
            return queries.usage(connection)

    # Checkpoints: saved work, never the only copy of anything

    def checkpoint(self, name: str) -> bytes | None:
        """Return the checkpoint of this name, or None. The caller must test whether it is still valid."""
        with self._database.reading() as connection:
            return queries.checkpoint(connection, name)

    def keep_checkpoint(self, name: str, content: bytes) -> None:
        """Save a checkpoint; it replaces an older one of the same name."""
        with self._database.writing() as connection:
            writes.keep_checkpoint(connection, name, content)


def url_without_password(db: str) -> str:
    """Return the URL of a database without its password. Raises UserError if `db` is not such a URL."""
    return backends.without_password(backends.parse_url(db))


def _database(folder: Path, db: str | None) -> Database:
    return Database(backends.file_url(folder / _FILE) if db is None else backends.parse_url(db))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder}: the league folder cannot be created: {error.strerror}"
        ) from error
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder}: the league folder is not writable")
