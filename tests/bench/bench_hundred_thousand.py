"""Measure commands on a league of many games: `python tests/bench/bench_hundred_thousand.py [GAMES]`.

Ten bots play at tables of four. Ranks and points are drawn by strength, with some ties. All times are CPU times of
the functions that the commands call, without the start of the interpreter and of numpy. On a busy machine the same
work takes more CPU time. So the bench also measures the time of the trueskill library for one game, and prints
each time as a number of such games too. It prints:

- ratings after one more game, from a checkpoint (wanted: < 0.2 s);
- ratings from the first game on, against the library alone with one call for each game (wanted: <= 1.3). With
  ties, the referee calls the library several times for a game, so games without ties have a line of their own;
- standings, and standings with the crosstable (wanted: < 1 s each);
- bytes of a record, and of the database beside the records (wanted: < 1500 and < 350 a game).
"""

from __future__ import annotations

import io
import random
import sys
import tempfile
import time
import zlib
from pathlib import Path

import trueskill
from rich.console import Console
from sqlalchemy import insert, select

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "store"))

from records import add_bot, bot, played, tournament

import referee.ratings.analysis
import referee.ratings.checkpoint
import referee.store.columns  # noqa: F401 - loaded before times are taken, as those two
from referee.protocol import record as wire
from referee.ratings.trueskill import Ratings
from referee.reports.selection import (
    GameFilter,
    analyses,
    current_ratings,
    rate_in_order,
    standings,
)
from referee.reports.terminal import Crosstable
from referee.rules.ruleset import RULESETS
from referee.schedule import Stage
from referee.schedule.round_robin import round_robin
from referee.store import schema
from referee.store.league import League

BOTS = 10
SEATS = 4
SAMPLES = 50
"""Number of different records; the others are copies of them."""
RATED = 2000
"""Number of games for the measurement of ratings from the first game on."""
PART = 100
"""Number of games in one measurement."""
TRIES = 9
"""Number of times each part is measured, since the speed of a machine changes from second to second."""
CHOICE = GameFilter(tournament="cup")


def main(games: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        league = League.open(Path(folder), create=True)
        last = fill(league, games)
        print(f"{games} games")
        game_s = from_zero()
        one_more(league)  # makes the checkpoint, without the last game
        with league._database.writing() as connection:
            play(connection, last)
        for title, work, wanted in (
            ("ratings after one more game", one_more, 0.2),
            ("standings", rating_table, 1.0),
            ("standings and crosstable", both_tables, 1.0),
        ):
            took = min(cpu(work, league) for _ in range(3))
            print(f"{title}: {took:.2f} s (wanted: < {wanted}), as {took / game_s:.0f} games rated")
        sizes(league, games)
        league.close()


def cpu(work, *arguments) -> float:
    """Return the CPU seconds of a call."""
    began = time.process_time()
    work(*arguments)
    return time.process_time() - began


def one_more(league):
    rate_in_order(league, CHOICE, CHOICE.columns(league))


def rating_table(league):
    current_ratings(league, CHOICE)


def both_tables(league):
    games = CHOICE.columns(league)
    analysed = analyses(games)
    table = standings(league, CHOICE, games, analysed)
    for name, analysis in analysed.items():
        bots = [row.bot for row in table]
        Console(file=io.StringIO()).print(Crosstable(bots, analysis.meetings(), name))


def from_zero() -> float:
    """Compare the ratings with the library; return the seconds of the library for one game."""
    chance = random.Random(3)
    names = [f"bot{number:02}" for number in range(BOTS)]
    games = [
        (seating := chance.sample(names, SEATS), drawn(seating, chance)[1]) for _ in range(RATED)
    ]
    clear = [(bots, ranks) for bots, ranks in games if len(set(ranks)) == SEATS]
    for title, some in (("all", games), ("without ties", clear)):
        alone, ours = side_by_side(some)
        print(
            f"ratings from the first game on, {title} ({len(some)} games): {ours / alone:.2f} times"
            f" the library's own {alone / len(some) * 1e6:.0f} us a game (wanted: <= 1.3)"
        )
    return alone / len(clear)


def side_by_side(games) -> tuple[float, float]:
    """Return the seconds of the library and of `Ratings`: for each part of the games, the best of several tries."""
    alone = ours = 0.0
    for begin in range(0, len(games), PART):
        part = games[begin : begin + PART]
        both = [(cpu(library, part), cpu(rated, part)) for _ in range(TRIES)]
        alone += min(each for each, _ in both)
        ours += min(each for _, each in both)
    return alone, ours


def rated(games):
    ratings = Ratings()
    for bots, ranks in games:
        ratings.rate("basic", bots, ranks)


def library(games):
    env = trueskill.TrueSkill(tau=0)
    known = {}
    for bots, ranks in games:
        before = [(known.get(bot) or env.create_rating(),) for bot in bots]
        for name, (after,) in zip(bots, env.rate(before, ranks), strict=True):
            known[name] = after


def drawn(names, chance):
    """Return random points and ranks of a game; bots with a higher number are stronger."""
    points = [round(1.5 * chance.gauss(int(name[3:]) * 0.6, 4.2)) for name in names]
    return points, [1 + sum(other > own for other in points) for own in points]


def fill(league, games):
    """Store a tournament without its last game; return that game in a list."""
    names = [f"bot{number:02}" for number in range(BOTS)]
    for name in names:
        add_bot(league, bot(name))
    stage = Stage(RULESETS["classic"], SEATS, games // (210 * SEATS) + 1)
    versions = [f"{name}@1.0" for name in names]
    rows = round_robin("cup", versions, [stage], lanes=SEATS)[:games]
    league.add_tournament(tournament(), rows)
    samples = [zlib.compress(wire.dumps(played(row)), 9) for row in rows[:SAMPLES]]
    chance = random.Random(1)
    with league._database.writing() as connection:
        table = schema.games.c
        keys = connection.scalars(select(table.id).order_by(table.position)).all()
        stored = [Stored(key, row, samples, chance) for key, row in zip(keys, rows, strict=True)]
        play(connection, stored[:-1])
    return stored[-1:]


class Stored:
    """The rows of a game in the tables."""

    def __init__(self, key, row, samples, chance):
        names = [bot.partition("@")[0] for bot in row.bots]
        points, ranks = drawn(names, chance)
        self.record = {"game_id": key, "record": samples[key % len(samples)]}
        self.result = {
            "game_id": key,
            "tournament_id": 1,
            "ruleset": "classic",
            "termination": "out",
            "decisions": 60,
            "started_at_us": 1_700_000_000_000_000 + row.index * 50_000,
            "duration_us": 48_000 + row.index % 1000,
        }
        self.seats = [
            {
                "game_id": key,
                "seat": seat,
                "bot_id": int(name[3:]) + 1,
                "score": points[seat],
                "rank": ranks[seat],
                "forfeited": False,
                "elapsed_us": 5_000 + row.index % 977,
            }
            for seat, name in enumerate(names)
        ]


def play(connection, games):
    """Store all games in one transaction, to save time."""
    connection.execute(insert(schema.results), [game.result for game in games])
    connection.execute(insert(schema.records), [game.record for game in games])
    connection.execute(insert(schema.seats), [seat for game in games for seat in game.seats])


def sizes(league, games):
    with league._database.reading() as connection:
        records = connection.exec_driver_sql("SELECT sum(length(record)) FROM records").scalar()
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        size = pages * connection.exec_driver_sql("PRAGMA page_size").scalar()
    print(f"a record: {records / games:.0f} bytes (wanted: < 1500)")
    print(f"beside the records: {(size - records) / games:.0f} bytes a game (wanted: < 350)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
