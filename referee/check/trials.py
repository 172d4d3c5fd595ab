"""The steps that put every kind of decision of a ruleset to the bot, from scripted positions.

The steps about games at the same time: whether they go well, and whether one knows of another.

How the bot fares against chance: informative, and many more games in which something may go wrong.

The steps at the end of a bot's life: whether it goes when it is told to, and what it leaves behind.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import zip_longest
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from referee.bots import Shutdown
from referee.bots.process import GOODBYE_S, TERM_S
from referee.check.games import (
    PATIENCE_S,
    Plan,
    Played,
    Table,
    join,
    plans,
    play,
    play_at_once,
    play_one_by_one,
)
from referee.check.positions import kinds_of, script
from referee.check.report import (
    Finding,
    StepFailure,
    Strength,
    action_words,
    counted,
    kind_name,
    passed,
    skipped,
    told,
)
from referee.check.seats import BotSeat, TimedReply
from referee.check.start_up import Bench
from referee.errors import BotFault, Cause
from referee.rules.actions import DecisionKind
from referee.rules.ruleset import Ruleset
from referee.sandbox.launcher import signal_name

_AFTER_WHICH_IT_GOES_ON = {Cause.ILLEGAL, Cause.MALFORMED}
"""Faults that say nothing about the next answer: the others cost time, or the process is dead."""


async def decisions(bench: Bench, ruleset: Ruleset, players: int) -> Finding:
    """Ask a fresh process of the bot all kinds of decisions of a ruleset.

    Raises `StepFailure` with the first wrong answer to each kind.
    """
    scripted = await script(ruleset, players, bench.clocks)
    kinds = kinds_of(ruleset)
    until_s = time.monotonic() + PATIENCE_S
    plan = Plan(scripted.name, ruleset, players, scripted.seat)
    async with bench.bot() as process:
        seat = BotSeat(process, await join(bench, process, plan), plan.where)
        asked = Counter[DecisionKind]()
        wrong = defaultdict[DecisionKind, list[StepFailure]](list)
        for request in scripted.requests:
            if time.monotonic() > until_s and len(asked) == len(kinds):
                break
            kind = request.decision.kind
            asked[kind] += 1
            try:
                answer = await seat.decide(request)
            except BotFault as fault:
                assert seat.trouble is not None  # noqa: S101 - a seat that raises has said why
                wrong[kind].append(seat.trouble)
                if fault.cause not in _AFTER_WHICH_IT_GOES_ON:
                    break
            else:
                bench.meter.answered(kind, answer.elapsed_us)
        if wrong:
            raise _together(wrong, asked)
    return passed(f"{counted(asked.total(), 'answer')}; all {len(asked)} kinds of decisions")


def _together(
    wrong: dict[DecisionKind, list[StepFailure]], asked: Counter[DecisionKind]
) -> StepFailure:
    expected = "\n".join(troubles[0].expected for troubles in wrong.values())
    came = "\n".join(
        f"{troubles[0].came}"
        + (f" ({len(troubles)} of {asked[kind]} such answers)" if len(troubles) > 1 else "")
        for kind, troubles in wrong.items()
    )
    return StepFailure(expected, came)


MOST_AT_ONCE = 32
"""More games at once are not tried, whatever a bot says."""
_COMPARED = 4
"""How many of them are played again, alone."""


class Together:
    """Lets the bot play the same games at once and alone.

    Args:
        bench: starts it.
        max_games: how many it says it can hold at once.
        tables: what it can play.
    """

    def __init__(self, bench: Bench, max_games: int, tables: Sequence[Table]) -> None:
        self._bench = bench
        self._max_games = max_games
        at_once = min(max_games, MOST_AT_ONCE)
        self._plans = plans("together", tables, max(at_once, _COMPARED))
        self._at_once: list[Played] | None = None
        self._alone: list[list[Played]] | None = None

    @property
    def went_well(self) -> bool:
        """Whether it has played games at once."""
        return self._at_once is not None

    async def interleaved(self) -> Finding:
        """As many games at once as it says it can hold. Raises `StepFailure`."""
        if self._max_games == 1:
            return skipped("max_games is 1: one game at a time")
        games = self._plans[: min(self._max_games, MOST_AT_ONCE)]
        async with self._bench.bot() as process:
            self._at_once = await play_at_once(self._bench, process, games)
        said = f"; its hello says {self._max_games:,}" if len(games) < self._max_games else ""
        answers = sum(len(game.answers) for game in self._at_once)
        return passed(f"{len(games)} games at once{said}; {counted(answers, 'answer')}")

    async def not_mixed(self) -> Finding:
        """The answers of games at once against those of the same games alone. Raises `StepFailure`."""
        if self._max_games == 1:
            return skipped("max_games is 1: one game at a time")
        if self._at_once is None:
            return skipped("the games at once did not go well: see the step before")
        alone, again = await self._played_alone()
        if _first_difference(alone, again) is not None:
            return passed(
                "every answer named its game and was legal in it; more cannot be said, since the bot"
                " answers differently each time"
            )
        if (difference := _first_difference(alone, self._at_once)) is not None:
            raise StepFailure(
                "the same answers, whether a game is played alone or beside others: what the bot knows"
                " of a game is kept under its game_id, and so is its chance, by the seed of the game",
                difference.words(
                    "played alone", f"beside {counted(len(self._at_once) - 1, 'game')}"
                ),
            )
        return passed(f"{counted(len(alone), 'game')} alone: the same answers")

    async def deterministic(self) -> Finding:
        """Whether it does the same again. Raises `StepFailure` only where it does not play."""
        alone, again = await self._played_alone()
        difference = _first_difference(alone, again)
        if difference is None:
            return told(f"yes: {counted(len(alone), 'game')} played again went the same")
        return told(f"no: {difference.words('the first time', 'by a new process')}")

    async def _played_alone(self) -> list[list[Played]]:
        """The first games one after another, by two new processes."""
        if self._alone is None:
            runs = []
            for _ in range(2):
                async with self._bench.bot() as process:
                    runs.append(
                        await play_one_by_one(self._bench, process, self._plans[:_COMPARED])
                    )
            self._alone = runs
        return self._alone


class _Difference(NamedTuple):
    """The first answer that is not the same in two runs of a game."""

    plan: Plan
    number: int
    """Of the answer, from 1."""
    one: TimedReply | None
    """None: the game was over by then."""
    other: TimedReply | None

    def words(self, one: str, other: str) -> str:
        """What it is, the two runs called so."""
        known = self.one or self.other
        kind = f" ({kind_name(known.kind)})" if known is not None else ""
        return (
            f"answer {self.number}{kind} {self.plan.where}:"
            f" {one} {_answer(self.one)}, {other} {_answer(self.other)}"
        )


def _answer(answered: TimedReply | None) -> str:
    return "none" if answered is None else action_words(answered.action)


def _first_difference(some: Sequence[Played], others: Sequence[Played]) -> _Difference | None:
    """Between the same games, as far as both have them."""
    for one, other in zip(some, others, strict=False):
        answers = zip_longest(one.answers, other.answers)
        for number, (mine, its) in enumerate(answers, start=1):
            if mine is None or its is None or mine.action != its.action:
                return _Difference(one.plan, number, mine, its)
    return None


GAMES = 100
AT_ONCE = 4
BUDGET_S = 4.0
"""No game is begun after that."""
_FEWEST = 2
_NORMAL_95 = 1.96


async def strength(bench: Bench, tables: Sequence[Table], at_once: int) -> Strength | None:
    """Let the bot play against chance for a while: duels, if it plays them, else at its first table.

    Args:
        bench: starts it.
        tables: what it can play; at least one.
        at_once: how many games it can hold.

    None where there was not time for two games. Raises `StepFailure`.
    """
    table = next((each for each in tables if each.ruleset.name == "duel"), tables[0])
    waiting = plans("strength", [table], GAMES)[::-1]
    margins: list[float] = []
    until = time.monotonic() + BUDGET_S
    async with bench.bot() as process:

        async def keep_playing() -> None:
            while waiting and time.monotonic() < until:
                margins.append((await play(bench, process, waiting.pop())).margin)

        results = await asyncio.gather(
            *(keep_playing() for _ in range(min(at_once, AT_ONCE))), return_exceptions=True
        )
        for error in filter(None, results):
            raise error
    if len(margins) < _FEWEST:
        return None
    interval = _NORMAL_95 * stdev(margins) / sqrt(len(margins))
    return Strength(table.ruleset.name, table.players, len(margins), fmean(margins), interval)


_BY_SIGTERM = {0, -signal.SIGTERM, 128 + signal.SIGTERM}
"""Of a program that has a handler, of one that has none, and of a shell or a JVM."""


class ShutdownSteps:
    """Ends the bot in every way that the referee does.

    Args:
        bench: starts it.
        plan: a game that it plays before; None where it cannot.
    """

    def __init__(self, bench: Bench, plan: Plan | None) -> None:
        self._bench = bench
        self._plan = plan
        self._left: dict[str, tuple[str, ...]] = {}
        """What was left running, after what."""

    async def goodbye(self) -> Finding:
        """A goodbye. Raises `StepFailure`."""
        return await self._end(
            "the goodbye",
            f"it closes its stream and exits with 0 within {GOODBYE_S:g} s of the goodbye",
            {0},
        )

    async def sigterm(self) -> Finding:
        """SIGTERM, which comes where a goodbye has not helped. Raises `StepFailure`."""
        return await self._end(
            "SIGTERM",
            f"it ends within {TERM_S:g} s of SIGTERM, by the signal or with exit code 0",
            _BY_SIGTERM,
        )

    async def nothing_left(self) -> Finding:
        """What was seen after both. Raises `StepFailure`."""
        if not self._left:
            return skipped("the bot never ended by itself: see the steps before")
        left = [f"after {what}: {', '.join(names)}" for what, names in self._left.items() if names]
        if left:
            raise StepFailure(
                "when the bot has ended, so has every process that it started",
                "\n".join(("still running a second later,", *left)),
            )
        return passed(f"no process after {' and '.join(self._left)}")

    async def _end(self, what: str, expected: str, good: set[int]) -> Finding:
        async with self._bench.bot() as process:
            if self._plan is not None:
                await play(self._bench, process, self._plan)
            parting = await process.shut_down(goodbye=what != "SIGTERM")
            if parting.exit_code is not None:
                self._left[what] = parting.left_running
            if parting.exit_code not in good:
                raise StepFailure(expected, _words(parting))
        return passed(f"{_words(parting)} after {parting.elapsed_s:.2f} s")


def _words(parting: Shutdown) -> str:
    code = parting.exit_code
    if code is None:
        return f"it still ran after {parting.elapsed_s:.1f} s"
    return f"ended by {signal_name(-code)}" if code < 0 else f"exited with {code}"
