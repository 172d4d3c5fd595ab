"""Test what a balanced choice of tables guarantees for any numbers, and how even it becomes."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from itertools import combinations, groupby, pairwise, permutations
from time import process_time
from unittest import mock

import pytest
from extended import extend_cases_but
from hypothesis import given
from hypothesis import strategies as st

from referee.rules.ruleset import RULESETS
from referee.schedule import Stage, cyclic_tables, designs, table_search
from referee.schedule.balanced import balanced_schedule, balanced_tables
from referee.schedule.budget import buy, smallest_choice
from referee.schedule.extension import ALGORITHMS, select_algorithm

pytestmark = pytest.mark.unmeasured

BASIC = RULESETS["basic"]


def names(bots):
    return [f"bot{number}" for number in range(bots)]


def choice_within(budget, bots, seats):
    """Return the stages of a balanced choice, even if a round of all tables is affordable."""

    def affords(stages):
        return all(stage.balanced for stage in stages) and games_of(stages, bots) <= budget

    return buy([Stage(BASIC, size, 0) for size in seats], bots, affords, most_games=10**6)


def games_of(stages, bots):
    return sum(stage.games(bots) for stage in stages)


def schedule(bots, seats, budget, *, steps=table_search._STEPS):
    """Return a schedule with one stage for each table size, its stages, and all bots."""
    stages = choice_within(budget, bots, seats)
    with (
        mock.patch.object(table_search, "_STEPS", steps),
        mock.patch.object(cyclic_tables, "_STEPS", min(steps, cyclic_tables._STEPS)),
    ):
        return balanced_schedule("cup", names(bots), stages, lanes=5), stages, names(bots)


@st.composite
def choices(draw, most_stages=3):
    """Draw numbers of bots, seats and games. The search is short: guarantees must hold without it."""
    bots = draw(st.integers(2, 12))
    sizes = st.integers(2, min(5, bots))
    seats = draw(st.lists(sizes, min_size=1, max_size=most_stages))
    least = sum(math.ceil(bots / size) * size for size in seats)
    return schedule(bots, seats, draw(st.integers(least, least + 300)), steps=500)


def first_games(games):
    """Return the first game of each match."""
    return [game for game in games if game.seating == 0]


def spread(kinds, occurring):
    counts = Counter(occurring)
    each = [counts[kind] for kind in kinds]
    return min(each), max(each)


def meetings(games, bots):
    pairs = (frozenset(pair) for game in first_games(games) for pair in combinations(game.bots, 2))
    return spread(map(frozenset, combinations(bots, 2)), pairs)


def neighbours(games, bots):
    tables = (game.bots for game in first_games(games))
    return spread(permutations(bots, 2), (pair for t in tables for pair in pairwise((*t, t[0]))))


@given(choices())
def test_every_match_is_played_in_every_cyclic_seating(made):
    games, stages, _ = made
    assert [game.game_id for game in games] == [f"cup-{n + 1}" for n in range(len(games))]
    assert len({(game.lane, game.deal_id) for game in games}) == len(games)
    for _, match in groupby(games, key=lambda game: game.match):
        first, *others = match
        seats = stages[first.stage].seats
        assert len(set(first.bots)) == len(first.bots) == seats
        turns = [first.bots[shift:] + first.bots[:shift] for shift in range(1, seats)]
        assert [game.bots for game in others] == turns
        assert {game.deal_id for game in others} == {first.deal_id}


@given(choices())
def test_all_bots_play_equally_often_after_each_round_of_each_stage(made):
    games, stages, bots = made
    for number in range(len(stages)):
        played = Counter()
        own = [game for game in first_games(games) if game.stage == number]
        assert [game.round for game in own] == sorted(game.round for game in own)
        for last, part in groupby(own, key=lambda game: game.round):
            played.update(bot for game in part for bot in game.bots)
            each = [played[bot] for bot in bots]
            assert max(each) - min(each) <= (last == own[-1].round)


@pytest.mark.extended("measures large schedules and long statistics")
@given(choices())
def test_next_stage_compensates_for_an_uneven_stage(made):
    games, _, bots = made
    least, most = spread(bots, (bot for game in first_games(games) for bot in game.bots))
    assert most - least <= 1


@given(choices())
def test_every_bot_has_each_seat_equally_often(made):
    games, stages, bots = made
    for number, stage in enumerate(stages):
        own = [game for game in games if game.stage == number]
        had = Counter((bot, seat) for game in own for seat, bot in enumerate(game.bots))
        assert all(had[bot, seat] == had[bot, 0] for bot in bots for seat in range(1, stage.seats))


@pytest.mark.extended("measures large schedules and long statistics")
@given(choices())
def test_next_round_belongs_to_the_stage_with_the_fewest_games(made):
    games, stages, _ = made
    total = Counter(game.stage for game in games)
    played = Counter()
    for stage, part in groupby(games, key=lambda game: game.stage):
        for _, of_round in groupby(part, key=lambda game: game.round):
            waiting = [each for each in range(len(stages)) if played[each] < total[each]]
            assert stage == min(waiting, key=played.__getitem__)
            played[stage] += len(list(of_round))


@given(
    bots=st.integers(5, 30),
    seats=st.lists(st.integers(2, 5), min_size=1, max_size=3),
    budget=st.integers(1, 2000),
)
def test_a_budget_is_shared_by_the_stages_and_used_up(bots, seats, budget):
    smallest = smallest_choice([Stage(BASIC, size, 0) for size in seats], bots)
    assert games_of(smallest, bots) == sum(math.ceil(bots / size) * size for size in seats)
    budget += games_of(smallest, bots)
    games = [stage.games(bots) for stage in choice_within(budget, bots, seats)]
    assert min(games) >= bots
    assert budget - max(seats) < sum(games) <= budget
    assert max(games) - min(games) <= max(seats)


EVEN = {
    "the plane of order 2": (7, 3, 7, (1, 1), (0, 1)),
    "the plane of order 3": (13, 4, 13, (1, 1), (0, 1)),
    "the plane of order 4": (21, 5, 21, (1, 1), (0, 1)),
    "the plane of order 4, each line four times": (21, 5, 84, (4, 4), (1, 1)),
    "the affine plane of order 3": (9, 3, 12, (1, 1), (0, 1)),
    "the affine plane of order 4": (16, 4, 20, (1, 1), (0, 1)),
    "the affine plane of order 5": (25, 5, 30, (1, 1), (0, 1)),
    "fifteen schoolgirls": (15, 3, 35, (1, 1), (0, 1)),
    "fifteen schoolgirls for two weeks": (15, 3, 70, (2, 2), (1, 1)),
    "25 bots meet once": (25, 4, 50, (1, 1), (0, 1)),
    "25 bots meet three times": (25, 4, 150, (3, 3), (1, 1)),
    "28 bots meet once": (28, 4, 63, (1, 1), (0, 1)),
    "28 bots meet three times": (28, 4, 189, (3, 3), (1, 1)),
    "half of the meetings of 28 bots": (28, 4, 35, (0, 1), (0, 1)),
    "nine bots at tables of 4": (9, 4, 18, (3, 3), (1, 1)),
    "twelve bots at tables of 4": (12, 4, 33, (3, 3), (1, 1)),
    "13 bots at tables of 4": (13, 4, 39, (3, 3), (1, 1)),
    "16 bots at tables of 4": (16, 4, 60, (3, 3), (1, 1)),
    "20 bots at tables of 4": (20, 4, 95, (3, 3), (1, 1)),
    "20 bots for a long time": (20, 4, 2500, (78, 79), (26, 27)),
    "half of a round robin": (6, 3, 10, (2, 2), (0, 2)),
    "a biplane": (11, 5, 11, (2, 2), (0, 1)),
    "each pair six times": (8, 3, 56, (6, 6), (3, 3)),
    "tables of two": (20, 2, 50, (0, 1), (0, 1)),
    "less than once each": (20, 4, 25, (0, 1), (0, 1)),
    "a class": (24, 4, 240, (5, 6), (1, 2)),
    "large tables": (30, 5, 60, (1, 2), (0, 1)),
    "a hundred games of a hundred bots": (100, 4, 625, (0, 1), (0, 1)),
    "a prime number of bots": (97, 4, 625, (0, 1), (0, 1)),
}
"""For each case: bots, seats, matches, meetings of a pair, and how often two bots are neighbours in one order."""


LONG = "20 bots for a long time"


@pytest.mark.parametrize(
    ("bots", "seats", "matches", "met", "beside"),
    extend_cases_but([name for name in EVEN if name != LONG], EVEN, "searches for seconds"),
)
def test_pairs_and_neighbours_are_even_if_that_is_possible(bots, seats, matches, met, beside):
    games, _, everybody = schedule(bots, [seats], matches * seats)
    assert meetings(games, everybody) == met
    assert neighbours(games, everybody) == beside


def test_a_hundred_bots_are_scheduled_in_a_second():
    before = process_time()
    schedule(100, [4], 2500)
    assert process_time() - before < 1


@pytest.mark.parametrize("bots", [6, 8, 10, 13, 16])
@pytest.mark.parametrize("seats", [2, 3, 4, 5])
def test_pairs_and_neighbours_differ_by_little_for_any_budget(bots, seats):
    for rounds in (1, 3):
        matches = math.ceil(rounds * bots / seats)
        games, _, everybody = schedule(bots, [seats], matches * seats, steps=20_000)
        least, most = meetings(games, everybody)
        assert most - least <= 2
        least, most = neighbours(games, everybody)
        assert most - least <= 2


@pytest.mark.parametrize(
    ("bots", "seats"),
    extend_cases_but(
        ["25-5"],
        {f"{bots}-{seats}": (bots, seats) for bots, seats in sorted(designs._PAIR_DESIGNS)},
        "measures large schedules and long statistics",
    ),
)
def test_no_match_is_lost_between_the_copies_of_a_design(bots, seats):
    size = bots * (bots - 1) // (seats * (seats - 1))
    with (
        mock.patch.object(table_search, "_STEPS", 0),
        mock.patch.object(cyclic_tables, "_STEPS", 0),
    ):
        for matches in range(math.ceil(bots / seats), 5 * size, 7):
            made = balanced_tables(bots, seats, matches)
            assert sum(map(len, made)) == matches


def test_no_bot_waits_for_long_in_a_round():
    games, _, bots = schedule(20, [4], 10_000, steps=20_000)
    played = Counter(dict.fromkeys(bots, 0))
    for game in first_games(games):
        played.update(game.bots)
        assert max(played.values()) - min(played.values()) <= 3


def test_a_small_schedule_written_out():
    games, _, _ = schedule(7, [3], 21)
    tables = ["".join(bot.removeprefix("bot") for bot in game.bots) for game in first_games(games)]
    assert tables == ["352", "463", "504", "026", "615", "130", "241"]


NEVER_CHANGED = {  # bots, seats, games, and the digest of the schedule
    "two stages": (9, [3, 4], 150, "19b4e26bc41c933a"),
    "tables of two and of five": (11, [2, 5], 200, "946f47462fc1f275"),
    "one neighbour design less than fits": (9, [4], 88, "60a03c8ee4004394"),
    "not the uneven start of a pair design": (25, [4], 120, "42d37b2d8d6eef9e"),
    "a search for 20 bots": (20, [4], 100, "ea62f5de1a427a39"),
    "cyclic tables with steps side by side": (20, [3], 84, "de88bfadb2fb67e3"),
    "cyclic tables of 24 bots": (24, [4], 480, "5249dd8e1e36a997"),
    "a prime number of bots": (97, [4], 1000, "fccf5a7be0344586"),
    "a search for 22 bots": (22, [4], 308, "c1087d58881b6977"),
}


@pytest.mark.parametrize(
    ("bots", "seats", "budget", "digest"), NEVER_CHANGED.values(), ids=NEVER_CHANGED
)
def test_schedule_never_changes(bots, seats, budget, digest):
    """Leagues store the name of the algorithm, so a changed algorithm needs a new name."""
    games, _, _ = schedule(bots, seats, budget)
    text = " ".join(bot for game in games for bot in game.bots)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


def test_kind_of_stages_selects_the_algorithm():
    assert select_algorithm([Stage(BASIC, 3, 2)]) == "round-robin-1"
    assert select_algorithm([Stage(BASIC, 3, 2, balanced=True)]) == "balanced-1"
    assert ALGORITHMS["balanced-1"] is balanced_schedule


@pytest.mark.parametrize(
    ("bots", "seats", "reason"),
    [(2, 3, "2 bots cannot fill 3 seats"), (6, 6, "basic is not played at tables of 6")],
)
def test_impossible_schedule_is_refused_with_a_reason(bots, seats, reason):
    with pytest.raises(ValueError, match=reason):
        balanced_schedule("cup", names(bots), [Stage(BASIC, seats, 5, balanced=True)], lanes=8)
