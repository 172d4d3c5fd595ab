"""Test what a worker gets for each game of a tournament."""

from __future__ import annotations

from pathlib import Path

import pytest
from stand_ins import SEED, Cup, StandIns

from referee import deals
from referee.tournament.config_reader import load_tournament

SAMPLE_BOTS = Path(__file__).parents[2] / "sample_bots"
FILE = """
name = "cup"
ruleset = "duel"
seats = 2
max_turns = 4
matches = 1
bots = ["{0}/greedy", "{0}/random"]
show_names = {1}

[limits]
memory_mib = 77
"""


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Return a function that plays a tournament, and returns the tasks of its games in schedule order."""
    tasks, submit = [], StandIns.submit

    async def note(group, number, assignment):
        tasks.extend(task for bundle in assignment.bundles for task in bundle)
        return await submit(group, number, assignment)

    def play(*, show_names):
        file = tmp_path / "cup.toml"
        file.write_text(FILE.format(SAMPLE_BOTS, str(show_names).lower()))
        cup = Cup(tmp_path, load_tournament(file))
        assert cup.play()
        cup.league.close()
        return sorted(tasks, key=lambda task: task.index)

    monkeypatch.setattr(StandIns, "submit", note)
    return play


def test_bots_get_secret_game_ids_and_seeds_of_their_own(play):
    first, second = play(show_names=False)
    for task in (first, second):
        game = task.setup.game_id
        assert task.opaque_id == deals.opaque_id(SEED, game) != game
        assert task.seeds == tuple(deals.bot_seed(SEED, game, seat) for seat in range(2))
        assert task.names == ()
    assert len({*first.seeds, *second.seeds}) == 4


def test_names_are_those_of_the_seats_if_the_tournament_shows_them(play):
    assert [task.names for task in play(show_names=True)] == [
        ("greedy", "random"),
        ("random", "greedy"),
    ]


def test_limits_of_the_tournament_hold_for_all_bots(play):
    assert {spec.limits.memory_mib for task in play(show_names=False) for spec in task.bots} == {77}
