"""Measure how often 95 % intervals cover the true value: `python tests/bench/bench_calibration.py [TOURNAMENTS]`.

Simulated bots of known strength (`tests/ratings/simulated.py`) play 200 tournaments of each of several shapes.
Wanted are 93 to 97 % for the fit, the mean score and the share of games won. The last column is the same for
the interval of sequential TrueSkill, mu plus or minus 1.96 sigma.

The second table has the share of games won for 2 to 10 bots at 2 to 5 seats, by the number of matches of each bot (wanted: 93 to 100 % for 2 to 8
matches, 93 to 97 % for more). It has ten times as many tournaments, divided by the number of bots. The third table has the
fit of four bots beside a fifth one that loses nearly all games. The fourth table has the lead of two nearly identical bots: one wins both games in a share
of the matches, and each wins one game in the others. It is exact, without chance. The fifth table has the fit after a ladder of duels, and after as
many games of a round robin; it has a quarter of the tournaments. The sixth table has the shares of `stats luck`
(wanted: 93 to 100 % if there are more than two bots).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
from bench_ladder import Shape, play_looks
from scipy.special import ndtri
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ratings"))

from simulated import BETA, covers, games, play, tables, true_ratings, true_scores, true_win_shares

from referee.ratings.analysis import Analysis
from referee.ratings.effects import luck_figures
from referee.ratings.intervals import sum_matches
from referee.ratings.trueskill import rate
from referee.ratings.win_shares import win_share_intervals
from referee.schedule.balanced import balanced_tables

SHAPES = [(5, 4, 12), (6, 4, 4), (8, 4, 1), (10, 3, 1), (6, 2, 10)]
"""Bots, seats, matches at each table."""
SPREADS = [1.5, 4.0]
"""Standard deviations of the bots' skills; a bot that is better by 25/6 wins 76 % of its duels."""
MATCHES = [2, 4, 8, 10, 12, 15, 20, 30]
"""Matches of each bot in the table of the share of games won."""
EVEN = 0.5
"""The standard deviation of the skills of bots that are nearly equal."""
GAPS = [14, 17, 20, 24, 30]
"""By how much the last of five bots is weaker than the mean of the others."""
RARE = [0.02, 0.05, 0.1, 0.2]
"""Shares of the matches in which the better one of two nearly identical bots wins both games."""
RARE_MATCHES = [5, 10, 20, 40, 100]
"""Matches of the two nearly identical bots."""
LADDERS = [(8, 400, 0.0), (8, 400, 0.5), (8, 400, 3.0), (8, 2000, 0.0), (16, 800, 1.0)]
"""Bots, games, and standard deviation of the skills, in the table of ladders."""
LUCK_SHAPES = [(6, 2, 2), (6, 2, 10), (2, 2, 4), (2, 2, 10), (2, 2, 40), (6, 3, 2), (6, 4, 2)]
"""Bots, seats, and matches at each table, in the table of `stats luck`."""


def main(tournaments: int) -> None:
    print(f"95 % intervals that cover the truth, of {tournaments} tournaments each")
    print(
        f"{'bots':>4} {'seats':>5} {'matches':>7} {'spread':>6} | rating  score    won | TrueSkill"
    )
    everything = []
    for shape in SHAPES:
        for spread in SPREADS:
            shares = coverage(*shape, spread, tournaments)
            everything.append(shares)
            shown = " ".join(f"{share:6.1%}" for share in shares[:3])
            print("{:4} {:5} {:7}".format(*shape), f"{spread:6} | {shown} | {shares[3]:8.1%}")
    means = np.mean(everything, axis=0)
    print(f"{'all':>25} | {' '.join(f'{share:6.1%}' for share in means[:3])} | {means[3]:8.1%}")
    print("matches | shapes | won: least   mean   most | outside 93 to 97 %")
    for matches in MATCHES:
        covered = np.array([coverage_won(*shape, tournaments) for shape in won_shapes(matches)])
        least, mean, most = covered.min(), covered.mean(), covered.max()
        outside = ((covered < 0.93) | (covered > 0.97)).mean()
        print(
            f"{matches:7} | {len(covered):6} | {least:10.1%} {mean:6.1%} {most:6.1%} | {outside:6.1%}"
        )
    print("gap | rating of the others")
    for gap in GAPS:
        print(f"{gap:3} | {coverage_beside(gap, tournaments):6.1%}")
    print(
        "share | lead of nearly identical bots, after matches: " + " ".join(map(str, RARE_MATCHES))
    )
    for share in RARE:
        shown = " ".join(f"{coverage_identical(share, matches):6.1%}" for matches in RARE_MATCHES)
        print(f"{share:5} | {shown}")
    print("bots games spread | ladder  round robin")
    for ladder in LADDERS:
        shown = " ".join(f"{share:6.1%}" for share in coverage_ladder(*ladder, tournaments // 4))
        print("{:4} {:5} {:6}".format(*ladder), f"| {shown}", flush=True)
    print("bots seats matches |   hand   bots   rest")
    for shape in LUCK_SHAPES:
        shown = " ".join(f"{share:6.1%}" for share in coverage_luck(*shape, tournaments))
        print("{:4} {:5} {:7}".format(*shape), f"| {shown}")


def coverage(bots: int, seats: int, matches: int, spread: float, tournaments: int) -> np.ndarray:
    """Return the shares of covered values for rating, score, games won, and sequential TrueSkill."""
    rng = np.random.default_rng(1)
    seating = tables(bots, seats, matches)
    covered = []
    for _ in range(tournaments):
        skills = rng.normal(25, spread, bots)
        results = play(skills, seating, rng)
        analysis = Analysis(results)
        found = analysis.bots()
        truths = (
            true_ratings(skills, analysis.centre),
            true_scores(skills, seating),
            true_win_shares(skills, seating),
        )
        estimates = (
            [each.rating for each in found],
            [each.score for each in found],
            [each.win_share for each in found],
        )
        row = [
            np.mean([covers(each, value) for each, value in zip(own, true, strict=True)])
            for own, true in zip(estimates, truths, strict=True)
        ]
        covered.append([*row, claimed(results, skills)])
    return np.mean(covered, axis=0)


def won_shapes(matches: int) -> list[tuple[int, int, int, float]]:
    """Return bots, seats, matches of each bot and spread of all shapes in which each bot can play so many matches."""
    return [
        (bots, seats, matches, spread)
        for seats in range(2, 6)
        for bots in range(seats, 11)
        for spread in (EVEN, *SPREADS)
        if bots * matches % seats == 0
    ]


def coverage_won(bots: int, seats: int, matches: int, spread: float, tournaments: int) -> float:
    """Return the share of covered shares of games won."""
    rng = np.random.default_rng(1)
    rounds = balanced_tables(bots, seats, bots * matches // seats)
    seating = np.array(list(chain.from_iterable(rounds)))
    covered = []
    for _ in range(10 * tournaments // bots):
        skills = rng.normal(25, spread, bots)
        found = win_share_intervals(sum_matches(play(skills, seating, rng)))
        covered += map(covers, found, true_win_shares(skills, seating))
    return float(np.mean(covered))


def coverage_beside(gap: float, tournaments: int) -> float:
    """Return the share of covered ratings of four bots beside a fifth that is weaker by `gap`."""
    rng = np.random.default_rng(1)
    seating = tables(5, 4, 12)
    covered = []
    for _ in range(tournaments):
        skills = rng.normal(25, SPREADS[0], 5)
        skills[-1] = skills[:-1].mean() - gap
        analysis = Analysis(play(skills, seating, rng))
        others = zip(analysis.bots()[:-1], true_ratings(skills, analysis.centre), strict=False)
        covered += [covers(each.rating, true) for each, true in others]
    return float(np.mean(covered))


def coverage_identical(share: float, matches: int) -> float:
    """Return how likely the lead is covered, if the first of two bots wins both games in a share of the matches."""
    lead = np.sqrt(2) * BETA * ndtri((1 + share) / 2)
    even = play(np.zeros(2), tables(2, 2, matches), np.random.default_rng(1))
    covered = 0.0
    for decided in range(matches + 1):
        won = (even.bot == 0) == ((even.match < decided) | (np.arange(2 * matches) % 2 == 0))[
            :, None
        ]
        pair = Analysis(replace(even, rank=np.where(won, 1, 2))).pair("bot00", "bot01")
        covered += binom.pmf(decided, matches, share) * covers(pair.rating_lead, lead)
    return covered


def coverage_ladder(bots: int, games: int, spread: float, tournaments: int) -> np.ndarray:
    """Return the shares of covered ratings after a ladder of duels, and after as many games of a round robin."""
    rng = np.random.default_rng(1)
    shape = Shape("ladder", 2, games // 2, None, bots)
    pairs = tables(bots, 2, 1)
    covered = []
    for _ in range(tournaments):
        skills = rng.normal(25, spread, bots)
        *_, ladder = play_looks(shape, skills, rng)
        robin = play(skills, np.resize(pairs, (games // 2, 2)), rng)
        row = []
        for results in (ladder, robin):
            analysis = Analysis(results)
            truth = true_ratings(skills, analysis.centre)
            found = [each.rating for each in analysis.bots()]
            row.append(np.mean(list(map(covers, found, truth))))
        covered.append(row)
    return np.mean(covered, axis=0)


def coverage_luck(bots: int, seats: int, matches: int, tournaments: int) -> np.ndarray:
    """Return the shares of covered values for the shares of hand, bots and rest."""
    rng = np.random.default_rng(1)
    seating = tables(bots, seats, matches)
    covered = []
    for _ in range(tournaments):
        skills = rng.normal(25, SPREADS[0], bots)
        [found] = luck_figures(play(skills, seating, rng, luck=0.5))
        variances = np.array([BETA**2 / 2, skills.var(ddof=1), BETA**2 / 2])
        estimates = found.hand, found.bots, found.rest
        covered.append(list(map(covers, estimates, variances / variances.sum())))
    return np.mean(covered, axis=0)


def claimed(results, skills) -> float:
    """Return the share for sequential TrueSkill, after moving its ratings to the mean of the true skills."""
    table = rate(games(results))["basic"]
    ratings = [table[bot] for bot in results.bots]
    mean = np.mean([rating.mu for rating in ratings])
    truth = skills - skills.mean() + mean
    return float(
        np.mean(
            [
                abs(each.mu - true) <= 1.96 * each.sigma
                for each, true in zip(ratings, truth, strict=True)
            ]
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
