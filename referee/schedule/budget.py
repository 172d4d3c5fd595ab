"""Compute how many matches a tournament can have for a budget of games, games per bot, or minutes.

The number of games is fixed before the first game. So the number of games for a budget of minutes is computed
from the mean duration of earlier games. `Pace` provides this mean.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from referee.clocks import SECOND_US
from referee.schedule import Stage, count_games

Affords = Callable[[Sequence[Stage]], bool]
"""A function that returns True if the stages are within the budget.

If it returns False for some stages, it must also return False for the same stages with more matches.
"""


def smallest_choice(stages: Sequence[Stage], bots: int) -> tuple[Stage, ...]:
    """Return the stages as balanced choices. Each has the fewest matches in which every bot plays."""
    return tuple(replace(stage, matches=stage.min_matches(bots), balanced=True) for stage in stages)


def buy(
    stages: Sequence[Stage], bots: int, affords: Affords, *, most_games: int
) -> tuple[Stage, ...]:
    """Return the stages with as many matches as the budget allows.

    If the budget allows one match at every table of every stage, all tables play, and each plays the same number
    of matches. If not, each stage gets a balanced choice. The search starts with `smallest_choice` and adds matches
    one by one, until the budget does not allow the next match. Each match is added to the stage with the fewest
    games. If several stages have the fewest, the first one gets it.

    Args:
        stages: the stages; the function ignores how many matches they have.
        bots: the number of bots.
        affords: returns True if the stages are within the budget. It must return True for `smallest_choice`.
        most_games: the search ends when the stages have more than `most_games` games, even if the budget allows
            more. So the result may have more games than this.
    """

    def whole(rounds: int) -> tuple[Stage, ...]:
        return tuple(replace(stage, matches=rounds) for stage in stages)

    too_many = 2 + most_games // count_games(whole(1), bots)
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
    """Games of the bot that plays the most games."""
    MINUTES = "minutes"
    """Expected time from the start of the first game to the end of the last game, in minutes."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The largest size that a tournament may have, in games or minutes."""

    unit: Unit
    amount: float
    """Number of units, more than 0; for games and games per bot a whole number."""

    def __str__(self) -> str:
        return _describe(f"{self.amount:.12g}", self.unit)


class Pace(Protocol):
    """What is known about the duration of games on this machine."""

    cores: int
    """Number of CPU cores on which workers may run."""

    def game_us(self, ruleset: str, seats: int) -> float | None:
        """Return the mean duration of earlier games of a ruleset and table size, in microseconds.

        Return None if there are no earlier games of this ruleset and table size.
        """
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
    """Return the stages with as many matches as the budget allows, as `buy` selects them.

    Args:
        budget: the budget of the tournament.
        stages: the stages; the function ignores how many matches they have.
        bots: the number of bots.
        workers: the number of workers. The expected minutes assume that a worker plays one game at a time.
        pace: the duration of earlier games, used only for a budget of minutes. None if no duration is known.
        most_games: see `buy`.

    Raises ValueError if the budget is too small to let every bot play in every stage. Raises ValueError also if the
    budget is in minutes and the duration of the games of a stage is unknown.
    """
    price = _Price(budget.unit, bots, workers, _durations(budget, stages, pace))
    smallest = smallest_choice(stages, bots)
    if price.compute(smallest) > budget.amount:
        raise ValueError(
            f"{budget} {'is' if budget.amount == 1 else 'are'} not enough: to let every bot play in every stage, the tournament needs"
            f" {price.describe(smallest)}"
        )
    return buy(
        stages, bots, lambda bought: price.compute(bought) <= budget.amount, most_games=most_games
    )


@dataclass(frozen=True, slots=True)
class _Price:
    """Compute the price of stages: how much of a budget the games of these stages use."""

    unit: Unit
    bots: int
    """Number of bots of the tournament."""
    workers: int
    durations_us: tuple[float, ...]
    """For each stage, the mean duration of a game in microseconds. Empty if the unit is not minutes."""

    def compute(self, stages: Sequence[Stage]) -> float:
        """Return the price of the stages, as a number of units.

        For games per bot, `Stage.most_games` gives two numbers for each stage: one for challengers and one for other
        bots. Each of the two is added up over all stages, and the larger sum is the price. The price is an upper
        bound: perhaps no bot plays that often.
        """
        if self.unit is Unit.GAMES_PER_BOT:
            each = [stage.most_games(self.bots) for stage in stages]
            return max(map(sum, zip(*each, strict=True)))
        games = [stage.games(self.bots) for stage in stages]
        if self.unit is Unit.GAMES:
            return sum(games)
        lasting_us = sum(n * each_us for n, each_us in zip(games, self.durations_us, strict=True))
        # with more workers than games, the tournament still takes as long as its longest game
        return max(lasting_us / self.workers, *self.durations_us) / _MINUTE_US

    def describe(self, stages: Sequence[Stage]) -> str:
        """Return the price of the stages with its unit, for a message."""
        price = self.compute(stages)
        if self.unit is Unit.GAMES:
            return f"{price:.12g} games"
        if self.unit is Unit.GAMES_PER_BOT:
            return f"{price:.12g} games of one bot"
        games = count_games(stages, self.bots)
        return f"about {_describe(f'{price:.2g}', self.unit)} for {games} games"


def _durations(budget: Budget, stages: Sequence[Stage], pace: Pace | None) -> tuple[float, ...]:
    """Return the mean duration of a game of each stage in microseconds. Return () if the budget is not in minutes.

    Raises ValueError if the duration of the games of a stage is unknown.
    """
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
    Unit.GAMES: ("game", "games"),
    Unit.GAMES_PER_BOT: ("game of a bot", "games of a bot"),
    Unit.MINUTES: ("minute", "minutes"),
}


def _describe(number: str, unit: Unit) -> str:
    """Return a number with its unit, for a message."""
    return f"{number} {_WORDS[unit][number != '1']}"
