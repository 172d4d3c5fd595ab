"""Measure how often a tournament that stops early is wrong: `python tests/bench/bench_settled.py [TOURNAMENTS]`.

Simulated bots of known strength play rounds of all tables. They stop when every two neighbours in the standings
are told apart or called equal, with a confidence of 95 %. The standings are wrong if they put a bot above a
better one, or call two bots equal that differ by more than the margin. Wanted are at most 5 % of the settled
tournaments. The last columns are the same for a naive rule, which treats every check as the only one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ratings"))

from simulated import play, tables

from referee.ratings.analysis import Analysis
from referee.ratings.stopping import (
    StopCondition,
    Verdict,
    all_settled,
    compare_neighbours,
    look_rounds,
)

ROUNDS = 60
UNTIL = StopCondition(confidence=0.95, margin=1.0)
SHAPES = [(4, 4, 2.0), (5, 4, 2.0), (5, 3, 0.5), (6, 2, 2.0)]
"""Bots, seats, standard deviation of the skills."""


def main(tournaments: int) -> None:
    print(f"{tournaments} tournaments each, at most {ROUNDS} rounds, confidence 95 %, margin 1.0")
    print("bots seats spread | settled  wrong of these  rounds | naive: settled  wrong  rounds")
    for bots, seats, spread in SHAPES:
        shown = [
            outcome(bots, seats, spread, tournaments, shared)
            for shared in (len(look_rounds(ROUNDS)), None)
        ]
        (settled, wrong, rounds), (n_settled, n_wrong, n_rounds) = shown
        print(
            f"{bots:4} {seats:5} {spread:6} | {settled:7.0%} {wrong:15.1%} {rounds:7.1f}"
            f" | {n_settled:14.0%} {n_wrong:6.1%} {n_rounds:7.1f}"
        )


def outcome(bots, seats, spread, tournaments, shared) -> tuple[float, float, float]:
    """Return the share of settled tournaments, the share of wrong ones among them, and the mean rounds.

    The permitted error is divided by the number `shared` of checks. With None, the naive rule, it is not even
    divided by the number of neighbours.
    """
    rng = np.random.default_rng(1)
    settled = wrong = 0
    rounds = []
    for _ in range(tournaments):
        skills = rng.normal(25, spread, bots)
        whole = play(skills, tables(bots, seats, ROUNDS), rng)
        played, table = stop(whole, shared or 1 / (bots - 1))
        rounds.append(played)
        if table:
            settled += 1
            wrong += is_wrong(table, dict(zip(whole.bots, skills, strict=True)))
    return settled / tournaments, wrong / max(1, settled), float(np.mean(rounds))


def stop(whole, shared):
    """Return the rounds until the tournament stops and its table then; an empty table if it never stops."""
    per_round = whole.matches // ROUNDS
    for played in look_rounds(ROUNDS):
        first_rounds = whole.select(whole.match < played * per_round)
        [table] = compare_neighbours([Analysis(first_rounds)], UNTIL, looks=shared)
        if all_settled([table]):
            return played, table
    return ROUNDS, []


def is_wrong(table, truth) -> bool:
    """Return True if a verdict of the table contradicts the true skills."""
    return any(
        truth[each.bot] < truth[each.below]
        if each.verdict is Verdict.AHEAD
        else abs(truth[each.bot] - truth[each.below]) > UNTIL.margin
        for each in table
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
