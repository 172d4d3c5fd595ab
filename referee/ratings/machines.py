"""Estimate on which machines a bot does better than on others.

In the shapes of arrays, K is the number of machines, N of games of a bot, and B of resamples. G and S have the same
meaning as in `ResultColumns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from referee.ratings.intervals import Certainty, Estimate, Resampling, incidence
from referee.result_columns import NOBODY, Flags, Floats, Ints, ResultColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFigures:
    """The results of a bot on one machine."""

    machine: int
    """`StoredMachine.key` of the machine."""
    bot: str
    """`name@version`."""
    games: int
    """Number of games of the bot on the machine."""
    forfeits: int
    """Number of games on the machine that the bot forfeited."""
    matches: int
    """Number of matches in which the bot played on this machine and on another one. Only these count for `lead`.

    Games in which any bot forfeited do not count. A suspended bot forfeits all its further games, and would look bad on the machine
    that plays them.
    """
    lead: Estimate | None
    """How many more points per game the bot gets on this machine than on other machines; None if `matches` is 0.

    It is a weighted mean over the matches that count. The value of a match is the mean points of the bot in its games on
    this machine, minus its mean points in its games on other machines. The weight is h o / (h + o) for h games on this
    machine and o games on others; see `_leads_on_machines`. Before that, the mean points of the seat are subtracted
    from each score, because a machine may play some seatings more often than others."""


def machine_figures(results: ResultColumns) -> tuple[MachineFigures, ...]:
    """Return the figures of each machine and each bot that has played on it, from the games of one ruleset.

    Games without a machine do not count.
    """
    known = results.select(results.machine != NOBODY)
    found = _estimate_machines(known) if len(known) else ()
    return tuple(sorted(found, key=lambda figures: figures.machine))  # keeps the order of the bots


def _estimate_machines(results: ResultColumns) -> Iterator[MachineFigures]:
    """Yield the figures bot by bot."""
    sound = np.logical_not(results.forfeited.any(axis=1))
    points = _points_beyond_the_seat(results, sound)
    resampling = Resampling.from_matches(results.matches)
    for name, (game, seat) in zip(results.bots, _list_seats(results), strict=True):
        machines, machine = np.unique(results.machine[game], return_inverse=True)
        forfeits = np.bincount(machine, results.forfeited[game, seat], len(machines))
        counts = sound[game]
        leads = _leads_on_machines(
            results.match[game[counts]],
            points[game[counts], seat[counts]],
            machine[counts, None] == np.arange(len(machines)),
            resampling,
        )
        columns = zip(
            machines.tolist(),
            np.bincount(machine, minlength=len(machines)).tolist(),
            forfeits.tolist(),
            *leads,
            strict=True,
        )
        for number, games, lost, matches, lead in columns:
            yield MachineFigures(
                machine=number,
                bot=name,
                games=games,
                forfeits=int(lost),
                matches=matches,
                lead=lead if matches else None,
            )


def _list_seats(results: ResultColumns) -> list[tuple[Ints, Ints]]:
    """Return for each bot the row numbers of its games, and its seat in each of them."""
    game, seat = np.nonzero(results.bot != NOBODY)
    bot = results.bot[game, seat]
    ends = np.cumsum(np.bincount(bot, minlength=len(results.bots)))
    parts = np.split(np.argsort(bot, kind="stable"), ends[:-1])
    return [(game[part], seat[part]) for part in parts]


def _points_beyond_the_seat(results: ResultColumns, sound: Flags) -> Floats:
    """Return the (G, S) points of each seat beyond the mean points of this seat.

    The mean is taken over all games without a forfeit at tables of the same size.

    Args:
        results: the games.
        sound: (G,) True for a game without a forfeit. The points of other games are not changed.
    """
    points = results.score.astype(np.float64)
    sizes = np.where(sound, results.seats, 0)
    for size in np.unique(sizes[sound]).tolist():
        points[sizes == size] -= points[sizes == size].mean(axis=0)
    return points


def _leads_on_machines(
    match: Ints, points: Floats, here: Flags, resampling: Resampling
) -> tuple[list[int], list[Estimate]]:
    """Return for each of K machines the number of matches that count, and the lead of a bot; see `MachineFigures`.

    The lead is the slope of a linear regression with an intercept for each match. The regression explains the points of
    the bot by the machine of the game: 1 for this machine, 0 for another one. The slope is the weighted mean that
    `MachineFigures.lead` describes. It is NaN for a machine without a match that counts.

    Args:
        match: (N,) the match of each game of the bot in which no bot forfeited.
        points: (N,) the points of the bot in each game; see `_points_beyond_the_seat`.
        here: (N, K) for each game, True in the column of the machine that played it.
        resampling: resamples of all matches.
    """
    own, place = np.unique(match, return_inverse=True)
    by_match = incidence(place, len(own))
    centred = here - (by_match @ here / by_match.sum(axis=1)[:, None])[place]
    products = np.asarray(by_match @ (centred * points[:, None]))
    squares = np.asarray(by_match @ centred**2)
    sums = sparse.csr_array(np.concatenate([products, squares], axis=1))
    drawn = resampling.sums(incidence(own, len(resampling.group)) @ sums)  # (B, 2 K)
    above, below = np.split(drawn, 2, axis=1)
    matches = (squares > 0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # perhaps no match counts
        values, leads = products.sum(axis=0) / squares.sum(axis=0), above / below
    certainty = Certainty(matches.astype(np.float64))
    return matches.tolist(), certainty.mean_intervals(values, leads)
