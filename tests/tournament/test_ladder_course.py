"""A ladder plays the matches that tell most, ends when its time is over, and `verify` finds every other course."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, count
from pathlib import Path

import numpy as np
import pytest
from postgres_server import execute
from stand_ins import Cup

from referee.errors import RefereeError, UserError
from referee.match.replay import Difference
from referee.ratings.information import Beliefs
from referee.ratings.stopping import StopCondition
from referee.records import GameResult, Meetings
from referee.result_columns import ResultColumns
from referee.store.league import League
from referee.tournament.archive_reader import ArchivedTournament
from referee.tournament.config import (
    LadderStart,
    canonical_json,
    from_canonical_json,
)
from referee.tournament.config_reader import load_tournament
from referee.tournament.create import extend_tournament, find_state, find_tournament
from referee.tournament.ladder import LadderCourse, make_course
from referee.tournament.verify import verify_tournament
from referee.tournament.verify_league import LeagueTournament

SAMPLE_BOTS = Path(__file__).parents[2] / "sample_bots"
BOTS = ("greedy", "random", "bait", "counter")
PAIRS = list(combinations(range(4), 2))
GAMES = 80
TABLES = [
    "012",
    "031",
    "023",
    "132",
    "012",
    "031",
    "023",
    "032",
    "013",
    "023",
    "031",
    "032",
    "013",
    "023",
    "031",
    "032",
    "013",
    "023",
    "031",
    "032",
    "013",
]
"""The tables of three seats in `test_tables_of_a_ladder_do_not_change_between_versions`, in the first three rounds."""
DUELS = "01 23 02 13 03 12 01 23 02 13 03 01 23 03 03 01 23 03 01 23 01 23 03 01 23 03 01 23 03 01"
"""The same for tables of two seats, with spaces between them."""


def make_ladder(folder, *, seats=2, earlier=(), minutes=60.0):
    """Return the configuration of a ladder of four bots with 80 games."""
    file = folder / "ladder.toml"
    bots = ", ".join(f'"{SAMPLE_BOTS / bot}"' for bot in BOTS)
    file.write_text(
        f'name = "cup"\nruleset = "basic"\nseats = {seats}\nmatches = 1\nmax_turns = 4\nlanes = 4\n'
        f"bots = [{bots}]\n"
    )
    config = load_tournament(file)
    stage = replace(config.stages[0], balanced=True, matches=GAMES // seats)
    start = LadderStart(earlier=earlier, minutes=minutes)
    return replace(config, stages=(stage,), schedule="ladder-2", ladder=start)


def results_of(games):
    """Return results in which the bot that comes first in the alphabet always ranks first."""
    return ResultColumns.from_results(
        GameResult(
            game_id=game.game_id,
            tournament="cup",
            index=game.index,
            ruleset="basic",
            round=game.round,
            match=game.match,
            bots=game.bots,
            scores=(0,) * len(game.bots),
            ranks=tuple(sorted(game.bots).index(bot) + 1 for bot in game.bots),
            forfeited=(),
        )
        for game in games
    )


def take_looks(config, count):
    """Return the course of a ladder after `count` looks."""
    course = make_course(config)
    for _ in range(count):
        course.take_look(results_of(course.games[: course.next_look.games]))
    return course


def pairs_of(games):
    """Return how many games each pair of bots plays."""
    return Counter(tuple(sorted(game.bots)) for game in games)


def test_looks_are_before_rounds_of_twenty_games(tmp_path):
    course = make_course(make_ladder(tmp_path))
    looks = []
    while (look := course.next_look) is not None:
        looks.append(look.games)
        course.take_look(results_of(course.games[: look.games]))
    assert looks == [0, 20, 40, 60]
    assert course.stops == [1, 2, 3]
    assert len(course.games) == GAMES


def test_bot_without_games_plays_first(tmp_path):
    known = tuple(Meetings(*pair, 200, 100) for pair in PAIRS if 3 not in pair)
    config = make_ladder(tmp_path, earlier=known)
    course = take_looks(config, 1)
    new = str(SAMPLE_BOTS / "counter")
    assert all(new in game.bots for game in course.games[:4])


def test_neighbours_play_more_than_bots_that_are_far_apart(tmp_path):
    # bot 0 won nearly always, bot 3 nearly never, bots 1 and 2 are equal
    won = {(0, 1): 95, (0, 2): 95, (0, 3): 99, (1, 2): 50, (1, 3): 95, (2, 3): 95}
    earlier = tuple(Meetings(*pair, 100, won[pair]) for pair in PAIRS)
    config = make_ladder(tmp_path, earlier=earlier)
    played = pairs_of(take_looks(config, 1).games[:20])
    middle = tuple(sorted(str(SAMPLE_BOTS / BOTS[number]) for number in (1, 2)))
    assert played.most_common(1)[0][0] == middle


def test_look_changes_only_the_tables_up_to_the_next_look(tmp_path):
    config = make_ladder(tmp_path)
    planned, course = make_course(config).games, take_looks(config, 2)
    assert course.games[:20] == take_looks(config, 1).games[:20]
    assert course.games[20:40] != planned[20:40]
    assert course.games[40:] == planned[40:]


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_every_match_has_different_bots_and_all_seatings(tmp_path, seats):
    course = take_looks(make_ladder(tmp_path, seats=seats), 3)
    for match in range(1, GAMES // seats + 1):
        games = [game for game in course.games if game.match == match]
        assert len({game.bots for game in games}) == len(games) == seats
        assert {frozenset(game.bots) for game in games} == {frozenset(games[0].bots)}
        assert len(set(games[0].bots)) == seats


def test_tables_do_not_depend_on_the_last_bits_of_gains(tmp_path, monkeypatch):
    config, gains = make_ladder(tmp_path), Beliefs.gains
    exact = take_looks(config, 2).games
    rng = np.random.default_rng(1)

    def disturb(beliefs):
        found = gains(beliefs)
        return found * (1 + rng.uniform(-1e-12, 1e-12, found.shape))

    monkeypatch.setattr(Beliefs, "gains", disturb)
    assert take_looks(config, 2).games == exact


def test_stopped_course_ends_with_the_games_before_the_newest_look(tmp_path):
    course = take_looks(make_ladder(tmp_path), 3)
    assert course.stop()
    assert (course.stopped_after, len(course.games), course.next_look) == (2, 40, None)


def test_configuration_is_stored_and_read_back(tmp_path):
    config = make_ladder(tmp_path, earlier=(Meetings(0, 3, 1.5, 0.5),), minutes=2.5)
    assert from_canonical_json(canonical_json(config)).ladder == config.ladder


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"earlier": (Meetings(0, 1, 2, 3),)}, "earlier: better: 3 is not from 0 to 2"),
        (
            {"earlier": (Meetings(0, 1, float("nan"), 0),)},
            "earlier: compared: nan is not less than 1000000000",
        ),
        (
            {"earlier": (Meetings(0, 1, 1e12, 0),)},
            "earlier: compared: 1000000000000.0 is not less than 1000000000",
        ),
        ({"earlier": (Meetings(1, 1, 2, 1),)}, "earlier: 1 and 1 are no pair"),
        ({"earlier": (Meetings(-1, 1, 2, 1),)}, "earlier: -1 and 1 are no pair"),
        ({"minutes": 0.0}, "minutes must be more than 0"),
        ({"minutes": float("nan")}, "minutes must be more than 0"),
    ],
)
def test_impossible_start_is_refused(tmp_path, changes, says):
    with pytest.raises(ValueError, match=says):
        make_ladder(tmp_path, **changes)


def test_configuration_that_contradicts_itself_is_refused(tmp_path):
    config = make_ladder(tmp_path)
    twice = LadderStart(earlier=(Meetings(0, 1, 2, 1), Meetings(0, 1, 2, 2)), minutes=60.0)
    fifth = LadderStart(earlier=(Meetings(0, 4, 2, 1),), minutes=60.0)
    (stage,) = config.stages
    one_stage = "a ladder has one stage, balanced and without challengers"
    for changes, says in (
        ({"stages": (stage, stage)}, one_stage),
        ({"stages": (replace(stage, balanced=False),)}, one_stage),
        ({"stages": (replace(stage, challengers=1),)}, one_stage),
        ({"schedule": "balanced-1"}, "a ladder has the schedule ladder-2, not balanced-1"),
        ({"ladder": twice}, "a pair is listed twice"),
        ({"until": StopCondition()}, "a ladder has no until"),
        ({"bots": config.bots * 51}, "a ladder has at most 200 bots, not 204"),
        ({"ladder": fifth}, "there are only 4 bots"),
    ):
        with pytest.raises(ValueError, match=says):
            make_course(replace(config, **changes))


@pytest.fixture
def open_cup(tmp_path):
    """Return a function that makes a league with a ladder `cup`."""
    made = []

    def open_it(**options):
        made.append(Cup(tmp_path, make_ladder(tmp_path, **options)))
        return made[-1]

    yield open_it
    for cup in made:
        cup.league.close()


def test_ladder_is_played_and_verified_in_the_league_and_in_an_archive(open_cup, tmp_path):
    cup = open_cup()
    assert cup.play()
    assert cup.stopped_after is None
    assert cup.verify() == GAMES
    assert ArchivedTournament.open(cup.export(tmp_path)).verify() == GAMES


def test_look_writes_only_the_round_after_it(open_cup, monkeypatch):
    cup = open_cup()
    looks = []

    def replace_games(league, *arguments):
        before = read_keys(league)
        write(league, *arguments)
        looks.append([game for game, key in before.items() if read_keys(league)[game] != key])

    write = League.replace_games
    monkeypatch.setattr(League, "replace_games", replace_games)
    assert cup.play()
    rounds = {game.game_id: game.round for game in cup.schedule}
    assert [{rounds[game] for game in look} for look in looks] == [{1}, {2}, {3}, {4}]


def read_keys(league):
    """Return the key of each game in the database of a league, by game id."""
    return dict(execute(f"sqlite:///{league.folder / 'league.db'}", "SELECT name, id FROM games"))


@pytest.mark.extended("plays two ladders")
def test_interrupted_ladder_plays_the_same_games(open_cup, tmp_path_factory):
    cup = open_cup()
    assert cup.play()
    folder = tmp_path_factory.mktemp("other")
    other = Cup(folder, make_ladder(folder))
    for until in (1, 20, 30):
        assert not other.play(until=until)
        assert other.verify() == len(other.league.forfeits("cup"))
    assert other.play()
    assert other.schedule == cup.schedule
    other.league.close()


def test_ladder_ends_at_the_first_look_after_its_minutes(open_cup, tmp_path, monkeypatch):
    cup = open_cup(minutes=5.0)  # 30 games
    now = [0.0]

    def add_games(league, records):
        now[0] += 10 * len(records)  # each game takes ten seconds
        return add(league, records)

    add = type(cup.league).add_games
    monkeypatch.setattr(type(cup.league), "add_games", add_games)
    assert cup.play(now_s=lambda: now[0])
    assert cup.stopped_after == 2
    assert len(cup.schedule) == len(cup.league.forfeits("cup")) == 40
    assert find_state(cup.league, "cup").parts[0].finished
    assert cup.verify() == 40
    assert ArchivedTournament.open(cup.export(tmp_path)).verify() == 40
    with pytest.raises(UserError) as caught:
        extend_tournament(
            cup.league, find_tournament(cup.league, "cup"), 1, seed=bytes(32), now_us=0
        )
    assert str(caught.value) == "cup: it is a ladder, which cannot be extended"


def test_ladder_in_which_a_bot_has_no_game_is_no_damaged_tournament(open_cup, monkeypatch):
    cup = open_cup()
    whole = list(cup.league.schedule("cup"))
    idle = whole[0].bots[0]
    rest = [game for game in whole if idle not in game.bots]
    monkeypatch.setattr(cup.league, "schedule", lambda _: rest)
    tournament = find_tournament(cup.league, "cup")
    assert tournament.schedule == tuple(rest)
    assert idle in tournament.bots


def test_ladder_without_time_plays_up_to_the_first_look_after_a_game(open_cup):
    cup, hours = open_cup(), count(step=3600)
    assert cup.play(now_s=lambda: next(hours))
    assert cup.stopped_after == 1
    assert len(cup.league.forfeits("cup")) == 20


def test_extension_of_a_ladder_is_detected(open_cup):
    cup = open_cup()
    claim = LeagueTournament(cup.league, "cup")
    claim.parts *= 2
    with pytest.raises(Difference, match="a ladder has no extension"):
        verify_tournament(claim)


def test_other_tables_than_the_chosen_ones_are_detected(open_cup, monkeypatch):
    cup = open_cup()
    monkeypatch.setattr(LadderCourse, "take_look", lambda course, _: take_no_look(course))
    assert cup.play()
    monkeypatch.undo()
    with pytest.raises(Difference, match="but games were played at the old tables"):
        cup.verify()


def take_no_look(course):
    """Take the next look, but leave all tables as planned."""
    course._looks_taken += 1


def test_stop_without_a_look_is_detected(open_cup):
    cup = open_cup(minutes=1.0)
    assert cup.play()
    cup.league.stop_early("cup", rounds=4, games=GAMES)
    with pytest.raises(Difference, match="stopped after 4 rounds: there is no look after that"):
        cup.verify()


def test_run_goes_on_only_from_games_that_follow_from_the_results(open_cup, monkeypatch):
    cup = open_cup()
    monkeypatch.setattr(LadderCourse, "take_look", lambda course, _: take_no_look(course))
    assert not cup.play(until=41)
    monkeypatch.undo()
    with pytest.raises(RefereeError, match="its games do not follow from its results; to find the"):
        cup.play()


def test_sums_that_no_skills_fit_are_refused(open_cup, monkeypatch):
    cup = open_cup()

    def fit(*_, **__):
        raise ArithmeticError("the fit has not converged")

    monkeypatch.setattr("referee.ratings.information.fit", fit)
    with pytest.raises(Difference, match="ladder: earlier: the fit has not converged"):
        cup.verify()


def test_bots_whose_order_is_well_known_all_play(tmp_path):
    won = {pair: 8000 if pair[1] - pair[0] == 1 else 9900 for pair in PAIRS}
    earlier = tuple(Meetings(*pair, 10_000, won[pair]) for pair in PAIRS)
    played = pairs_of(take_looks(make_ladder(tmp_path, earlier=earlier), 3).games[:60])
    assert len({bot for pair in played for bot in pair}) == 4


@pytest.mark.parametrize(("seats", "tables"), [(2, DUELS.split()), (3, TABLES)])
def test_tables_of_a_ladder_do_not_change_between_versions(tmp_path, seats, tables):
    """If this fails, ladders that are stored cannot be verified any more: give the algorithm another name."""
    course = take_looks(make_ladder(tmp_path, seats=seats), 3)
    numbers = {str(SAMPLE_BOTS / bot): str(number) for number, bot in enumerate(BOTS)}
    games = course.games[: len(tables) * seats : seats]
    assert ["".join(numbers[bot] for bot in game.bots) for game in games] == tables
