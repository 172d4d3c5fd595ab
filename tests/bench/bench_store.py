"""Measure the size and speed of a league of many games: `python tests/bench/bench_store.py [GAMES]`.

It stores games of four seats. It prints the bytes of a record, the bytes of the database beside the records, and
the time to read all results, in total and against the time to rate them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "store"))

from records import NAMES, add_bot, bot, played, schedule, tournament

from referee.ratings.trueskill import rate
from referee.records import BotId
from referee.store import writes
from referee.store.league import League

SEATS = 4
SAMPLES = 50
"""Number of different games; the other games repeat them under other ids."""


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        league = League.open(Path(folder), create=True)
        for name in NAMES:
            add_bot(league, bot(name))
        rows = schedule(matches=count // SEATS + 1, seats=SEATS)[:count]
        league.add_tournament(tournament(), rows)
        samples = [played(row) for row in rows[:SAMPLES]]
        began = time.perf_counter()
        for row in rows[:SAMPLES]:
            league.add_game(replace(samples[row.index], game_id=row.game_id))
        each = (time.perf_counter() - began) / SAMPLES
        with league._database.writing() as connection:  # one transaction, to save time
            for row in rows[SAMPLES:]:
                sample = samples[row.index % SAMPLES]
                seating = tuple(map(BotId.parse, row.bots))
                writes.add_game(connection, replace(sample, game_id=row.game_id, seating=seating))
        print(f"{len(rows)} games; storing one takes {each * 1000:.2f} ms")
        _sizes(league, len(rows))
        _reading(league)
        league.close()


def _sizes(league: League, games: int) -> None:
    with league._database.reading() as connection:
        records = connection.exec_driver_sql("SELECT sum(length(record)) FROM records").scalar()
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        size = pages * connection.exec_driver_sql("PRAGMA page_size").scalar()
    print(f"a record: {records / games:.0f} bytes (wanted < 1500)")
    print(f"beside the records: {(size - records) / games:.0f} bytes a game (wanted < 250)")


def _reading(league: League) -> None:
    began = time.perf_counter()
    results = league.results(tournament="cup")
    reading = time.perf_counter() - began
    began = time.perf_counter()
    rate(results[:2000])
    rating = (time.perf_counter() - began) / min(2000, len(results)) * len(results)
    print(f"reading all results: {reading:.2f} s, {reading / rating:.1%} of the time to rate them")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
