"""Rate games one after another with TrueSkill.

TrueSkill compares each seat with the next one in rank order. With three or more seats, the result for tied seats
therefore depends on the order in which the library `trueskill` sorts the tied seats (issues 13 and 15 of the
library). In this module, the ratings after a game are the mean over several orders of the tied seats. If two or three
seats are tied, these are all orders. For four tied seats, these are 4 orders, and for five 10. In these orders, each tied
seat is at each place equally often, and comes equally often directly after each of the other tied seats. The mean over
all orders of four or five tied seats would cost up to 120 updates for a game.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby, product
from statistics import fmean
from typing import NamedTuple, Self

import trueskill

from referee.records import GameResult


class Rating(NamedTuple):
    """The estimate of a bot's skill: a normal distribution."""

    mu: float
    sigma: float

    @property
    def conservative(self) -> float:
        """A cautious estimate of the skill: mu - 3 sigma."""
        return self.mu - 3 * self.sigma


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The constants of the rating."""

    mu: float = 25.0
    sigma: float = 25 / 3
    beta: float = 25 / 6
    """Deviation of a bot's performance in a game around its skill.

    If the skills of two bots differ by this much, the better bot performs better in a game with a probability of 76 %.
    """
    tau: float = 0.0
    """Uncertainty that is added before each game. It is 0, because a version of a bot does not change."""
    draw_probability: float = 0.1
    """Probability that two equally strong bots tie in a game, if no other bot ranks between them.

    In simulated games, the share of ties was between 0 (ruleset duel) and 0.18 (ruleset classic, with the sample bot greedy
    in all five seats). All constants but tau have the default values of the library, so `trueskill.TrueSkill(tau=0)`
    computes the same ratings for games without ties.
    """


class Model:
    """Update ratings by the ranks of one game."""

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
        # `ppf` is the inverse of the normal distribution function. The library calls it for each pair of seats,
        # always with the same argument.
        self._env.ppf = cache(self._env.ppf)
        w_win, w_draw = self._env.w_win, self._env.w_draw
        self._env.w_win = lambda lead, margin: _shrinkage(w_win, lead, margin, lead - margin)
        self._env.w_draw = lambda lead, margin: _shrinkage(w_draw, lead, margin, margin - abs(lead))

    def update(self, priors: Sequence[Rating], ranks: Sequence[int]) -> list[Rating]:
        """Return the ratings after a game, in the order of `priors`.

        Seats of equal rank are tied. The order of the seats does not change the new ratings, not even in
        the last bit.
        """
        if len(set(ranks)) == len(ranks):  # without ties there is only one order
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
        """Return the ratings that the library computes. They depend on the order of tied seats."""
        rated = self._env.rate([(trueskill.Rating(*prior),) for prior in priors], ranks)
        return [Rating(posterior.mu, posterior.sigma) for (posterior,) in rated]


def _shrinkage(
    compute: Callable[[float, float], float], lead: float, margin: float, inside: float
) -> float:
    """Return the fraction by which a result reduces the variance of a lead: the function W of TrueSkill.

    A lead is the difference between the performances of two seats.

    The fraction is at least 0 and below 1. If two ratings are about 38 standard deviations apart, the probability of the result
    or of its opposite is too small for a float, and the library raises FloatingPointError or computes an impossible
    value. In this case the function returns the limit of W: 0 for a nearly certain result, and 1 - 1 / inside² for a nearly
    impossible one. This limit would be wrong for an `inside` near 0. With the default `Settings`, it is not used there,
    because the library is exact for a lead near a bound of the range that the result allows.

    Args:
        compute: the function of the library.
        lead: the expected lead of the seat that ranked higher. `lead`, `margin` and `inside` are in standard deviations.
        margin: the lead above which a game is no tie.
        inside: how far the expected lead is inside the range that the result allows; negative if it is outside.
    """
    try:
        value = compute(lead, margin)
    except FloatingPointError:
        value = 0.0
    if 0 < value < 1:
        return value
    return 0.0 if inside > 0 else 1 - 1 / inside**2


def _orders(seats: Sequence[tuple[int, Rating]]) -> list[tuple[Rating, ...]]:
    """Return several orders of the ratings, each sorted by rank with the best rank first.

    Each group of tied seats takes each of its `_balanced_orders`, in all combinations. Before that, each group is sorted
    by rating, so the order of `seats` does not matter.

    Args:
        seats: the rank and the rating of each seat.
    """
    tied = (
        [prior for _, prior in group]
        for _, group in groupby(sorted(seats), key=lambda seat: seat[0])
    )
    arranged = (
        [[group[place] for place in order] for order in _balanced_orders(len(group))]
        for group in tied
    )
    return [tuple(chain.from_iterable(order)) for order in product(*arranged)]


@cache
def _balanced_orders(size: int) -> list[tuple[int, ...]]:
    """Return orders of the numbers below n = `size` that treat all numbers equally.

    In these orders, each number is at each place equally often, and comes equally often directly after each of the other
    numbers. The first order is 0, 1, n - 1, 2, n - 2, … To make further orders, the same constant is added to all its
    numbers, modulo n. The reverses of these orders are returned too (Williams, Experimental designs balanced for the estimation of
    residual effects of treatments, 1949). If n is even, the reverses are already among them. If n is at most 3, the result
    contains all orders.
    """
    zigzag = [(place + 1) // 2 * (1 if place % 2 else -1) for place in range(size)]
    orders = [tuple((number + first) % size for number in zigzag) for first in range(size)]
    return sorted({*orders, *(order[::-1] for order in orders)})


def _mean(ratings: Sequence[Rating]) -> Rating:
    """Return the means of mu and sigma. `fmean` rounds the sum only once, so the order of `ratings` does not matter."""
    return Rating(
        fmean([rating.mu for rating in ratings]), fmean([rating.sigma for rating in ratings])
    )


RatingTable = dict[str, dict[str, Rating]]
"""Ratings by the name of the ruleset, then by the name of the bot."""


class Ratings:
    """The ratings after all games added so far.

    The order of the games matters. Add them in schedule order. Anyone can compute this order again, while the order in
    which games end may differ from run to run.

    Args:
        settings: the constants of TrueSkill; the defaults of `Settings` if omitted.
        predecessors: for each new version of a bot, its predecessor. A new version starts with the current mu of
            its predecessor and with the sigma of a new bot. If the predecessor has not played by the ruleset of
            the game, the predecessor's own predecessor counts, and so on.
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

    def add(self, game: GameResult) -> None:
        """Rate one game. Raises ValueError in the same cases as `rate`."""
        self.rate(game.ruleset, game.bots, game.ranks)

    def rate(self, ruleset: str, bots: Sequence[str], ranks: Sequence[int]) -> None:
        """Rate one game, given by the bot and the rank of each seat.

        Raises ValueError if a bot has two seats, if there are fewer than two seats, or if the numbers of bots
        and ranks differ. Then no rating changes.
        """
        if len(set(bots)) != len(bots) or len(bots) < 2:  # noqa: PLR2004 - a game
            raise ValueError(
                f"a game of {', '.join(bots)} cannot be rated: it needs two or more bots, each on one seat"
            )
        ratings = self._ratings.get(ruleset, {})
        before = [ratings.get(bot) or self._first(bot, ratings) for bot in bots]
        after = self._model.update(before, ranks)
        self._ratings.setdefault(ruleset, ratings).update(zip(bots, after, strict=True))

    def _first(self, bot: str, ratings: Mapping[str, Rating]) -> Rating:
        """Return the rating of a bot before its first game, from a predecessor if one has played.

        Args:
            bot: the bot.
            ratings: the ratings of the ruleset so far.
        """
        before = self._predecessors.get(bot)
        while before is not None and before not in ratings:
            before = self._predecessors.get(before)
        prior = self._model.prior
        return prior if before is None else Rating(ratings[before].mu, prior.sigma)

    def rating(self, ruleset: str, bot: str) -> Rating:
        """Return the rating of a bot. Raises KeyError if the bot has not played by this ruleset."""
        return self._ratings[ruleset][bot]

    def table(self) -> RatingTable:
        """Return the ratings by ruleset and bot, both sorted by name."""
        return {
            ruleset: dict(sorted(ratings.items()))
            for ruleset, ratings in sorted(self._ratings.items())
        }

    @classmethod
    def from_table(
        cls,
        table: RatingTable,
        settings: Settings | None = None,
        *,
        predecessors: Mapping[str, str] | None = None,
    ) -> Self:
        """Return ratings that continue from `table`, a result of the method `table`."""
        restored = cls(settings, predecessors=predecessors)
        restored._ratings = {ruleset: dict(ratings) for ruleset, ratings in table.items()}
        return restored


def rate(
    games: Iterable[GameResult],
    settings: Settings | None = None,
    *,
    predecessors: Mapping[str, str] | None = None,
) -> RatingTable:
    """Return the ratings by ruleset and bot after `games`, which must be in schedule order; see `Ratings`."""
    ratings = Ratings(settings, predecessors=predecessors)
    for game in games:
        ratings.add(game)
    return ratings.table()


class Point(NamedTuple):
    """The rating of a bot after one of the rounds in which it played.

    If a tournament has several stages with the same ruleset, the same round number may occur in each of them. Games with the
    same number count as one round if the bot plays no game of another round between them.
    """

    tournament: str
    round: int
    """Number of the round, as in `GameResult.round`."""
    games: int
    """Number of games of the bot so far, in this ruleset."""
    rating: Rating


def rating_history(
    games: Iterable[GameResult], bot: str, *, predecessors: Mapping[str, str] | None = None
) -> dict[str, list[Point]]:
    """Return by ruleset the rating of a bot after each round in which it played.

    `games` must be the games of all bots, not only those of `bot`, in schedule order; see `Ratings`.
    """
    histories = RatingHistories(predecessors=predecessors)
    for game in games:
        histories.add(game)
    return histories.histories().get(bot, {})


Histories = dict[str, dict[str, list[Point]]]
"""A rating history for each bot and ruleset, by bot, then by ruleset."""


class RatingHistories:
    """The rating histories of all bots after all games added so far.

    Args:
        predecessors: see `Ratings`.
    """

    def __init__(self, *, predecessors: Mapping[str, str] | None = None) -> None:
        self._ratings = Ratings(predecessors=predecessors)
        self._played = Counter[tuple[str, str]]()
        self._points: defaultdict[tuple[str, str], list[Point]] = defaultdict(list)

    def add(self, game: GameResult) -> None:
        """Rate one game. Raises ValueError in the same cases as `Ratings.rate`."""
        self._ratings.add(game)
        for bot in game.bots:
            key = bot, game.ruleset
            self._played[key] += 1
            rating = self._ratings.rating(game.ruleset, bot)
            point = Point(game.tournament, game.round, self._played[key], rating)
            points = self._points[key]
            if points and points[-1][:2] == point[:2]:  # the same round
                points.pop()
            points.append(point)

    def copy(self, *, predecessors: Mapping[str, str] | None = None) -> RatingHistories:
        """Return a copy that continues with `predecessors`."""
        other = RatingHistories(predecessors=predecessors)
        other._ratings = Ratings.from_table(self._ratings.table(), predecessors=predecessors)
        other._played = self._played.copy()
        other._points.update({key: list(points) for key, points in self._points.items()})
        return other

    def histories(self) -> Histories:
        """Return all histories."""
        histories: Histories = {}
        for bot, ruleset in sorted(self._points):
            histories.setdefault(bot, {})[ruleset] = list(self._points[bot, ruleset])
        return histories
