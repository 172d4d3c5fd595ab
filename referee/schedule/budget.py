"""Compute how many matches a tournament can have for a budget of games, games per bot, or minutes.

The number of games is fixed before the first game. So a budget of minutes is turned into games by the mean
duration of earlier games, which `Pace` provides.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from referee.clocks import SECOND_US
from referee.schedule import Stage

Affords = Callable[[Sequence[Stage]], bool]
"""Return True if stages are within a budget. More matches must never turn False into True."""


def smallest_choice(stages: Sequence[Stage], bots: int) -> tuple[Stage, ...]:
    """Return the stages with the fewest matches in which every bot still plays in every stage."""
    return tuple(replace(stage, matches=stage.min_matches(bots), balanced=True) for stage in stages)


def buy(
    stages: Sequence[Stage], bots: int, affords: Affords, *, most_games: int
) -> tuple[Stage, ...]:
    """Return the stages with as many matches as a budget affords.

    If the budget affords a round of all tables, the result has as many such rounds as possible. If not,
    the result is a balanced choice: matches are added one by one to the stage with the fewest games, the first of
    equals, until the budget does not afford the next one.

    Args:
        stages: the stages; their numbers of matches are ignored.
        bots: the number of bots.
        affords: returns True if stages are within the budget, as it must for `smallest_choice`.
        most_games: limits the search: the result exceeds this number of games by one match at most, or by one round if
            all tables play.
    """

    def whole(rounds: int) -> tuple[Stage, ...]:
        return tuple(replace(stage, matches=rounds) for stage in stages)

    too_many = 2 + most_games // sum(stage.games(bots) for stage in whole(1))
    rounds = bisect_right(range(1, too_many), 0, key=lambda number: 1 - affords(whole(number)))
    if rounds:
        return whole(rounds)
    bought = list(smallest_choice(stages, bots))
    while sum(games := [stage.games(bots) for stage in bought]) <= most_games:
        number = games.index(min(games))
        before = bought[number]
        bought[number] = replace(before, matches=before.matches + 1)
        if not affords(bought):
            bought[number] = before
            break
    return tuple(bought)


_MINUTE_US = 60 * SECOND_US


class Unit(Enum):
    """The unit of a budget. The values are the keys of the tournament file."""

    GAMES = "games"
    """Games of the whole tournament."""
    GAMES_PER_BOT = "games_per_bot"
    """Games of the bot that plays most."""
    MINUTES = "minutes"
    """Expected minutes from the first game to the last."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a tournament may cost."""

    unit: Unit
    amount: float
    """More than 0. Only minutes may be a fraction."""

    def __str__(self) -> str:
        return f"{self.amount:.12g} {_WORDS[self.unit]}"


class Pace(Protocol):
    """The speed of games on this machine."""

    cores: int
    """Number of cores for workers."""

    def game_us(self, ruleset: str, seats: int) -> float | None:
        """Return the mean duration of earlier games in microseconds; None if there are none."""
        ...


def spend(
    budget: Budget,
    stages: Sequence[Stage],
    bots: int,
    *,
    workers: int,
    pace: Pace | None,
    most_games: int,
) -> tuple[Stage, ...]:
    """Return the stages with as many matches as a budget affords; see `buy`.

    Args:
        budget: the budget.
        stages: the stages; their numbers of matches are ignored.
        bots: the number of bots.
        workers: the number of games that are played at the same time.
        pace: used only for a budget of minutes; None if nothing is known.
        most_games: see `buy`.

    Raises ValueError if the budget is too small for every bot to play in every stage, or if the duration
    of games is unknown.
    """
    price = _Price(budget.unit, bots, workers, _durations(budget, stages, pace))
    smallest = smallest_choice(stages, bots)
    if price.compute(smallest) > budget.amount:
        raise ValueError(
            f"{budget} are too few: a round in which every bot plays needs {price.describe(smallest)}"
        )
    return buy(
        stages, bots, lambda bought: price.compute(bought) <= budget.amount, most_games=most_games
    )


@dataclass(frozen=True, slots=True)
class _Price:
    """Compute the price of stages in a unit."""

    unit: Unit
    bots: int
    workers: int
    durations_us: tuple[float, ...]
    """Mean duration of a game of each stage; empty unless the unit is minutes."""

    def compute(self, stages: Sequence[Stage]) -> float:
        if self.unit is Unit.GAMES_PER_BOT:
            each = [stage.most_games(self.bots) for stage in stages]
            return max(map(sum, zip(*each, strict=True)))
        games = [stage.games(self.bots) for stage in stages]
        if self.unit is Unit.GAMES:
            return sum(games)
        lasting_us = sum(n * each_us for n, each_us in zip(games, self.durations_us, strict=True))
        return lasting_us / self.workers / _MINUTE_US

    def describe(self, stages: Sequence[Stage]) -> str:
        """Return the price in words."""
        price = self.compute(stages)
        if self.unit is Unit.GAMES:
            return f"{price:.12g} games"
        if self.unit is Unit.GAMES_PER_BOT:
            return f"{price:.12g} games of one bot"
        games = sum(stage.games(self.bots) for stage in stages)
        return f"about {price:.2g} minutes for {games} games"


def _durations(budget: Budget, stages: Sequence[Stage], pace: Pace | None) -> tuple[float, ...]:
    if budget.unit is not Unit.MINUTES:
        return ()
    durations = []
    for stage in stages:
        known = pace and pace.game_us(stage.ruleset.name, stage.seats)
        if not known:
            raise ValueError(
                f"the league has no games of {stage.ruleset.name} at a table of {stage.seats}, so their"
                " duration is unknown; play a short tournament first, or give a number of games"
            )
        durations.append(known)
    return tuple(durations)


_WORDS = {
    Unit.GAMES: "games",
    Unit.GAMES_PER_BOT: "games of a bot",
    Unit.MINUTES: "minutes",
}
