"""A bot that forfeits again and again is suspended; the other bots play on."""

from __future__ import annotations

import pytest
from real_runs import place

from referee.errors import Cause
from referee.store.league import League

pytestmark = [pytest.mark.unmeasured, pytest.mark.extended("plays further tournaments")]
SUSPEND_AFTER = 2
LANES = 2
MATCHES = 4
CRASHES = """
import os
from referee.sdk import run

def decide(request):
    os.write(2, b"out of ideas\\n")
    os._exit(3)

run(decide)
"""


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made


def course_and_result(record):
    result = record.termination, record.scores, record.ranks, record.forfeited
    return record.game_id, record.actions, result


def causes(records):
    """Return bot, cause, move and forfeit of each fault, by game; games without faults are left out."""
    return {
        record.game_id: [
            (str(record.seating[fault.seat]), fault.cause, fault.move, fault.forfeit)
            for fault in record.faults
        ]
        for record in records
        if record.faults
    }


def play(here, bot, workers):
    league = f"league{workers}"
    file = here.tournament(
        bots=(bot, "random", "greedy"),
        matches=MATCHES,
        more=f"workers = {workers}\nlanes = {LANES}\n[faults]\nsuspend_after = {SUSPEND_AFTER}\n",
    )
    done = here.referee("tournament", "run", file, "--league", league)
    assert done.returncode == 0, done.stderr
    return done.stdout, here.records(league)


def test_a_bot_that_always_crashes_is_suspended_and_the_others_play_on(here):
    bot = here.bot("crashes", CRASHES)
    said, records = play(here, bot, 1)
    with League.open(here.folder / "league1", create=False) as league:
        lanes = {row.game_id: row.lane for row in league.schedule("cup")}
    for lane in range(LANES):
        played = [
            record
            for record in records
            if lanes[record.game_id] == lane and "crashes" in {each.name for each in record.seating}
        ]
        faults = [causes([record])[record.game_id] for record in played]
        assert len(faults) == 2 * MATCHES
        first, then = faults[:SUSPEND_AFTER], faults[SUSPEND_AFTER:]
        assert all(each == [("crashes@1", Cause.CRASH, each[0][2], True)] for each in first)
        assert all(each == [("crashes@1", Cause.SUSPENDED, 0, True)] for each in then)
    for record in records:
        by_name = {each.name: seat for seat, each in enumerate(record.seating)}
        if "crashes" in by_name:
            assert record.forfeited == (by_name["crashes"],)
            assert record.ranks[by_name["crashes"]] == 2
        else:
            assert record.faults == ()
            assert all(not move.stand_in for move in record.moves)
    assert len(records) == 3 * 2 * MATCHES
    assert said.count("crashes@1 is suspended") == LANES
    assert "faults: 4 crash, 12 suspended" in said

    _, with_two = play(here, bot, 2)
    assert causes(with_two) == causes(records)
    assert list(map(course_and_result, with_two)) == list(map(course_and_result, records))
    assert here.referee("verify", "--league", "league2").returncode == 0


def test_a_resumed_run_counts_the_forfeits_before_the_interruption(here):
    bot = here.bot("crashes", CRASHES)
    _, whole = play(here, bot, 1)
    file = here.folder / "cup.toml"
    with here.started("tournament", "run", file, "--league", "cut") as process:
        for line in process.stdout:
            if "suspended" in line:
                break
        process.kill()
        process.wait()
        assert here.left_alone()
    done = here.referee("tournament", "resume", "--league", "cut")
    assert done.returncode == 0, done.stderr
    assert causes(here.records("cut")) == causes(whole)
