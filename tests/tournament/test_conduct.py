"""A resumed run knows what it needs of the stored games, without reading all that is stored about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from stand_ins import Cup, StandIns

from referee.errors import Cause, Evidence
from referee.records import Fault
from referee.store.league import League
from referee.tournament.assignments import AssignmentResult
from referee.tournament.config_reader import load_tournament

SAMPLE_BOTS = Path(__file__).parents[2] / "sample_bots"
CRASH = Fault(0, Cause.CRASH, forfeit=True, move=0, evidence=Evidence(detail="gone"))


@pytest.fixture
def cup(tmp_path):
    bots = ", ".join(f'"{SAMPLE_BOTS / name}"' for name in ("greedy", "random"))
    (tmp_path / "cup.toml").write_text(
        f'name = "cup"\nruleset = "duel"\nseats = 2\nmatches = 6\nlanes = 2\ngames_in_flight = 3\nbots = [{bots}]\n'
    )
    made = Cup(tmp_path, load_tournament(tmp_path / "cup.toml"))
    with made.league:
        yield made


def test_results_of_stored_games_are_read_once_in_a_run(cup, monkeypatch):
    reads = []
    forfeits = League.forfeits

    def count(self, tournament):
        reads.append(tournament)
        return forfeits(self, tournament)

    monkeypatch.setattr(League, "forfeits", count)
    assert cup.play()
    assert reads == ["cup"]


def test_resumed_run_knows_failed_processes_without_reading_evidence(cup, monkeypatch):
    """Standard error has up to 4 KiB for each fault, and a tournament can have a fault in every game."""
    singles = []
    submit = StandIns.submit

    async def crash_once(self, number, assignment):
        is_first = not singles
        singles.append(assignment.singles)
        result = await submit(self, number, assignment)
        if not is_first:
            return result
        return AssignmentResult(
            [replace(record, faults=(CRASH,), forfeited=(0,)) for record in result.records]
        )

    monkeypatch.setattr(StandIns, "submit", crash_once)
    monkeypatch.setattr(League, "faults", None)
    assert not cup.play(until=2)
    before = len(singles)
    assert cup.play()
    assert singles[0] == frozenset()
    assert len(singles[before]) == 1
    assert singles[before] <= set(cup.schedule[0].bots)


@pytest.mark.parametrize("small_portion", [None, 2])
def test_only_a_portion_that_was_chosen_smaller_is_told(cup, monkeypatch, capsys, small_portion):
    """A worker may return fewer games for another reason: a game was void, because the machine lacked a resource."""
    submit = StandIns.submit

    async def return_two(self, number, assignment):
        result = await submit(self, number, assignment)
        return AssignmentResult(result.records[:2], small_portion)

    monkeypatch.setattr(StandIns, "submit", return_two)
    assert cup.play()
    told = "games_in_flight = 3: only 2 at the same time are possible"
    assert capsys.readouterr().out.count(told) == (small_portion is not None)
