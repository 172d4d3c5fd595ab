"""A tournament with `until` follows its course from look to look, also if it is interrupted, and `verify` finds every other course."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from referee.errors import StoreError
from referee.match import stand_in_action
from referee.match.replay import Difference
from referee.ratings.judge import Judge, PairVerdict, Verdict, Verdicts
from referee.records import GameRecord, Move
from referee.roster.roster import Roster
from referee.roster.workshop import Workshop
from referee.rules.game import Game
from referee.sandbox import NO_ISOLATION
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store.league import League
from referee.tournament.archive_reader import ArchivedTournament
from referee.tournament.archive_writer import export_archive
from referee.tournament.conduct import Conductor
from referee.tournament.config_reader import load_tournament
from referee.tournament.create import (
    create_tournament,
    enter_bots,
    extend_tournament,
    find_state,
    find_tournament,
)
from referee.tournament.verify import verify_tournament
from referee.tournament.verify_league import LeagueTournament

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
SEED = bytes(range(32))
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


class StandIns:
    """A group of workers that plays every game with the stand-in at every seat."""

    stretch_s = 0.0

    def __len__(self):
        return 2

    async def submit(self, _number, assignment):
        await asyncio.sleep(0)
        return [play(task.setup) for bundle in assignment.bundles for task in bundle]

    def list_hosts(self):
        return []

    def kill(self):
        pass


@asynccontextmanager
async def open_workers():
    yield StandIns()


def play(setup):
    """Return the record of a game that the stand-in plays in every seat."""
    run = Game(setup.ruleset, len(setup.seating), setup.deck)
    moves = []
    while (decision := run.decision) is not None:
        action = stand_in_action(decision)
        run.apply(action)
        moves.append(Move(decision.seat, action, 250, 0, stand_in=False))
    return GameRecord(
        game_id=setup.game_id,
        ruleset=setup.ruleset,
        seating=setup.seating,
        deck=setup.deck,
        moves=tuple(moves),
        faults=(),
        termination=run.outcome.termination,
        scores=run.outcome.scores,
        ranks=run.outcome.ranks,
        forfeited=(),
        usage=(None,) * len(setup.seating),
        clocks=setup.clocks,
        max_strikes=setup.max_strikes,
        isolation=setup.isolation,
        started_at_us=1_800_000_000_000_000,
        duration_us=31_000,
    )


class Cup:
    """A league with a tournament of two rulesets, which is played by `StandIns`."""

    def __init__(self, folder):
        self.league = League.open(folder / "league", create=True)
        workshop = Workshop(self.league.folder, ProcessGroupLauncher(), on_build=None)
        self.roster = Roster(self.league, workshop)
        file = folder / "cup.toml"
        file.write_text(FILE)
        config = load_tournament(file)
        bots = asyncio.run(enter_bots(config, self.roster, now_us=0))
        create_tournament(self.league, config, bots, seed=SEED, now_us=0)

    def play(self, until=None):
        """Play to the end, or until `until` games are stored; return True at the end."""
        conductor = None
        stored = len(self.league.forfeits("cup"))

        def count(_game, _record):
            nonlocal stored
            stored += 1
            if until is not None and stored >= until:
                conductor.drain()

        conductor = Conductor(
            self.league,
            find_tournament(self.league, "cup"),
            self.roster,
            NO_ISOLATION,
            open_workers(),
            on_game_stored=count,
            say=print,
        )
        return asyncio.run(conductor.play_missing_games())

    @property
    def schedule(self):
        return self.league.schedule("cup")

    @property
    def stopped_after(self):
        return find_state(self.league, "cup").stopped_after

    def verify(self):
        return verify_tournament(LeagueTournament(self.league, "cup"))

    def export(self, folder):
        path = folder / "cup.zip"
        path.write_bytes(export_archive(self.league, self.roster, "cup").data)
        return path


@pytest.fixture
def cup(tmp_path):
    made = Cup(tmp_path)
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
    other = Cup(tmp_path_factory.mktemp("other"))
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


@pytest.mark.parametrize("after", [False, True])
def test_run_that_dies_at_a_look_is_resumed_with_the_same_course(
    cup, follow, monkeypatch, tmp_path_factory, after
):
    follow("pairs settled one by one")
    assert cup.play()
    other = Cup(tmp_path_factory.mktemp("other"))
    for name, games in (("replace_games", A_ROUND), ("stop_early", 3 * A_ROUND)):
        die_in(monkeypatch, name, after=after)
        with pytest.raises(StoreError):
            other.play()
        assert other.verify() == games
    assert other.play()
    assert other.schedule == cup.schedule
    assert other.stopped_after == 3
    other.league.close()


STAYED = "some neighbours were settled, but the tables stayed as planned"
DIFFERS = "the stored schedule differs"
WRONG = {  # the course that is played, the right course, and what is wrong
    "tables as planned": ("all open", "one pair open", STAYED),
    "tables drawn again": ("one pair open", "all open", DIFFERS),
    "other pairs": ("pairs settled one by one", "one pair open", DIFFERS),
    "games of a settled ruleset": ("one pair open", "one ruleset settled", DIFFERS),
    "no games of an open ruleset": ("one ruleset settled", "all open", DIFFERS),
    "went on": ("all open", "pairs settled one by one", STAYED),
    "did not stop": ("all open", "settled at once", "but games followed"),
    "stopped too early": ("settled at once", "one pair open", "but the games ended"),
}


@pytest.mark.parametrize("case", WRONG)
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
        [
            replace(game, bots=exchanged[game.seating].bots) if game.match == first.match else game
            for game in games[first.index :]
        ],
    )
    with pytest.raises(Difference, match=f"{first.game_id}: {DIFFERS}"):
        cup.verify()
