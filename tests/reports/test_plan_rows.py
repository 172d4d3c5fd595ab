"""The plan of a schedule has the figures that were counted by hand."""

from referee.reports.tournament_rows import ASSUMED_GAME_US, GameKind, game_times, plan_rows
from referee.rules.ruleset import RULESETS
from referee.schedule import Stage
from referee.schedule.round_robin import gauntlet, round_robin

BASIC, DUEL = RULESETS["basic"], RULESETS["duel"]


def plan(bots, *stages, times=(), workers=1):
    schedule = round_robin("cup", bots, stages, lanes=8)
    rulesets = [stage.ruleset.name for stage in stages]
    return plan_rows(bots, schedule, game_times(times), rulesets=rulesets, workers=workers)


def test_complete_round_is_counted():
    row, everything = plan(["ann", "bob", "cy", "dee"], Stage(BASIC, 3, 1))
    assert (row.stage, row.rulesets, row.seats) == (0, ("basic",), (3,))
    assert (row.games, row.matches, row.rounds) == (12, 4, 1)
    assert row.games_per_bot == (9, 9)
    assert row.games_per_bot_and_seat == (3, 3)
    assert row.meetings_per_pair == (2, 2)
    assert row.matches_at_the_right == (1, 1)
    assert everything.stage is None
    assert everything.games == 12


def test_neighbours_are_counted_once_a_match():
    row, _ = plan(["ann", "bob", "cy", "dee"], Stage(BASIC, 4, 1))
    assert row.meetings_per_pair == (1, 1)
    assert row.matches_at_the_right == (0, 1)


def test_bot_that_never_plays_is_counted():
    schedule = round_robin("cup", ["ann", "bob"], [Stage(DUEL, 2, 1)], lanes=4)
    row, _ = plan_rows(["ann", "bob", "cy"], schedule, {}, rulesets=["duel"], workers=1)
    assert row.games_per_bot == (0, 2)
    assert row.games_per_bot_and_seat == (0, 1)
    assert row.meetings_per_pair == (0, 1)


def test_stages_are_added_up_except_seats_of_different_tables():
    *_, everything = plan(["ann", "bob", "cy"], Stage(BASIC, 3, 1), Stage(DUEL, 2, 2))
    assert everything.rulesets == ("basic", "duel")
    assert everything.seats == (3, 2)
    assert (everything.games, everything.matches, everything.rounds) == (15, 7, 3)
    assert everything.games_per_bot == (11, 11)
    assert everything.games_per_bot_and_seat == (1, 4)
    assert everything.meetings_per_pair == (3, 3)


def test_gauntlet_counts_only_pairs_of_challenger_and_field():
    bots = ["new", "newer", "ann", "bob", "cy"]
    schedule = gauntlet("cup", bots, [Stage(BASIC, 3, 2, challengers=2)], lanes=4)
    row, _ = plan_rows(bots, schedule, {}, rulesets=["basic"], workers=1, challengers=2)
    assert (row.games, row.matches) == (36, 12)
    assert row.games_per_bot == (18, 24)
    assert row.meetings_per_pair == (4, 4)
    assert row.matches_at_the_right == (2, 2)


def test_time_of_similar_games_is_divided_by_the_workers():
    basic = GameKind("basic", 3)
    times = [(basic, 100), (basic, 300), (GameKind("basic", 2), 7_000)]
    first, second, everything = plan(
        ["ann", "bob", "cy"], Stage(BASIC, 3, 2), Stage(DUEL, 2, 1), times=times, workers=3
    )
    assert (first.playing_time_us, first.measured) == (6 * 200 // 3, 2)
    assert (second.playing_time_us, second.measured) == (6 * ASSUMED_GAME_US // 3, 0)
    assert everything.playing_time_us == first.playing_time_us + second.playing_time_us
    assert everything.measured == 2
