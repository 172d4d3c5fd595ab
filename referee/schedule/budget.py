"""How many matches a budget buys.

What a schedule costs is the budget's own matter (games, time…); here is only how the most is found.

What a tournament may cost: games, games of a bot, or minutes; and what that buys.

The number of games is settled before the first one is played. So minutes are turned into games by what
games like these have lasted; who knows that is `Pace`, which is asked for nothing else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from referee.clocks import SECOND_US
from referee.schedule.stages import Stage

Affords = Callable[[Sequence[Stage]], bool]
"""Whether stages are within a budget. What is not must not become so by more matches."""


def smallest_choice(stages: Sequence[Stage], bots: int) -> tuple[Stage, ...]:
    """The smallest balanced choice: every bot plays in every stage."""
    return tuple(replace(stage, matches=stage.min_matches(bots), balanced=True) for stage in stages)


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
    """What a budget counts; the names are those of the keys."""

    GAMES = "games"
    """Of the whole tournament."""
    GAMES_PER_BOT = "games_per_bot"
    """Of the bot that plays most."""
    MINUTES = "minutes"
    """From the first game to the last, as is to be expected."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a tournament may cost at most."""

    unit: Unit
    amount: float
    """More than 0; a whole number but for minutes."""

    def __str__(self) -> str:
        return f"{self.amount:.12g} {_WORDS[self.unit]}"


class Pace(Protocol):
    """How fast games are played here."""

    cores: int
    """That workers can have."""

    def game_us(self, ruleset: str, seats: int) -> float | None:
        """The mean duration, in microseconds, of games played so far; None where there are none."""
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
    """The stages with as many matches as a budget buys, as `schedule.buy` has it.

    Args:
        budget: what they may cost.
        stages: what their matches are does not count.
        bots: how many there are.
        workers: games that are played side by side.
        pace: asked for a budget of minutes alone; None where nothing is known.
        most_games: see `schedule.buy`.

    Raises ValueError, with the reason, where not every bot can play in every stage, or where it is not
    known how long games last.
    """
    price = _Price(budget.unit, bots, workers, _durations(budget, stages, pace))
    smallest = smallest_choice(stages, bots)
    if price.of(smallest) > budget.amount:
        raise ValueError(
            f"{budget} are less than one round, in which every bot plays: {price.explain(smallest)}"
        )
    return buy(
        stages, bots, lambda bought: price.of(bought) <= budget.amount, most_games=most_games
    )


@dataclass(frozen=True, slots=True)
class _Price:
    """What schedules cost in a unit."""

    unit: Unit
    bots: int
    workers: int
    durations_us: tuple[float, ...]
    """Of a game of each stage; for minutes alone."""

    def of(self, stages: Sequence[Stage]) -> float:
        if self.unit is Unit.GAMES_PER_BOT:
            each = [stage.most_games(self.bots) for stage in stages]
            return max(map(sum, zip(*each, strict=True)))
        games = [stage.games(self.bots) for stage in stages]
        if self.unit is Unit.GAMES:
            return sum(games)
        lasting_us = sum(n * each_us for n, each_us in zip(games, self.durations_us, strict=True))
        return lasting_us / self.workers / _MINUTE_US

    def explain(self, stages: Sequence[Stage]) -> str:
        """What they cost, as a reason why that is too much."""
        price = self.of(stages)
        if self.unit is Unit.GAMES:
            return f"it has {price:.12g}"
        if self.unit is Unit.GAMES_PER_BOT:
            return f"one of them has {price:.12g}"
        games = sum(stage.games(self.bots) for stage in stages)
        return f"its {games} games should take {price:.2g}"


def _durations(budget: Budget, stages: Sequence[Stage], pace: Pace | None) -> tuple[float, ...]:
    if budget.unit is not Unit.MINUTES:
        return ()
    durations = []
    for stage in stages:
        known = pace and pace.game_us(stage.ruleset.name, stage.seats)
        if not known:
            raise ValueError(
                f"how long games of {stage.ruleset.name} at a table of {stage.seats} last is not"
                " known: the league has none; play a short tournament of them first, or give games"
            )
        durations.append(known)
    return tuple(durations)


_WORDS = {
    Unit.GAMES: "games",
    Unit.GAMES_PER_BOT: "games of a bot",
    Unit.MINUTES: "minutes",
}
