"""Estimate on which machines a bot does better than on others.

In the shapes of arrays, K is the number of machines, and N is the number of games of a bot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from referee.ratings.intervals import Certainty, Estimate, Resampling, incidence
from referee.result_columns import NOBODY, Flags, Floats, Ints, ResultColumns

_NEGLIGIBLE = 1e-9
"""If a result computed from zeros and ones is smaller than this, it is only a rounding error."""


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
    """Number of matches in which the bot played on this machine and on another one; 0 if the seat of the bot decided whether it
    played on this machine.

    Games in which any bot forfeited do not count. A suspended bot forfeits all its further games, and would look bad on the machine
    that plays them.
    """
    lead: Estimate | None
    """How many more points per game the bot gets on this machine than on other machines; None if `matches` is 0.

    It is the slope of a linear regression with an intercept for each match and for each seat of the bot; see `_leads_on_machines`.
    A machine may play some seatings more often than others. So without the intercepts of the seats, a bot that plays seat 0
    well would seem to do better on a machine."""


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
    resampling = Resampling.from_matches(results.matches)
    for name, (game, seat) in zip(results.bots, _list_seats(results), strict=True):
        machines, machine = np.unique(results.machine[game], return_inverse=True)
        forfeits = np.bincount(machine, results.forfeited[game, seat], len(machines))
        counts = sound[game]
        leads = _leads_on_machines(
            results,
            game[counts],
            seat[counts],
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


def _leads_on_machines(
    results: ResultColumns, game: Ints, seat: Ints, here: Flags, resampling: Resampling
) -> tuple[list[int], list[Estimate]]:
    """Return for each of K machines the number of matches that count, and the lead of a bot; see `MachineFigures`.

    The lead is the slope of a linear regression with an intercept for each match and for each seat of the bot. Seats of tables
    of different sizes have different intercepts. The regression explains the points of the bot by the machine of the
    game: 1 for this machine, 0 for another one. The lead is NaN for a machine without a match that counts.

    In each game, the intercepts leave a part of this 0 or 1 unexplained. The weight of a match is the sum of the
    squares of these parts. Perhaps only a few matches have a large weight: those in which a seat was not on its usual
    machine. So the interval is computed as if the lead came from m - t matches. Here m is the number of matches of
    equal weight that would give the lead the same uncertainty. From m, the number t of table sizes is subtracted,
    because the intercepts of the seats have as many degrees of freedom as one match of each size.

    Args:
        results: the games of all bots.
        game: (N,) the row number of each game of the bot in which no bot forfeited.
        seat: (N,) the seat of the bot in each game.
        here: (N, K) for each game, True in the column of the machine that played it.
        resampling: resamples of all matches.
    """
    own, place = np.unique(results.match[game], return_inverse=True)
    by_match = incidence(place, len(own))
    size = (results.bot[game] != NOBODY).sum(axis=1)
    chair = size * results.bot.shape[1] + seat
    values = np.column_stack([here, results.score[game, seat]]).astype(np.float64)
    rest = _subtract_intercepts(values, place, chair)
    machine, points = rest[:, :-1], rest[:, -1:]
    machine[np.abs(machine) < _NEGLIGIBLE] = 0
    squares = np.asarray(by_match @ machine**2)
    whole = squares.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # perhaps no match counts
        leads = (machine * points).sum(axis=0) / whole
        errors = by_match @ (machine * (points - machine * leads)) / whole
        equal = whole**2 / (squares**2).sum(axis=0)
    drawn = resampling.sums(incidence(own, len(resampling.group)) @ sparse.csr_array(errors))
    played = by_match @ here
    both = (played > 0) & (played < np.bincount(place)[:, None])
    matches = (both & (squares > 0)).sum(axis=0)
    certainty = Certainty(equal - len(np.unique(size)))
    return matches.tolist(), certainty.mean_intervals(leads, drawn)


def _subtract_intercepts(values: Floats, match: Ints, chair: Ints) -> Floats:
    """Return what remains of the values after a linear regression with an intercept for each match and for each chair.

    Args:
        values: (N, F) the values of each game, for F regressions.
        match: (N,) the match of each game, counted from 0 without gaps.
        chair: (N,) a number for the size of the table and the seat of the bot.
    """
    by_match = incidence(match, match.max(initial=-1) + 1)
    chairs, number = np.unique(chair, return_inverse=True)
    columns = np.column_stack([values, np.eye(len(chairs))[number]])
    columns -= (by_match @ columns / np.bincount(match)[:, None])[match]
    values, inputs = np.split(columns, [values.shape[1]], axis=1)
    normal = inputs.T @ inputs, inputs.T @ values  # much faster than a fit to the long `inputs`
    rest: Floats = values - inputs @ np.linalg.lstsq(*normal, rcond=_NEGLIGIBLE)[0]
    return rest
