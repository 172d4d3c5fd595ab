"""What has to be shown before a tournament stops by itself, and when to look whether it is.

Apart from `settled`, which looks: configurations need this, and not what that takes to load.

When a tournament has shown what there is to show.

It has when every two neighbours in the table are told apart, or called equal. To look again and again and
stop at the first good moment finds differences where there are none; so the error that is allowed in
all is shared out among all the looks there may be, and among the neighbours. How often a table is wrong
all the same is measured by `tests/bench/bench_settled.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from referee.ratings.analysis import Analysis

_GROWTH = 1.2
"""The next look comes when there is a fifth more to be seen: else each would say what the last one said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCondition:
    """What must be shown."""

    confidence: float
    """How sure the whole table has to be, above 0.5 and below 1."""
    margin: float
    """Bots whose ratings differ by less are called equal, where that is as sure; 0: never."""


def look_rounds(rounds: int) -> list[int]:
    """After how many rounds to look, of so many; the last look is after the last one."""
    found: list[int] = []
    following = 1
    while following < rounds:
        found.append(following)
        following = max(following + 1, int(following * _GROWTH))
    return [*found, rounds]


class Verdict(Enum):
    """What is known of two neighbours in a table."""

    AHEAD = "ahead"
    EQUAL = "equal"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Two that follow each other in a table, by their fitted ratings."""

    bot: str
    below: str
    chance: float | None
    """How sure it is that the bot is the better one; None: nothing is known."""
    verdict: Verdict


def compare_neighbours(
    analyses: Sequence[Analysis], until: StopCondition, *, looks: int
) -> list[list[Neighbours]]:
    """What is known of every two neighbours in the tables; it is settled when none of it is open.

    Args:
        analyses: of the games so far, one for each ruleset.
        until: what must be shown.
        looks: how often it is asked at most, in the whole tournament.
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
    """Whether of nobody in the tables it is open who follows."""
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
