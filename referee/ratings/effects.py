"""Estimate what decides a game besides the bots: the seat and the hand.

Only whole matches count. In a whole match, a game of every seating was played, so each bot has had each seat once. A
match in which a bot forfeited a game is not whole, because the stand-in played instead of the bot.

In the shapes of arrays, M is the number of whole matches, k of seats, and B of resamples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from referee.ratings.intervals import Certainty, Estimate, Resampling
from referee.result_columns import Flags, Floats, Ints, ResultColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatFigures:
    """The value of a seat at tables of one size."""

    seats: int
    seat: int
    """Number of the seat; seat 0 starts the game."""
    matches: int
    """Number of whole matches."""
    advantage: Estimate
    """Mean points per game of the seat minus the mean points per game of all seats."""
    win_share: Estimate
    """Share of the games in which the seat had rank 1. A shared rank 1 counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LuckFigures:
    """The shares of three causes in the variance of points at tables of one size. Their sum is 1.

    The variance is the sum of three variances: that from the hand, that from the bots, and that from everything else. Only
    differences within a game count, not differences between the mean points of games. A share that is the same in nearly all
    resamples has no interval.
    """

    seats: int
    matches: int
    """Number of whole matches.

    At tables of two seats, a match counts only if the same two bots have more than one whole match.
    """
    deviation: float
    """The square root of the variance. The difference between the points of two seats of a game has a root mean square of
    1.41 times this value."""
    hand: Estimate
    """Share caused by the hand and the seat, whichever bot has them."""
    bots: Estimate
    """Share caused by the strength of the bots."""
    rest: Estimate
    """Share caused by everything else, for example by how well a bot plays a certain hand."""


def seat_figures(results: ResultColumns) -> tuple[SeatFigures, ...]:
    """Return the figures of each seat of each table size that has a whole match."""
    return tuple(figures for whole in _whole_matches(results) for figures in _estimate_seats(whole))


def _estimate_seats(whole: _WholeMatches) -> Iterator[SeatFigures]:
    seats, points = whole.seats, whole.points
    matches = len(points)
    resampling = Resampling.from_matches(matches)
    certainty = Certainty(np.full(seats, float(matches)))
    leads = points.mean(axis=1) - points.mean(axis=(1, 2))[:, None]
    won = whole.wins.mean(axis=1)
    advantages = certainty.mean_intervals(leads.mean(axis=0), resampling.means(leads))
    shares = certainty.share_intervals(
        won.mean(axis=0), resampling.means(won), np.full(seats, float(matches * seats))
    )
    for seat, (advantage, share) in enumerate(zip(advantages, shares, strict=True)):
        yield SeatFigures(
            seats=seats, seat=seat, matches=matches, advantage=advantage, win_share=share
        )


def luck_figures(results: ResultColumns) -> tuple[LuckFigures, ...]:
    """Return the figures of each table size.

    A table size is left out if fewer than two matches count (`LuckFigures.matches`), or if the points do not differ within
    any game. Games with fresh deals are left out, because no two bots play the same hand in them.
    """
    same_deals = results.select(~results.fresh_deal)
    found = (_estimate_luck(whole) for whole in _whole_matches(same_deals))
    return tuple(figures for figures in found if figures is not None)


def _estimate_luck(whole: _WholeMatches) -> LuckFigures | None:
    """Return the figures from whole matches; None if fewer than two matches can be used, or if the points do not vary.

    This is an analysis of variance. The points of a match are a Latin square: the rows are the bots, the columns
    are the seats with their hands, and each of the k games occurs once in every row and every column.
    """
    seats, points = whole.seats, whole.points
    middle = points.mean(axis=(1, 2), keepdims=True)
    by_bot = points.mean(axis=2, keepdims=True) - middle
    by_hand = points.mean(axis=1, keepdims=True) - middle
    if seats == 2:  # noqa: PLR2004 - in a 2 by 2 square, bots, seats and games leave no residuals
        rest = _between_matches(whole.bots, by_bot[:, 0, 0] - by_bot[:, 1, 0])
    else:
        left = points - by_bot - by_hand - whole.means_of_games()
        rest = (left**2).sum(axis=(1, 2)) / ((seats - 1) * (seats - 2))
    usable = np.isfinite(rest)
    if usable.sum() < 2:  # noqa: PLR2004 - one match gives no interval
        return None
    squares = np.stack(
        [
            seats * (by_hand**2).sum(axis=(1, 2)) / (seats - 1),
            seats * (by_bot**2).sum(axis=(1, 2)) / (seats - 1),
            rest,
        ],
        axis=1,
    )[usable]
    values, total = _shares(squares.mean(axis=0, keepdims=True), seats)
    if not total[0]:
        return None
    drawn, _ = _shares(Resampling.from_matches(len(squares)).means(squares), seats)
    if seats == 2:  # noqa: PLR2004 - see above
        drawn = values + (drawn - values) * _widening(whole.bots[usable])
    certainty = Certainty(np.full(3, float(len(squares))))
    hand, bots, other = (
        # negative estimates of variances count as 0; if nearly all are negative, the interval has no width, and says nothing
        share.clip(0, 1) if share.low != share.high else Estimate(share.value, None, None)
        for share in certainty.percentile_intervals(values[0], drawn)
    )
    return LuckFigures(
        seats=seats,
        matches=len(squares),
        deviation=float(np.sqrt(total[0])),
        hand=hand,
        bots=bots,
        rest=other,
    )


def _between_matches(pairs: Ints, leads: Floats) -> Floats:
    """Return for each match of two seats an estimate of the residual variance.

    Both bots of a match play both hands, so the hands do not change the lead. The leads of one pair of bots in
    several matches differ only by the residuals, so the variance of these leads is the residual variance. If a pair has
    only one match, the estimate is NaN.

    Args:
        pairs: (M, 2) the bots of each match.
        leads: (M,) mean points per game of the first bot minus those of the second.
    """
    pair, times = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)[1:]
    pair = pair.reshape(-1)
    mean = np.bincount(pair, leads) / times
    unbiased = times / np.where(times > 1, times - 1, np.nan)
    return (leads - mean[pair]) ** 2 * unbiased[pair]


def _widening(pairs: Ints) -> float:
    """Return the factor that corrects how far resamples deviate from the estimate, at tables of two seats.

    `_between_matches` subtracts the mean lead of each pair, so M matches of P pairs have only M - P degrees of freedom.
    The resamples deviate as if there were M - 1. This is too little, so their deviations are multiplied by the factor.

    Args:
        pairs: (M, 2) the bots of each match. Each pair has at least two matches.
    """
    matches = len(pairs)
    return float(np.sqrt((matches - 1) / (matches - len(np.unique(pairs, axis=0)))))


def _shares(squares: Floats, seats: int) -> tuple[Floats, Floats]:
    """Return the (B, 3) shares of hand, bots and rest, and the (B,) total variance.

    Args:
        squares: (B, 3) the mean squares of hand, bots and rest; B is 1 for the means over all matches.
        seats: the table size.
    """
    rest = squares[:, 2]
    parts = np.maximum(0, squares[:, :2] - rest[:, None]) / seats
    components = np.concatenate([parts, rest[:, None]], axis=1)
    total = components.sum(axis=1)
    shares = components / np.where(total > 0, total, np.nan)[:, None]
    return np.nan_to_num(shares), total


@dataclass(frozen=True, slots=True, eq=False)
class _WholeMatches:
    """The whole matches at tables of one size. The second axis of each array has the order of `bots`."""

    seats: int
    """The table size k."""
    bots: Ints
    """(M, k) the bots of each match, lowest index first."""
    points: Floats
    """(M, k, k) `score` by match, bot and seat."""
    wins: Floats
    """(M, k, k) 1 for a win, else 0, by match, bot and seat."""
    game: Ints
    """(M, k, k) the game of the match, from 0 to k - 1, in which the bot had the seat."""

    def means_of_games(self) -> Floats:
        """Return (M, k, k) by match, bot and seat: the mean points, over all seats, of the game with this bot on this seat."""
        match = np.arange(len(self.points))[:, None, None]
        means = np.zeros((len(self.points), self.seats))
        np.add.at(means, (match, self.game), self.points / self.seats)
        return means[match, self.game]


def _whole_matches(results: ResultColumns) -> Iterator[_WholeMatches]:
    """Yield the whole matches of each table size that has any."""
    results = results.select(np.logical_not(results.forfeited.any(axis=1)))
    for seats in np.unique(results.seats).tolist():
        sized = results.of_size(seats)
        whole = np.bincount(sized.match)[sized.match] == seats
        if not whole.any():
            continue
        order = np.flatnonzero(whole)[np.argsort(sized.match[whole], kind="stable")]
        bot = sized.bot[order, :seats].reshape(-1, seats, seats)
        won = (sized.rank == 1)[order, :seats]
        match, game, seat = np.ogrid[: len(bot), :seats, :seats]
        # argsort twice gives the position of each bot among the sorted bots of its match
        place = match, np.argsort(np.argsort(bot, axis=2), axis=2), seat
        yield _WholeMatches(
            seats=seats,
            bots=np.sort(bot[:, 0], axis=1),
            points=_rearrange(sized.score[order, :seats].reshape(bot.shape), place),
            wins=_rearrange(won.reshape(bot.shape), place),
            game=_rearrange(np.broadcast_to(game, bot.shape), place).astype(np.int64),
        )


def _rearrange(values: Floats | Ints | Flags, place: tuple[Ints, Ints, Ints]) -> Floats:
    """Return (M, k, k) values by match, bot and seat, from (M, k, k) values by match, game and seat.

    `place` has the new index of each value on each axis.
    """
    placed = np.zeros(values.shape)
    placed[place] = values
    return placed
