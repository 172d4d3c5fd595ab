"""The steps about games at the same time: whether they go well, and whether one knows of another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from referee.check.bench import Bench
from referee.check.games import Plan, Played, Table, plans, play_at_once, play_one_by_one
from referee.check.report import Finding, Trouble, passed, skipped, told
from referee.check.seats import Answered
from referee.check.words import action_words, counted, kind_name

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
        """As many games at once as it says it can hold. Raises `Trouble`."""
        if self._max_games == 1:
            return skipped("max_games is 1: one game at a time")
        games = self._plans[: min(self._max_games, MOST_AT_ONCE)]
        async with self._bench.bot() as process:
            self._at_once = await play_at_once(self._bench, process, games)
        said = f"; its hello says {self._max_games:,}" if len(games) < self._max_games else ""
        answers = sum(len(game.answers) for game in self._at_once)
        return passed(f"{len(games)} games at once{said}; {counted(answers, 'answer')}")

    async def not_mixed(self) -> Finding:
        """The answers of games at once against those of the same games alone. Raises `Trouble`."""
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
            raise Trouble(
                "the same answers, whether a game is played alone or beside others: what the bot knows"
                " of a game is kept under its game_id, and so is its chance, by the seed of the game",
                difference.words(
                    "played alone", f"beside {counted(len(self._at_once) - 1, 'game')}"
                ),
            )
        return passed(f"{counted(len(alone), 'game')} alone: the same answers")

    async def deterministic(self) -> Finding:
        """Whether it does the same again. Raises `Trouble` only where it does not play."""
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
    one: Answered | None
    """None: the game was over by then."""
    other: Answered | None

    def words(self, one: str, other: str) -> str:
        """What it is, the two runs called so."""
        known = self.one or self.other
        kind = f" ({kind_name(known.kind)})" if known is not None else ""
        return (
            f"answer {self.number}{kind} {self.plan.where}:"
            f" {one} {_answer(self.one)}, {other} {_answer(self.other)}"
        )


def _answer(answered: Answered | None) -> str:
    return "none" if answered is None else action_words(answered.action)


def _first_difference(some: Sequence[Played], others: Sequence[Played]) -> _Difference | None:
    """Between the same games, as far as both have them."""
    for one, other in zip(some, others, strict=False):
        answers = zip_longest(one.answers, other.answers)
        for number, (mine, its) in enumerate(answers, start=1):
            if mine is None or its is None or mine.action != its.action:
                return _Difference(one.plan, number, mine, its)
    return None
