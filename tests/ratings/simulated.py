"""Simulate tournaments of bots with known strength, for benches and tests of the statistics.

The performance of a seat is the skill of its bot plus a normal deviation with standard deviation `beta`, as in
TrueSkill. A part of the deviation comes from the hand: seat s of a deal has the same hand in each seating of the
match. So the games of a match are not independent, as in a real tournament. A better performance ranks higher.
Points are a multiple of the lead over the mean of the other seats.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import ndtr

from referee.ratings.trueskill import Settings
from referee.records import GameResult
from referee.result_columns import NOBODY, ResultColumns

BETA = Settings().beta
POINTS = 1.5
"""Points for each unit of skill."""


def tables(bots, seats, matches):
    """Return all tables, repeated `matches` times, as (M, seats) bots."""
    return np.array([table for _ in range(matches) for table in combinations(range(bots), seats)])


def play(skills, tables, rng, *, luck=0.5, effects=None, tie=0.0):
    """Return the results if each table plays a match, in the order of play.

    Args:
        skills: (n,) the true skill of each bot.
        tables: (M, k) the bots of each match.
        luck: the share of the variance of a performance that comes from the hand.
        effects: (n, n) by how much the performance of the row's bot is better for each game with the column's bot; None for 0.
        tie: performances are rounded to multiples of this before they are ranked; 0 for no ties.
    """
    matches, seats = tables.shape
    hands = rng.normal(0, BETA * np.sqrt(luck), (matches, 1, seats))
    turns = (np.arange(seats)[:, None] + np.arange(seats)) % seats
    bots = tables[:, turns]  # (M, seating, seat)
    noise = rng.normal(0, BETA * np.sqrt(1 - luck), bots.shape)
    performance = skills[bots] + hands + noise
    if effects is not None:
        performance += effects[bots[..., :, None], bots[..., None, :]].sum(axis=-1)
    performance = performance.reshape(-1, seats)
    bots = bots.reshape(-1, seats)
    others = (performance.sum(axis=1, keepdims=True) - performance) / (seats - 1)
    ranked = np.round(performance / tie) if tie else performance
    ranks = (ranked[:, None, :] > ranked[:, :, None]).sum(axis=2) + 1
    return ResultColumns(
        rulesets=("basic",),
        ruleset=np.zeros(len(bots), dtype=np.int64),
        bots=tuple(f"bot{number:02}" for number in range(len(skills))),
        match=np.repeat(np.arange(matches), seats),
        bot=bots,
        score=np.rint(POINTS * (performance - others)).astype(np.int64),
        rank=ranks,
        forfeited=np.zeros_like(bots, dtype=bool),
        strikes=np.zeros_like(bots),
        machine=np.full(len(bots), NOBODY),
        fresh_deal=np.zeros(len(bots), dtype=bool),
    )


def cycle(bots, size):
    """Return `play`'s effects if each bot does better against the next one by `size`, in skill, and the last one against the first."""
    effects = np.zeros((bots, bots))
    for bot in range(bots):
        other = (bot + 1) % bots
        effects[bot, other] += size / 2
        effects[other, bot] -= size / 2
    return effects


def styles(bots, seats, rng, *, deviation, common=1.0):
    """Return random effects of styles for `play`, one for each ordered pair, and the unit: a standard deviation of points.

    Args:
        deviation: the standard deviation of the effects, in standard deviations of a bot's points in a game.
        common: the share of the pairs with effects of `deviation`; the others have effects of 0.2.
    """
    unit = BETA * np.sqrt(seats / (seats - 1))
    wide = rng.random((bots, bots)) < common
    effects = rng.normal(0, np.where(wide, deviation, 0.2)) * unit
    np.fill_diagonal(effects, 0)
    return effects, unit


def games(results):
    """Yield the games as `GameResult`s, in the order of play."""
    for match, bots, scores, ranks, seats in zip(
        results.match, results.bot, results.score, results.rank, results.seats, strict=True
    ):
        yield GameResult(
            game_id="",
            tournament="simulated",
            index=0,
            ruleset="basic",
            round=1,
            match=int(match),
            bots=tuple(results.bots[bot] for bot in bots[:seats]),
            scores=tuple(scores[:seats].tolist()),
            ranks=tuple(ranks[:seats].tolist()),
            forfeited=(),
        )


def true_ratings(skills, centre):
    """Return the (n,) skills, shifted like the fit. `centre` is `Analysis.centre`."""
    return skills - skills[centre].mean() + Settings().mu


def covers(estimate, value):
    """Return True if the interval of an estimate covers a value; an end that is None is open."""
    return (estimate.low is None or estimate.low <= value) and (
        estimate.high is None or value <= estimate.high
    )


def true_scores(skills, tables):
    """Return the (n,) expected points per game of each bot at these tables."""
    at_table = skills[tables]
    seats = tables.shape[1]
    expected = POINTS * (at_table - (at_table.sum(axis=1, keepdims=True) - at_table) / (seats - 1))
    return _mean_by_bot(tables, expected, len(skills))


def true_win_shares(skills, tables):
    """Return the (n,) expected share of games that each bot wins at these tables."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    weights = weights / weights.sum()
    at_table = skills[tables]
    shares = np.empty(at_table.shape)
    for seat in range(tables.shape[1]):
        others = np.delete(at_table, seat, axis=1)
        mine = at_table[:, seat, None] + BETA * nodes
        beats = ndtr((mine[:, :, None] - others[:, None, :]) / BETA)
        shares[:, seat] = beats.prod(axis=2) @ weights
    return _mean_by_bot(tables, shares, len(skills))


def _mean_by_bot(tables, values, bots):
    return np.array([values[tables == bot].mean() for bot in range(bots)])
