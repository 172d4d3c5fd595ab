"""Test longer schedules: existing games stay, and added games continue them."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import chain, combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.rules.ruleset import RULESETS
from referee.schedule import Stage, balanced
from referee.schedule.balanced import balanced_tables
from referee.schedule.extension import ALGORITHMS, extension_games, lengthen, shorten

pytestmark = pytest.mark.unmeasured

BASIC = RULESETS["basic"]
NAMES = ["ann", "bob", "cy", "dee", "eve"]
FEW = settings(max_examples=50)


@pytest.fixture(autouse=True, scope="module")
def _cache_tables():
    """Cache the tables, which depend on three small numbers and take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balanced, "balanced_tables", cache(balanced_tables))
        yield


@st.composite
def tournaments(draw, same_matches=False):
    """Draw an algorithm, bots, stages and extensions."""
    challengers = draw(st.integers(0, 2))
    bots = NAMES[: draw(st.integers(challengers + 3, 5))]
    same = st.just(draw(st.integers(1, 3)))
    stage = st.builds(
        lambda seats, matches: Stage(BASIC, seats, matches, challengers=challengers),
        st.integers(2, min(4, len(bots) - max(0, challengers - 1))),
        same if same_matches else st.integers(1, 3),
    )
    stages = draw(st.lists(stage, min_size=1, max_size=3))
    algorithm = "gauntlet-1" if challengers else "round-robin-1"
    return algorithm, bots, stages, draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))


def parts_of(tournament):
    algorithm, bots, stages, extensions = tournament
    created = ALGORITHMS[algorithm]("cup", bots, stages, lanes=5)
    return created, *extension_games(
        algorithm, "cup", bots, stages, extensions, lanes=5, last=created[-1]
    )


@FEW
@given(tournaments())
def test_extension_keeps_existing_games_and_continues_the_numbers(tournament):
    algorithm, bots, stages, extensions = tournament
    parts = parts_of(tournament)
    assert len(parts) == 1 + len(extensions)
    assert parts[0] == ALGORITHMS[algorithm]("cup", bots, stages, lanes=5)
    assert parts == (*parts_of((algorithm, bots, stages, extensions[:-1])), parts[-1])
    games = list(chain.from_iterable(parts))
    assert [game.index for game in games] == list(range(len(games)))
    assert [game.game_id for game in games] == [f"cup-{n + 1}" for n in range(len(games))]
    assert [game.lane for game in games] == [n % 5 for n in range(len(games))]
    assert all(game.deal_id == f"cup-deal-{game.match}" for game in games)
    assert all(after.match - before.match in {0, 1} for before, after in pairwise(games))
    assert all((a.match == b.match) == (b.seating > 0) for a, b in pairwise(games))
    assert len({(game.lane, game.deal_id) for game in games}) == len(games)


@pytest.mark.extended("measures large schedules and long statistics")
@FEW
@given(tournaments())
def test_extension_adds_its_matches_to_each_table(tournament):
    _, bots, stages, extensions = tournament
    before, *added = parts_of(tournament)
    rounds = [stage.matches for stage in stages]
    for matches, games in zip(extensions, added, strict=True):
        tables = Counter((game.stage, frozenset(game.bots)) for game in games if not game.seating)
        assert set(tables.values()) == {matches}
        assert set(tables) == {(game.stage, frozenset(game.bots)) for game in before}
        for number in range(len(stages)):
            had = {game.round for game in games if game.stage == number}
            assert had == set(range(rounds[number] + 1, rounds[number] + matches + 1))
            rounds[number] += matches
        if not stages[0].challengers:
            assert tables.keys() == {
                (number, frozenset(table))
                for number, stage in enumerate(stages)
                for table in combinations(bots, stage.seats)
            }


@pytest.mark.extended("measures large schedules and long statistics")
@FEW
@given(tournaments(same_matches=True))
def test_extended_stages_of_equal_length_equal_a_longer_tournament(tournament):
    algorithm, bots, stages, extensions = tournament
    whole = ALGORITHMS[algorithm]("cup", bots, lengthen(stages, sum(extensions)), lanes=5)
    assert tuple(chain.from_iterable(parts_of(tournament))) == whole


@FEW
@given(tournaments(), st.integers(1, 3))
def test_shortened_schedule_is_the_start_of_the_longer_one(tournament, rounds):
    algorithm, bots, stages, _ = tournament
    long, short = (
        ALGORITHMS[algorithm]("cup", bots, each, lanes=5)
        for each in (stages, shorten(stages, rounds))
    )
    assert short == long[: len(short)]
    assert {game.round for game in short} == set(range(1, rounds + 1)) & {
        game.round for game in long
    }
    assert all(game.round > rounds for game in long[len(short) :])


@st.composite
def choices(draw):
    """Draw a balanced choice of tables, and extensions."""
    challengers = draw(st.integers(0, 2))
    bots = [*NAMES, "fay", "gus"][: draw(st.integers(5, 7))]
    least = 6  # enough for every bot to play
    stage = st.builds(
        lambda seats, matches: Stage(BASIC, seats, matches, balanced=True, challengers=challengers),
        st.integers(2, 4),
        st.integers(least, 9),
    )
    stages = draw(st.lists(stage, min_size=1, max_size=2))
    algorithm = "gauntlet-1" if challengers else "balanced-1"
    return algorithm, bots, stages, draw(st.lists(st.integers(least, 8), min_size=1, max_size=3))


@pytest.mark.extended("measures large schedules and long statistics")
@FEW
@given(choices())
def test_extended_balanced_choice_is_as_even_as_a_longer_one(tournament):
    algorithm, bots, stages, extensions = tournament
    parts = parts_of(tournament)
    assert parts[0] == ALGORITHMS[algorithm]("cup", bots, stages, lanes=5)
    assert parts == (*parts_of((algorithm, bots, stages, extensions[:-1])), parts[-1])
    games = list(chain.from_iterable(parts))
    assert [game.index for game in games] == list(range(len(games)))
    for number, stage in enumerate(stages):
        had = [game for game in games if game.stage == number]
        matches = {game.match for game in had}
        assert len(matches) == stage.matches + sum(extensions)
        rounds = [game.round for game in had]
        assert rounds == sorted(rounds)
        assert set(rounds) == set(range(1, rounds[-1] + 1))
    plays = Counter(bot for game in games if not game.seating for bot in game.bots)
    challengers = stages[0].challengers
    for equals in (bots[:challengers], bots[challengers:]):
        numbers = [plays[bot] for bot in equals]
        assert not numbers or max(numbers) - min(numbers) <= 1


def pair_meetings(games):
    """Return how often each pair of bots meets, also of pairs that never meet."""
    bots = sorted({bot for game in games for bot in game.bots})
    met = Counter(pair for game in games for pair in combinations(sorted(game.bots), 2))
    return {pair: met[pair] for pair in combinations(bots, 2)}


@pytest.mark.parametrize(
    ("bots", "seats", "matches", "extensions", "spread"),
    [(8, 4, 2, [2] * 5, 1), (8, 4, 4, [2, 4, 2], 1), (20, 4, 10, [10] * 3, 2), (11, 3, 4, [4], 1)],
)
def test_pairs_meet_about_equally_often_over_all_extensions(
    bots, seats, matches, extensions, spread
):
    """Equal stages have equal tables, so pairs that have not met would never meet."""
    names = [f"bot{number}" for number in range(bots)]
    stages = [Stage(BASIC, seats, matches, balanced=True)]
    parts = parts_of(("balanced-1", names, stages, extensions))
    met = pair_meetings([game for game in chain(*parts) if not game.seating]).values()
    assert max(met) - min(met) <= spread


def test_stages_of_a_balanced_choice_with_the_same_table_size_have_other_tables():
    names = [f"bot{number}" for number in range(8)]
    stages = [Stage(BASIC, 4, 4, balanced=True)] * 2
    games = ALGORITHMS["balanced-1"]("cup", names, stages, lanes=4)
    met = pair_meetings([game for game in games if not game.seating]).values()
    assert (min(met), max(met)) in {(1, 2), (1, 3)}


def test_challenger_meets_the_field_about_equally_often_over_all_extensions():
    names = [f"bot{number}" for number in range(6)]
    stages = [Stage(BASIC, 2, 12, balanced=True, challengers=2)]
    parts = parts_of(("gauntlet-1", names, stages, [12] * 4))
    met = pair_meetings([game for game in chain(*parts) if not game.seating])
    for challenger in names[:2]:
        times = [met[challenger, other] for other in names[2:]]
        assert max(times) - min(times) <= 1


def test_tables_of_equal_choices_are_computed_once(monkeypatch):
    """If each extension computed the stages before it again, a small archive would take days to verify."""
    computed = []

    def compute(*arguments):
        computed.append(arguments)
        return balanced_tables(*arguments)

    stage = Stage(BASIC, 2, 6, balanced=True)
    created = ALGORITHMS["balanced-1"]("cup", NAMES, [stage], lanes=5)
    monkeypatch.setattr(balanced, "balanced_tables", compute)
    extension_games("balanced-1", "cup", NAMES, [stage], [6, 7, 6, 7], lanes=5, last=created[-1])
    assert computed == [(5, 2, 6), (5, 2, 7)]


@pytest.mark.parametrize(
    ("stage", "matches", "reason"),
    [
        (Stage(BASIC, 2, 4), 0, "an extension must add at least one match"),
        (Stage(BASIC, 3, 4, balanced=True, challengers=2), 1, "in 1 match not every bot plays"),
    ],
)
def test_impossible_extension_is_refused(stage, matches, reason):
    algorithm = "gauntlet-1" if stage.challengers else "round-robin-1"
    with pytest.raises(ValueError, match=reason):
        parts_of((algorithm, NAMES, [stage], [matches]))


def test_refused_extension_names_a_number_that_is_enough_for_every_stage():
    stages = [Stage(BASIC, seats, 4, balanced=True, challengers=2) for seats in (4, 2)]
    with pytest.raises(ValueError, match=r"^in 1 match not every bot plays; play at least 3 "):
        parts_of(("gauntlet-1", NAMES, stages, [1]))
    parts_of(("gauntlet-1", NAMES, stages, [3]))
