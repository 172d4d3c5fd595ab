"""Play a game between bots and a person, in a process of its own.

The parent process shows the game to the person. It starts this process with `play_with_person`, and both talk over a
connection: this process sends `News`, the parent sends `Chosen`. If the parent closes the connection or dies, the game ends.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import NamedTuple

import uvloop

from referee.bots import BotSpec
from referee.errors import RefereeError
from referee.records import BotId, Fault, GameRecord, Move, Reply, Request
from referee.roster.roster import StoredCopy, check_unisolated
from referee.rules.actions import Decision
from referee.rules.events import Event, View, redact
from referee.rules.game import Game
from referee.rules.ruleset import Ruleset
from referee.sandbox import Rung
from referee.sandbox.ladder import select_isolation
from referee.tournament.game_player import free_player, make_free_task
from referee.tournament.worker import prepare_process


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonGame:
    """A game to play."""

    players: tuple[BotSpec | BotId, ...]
    """Who plays, seat 0 first. The one `BotId` is the id of the person."""
    ruleset: Ruleset
    isolation: Rung | None
    """The rung of the bots; None for the strongest rung of this machine."""
    stored: tuple[StoredCopy, ...]
    """The bots of this game, as they are stored in the league. `check_unisolated` needs them: if this machine cannot isolate bots,
    only sample bots may play. With the rung `none` in `isolation`, all bots may play."""
    parent_pid: int
    """The process id of the parent."""

    @property
    def seat(self) -> int:
        """The seat of the person."""
        return next(seat for seat, each in enumerate(self.players) if isinstance(each, BotId))

    @property
    def person(self) -> BotId:
        """The id of the person."""
        return next(each for each in self.players if isinstance(each, BotId))


class Dealt(NamedTuple):
    """The cards are dealt, and the bots are being started."""

    game_id: str
    view: View
    """The table as the person sees it."""


class Moved(NamedTuple):
    """A seat has moved."""

    decision: Decision
    move: Move
    events: tuple[Event, ...]
    """What happened, as the person may see it."""


class Requested(NamedTuple):
    """The person must decide."""

    number: int
    """Number of the decision in the game, from 1."""
    decision: Decision
    view: View


class Ended(NamedTuple):
    """The game is over."""

    record: GameRecord


class Failed(NamedTuple):
    """The game cannot be played, or cannot be played to its end."""

    reason: str


News = Dealt | Moved | Requested | Ended | Failed
"""One message about a game. The messages come in the order of the game, and `Ended` or `Failed` is the last one."""


class Chosen(NamedTuple):
    """The person has decided."""

    number: int
    """Number of the decision, as in `Requested`."""
    choice: int
    """Index of the chosen action in the legal actions of the decision."""


def play_with_person(connection: Connection, game: PersonGame) -> None:
    """Play a game, and send its news over the connection. This is the main function of the process."""
    prepare_process(game.parent_pid)
    with connection, suppress(OSError):  # if the connection is broken, nobody waits for news
        try:
            uvloop.run(_play(connection, game))
        except RefereeError as error:
            connection.send(Failed(str(error)))
        except OSError as error:
            connection.send(Failed(f"This machine cannot go on: {error.strerror or error}."))
        except asyncio.CancelledError:
            pass  # the parent has closed the connection


async def _play(connection: Connection, game: PersonGame) -> None:
    person = _Person(connection)
    with person.listening():
        isolation = await select_isolation(game.isolation)
        check_unisolated(isolation, lambda: game.stored)
        seat = game.seat
        task = make_free_task(game.players, game.ruleset, secrets.token_hex(16), isolation)
        # only for the first view; `GamePlayer.play_with_person` deals the same cards again
        dealt = Game(game.ruleset, len(game.players), task.setup.deck)
        connection.send(Dealt(task.setup.game_id, dealt.view(seat)))

        def watch(
            decision: Decision, move: Move, events: tuple[Event, ...], _: tuple[Fault, ...]
        ) -> None:
            connection.send(Moved(decision, move, tuple(redact(event, seat) for event in events)))

        async with free_player(task, isolation) as player:
            record = await player.play_with_person(task, person, watch)
        connection.send(Ended(record))


class _Person:
    """The player at the seat of the person. It waits without a limit until the person decides."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._number = 0
        self._legal = 0
        """Number of legal actions of the pending decision."""
        self._choice: asyncio.Future[int] | None = None
        """The future for the index of the chosen action. None before the first decision; done between two decisions."""

    async def decide(self, request: Request) -> Reply:
        """Wait for the action of the person, however long it takes.

        At most the limit of the decision is charged, and the rest is stored as lag.
        """
        began_ns = time.monotonic_ns()
        legal = request.decision.legal
        self._number, self._legal = request.number, len(legal)
        self._choice = asyncio.get_running_loop().create_future()
        self._connection.send(Requested(request.number, request.decision, request.view))
        choice = await self._choice
        spent_us = (time.monotonic_ns() - began_ns) // 1000
        elapsed_us = min(spent_us, request.time.limit_us)
        return Reply(legal[choice], elapsed_us, spent_us - elapsed_us)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take the choices of the person. If the connection is closed, cancel the task that called this function."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task

        def read() -> None:
            try:
                self._take(self._connection.recv())
            except (EOFError, OSError):
                loop.remove_reader(self._connection.fileno())
                task.cancel()

        loop.add_reader(self._connection.fileno(), read)
        try:
            yield
        finally:
            loop.remove_reader(self._connection.fileno())

    def _take(self, chosen: Chosen) -> None:
        """Accept the choice of the person. Ignore the choice if its decision is not pending, or if its index is out of range."""
        pending = self._choice
        fits = chosen.number == self._number and 0 <= chosen.choice < self._legal
        if pending is not None and not pending.done() and fits:
            pending.set_result(chosen.choice)
