"""Whole games of the bot against chance: planned, begun, played to their end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import NamedTuple

from referee import deals
from referee.bots import BotPlayer, BotProcess, GameOpening
from referee.check.positions import SEED
from referee.check.report import StepFailure, counted, fault_words
from referee.check.seats import BotSeat, Chance, TimedReply
from referee.check.start_up import Bench
from referee.errors import BotFault
from referee.match import GameSetup, play_game
from referee.protocol import encode
from referee.records import BotId
from referee.rules.game import Game
from referee.rules.ruleset import Ruleset

PATIENCE_S = 20.0
"""After that a step asks no more of a slow bot than it must."""


class Table(NamedTuple):
    """What can be played."""

    ruleset: Ruleset
    players: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A game to be played. Its deal, and all that chance does in it, come from its name."""

    name: str
    ruleset: Ruleset
    players: int
    seat: int
    """The bot's."""

    @property
    def where(self) -> str:
        """The game, for people."""
        return f"in {self.ruleset.name} with {self.players} players"

    @property
    def deck(self) -> tuple[int, ...]:
        """In drawing order."""
        return deals.deck(SEED, self.name, self.ruleset)


@dataclass(frozen=True, slots=True)
class Played:
    """A game that went well."""

    plan: Plan
    answers: tuple[TimedReply, ...]
    """The bot's."""
    margin: float
    """The bot's score minus the others' on average."""


def plans(name: str, tables: Sequence[Table], count: int) -> list[Plan]:
    """Games at tables in turn, the bot in all seats in turn."""
    turns = islice(cycle(tables), count)
    return [
        Plan(f"{name}-{number}", ruleset, players, number % players)
        for number, (ruleset, players) in enumerate(turns)
    ]


async def join(bench: Bench, process: BotProcess, plan: Plan, *, before: str = "") -> BotPlayer:
    """Begin a game with the bot.

    Args:
        bench: has the clocks.
        process: the bot's.
        plan: the game.
        before: what may be to blame if the bot does not get ready, in words.

    Raises `StepFailure`.
    """
    game_id = deals.opaque_id(SEED, plan.name)
    start = encode.game_start(
        game_id,
        rules=plan.ruleset,
        view=Game(plan.ruleset, plan.players, plan.deck).view(plan.seat),
        clocks=bench.clocks,
        seed=deals.bot_seed(SEED, plan.name, plan.seat),
        names=(),
        max_strikes=1,
    )
    opening = GameOpening(game_id, start, encode.RequestEncoder(game_id))
    process.games += 1
    limit_us = bench.clocks.game_start_us
    try:
        return await BotPlayer.join(process, opening, limit_us)
    except BotFault as fault:
        raise StepFailure(
            f"a ready for the game start within {limit_us / 1e6:g} s",
            f"{fault_words(fault)}\n{before or 'at the start of a game'} {plan.where}",
        ) from None


async def play(bench: Bench, process: BotProcess, plan: Plan, *, before: str = "") -> Played:
    """Play a game to its end and tell the bot so. Raises `StepFailure` at the first thing that is wrong."""
    player = await join(bench, process, plan, before=before)
    seat = BotSeat(process, player, plan.where)
    setup = GameSetup(
        game_id=plan.name,
        ruleset=plan.ruleset,
        seating=(BotId("chance", "1"),) * plan.players,
        deck=plan.deck,
        clocks=bench.clocks,
        max_strikes=1,
        isolation=bench.launcher.isolation,
    )
    players = [
        seat if number == plan.seat else Chance(f"{plan.name}-{number}")
        for number in range(plan.players)
    ]
    played = await play_game(setup, players, now_us=_now_us, monotonic_us=_now_us)
    bench.launcher.tidy()
    if seat.trouble is not None:
        raise seat.trouble
    result = played.record.result
    end = encode.game_end(
        deals.opaque_id(SEED, plan.name),
        played.unseen_events[plan.seat],
        result.ranks,
        "",
        forfeited=False,
    )
    await player.leave(end)
    others = sum(result.scores) - result.scores[plan.seat]
    margin = result.scores[plan.seat] - others / (plan.players - 1)
    return Played(plan, tuple(seat.answers), margin)


async def play_one_by_one(bench: Bench, process: BotProcess, games: Sequence[Plan]) -> list[Played]:
    """Play games one after another, and see that the last one's end does no harm.

    Of a slow bot fewer than asked for, but one at least. Raises `StepFailure`.
    """
    played: list[Played] = []
    before = ""
    until_s = time.monotonic() + PATIENCE_S
    for plan in games:
        if played and time.monotonic() > until_s:
            break
        played.append(await play(bench, process, plan, before=before))
        before = f"after the end of the game {plan.where} (game_ends), or at the start of the next"
    last = played[-1].plan
    after = Plan(f"{last.name}-after", last.ruleset, last.players, last.seat)
    ending = "after the end of the game (game_ends)"
    await join(bench, process, after, before=ending)
    return played


async def play_at_once(bench: Bench, process: BotProcess, games: Sequence[Plan]) -> list[Played]:
    """Play games at the same time. Raises the `StepFailure` of the first that went wrong, and how many did."""
    results = await asyncio.gather(
        *(play(bench, process, plan) for plan in games), return_exceptions=True
    )
    played: list[Played] = []
    troubles: list[StepFailure] = []
    for result in results:
        if isinstance(result, StepFailure):
            troubles.append(result)
        elif isinstance(result, BaseException):
            raise result
        else:
            played.append(result)
    if troubles:
        first = troubles[0]
        raise StepFailure(
            first.expected,
            f"{first.came}\n{len(troubles)} of {counted(len(games), 'game')} at once went wrong",
        )
    return played


def _now_us() -> int:
    return time.monotonic_ns() // 1000
