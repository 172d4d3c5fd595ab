"""Measure how often `tournament compare` is right, wrong or without a verdict: `python tests/bench/bench_compare.py [COMPARISONS]`.

Two simulated bots play duels with duplicate deals, at most as many as by default, until one is surely better or both are surely equal
within the margin. Each line is for another true lead in rating. A verdict is wrong if it calls the weaker bot better, one of two
equal bots better, or two bots equal whose ratings differ by the margin or more. Wanted are at most 5 % wrong verdicts in each line.

The last lines are for nearly identical bots: nearly always the hand decides, so that both win one game of the match. In a
small share of the matches, the better bot wins both games.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.special import ndtri

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ratings"))

from simulated import BETA, play, tables

from referee.cli.compare import MAX_COMPARED_GAMES
from referee.cli.tournament import BOTS_TO_COMPARE as SEATS
from referee.ratings.analysis import Analysis
from referee.ratings.intervals import Resampling
from referee.ratings.judge import Judge, Verdict
from referee.ratings.stopping import StopCondition, look_rounds
from referee.result_columns import Ints, ResultColumns

UNTIL = StopCondition()
MATCHES = MAX_COMPARED_GAMES // SEATS
LEADS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
"""True leads of the better bot, in points of rating. A lead of 4.17 wins three games of four."""
RARE = (0.0, 0.02, 0.14, 0.2)
"""Shares of rare matches of nearly identical bots. A share of 0.135 is a lead of 1."""
BETTER = "bot01"

Resampling.from_matches = cache(
    Resampling.from_matches
)  # most of the time; it depends only on the number of matches


def main(comparisons: int) -> None:
    print(
        f"{comparisons} comparisons each, at most {MAX_COMPARED_GAMES} games, confidence"
        f" {UNTIL.confidence:.0%}, margin {UNTIL.margin}"
    )
    print("lead | better  worse  equal  not known | wrong | games: mean  median  90 %")
    table = tables(2, SEATS, MATCHES)
    for lead in LEADS:
        skills = np.array([25.0, 25.0 + lead])
        measure(lead, partial(play, skills, table), comparisons)
    print("nearly identical bots")
    for share in RARE:
        lead = float(np.sqrt(2) * BETA * ndtri((1 + share) / 2))
        measure(lead, partial(play_nearly_identical, share, table), comparisons)


def measure(
    lead: float, play_all: Callable[[np.random.Generator], ResultColumns], comparisons: int
) -> None:
    """Print the line for a true lead. `play_all` returns the results of all matches of a comparison."""
    rng = np.random.default_rng(1)
    found = [compare(play_all(rng)) for _ in range(comparisons)]
    counts = Counter(verdict for verdict, _ in found)
    games = np.array([games for _, games in found])
    wrong = counts["worse"]
    wrong += counts["better"] if lead == 0 else 0
    wrong += counts["equal"] if lead >= UNTIL.margin else 0
    shares = [counts[each] / comparisons for each in ("better", "worse", "equal", "open")]
    print(
        f"{lead:4.1f} | {shares[0]:6.1%} {shares[1]:6.1%} {shares[2]:6.1%} {shares[3]:10.1%}"
        f" | {wrong / comparisons:5.1%} | {games.mean():11.0f} {np.median(games):7.0f}"
        f" {np.quantile(games, 0.9):5.0f}",
        flush=True,
    )


def play_nearly_identical(share: float, table: Ints, rng: np.random.Generator) -> ResultColumns:
    """Return the results if seat 0 wins every game, but the better bot wins both games of a `share` of the matches."""
    whole = play(np.array([25.0, 25.0]), table, rng)
    rare = rng.random(len(table)) < share
    won = np.where(
        rare[whole.match][:, None], whole.bots.index(BETTER) == whole.bot, np.arange(SEATS) == 0
    )
    return replace(whole, rank=np.where(won, 1, 2))


def compare(whole: ResultColumns) -> tuple[str, int]:
    """Return the verdict about two bots, from the side of the better one, and the number of games until it was known."""
    looks = tuple(look_rounds(MATCHES))
    judge, earlier = Judge(UNTIL, looks), None
    for rounds in looks:
        games = whole.select(slice(rounds * SEATS)).by_ruleset()
        verdicts = judge.look(
            {name: Analysis(each) for name, each in games.items()}, rounds, earlier
        )
        [[pair]] = verdicts.neighbours.values()
        if pair.verdict is Verdict.AHEAD:
            return "better" if pair.bot == BETTER else "worse", rounds * SEATS
        if pair.verdict is Verdict.EQUAL:
            return "equal", rounds * SEATS
        earlier = verdicts
    return "open", MATCHES * SEATS


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
