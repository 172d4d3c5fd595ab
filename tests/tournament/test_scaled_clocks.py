"""Machines of different speed give different time to think, if the tournament file says so."""

from __future__ import annotations

import zlib
from dataclasses import replace

import pytest
from real_runs import place

from referee.clocks import REFERENCE_SPEED, Clocks
from referee.protocol import record as wire
from referee.store.league import League

FILE = Clocks(decision_us=2_000_000, bank_us=30_000_000, increment_us=100_000)
TELLER = """
from pathlib import Path
from referee.sdk import run

def decide(request):
    with Path({told!r}).open("a") as file:
        print(request.game.clocks.decision_us, file=file)
    return request.legal[0]

run(decide)
"""


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made


def test_half_the_speed_gives_twice_the_time_to_think():
    slow = FILE.scale(REFERENCE_SPEED // 2)
    assert (slow.decision_us, slow.bank_us, slow.increment_us) == (4_000_000, 60_000_000, 200_000)
    assert (slow.start_up_us, slow.game_start_us) == (FILE.start_up_us, FILE.game_start_us)
    assert FILE.scale(REFERENCE_SPEED) == FILE
    assert Clocks().scale(REFERENCE_SPEED).bank_us is None


@pytest.mark.parametrize(("speed", "factor"), [(0, 4), (1, 4), (10**9, 0.25)])
def test_wrong_measurement_gives_no_senseless_limits(speed, factor):
    assert FILE.scale(speed).decision_us == FILE.decision_us * factor


def test_scaled_limits_are_at_least_a_microsecond():
    """In a request, a limit of 0 would mean that there is no limit."""
    least = Clocks(decision_us=1, bank_us=1)
    assert least.scale(10**9) == least


@pytest.mark.extended("plays further tournaments")
def test_scaled_limits_are_told_stored_and_verified(here):
    told = here.folder / "told"
    bot = here.bot("teller", TELLER.format(told=str(told)))
    more = '[clocks]\ndecision = 2\nbank = "30+0.1"\nscale = true\n'
    file = here.tournament(bots=("random", bot), matches=1, more=more)
    assert here.referee("tournament", "run", file).returncode == 0
    assert here.referee("verify").stdout == "cup: 2 games verified.\n"
    with League.open(here.folder / "league", create=False) as league:
        records = [league.record(row.game_id) for row in league.results()]
    for record in records:
        assert record.machine.speed != REFERENCE_SPEED
        assert record.clocks == FILE.scale(record.machine.speed)
    limits = {int(line) for line in told.read_text().split()}
    assert limits == {record.clocks.decision_us for record in records}

    faster = replace(
        records[0], machine=replace(records[0].machine, speed=records[0].machine.speed * 2)
    )
    for changed in (faster, replace(records[0], machine=None)):
        data = zlib.compress(wire.dumps(changed))
        with here.database() as database:
            database.execute(
                "UPDATE records SET record = ? WHERE game_id = (SELECT id FROM games WHERE name = ?)",
                (data, changed.game_id),
            )
        done = here.referee("verify")
        assert done.returncode == 1
        assert "clocks" in done.stderr
