"""Rows of faults, tournaments and games."""

import json
from dataclasses import replace
from pathlib import Path

from hand_made import game_result
from played import record

from referee.clocks import Clocks
from referee.errors import Cause
from referee.reports.bot_rows import FaultRow, fault_rows
from referee.reports.formats import fields_of
from referee.reports.game_rows import GameRow, charge_rows, game_head, game_rows, seat_rows
from referee.reports.tournament_rows import StatusRow, status_rows, tournament_rows
from referee.rules.ruleset import RULESETS, EndOn
from referee.store import FaultCount, RoundProgress, StoredTournament


def test_counts_of_faults_are_sorted_by_bot_and_cause():
    faults = [
        FaultCount("b", Cause.TIMEOUT, strikes=1, forfeits=0, games=1),
        FaultCount("a", Cause.ILLEGAL, strikes=3, forfeits=0, games=2),
        FaultCount("a", Cause.STRIKES, strikes=0, forfeits=1, games=1),
        FaultCount("a", Cause.CRASH, strikes=0, forfeits=1, games=1),
    ]
    assert fault_rows(faults) == (
        FaultRow(bot="a", cause="crash", strikes=0, forfeits=1, games=1),
        FaultRow(bot="a", cause="illegal", strikes=3, forfeits=0, games=2),
        FaultRow(bot="a", cause="strikes", strikes=0, forfeits=1, games=1),
        FaultRow(bot="b", cause="timeout", strikes=1, forfeits=0, games=1),
    )
    assert fault_rows([]) == ()


CONFIG = Path(__file__).parents[1] / "tournament" / "golden" / "config-1.json"


def stored_tournament(config: str) -> StoredTournament:
    return StoredTournament(
        name="cup",
        created_at_us=7,
        config=config,
        seed=bytes(32),
        commitment="",
        terms="",
        games=12,
        stored=3,
        finished_at_us=None,
        stopped_after=None,
    )


def test_row_of_a_tournament_has_its_share_and_each_ruleset_once():
    config = json.loads(CONFIG.read_text())
    config["stages"] = [config["stages"][0]] * 2
    [row], errors = tournament_rows([stored_tournament(json.dumps(config))])
    assert errors == ()
    assert (row.tournament, row.bots) == ("cup", len(config["bots"]))
    assert row.rulesets == (config["stages"][0]["ruleset"]["name"],)
    assert (row.done, row.games, row.share, row.created_at_us) == (3, 12, 0.25, 7)


def test_tournament_that_cannot_be_read_is_named_beside_the_rows_of_the_others():
    configs = ('{"format": 99}', CONFIG.read_text(), "{}")
    rows, errors = tournament_rows(map(stored_tournament, configs))
    assert len(rows) == 1
    assert str(errors[0]).startswith("tournament cup: its configuration has format 99")
    assert str(errors[1]).startswith("tournament cup is damaged: its configuration: ")


def test_status_has_each_round_and_the_sum():
    rows = status_rows([RoundProgress(1, 2, 2, 301), RoundProgress(2, 2, 1, 50)])
    assert rows == (
        StatusRow(round=1, done=2, games=2, share=1.0, playing_time_us=301, per_game_us=150),
        StatusRow(round=2, done=1, games=2, share=0.5, playing_time_us=50, per_game_us=50),
        StatusRow(round=None, done=3, games=4, share=0.75, playing_time_us=351, per_game_us=117),
    )


def test_status_before_the_first_game_has_no_mean_time():
    (only, everything) = status_rows([RoundProgress(1, 1, 0, 0)])
    assert (only.done, only.games, only.share, only.per_game_us) == (0, 1, 0.0, None)
    assert everything.round is None


def test_list_of_games_has_seats_in_order():
    game = game_result(
        ("a", "b"),
        (1, 2),
        (3, -1),
        game_id="cup-9",
        ruleset="duel",
        round=4,
        match=17,
        forfeited=(1,),
    )
    (row,) = game_rows([game])
    assert (row.game_id, row.ruleset, row.round, row.match) == ("cup-9", "duel", 4, ("cup", 17))
    assert (row.bots, row.scores, row.ranks, row.forfeited) == (("a", "b"), (3, -1), (1, 2), (1,))


def test_game_outside_of_tournaments_has_neither_round_nor_match():
    (row,) = game_rows([game_result(("a", "b"), (1, 2), tournament="", round=0)])
    assert (row.round, row.match) == (None, None)


def test_table_of_games_names_the_seats_that_forfeited():
    [column] = [each.column for each in fields_of(GameRow) if each.key == "forfeited"]
    assert [column.show(seats) for seats in ((), (0,), (0, 2))] == ["-", "seat 0", "seat 0, seat 2"]


def test_game_in_detail_has_seats_and_faults():
    game = record(seats=3, strike_at=4, forfeit_at=30, detail="no reply", stderr_tail="boo")
    head = game_head(game)
    assert (head.game_id, head.ruleset, head.decisions) == ("cup-1", "basic", len(game.moves))
    assert head.termination == game.termination.value
    seats = seat_rows(game)
    assert [row.seat for row in seats] == [0, 1, 2]
    assert tuple(row.score for row in seats) == game.scores
    assert tuple(row.rank for row in seats) == game.ranks
    assert [row.seat for row in seats if row.forfeited] == list(game.forfeited)
    assert sum(row.decisions + row.stood_in for row in seats) == len(game.moves)
    assert sum(row.strikes for row in seats) == 1
    strike, forfeit = charge_rows(game)
    assert (strike.move, strike.cause, strike.forfeit) == (4, "timeout", False)
    assert (forfeit.move, forfeit.forfeit, forfeit.stderr_tail) == (30, True, "boo")
    assert forfeit.bot == f"bot{forfeit.seat}"


def test_game_in_detail_names_the_changed_options_of_its_ruleset():
    rules = RULESETS["basic"].with_options(end_on=EndOn.DECK, max_turns=90)
    head = game_head(replace(record(), ruleset=rules))
    assert head.ruleset == 'basic (end_on = "deck", max_turns = 90)'


def test_times_are_those_of_the_bots_own_decisions():
    game = record(seats=2, strike_at=0)
    first = seat_rows(game)[0]
    times = [move.elapsed_us for move in game.moves if move.seat == 0 and not move.stand_in]
    assert (first.decisions, first.stood_in) == (len(times), 1)
    assert (first.mean_time_us, first.max_time_us) == (sum(times) // len(times), max(times))


def test_seat_without_own_decisions_has_no_times():
    seat = seat_rows(record(seats=2, forfeit_at=0))[0]
    assert (seat.decisions, seat.mean_time_us, seat.max_time_us) == (0, None, None)


def test_time_limits_are_shown_in_words():
    def words(clocks):
        return game_head(record(clocks=clocks)).clocks

    assert words(Clocks()) == "5.0 s a decision"
    assert words(Clocks(bank_us=30_000_000)) == "5.0 s a decision, 30.0 s a game"
    assert words(Clocks(bank_us=60_000_000, increment_us=100_000)) == (
        "5.0 s a decision, 1:00 min a game + 100.0 ms a decision"
    )
