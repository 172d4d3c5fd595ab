"""Know which Dask workers can play a tournament: prepare those that come, and note those that are gone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from distributed import Client

from referee.cluster import member
from referee.cluster.connection import call, is_loss, is_open, prepare
from referee.cluster.member import DeploymentRequest
from referee.errors import RefereeError, UserError, cut_lines
from referee.tournament.workers import WorkerLostError

_WATCH_S = 0.5
"""Seconds between two checks of the connection to the scheduler."""
_WATCHES_PER_COMPARISON = 10
"""After this many checks, the driver also asks the scheduler for the list of its workers."""
_LONGEST_PAUSE_S = 300.0
"""The longest pause, in seconds, of a Dask worker that has failed while it played. The first comparison with the scheduler's list after
the pause prepares the worker again."""
LOSS_S = 2 * _WATCH_S * _WATCHES_PER_COMPARISON
"""Timeout for finding out whether the worker or the scheduler is gone."""
_AWAITED_S = 10.0
"""How many seconds the driver prepares the first workers before it says which of them are not ready yet."""
_LEAVE_S = 30.0
"""How many seconds the driver waits at most, at the end, until the workers have ended their bots."""
_KILL_S = 2.0
"""How many seconds the driver waits for the workers after `kill`. It is short, because the user wants an immediate end. A worker that does
not reply in time ends its bots later, as soon as it can."""
_FIRST_LINES, _LAST_LINES = 5, 10
"""How many lines say why the workers of a host cannot play. If there are more than `_FIRST_LINES` + `_LAST_LINES`, only the first and
the last ones are shown, and a line in between says how many are left out."""
_MAX_LINES = _FIRST_LINES + _LAST_LINES + 1
"""The list of reasons has at most this many lines; hosts that do not fit are counted in one more line. With the heading, the
list must fit into `_MAX_LINES` of `cli/app.py`."""


@dataclass(frozen=True, eq=False, slots=True)
class DaskWorker:
    """A Dask worker that can play."""

    address: str
    lost: asyncio.Future[str]
    """Done when the scheduler has lost the worker, when the worker has failed, or when it is prepared again. The result says which, and
    completes the message "The worker ADDRESS …"."""

    @property
    def host(self) -> str:
        """The address of its host."""
        return _host(self.address)


def _host(address: str) -> str:
    """Return the address of the host of a Dask worker."""
    return urlsplit(address).hostname or address


def _explain(error: Exception) -> str:
    """Return the message of an error. If it is no RefereeError, the name of its class comes before the message."""
    return str(error) if isinstance(error, RefereeError) else f"{type(error).__name__}: {error}"


def _list_by_host(reasons: Mapping[str, str]) -> list[str]:
    """Return the lines that say why the workers of each host cannot play. Each reason occurs once for each host.

    If a host has many lines, those in the middle are left out. If a host does not fit into `_MAX_LINES` lines, the last line only
    counts this host and all hosts after it.

    Args:
        reasons: a text for each Dask worker, by address.
    """
    by_host: dict[str, dict[str, None]] = {}
    for address, reason in reasons.items():
        by_host.setdefault(_host(address), {})[reason] = None
    listed: list[str] = []
    for number, (host, own) in enumerate(by_host.items()):
        lines = [line for reason in own for line in reason.splitlines()]
        lines = cut_lines(lines, _FIRST_LINES, _LAST_LINES)
        if len(listed) + len(lines) > _MAX_LINES:
            left_out = len(by_host) - number
            return [*listed, f"and {left_out} more {'host' if left_out == 1 else 'hosts'}"]
        listed += (f"{host}: {line}" for line in lines)
    return listed


# The states of a Dask worker:
#
#     (unknown) ── comes ──► entering ──► ready, refused or failed
#                               ▲            │ │              ▲ │
#                               ├─ replace ──┘ └ note_failure ┘ │
#                               └─ a later comparison ──────────┘
#
# A refused worker is not prepared again, because the reason does not pass by itself: another version, a weaker isolation, or a bot
# that cannot be built. A failed worker is prepared again, because it may be able to play later. If the worker leaves the scheduler, it
# becomes unknown, whatever its state was.


class DaskWorkers:
    """The Dask workers of a scheduler, for one tournament.

    Args:
        client: the connection to the scheduler.
        request: what each Dask worker needs to know.
        lanes: the number of lanes. At most this many Dask workers can play at the same time.
        pack: returns the archive of a bot (`name@version`), as `Workshop.pack` does.
        say: called with a sentence when a Dask worker is lost or cannot play, when none can play, when more can play than
            there are lanes, and when the preparation of the first ones takes long.
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
        self.ready: dict[str, DaskWorker] = {}
        """The Dask workers that can play, by address."""
        self.losses: Counter[str] = Counter()
        """How many times a worker of each host was lost, failed, or had to be prepared again."""
        self.killed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done after `kill`."""
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the scheduler is gone."""
        self._drained: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done after `drain`."""
        self._client = client
        self._request = request
        self._lanes = lanes
        self._pack = pack
        self._say = say
        self._entering: dict[str, asyncio.Task[None]] = {}
        self._refusals: dict[str, str] = {}
        """Why a Dask worker cannot play, by address."""
        self._failures: dict[str, str] = {}
        """The last error of each Dask worker whose preparation has failed, or that has failed while it played, by address. Such a worker
        may play later, so each comparison with the scheduler prepares it again, except during its pause."""
        self._next_pauses: dict[str, float] = {}
        """The length of the next pause in seconds, by address. Only Dask workers that have failed while they played are listed."""
        self._pause_ends: dict[str, float] = {}
        """The time of the event loop when the newest pause of each of these workers ends, by address."""
        self._changed = asyncio.Event()
        """Set when a worker is ready, after `drain`, and when the scheduler is gone. Then lanes that wait for a worker check the state again."""
        self._is_waiting = False
        self._is_closing = False
        """True from the call of `aclose` on. Then no more Dask workers are prepared."""
        self._starting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the first Dask workers are prepared."""
        self._kills: list[asyncio.Future[None]] = []
        self._scheduler_id = ""

    def start(self) -> None:
        """Begin to prepare the Dask workers that are connected now."""
        self._client.subscribe_topic("all", self._note_event)
        self._starting = asyncio.ensure_future(self._prepare_first())

    async def _prepare_first(self) -> None:
        """Prepare the Dask workers that are connected now. At the end, say which of them cannot play.

        Raises UserError if none is ready, and at least one was refused or has failed.
        """
        await self._compare_with_scheduler()
        saying = asyncio.get_running_loop().call_later(_AWAITED_S, self._say_awaited)
        try:
            while self._entering:
                await asyncio.wait(list(self._entering.values()))
        finally:
            saying.cancel()
        reasons = self._refusals | self._failures
        if reasons and not self.ready:
            raise UserError("no worker can play:", *_list_by_host(reasons))
        for address in reasons:
            self._say_reason(address)

    def _say_awaited(self) -> None:
        """Say which workers are being prepared, unless the tournament is being drained."""
        if not self._drained.done() and self._entering:
            first, *others = sorted(self._entering)
            more = f" and {len(others)} more" if others else ""
            self._say(
                f"No game begins before these workers are ready: {first}{more}. They may be building bots; end a worker that hangs."
            )

    async def wait_until_ready(self) -> None:
        """Wait until each Dask worker that was connected at the start is ready, refused or failed, and at least one worker is ready.

        It waits for all of them so that the lanes are spread. Otherwise the first ready worker would get a stretch of every lane, and
        a lane cannot move before its stretch is played.

        Raises WorkerLostError after `drain`, and RefereeError if the scheduler is gone. Raises UserError if none of the workers at
        the start is ready, and at least one was refused or has failed.
        """
        if not self._starting.done():
            await asyncio.wait(
                (self._starting, self.gone, self._drained), return_when=asyncio.FIRST_COMPLETED
            )
        self._check_state()
        self._starting.result()
        while not self.ready:
            if not self._is_waiting:
                self._say("Waiting for a worker that can play.")
            self._is_waiting = True
            self._changed.clear()
            await self._changed.wait()
            self._check_state()
        self._is_waiting = False

    def _check_state(self) -> None:
        """Raise RefereeError if the scheduler is gone, and WorkerLostError after `drain`."""
        self.check_scheduler()
        if self._drained.done():
            raise WorkerLostError("no worker gets games any more")

    def replace(self, worker: DaskWorker, what: str) -> None:
        """Prepare a Dask worker again, which ends its bots. Do nothing if the worker is lost.

        Args:
            worker: the Dask worker.
            what: completes the message "The worker ADDRESS …", for example "was cut off".
        """
        if not worker.lost.done():
            self._remove(worker.address, what)
            self._begin_enter(worker.address)

    def note_failure(self, worker: DaskWorker, error: Exception) -> None:
        """Note that a Dask worker failed while it played. Do nothing if the worker is lost.

        The first comparison with the scheduler after a pause prepares the worker again, which ends its bots. The pause doubles with
        each failure of this worker, up to `_LONGEST_PAUSE_S`. Without longer pauses, the worker would take lanes, fail and be reported
        every few seconds.
        """
        if not worker.lost.done():
            reason = _explain(error)
            self._remove(worker.address, f"failed: {reason}")
            self._failures[worker.address] = reason
            first_pause = _WATCH_S * _WATCHES_PER_COMPARISON
            pause = self._next_pauses.get(worker.address, first_pause)
            self._next_pauses[worker.address] = min(2 * pause, _LONGEST_PAUSE_S)
            self._pause_ends[worker.address] = asyncio.get_running_loop().time() + pause

    def drain(self) -> None:
        """End all calls of `wait_until_ready`. The workers go on with what they play.

        Workers that come later, or have failed, are not prepared any more.
        """
        if not self._drained.done():
            self._drained.set_result(None)
        self._changed.set()

    def kill(self) -> None:
        """End the game processes at once, and do what `drain` does. The event loop must run until `aclose` returns."""
        self.drain()
        if not self.killed.done():
            self.killed.set_result(None)
        deployment = self._request.deployment
        self._kills = [
            asyncio.ensure_future(call(self._client, address, member.kill, deployment))
            for address in {*self.ready, *self._refusals, *self._failures, *self._entering}
        ]

    async def aclose(self) -> None:
        """End all bots and builds on all workers.

        If the scheduler is gone, the workers get no message. If a worker still runs, it ends its bots `member.IDLE_S` after its last
        stretch, and it finishes its builds.
        """
        self._is_closing = True
        addresses = sorted({*self.ready, *self._refusals, *self._failures, *self._entering})
        for task in (self._starting, *self._entering.values()):
            task.cancel()
        await asyncio.gather(self._starting, return_exceptions=True)
        if self.gone.done():
            return
        self._client.unsubscribe_topic("all")
        deployment = self._request.deployment
        calls = [call(self._client, address, member.leave, deployment) for address in addresses]
        leaving = asyncio.gather(*calls, return_exceptions=True)
        await asyncio.wait(
            (leaving, self.gone, self.killed),
            timeout=_LEAVE_S,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if self.killed.done():
            killing = asyncio.gather(leaving, *self._kills, return_exceptions=True)
            await asyncio.wait(
                (killing, self.gone), timeout=_KILL_S, return_when=asyncio.FIRST_COMPLETED
            )
            killing.cancel()
        leaving.cancel()

    async def watch(self) -> None:
        """Watch the connection until it is lost. Run this as a task of its own, from `start` until `aclose` has returned."""
        for number in count(1):
            await asyncio.sleep(_WATCH_S)
            if not is_open(self._client):
                break
            if number % _WATCHES_PER_COMPARISON == 0 and not await self._compare_with_scheduler():
                break
        if not self.gone.done():
            self.gone.set_result(None)
        self._changed.set()

    def check_scheduler(self) -> None:
        """Raise RefereeError if the scheduler is gone."""
        if self.gone.done():
            raise RefereeError(
                "the connection to the scheduler is lost; start the scheduler again, then resume the tournament"
            )

    async def _compare_with_scheduler(self) -> bool:
        """Compare the known workers with the scheduler's list. Return False if the scheduler is gone, or was replaced by another.

        Prepares each worker that is new or has failed, but not after `drain` and not during the worker's pause. Forgets each worker that
        is gone. So a worker that has come or gone without an event is noticed, too.
        """
        scheduler: Any = self._client.scheduler
        try:
            identity = await scheduler.identity(n_workers=-1)
        except OSError:
            return False
        except Exception as error:
            if not is_loss(error, self._client):
                raise
            return False
        self._scheduler_id = self._scheduler_id or identity["id"]
        if not self._drained.done():
            now = asyncio.get_running_loop().time()
            for address in identity["workers"]:
                if now >= self._pause_ends.get(address, now):
                    self._begin_enter(address)
        known = {*self.ready, *self._refusals, *self._failures}
        for address in known - identity["workers"].keys():
            self._remove(address)
        return bool(identity["id"] == self._scheduler_id)

    def _note_event(self, event: tuple[float, Any]) -> None:
        """Handle an event of the scheduler: a worker has come or gone."""
        _, message = event
        action = message.get("action") if isinstance(message, dict) else None
        if action == "add-worker":
            if not self._drained.done():
                self._begin_enter(message["worker"])
        elif action == "remove-worker":
            self._remove(message["worker"])

    def _begin_enter(self, address: str) -> None:
        is_known = any(address in known for known in (self._entering, self.ready, self._refusals))
        if not (is_known or self._is_closing or self.killed.done()):
            task = asyncio.ensure_future(self._enter(address))
            self._entering[address] = task
            task.add_done_callback(lambda done: self._end_enter(address, done))

    def _end_enter(self, address: str, task: asyncio.Task[None]) -> None:
        if self._entering.get(address) is task:
            del self._entering[address]

    def _remove(self, address: str, what: str = "is gone") -> None:
        """Forget a Dask worker and cancel its preparation. If it was ready, mark it as lost, count the loss and say `what`."""
        self._refusals.pop(address, None)
        self._failures.pop(address, None)
        if (entering := self._entering.pop(address, None)) is not None:
            entering.cancel()
        worker = self.ready.pop(address, None)
        if worker is not None:
            worker.lost.set_result(what)
            self.losses[worker.host] += 1
            self._say(f"The worker {address} {what}. Its unfinished games are played again.")

    async def _enter(self, address: str) -> None:
        """Prepare a Dask worker for the tournament."""
        try:
            await prepare(self._client, address, self._request, self._pack)
        except UserError as error:
            self._refusals[address] = str(error)
            self._failures.pop(address, None)
            if self._starting.done():
                self._say_reason(address)
            return
        except Exception as error:  # noqa: BLE001 - the next comparison tries again after any error
            if is_loss(error, self._client):
                return  # gone before it was ready
            reason = _explain(error)
            is_new = self._failures.get(address) != reason
            self._failures[address] = reason
            if is_new and self._starting.done():
                self._say_reason(address)
            return
        self._failures.pop(address, None)
        lost = asyncio.get_running_loop().create_future()
        self.ready[address] = DaskWorker(address, lost)
        if len(self.ready) == self._lanes + 1:
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
