"""Decide whether the games have settled the standings, so that a tournament can stop early.

The standings are settled if no verdict about two neighbours is open: one bot is ahead, or both are equal. Each test
can give a wrong verdict, and tests after every round would often stop a tournament wrongly. Therefore only some
rounds end with a test, called a look. The looks are planned before the first game. The allowed error is divided
among all looks and all pairs of neighbours.
`tests/bench/bench_settled.py` measures how often settled standings are wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `tournament/config.py` imports this module, and must load without numpy
    from referee.ratings.analysis import Analysis

MARGIN = 1.0
"""The usual margin: two bots count as equal if their ratings surely differ by less than this."""
_GROWTH = 1.2
"""Factor by which the number of rounds grows from one look to the next; a few new games rarely change a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCondition:
    """The condition under which a tournament stops early."""

    confidence: float
    """Probability, between 0.5 and 1, that all verdicts together are right."""
    margin: float
    """Two bots count as equal if their ratings surely differ by less than this. With 0, no bots count as equal."""


def look_rounds(rounds: int) -> list[int]:
    """Return after how many rounds each look takes place, in a tournament of `rounds` rounds.

    The last look is after the last round.
    """
    found: list[int] = []
    next_look = 1
    while next_look < rounds:
        found.append(next_look)
        next_look = max(next_look + 1, int(next_look * _GROWTH))
    return [*found, rounds]


class Verdict(Enum):
    """The verdict about two neighbours in the standings."""

    AHEAD = "ahead"
    """The bot with the higher rating is surely better."""
    EQUAL = "equal"
    """The ratings of the two bots surely differ by less than the margin."""
    OPEN = "open"
    """The games do not yet show AHEAD or EQUAL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Two neighbours in the standings, and the verdict about them. `Analysis.ratings` orders the standings."""

    bot: str
    """The bot with the higher rating."""
    below: str
    """The next bot in the standings."""
    chance: float | None
    """Probability that `bot` is better than `below`; None if one of them has played fewer than two matches."""
    verdict: Verdict


def compare_neighbours(
    analyses: Sequence[Analysis], until: StopCondition, *, looks: int
) -> list[list[Neighbours]]:
    """Return the verdicts about all neighbours, one list for each ruleset, best bots first.

    Args:
        analyses: the analyses of the games so far, one for each ruleset.
        until: the stop condition.
        looks: the number of looks in the whole tournament, or 1 for a single test.
    """
    pairs = sum(len(each.results.bots) - 1 for each in analyses)
    error = (1 - until.confidence) / (looks * max(1, pairs))
    found = []
    for analysis in analyses:
        ratings = dict(zip(analysis.results.bots, analysis.ratings.tolist(), strict=True))
        table = sorted(ratings, key=lambda bot: (-ratings[bot], bot))
        found.append(
            [
                Neighbours(
                    bot=bot,
                    below=below,
                    chance=analysis.chance_of_lead(bot, below),
                    verdict=_verdict(analysis, bot, below, until.margin, error),
                )
                for bot, below in pairwise(table)
            ]
        )
    return found


def all_settled(tables: Iterable[Iterable[Neighbours]]) -> bool:
    """Return True if no verdict is open in `tables`, the result of `compare_neighbours`."""
    return all(each.verdict is not Verdict.OPEN for table in tables for each in table)


def _verdict(analysis: Analysis, bot: str, below: str, margin: float, error: float) -> Verdict:
    """Return the verdict about two neighbours. `error` is the allowed probability of a wrong verdict."""
    ahead = analysis.chance_of_lead(bot, below)
    further = analysis.chance_of_lead(bot, below, margin)
    behind = analysis.chance_of_lead(bot, below, -margin)
    if ahead is None or further is None or behind is None:
        return Verdict.OPEN
    if ahead >= 1 - error / 2:  # half, because the games themselves have chosen which bot leads
        return Verdict.AHEAD
    return Verdict.EQUAL if further <= error and behind >= 1 - error else Verdict.OPEN
