"""A filter selects the same games as results and as columns."""

from __future__ import annotations

import pytest
from hand_made import game_result

from referee.reports.selection import GameFilter
from referee.result_columns import ResultColumns

PAIR = game_result(("a", "b"), (1, 2), game_id="cup-1")
TABLE = game_result(("a", "b", "c"), (1, 2, 3), game_id="cup-2", match=1)
DUEL = game_result(("b", "a"), (1, 2), game_id="cup-3", match=2, ruleset="duel")


class FakeLeague:
    """A league with one tournament, which has three games."""

    def check_tournament(self, name):
        assert name == "cup"

    def results(self, *, tournament):
        assert tournament == "cup"
        return [PAIR, TABLE, DUEL]

    def columns(self, *, tournament):
        return ResultColumns.from_results(self.results(tournament=tournament))


@pytest.mark.parametrize(
    ("options", "selected"),
    [
        ({}, [PAIR, TABLE, DUEL]),
        ({"ruleset": "basic"}, [PAIR, TABLE]),
        ({"seats": 2}, [PAIR, DUEL]),
        ({"ruleset": "basic", "seats": 2}, [PAIR]),
        ({"ruleset": "expert"}, []),
        ({"seats": 5}, []),
    ],
)
def test_games_of_the_ruleset_and_the_table_size_are_selected(options, selected):
    choice = GameFilter(tournament="cup", **options)
    assert choice.games(FakeLeague()) == selected
    columns = choice.columns(FakeLeague())
    assert columns.seats.tolist() == [len(game.bots) for game in selected]
    assert [columns.rulesets[number] for number in columns.ruleset] == [
        game.ruleset for game in selected
    ]
