"""Test round robins: seatings, lanes, ids, and how evenly bots play and meet."""

import hashlib
import math
from collections import Counter
from itertools import combinations, groupby, permutations
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.records import ScheduledGame
from referee.rules.ruleset import RULESETS
from referee.schedule import Stage, default_lanes
from referee.schedule.budget import buy
from referee.schedule.round_robin import list_tables, round_robin

pytestmark = pytest.mark.unmeasured

BASIC = RULESETS["basic"]
DUEL = RULESETS["duel"]
NAMES = ["ann", "bob", "cy", "dee", "eve", "flo", "gus"]


@st.composite
def tournaments(draw, most_stages=3, same_matches=False):
    bots = NAMES[: draw(st.integers(2, len(NAMES)))]
    matches = st.just(draw(st.integers(1, 3))) if same_matches else st.integers(1, 3)
    stage = st.builds(
        lambda seats, matches: Stage(DUEL if seats == 2 else BASIC, seats, matches),
        st.integers(2, min(5, len(bots))),
        matches,
    )
    stages = draw(st.lists(stage, min_size=1, max_size=most_stages))
    least = max(stage.seats for stage in stages)
    return bots, stages, draw(st.integers(least, least + 4))


def schedule(tournament) -> tuple[ScheduledGame, ...]:
    bots, stages, lanes = tournament
    return round_robin("cup", bots, stages, lanes=lanes)


def by_match(games):
    return [list(match) for _, match in groupby(games, key=lambda game: game.match)]


@given(tournaments())
def test_every_table_plays_every_match_in_every_cyclic_seating(tournament):
    bots, stages, _ = tournament
    games = schedule(tournament)
    matches = by_match(games)
    assert [games[0].match for games in matches] == list(range(1, len(matches) + 1))
    for match in matches:
        first = match[0].bots
        turns = [first[shift:] + first[:shift] for shift in range(len(first))]
        assert [game.bots for game in match] == turns
        assert [game.seating for game in match] == list(range(len(first)))
        assert len({(game.stage, game.round, game.deal_id) for game in match}) == 1
    tables = Counter((match[0].stage, frozenset(match[0].bots)) for match in matches)
    assert tables == {
        (number, frozenset(table)): stage.matches
        for number, stage in enumerate(stages)
        for table in combinations(bots, stage.seats)
    }


@given(tournaments())
def test_a_table_has_the_size_of_its_stage(tournament):
    _, stages, _ = tournament
    for game in schedule(tournament):
        assert len(game.bots) == stages[game.stage].seats


@given(tournaments())
def test_no_two_matches_share_a_deal_and_no_lane_meets_one_twice(tournament):
    games = schedule(tournament)
    lanes = tournament[2]
    assert len({game.deal_id for game in games}) == games[-1].match
    assert len({(game.lane, game.deal_id) for game in games}) == len(games)
    assert all(0 <= game.lane < lanes for game in games)


@given(tournaments())
def test_lanes_have_equal_shares(tournament):
    shares = Counter(game.lane for game in schedule(tournament))
    counts = [shares[lane] for lane in range(tournament[2])]
    assert max(counts) - min(counts) <= 1


@given(tournaments())
def test_ids_are_unique_and_count_from_one(tournament):
    games = schedule(tournament)
    assert [game.index for game in games] == list(range(len(games)))
    assert [game.game_id for game in games] == [f"cup-{n + 1}" for n in range(len(games))]


@given(tournaments())
def test_all_bots_have_played_equally_often_after_each_round_of_each_stage(tournament):
    bots = tournament[0]
    played = Counter()
    for _, part in groupby(schedule(tournament), key=lambda game: (game.round, game.stage)):
        for game in part:
            played.update(game.bots)
        assert len({played[bot] for bot in bots}) == 1


@given(tournaments())
def test_no_bot_is_far_ahead_of_others_after_any_match(tournament):
    bots, stages, _ = tournament
    most = max(stage.seats for stage in stages)
    played = Counter(dict.fromkeys(bots, 0))
    for match in by_match(schedule(tournament)):
        played.update(match[0].bots)
        assert max(played.values()) - min(played.values()) <= most


@given(tournaments())
def test_all_pairs_meet_equally_often_and_all_bots_have_each_seat_equally_often(tournament):
    bots, stages, _ = tournament
    games = schedule(tournament)
    for number, stage in enumerate(stages):
        own = [game for game in games if game.stage == number]
        met = Counter(frozenset(pair) for game in own for pair in combinations(game.bots, 2))
        times = math.comb(len(bots) - 2, stage.seats - 2) * stage.seats * stage.matches
        assert met == {frozenset(pair): times for pair in combinations(bots, 2)}
        seats = Counter((bot, seat) for game in own for seat, bot in enumerate(game.bots))
        times = math.comb(len(bots) - 1, stage.seats - 1) * stage.matches
        assert seats == {(bot, seat): times for bot in bots for seat in range(stage.seats)}


@given(tournaments(same_matches=True), st.integers(1, 2))
def test_a_longer_tournament_begins_with_the_shorter_one(tournament, more):
    bots, stages, lanes = tournament
    longer = [Stage(stage.ruleset, stage.seats, stage.matches + more) for stage in stages]
    games = schedule(tournament)
    assert schedule((bots, longer, lanes))[: len(games)] == games


def test_adding_to_the_longest_stage_only_appends():
    short = [Stage(DUEL, 2, 3), Stage(BASIC, 4, 1)]
    long = [Stage(DUEL, 2, 5), Stage(BASIC, 4, 1)]
    games = schedule((NAMES, short, 4))
    assert schedule((NAMES, long, 4))[: len(games)] == games


@pytest.mark.extended("measures large schedules and long statistics")
@pytest.mark.parametrize(
    ("bots", "seats", "ahead"), [(12, 5, 3), (14, 4, 3), (30, 4, 4), (30, 3, 3), (50, 2, 2)]
)
def test_no_bot_is_far_ahead_in_a_large_tournament(bots, seats, ahead):
    tables = list(list_tables(bots, seats))
    assert sorted(tables) == list(combinations(range(bots), seats))
    played = [0] * bots
    for table in tables:
        for bot in table:
            played[bot] += 1
        assert max(played) - min(played) <= ahead


@pytest.mark.extended("measures large schedules and long statistics")
def test_100_000_games_are_scheduled_in_seconds():
    before = process_time()
    schedule(([f"bot{number}" for number in range(317)], [Stage(DUEL, 2, 1)], 4))
    assert process_time() - before < 10


def test_stages_take_turns_round_by_round():
    games = schedule((NAMES[:3], [Stage(BASIC, 3, 2), Stage(DUEL, 2, 3)], 4))
    rounds = [key for key, _ in groupby((game.round, game.stage) for game in games)]
    assert rounds == [(1, 0), (1, 1), (2, 0), (2, 1), (3, 1)]


def left_neighbours(games) -> Counter:
    """Return how often each bot had each other bot as its left neighbour."""
    return Counter(
        pair
        for game in games
        for pair in zip(game.bots, game.bots[1:] + game.bots[:1], strict=True)
    )


@pytest.mark.parametrize("seats", [2, 3, 4, 5])
def test_a_table_goes_through_all_its_cyclic_orders(seats):
    orders = math.factorial(seats - 1)
    games = schedule((NAMES[: seats + 1], [Stage(RULESETS["classic"], seats, 2 * orders)], 8))
    for table in combinations(NAMES[: seats + 1], seats):
        matches = [match for match in by_match(games) if set(match[0].bots) == set(table)]
        for half in (matches[:orders], matches[orders:]):
            seen = {min(game.bots for game in match) for match in half}
            assert seen == {(table[0], *others) for others in permutations(table[1:])}


@pytest.mark.parametrize(("bots", "seats"), [(5, 3), (6, 3), (5, 4), (6, 4), (5, 5), (6, 5)])
def test_neighbours_are_balanced_at_any_time(bots, seats):
    orders = math.factorial(seats - 1)
    games = schedule((NAMES[:bots], [Stage(BASIC, seats, orders)], 8))
    for last in range(1, orders + 1):
        had = left_neighbours(game for game in games if game.round <= last)
        matches = [had[pair] / seats for pair in permutations(NAMES[:bots], 2)]
        assert max(matches) - min(matches) <= (2 if last < orders else 0)


def test_a_small_schedule_written_out():
    games = schedule((["ann", "bob", "cy"], [Stage(DUEL, 2, 1)], 4))
    assert [(game.game_id, game.deal_id, game.lane, game.bots) for game in games] == [
        ("cup-1", "cup-deal-1", 0, ("ann", "bob")),
        ("cup-2", "cup-deal-1", 1, ("bob", "ann")),
        ("cup-3", "cup-deal-2", 2, ("ann", "cy")),
        ("cup-4", "cup-deal-2", 3, ("cy", "ann")),
        ("cup-5", "cup-deal-3", 0, ("bob", "cy")),
        ("cup-6", "cup-deal-3", 1, ("cy", "bob")),
    ]


NEVER_CHANGED = {  # bots, the seats and matches of each stage, and the digest of the schedule
    "two stages": (7, [(3, 3), (2, 4)], "f4e229cd2a127093"),
    "large tables": (7, [(5, 25)], "4cdab68407907b50"),
    "tables of all bots": (4, [(4, 13)], "2e024e430d622b3e"),
}


@pytest.mark.parametrize(("bots", "stages", "digest"), NEVER_CHANGED.values(), ids=NEVER_CHANGED)
def test_schedule_never_changes(bots, stages, digest):
    """Leagues store the name of the algorithm, so a changed algorithm needs a new name."""
    games = schedule((NAMES[:bots], [Stage(RULESETS["classic"], *stage) for stage in stages], 6))
    text = " ".join(f"{game.lane} {' '.join(game.bots)}" for game in games)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize(
    ("seats", "workers", "lanes"),
    [([2], 1, 4), ([4], 2, 4), ([2, 5], 1, 5), ([5], 2, 6), ([3], 3, 6), ([4], 4, 4), ([3], 8, 8)],
)
def test_default_lanes(seats, workers, lanes):
    assert default_lanes(seats, workers) == lanes


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("seats", [2, 3, 4, 5])
def test_by_default_all_workers_have_equal_shares(seats, workers):
    lanes = default_lanes([seats], workers)
    games = schedule((NAMES, [Stage(RULESETS["classic"], seats, 8)], lanes))
    shares = Counter(game.lane % workers for game in games)
    assert len(shares) == workers
    assert max(shares.values()) - min(shares.values()) <= lanes // workers


@given(
    budget=st.integers(1, 10_000),
    bots=st.integers(5, 8),
    seats=st.lists(st.integers(2, 5), min_size=1, max_size=3),
)
def test_a_budget_buys_as_many_whole_rounds_as_fit(budget, bots, seats):
    names = [f"bot{number}" for number in range(bots)]
    stages = [Stage(DUEL if size == 2 else BASIC, size, 1) for size in seats]
    one_round = len(round_robin("cup", names, stages, lanes=8))
    budget += one_round
    bought = buy(
        stages,
        bots,
        lambda stages: sum(stage.games(bots) for stage in stages) <= budget,
        most_games=10**6,
    )
    assert not any(stage.balanced for stage in bought)
    [rounds] = {stage.matches for stage in bought}
    assert rounds * one_round <= budget < (rounds + 1) * one_round


@pytest.mark.parametrize(
    ("bots", "stage", "lanes", "reason"),
    [
        (["ann", "bob", "ann"], Stage(DUEL, 2, 1), 4, "a bot is named twice: ann, bob, ann"),
        (["ann", "bob"], Stage(BASIC, 3, 1), 4, "2 bots cannot fill 3 seats"),
        (["ann", "bob", "cy"], Stage(DUEL, 3, 1), 4, "duel is not played at tables of 3"),
        (["ann", "bob", "cy"], Stage(BASIC, 1, 1), 4, "basic is not played at tables of 1"),
        (
            ["ann", "bob", "cy"],
            Stage(BASIC, 3, 1),
            2,
            "tables of 3 seats need at least 3 lanes, not 2",
        ),
    ],
)
def test_impossible_schedule_is_refused_with_a_reason(bots, stage, lanes, reason):
    with pytest.raises(ValueError, match=reason):
        round_robin("cup", bots, [stage], lanes=lanes)
