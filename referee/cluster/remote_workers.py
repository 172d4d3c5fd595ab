"""Give stretches of games to the workers of a Dask cluster. `dask_workers` knows which workers there are."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

from distributed import Client

from referee.cluster import member
from referee.cluster.connection import Certificates, connect, is_loss
from referee.cluster.dask_workers import LOSS_S, DaskWorker, DaskWorkers
from referee.cluster.host import CORE
from referee.cluster.member import DeploymentRequest, MissingCopyError
from referee.errors import RefereeError
from referee.records import BotId
from referee.roster.roster import Roster
from referee.sandbox import Isolation
from referee.store import HostFigures
from referee.tournament.assignments import Assignment, AssignmentResult
from referee.tournament.create import Tournament
from referee.tournament.workers import WorkerLostError

STRETCH_S = 1.0
"""How many seconds of play a stretch should have. Dask itself needs some milliseconds for each stretch, mostly in the scheduler and in
the driver."""


class RemoteWorkers:
    """A `WorkerGroup` in which worker n is lane n: `submit(n, …)` plays lane n on the Dask worker that has this lane.

    If the Dask worker of a lane is lost, the lane moves to another worker, on another host if possible. The lane also moves if
    its worker has at least two busy lanes more than another worker; the lane itself counts as busy. Each game is stored
    once, and only games that are not stored are played again.

    Args:
        client: the connection to the scheduler.
        dask_workers: the Dask workers that can play.
        deployment: the id of the deployment on these workers.
        lanes: the number of lanes.
        say: called with a sentence when the game process of a Dask worker has ended.
    """

    def __init__(
        self,
        client: Client,
        dask_workers: DaskWorkers,
        deployment: str,
        lanes: int,
        *,
        say: Callable[[str], None],
    ) -> None:
        self.stretch_s = STRETCH_S
        self._client = client
        self._dask_workers = dask_workers
        self._deployment = deployment
        self._lanes = lanes
        self._say = say
        self._numbers = count()
        self._homes: dict[int, DaskWorker] = {}
        """The Dask worker to which each lane is assigned. It may be lost by now."""
        self._idle_lanes: set[int] = set()
        """The lanes that have ended their last stretch and have no new one. `_find_home` does not count them, because they may be
        finished, or get no games until the next look (`tournament/course.py`). If all lanes are idle, `submit` empties the set."""
        self._stretches: dict[DaskWorker, list[asyncio.Future[AssignmentResult]]] = {}
        """The unfinished stretches that were sent to each Dask worker, the oldest first. The worker plays the oldest one. The list of a
        lost worker does not change any more, so it shows which stretch the worker was playing."""
        self._games: Counter[str] = Counter()
        """How many games each host has played."""

    def __len__(self) -> int:
        return self._lanes

    async def submit(self, number: int, assignment: Assignment) -> AssignmentResult:
        """Wait until a Dask worker is ready, then play an assignment of lane `number` on the worker of that lane.

        Raises WorkerLostError if the worker is lost, fails or is killed. The `was_waiting` of this error is True if the worker was lost
        before it began this assignment. Also raises the errors of `DaskWorkers.wait_until_ready`.
        """
        await self._dask_workers.wait_until_ready()
        if self._idle_lanes >= self._homes.keys():
            # All lanes are idle, as after a look. Each of them may get games now, so `_find_home` must count all.
            self._idle_lanes.clear()
        self._idle_lanes.discard(number)
        worker = self._find_home(number)
        result = asyncio.ensure_future(self._play(worker, assignment))
        stretches = self._stretches.setdefault(worker, [])
        stretches.append(result)
        try:
            played = await self._wait_for_result(worker, result)
        except WorkerLostError as error:
            if worker.lost.done() and stretches[0] is not result:
                raise WorkerLostError(str(error), was_waiting=True) from error
            raise
        finally:
            if not worker.lost.done():
                stretches.remove(result)
            self._idle_lanes.add(number)
            result.cancel()
        self._games[worker.host] += len(played.records)
        return played

    async def _play(self, worker: DaskWorker, assignment: Assignment) -> AssignmentResult:
        """Let a Dask worker play an assignment. Raises the errors of Dask and of `member.play`."""
        job = self._client.submit(
            member.play,
            self._deployment,
            assignment,
            key=f"referee-{self._deployment}-{next(self._numbers)}",
            workers=[worker.address],
            allow_other_workers=False,
            resources={CORE: 1},
            retries=0,
            pure=False,
        )
        try:
            played: AssignmentResult = await job.result()
        finally:
            if not self._dask_workers.gone.done():
                job.release()
        return played

    def _find_home(self, lane: int) -> DaskWorker:
        """Move a lane if necessary, and return its Dask worker. `RemoteWorkers` says when a lane moves."""
        busy = Counter(home for other, home in self._homes.items() if other not in self._idle_lanes)
        home = self._homes.get(lane)
        # what has ended one worker of a host, such as a full disk, may soon end the others
        avoided = home.host if home is not None and home.lost.done() else None
        best = min(
            self._dask_workers.ready.values(),
            key=lambda worker: (worker.host == avoided, busy[worker]),
        )
        if home is None or home.lost.done() or busy[home] > busy[best] + 1:
            home = self._homes[lane] = best
        return home

    async def _wait_for_result(
        self, worker: DaskWorker, result: asyncio.Future[AssignmentResult]
    ) -> AssignmentResult:
        """Return the result of an assignment when its Dask worker has played it. Raises the errors of `submit`."""
        gone, killed = self._dask_workers.gone, self._dask_workers.killed
        await asyncio.wait((result, worker.lost, gone, killed), return_when=asyncio.FIRST_COMPLETED)
        self._dask_workers.check_scheduler()
        if not result.done():
            what = worker.lost.result() if worker.lost.done() else "was ended"
            raise WorkerLostError(f"the worker {worker.address} {what}")
        try:
            return result.result()
        except MissingCopyError as error:
            self._dask_workers.replace(worker, f"lacks a bot: {error}")
            raise
        except WorkerLostError as error:
            self._say(f"The unfinished games of {worker.address} are played again: {error}.")
            raise
        except Exception as error:
            if not is_loss(error, self._client):
                if isinstance(error, (RefereeError, OSError)):
                    self._dask_workers.note_failure(worker, error)
                    raise WorkerLostError(f"the worker {worker.address} failed: {error}") from error
                raise
            # Dask raises this error before the driver knows whether the worker or the scheduler is gone.
            await asyncio.wait(
                (worker.lost, gone, killed), timeout=LOSS_S, return_when=asyncio.FIRST_COMPLETED
            )
            self._dask_workers.check_scheduler()
            if not killed.done():
                # If the worker is not lost, only the driver's connection broke, and Dask has made a new one. The bots have
                # seen the deals that are played again, so these bots must end.
                self._dask_workers.replace(worker, "was cut off")
            raise WorkerLostError(f"the worker {worker.address} is gone: {error}") from error

    def list_hosts(self) -> Sequence[HostFigures]:
        """See `WorkerGroup`."""
        workers = self._dask_workers.ready.values()
        losses = self._dask_workers.losses
        hosts = {worker.host for worker in workers} | self._games.keys() | losses.keys()
        return [
            HostFigures(
                host=host,
                playing=sum(
                    each.host == host and bool(self._stretches.get(each)) for each in workers
                ),
                idle=sum(each.host == host and not self._stretches.get(each) for each in workers),
                lost=losses[host],
                games=self._games[host],
            )
            for host in sorted(hosts)
        ]

    def drain(self) -> None:
        """See `DaskWorkers.drain`."""
        self._dask_workers.drain()

    def kill(self) -> None:
        """See `DaskWorkers.kill`."""
        self._dask_workers.kill()


@asynccontextmanager
async def cluster_workers(
    cluster: str,
    certificates: Certificates | None,
    cache: Path,
    *,
    tournament: Tournament,
    roster: Roster,
    isolation: Isolation,
    say: Callable[[str], None],
) -> AsyncIterator[RemoteWorkers]:
    """Provide the workers of a tournament on a cluster. At the end, all bots are ended; see `DaskWorkers.aclose`.

    Args:
        cluster: see `connect`.
        certificates: see `connect`.
        cache: see `connect`.
        tournament: the tournament.
        roster: has the bots.
        isolation: the isolation of bots on this machine. The workers must give the same rung.
        say: see `RemoteWorkers` and `DaskWorkers`.

    Raises UserError if no scheduler can be reached, or if the league's copy of a bot is missing or was changed.
    """
    config = tournament.config
    bots = tournament.bots
    for bot in bots.values():
        roster.check(bot)
    request = DeploymentRequest(
        deployment=secrets.token_hex(8),
        commitment=tournament.parts[0].commitment,
        config=replace(config, seed=None),
        rung=isolation.rung,
        bots={text: roster.content_hash(bot) for text, bot in bots.items()},
    )
    lanes = config.lanes or 1
    async with connect(cluster, certificates, cache) as client:
        dask_workers = DaskWorkers(
            client,
            request,
            lanes,
            pack=lambda bot: roster.pack(BotId.parse(bot)),
            say=say,
        )
        watch = asyncio.ensure_future(dask_workers.watch())
        try:
            dask_workers.start()
            yield RemoteWorkers(client, dask_workers, request.deployment, lanes, say=say)
        finally:
            await dask_workers.aclose()
            watch.cancel()
