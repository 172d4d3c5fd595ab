"""Check the bot in many games: games at once, determinism, and strength against random players."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from referee.bots.clock import BATCH_LIMIT_US
from referee.bots.player import BotPlayer
from referee.check import (
    Finding,
    Strength,
    inform,
    kind_name,
    pass_with,
    skip_because,
)
from referee.check.bot_under_test import BotUnderTest
from referee.check.games import (
    BotDecision,
    BotSeat,
    CheckedGame,
    CheckGame,
    TableSize,
    plan_games,
    play_concurrently,
    play_game,
    play_in_sequence,
    raise_counted,
    raise_first,
    start_game,
)
from referee.clocks import DecisionTime
from referee.errors import count_text
from referee.records import Reply, Request
from referee.rules.actions import action_text
from referee.rules.game import Game

MAX_CONCURRENT_GAMES = 32
"""The largest number of games at once in a check, even if `max_games` in the bot's hello is larger."""
BATCH_GAMES = 64
"""The largest number of requests in one message of a check."""
_COMPARED_GAMES = 4
"""Each of two processes plays at most this number of games, one after another, and the decisions of both are compared."""
STRENGTH_GAMES = 100
"""The maximum number of games to measure the strength."""
STRENGTH_CONCURRENCY = 4
"""The maximum number of games at once to measure the strength."""
STRENGTH_BUDGET_S = 4.0
"""After this number of seconds, no new game is started to measure the strength."""
_MIN_STRENGTH_GAMES = 2
_REASONS = """The possible reasons:
- the bot mixes its games up: keep everything that it knows of a game under its game_id, and use the seed of the game for chance;
- it learns from finished games: this is allowed;
- its numbers depend on the size of the batch: round them before you compare them (section 13 of proto/README.md)."""
"""Why a bot may reply differently in a game that it plays beside others. Only the first reason is a mistake, but all three look the
same in a check."""
_CONFIDENCE = 0.95
"""The probability that the true mean differs from the measured mean by at most `half_width`."""


class ConcurrencySteps:
    """The steps that test games at once, and compare the bot's decisions when it plays the same games again.

    Args:
        bot: the bot under test.
        max_games: how many games the bot can play at once, according to its hello.
        tables: the table sizes with which the bot can play; at least one.
    """

    def __init__(self, bot: BotUnderTest, max_games: int, tables: Sequence[TableSize]) -> None:
        self._bot = bot
        self._max_games = max_games
        at_once = min(max_games, MAX_CONCURRENT_GAMES)
        self._tables = tables
        self._games = plan_games("together", tables, max(at_once, _COMPARED_GAMES))
        self._concurrent: list[CheckedGame] | None = None
        """The games that were played at once; None if `check_interleaved` has not passed."""
        self._sequential: tuple[list[CheckedGame], list[CheckedGame]] | None = None
        """Two lists of the same games. For each list, a new process played the games one after another. None until then."""

    @property
    def went_well(self) -> bool:
        """Whether the bot has played games at once without a failure."""
        return self._concurrent is not None

    async def check_batch(self) -> Finding:
        """Send the first requests of several games in one message.

        The number of games is `max_games`, but at most `BATCH_GAMES`. Raises `StepFailure` if the bot does not start,
        or if a ready or reply is wrong or missing.
        """
        if self._max_games == 1:
            return skip_because("max_games is 1: one game at a time")
        count = min(self._max_games, BATCH_GAMES)
        limit_us = min(self._bot.clocks.decision_us, BATCH_LIMIT_US // count)
        # the game start must have the limit of the requests, because bots plan with it
        bot = replace(self._bot, clocks=replace(self._bot.clocks, decision_us=limit_us))
        games = [replace(game, seat=0) for game in plan_games("message", self._tables, count)]
        async with bot.run() as process:
            started = await asyncio.gather(
                *(start_game(bot, process, game) for game in games), return_exceptions=True
            )
            raise_first(started)
            seats = [
                BotSeat(process, player, game.description)
                for player, game in zip(started, games, strict=True)
                if isinstance(player, BotPlayer)
            ]
            replies = await asyncio.gather(
                *(
                    seat.decide(_first_request(game, limit_us))
                    for seat, game in zip(seats, games, strict=True)
                ),
                return_exceptions=True,
            )
        failures = [seat.failure for seat in seats if seat.failure is not None]
        raise_counted(failures, f"{count} requests in one message")
        raise_first(replies)
        wall_us = max(reply.wall_us for reply in replies if isinstance(reply, Reply))
        return pass_with(
            f"{count} requests in one message, all answered within {wall_us / 1000:.0f} ms"
        )

    async def check_interleaved(self) -> Finding:
        """Play `max_games` games at once, at most `MAX_CONCURRENT_GAMES`. Raises `StepFailure` if a reply is wrong."""
        if self._max_games == 1:
            return skip_because("max_games is 1: one game at a time")
        games = self._games[: min(self._max_games, MAX_CONCURRENT_GAMES)]
        async with self._bot.run() as process:
            self._concurrent = await play_concurrently(self._bot, process, games)
        promise = f"; its hello says {self._max_games:,}" if len(games) < self._max_games else ""
        decisions = sum(len(game.decisions) for game in self._concurrent)
        return pass_with(
            f"{len(games)} games at once{promise}; {count_text(decisions, 'decision')}"
        )

    async def check_separation(self) -> Finding:
        """Compare the bot's decisions in games at once with its decisions in the same games one after another.

        Two new processes play the same games, each process one game after another. If the decisions of the two processes
        differ, the bot is not deterministic, and the step passes. If these decisions are equal, but the decisions in
        games at once differ from them, the finding is information, because a correct bot can cause this too; see `_REASONS`.

        Raises `StepFailure` if the bot does not start or a reply is wrong.
        """
        if self._max_games == 1:
            return skip_because("max_games is 1: one game at a time")
        if self._concurrent is None:
            return skip_because("the games at once failed: see the step before")
        first, second = await self._play_alone()
        if _first_difference(first, second) is not None:
            return pass_with(
                "every reply named its game and was legal in it; more cannot be checked, because the bot"
                " replies differently each time"
            )
        if (difference := _first_difference(first, self._concurrent)) is not None:
            others = count_text(len(self._concurrent) - 1, "game")
            return inform(
                f"the replies differ: {difference.describe('played alone', f'beside {others}')}\n{_REASONS}"
            )
        compared = min(len(first), len(self._concurrent))
        return pass_with(f"{count_text(compared, 'game')} alone: the same replies")

    async def report_determinism(self) -> Finding:
        """Report whether two processes make the same decisions in the same games.

        Raises `StepFailure` if the bot does not start or a reply is wrong.
        """
        first, second = await self._play_alone()
        difference = _first_difference(first, second)
        if difference is None:
            compared = min(len(first), len(second))
            return inform(
                f"yes: a new process made the same decisions in {count_text(compared, 'game')}"
            )
        return inform(f"no: {difference.describe('the first time', 'by a new process')}")

    async def _play_alone(self) -> tuple[list[CheckedGame], list[CheckedGame]]:
        """Return `_sequential`. At the first call, two new processes play the games."""
        if self._sequential is None:
            self._sequential = await self._play_by_new_process(), await self._play_by_new_process()
        return self._sequential

    async def _play_by_new_process(self) -> list[CheckedGame]:
        async with self._bot.run() as process:
            return await play_in_sequence(self._bot, process, self._games[:_COMPARED_GAMES])


def _first_request(game: CheckGame, limit_us: int) -> Request:
    """Return the request for the first decision of a game, with the time limit `limit_us` and no bank."""
    table = Game(game.ruleset, game.players, game.deck)
    decision = table.decision
    assert decision is not None  # noqa: S101 - the game has just begun
    return Request(1, table.view(0), decision, (), DecisionTime(limit_us, None, 0))


class _Difference(NamedTuple):
    """The first difference between the bot's decisions in two runs of the same games."""

    game: CheckGame
    number: int
    """The number of the bot's decision in the game, from 1."""
    first: BotDecision | None
    """Decision `number` in the first run; None if the game had fewer decisions."""
    second: BotDecision | None
    """Decision `number` in the second run; None if the game had fewer decisions."""

    def describe(self, first_run: str, second_run: str) -> str:
        """Return the difference as text. The arguments are names for the two runs."""
        decision = self.first or self.second
        kind = f" ({kind_name(decision.kind)})" if decision is not None else ""
        return (
            f"reply {self.number}{kind} {self.game.description}:"
            f" {first_run} {_decision_text(self.first)}, {second_run} {_decision_text(self.second)}"
        )


def _decision_text(decision: BotDecision | None) -> str:
    return "none" if decision is None else action_text(decision.action)


def _first_difference(
    first_run: Sequence[CheckedGame], second_run: Sequence[CheckedGame]
) -> _Difference | None:
    """Return the first difference in the games that both runs have; None if there is no difference."""
    for first_game, second_game in zip(first_run, second_run, strict=False):
        decisions = zip_longest(first_game.decisions, second_game.decisions)
        for number, (first, second) in enumerate(decisions, start=1):
            if first is None or second is None or first.action != second.action:
                return _Difference(first_game.game, number, first, second)
    return None


async def measure_strength(
    bot: BotUnderTest, tables: Sequence[TableSize], max_games: int
) -> Strength | None:
    """Play against random players for a limited time.

    If `tables` has the duel, all games are duels. If `tables` does not have the duel, all games use `tables[0]`.

    Args:
        bot: the bot under test.
        tables: the table sizes with which the bot can play; at least one.
        max_games: how many games the bot can play at once.

    Returns None if fewer than two games started within `STRENGTH_BUDGET_S`. Raises `StepFailure` if the bot
    does not start or a reply is wrong.
    """
    table = next((table for table in tables if table.ruleset.name == "duel"), tables[0])
    waiting = plan_games("strength", [table], STRENGTH_GAMES)[::-1]
    margins: list[float] = []
    until_s = time.monotonic() + STRENGTH_BUDGET_S
    async with bot.run() as process:

        async def keep_playing() -> None:
            while waiting and time.monotonic() < until_s:
                margins.append((await play_game(bot, process, waiting.pop())).margin)

        results = await asyncio.gather(
            *(keep_playing() for _ in range(min(max_games, STRENGTH_CONCURRENCY))),
            return_exceptions=True,
        )
        raise_first(results)
    if len(margins) < _MIN_STRENGTH_GAMES:
        return None
    return Strength(
        table.ruleset.name, table.players, len(margins), fmean(margins), half_width(margins)
    )


def half_width(values: Sequence[float]) -> float:
    """Return half the width of the confidence interval of a mean, by Student's t. At least two values are needed."""
    from scipy.special import stdtrit  # noqa: PLC0415 - scipy loads slowly

    quantile = float(stdtrit(len(values) - 1, (1 + _CONFIDENCE) / 2))
    return quantile * stdev(values) / sqrt(len(values))
