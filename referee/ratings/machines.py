"""Estimate on which machines a bot does better than on others.

In the shapes of arrays, M is the number of matches. G and S are the games and seats of `ResultColumns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from referee.ratings.intervals import Certainty, Estimate, Resampling
from referee.result_columns import NOBODY, Flags, Floats, ResultColumns


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
    """Points per game of the bot on this machine minus its points on other machines, in the same matches; see `_lead_on_machine`. Each
    score counts without the mean points of its seat, because a machine may play some seatings more often. None if `matches` is 0."""


def machine_figures(results: ResultColumns) -> tuple[MachineFigures, ...]:
    """Return the figures of each machine and each bot that has played on it, from the games of one ruleset.

    Games without a machine do not count.
    """
    known = results.select(results.machine != NOBODY)
    return tuple(_estimate_machines(known)) if len(known) else ()


def _estimate_machines(results: ResultColumns) -> Iterator[MachineFigures]:
    points = _points_beyond_the_seat(results)
    sound = np.logical_not(results.forfeited.any(axis=1, keepdims=True))
    resampling = Resampling.from_matches(results.matches)
    for machine in np.unique(results.machine).tolist():
        here = results.machine == machine
        for bot, name in enumerate(results.bots):
            is_seat = results.bot == bot
            is_seat_here = is_seat & here[:, None]
            if is_seat_here.any():
                matches, lead = _lead_on_machine(results, points, is_seat & sound, here, resampling)
                yield MachineFigures(
                    machine=machine,
                    bot=name,
                    games=int(is_seat_here.sum()),
                    forfeits=int(results.forfeited[is_seat_here].sum()),
                    matches=matches,
                    lead=lead,
                )


def _points_beyond_the_seat(results: ResultColumns) -> Floats:
    """Return the (G, S) points minus the mean points of the seat at tables of the same size."""
    points = results.score.astype(np.float64)
    sizes = results.seats
    for size in np.unique(sizes).tolist():
        points[sizes == size] -= points[sizes == size].mean(axis=0)
    return points


def _lead_on_machine(
    results: ResultColumns, points: Floats, is_seat: Flags, here: Flags, resampling: Resampling
) -> tuple[int, Estimate | None]:
    """Return the number of matches that count, and the lead of a bot on a machine; see `MachineFigures`.

    The lead is the slope of a linear regression with an intercept for each match: the points of the bot, explained by whether the game
    was played on this machine (1) or on another one (0).

    Args:
        results: the games of one ruleset.
        points: (G, S) see `_points_beyond_the_seat`.
        is_seat: (G, S) True in the seat of the bot.
        here: (G,) True for the games on the machine.
        resampling: resamples of the matches of `results`.
    """
    played = is_seat.any(axis=1)
    match = results.match[played]

    def sums(values: Floats) -> Floats:
        """Return the (M,) sums of a value of each game of the bot."""
        return np.bincount(match, values, results.matches).astype(np.float64)

    games = np.maximum(1, sums(np.ones(len(match))))
    gained = (points * is_seat).sum(axis=1)[played]
    is_here = here[played].astype(np.float64)
    centred = is_here - (sums(is_here) / games)[match]
    by_match = np.stack([sums(centred * gained), sums(centred**2)], axis=1)
    matches = int((by_match[:, 1] > 0).sum())
    if not matches:
        return 0, None
    total = by_match.sum(axis=0)
    drawn = resampling.sums(by_match)
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample may have no match that counts
        leads = (drawn[:, 0] / drawn[:, 1])[:, None]
    certainty = Certainty(np.array([float(matches)]))
    [lead] = certainty.mean_intervals(np.array([total[0] / total[1]]), leads)
    return matches, lead
