"""`referee tournament plan` shows figures of a tournament file and changes nothing."""

import asyncio
import csv
import io
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from real_runs import SAMPLE_BOTS, THREE, place
from sample_league import SampleLeague

from referee.bots.manifest import Variant
from referee.cli.tournament import LeaguePace, _basis, describe_stop
from referee.records import BotId
from referee.reports.formats import fields_of
from referee.reports.tournament_rows import PlanRow
from referee.roster import PERSON
from referee.roster.roster import Roster, enter_person
from referee.roster.workshop import Workshop
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store.league import League

KEYS = [field.key for field in fields_of(PlanRow)]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with place(tmp_path_factory.mktemp("plan")) as made:
        yield made


def checked_output(here, *arguments):
    done = here.referee("tournament", "plan", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_plan_has_the_figures_of_a_file(here):
    file = here.tournament(bots=THREE, matches=3, few=False)
    said = checked_output(here, file)
    assert max(map(len, said.splitlines()[:-1])) <= 80
    figures = dict(line.rstrip().split("  ", 1) for line in said.splitlines() if "  " in line)
    assert {title: value.strip() for title, value in figures.items()} == {
        "stage": "all",
        "rulesets": "classic",
        "seats": "2",
        "games": "18",
        "matches": "9",
        "rounds": "3",
        "games per bot": "12",
        "games per bot and seat": "6",
        "meetings per pair": "3",
        "matches at the right": "3",
        "playing time": figures["playing time"].strip(),
    }
    assert "assuming 100.0 ms a game, because the league has no similar games" in said


def test_plan_has_every_stage_and_their_sum(here):
    file = here.tournament(
        "stages",
        bots=THREE,
        more='[[stage]]\n[[stage]]\nruleset = "basic"\nseats = 3\n',
        few=False,
    )
    rows = json.loads(checked_output(here, file, "--json"))
    assert [list(row) for row in rows] == [KEYS] * 3
    assert [(row["stage"], row["games"]) for row in rows] == [(0, 24), (1, 12), (None, 36)]
    header, *lines = csv.reader(io.StringIO(checked_output(here, file, "--csv")))
    assert header == KEYS
    assert len(lines) == 3
    assert checked_output(here, file).count("games per bot ") == 6


def test_plan_writes_nothing(here):
    file = here.tournament("clean", bots=THREE, few=False)
    before = sorted(here.folder.rglob("*"))
    checked_output(here, file)
    assert sorted(here.folder.rglob("*")) == before


def test_time_that_comes_from_one_game_is_said_in_the_singular():
    shown = _basis(SimpleNamespace(measured=1, games=9), workers=1)
    assert shown.startswith(
        "Playing time: estimated for 1 game at a time, from 1 game of the league; assuming"
    )
    shown = _basis(SimpleNamespace(measured=3, games=9), workers=2)
    assert shown.startswith(
        "Playing time: estimated for 2 games at a time, from 3 games of the league; assuming"
    )


def test_plan_expects_no_more_games_at_a_time_than_there_are(here):
    said = checked_output(
        here, here.tournament("wide", matches=2, more="workers = 40\nlanes = 40\n")
    )
    assert re.search(r"^playing time +100\.0 ms *$", said, re.MULTILINE)
    assert "estimated for 4 games at a time" in said


def test_plan_and_run_say_that_the_machine_has_too_few_cores(here):
    file = here.tournament("cores", matches=1, more="cores_per_game = 1024\n")
    says = "cores_per_game is 1024, but each worker has "
    assert says in checked_output(here, file)
    done = here.referee("tournament", "run", file, "--league", "cores")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"\n{says}" in done.stdout
    assert says not in checked_output(here, here.tournament("enough", more="cores_per_game = 1\n"))


@pytest.mark.extended("plays further tournaments")
def test_time_comes_from_the_games_of_the_league(here):
    file = here.tournament("timed", bots=THREE, matches=1, few=False)
    assert here.referee("tournament", "run", file, "--league", "played").returncode == 0
    *_, everything = json.loads(checked_output(here, file, "--json", "--league", "played"))
    assert everything["measured"] == 6
    assert "from 6 games of the league" in checked_output(here, file, "--league", "played")


def test_games_of_people_do_not_count_for_the_time(tmp_path):
    made = SampleLeague(tmp_path)
    made.play(slice(2))
    person = BotId("ada", PERSON)
    enter_person(made.league, person, now_us=0)
    record = made.make_record(made.tournament.schedule[2])
    game = replace(record, game_id="play-1", seating=(record.seating[0], person))
    made.league.add_game(game)
    assert [len(times) for times in LeaguePace(made.league.folder, None).times.values()] == [2]
    made.league.add_game(replace(record, game_id="play-2"))
    assert [len(times) for times in LeaguePace(made.league.folder, None).times.values()] == [3]
    made.league.close()


@pytest.mark.parametrize(
    ("stopped_after", "matches", "sentence"),
    [
        (9, (10, 100), "Settled after 9 of 100 rounds."),
        (
            10,
            (10, 100),
            "Ended after 10 of 100 rounds: each ruleset is settled or has no further round.",
        ),
        (10, (100, 100), "Settled after 10 of 100 rounds."),
        (
            None,
            (100, 100),
            "The last of 100 rounds is played: not all standings were settled earlier.",
        ),
        (
            None,
            (1, 1),
            "The last of 1 round is played: not all standings were settled earlier.",
        ),
    ],
)
def test_end_of_a_tournament_is_said_in_a_sentence(stopped_after, matches, sentence):
    stages = tuple(SimpleNamespace(matches=each, balanced=False) for each in matches)
    config = SimpleNamespace(ladder=None, stages=stages)
    assert describe_stop(SimpleNamespace(config=config, stopped_after=stopped_after)) == sentence


def test_wrong_file_is_refused_as_by_run(here):
    file = here.tournament("wrong", matches=0, few=False)
    done = here.referee("tournament", "plan", file)
    assert done.returncode == 2
    assert done.stderr == f"referee: {file}: matches: must be at least 1\n"


@pytest.mark.extended("plays further tournaments")
def test_budget_too_small_for_all_tables_is_planned_played_and_verified(here):
    file = here.folder / "small.toml"
    here.tournament("small", bots=("random", "greedy", "bait", "counter"), matches=1, few=False)
    file.write_text(file.read_text().replace("seats = 2\nmatches = 1", "seats = 3\nbudget = 9"))
    [row, _] = json.loads(checked_output(here, file, "--json"))
    assert (row["games"], row["matches"], row["games_per_bot"]) == (9, 3, [6, 9])
    assert row["meetings_per_pair"] == [1, 2]
    done = here.referee("tournament", "run", file, "--league", "small")
    assert done.returncode == 0, done.stderr
    assert "The budget" not in done.stdout, "it is enough for just these games"
    checked = here.referee("verify", "small", "--league", "small")
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.extended("plays further tournaments")
def test_gauntlet_is_planned_played_and_verified(here):
    file = here.tournament(
        "gauntlet",
        bots=("random", "greedy"),
        matches=2,
        more=f'format = "gauntlet"\nchallengers = ["{SAMPLE_BOTS / "bait"}"]\n',
    )
    [row, _] = json.loads(checked_output(here, file, "--json"))
    assert (row["games"], row["games_per_bot"], row["meetings_per_pair"]) == (8, [4, 8], [2, 2])
    done = here.referee("tournament", "run", file, "--league", "gauntlet")
    assert done.returncode == 0, done.stderr
    assert "8 games, 3 bots" in done.stdout
    assert here.referee("verify", "gauntlet", "--league", "gauntlet").returncode == 0
    assert here.referee("tournament", "export", "gauntlet", "--league", "gauntlet").returncode == 0
    checked = here.referee("verify", "gauntlet.zip", "--league", "nowhere")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_plan_and_run_refuse_a_retired_variant_and_a_repeated_bot(here):
    folder = here.bot("mine", "")
    deep = Variant("deep", ("-d", "6"))
    with League.open(here.folder / "chosen", create=True) as league:
        roster = Roster(league, Workshop(league.folder, ProcessGroupLauncher(), on_build=print))
        asyncio.run(roster.submit(folder, now_us=0))
        league.mark_retired(asyncio.run(roster.submit(folder, deep, now_us=0)).spec.bot, at_us=1)
    file = here.tournament("chosen", few=False)
    listed = '["mine", { path = "./mine", name = "deep", args = ["-d", "6"] }, "./mine"]'
    file.write_text(re.sub(r"^bots = .*", f"bots = {listed}", file.read_text(), flags=re.MULTILINE))
    for command in ("plan", "run"):
        done = here.referee("tournament", command, file, "--league", "chosen")
        assert (done.returncode, done.stdout) == (2, "")
        retired, twice = done.stderr.splitlines()
        assert retired == f"referee: {file}: bots[1]: deep@1 is retired; choose another name"
        assert twice.startswith(f"referee: {file}: bots[2]: the same bot as bots[0], mine@1; to ")


def test_bot_on_both_sides_of_a_gauntlet_is_refused(here):
    file = here.tournament(
        "both",
        bots=("random", "greedy"),
        more=f'format = "gauntlet"\nchallengers = ["{SAMPLE_BOTS / "greedy"}"]\n',
    )
    done = here.referee("tournament", "plan", file)
    assert done.returncode == 2
    assert done.stderr == f"referee: {file}: challengers[0]: is also in the field, as bots[1]\n"


@pytest.mark.extended("plays further tournaments")
def test_budget_of_minutes_uses_the_times_of_the_league(here):
    short = here.tournament("short", matches=1, few=False)
    timed = here.folder / "minutes.toml"
    here.tournament("minutes", matches=1, few=False)
    timed.write_text(
        timed.read_text().replace("matches = 1", "budget = { minutes = 0.05 }\nworkers = 1")
    )
    done = here.referee("tournament", "run", timed, "--league", "quick")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"referee: {timed}: budget: the league has no games of classic at a table of 2, so their duration is"
        " unknown; play a short tournament first, or give a number of games\n"
    )
    assert not (here.folder / "quick").exists()
    assert here.referee("tournament", "run", short, "--league", "quick").returncode == 0
    row, *_ = json.loads(checked_output(here, timed, "--json", "--league", "quick"))
    assert row["playing_time_us"] <= 3_000_000
    done = here.referee("tournament", "run", timed, "--league", "quick")
    assert done.returncode == 0, done.stderr
    assert f"The budget of 0.05 minutes is enough for {row['games']} games." in done.stdout
