"""Measure how many games a ladder needs for the right order of ten bots: `python tests/bench/bench_ladder.py [LADDERS]`.

Simulated bots of known strength play matches: on a ladder whose bots have not played before, and in a round robin. The order is
right if no bot has a higher fit than one that is better by `TOLERANCE` or more. The table shows medians: after how many games the order was right
for the first time, and after how many it was right for good, up to the last game. Wanted are fewer games on the ladder.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from bench_settled import add_games

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ratings"))

from simulated import play

from referee.ratings.information import Beliefs, PairSums
from referee.toml_file import check
from referee.tournament.config import LadderStart
from referee.tournament.config_file import TournamentFile
from referee.tournament.config_reader import make_config
from referee.tournament.ladder import make_course

BOTS = 10
TOLERANCE = 1.0


@dataclass(frozen=True)
class Shape:
    """A kind of league: the number of seats, and the skills of the bots."""

    name: str
    seats: int
    matches: int
    gap: float | None
    """The skill of a bot minus that of the next one; None if skills are drawn at random, with the deviation 3."""
    bots: int = BOTS

    def draw_skills(self, rng):
        """Return the (n,) skills of the bots, in random order."""
        if self.gap is None:
            return rng.normal(25, 3, BOTS)
        return rng.permutation(25 - self.gap * np.arange(BOTS))


SHAPES = [
    Shape("duels, even gaps", 2, 800, 1.5),
    Shape("duels, random gaps", 2, 800, None),
    Shape("4 seats, even gaps", 4, 200, 1.5),
    Shape("4 seats, random gaps", 4, 200, None),
]


def main(ladders: int) -> None:
    print(
        f"{BOTS} bots, {ladders} ladders each; games until the order is right, first and for good"
    )
    print(f"{'shape':22}| round robin |   ladder    | ladder / round robin")
    for shape in SHAPES:
        rng = np.random.default_rng(1)
        skills = [shape.draw_skills(rng) for _ in range(ladders)]
        robin, ladder = (
            np.median([measure(shape, each, kind, rng) for each in skills], axis=0)
            for kind in (play_round_robin, play_ladder)
        )
        first, good = ladder / robin
        print(
            f"{shape.name:22}| {robin[0]:5.0f} {robin[1]:5.0f} | {ladder[0]:5.0f} {ladder[1]:5.0f}"
            f" | {first:5.2f} {good:5.2f}",
            flush=True,
        )


def measure(shape, skills, kind, rng):
    """Return after how many games the order was right for the first time, and from when on it stayed right."""
    right = [(games, is_right(skills, fits)) for games, fits in kind(shape, skills, rng)]
    most = right[-1][0]
    first = next((games for games, fits in right if fits), most)
    wrong = [number for number, (_, fits) in enumerate(right) if not fits]
    good = 0 if not wrong else wrong[-1] + 1
    return first, right[good][0] if good < len(right) else most


def is_right(skills, fits):
    """Return True if no bot has a higher fit than one that is better by `TOLERANCE` or more."""
    better = skills[:, None] - skills >= TOLERANCE
    return not (better & (fits[:, None] <= fits)).any()


def play_round_robin(shape, skills, rng):
    """Yield the number of games and the fits after every few matches of a round robin, whose tables come in random order."""
    tables = list(combinations(range(BOTS), shape.seats))
    orders = []
    while len(orders) < shape.matches:
        orders += [rng.permutation(tables[number]) for number in rng.permutation(len(tables))]
    games = None
    for first in range(0, shape.matches, 20 // shape.seats):
        games = add_games(
            games, play(skills, np.array(orders[first : first + 20 // shape.seats]), rng)
        )
        yield len(games), fit(games)


def play_ladder(shape, skills, rng):
    """Yield the number of games and the fits after each look of a ladder."""
    for games in play_looks(shape, skills, rng):
        yield len(games), fit(games)


def play_looks(shape, skills, rng):
    """Yield all games so far after each look of a ladder."""
    course, games = make_course(make_ladder(shape)), None
    seats = shape.seats
    while (look := course.next_look) is not None:
        results = play(skills, np.zeros((0, seats), dtype=int), rng) if games is None else games
        course.take_look(results)
        following = course.next_look
        end = len(course.games) if following is None else following.games
        orders = [
            [int(bot[3:5]) for bot in game.bots] for game in course.games[look.games : end : seats]
        ]
        games = add_games(games, play(skills, np.array(orders), rng))
        yield games


def fit(games):
    """Return the (n,) fits after `games`."""
    [results] = games.by_ruleset().values()
    return Beliefs.from_sums(PairSums.from_results(games.bots, results)).skills


def make_ladder(shape):
    """Return the configuration of a ladder whose bots have not played before."""
    file = Path("ladder")
    content = {
        "name": "ladder",
        "bots": [f"bot{number:02}" for number in range(shape.bots)],
        "ruleset": "basic",
        "seats": shape.seats,
        "budget": shape.matches * shape.seats,
    }
    config = make_config(file, check(content, TournamentFile, file))
    [stage] = config.stages
    return replace(
        config,
        lanes=4,
        schedule="ladder-2",
        stages=(replace(stage, balanced=True, matches=shape.matches),),
        ladder=LadderStart(earlier=(), minutes=60.0),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
