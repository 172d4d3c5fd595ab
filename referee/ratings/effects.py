"""What decides a game beside the bots: the seat and the hand.

Only whole matches count here, those of which every seating was played: in them each bot has had each
seat of the deal once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from referee.ratings.intervals import Certainty, Estimate, Resampling
from referee.result_columns import Flags, Floats, Ints, ResultColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatFigures:
    """What a seat is worth at tables of one size."""

    seats: int
    seat: int
    """0 starts the game."""
    matches: int
    advantage: Estimate
    """Mean points of the seat less the mean points of all seats."""
    win_share: Estimate
    """Games that the seat won, shared ones included, forfeited ones not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LuckFigures:
    """What the points of a game come from, at tables of one size: shares of their variance, 1 in all.

    The variance is that around the mean of the match.
    """

    seats: int
    matches: int
    deviation: float
    """Of a seat's points in one game."""
    hand: Estimate
    """The luck of the deal: the same seat of the same deal, whoever sits there."""
    bots: Estimate
    """Who is better."""
    rest: Estimate
    """How these bots played this hand in this order."""


def seat_figures(results: ResultColumns) -> tuple[SeatFigures, ...]:
    """Of every table size and seat."""
    return tuple(figures for whole in _whole_matches(results) for figures in _of_seats(whole))


def _of_seats(whole: _Whole) -> Iterator[SeatFigures]:
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
    """Of every table size of which there are matches enough."""
    found = (_luck(whole) for whole in _whole_matches(results))
    return tuple(figures for figures in found if figures is not None)


def _luck(whole: _Whole) -> LuckFigures | None:
    """Variance components of matches: Latin squares of bots by seats, a game for each diagonal."""
    seats, points = whole.seats, whole.points
    middle = points.mean(axis=(1, 2), keepdims=True)
    by_bot = points.mean(axis=2, keepdims=True) - middle
    by_hand = points.mean(axis=1, keepdims=True) - middle
    matches = len(points)
    if seats == 2:  # noqa: PLR2004 - a square of two by two leaves no rest
        rest, repeated = _between_matches(whole.bots, by_bot[:, 0, 0] - by_bot[:, 1, 0])
    else:
        left = points - by_bot - by_hand - whole.means_of_games()
        rest, repeated = (
            (left**2).sum(axis=(1, 2)) / ((seats - 1) * (seats - 2)),
            np.ones(matches, dtype=bool),
        )
    if repeated.sum() < 2:  # noqa: PLR2004 - for an interval
        return None
    squares = np.stack(
        [
            seats * (by_hand**2).sum(axis=(1, 2)) / (seats - 1),
            seats * (by_bot**2).sum(axis=(1, 2)) / (seats - 1),
            rest,
        ],
        axis=1,
    )[repeated]
    values, total = _shares(squares.mean(axis=0, keepdims=True), seats)
    drawn, _ = _shares(Resampling.from_matches(len(squares)).means(squares), seats)
    certainty = Certainty(np.full(3, float(len(squares))))
    hand, bots, other = (
        share.clip(0, 1) for share in certainty.percentile_intervals(values[0], drawn)
    )
    return LuckFigures(
        seats=seats,
        matches=len(squares),
        deviation=float(np.sqrt(total[0])),
        hand=hand,
        bots=bots,
        rest=other,
    )


def _between_matches(pairs: Ints, leads: Floats) -> tuple[Floats, Flags]:
    """Return half the variance of a duel's lead that neither the hand nor the bots explain, by match.

    It shows in the differences between the leads of the same pair in several matches. The second result tells
    which matches belong to a pair that has played several.
    """
    pair, times = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)[1:]
    pair = pair.reshape(-1)
    mean = np.bincount(pair, leads) / times
    repeated = times[pair] > 1
    unbiased = times[pair] / np.maximum(times[pair] - 1, 1)
    return (leads - mean[pair]) ** 2 * unbiased, repeated


def _shares(squares: Floats, seats: int) -> tuple[Floats, Floats]:
    """The shares of hand, bots and rest, and the whole variance; of (B, 3) mean squares."""
    rest = squares[:, 2]
    parts = np.maximum(0, squares[:, :2] - rest[:, None]) / seats
    components = np.concatenate([parts, rest[:, None]], axis=1)
    total = components.sum(axis=1)
    shares = components / np.where(total > 0, total, np.nan)[:, None]
    return np.nan_to_num(shares), total


@dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    """The whole matches of a table size: M matches of k bots in k seats."""

    seats: int
    """k."""
    bots: Ints
    """(M, k) who played, lowest index first."""
    points: Floats
    """(M, k, k) by bot and seat."""
    wins: Floats
    """(M, k, k)"""
    game: Ints
    """(M, k, k) in which of the k games a bot had a seat."""

    def means_of_games(self) -> Floats:
        """(M, k, k) the mean points of the game in which a bot had a seat."""
        match = np.arange(len(self.points))[:, None, None]
        means = np.zeros((len(self.points), self.seats))
        np.add.at(means, (match, self.game), self.points / self.seats)
        return means[match, self.game]


def _whole_matches(results: ResultColumns) -> Iterator[_Whole]:
    """By table size."""
    for seats in np.unique(results.seats).tolist():
        sized = results.of_size(seats)
        whole = np.bincount(sized.match)[sized.match] == seats
        if not whole.any():
            continue
        order = np.flatnonzero(whole)[np.argsort(sized.match[whole], kind="stable")]
        bot = sized.bot[order, :seats].reshape(-1, seats, seats)
        won = ((sized.rank == 1) & ~sized.forfeited)[order, :seats]
        match, game, seat = np.ogrid[: len(bot), :seats, :seats]

        place = match, np.argsort(np.argsort(bot, axis=2), axis=2), seat
        yield _Whole(
            seats=seats,
            bots=np.sort(bot[:, 0], axis=1),
            points=_placed(sized.score[order, :seats].reshape(bot.shape), place),
            wins=_placed(won.reshape(bot.shape), place),
            game=_placed(np.broadcast_to(game, bot.shape), place).astype(np.int64),
        )


def _placed(values: Floats | Ints | Flags, place: tuple[Ints, Ints, Ints]) -> Floats:
    """(M, k, k) values by match, game and seat, put to their place."""
    placed = np.zeros(values.shape)
    placed[place] = values
    return placed
