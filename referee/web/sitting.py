"""Let a person play against bots of the league: start the game, and keep what its page shows.

Each game has a process of its own (`referee.tournament.person`), because the work of the server would delay the messages to
and from the bots. A thread reads the news of the process and gives it to the event loop. Only the event loop changes a `Sitting`.
"""

from __future__ import annotations

import asyncio
import socket
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from referee.errors import RefereeError
from referee.records import BotId, GameRecord, name_seats
from referee.tournament.person import (
    Chosen,
    Dealt,
    Ended,
    Failed,
    Moved,
    News,
    PersonGame,
    Requested,
    play_with_person,
)
from referee.web.board import decision_data, move_data, result_data, seat_data

_CLOSED = (
    "The game was stopped: somebody left it, a new game replaced it, or the server was stopped."
)
_END_S = 5.0
"""How long the process of a game may take to end its bots, before it is killed."""


class Storage(StrEnum):
    """Whether a finished game is already stored in the league. The page shows these words."""

    PENDING = "being stored"
    DONE = "stored"


class ShownGame:
    """What the page of a game with a person shows. It grows with the news of the game.

    Args:
        ruleset: the name of the ruleset.
        names: the name of each seat.
    """

    def __init__(self, ruleset: str, names: Sequence[str]) -> None:
        self.record: GameRecord | None = None
        """The record of the game; None if the game has not finished."""
        self.problem: str | None = None
        """Why the game could not be played or stored; None without a problem."""
        self.storage: Storage | None = None
        """None if the game has not finished, is not to be stored, or could not be stored."""
        self._ruleset = ruleset
        self._names = names
        self._start: dict[str, Any] | None = None
        self._moves: list[list[Any]] = []
        self._stand_ins: list[int] = []
        self._request: Requested | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen in the game. Perhaps the game is not stored yet."""
        return self.record is not None or self.problem is not None

    def take(self, news: News) -> None:
        """Add news of the game. News after the end of the game is ignored."""
        if self.is_over:
            return
        match news:
            case Dealt(_, view):
                self._start = seat_data(view, self._ruleset, self._names)
            case Moved(decision, move, events):
                if move.stand_in:
                    self._stand_ins.append(len(self._moves))
                self._moves.append(move_data(decision, move, events))
            case Requested():
                self._request = news
            case Ended(record):
                self.record = record
            case Failed(reason):
                self.problem = reason

    def choose(self, number: int, choice: int) -> bool:
        """Note that the person has decided. Return False if decision `number` is not pending, or has no such choice."""
        request = self._request
        if request is None or request.number != number:
            return False
        if choice not in range(len(request.decision.legal)):
            return False
        self._request = None
        return True

    def has_news(self, moves: int, decision: int) -> bool:
        """Return True if the page lacks something, or if the game is over. The arguments are those of `Sitting.news`."""
        number = 0 if self._request is None else self._request.number
        is_dealt = self._start is not None and moves < 0
        return (
            is_dealt
            or self.is_over
            or len(self._moves) > max(moves, 0)
            or number not in {0, decision}
        )

    def news(self, moves: int) -> dict[str, Any]:
        """Return what a page does not know yet, as a JSON value.

        The keys are `game` (see `seat_data`; null if the page has it, and before the deal), `moves` and `stand_ins` (as in
        `board_data`, without the moves that the page has), `decision` (see `decision_data`; null if the person need not decide
        now), `over` (whether nothing more will happen in the game), `result` (as in `board_data`; null without a result),
        `storage` (a word of `Storage` or null) and `problem` (a text or null).

        Args:
            moves: the number of moves that the page has; -1 if it does not have `game` either.
        """
        known, request = max(moves, 0), self._request
        return {
            "game": self._start if moves < 0 else None,
            "moves": self._moves[known:],
            "stand_ins": [index for index in self._stand_ins if index >= known],
            "decision": None if request is None or self.is_over else decision_data(*request),
            "over": self.is_over,
            "result": None if self.record is None else result_data(self.record),
            "storage": self.storage,
            "problem": self.problem,
        }


class Sitting:
    """A game with a person, from its start until the server forgets it. Use it in one event loop.

    Args:
        order: the game to play.
        store: called with the record of the finished game, in a thread; None if the game is not to be stored.
        explain: takes an error of `store`, and returns the message that the person sees.
    """

    def __init__(
        self,
        order: PersonGame,
        store: Callable[[GameRecord], None] | None,
        explain: Callable[[Exception], str],
    ) -> None:
        self.order = order
        self.shown = ShownGame(order.ruleset.name, self.names)
        self.seen_at_s = time.monotonic()
        """The monotonic time at which a request for news last began or ended; at first, the time at which the game was created."""
        self._store = store
        self._explain = explain
        self._news = asyncio.Event()
        """Set at the next news, and then replaced."""
        self._closing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        own, other = get_context("spawn").Pipe()
        self._connection: Connection = own
        self._process = get_context("spawn").Process(
            target=play_with_person, args=(other, order), daemon=True
        )
        self._reader = Thread(target=self._run, args=(other,), daemon=True)
        self._reader.start()

    @property
    def names(self) -> list[str]:
        """The name of each seat."""
        ids = (each if isinstance(each, BotId) else each.bot for each in self.order.players)
        return list(name_seats(tuple(ids)))

    async def news(self, *, moves: int, decision: int, patience_s: float) -> dict[str, Any]:
        """Return `ShownGame.news` as soon as there is something new; wait for it at most `patience_s` seconds.

        Args:
            moves: see `ShownGame.news`.
            decision: the number of the decision that the page shows; 0 if it shows none.
            patience_s: how long to wait.
        """
        self.seen_at_s = time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while not self.shown.has_news(moves, decision):
                    await self._news.wait()
        self.seen_at_s = time.monotonic()
        return self.shown.news(moves)

    def choose(self, number: int, choice: int) -> bool:
        """Send the chosen action to the process of the game. Return False, and do nothing, if `ShownGame.choose` returns False."""
        if not self.shown.choose(number, choice):
            return False
        with suppress(OSError):  # the process has ended, and `_run` says so
            self._connection.send(Chosen(number, choice))
        return True

    async def close(self) -> None:
        """End the game if it is not over. Wait until its process has ended, and until a finished game is stored or cannot be stored.

        The process ends its bots first. If that takes longer than `_END_S`, the process is killed, and the sweeper ends the bots.
        """
        self._take(Failed(_CLOSED))
        async with self._closing:
            await asyncio.to_thread(self._disconnect)
            while self.shown.storage is Storage.PENDING:
                await self._news.wait()

    def _disconnect(self) -> None:
        if not self._connection.closed:
            end = socket.socket(fileno=self._connection.fileno())
            with suppress(OSError):
                end.shutdown(
                    socket.SHUT_RDWR
                )  # ends the process; closing alone does not wake `_run`
            end.detach()
        self._reader.join()
        self._connection.close()

    def _run(self, other: Connection) -> None:
        """Start the process, hand over its news, and wait until it has ended.

        This thread must not end before the process. `prepare_process` has asked Linux to kill the process when its parent ends.
        For Linux, the parent is the thread that started the process.
        """
        last: News
        try:
            with other:
                self._process.start()
            while not isinstance(last := self._connection.recv(), Ended | Failed):
                self._call_in_loop(self._take, last)
        except (EOFError, OSError) as error:
            last = Failed(
                f"The game has stopped because of an error of the referee. {error}".strip()
            )
        self._call_in_loop(self._take, last)
        if self._process.pid is not None:
            self._process.join(_END_S)
            self._process.kill()
            self._process.join()

    def _call_in_loop(self, function: Callable[..., None], *arguments: object) -> None:
        """Have the event loop call a function."""
        with suppress(RuntimeError):  # the loop is closed: the server ends
            self._loop.call_soon_threadsafe(function, *arguments)

    def _take(self, news: News) -> None:
        """Show news. If the game has just finished, start to store it. A game that was stopped before its end is not stored."""
        self.shown.take(news)
        if isinstance(news, Ended) and self.shown.record is news.record and self._store is not None:
            # not in a thread of asyncio, because those are few, and each `close` of a game needs one
            Thread(target=self._keep, args=(self._store, news.record), daemon=True).start()
            self.shown.storage = Storage.PENDING
        self._announce()

    def _keep(self, store: Callable[[GameRecord], None], record: GameRecord) -> None:
        """Store the finished game, and tell the event loop whether that was possible. This may take a minute."""
        storage, problem = None, None
        try:
            store(record)
            storage = Storage.DONE
        except RefereeError as error:
            problem = f"The game is not stored: {self._explain(error)}"
        except Exception:  # noqa: BLE001 - whatever it is, the page must say it
            traceback.print_exc()
            problem = "The game is not stored. This is a bug of the referee. The terminal of the server shows more."
        self._call_in_loop(self._end_storing, storage, problem)

    def _end_storing(self, storage: Storage | None, problem: str | None) -> None:
        self.shown.storage, self.shown.problem = storage, problem
        self._announce()

    def _announce(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
