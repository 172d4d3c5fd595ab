"""The functions that the driver of a tournament calls in a Dask worker: enter a session, add bots, play, leave.

A session is one run of a tournament by one driver. For each session, a Dask worker has one process that plays, which
`tournament.workers` starts and watches as on the driver's machine. Dask's own threads and messages are outside of this process,
so they take no time from a game.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from pathlib import Path

from referee.bots.manifest import BotSpec
from referee.errors import UserError
from referee.records import BotId, GameRecord
from referee.roster.workshop import Workshop
from referee.sandbox import Isolation, Rung
from referee.sandbox.folders import run_folder
from referee.sandbox.ladder import make_launcher, select_isolation
from referee.tournament.assignments import Assignment, GameTask
from referee.tournament.config import TournamentConfig
from referee.tournament.workers import Workers, make_settings

IDLE_S = 120.0
"""A session that has played nothing for this time ends its processes. Its driver was probably killed."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a Dask worker may use on its machine."""

    cores: frozenset[int]
    """The CPU cores for the games of this worker; empty for all cores."""
    folder: Path
    """The folder for copies of bots. All Dask workers of a user on this machine can share it."""
    network: bool
    """Whether builds may use the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """What a Dask worker needs to know about a tournament."""

    session: str
    """The id of the session."""
    commitment: str
    """The commitment to the tournament's seed. A new session ends the older ones of the same tournament."""
    config: TournamentConfig
    """The configuration without the seed, which stays with the driver."""
    rung: Rung
    """The isolation that the bots must have."""
    bots: Mapping[str, str]
    """The content hash of each bot, by `name@version`."""


# The states of a session in a Dask worker:
#
#     (none) ── enter ──► entered ── play ──► playing ──► idle ── leave, kill, or IDLE_S ──► closed
#                                                ▲         │
#                                                └─ play ──┘
#
# If the Dask worker is killed, the kernel kills the process that plays. The bots and the folders that are left are removed
# when the next Dask worker of the machine starts.


class Session:
    """The part of a session that is in this process.

    Args:
        request: what the driver has sent.
        place: what this worker may use.
        isolation: the isolation of the bots on this machine.
    """

    def __init__(self, request: SessionRequest, place: Place, isolation: Isolation) -> None:
        self.request = request
        self._place = place
        self._isolation = isolation
        self._workshop = Workshop(
            place.folder,
            make_launcher(isolation),
            on_build=lambda _: None,
            network=place.network,
        )
        self._resources = AsyncExitStack()
        self._workers: Workers | None = None
        self._playing = 0
        self._end: asyncio.TimerHandle | None = None

    def missing_bots(self) -> tuple[str, ...]:
        """Return the bots (`name@version`) that this machine has not built."""
        return tuple(
            bot
            for bot, content_hash in self.request.bots.items()
            if not self._workshop.has(BotId.parse(bot).name, content_hash)
        )

    async def add_bot(self, bot: str, archive: bytes) -> str | None:
        """Build a bot from an archive of `Workshop.pack`. Return what is wrong, or None."""
        try:
            await self._workshop.unpack(archive, self.request.bots[bot])
        except UserError as error:
            return str(error)
        return None

    async def play(self, assignment: Assignment) -> list[GameRecord]:
        """Play an assignment. Raises the errors of `Workers.submit`."""
        if self._end is not None:
            self._end.cancel()
        self._playing += 1
        try:
            return await (await self._open_workers()).submit(0, self._localize(assignment))
        finally:
            self._playing -= 1
            if not self._playing:
                self._end = asyncio.get_running_loop().call_later(IDLE_S, self._leave)

    async def close(self) -> None:
        """End the process that plays, and its bots."""
        if self._end is not None:
            self._end.cancel()
        self._workers = None
        await self._resources.aclose()

    def kill(self) -> None:
        """End the process that plays at once."""
        if self._workers is not None:
            self._workers.kill()

    def _leave(self) -> None:
        asyncio.get_running_loop().create_task(leave(self.request.session))

    async def _open_workers(self) -> Workers:
        if self._workers is None:
            folder = self._resources.enter_context(run_folder())
            config = self.request.config
            settings = make_settings(config, self._isolation, self._place.cores, folder)
            workers = Workers([settings], on_worker_lost=lambda _: None)
            self._workers = await self._resources.enter_async_context(aclosing(workers))
        return self._workers

    def _localize(self, assignment: Assignment) -> Assignment:
        """Return the assignment with the bots' folders and the isolation of this machine."""
        specs: dict[BotSpec, BotSpec] = {}

        def localize(spec: BotSpec | None) -> BotSpec | None:
            if spec is not None and spec not in specs:
                content_hash = self.request.bots[str(spec.bot)]
                folder = self._workshop.spec(spec.bot.name, content_hash).folder
                specs[spec] = replace(spec, folder=folder)
            return None if spec is None else specs[spec]

        def task_here(task: GameTask) -> GameTask:
            setup = replace(task.setup, isolation=self._isolation.summary)
            return replace(task, setup=setup, bots=tuple(map(localize, task.bots)))

        bundles = tuple(tuple(map(task_here, bundle)) for bundle in assignment.bundles)
        return replace(assignment, bundles=bundles)


# The state of this process. Dask calls only functions of modules, and these functions need it.
_SESSIONS: dict[str, Session] = {}
_PLACES: list[Place] = []


def set_place(place: Place) -> None:
    """Say what this Dask worker may use. `referee worker` calls this when the process starts."""
    _PLACES.append(place)


async def enter(request: SessionRequest) -> tuple[str, ...]:
    """Open a session. Return the bots (`name@version`) that `add_bot` must add before `play`.

    Raises UserError if this worker cannot play the tournament.
    """
    where = socket.gethostname()
    if not _PLACES:
        raise UserError(f"{where}: this Dask worker was not started by `referee worker`")
    try:
        isolation = await select_isolation(request.rung)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    older = (each for each in _SESSIONS.values() if each.request.commitment == request.commitment)
    for session in list(older):
        await leave(session.request.session)
    session = _SESSIONS[request.session] = Session(request, _PLACES[-1], isolation)
    return session.missing_bots()


async def add_bot(session: str, bot: str, archive: bytes) -> str | None:
    """See `Session.add_bot`."""
    return await _SESSIONS[session].add_bot(bot, archive)


async def play(session: str, assignment: Assignment) -> list[GameRecord]:
    """See `Session.play`."""
    return await _SESSIONS[session].play(assignment)


async def leave(session: str) -> None:
    """Close a session, if it is open."""
    if (found := _SESSIONS.pop(session, None)) is not None:
        await found.close()


async def kill(session: str) -> None:
    """End the game process of a session at once, and close the session."""
    if session in _SESSIONS:
        _SESSIONS[session].kill()
    await leave(session)


async def kill_all() -> None:
    """Do as `kill` for all sessions."""
    for session in list(_SESSIONS):
        await kill(session)
