"""A tournament with `until` follows its course from look to look, also if it is interrupted, and `verify` finds every other course."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from extended import extend_all_but
from stand_ins import Cup

from referee.errors import StoreError
from referee.match.replay import Difference
from referee.ratings.judge import Judge, PairVerdict, Verdict, Verdicts
from referee.store.league import League
from referee.tournament.archive_reader import ArchivedTournament
from referee.tournament.config_reader import load_tournament
from referee.tournament.create import (
    extend_tournament,
    find_tournament,
)

SAMPLE_BOTS = Path(__file__).parents[2] / "sample_bots"
BOTS = ("greedy", "random", "bait", "counter")
ROUNDS = 6
FILE = f"""
name = "cup"
matches = {ROUNDS}
max_turns = 4
lanes = 4
until = {{ confidence = 0.9 }}
bots = [{", ".join(f'"{SAMPLE_BOTS / bot}"' for bot in BOTS)}]

[[stage]]
ruleset = "duel"
seats = 2

[[stage]]
ruleset = "basic"
seats = 3
"""
A_ROUND = 6 * 2 + 4 * 3
"""The games of a round: six duels and four tables of three bots, twelve games each."""
COURSES = {
    "settled at once": lambda _rounds, _ruleset: "ahead ahead equal",
    "all open": lambda _rounds, _ruleset: "open open open",
    "one pair open": lambda rounds, _: "open open open" if rounds < 2 else "ahead open equal",
    "pairs settled one by one": lambda rounds, _: {
        1: "ahead open open",
        2: "ahead open equal",
    }.get(rounds, "ahead equal equal"),
    "one ruleset settled": lambda rounds, ruleset: (
        "ahead ahead ahead" if ruleset == "duel" and rounds > 1 else "open open ahead"
    ),
    "one ruleset settled before the other": lambda rounds, ruleset: (
        "ahead ahead ahead" if rounds > (1 if ruleset == "duel" else 3) else "open open ahead"
    ),
}


def make_cup(folder):
    """Return a league with a tournament of two rulesets."""
    file = folder / "cup.toml"
    file.write_text(FILE)
    return Cup(folder, load_tournament(file))


@pytest.fixture
def cup(tmp_path):
    made = make_cup(tmp_path)
    yield made
    made.league.close()


@pytest.fixture
def follow(monkeypatch):
    """Return a function that sets the verdicts of every look to those of a course in COURSES."""

    def set_verdicts(name):
        def look(judge, analyses, rounds, _before):
            assert judge.looks == tuple(range(1, ROUNDS + 1))
            tables = {
                ruleset: tuple(
                    PairVerdict(bot=bot, below=below, chance=0.5, verdict=Verdict(word))
                    for (bot, below), word in zip(
                        pairwise(analysis.results.bots),
                        COURSES[name](rounds, ruleset).split(),
                        strict=True,
                    )
                )
                for ruleset, analysis in analyses.items()
            }
            return Verdicts(analyses, tables, {}, (), None)

        monkeypatch.setattr(Judge, "look", look)

    return set_verdicts


def bots_of(games, stage, round_number):
    """Return the bots of each match of a round."""
    chosen = [game for game in games if (game.stage, game.round) == (stage, round_number)]
    return [next(group).bots for _, group in groupby(chosen, key=lambda game: game.match)]


@pytest.mark.extended("plays and interrupts a tournament of each course")
def test_tournament_keeps_its_schedule_if_nothing_is_settled(cup, follow):
    follow("all open")
    planned = cup.schedule
    assert cup.play()
    assert cup.schedule == planned
    assert cup.stopped_after is None
    assert cup.verify() == ROUNDS * A_ROUND


def test_after_a_look_only_open_neighbours_play(cup, follow):
    follow("one pair open")
    planned = cup.schedule
    assert cup.play()
    played = cup.schedule
    assert [replace(game, bots=()) for game in played] == [
        replace(game, bots=()) for game in planned
    ]
    assert played[: 2 * A_ROUND] == planned[: 2 * A_ROUND]
    bots = sorted({bot for game in planned for bot in game.bots})
    for round_number in range(3, ROUNDS + 1):
        assert all(set(table) == set(bots[1:3]) for table in bots_of(played, 0, round_number))
        assert all(set(table) > set(bots[1:3]) for table in bots_of(played, 1, round_number))
    assert cup.verify() == len(planned)


def test_tournament_stops_when_all_are_settled(cup, follow, tmp_path):
    follow("pairs settled one by one")
    assert cup.play()
    assert cup.stopped_after == 3
    assert len(cup.schedule) == 3 * A_ROUND
    assert cup.verify() == 3 * A_ROUND
    assert ArchivedTournament.open(cup.export(tmp_path)).verify() == 3 * A_ROUND


def test_settled_ruleset_is_not_played_on(cup, follow, tmp_path):
    follow("one ruleset settled")
    assert cup.play()
    games = cup.schedule
    assert {game.stage for game in games[2 * A_ROUND :]} == {1}
    assert len(games) == 2 * A_ROUND + (ROUNDS - 2) * 12
    assert [game.game_id for game in games] == [f"cup-{n + 1}" for n in range(len(games))]
    assert cup.stopped_after is None
    assert cup.verify() == len(games)
    assert ArchivedTournament.open(cup.export(tmp_path)).verify() == len(games)


@pytest.mark.extended("plays and interrupts a tournament of each course")
def test_tournament_with_a_dropped_ruleset_stops_and_can_be_extended(cup, follow, tmp_path):
    follow("one ruleset settled before the other")
    assert cup.play()
    assert cup.stopped_after == 4
    before = cup.schedule
    assert len(before) == 2 * A_ROUND + 2 * 12
    extend_tournament(cup.league, find_tournament(cup.league, "cup"), 2, seed=bytes(32), now_us=0)
    assert cup.play()
    games = cup.schedule
    assert games[: len(before)] == before
    assert [game.index for game in games] == list(range(len(before) + 2 * A_ROUND))
    assert cup.verify() == len(games)
    assert ArchivedTournament.open(cup.export(tmp_path)).verify() == len(games)


@pytest.mark.extended("plays and interrupts a tournament of each course")
@pytest.mark.parametrize("name", COURSES)
def test_interrupted_tournament_has_the_same_course(cup, follow, tmp_path_factory, name):
    follow(name)
    assert cup.play()
    other = make_cup(tmp_path_factory.mktemp("other"))
    for until in range(10, len(cup.schedule), 40):
        other.play(until=until)
        other.verify()
    assert other.play()
    assert other.schedule == cup.schedule
    assert other.stopped_after == cup.stopped_after
    other.league.close()


def die_in(monkeypatch, name, *, after):
    """Let the next call of a method of the league end the run, before or after it has written."""
    write = getattr(League, name)

    def call(league, *arguments, **more):
        monkeypatch.setattr(League, name, write)
        if after:
            write(league, *arguments, **more)
        raise StoreError("the machine is off")

    monkeypatch.setattr(League, name, call)


@pytest.mark.extended("plays and interrupts a tournament of each course")
@pytest.mark.parametrize("after", [False, True])
def test_run_that_dies_at_a_look_is_resumed_with_the_same_course(
    cup, follow, monkeypatch, tmp_path_factory, after
):
    follow("pairs settled one by one")
    assert cup.play()
    other = make_cup(tmp_path_factory.mktemp("other"))
    for name, games in (("replace_games", A_ROUND), ("stop_early", 3 * A_ROUND)):
        die_in(monkeypatch, name, after=after)
        with pytest.raises(StoreError):
            other.play()
        assert other.verify() == games
    assert other.play()
    assert other.schedule == cup.schedule
    assert other.stopped_after == 3
    other.league.close()


STAYED = "the results changed the tables, but games were played at the old tables"
DIFFERS = "the stored schedule differs"
WRONG = {  # the course that is played, the right course, and what is wrong
    "tables as planned": ("all open", "one pair open", STAYED),
    "tables drawn again": ("one pair open", "all open", DIFFERS),
    "other pairs": ("pairs settled one by one", "one pair open", DIFFERS),
    "games of a settled ruleset": ("one pair open", "one ruleset settled", DIFFERS),
    "no games of an open ruleset": ("one ruleset settled", "all open", DIFFERS),
    "went on": ("all open", "pairs settled one by one", STAYED),
    "did not stop": ("all open", "settled at once", "but games followed"),
    "stopped too late": ("pairs settled one by one", "settled at once", "but games followed"),
    "stopped too early": ("settled at once", "one pair open", "but the games ended"),
}


@pytest.mark.parametrize("case", extend_all_but({"went on"}, WRONG, "plays each wrong course"))
def test_other_course_than_that_of_the_results_is_detected(cup, follow, tmp_path, case):
    played, right, reason = WRONG[case]
    follow(played)
    assert cup.play()
    archive = ArchivedTournament.open(cup.export(tmp_path))
    follow(right)
    with pytest.raises(Difference, match=reason):
        cup.verify()
    with pytest.raises(Difference, match=reason):
        archive.verify()


def test_exchanged_bots_of_an_unplayed_match_are_detected(cup, follow):
    follow("one pair open")
    assert not cup.play(until=2 * A_ROUND + 1)
    games = cup.schedule
    bots = {bot for game in games for bot in game.bots}
    first = next(game for game in games if game.stage == 0 and game.round == 4)
    table = sorted(bots.difference(first.bots))
    exchanged = [replace(first, bots=tuple(table)), replace(first, bots=tuple(reversed(table)))]
    cup.league.replace_games(
        "cup",
        games,
        [
            replace(game, bots=exchanged[game.seating].bots) if game.match == first.match else game
            for game in games
        ],
    )
    with pytest.raises(Difference, match=f"{first.game_id}: {DIFFERS}"):
        cup.verify()
