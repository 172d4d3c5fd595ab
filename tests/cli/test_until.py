"""A tournament with `until` stops when its standings are settled, always after the same round."""

from __future__ import annotations

import json
import shutil

import pytest
from forgeries import renew_archive, renew_database
from real_runs import SEED, place, read_until
from strangers import ask_a_stranger

from referee import deals
from referee.cli import run as cli_run
from referee.store.league import League
from referee.tournament import archive_format

pytestmark = pytest.mark.extended("plays further tournaments")

BOTS = ("greedy", "random")
ROUNDS = 60
UNTIL = "until = { confidence = 0.8, margin = 0.5 }\n"


def tournament(here, name="cup", more=""):
    """Write a tournament of two bots of very different strength. A round is one match of two games."""
    return here.tournament(name, bots=BOTS, matches=ROUNDS, more=UNTIL + more)


def row_of(here, league):
    with League.open(here.folder / league, create=False) as store:
        return store.tournament("cup")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A league with a tournament that has stopped early."""
    with place(tmp_path_factory.mktemp("until")) as made:
        done = made.referee("tournament", "run", tournament(made), "--league", "league")
        assert done.returncode == 0, done.stderr
        made.said = done.stdout
        made.rounds = row_of(made, "league").stopped_after
        assert 1 < made.rounds < ROUNDS / 2
        yield made


@pytest.fixture
def copy(here):
    """The database of a copy of the league, for a test to change."""
    shutil.copytree(here.folder / "league", here.folder / "copy")
    yield "copy"
    shutil.rmtree(here.folder / "copy")


def test_stopped_tournament_is_finished_with_the_games_it_has(here):
    row = row_of(here, "league")
    assert row.games == row.stored == 2 * here.rounds
    assert row.finished_at_us is not None
    assert here.said.startswith(f"cup: at most {2 * ROUNDS} games, 2 bots.")
    assert here.said.endswith(
        f"Settled after {here.rounds} of {ROUNDS} rounds. Seed: {SEED}\n"
        f"greedy@1.0 is better than random@1.0, known after {2 * here.rounds} games.\n"
    )


def test_every_command_treats_a_stopped_tournament_as_finished(here):
    done = here.referee("tournament", "status", "cup", "--json", "--league", "league")
    status = json.loads(done.stdout)
    assert (status["finished"], status["stopped_after"]) == (True, here.rounds)
    assert status["seed"] == SEED
    assert [row["share"] for row in status["rounds"]] == [1.0] * (here.rounds + 1)
    done = here.referee("tournament", "status", "cup", "--league", "league")
    assert f"Settled after {here.rounds} of {ROUNDS} rounds.\n" in done.stdout
    [row] = json.loads(here.referee("tournament", "status", "--json", "--league", "league").stdout)
    assert (row["share"], row["stopped_after"]) == (1.0, here.rounds)
    done = here.referee("tournament", "resume", "--league", "league")
    assert done.returncode == 2
    assert "every tournament is finished" in done.stderr
    done = here.referee("verify", "--league", "league")
    assert (done.returncode, done.stdout) == (0, f"cup: {2 * here.rounds} games verified.\n")


@pytest.mark.toolchain("node")
def test_archive_has_the_planned_schedule_for_a_stranger(here):
    archive = here.folder / "stopped.zip"
    words = ("cup", "--league", "league", "--output", archive)
    assert here.referee("tournament", "export", *words).returncode == 0
    commitment = row_of(here, "league").commitment
    assert ask_a_stranger(archive).stdout == (
        f"commitment {commitment}: seed, configuration, bots and schedule fit\n"
        f"{2 * here.rounds} decks follow from the seed\n"
    )
    members = archive_format.unpack(archive, archive.read_bytes())
    tournament = json.loads(members["tournament.json"])
    assert len(tournament["planned_schedule"]) == ROUNDS
    tournament["stopped_after"] -= 1
    members["tournament.json"] = json.dumps(tournament).encode()
    archive.write_bytes(
        archive_format.pack({name: members[name] for name in archive_format.MEMBERS})
    )
    assert "a match that was not planned" in ask_a_stranger(archive).stderr


@pytest.mark.extended("plays further tournaments")
def test_killed_tournament_stops_at_the_same_round_with_more_workers(here):
    file = tournament(here, more="workers = 2\n")
    for games in (0, 1):
        command = ("resume", "cup") if games else ("run", file)
        with here.started("tournament", *command, "--league", "killed") as process:
            process.stdout.readline()  # it is stored
            read_until(process, games)
            process.kill()
            process.wait()
            assert here.left_alone()
    done = here.referee("tournament", "resume", "cup", "--league", "killed")
    assert done.returncode == 0, done.stderr
    assert here.records("killed") == here.records("league")
    assert row_of(here, "killed").stopped_after == here.rounds


@pytest.mark.extended("plays further tournaments")
def test_tournament_killed_before_a_test_is_tested_when_resumed(here):
    with here.started("tournament", "run", tournament(here), "--league", "new") as process:
        process.stdout.readline()
        process.kill()
        process.wait()
        assert here.left_alone()
    with (
        League.open(here.folder / "league", create=False) as league,
        League.open(here.folder / "new", create=False) as new,
    ):
        there = new.forfeits("cup")
        new.add_games(league.record(game) for game in league.forfeits("cup") if game not in there)
    done = here.referee("tournament", "resume", "cup", "--league", "new")
    assert done.returncode == 0, done.stderr
    assert f"of which {2 * here.rounds} are played" in done.stdout
    assert here.records("new") == here.records("league")
    assert row_of(here, "new").stopped_after == here.rounds


@pytest.mark.extended("plays further tournaments")
def test_unsettled_tournament_plays_all_its_games(here):
    file = here.tournament("short", bots=("greedy", "random"), matches=2, more=UNTIL)
    done = here.referee("tournament", "run", file, "--league", "short")
    assert done.returncode == 0, done.stderr
    assert (
        f"The last of 2 rounds is played: not all standings were settled earlier. Seed: {SEED}\n"
        in done.stdout
    )
    assert here.referee("verify", "--league", "short").returncode == 0


@pytest.mark.extended("plays further tournaments")
def test_extension_of_a_stopped_tournament_is_played_completely(here, copy):
    done = here.referee("tournament", "extend", "cup", "--matches", "3", "--league", copy)
    assert done.returncode == 0, done.stderr
    before = 2 * here.rounds
    assert f"cup: {before + 6} games, of which {before} are played" in done.stdout
    records = here.records(copy)
    assert records[:before] == here.records("league")
    assert [record.game_id for record in records] == [f"cup-{n + 1}" for n in range(before + 6)]
    assert f"Settled after {here.rounds} of {ROUNDS} rounds. Seed: {SEED}\n" in done.stdout
    record = records[before]
    dropped = deals.deck(bytes.fromhex(SEED), f"cup-deal-{here.rounds + 1}", record.ruleset)
    assert record.deck != dropped, "everybody knows this deal"
    assert here.referee("verify", "--league", copy).returncode == 0
    words = ("cup", "--league", copy, "--output", "longer.zip")
    assert here.referee("tournament", "export", *words).returncode == 0
    assert here.referee("verify", "./longer.zip").returncode == 0


def test_tournament_cannot_be_extended_before_it_has_stopped(here, copy, monkeypatch):
    monkeypatch.setattr(cli_run, "refresh_bots", None)  # refused before bots are built
    with here.database(copy) as database:
        database.execute("UPDATE tournaments SET finished_at_us = NULL, stopped_after = NULL")
    done = here.referee("tournament", "extend", "cup", "--matches", "1", "--league", copy)
    assert done.returncode == 2
    assert done.stderr == (
        "referee: cup: its games decide when it stops, so it cannot be extended before its end:"
        " resume it first\n"
    )


def cut(database, games):
    """Remove this game and all later ones, as if the tournament had stopped before."""
    for table in ("faults", "seats", "records", "results"):
        database.execute(f"DELETE FROM {table} WHERE game_id > ?", (games,))  # noqa: S608
    database.execute("DELETE FROM games WHERE id > ?", (games,))
    database.execute("UPDATE tournaments SET stopped_after = ?", (games // 2,))


def test_stop_that_came_too_early_is_detected(here, copy):
    early = here.rounds - 1
    with here.database(copy) as database:
        cut(database, 2 * early)
    done = here.referee("verify", "cup", "--league", copy)
    assert done.returncode == 1
    assert done.stderr == (
        f"referee: cup: after {early} rounds the standings were not settled, but the games ended\n"
    )
    words = ("cup", "--league", copy, "--output", "early.zip")
    assert here.referee("tournament", "export", *words).returncode == 0
    done = here.referee("verify", "./early.zip")
    assert done.returncode == 1
    assert "rounds the standings were not settled, but the games ended" in done.stderr


SPOILT = {
    "went on": (
        "UPDATE tournaments SET config = replace(config, '0.8', '0.51')",
        "rounds the standings were settled, but games followed",
    ),
    "a round without a look": (
        "UPDATE tournaments SET stopped_after = 13",
        "the tournament cannot have stopped after 13 rounds: there is no look after",
    ),
    "no word of it": ("UPDATE tournaments SET stopped_after = NULL", f"games, not {2 * ROUNDS}"),
}


@pytest.mark.parametrize(("statement", "reason"), SPOILT.values(), ids=SPOILT)
def test_wrong_stop_in_the_league_is_detected(here, copy, statement, reason):
    with here.database(copy) as database:
        database.execute(statement)
        renew_database(database)
    done = here.referee("verify", "cup", "--league", copy)
    assert done.returncode == 1
    assert reason in done.stderr


SPOILT_ARCHIVES = {
    "no word of it": (("stopped_after",), None, f"games, not {2 * ROUNDS}"),
    "no planned schedule": (("planned_schedule",), None, "the SHA-256 of the schedule is "),
    "other rounds": (("stopped_after",), 1, "the configuration makes at most 2"),
    "no rounds": (("stopped_after",), 0, "stopped_after: Input should be greater than"),
    "nothing to stop it": (("configuration", "until"), None, "there is no look after"),
    "less to stop it": (("configuration", "until", "confidence"), 0.51, "but games followed"),
    "endless": (
        ("configuration", "stages", 0, "matches"),
        10**400,
        "stages: 0: matches: impossible number",
    ),
}


@pytest.mark.parametrize(("at", "value", "reason"), SPOILT_ARCHIVES.values(), ids=SPOILT_ARCHIVES)
def test_wrong_stop_in_an_archive_is_detected(here, at, value, reason):
    archive, spoilt = here.folder / "cup.zip", here.folder / "spoilt.zip"
    assert here.referee("tournament", "export", "cup", "--league", "league").returncode == 0
    members = archive_format.unpack(archive, archive.read_bytes())
    said = json.loads(members["tournament.json"])
    *keys, last = at
    inner = said
    for key in keys:
        inner = inner[key]
    inner[last] = value
    members["tournament.json"] = json.dumps(said).encode()
    members = renew_archive(members)
    spoilt.write_bytes(
        archive_format.pack({name: members[name] for name in archive_format.MEMBERS})
    )
    done = here.referee("verify", spoilt)
    assert done.returncode == 1
    assert reason in done.stderr


def test_plan_says_that_the_tournament_may_stop_early(here):
    done = here.referee("tournament", "plan", tournament(here))
    assert done.stdout.endswith(
        "The number of games above is the maximum. The tournament stops earlier if every bot is surely ahead of the next one"
        " or equal within 0.5. The confidence is 0.8 for all verdicts together; the standings are tested 21 times, after"
        " whole rounds.\n"
    )


def test_plan_says_that_a_tournament_of_one_round_cannot_stop_early(here):
    done = here.referee(
        "tournament", "plan", here.tournament("once", bots=BOTS, matches=1, more=UNTIL)
    )
    assert done.stdout.endswith(
        "This tournament cannot stop earlier: its standings are tested only once, after its last round.\n"
    )
