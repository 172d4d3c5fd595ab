"""Give stretches of games to the workers of a Dask cluster, and replace workers that are lost."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from distributed import Client

from referee.cluster import member
from referee.cluster.connection import LOST, Certificates, call, connect, prepare
from referee.cluster.host import CORE
from referee.cluster.member import DeploymentRequest, MissingCopyError
from referee.errors import RefereeError, UserError
from referee.records import BotId, GameRecord
from referee.roster.roster import Roster
from referee.sandbox import Isolation
from referee.store import HostFigures
from referee.tournament.assignments import Assignment
from referee.tournament.create import Tournament
from referee.tournament.workers import WorkerLostError

STRETCH_S = 1.0
"""Seconds of play in a stretch. Dask needs some milliseconds for each, mostly in the scheduler and in the driver."""
_WATCH_S = 0.5
"""Seconds between two checks of the connection to the scheduler."""
_WATCHES_PER_COMPARISON = 10
"""After this many checks, the driver also asks the scheduler for the list of its workers."""
_LOSS_S = 2 * _WATCH_S * _WATCHES_PER_COMPARISON
"""Timeout for finding out whether the worker or the scheduler is gone."""
_LEAVE_S = 30.0
"""How long the driver waits at the end until the workers have ended their bots."""


@dataclass(eq=False, slots=True)
class _Remote:
    """A Dask worker that can play."""

    address: str
    lost: asyncio.Future[None]
    """Done when the scheduler has lost the worker."""
    lanes: set[int] = field(default_factory=set)
    """The lanes that live on it."""
    stretches: int = 0
    """Number of stretches that were sent to it and are not finished."""

    @property
    def host(self) -> str:
        """The address of its host."""
        return _host(self.address)


def _host(address: str) -> str:
    """Return the address of the host of a Dask worker."""
    return urlsplit(address).hostname or address


class RemoteWorkers:
    """Implements `WorkerGroup` with a number for each lane: `submit(n, …)` plays lane n on the Dask worker that has the lane.

    A lane moves when its Dask worker is lost, or when another one has at least two unfinished lanes fewer. Each game is stored once, and only
    games that are not stored are played again.

    Args:
        client: the connection to the scheduler.
        request: what each Dask worker needs to know.
        lanes: the number of lanes.
        pack: returns the archive of a bot (`name@version`), as `Workshop.pack` does.
        say: called with a sentence when a Dask worker is lost or refused, when the game process of a Dask worker has ended, and when no Dask worker can play.
    """

    def __init__(
        self,
        client: Client,
        request: DeploymentRequest,
        lanes: int,
        *,
        pack: Callable[[str], bytes],
        say: Callable[[str], None],
    ) -> None:
        self.stretch_s = STRETCH_S
        self._client = client
        self._request = request
        self._lanes = lanes
        self._pack = pack
        self._say = say
        self._numbers = count()
        self._remotes: dict[str, _Remote] = {}
        """The Dask workers that can play, by address."""
        self._refusals: dict[str, str] = {}
        """Why a Dask worker cannot play, by address."""
        self._failures: dict[str, str] = {}
        """The last error of each Dask worker that could not be prepared but may play later, by address. These are prepared again at each comparison."""
        self._homes: dict[int, _Remote] = {}
        """Where each lane lives."""
        self._finished: set[int] = set()
        """The lanes without a stretch in play. A lane is added when its stretch ends, and removed at its next
        `submit`. A lane that stays here has no games before the next look."""
        self._games: Counter[str] = Counter()
        """How many games each host has played."""
        self._lost: Counter[str] = Counter()
        """How many workers of each host were lost."""
        self._changed = asyncio.Event()
        """Set when a worker is ready, after `kill`, and when the scheduler is gone: lanes that wait for a worker must look again."""
        self._is_waiting = False
        self._starting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the first Dask workers are prepared."""
        self._entering: dict[str, asyncio.Task[None]] = {}
        self._kills: list[asyncio.Future[None]] = []
        self._killed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done after `kill`."""
        self._scheduler_id = ""
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the scheduler is gone."""

    def __len__(self) -> int:
        return self._lanes

    def start(self) -> None:
        """Begin to prepare the Dask workers that are connected now.

        `submit` waits until each of them is ready, is refused, or has failed.
        """
        self._client.subscribe_topic("all", self._note_event)
        self._starting = asyncio.ensure_future(self._prepare_first())

    async def _prepare_first(self) -> None:
        """Prepare the Dask workers that are connected now. At the end, say which of them cannot play.

        Raises UserError if there are some, and none can play the tournament.
        """
        await self._compare_with_scheduler()
        while self._entering:
            await asyncio.wait(list(self._entering.values()))
        reasons = self._refusals | self._failures
        if reasons and not self._remotes:
            lines = (
                f"{_host(address)}: {line}"
                for address, reason in reasons.items()
                for line in reason.splitlines()
            )
            raise UserError("no worker can play:", *dict.fromkeys(lines))
        for address in reasons:
            self._say_reason(address)

    async def submit(self, number: int, assignment: Assignment) -> list[GameRecord]:
        """Play an assignment of lane `number` on the Dask worker of that lane.

        Raises WorkerLostError if the worker is lost, RefereeError if the scheduler is gone, UserError if there are workers at the
        start and none can play the tournament, and the errors of `Workers.submit`.
        """
        await self._wait_for_start()
        if self._finished >= self._homes.keys():
            self._finished.clear()  # a look has given all lanes new games
        self._finished.discard(number)
        remote = await self._find_home(number)
        job = self._client.submit(
            member.play,
            self._request.deployment,
            assignment,
            key=f"referee-{self._request.deployment}-{next(self._numbers)}",
            workers=[remote.address],
            allow_other_workers=False,
            resources={CORE: 1},
            retries=0,
            pure=False,
        )
        result = asyncio.ensure_future(job.result())
        remote.stretches += 1
        try:
            records = await self._wait_for_records(remote, result)
        finally:
            remote.stretches -= 1
            self._finished.add(number)
            result.cancel()
            if not self._gone.done():
                job.release()
        self._games[remote.host] += len(records)
        return records

    async def _wait_for_records(
        self, remote: _Remote, result: asyncio.Future[list[GameRecord]]
    ) -> list[GameRecord]:
        """Return the records of an assignment when its Dask worker has played it. Raises the errors of `submit`."""
        try:
            await asyncio.wait(
                (result, remote.lost, self._gone, self._killed),
                return_when=asyncio.FIRST_COMPLETED,
            )
            self._check_scheduler()
            if result.done():
                return result.result()
        except LOST as error:
            # Dask reports this before it is known whether the worker or the scheduler is gone.
            await asyncio.wait(
                (remote.lost, self._gone, self._killed),
                timeout=_LOSS_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            self._check_scheduler()
            if not self._killed.done():
                # Only the connection of the driver broke, and Dask has made a new one. The bots of the worker saw the deals.
                self._replace(remote, "was cut off")
            raise WorkerLostError(f"the worker {remote.address} is gone: {error}") from error
        except MissingCopyError as error:
            self._replace(remote, f"lacks a bot: {error}")
            raise
        except WorkerLostError as error:
            self._say(f"The unfinished games of {remote.address} are played again: {error}.")
            raise
        raise WorkerLostError(f"the worker {remote.address} is gone")

    def list_hosts(self) -> Sequence[HostFigures]:
        """See `WorkerGroup`."""
        remotes = self._remotes.values()
        hosts = {remote.host for remote in remotes} | self._games.keys() | self._lost.keys()
        return [
            HostFigures(
                host=host,
                playing=sum(remote.host == host and remote.stretches > 0 for remote in remotes),
                idle=sum(remote.host == host and not remote.stretches for remote in remotes),
                lost=self._lost[host],
                games=self._games[host],
            )
            for host in sorted(hosts)
        ]

    def kill(self) -> None:
        """End the game processes at once. The event loop must run until `aclose` returns."""
        if not self._killed.done():
            self._killed.set_result(None)
        self._changed.set()
        deployment = self._request.deployment
        self._kills = [
            asyncio.ensure_future(call(self._client, address, member.kill, deployment))
            for address in self._remotes
        ]

    async def aclose(self) -> None:
        """End all bots on all workers. Without a scheduler they end by themselves, `member.IDLE_S` after the portion in play."""
        addresses = sorted({*self._remotes, *self._refusals, *self._failures, *self._entering})
        for task in (self._starting, *self._entering.values()):
            task.cancel()
        await asyncio.gather(self._starting, return_exceptions=True)
        if self._gone.done():
            return
        self._client.unsubscribe_topic("all")
        deployment = self._request.deployment
        calls = [call(self._client, address, member.leave, deployment) for address in addresses]
        leaving = asyncio.gather(*calls, *self._kills, return_exceptions=True)
        await asyncio.wait(
            (leaving, self._gone), timeout=_LEAVE_S, return_when=asyncio.FIRST_COMPLETED
        )
        leaving.cancel()

    async def watch(self) -> None:
        """Watch the connection until it is lost. Run this as a task of its own, from `start` until `aclose` has returned."""
        for number in count(1):
            await asyncio.sleep(_WATCH_S)
            if self._client.status != "running":
                break
            if number % _WATCHES_PER_COMPARISON == 0 and not await self._compare_with_scheduler():
                break
        if not self._gone.done():
            self._gone.set_result(None)
        self._changed.set()

    def _check_scheduler(self) -> None:
        if self._gone.done():
            raise RefereeError(
                "the connection to the scheduler is lost; start the scheduler again, then resume the tournament"
            )

    async def _wait_for_start(self) -> None:
        if not self._starting.done():
            await asyncio.wait(
                (self._starting, self._gone, self._killed), return_when=asyncio.FIRST_COMPLETED
            )
            self._check_scheduler()
            if self._killed.done():
                raise WorkerLostError("no worker was prepared")
        self._starting.result()

    async def _find_home(self, lane: int) -> _Remote:
        """Return the Dask worker of a lane. Wait until there is one."""
        while not self._remotes:
            self._check_scheduler()
            if self._killed.done():
                raise WorkerLostError("there is no worker")
            if not self._is_waiting:
                self._say("Waiting for a worker that can play.")
            self._is_waiting = True
            self._changed.clear()
            await self._changed.wait()
        self._is_waiting = False
        home = self._homes.get(lane)
        emptiest = min(self._remotes.values(), key=self._count_lanes)
        if home is None or self._count_lanes(home) > self._count_lanes(emptiest) + 1:
            if home is not None:
                home.lanes.discard(lane)
            emptiest.lanes.add(lane)
            home = self._homes[lane] = emptiest
        return home

    def _count_lanes(self, remote: _Remote) -> int:
        """Return the number of unfinished lanes that live on a Dask worker."""
        return len(remote.lanes - self._finished)

    async def _compare_with_scheduler(self) -> bool:
        """Note the workers that have come or gone without an event. Return False if the scheduler is gone, or was replaced by another."""
        scheduler: Any = self._client.scheduler
        try:
            identity = await scheduler.identity(n_workers=-1)
        except OSError:
            return False
        self._scheduler_id = self._scheduler_id or identity["id"]
        for address in identity["workers"]:
            self._begin_enter(address)
        known = {*self._remotes, *self._refusals, *self._failures}
        for address in known - identity["workers"].keys():
            self._remove(address)
        return bool(identity["id"] == self._scheduler_id)

    def _note_event(self, event: tuple[float, Any]) -> None:
        """Handle an event of the scheduler: a worker has come or gone."""
        _, message = event
        action = message.get("action") if isinstance(message, dict) else None
        if action == "add-worker":
            self._begin_enter(message["worker"])
        elif action == "remove-worker":
            self._remove(message["worker"])

    def _begin_enter(self, address: str) -> None:
        if not any(address in known for known in (self._entering, self._remotes, self._refusals)):
            task = asyncio.ensure_future(self._enter(address))
            self._entering[address] = task
            task.add_done_callback(lambda done: self._end_enter(address, done))

    def _end_enter(self, address: str, task: asyncio.Task[None]) -> None:
        if self._entering.get(address) is task:
            del self._entering[address]

    def _replace(self, remote: _Remote, what: str) -> None:
        """End the bots of a Dask worker and prepare it again; do nothing if it is lost. `what` is said of the worker."""
        if not remote.lost.done():
            self._remove(remote.address, what)
            self._begin_enter(remote.address)

    def _remove(self, address: str, what: str = "is gone") -> None:
        self._refusals.pop(address, None)
        self._failures.pop(address, None)
        if (entering := self._entering.pop(address, None)) is not None:
            entering.cancel()
        remote = self._remotes.pop(address, None)
        if remote is None:
            return
        for lane in remote.lanes:
            del self._homes[lane]
        if not remote.lost.done():
            remote.lost.set_result(None)
            self._lost[remote.host] += 1
            self._say(f"The worker {address} {what}. Its games are played again.")

    async def _enter(self, address: str) -> None:
        """Prepare a Dask worker for the tournament."""
        try:
            await prepare(self._client, address, self._request, self._pack)
        except LOST:
            return  # gone before it was ready
        except UserError as error:
            self._refusals[address] = str(error)
            self._failures.pop(address, None)
            if self._starting.done():
                self._say_reason(address)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, it may pass
            reason = f"{type(error).__name__}: {error}"
            is_new = self._failures.get(address) != reason
            self._failures[address] = reason
            if is_new and self._starting.done():
                self._say_reason(address)
            return
        self._failures.pop(address, None)
        lost = asyncio.get_running_loop().create_future()
        self._remotes[address] = _Remote(address, lost)
        if len(self._remotes) == self._lanes + 1:
            self._say(
                f"There are more workers than lanes ({self._lanes}), so some workers stay idle. The number of lanes is `lanes` in the tournament file."
            )
        self._changed.set()

    def _say_reason(self, address: str) -> None:
        """Say why a Dask worker cannot play, or cannot play yet."""
        if (refusal := self._refusals.get(address)) is not None:
            self._say(f"The worker {address} cannot play: {refusal}")
        else:
            self._say(f"The worker {address} cannot play yet: {self._failures[address]}")


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
    """Provide the workers of a tournament on a cluster. At the end, all bots are ended; see `RemoteWorkers.aclose`.

    Args:
        cluster: see `connect`.
        certificates: see `connect`.
        cache: see `connect`.
        tournament: the tournament.
        roster: has the bots.
        isolation: the isolation of bots on this machine. The workers must give the same rung.
        say: see `RemoteWorkers`.

    Raises UserError if no scheduler can be reached.
    """
    config = tournament.config
    bots = tournament.bots
    request = DeploymentRequest(
        deployment=secrets.token_hex(8),
        commitment=tournament.parts[0].commitment,
        config=replace(config, seed=None),
        rung=isolation.rung,
        bots={text: roster.content_hash(bot) for text, bot in bots.items()},
    )
    async with connect(cluster, certificates, cache) as client:
        workers = RemoteWorkers(
            client,
            request,
            config.lanes or 1,
            pack=lambda bot: roster.pack(BotId.parse(bot)),
            say=say,
        )
        watch = asyncio.ensure_future(workers.watch())
        try:
            workers.start()
            yield workers
        finally:
            await workers.aclose()
            watch.cancel()
