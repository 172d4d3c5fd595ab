"""Test that pages of games have the chosen games, newest first, and that the league knows whether the deal of a game is played."""

from __future__ import annotations

from dataclasses import replace

import pytest
from records import add_bot, bot, faulty, filled, played

from referee.errors import NotFoundError
from referee.records import BotId
from referee.schedule import Deals
from referee.store import GameChoice
from referee.store.league import League

ALL = GameChoice()
START_US = 1_700_000_000_000_000


@pytest.fixture
def league(tmp_path, db):
    with League.open(tmp_path / "league", create=True, db=db) as opened:
        yield opened


def store(league, games, *, first=0):
    """Store games in the given order, each a second after the one before; return their ids, newest first."""
    for number, row in enumerate(games, first):
        league.add_game(replace(played(row), started_at_us=START_US + number * 1_000_000))
    return [row.game_id for row in reversed(games)]


def find(league, choice=ALL, *, offset=0, limit=100):
    """Return the ids of the games on the page. All games of the choice must be counted."""
    games, total = league.find_games(choice, offset=offset, limit=limit)
    assert total == len(league.find_games(choice, offset=0, limit=1000)[0])
    return [game.summary.game_id for game in games]


def test_pages_have_all_games_once_and_newest_first(league):
    rows = filled(league)
    newest_first = store(league, [rows[4], rows[0], rows[9], rows[2], rows[7]])
    pages = [find(league, offset=offset, limit=2) for offset in (0, 2, 4, 6)]
    assert pages == [newest_first[:2], newest_first[2:4], newest_first[4:], []]
    assert league.find_games(ALL, offset=4, limit=2)[1] == 5


def test_page_of_a_league_without_games_is_empty(league):
    assert league.find_games(ALL, offset=0, limit=10) == ([], 0)


def test_games_that_began_at_the_same_time_have_a_fixed_order(league):
    rows = filled(league)
    league.add_games(map(played, rows))
    offsets = range(0, len(rows), 5)
    listed = [each for offset in offsets for each in find(league, offset=offset, limit=5)]
    assert listed == [row.game_id for row in reversed(rows)]


def test_listed_game_has_its_result_and_its_summary(league):
    rows = filled(league)
    league.add_game(faulty(played(rows[1])))
    league.add_game(replace(played(rows[2]), game_id="play-1", started_at_us=START_US + 1))
    (free, scheduled), total = league.find_games(ALL, offset=0, limit=10)
    assert total == 2
    assert [scheduled.result, free.result] == league.results(free=True)
    assert [scheduled.summary, free.summary] == league.games()
    assert (free.result.tournament, scheduled.result.tournament) == ("", "cup")


def test_games_are_chosen_by_tournament(league):
    cup, other = filled(league), filled(league, "open", 1)
    newest_first = store(league, cup[:3])
    store(league, other[:2], first=3)
    league.add_game(replace(played(cup[5]), game_id="play-1"))
    assert find(league, GameChoice(tournament="cup")) == newest_first
    assert find(league, GameChoice(tournament="none")) == []


def test_games_are_chosen_by_bot_and_by_pair(league):
    rows = filled(league)
    newest_first = store(league, rows)
    tables = {row.game_id: row.bots for row in rows}

    def of(*bots):
        return [each for each in newest_first if set(bots) <= set(tables[each])]

    assert find(league, GameChoice(bot="ann")) == of("ann@1.0")
    assert find(league, GameChoice(bot="ann@1.0")) == of("ann@1.0")
    assert find(league, GameChoice(bot="ann", other="dee@1.0")) == of("ann@1.0", "dee@1.0")
    assert find(league, GameChoice(other="dee")) == of("dee@1.0")
    assert find(league, GameChoice(bot="ann@2.0")) == []
    assert find(league, GameChoice(bot="eve")) == []


def test_pair_of_a_bot_with_itself_has_the_games_of_two_versions(league):
    rows = filled(league)
    add_bot(league, bot("ann", "2.0"))
    seating = (BotId("ann", "2.0"), BotId("ann", "1.0"), BotId("bob", "1.0"))
    league.add_game(replace(played(rows[0]), game_id="play-1", seating=seating))
    league.add_game(played(next(row for row in rows if "ann@1.0" in row.bots)))
    assert find(league, GameChoice(bot="ann", other="ann")) == ["play-1"]
    assert find(league, GameChoice(bot="ann@1.0", other="ann@1.0")) == []
    assert find(league, GameChoice(bot="ann@2.0")) == ["play-1"]
    assert len(find(league, GameChoice(bot="ann"))) == 2


def test_games_are_chosen_by_ruleset_termination_and_fault(league):
    rows = filled(league)
    newest_first = store(league, rows[:3])
    league.add_game(faulty(played(rows[3])))
    termination = played(rows[0]).termination.value
    assert set(find(league, GameChoice(ruleset="classic"))) == {*newest_first, rows[3].game_id}
    assert find(league, GameChoice(ruleset="basic")) == []
    assert newest_first[0] in find(league, GameChoice(termination=termination))
    assert find(league, GameChoice(termination="none")) == []
    assert find(league, GameChoice(cause="crash")) == [rows[3].game_id]
    assert find(league, GameChoice(cause="illegal")) == []


def test_all_restrictions_hold_together(league):
    rows = filled(league)
    record = faulty(played(rows[0]))
    store(league, rows[1:6])
    league.add_game(record)
    first, second, _ = (str(each) for each in record.seating)
    choice = GameChoice(
        tournament="cup",
        bot=first,
        other=second,
        ruleset="classic",
        cause="timeout",
        termination=record.termination.value,
    )
    assert find(league, choice) == [record.game_id]
    assert find(league, replace(choice, tournament="open")) == []


def test_game_with_several_faults_of_a_cause_is_listed_once(league):
    rows = filled(league)
    record = faulty(played(rows[0]))
    strike = record.faults[0]
    league.add_game(replace(record, faults=(strike, replace(strike, move=1), record.faults[1])))
    assert find(league, GameChoice(cause="timeout")) == [rows[0].game_id]


def test_last_results_are_in_schedule_order_whatever_began_last(league):
    """`cup` and `open` are played at the same time, from their ends to their beginnings, and free games between them."""
    cup, other = filled(league), filled(league, "open", 1)
    free = [replace(played(row), game_id=f"play-{row.index}") for row in cup[:2]]
    for number, record in enumerate(
        [faulty(played(cup[9])), free[1], *map(played, [other[3], cup[4], other[0]]), free[0]]
    ):
        league.add_game(replace(record, started_at_us=START_US + number))
    in_order = league.results(free=True)
    assert [result.game_id for result in in_order] == [
        *(row.game_id for row in (cup[4], cup[9], other[0], other[3])),
        "play-1",
        "play-0",
    ]
    for limit in (1, 2, 3, 5, 6, 7, 2**80):
        assert league.last_results(ALL, limit=limit) == (in_order[-limit:], 6)
    assert league.last_results(ALL, limit=None) == (in_order, 6)


@pytest.mark.parametrize(
    "choice",
    [
        GameChoice(tournament="cup"),
        GameChoice(bot="ann"),
        GameChoice(bot="bob@1.0", tournament="open"),
        GameChoice(cause="crash"),
        GameChoice(bot="ann@1.0", cause="timeout", tournament="cup"),
        GameChoice(bot="eve"),
        GameChoice(tournament="none"),
    ],
    ids=str,
)
def test_last_results_are_restricted_like_pages(league, choice):
    cup, other = filled(league), filled(league, "open", 1)
    league.add_games(map(played, reversed(cup[:7])))
    league.add_games(map(played, other[1:5]))
    league.add_games(faulty(played(row)) for row in (cup[9], cup[7], cup[8], other[0]))
    league.add_game(replace(played(cup[1]), game_id="play-1"))
    chosen = set(find(league, choice))
    expected = [result for result in league.results(free=True) if result.game_id in chosen]
    for limit in (1, 2, 100):
        assert league.last_results(choice, limit=limit) == (expected[-limit:], len(expected))
    assert league.last_results(choice, limit=None) == (expected, len(expected))


def test_deal_is_played_when_all_games_of_its_match_are_stored(league):
    rows = filled(league)
    match = [row for row in rows if row.match == rows[0].match]
    assert len(match) > 1
    league.add_games(map(played, match[1:]))
    assert not any(league.is_deal_played(row.game_id) for row in match)
    league.add_game(played(match[0]))
    assert all(league.is_deal_played(row.game_id) for row in match)
    assert not league.is_deal_played(rows[-1].game_id)


def test_fresh_deal_is_played_when_its_game_is_stored(league):
    first, second, *_ = filled(league, kind=Deals.FRESH)
    assert first.match == second.match
    league.add_game(played(first))
    assert league.is_deal_played(first.game_id)
    assert not league.is_deal_played(second.game_id)


def test_deal_of_a_game_outside_tournaments_is_played(league):
    rows = filled(league)
    league.add_game(replace(played(rows[1]), game_id="play-1"))
    assert league.is_deal_played("play-1")


def test_deal_of_an_unknown_game_is_refused(league):
    with pytest.raises(NotFoundError, match="there is no game 'cup-999'"):
        league.is_deal_played("cup-999")
