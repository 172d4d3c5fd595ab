"""Measure how often two tests are wrong and right: `python tests/bench/bench_hints.py [TOURNAMENTS]`.

Simulated bots (`tests/ratings/simulated.py`) play 200 tournaments of each of several shapes. The first tables are for
`referee stats transitivity`: how often it says that one number per bot misleads. Wanted are at most 5 % if one number explains all
results, and at least 95 % if six bots in duels form a cycle, in which each does better against the next one by a standard
deviation of a game's performance.

The other tables are for `referee stats collusion`. Wanted are hints in at most 5 % of the tournaments in which nobody
colludes. The power is the share of the tournaments in which bot 0 gets help from bot 1 and the hint names this pair.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ratings"))

from simulated import BETA, cycle, play, styles, tables

from referee.ratings.analysis import Analysis
from referee.ratings.collusion import collusion_figures

SHAPES = [
    (4, 2, 4),
    (4, 2, 30),
    (6, 2, 30),
    (10, 2, 4),
    (5, 3, 3),
    (10, 3, 1),
    (8, 4, 1),
    (6, 5, 5),
]
"""Bots, seats, matches at each table."""
SPREADS = [0.36, 1.0, 2.0]
"""Standard deviations of the bots' skills, in standard deviations of a game's performance."""
TIE = BETA / 2
COLLUSION_SHAPES = [(5, 3, 6), (6, 4, 10), (8, 4, 3), (6, 2, 30), (10, 3, 6)]
STYLES = [(0.0, 1.0), (0.2, 1.0), (0.5, 1.0), (1.0, 0.2)]
"""Standard deviation of the effects of styles in standard deviations of points, and the share of the pairs that have it."""
HELP = [1, 2, 3]
"""Standard deviations of points."""


def main(tournaments: int) -> None:
    print(
        f"transitivity: alarms in {tournaments} tournaments each, one number explains all results"
    )
    print(f"bots seats matches | spread {SPREADS}; with ties; with ties, unbalanced")
    for shape in SHAPES:
        cells = [
            " ".join(f"{alarms(tournaments, shape, spread, **kind):6.1%}" for spread in SPREADS)
            for kind in ({}, {"tie": TIE}, {"tie": TIE, "unbalanced": True})
        ]
        print("{:4} {:5} {:7}".format(*shape), f"| {' ; '.join(cells)}", flush=True)
    print("cycles of one standard deviation that are found, six bots, duels, 30 matches a pair")
    for size in (3, 6):
        found = [alarms(tournaments, (6, 2, 30), spread, circle=size) for spread in SPREADS]
        print(
            f"{size} bots in the cycle:", " ".join(f"{share:6.1%}" for share in found), flush=True
        )
    print(
        "collusion: tournaments with a hint although nobody colludes, by styles (deviation, share)"
    )
    print(f"bots seats matches | {STYLES}")
    for shape in COLLUSION_SHAPES:
        rates = [hints(tournaments, shape, style)[0] for style in STYLES]
        print(
            "{:4} {:5} {:7} |".format(*shape),
            " ".join(f"{rate:6.1%}" for rate in rates),
            flush=True,
        )
    print(f"collusion: tournaments in which the pair is found, for help of {HELP}")
    print("bots seats matches | styles 0; 0.2; 0.5")
    for shape in COLLUSION_SHAPES:
        cells = [
            " ".join(f"{hints(tournaments, shape, style, help_by)[1]:5.0%}" for help_by in HELP)
            for style in STYLES[:3]
        ]
        print("{:4} {:5} {:7} |".format(*shape), " ; ".join(cells), flush=True)


def alarms(tournaments, shape, spread, *, tie=0.0, unbalanced=False, circle=0) -> float:
    """Return the share of the tournaments in which one number per bot misleads.

    Args:
        tournaments: how many are simulated.
        shape: bots, seats, matches at each table.
        spread: see `SPREADS`.
        tie: see `simulated.play`.
        unbalanced: play some tables much more often than others.
        circle: the number of bots in a cycle of one standard deviation.
    """
    rng = np.random.default_rng(1)
    bots, seats, matches = shape
    seating = tables(*shape)
    effects = np.zeros((bots, bots))
    effects[:circle, :circle] = cycle(circle, BETA) if circle else 0
    found = 0
    for _ in range(tournaments):
        often = np.tile(rng.random(len(tables(bots, seats, 1))), matches)
        played = seating[rng.random(len(seating)) < often] if unbalanced else seating
        skills = rng.normal(25, spread * BETA, bots)
        results = play(skills, played, rng, effects=effects, tie=tie)
        found += Analysis(results).transitivity.misleads
    return found / tournaments


def hints(tournaments, shape, style, help_by=0.0) -> tuple[float, float]:
    """Return the share of the tournaments with a hint at any pair, and with the hint that bot 1 helps bot 0."""
    rng = np.random.default_rng(1)
    bots, seats, _ = shape
    seating = tables(*shape)
    anybody = helped = 0
    for _ in range(tournaments):
        effects, unit = styles(bots, seats, rng, deviation=style[0], common=style[1])
        effects[0, 1] += help_by * unit
        results = play(rng.normal(25, BETA / 2, bots), seating, rng, effects=effects)
        found = {(each.bot, each.other) for each in collusion_figures(results) if each.suspicious}
        anybody += bool(found)
        helped += ("bot00", "bot01") in found
    return anybody / tournaments, helped / tournaments


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
