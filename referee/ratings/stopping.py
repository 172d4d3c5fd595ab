"""Decide whether the games have settled the standings, so that a tournament can stop early.

The standings are settled when every two neighbours have a verdict: one is ahead, or both are equal. Testing after
every round, and stopping at the first success, would inflate false positives. So the allowed error is divided
among all looks, which are the planned tests, and among all pairs of neighbours. `tests/bench/bench_settled.py`
measures how often settled standings are wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # configurations import this module, and numpy takes long to load
    from referee.ratings.analysis import Analysis

_GROWTH = 1.2
"""Growth of the number of rounds from look to look. Closer looks would hardly differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCondition:
    """The condition under which a tournament stops early."""

    confidence: float
    """Probability, between 0.5 and 1, that all verdicts together are right."""
    margin: float
    """Bots count as equal if their ratings surely differ by less than this; 0 turns this off."""


def look_rounds(rounds: int) -> list[int]:
    """Return the numbers of rounds after which to test; the last one is `rounds`."""
    found: list[int] = []
    next_look = 1
    while next_look < rounds:
        found.append(next_look)
        next_look = max(next_look + 1, int(next_look * _GROWTH))
    return [*found, rounds]


class Verdict(Enum):
    """The verdict about two neighbours in the standings."""

    AHEAD = "ahead"
    """The upper bot is surely better."""
    EQUAL = "equal"
    """Their ratings surely differ by less than the margin."""
    OPEN = "open"
    """Neither is sure yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Two neighbours in the standings by fitted rating, and the verdict about them."""

    bot: str
    below: str
    chance: float | None
    """Probability that `bot` is better than `below`; None without data."""
    verdict: Verdict


def compare_neighbours(
    analyses: Sequence[Analysis], until: StopCondition, *, looks: int
) -> list[list[Neighbours]]:
    """Return the verdicts about all neighbours, one list for each ruleset.

    Args:
        analyses: the analyses of the games so far, one for each ruleset.
        until: the stop condition.
        looks: the number of looks in the whole tournament.
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
    """Return True if no verdict is open."""
    return all(each.verdict is not Verdict.OPEN for table in tables for each in table)


def _verdict(analysis: Analysis, bot: str, below: str, margin: float, error: float) -> Verdict:
    ahead = analysis.chance_of_lead(bot, below)
    further = analysis.chance_of_lead(bot, below, margin)
    behind = analysis.chance_of_lead(bot, below, -margin)
    if ahead is None or further is None or behind is None:
        return Verdict.OPEN
    if ahead >= 1 - error:
        return Verdict.AHEAD
    return Verdict.EQUAL if further <= error and behind >= 1 - error else Verdict.OPEN
