"""The functions that the driver of a tournament calls in a Dask worker: deploy a tournament, add bots, play, leave.

A deployment is one run of a tournament by one driver, on one Dask worker. A Dask worker has at most one game process for each
deployment. `tournament.workers` starts and watches this process, in the same way as in a tournament without a cluster. Dask's own
threads and messages are in the Dask worker, not in the game process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from pathlib import Path

from referee.bots import BotSpec
from referee.errors import Shortage, UserError
from referee.records import BotId, host_name
from referee.roster.content import BuildError
from referee.roster.workshop import Workshop
from referee.sandbox import Isolation, Rung
from referee.sandbox.folders import run_folder
from referee.sandbox.ladder import make_launcher, select_isolation
from referee.tournament.assignments import Assignment, AssignmentResult, GameTask
from referee.tournament.config import TournamentConfig
from referee.tournament.workers import WorkerLostError, Workers, make_settings

IDLE_S = 120.0
"""A deployment ends its game process after this many seconds without play, because its driver may have been killed."""


class MissingCopyError(WorkerLostError):
    """This machine has lost the copy of a bot. The worker can play again after `deploy` and `add_bot`."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a Dask worker may use on its machine."""

    cores: frozenset[int]
    """The CPU cores for the games of this worker; empty for all cores."""
    folder: Path
    """The folder for copies of bots, as an absolute path. All Dask workers of a user on this machine can share it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentRequest:
    """What a Dask worker needs to know about a tournament."""

    deployment: str
    """The id of the deployment."""
    commitment: str
    """The commitment of the tournament, which identifies it. A new deployment ends the older ones of the same tournament."""
    config: TournamentConfig
    """The configuration without the seed, which stays with the driver."""
    rung: Rung
    """The isolation that the bots must have."""
    bots: Mapping[str, str]
    """The content hash of each bot, by `name@version`."""


# The states of a deployment in a Dask worker:
#
#     (none) ── deploy ──► deployed ── play ──► playing ──► idle
#                             ▲                   ▲          │
#                             │                   └── play ──┤
#                             └──────── IDLE_S ──────────────┘
#
# `leave`, `kill` and a new deployment of the same tournament lead from every state to the state "leaving", and from there to (none). In
# the state "leaving", builds are ended, new calls of `add_bot` and `play` raise an error, and `kill` can still end the games.
#
# If the Dask worker is killed, the kernel kills the game process. When the next Dask worker of the machine starts, it ends the bot processes and
# removes the run folders that are left. The copies of bots stay.


class Deployment:
    """Hold the state of one deployment in this Dask worker: its bots and its game process.

    Args:
        request: what the driver has sent.
        place: what this worker may use.
        isolation: the isolation of the bots on this machine.
    """

    def __init__(self, request: DeploymentRequest, place: Place, isolation: Isolation) -> None:
        self.request = request
        self._place = place
        self._isolation = isolation
        self._workshop = Workshop(
            place.folder,
            make_launcher(isolation),
            on_build=lambda _: None,
        )
        self._resources = AsyncExitStack()
        self._workers: Workers | None = None
        self._playing = 0
        self._changing = asyncio.Lock()
        """Held while the game process is started or ended."""
        self._builds: set[asyncio.Task[str | None]] = set()
        self._has_left = False
        self._ending: asyncio.Task[None] | None = None

    def missing_bots(self) -> tuple[str, ...]:
        """Return the bots (`name@version`) that are not built on this machine, or whose copy here was changed."""
        return tuple(
            bot
            for bot, content_hash in self.request.bots.items()
            if not self._workshop.has_unchanged(BotId.parse(bot).name, content_hash)
        )

    async def add_bot(self, bot: str, packed: bytes) -> str | None:
        """Build a bot that `Workshop.pack` has packed. Return what is wrong with it, or None.

        Raises WorkerLostError if `leave` was called before or during the build. Raises the errors of `Workshop.unpack`, except
        UserError.
        """
        self._check_not_left()
        build = asyncio.create_task(self._build(bot, packed))
        self._builds.add(build)
        build.add_done_callback(self._builds.discard)
        await asyncio.wait((build,))
        if build.cancelled():
            self._check_not_left()
        return build.result()

    async def _build(self, bot: str, packed: bytes) -> str | None:
        """Build a bot for `add_bot`, in a task that `leave` can cancel."""
        try:
            with run_folder() as scratch:  # removed by a later run if this process is killed
                await self._workshop.unpack(packed, self.request.bots[bot], scratch)
        except BuildError as error:
            return f"{error}\n{error.output}"
        except UserError as error:
            return str(error)
        return None

    async def play(self, assignment: Assignment) -> AssignmentResult:
        """Play an assignment. Raises MissingCopyError, the errors of `Workers.submit`, and WorkerLostError after `leave`."""
        if self._ending is not None and not self._changing.locked():
            # a task that already closes the deployment must go on: if cancelled, it could leave the game process running
            self._ending.cancel()
        self._playing += 1
        try:
            return await (await self._open_workers()).submit(0, self._localize(assignment))
        finally:
            self._playing -= 1
            if not self._playing:
                self._ending = asyncio.create_task(self._close_when_idle())

    async def close(self) -> None:
        """End the game process and its bots. The next `play` starts a new one."""
        async with self._changing:
            try:
                await self._resources.aclose()
            finally:
                self._workers = None

    async def leave(self) -> None:
        """End all builds, and do what `close` does. From then on, `add_bot` and `play` start nothing and raise WorkerLostError."""
        if not self._has_left:
            self._has_left = True
            for build in self._builds:
                # cancel only once: a second cancel could interrupt the build while it ends its programs
                build.cancel()
        if self._builds:
            await asyncio.wait(self._builds)
        await self.close()

    def kill(self) -> None:
        """End the game process at once."""
        if self._workers is not None:
            self._workers.kill()

    async def _close_when_idle(self) -> None:
        await asyncio.sleep(IDLE_S)
        if not self._playing:
            await self.close()

    async def _open_workers(self) -> Workers:
        async with self._changing:
            self._check_not_left()
            if self._workers is None:
                self._workers = await self._start_workers()
            return self._workers

    def _check_not_left(self) -> None:
        """Raise WorkerLostError after `leave`."""
        if self._has_left:
            raise WorkerLostError("this worker has left this run of the tournament")

    async def _start_workers(self) -> Workers:
        folder = self._resources.enter_context(run_folder())
        config = self.request.config
        settings = make_settings(config, self._isolation, self._place.cores, folder)
        workers = Workers([settings], on_worker_lost=lambda _: None)
        return await self._resources.enter_async_context(aclosing(workers))

    def _localize(self, assignment: Assignment) -> Assignment:
        """Return the assignment with the bots' folders and the isolation of this machine.

        Raises MissingCopyError if the copy of a bot cannot be read.
        """
        specs: dict[BotSpec, BotSpec] = {}

        def localize(spec: BotSpec | None) -> BotSpec | None:
            if spec is not None and spec not in specs:
                content_hash = self.request.bots[str(spec.bot)]
                if not self._workshop.has(spec.bot.name, content_hash):
                    raise MissingCopyError(
                        f"{host_name()}: {self._place.folder}: no copy of {spec.bot} can be read"
                    )
                specs[spec] = replace(
                    spec, folder=self._workshop.folder(spec.bot.name, content_hash)
                )
            return None if spec is None else specs[spec]

        def task_here(task: GameTask) -> GameTask:
            setup = replace(task.setup, isolation=self._isolation.summary)
            return replace(task, setup=setup, bots=tuple(map(localize, task.bots)))

        bundles = tuple(tuple(map(task_here, bundle)) for bundle in assignment.bundles)
        return replace(assignment, bundles=bundles)


# The state of this process. It is global because Dask calls only functions of modules, and they need this state.
_DEPLOYMENTS: dict[str, Deployment] = {}
_PLACES: list[Place] = []  # the place of this worker; empty until `set_place`


def set_place(place: Place) -> None:
    """Set what this Dask worker may use. `PlacePlugin` calls this when the process starts."""
    _PLACES[:] = [place]


async def deploy(request: DeploymentRequest) -> tuple[str, ...]:
    """Open a deployment. Return the bots (`name@version`) that `add_bot` must add before `play`.

    The older deployments of the same tournament are closed before the isolation is tested. So their bots end even if
    the test fails.

    Raises UserError if this worker cannot play the tournament, and Shortage if the isolation could not be tested.
    """
    where = host_name()
    if not _PLACES:
        raise UserError(f"{where}: this Dask worker was not started by `referee worker`")
    await _leave_older(request)  # the test may need the memory and processes that the old bots use
    try:
        isolation = await select_isolation(request.rung)
    except UserError as error:
        if isinstance(cause := error.__cause__, (Shortage, OSError)):
            # `cause` itself is not raised: after `raise cause from error`, `cause` would be a cause of itself, and Dask
            # could not send such an error.
            raise Shortage(f"{where}: the isolation could not be tested: {cause}") from error
        raise UserError(f"{where}: {error}") from error
    await _leave_older(request)  # another call of `deploy` may have opened one during the test
    deployment = _DEPLOYMENTS[request.deployment] = Deployment(request, _PLACES[0], isolation)
    return await asyncio.to_thread(deployment.missing_bots)  # it reads all files of the bots


async def _leave_older(request: DeploymentRequest) -> None:
    """Close the open deployments of the same tournament."""
    for older in list(_DEPLOYMENTS.values()):
        if older.request.commitment == request.commitment:
            await leave(older.request.deployment)


async def add_bot(deployment: str, bot: str, packed: bytes) -> str | None:
    """See `Deployment.add_bot`."""
    return await _find(deployment).add_bot(bot, packed)


async def play(deployment: str, assignment: Assignment) -> AssignmentResult:
    """See `Deployment.play`."""
    return await _find(deployment).play(assignment)


def _find(deployment: str) -> Deployment:
    """Return a deployment. Raises WorkerLostError if it was ended, for example by another run of the same tournament."""
    try:
        return _DEPLOYMENTS[deployment]
    except KeyError:
        raise WorkerLostError("this worker has left this run of the tournament") from None


async def leave(deployment: str) -> None:
    """Close a deployment, if it is open. Until it is closed, `kill` can end its games."""
    if (found := _DEPLOYMENTS.get(deployment)) is None:
        return
    try:
        await found.leave()
    finally:
        if _DEPLOYMENTS.get(deployment) is found:  # not yet replaced by another call of `deploy`
            del _DEPLOYMENTS[deployment]


async def kill(deployment: str) -> None:
    """End the game process of a deployment at once, and close the deployment."""
    if deployment in _DEPLOYMENTS:
        _DEPLOYMENTS[deployment].kill()
    await leave(deployment)


async def kill_all() -> None:
    """End the game processes of all deployments, one after the other, and close the deployments."""
    for deployment in list(_DEPLOYMENTS):
        await kill(deployment)
