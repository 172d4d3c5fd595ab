"""How many matches a budget buys.

What a schedule costs is the budget's own matter (games, time…); here is only how the most is found.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace

from referee.schedule.games import Stage

Affords = Callable[[Sequence[Stage]], bool]
"""Whether stages are within a budget. What is not must not become so by more matches."""


def least(stages: Sequence[Stage], bots: int) -> tuple[Stage, ...]:
    """The smallest balanced choice: every bot plays in every stage."""
    return tuple(replace(stage, matches=stage.least(bots), balanced=True) for stage in stages)


def buy(
    stages: Sequence[Stage], bots: int, affords: Affords, *, most_games: int
) -> tuple[Stage, ...]:
    """The stages with as many matches as a budget affords.

    That is as many whole rounds of all tables as can be; where that is not even one, a balanced
    choice, in which the next match is always one of the stage with the fewest games, the first of
    equals, until the first that cannot be afforded.

    Args:
        stages: what their matches are does not count.
        bots: how many there are.
        affords: what the budget says; it must afford `least`.
        most_games: beyond which nobody needs to look: one match more than this may be bought.
    """

    def whole(rounds: int) -> tuple[Stage, ...]:
        return tuple(replace(stage, matches=rounds) for stage in stages)

    too_many = 2 + most_games // sum(stage.games(bots) for stage in whole(1))
    rounds = bisect_right(range(1, too_many), 0, key=lambda number: 1 - affords(whole(number)))
    if rounds:
        return whole(rounds)
    bought = list(least(stages, bots))
    while sum(games := [stage.games(bots) for stage in bought]) <= most_games:
        number = games.index(min(games))
        before = bought[number]
        bought[number] = replace(before, matches=before.matches + 1)
        if not affords(bought):
            bought[number] = before
            break
    return tuple(bought)
