"""Open a league: a folder with copies of the bots, and a database of bots, tournaments and games.

If the user gives no URL of a database, the database is a file in the league folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from referee.errors import NotFoundError, RefereeError, UserError
from referee.records import BotId, ChargedFault, GameRecord, GameResult, ScheduledGame
from referee.store import (
    FaultCount,
    GameChoice,
    ListedGame,
    NewExtension,
    NewTournament,
    RoundProgress,
    StoredBot,
    StoredExtension,
    StoredGame,
    StoredHost,
    StoredMachine,
    StoredTournament,
    StoredUsage,
    backends,
    game_lists,
    queries,
    schedules,
    writes,
)
from referee.store.backends import hold_lock_file
from referee.store.database import Database

if TYPE_CHECKING:
    from referee.result_columns import ResultColumns

_FILE = "league.db"
_LOCK = "lock"


class League:
    """An open league. Each method that reads or writes data uses one transaction, except `add_game_once`.

    Methods that write raise StoreError if the database is locked, the disk is full, or the league is open for reading only.
    Methods that read raise StoreError if the database fails, for example because its server has stopped.
    """

    def __init__(self, folder: Path, database: Database, db: str | None = None) -> None:
        self.folder = folder
        """The folder with the copies of the bots."""
        self.db = db
        """URL of the database without the password; None if the database is a file in the folder."""
        self.where = str(folder) if db is None else database.where
        """Name of the league in messages."""
        self._database = database

    @staticmethod
    def exists_at(folder: Path, db: str | None = None) -> bool:
        """Return True if there is a league in the database at the URL `db`, or in `folder` if `db` is None.

        Raises UserError if the database cannot be used, and StoreError if it fails, for example because it is locked.
        """
        with closing(_database(folder, db)) as database:
            return database.has_league()

    @classmethod
    def open(cls, folder: Path, *, create: bool, db: str | None = None) -> Self:
        """Open a league.

        Args:
            folder: the league folder, which has the copies of the bots.
            create: create the folder and the tables if they are missing.
            db: the SQLAlchemy URL of an SQLite file or a PostgreSQL database; None for a file in `folder`.

        Raises UserError if there is no league and `create` is False, if the folder or the database cannot be
        used, or if a newer version of the referee made the league. Raises StoreError if the database fails, for
        example because it is locked or the disk is full.
        """
        return cls._open(folder, db, create=create, read_only=False)

    @classmethod
    def open_read_only(cls, folder: Path, *, db: str | None = None) -> Self:
        """Open a league for reading only; methods that write raise StoreError.

        Later reads see what other processes have written in the meantime. Several threads may read from the league at once.
        SQLite needs two more files beside the database, `-wal` and `-shm`, and creates them if they are missing. They stay when
        the league is closed. A later command that may write removes them at its end, if no other process uses the database.
        If `-wal` is missing when the league is opened, and this process cannot write to the folder, SQLite reads the file as
        immutable, that is, as if nobody changed it. Then open the league again to see changes.

        Raises UserError if there is no league, if the database cannot be used, or if its schema is not the one of
        this version of the referee. Raises StoreError if the database fails. Arguments: see `open`.
        """
        return cls._open(folder, db, create=False, read_only=True)

    @classmethod
    def _open(cls, folder: Path, db: str | None, *, create: bool, read_only: bool) -> Self:
        database = _database(folder, db, read_only=read_only)
        league = cls(folder, database, None if db is None else url_without_password(db))
        try:
            there = database.has_league()
            if create:
                _make(folder)
            elif not there:
                option = "--league" if db is None else "--db"
                raise UserError(
                    f"{league.where}: there is no league here; `referee tournament run FILE` makes one, or choose another with {option}"
                )
            if read_only:
                database.check_revision()
            else:
                database.upgrade()
            database.note_open()
        except RefereeError:
            database.close()
            raise
        return league

    def explain(self, error: Exception) -> str:
        """Return the message of an error without paths and URLs of the league, because visitors of the web pages must not see them.

        The name of the league or of its database is removed at the beginning of the message. The paths of files in the league
        folder are written relative to the folder.
        """
        text = str(error)
        for place in (self.where, self._database.where):
            text = text.removeprefix(f"{place}: ")
        folder = re.escape(f"{self.folder}{os.sep}")
        return re.sub(rf"(?<![^\s'\"(]){folder}", "", text)  # not in the middle of another path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def change_mark(self) -> int:
        """Return a number that changes when something is written to the database.

        Test two marks only for equality, and only if they come from the same `League` object. If they differ, probably something
        was written between the two calls. If they are equal, nothing was written, unless the mark cannot change. It cannot change
        if SQLite reads the file as immutable (see `open_read_only`), or inside a `one_moment` context, where reads do not see what
        others write. The mark inside a context differs from all marks outside it. The method is much faster than reading a table.
        """
        return self._database.change_mark()

    def check_writable(self) -> None:
        """Raise StoreError if no game can be stored at the moment.

        Reasons are, for example, that another process holds the write lock, that the league is open for reading only, or that
        this user may only read the database. A full disk is not noticed, because the transaction stores nothing.
        """
        with self._database.writing() as connection:
            writes.try_to_write(connection)

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Let all reads of this thread inside the context see the league as it was at one moment.

        Do not write inside the context, because later reads inside it would not see what was written.
        """
        with self._database.one_moment():
            yield

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock of the league. Only one referee at a time can hold the lock and play in the league.

        The lock is a file in the league folder. The database is locked too, because a referee with another league
        folder may use the same database. When this process ends or is killed, both locks are freed.

        Raises UserError if another process has one of the locks (the message names the process, if it is known), if a lock
        file cannot be opened or locked, or if the database cannot store all characters. Raises StoreError if the league is
        open for reading only, or if the database fails.
        """
        self._database.check_writable()
        with (
            hold_lock_file(self.folder / _LOCK, str(self.folder)),
            self._database.lock(),
        ):
            yield

    # Bots and tournaments

    def add_version(self, name: str, choose: Callable[[list[StoredBot]], StoredBot]) -> StoredBot:
        """Let `choose` return a version of the bot `name`. Add the version, unless the league already has it, and return it.

        `choose` gets all versions of the bot, in the order in which they were submitted. From the time when these versions are
        read until the new one is added, no other process can add a bot. If `choose` raises an error, nothing is added, and the
        error is passed on. Raises UserError if the league has another version of the bot with the same label or the same content.
        """
        with self._database.writing() as connection:
            versions = queries.bots(connection, name)
            version = choose(versions)
            if version not in versions:
                writes.add_bot(connection, version)
            return version

    @contextmanager
    def unchanged_versions(self, name: str) -> Iterator[list[StoredBot]]:
        """Yield all versions of the bot `name`. Until the block ends, no other process adds a bot."""
        with self._database.writing() as connection:
            yield queries.bots(connection, name)

    def mark_checked(self, bot: BotId, *, report: str, at_us: int) -> None:
        """Store the report of a check that a version passed. If the version was retired, it becomes active again.

        Raises UserError if the league does not have the version.
        """
        with self._database.writing() as connection:
            writes.change_bot(
                connection, bot, checked_at_us=at_us, check_report=report, retired_at_us=None
            )

    def mark_retired(self, bot: BotId, *, at_us: int) -> None:
        """Note that a version is retired. Raises UserError if the league does not have the version."""
        with self._database.writing() as connection:
            writes.change_bot(connection, bot, retired_at_us=at_us)

    def bots(self, name: str | None = None) -> list[StoredBot]:
        """Return all versions of the bot `name`, or of all bots, in the order in which they were submitted."""
        with self._database.reading() as connection:
            return queries.bots(connection, name)

    def add_tournament(self, tournament: NewTournament, schedule: Sequence[ScheduledGame]) -> None:
        """Add a tournament with its whole schedule.

        Raises UserError if the tournament's name or the id of a game is already used, or if a bot is not
        in the league.
        """
        with self._database.writing() as connection:
            writes.add_tournament(connection, tournament, schedule)

    def tournaments(self) -> list[StoredTournament]:
        """Return all tournaments, in the order of creation."""
        with self._database.reading() as connection:
            return schedules.tournaments(connection)

    def tournament_names(self) -> list[str]:
        """Return the names of all tournaments, in the order of creation.

        This is faster than `tournaments`, because it counts no games.
        """
        with self._database.reading() as connection:
            return schedules.tournament_names(connection)

    def check_tournament(self, name: str) -> None:
        """Raise NotFoundError if there is no tournament `name`; the message lists all tournaments."""
        with self._database.reading() as connection:
            schedules.check_tournament(connection, name, self.where)

    def tournament(self, name: str) -> StoredTournament:
        """Return one tournament. Raises NotFoundError if it does not exist."""
        with self._database.reading() as connection:
            return schedules.tournament(connection, name, self.where)

    def add_extension(
        self, tournament: str, extension: NewExtension, schedule: Sequence[ScheduledGame]
    ) -> None:
        """Add an extension with its games to a stored tournament.

        Raises UserError if the id of a game is already used, or if a bot is not in the league.
        """
        with self._database.writing() as connection:
            writes.add_extension(connection, tournament, extension, schedule)

    def stop_early(self, tournament: str, *, rounds: int, games: int) -> None:
        """Note that a stored tournament ended early after `rounds` rounds. Remove the games of later rounds.

        `games` must be the number of games in the first `rounds` rounds. All of these games must have been played.
        Raises UserError if a game of a later round has been played.
        """
        with self._database.writing() as connection:
            writes.stop_early(connection, tournament, rounds=rounds, games=games)

    def replace_games(
        self, tournament: str, old: Sequence[ScheduledGame], new: Sequence[ScheduledGame]
    ) -> None:
        """Replace the games `old`, which are the last games of a stored tournament, by the games `new`.

        `new` must differ from `old`. The first game of `new` must have the index of the first game of `old`. Only the matches
        from the first difference to the last one are replaced, because keys are scarce. Each look of a tournament may replace
        games, each written game needs a new key, PostgreSQL never uses a key again, and `columns` has only 24 bits for a key.

        Raises UserError if a game of the replaced matches has been played.
        """
        with self._database.writing() as connection:
            writes.replace_games(connection, tournament, old, new)

    def extensions(self, tournament: str) -> list[StoredExtension]:
        """Return the extensions of a tournament, oldest first."""
        with self._database.reading() as connection:
            return schedules.extensions(connection, tournament)

    def progress(self, tournament: str) -> list[RoundProgress]:
        """Return how far each round of a tournament is, in the order of the rounds; empty for an unknown tournament."""
        with self._database.reading() as connection:
            return schedules.progress(connection, tournament)

    def schedule(self, tournament: str) -> list[ScheduledGame]:
        """Return all games of a tournament, played or not, in schedule order."""
        with self._database.reading() as connection:
            return schedules.schedule(connection, tournament)

    def missing_games(self, tournament: str, *, limit: int) -> list[ScheduledGame]:
        """Return the games of a tournament that have no result yet, in schedule order; only the first `limit` of them."""
        with self._database.reading() as connection:
            return schedules.missing_games(connection, tournament, limit)

    # Games

    def add_game(self, record: GameRecord) -> None:
        """Add a played game. If no schedule has the id of the game, the game is a free game, outside tournaments.

        If the game is the last missing game of a tournament or an extension, the tournament or the extension
        is marked as finished. Raises UserError if a played game with this id is already stored, or if a bot
        is not in the league.
        """
        self.add_games([record])

    def add_games(self, records: Iterable[GameRecord]) -> None:
        """Add several played games, all or none; see `add_game`."""
        with self._database.writing() as connection:
            for record in records:
                writes.add_game(connection, record)

    def add_game_once(self, record: GameRecord) -> None:
        """Add a played game unless the same record is already stored; see `add_game`.

        If a connection is lost during a commit, a StoreError is raised although the game may be stored. The caller can then
        call this method again. It changes nothing if the record is stored.
        """
        try:
            self.add_game(record)
        except UserError:
            if not self._has_record(record):
                raise

    def _has_record(self, record: GameRecord) -> bool:
        try:
            return self.record(record.game_id) == record
        except NotFoundError:
            return False

    def forfeits(self, tournament: str) -> dict[str, tuple[int, ...]]:
        """Map the id of each played game of a tournament to the seats that forfeited in the game."""
        with self._database.reading() as connection:
            return queries.forfeits(connection, tournament)

    def record(self, game_id: str) -> GameRecord:
        """Return the record of a game.

        Raises NotFoundError if no played game with this id is stored, and DamagedRecordError if the record cannot be read.
        """
        with self._database.reading() as connection:
            return queries.record(connection, game_id, self.where)

    def games(self, *, tournament: str | None = None) -> list[StoredGame]:
        """Return summaries of the played games of one tournament, or of all played games if `tournament` is None.

        The summaries are in the order of `results`, with free games last.
        """
        with self._database.reading() as connection:
            return queries.games(connection, tournament)

    def results(self, *, tournament: str | None = None, free: bool = False) -> list[GameResult]:
        """Return the results of one tournament, or of all if `tournament` is None.

        The oldest tournament is first. The results of a tournament are in schedule order. If `free` is True
        and `tournament` is None, the results of free games (outside tournaments) follow at the end.
        """
        with self._database.reading() as connection:
            return queries.results(connection, tournament, free=free)

    def game_counts(self) -> dict[str, int]:
        """Return the number of stored games of each bot that has played, free games included, by `name@version`.

        A game in which a bot has two seats counts twice.
        """
        with self._database.reading() as connection:
            return queries.game_counts(connection)

    def columns(self, *, tournament: str | None = None) -> ResultColumns:
        """Return the same results as `results` with `free=False`, but as arrays. `columns` is much faster."""
        from referee.store.columns import read_result_columns  # noqa: PLC0415 - loading numpy takes time

        with self._database.reading() as connection:
            return read_result_columns(connection, tournament)

    def machines(self, *, tournament: str | None = None) -> list[StoredMachine]:
        """Return the machines that have played in a tournament, or in any tournament if `tournament` is None.

        They are in the order in which the league stored the first game of each machine.
        """
        with self._database.reading() as connection:
            return queries.machines(connection, tournament)

    def note_hosts(self, tournament: str, hosts: Sequence[StoredHost]) -> None:
        """Store the figures of all hosts of the cluster on which a tournament runs. Remove the tournament's older figures."""
        with self._database.writing() as connection:
            writes.note_hosts(connection, tournament, hosts)

    def hosts(self, tournament: str) -> list[StoredHost]:
        """Return the hosts in a tournament's last run on a cluster, sorted by address; an empty list if there was no such run."""
        with self._database.reading() as connection:
            return queries.hosts(connection, tournament)

    def find_games(
        self, choice: GameChoice, *, offset: int, limit: int
    ) -> tuple[list[ListedGame], int]:
        """Return a page of the chosen games, the newest first, and the number of all chosen games.

        The page skips the newest `offset` games, and has at most `limit` games. This is fast with a hundred thousand games.
        """
        with self._database.reading() as connection:
            return game_lists.find_games(connection, choice, offset, limit)

    def last_results(
        self, choice: GameChoice, *, limit: int | None
    ) -> tuple[list[GameResult], int]:
        """Return the results of the last `limit` chosen games, and the number of all chosen games.

        "Last" means at the end of the order of `results`, in which free games come after all others. The returned results have
        the same order. If `limit` is None, all chosen games are returned. With a small limit, this is fast with a hundred
        thousand games.
        """
        with self._database.reading() as connection:
            return game_lists.last_results(connection, choice, limit)

    def is_deal_played(self, game_id: str) -> bool:
        """Return True if all games with the same deal as the game `game_id` are stored.

        If one is missing, a replay would reveal its deal before it is played. Also return True for a game outside tournaments.
        Raises NotFoundError if the league has no game with this id.
        """
        with self._database.reading() as connection:
            return game_lists.is_deal_played(connection, game_id, self.where)

    def faults(
        self, *, tournament: str | None = None, bot: str | None = None, limit: int | None = None
    ) -> list[ChargedFault]:
        """Return faults, free games included, sorted by game in the order of `results`, and within a game by time.

        The texts in a fault have no NUL characters; see `escape_nul`. None means no restriction.

        Args:
            tournament: only faults in games of this tournament.
            bot: only faults of this bot: its name, for all versions, or `name@version`.
            limit: the maximum number of faults; the faults that were stored last are returned.
        """
        with self._database.reading() as connection:
            return queries.faults(connection, tournament, bot, limit)

    def fault_counts(
        self, *, tournament: str | None = None, bot: str | None = None
    ) -> list[FaultCount]:
        """Return how many faults of each cause each bot version had, free games included. None means no restriction.

        The bots are in the order of submission, the causes of a bot in alphabetical order. A cause without a fault is left out.

        Args:
            tournament: only faults in games of this tournament.
            bot: only faults of this bot: its name, for all versions, or `name@version`.
        """
        with self._database.reading() as connection:
            return queries.fault_counts(connection, tournament, bot)

    def stray_games(self, *, tournament: str | None = None) -> set[str]:
        """Return the ids of games with a row that contradicts another table. The referee never writes such a row.

        Two contradictions are found. The game has another tournament in `results` than in `matches`. Or it has a row in `faults`
        for a seat that has no row in `seats`.

        Args:
            tournament: only games of this tournament; None for all games, free games included. In the first contradiction, a
                game belongs to the tournament in `results` and to the one in `matches`. In the second, only `matches` counts.
        """
        with self._database.reading() as connection:
            return queries.stray_games(connection, tournament)

    def usage(self) -> list[StoredUsage]:
        """Return the measured CPU time and memory of each bot version, in the order of submission.

        Versions without a measurement are left out.
        """
        with self._database.reading() as connection:
            return queries.usage(connection)

    # Checkpoints: saved results of long computations. If one is lost, the computation is repeated.

    def checkpoint(self, name: str) -> bytes | None:
        """Return the content of a checkpoint, or None if there is no checkpoint of this name.

        The caller must test whether the content is still valid.
        """
        with self._database.reading() as connection:
            return queries.checkpoint(connection, name)

    def keep_checkpoint(self, name: str, content: bytes) -> None:
        """Save a checkpoint. It replaces the older checkpoint of the same name, if there is one."""
        with self._database.writing() as connection:
            writes.keep_checkpoint(connection, name, content)


def url_without_password(db: str) -> str:
    """Return the URL of a database without its password. Raises UserError if `db` is not the URL of a supported database."""
    return backends.without_password(backends.parse_url(db))


def _database(folder: Path, db: str | None, *, read_only: bool = False) -> Database:
    url = backends.file_url(folder / _FILE) if db is None else backends.parse_url(db)
    return Database(url, read_only=read_only)


def _make(folder: Path) -> None:
    """Create the league folder if it is missing. Raises UserError if it cannot be created or written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder}: the league folder cannot be created: {error.strerror}"
        ) from error
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder}: the league folder is not writable")
