"""What one game does to the ratings of those who played it.

TrueSkill compares each seat with the next one in rank order, a chain. With three or more seats a
tie inside that chain is therefore rated by where in the chain the library's sort left each of the
tied seats (trueskill #13 and #15: a limit of the method, present in the reference implementation as
well). Here no such order exists: the update is the mean over every order of the tied seats.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby, permutations, product
from math import fsum
from typing import NamedTuple

import trueskill


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
