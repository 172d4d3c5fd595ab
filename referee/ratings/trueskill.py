"""What one game does to the ratings of those who played it.

TrueSkill compares each seat with the next one in rank order, a chain. With three or more seats a
tie inside that chain is therefore rated by where in the chain the library's sort left each of the
tied seats (trueskill #13 and #15: a limit of the method, present in the reference implementation as
well). Here no such order exists: the update is the mean over every order of the tied seats.

Ratings that grow game by game, and the state they can be kept in between.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby, permutations, product
from math import fsum
from typing import NamedTuple, Self

import trueskill

from referee.records import GameResult


class Rating(NamedTuple):
    """What is believed of a bot's skill: a normal distribution."""

    mu: float
    sigma: float

    @property
    def conservative(self) -> float:
        """The skill that the bot has almost certainly: mu - 3 sigma."""
        return self.mu - 3 * self.sigma


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The constants of the rating."""

    mu: float = 25.0
    sigma: float = 25 / 3
    beta: float = 25 / 6
    """The difference in skill that wins a duel with a chance of 76 %."""
    tau: float = 0.0
    """Doubt added before each game. 0: a bot's version does not change between two games."""
    draw_probability: float = 0.1
    """The share of ties between neighbours in rank that the model expects of equals.

    In simulated games it lies between 0 (duel) and 0.18 (classic with five seats, all greedy); 0.1
    is also the library's default, so that `trueskill.TrueSkill(tau=0)` checks a table.
    """


class Model:
    """TrueSkill for games of free-for-all by rank."""

    def __init__(self, settings: Settings) -> None:
        self.prior = Rating(settings.mu, settings.sigma)
        """The rating of a bot that has not played."""
        self._env = trueskill.TrueSkill(
            mu=settings.mu,
            sigma=settings.sigma,
            beta=settings.beta,
            tau=settings.tau,
            draw_probability=settings.draw_probability,
        )
        self._env.ppf = cache(
            self._env.ppf
        )  # of one number; the library works it out for each pair of seats

    def update(self, priors: Sequence[Rating], ranks: Sequence[int]) -> list[Rating]:
        """The ratings after a game, in the order of the ratings before it.

        Seats of equal rank are tied. What a seat gets depends on its own rank and rating and on the
        set of the others', bit by bit: the order in which seats are given does not enter.
        """
        if len(set(ranks)) == len(ranks):  # no ties: one order, which the library finds
            return self._rated(priors, ranks)
        seats = list(zip(ranks, priors, strict=True))
        ordered_ranks = sorted(ranks)
        posteriors = defaultdict[tuple[int, Rating], list[Rating]](list)
        for order in _orders(seats):
            rated = self._rated(order, ordered_ranks)
            for rank, prior, posterior in zip(ordered_ranks, order, rated, strict=True):
                posteriors[rank, prior].append(posterior)
        means = {seat: _mean(ratings) for seat, ratings in posteriors.items()}
        return [means[seat] for seat in seats]

    def _rated(self, priors: Sequence[Rating], ranks: Sequence[int]) -> list[Rating]:
        """What the library makes of a game, in which the order of tied seats matters."""
        rated = self._env.rate([(trueskill.Rating(*prior),) for prior in priors], ranks)
        return [Rating(posterior.mu, posterior.sigma) for (posterior,) in rated]


def _orders(seats: Sequence[tuple[int, Rating]]) -> list[tuple[Rating, ...]]:
    """Every order of the ratings that agrees with the ranks.

    Tied seats with equal ratings need no exchange: `update` adds up what either of them gets.
    """
    tied = (
        [prior for _, prior in group]
        for _, group in groupby(sorted(seats), key=lambda seat: seat[0])
    )
    return [
        tuple(chain.from_iterable(order))
        for order in product(*(set(permutations(group)) for group in tied))
    ]


def _mean(ratings: Sequence[Rating]) -> Rating:
    """The mean of mu and of sigma; `fsum` rounds once, so the order of the ratings is no matter."""
    count = len(ratings)
    return Rating(
        fsum(rating.mu for rating in ratings) / count,
        fsum(rating.sigma for rating in ratings) / count,
    )


Table = dict[str, dict[str, Rating]]
"""Ratings by ruleset, then bot."""


class Ratings:
    """The ratings after the games added so far.

    The order of the games matters, so it must be one that anybody can find again: the schedule's.

    Args:
        settings: the constants.
        predecessors: of bots that are a new version of another one. Such a bot begins where its
            predecessor stands when it first plays, as unsure as any newcomer.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        predecessors: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings or Settings()
        self._predecessors = predecessors or {}
        self._model = Model(self._settings)
        self._ratings: dict[str, dict[str, Rating]] = {}

    @property
    def prior(self) -> Rating:
        """The rating of a bot that has not played."""
        return self._model.prior

    def add(self, game: GameResult) -> None:
        """Rate one game; see `rate`."""
        self.rate(game.ruleset, game.bots, game.ranks)

    def rate(self, ruleset: str, bots: Sequence[str], ranks: Sequence[int]) -> None:
        """Rate one game, given by who sat where and who came out as what.

        Raises ValueError, and nothing has changed, when a bot sits at the table twice, when there is
        one seat only, or when there are not as many ranks as seats.
        """
        if len(set(bots)) != len(bots) or len(bots) < 2:  # noqa: PLR2004 - a game
            raise ValueError(f"a game of {', '.join(bots)} says nothing about who is better")
        ratings = self._ratings.get(ruleset, {})
        before = [ratings.get(bot) or self._first(bot, ratings) for bot in bots]
        after = self._model.update(before, ranks)
        self._ratings.setdefault(ruleset, ratings).update(zip(bots, after, strict=True))

    def _first(self, bot: str, ratings: Mapping[str, Rating]) -> Rating:
        """The rating of a bot before its first game."""
        before = self._predecessors.get(bot)
        while before is not None and before not in ratings:
            before = self._predecessors.get(before)
        return self.prior if before is None else Rating(ratings[before].mu, self.prior.sigma)

    def rating(self, ruleset: str, bot: str) -> Rating:
        """The rating of a bot that has played. Raises KeyError for any other."""
        return self._ratings[ruleset][bot]

    def table(self) -> Table:
        """The ratings by ruleset, then bot, each in the order of the alphabet."""
        return {
            ruleset: dict(sorted(ratings.items()))
            for ruleset, ratings in sorted(self._ratings.items())
        }

    @classmethod
    def from_table(
        cls,
        table: Table,
        settings: Settings | None = None,
        *,
        predecessors: Mapping[str, str] | None = None,
    ) -> Self:
        """The ratings that a table was taken of: adding further games gives what it would have."""
        restored = cls(settings, predecessors=predecessors)
        restored._ratings = {ruleset: dict(ratings) for ruleset, ratings in table.items()}
        return restored


def rate(
    games: Iterable[GameResult],
    settings: Settings | None = None,
    *,
    predecessors: Mapping[str, str] | None = None,
) -> Table:
    """The ratings by ruleset, then bot, after some games in schedule order; see `Ratings`."""
    ratings = Ratings(settings, predecessors=predecessors)
    for game in games:
        ratings.add(game)
    return ratings.table()


class Point(NamedTuple):
    """A bot's rating after a round."""

    tournament: str
    round: int
    games: int
    """That the bot had played by then."""
    rating: Rating


def rating_history(
    games: Iterable[GameResult],
    bot: str,
    settings: Settings | None = None,
    *,
    predecessors: Mapping[str, str] | None = None,
) -> dict[str, list[Point]]:
    """A bot's rating after each round it played in, by ruleset; games come in schedule order."""
    ratings = Ratings(settings, predecessors=predecessors)
    played = Counter[str]()
    points: dict[str, dict[tuple[str, int], Point]] = {}
    for game in games:
        ratings.add(game)
        if bot in game.bots:
            played[game.ruleset] += 1
            points.setdefault(game.ruleset, {})[game.tournament, game.round] = Point(
                game.tournament,
                game.round,
                played[game.ruleset],
                ratings.rating(game.ruleset, bot),
            )
    return {ruleset: list(each.values()) for ruleset, each in sorted(points.items())}
