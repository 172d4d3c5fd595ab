"""Test what a gauntlet guarantees for any numbers, and how even it becomes."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from itertools import combinations, groupby, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.rules.ruleset import RULESETS
from referee.schedule import Stage
from referee.schedule.budget import buy, smallest_choice
from referee.schedule.extension import ALGORITHMS, select_algorithm
from referee.schedule.round_robin import gauntlet

pytestmark = pytest.mark.unmeasured

BASIC = RULESETS["basic"]
FEW = settings(max_examples=50)
"""Without a deadline, because the machine may be busy."""


def names(challengers, field):
    return [f"new{n}" for n in range(challengers)], [f"old{n}" for n in range(field)]


def by_match(games):
    return [list(match) for _, match in groupby(games, key=lambda game: game.match)]


def first_games(games):
    return [game for game in games if game.seating == 0]


def spread(counts):
    return max(counts) - min(counts)


def plays(games, bots):
    counts = Counter(bot for game in first_games(games) for bot in game.bots)
    return [counts[bot] for bot in bots]


@st.composite
def wholes(draw):
    """Draw a gauntlet of all tables; return games, stages, challengers and field."""
    challengers, field = names(draw(st.integers(1, 4)), draw(st.integers(1, 6)))
    stage = st.builds(
        lambda seats, matches: Stage(BASIC, seats, matches, challengers=len(challengers)),
        st.integers(2, min(5, len(field) + 1)),
        st.integers(1, 3),
    )
    stages = draw(st.lists(stage, min_size=1, max_size=3))
    return gauntlet("cup", challengers + field, stages, lanes=5), stages, challengers, field


@st.composite
def choices(draw, most_stages=3):
    """Draw a gauntlet with a balanced choice; return games, stages, challengers and field."""
    challengers, field = names(draw(st.integers(1, 6)), draw(st.integers(1, 9)))
    sizes = st.integers(2, min(5, len(field) + 1))
    bots = len(challengers) + len(field)
    stages = []
    for seats in draw(st.lists(sizes, min_size=1, max_size=most_stages)):
        [stage] = smallest_choice([Stage(BASIC, seats, 0, challengers=len(challengers))], bots)
        matches = stage.matches + draw(st.integers(0, 20))
        stages.append(Stage(BASIC, seats, matches, balanced=True, challengers=len(challengers)))
    return gauntlet("cup", challengers + field, stages, lanes=5), stages, challengers, field


@FEW
@given(st.one_of(wholes(), choices()))
def test_every_table_has_one_challenger_and_is_played_in_every_cyclic_seating(made):
    games, stages, challengers, field = made
    assert [game.game_id for game in games] == [f"cup-{n + 1}" for n in range(len(games))]
    assert [game.index for game in games] == list(range(len(games)))
    assert len({(game.lane, game.deal_id) for game in games}) == len(games)
    assert {game.deal_id for game in games} == {
        f"cup-deal-{n}" for n in range(1, games[-1].match + 1)
    }
    for match in by_match(games):
        first = match[0].bots
        assert len(set(first) & set(challengers)) == 1
        assert len(set(first) & set(field)) == len(first) - 1 == stages[match[0].stage].seats - 1
        turns = [first[shift:] + first[:shift] for shift in range(len(first))]
        assert [game.bots for game in match] == turns
        assert len({(game.stage, game.round, game.deal_id) for game in match}) == 1


@FEW
@given(st.one_of(wholes(), choices()))
def test_stages_predict_the_number_of_games(made):
    games, stages, challengers, field = made
    bots = len(challengers) + len(field)
    assert len(games) == sum(stage.games(bots) for stage in stages)
    for number, stage in enumerate(stages):
        own = [game for game in games if game.stage == number]
        played = Counter(bot for game in own for bot in game.bots)
        most = max(played[bot] for bot in challengers), max(played[bot] for bot in field)
        assert stage.most_games(bots) == most


@FEW
@given(wholes())
def test_every_combination_plays_all_matches(made):
    games, stages, challengers, field = made
    tables = Counter((game.stage, frozenset(game.bots)) for game in first_games(games))
    assert tables == {
        (number, frozenset((challenger, *others))): stage.matches
        for number, stage in enumerate(stages)
        for challenger in challengers
        for others in combinations(field, stage.seats - 1)
    }


@FEW
@given(wholes())
def test_challengers_and_field_have_played_equally_often_after_each_round(made):
    games, _, challengers, field = made
    played = Counter()
    for _, part in groupby(games, key=lambda game: (game.stage, game.round)):
        for game in part:
            played.update(game.bots)
        assert len({played[bot] for bot in challengers}) == 1
        assert len({played[bot] for bot in field}) == 1


@pytest.mark.extended("measures large schedules and long statistics")
@FEW
@given(wholes())
def test_a_longer_gauntlet_begins_with_the_shorter_one(made):
    _, stages, challengers, field = made
    equal = [Stage(BASIC, stage.seats, 1, challengers=len(challengers)) for stage in stages]
    longer = [Stage(BASIC, stage.seats, 3, challengers=len(challengers)) for stage in stages]
    short = gauntlet("cup", challengers + field, equal, lanes=5)
    assert gauntlet("cup", challengers + field, longer, lanes=5)[: len(short)] == short


@pytest.mark.extended("measures large schedules and long statistics")
@FEW
@given(choices())
def test_challengers_take_turns_by_rounds_of_a_choice(made):
    games, stages, challengers, _ = made
    for number in range(len(stages)):
        own = [game for game in first_games(games) if game.stage == number]
        for last, part in groupby(own, key=lambda game: game.round):
            each = Counter(bot for game in part for bot in game.bots if bot in challengers)
            assert set(each.values()) == {1}
            assert len(each) == len(challengers) or last == own[-1].round


@pytest.mark.extended("measures large schedules and long statistics")
@FEW
@given(choices())
def test_a_choice_is_even_over_all_stages(made):
    games, _, challengers, field = made
    assert spread(plays(games, challengers)) <= 1
    assert spread(plays(games, field)) <= 1
    assert min(plays(games, field)) >= 1


@pytest.mark.extended("measures large schedules and long statistics")
@FEW
@given(choices())
def test_a_challenger_meets_all_of_the_field_equally_often_in_a_choice(made):
    games, stages, challengers, field = made
    for number in range(len(stages)):
        own = [game for game in first_games(games) if game.stage == number]
        met = Counter(
            pair for game in own for pair in product(set(game.bots) & set(challengers), game.bots)
        )
        for challenger in challengers:
            assert spread([met[challenger, other] for other in field]) <= 1


@FEW
@given(choices())
def test_every_bot_has_each_seat_equally_often(made):
    games, stages, challengers, field = made
    for number, stage in enumerate(stages):
        own = [game for game in games if game.stage == number]
        had = Counter((bot, seat) for game in own for seat, bot in enumerate(game.bots))
        for bot in challengers + field:
            assert len({had[bot, seat] for seat in range(stage.seats)}) == 1


@FEW
@given(
    budget=st.integers(0, 3000),
    challengers=st.integers(1, 6),
    field=st.integers(4, 10),
    seats=st.lists(st.integers(2, 5), min_size=1, max_size=3),
)
def test_a_budget_buys_whole_rounds_or_a_choice(budget, challengers, field, seats):
    stages = [Stage(BASIC, size, 0, challengers=challengers) for size in seats]
    bots = challengers + field

    def games(stages):
        return sum(stage.games(bots) for stage in stages)

    budget += games(smallest_choice(stages, bots))
    bought = buy(stages, bots, lambda some: games(some) <= budget, most_games=10**6)
    one_round = sum(challengers * math.comb(field, size - 1) * size for size in seats)
    assert games(bought) <= budget
    if budget >= one_round:
        assert games(bought) == budget // one_round * one_round
        assert not any(stage.balanced for stage in bought)
    else:
        assert games(bought) > budget - max(seats)
        assert all(stage.balanced for stage in bought)


@pytest.mark.parametrize(
    ("challengers", "field", "seats"), [(1, 10, 4), (3, 8, 3), (4, 10, 4), (10, 20, 3), (6, 9, 5)]
)
def test_no_bot_of_the_field_waits_for_long_in_a_round(challengers, field, seats):
    new, old = names(challengers, field)
    games = gauntlet("cup", new + old, [Stage(BASIC, seats, 1, challengers=challengers)], lanes=5)
    played = Counter(dict.fromkeys(old, 0))
    for game in first_games(games):
        played.update(bot for bot in game.bots if bot in played)
        assert spread(played.values()) <= 3


@pytest.mark.parametrize(
    ("challengers", "field", "seats", "matches"),
    [(2, 20, 4, 100), (5, 12, 3, 60), (3, 30, 5, 120), (8, 8, 4, 64)],
)
def test_a_choice_is_fairly_even_at_any_time_and_at_the_table(challengers, field, seats, matches):
    new, old = names(challengers, field)
    stage = Stage(BASIC, seats, matches, balanced=True, challengers=challengers)
    games = first_games(gauntlet("cup", new + old, [stage], lanes=5))
    played = Counter(dict.fromkeys(old, 0))
    for game in games:
        played.update(bot for bot in game.bots if bot in played)
        assert spread(played.values()) <= 3
    met = Counter(
        frozenset(pair)
        for game in games
        for pair in combinations([bot for bot in game.bots if bot in played], 2)
    )
    assert spread([met[frozenset(pair)] for pair in combinations(old, 2)]) <= 5
    right = Counter(
        pair
        for game in games
        for pair in zip(game.bots, game.bots[1:] + game.bots[:1], strict=True)
        if (pair[0] in new) != (pair[1] in new)
    )
    pairs = [pair for one in new for other in old for pair in ((one, other), (other, one))]
    assert spread([right[pair] for pair in pairs]) <= 2


def tables_of(games):
    return ["".join(bot[0] + bot[3:] for bot in game.bots) for game in first_games(games)]


def test_a_small_gauntlet_written_out():
    new, old = names(2, 3)
    games = gauntlet("cup", new + old, [Stage(BASIC, 3, 1, challengers=2)], lanes=4)
    assert tables_of(games) == ["n0o1o0", "n1o2o0", "n0o2o1", "n1o1o2", "n0o0o2", "n1o0o1"]


def test_schedule_never_changes():
    """Leagues store the name of the algorithm, so a changed algorithm needs a new name."""
    new, old = names(3, 6)
    whole = [Stage(BASIC, seats, 2, challengers=3) for seats in (3, 4)]
    chosen = [Stage(BASIC, seats, 8, balanced=True, challengers=3) for seats in (3, 4)]
    text = " ".join(
        bot
        for stages in (whole, chosen)
        for game in gauntlet("cup", new + old, stages, lanes=4)
        for bot in game.bots
    )
    digest = "d3673cf6c4d1c270ba1b292af9164b920b7ea4a5628bae213d2dca0627e88498"
    assert hashlib.sha256(text.encode()).hexdigest() == digest


def test_kind_of_stages_selects_the_algorithm():
    assert select_algorithm([Stage(BASIC, 3, 2, challengers=1)]) == "gauntlet-1"
    assert select_algorithm([Stage(BASIC, 3, 2, challengers=1, balanced=True)]) == "gauntlet-1"
    assert ALGORITHMS["gauntlet-1"] is gauntlet


@pytest.mark.parametrize(
    ("challengers", "stages", "reason"),
    [
        (0, [Stage(BASIC, 2, 1)], "a gauntlet needs at least one challenger"),
        (3, [Stage(BASIC, 3, 1, challengers=3)], "a field of 1 does not fill 2 seats"),
        (4, [Stage(BASIC, 2, 1, challengers=4)], "a field of 0 does not fill 1 seat;"),
        (2, [Stage(BASIC, 6, 1, challengers=2)], "basic is not played at tables of 6"),
        (
            1,
            [Stage(BASIC, 2, 1, challengers=1), Stage(BASIC, 2, 1, challengers=2)],
            "all stages of a gauntlet must have",
        ),
        (
            1,
            [Stage(BASIC, 2, 2, challengers=1, balanced=True)],
            "in 2 matches not every bot plays",
        ),
    ],
)
def test_impossible_schedule_is_refused_with_a_reason(challengers, stages, reason):
    new, old = names(challengers, 4 - challengers)
    with pytest.raises(ValueError, match=reason):
        gauntlet(
            "cup", [*new, *old, "x", "y"] if stages[0].seats == 6 else new + old, stages, lanes=8
        )


def test_extra_meetings_of_a_stage_are_spread_over_the_field():
    """Before the second stage, one bot of the field has had fewer extra meetings than the others."""
    stages = [Stage(BASIC, 2, matches, balanced=True, challengers=2) for matches in (4, 3)]
    games = gauntlet("cup", ["new0", "new1", "old0", "old1", "old2"], stages, lanes=5)
    played = Counter(bot for game in games if game.stage == 1 for bot in game.bots)
    assert [played[bot] for bot in ("old0", "old1", "old2")] == [2, 2, 2]


def test_extra_meetings_of_a_challenger_even_out_over_two_stages():
    """In each stage, each challenger meets two of the four bots of the field: in the second stage the other two."""
    stages = [Stage(BASIC, 3, 2, balanced=True, challengers=2)] * 2
    field = ["old0", "old1", "old2", "old3"]
    games = first_games(gauntlet("cup", ["new0", "new1", *field], stages, lanes=5))
    for challenger in ("new0", "new1"):
        met = Counter(bot for game in games if challenger in game.bots for bot in game.bots)
        assert [met[bot] for bot in field] == [1, 1, 1, 1]
