"""`bots challenge` plays a gauntlet of a bot against the other current bots of the league."""

import asyncio
import json

import pytest
from real_runs import SAMPLE_BOTS, place

from referee.cli.compare import _make_gauntlet, find_field
from referee.errors import UserError
from referee.records import BotId
from referee.roster.roster import SAMPLE_BOTS as SAMPLES
from referee.roster.roster import Roster, enter_person, person_id
from referee.roster.workshop import Workshop
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store.league import League

ANN = BotId("ann", "1")


@pytest.fixture
def league(tmp_path):
    with League.open(tmp_path / "league", create=True) as opened:
        yield opened


@pytest.fixture
def submit(league, tmp_path):
    """Return a function that adds a bot to the league."""
    roster = Roster(league, Workshop(league.folder, ProcessGroupLauncher(), on_build=print))

    async def submit(name, version="1", more=""):
        folder = tmp_path / f"{name}-{version}"
        folder.mkdir()
        (folder / "bot.toml").write_text(
            f'name = "{name}"\nversion = "{version}"\nauthor = "x"\nlanguage = "sh"\n{more}'
        )
        with (folder / "bot.toml").open("a") as manifest:
            manifest.write('[run]\ncommand = ["./bot"]\n')
        return (await roster.submit(folder, now_us=0)).spec.bot

    return submit


async def test_field_is_the_newest_active_version_of_each_other_bot(league, submit):
    for name, version in (("ann", "1"), ("bob", "1"), ("ann", "2"), ("bob", "2"), ("bob", "3")):
        await submit(name, version)
    league.mark_retired(BotId("bob", "3"), at_us=1)
    league.mark_retired(await submit("cy"), at_us=1)
    enter_person(league, person_id(league, "dee"), now_us=1)
    assert find_field(league, "basic", ANN) == (("bob@2",), ())


async def test_bots_that_cannot_play_are_left_out_with_the_reason(league, submit):
    await submit("ann")
    await submit("bob", more='rulesets = ["duel"]\n')
    await submit("cy", more="[limits]\nmemory_mib = 100000\n")
    assert find_field(league, "basic", ANN).bots == ()
    await submit("dee", more="[limits]\nmemory_mib = 100\n")
    assert find_field(league, "basic", ANN) == (
        ("dee@1",),
        (
            "bob@1 is left out: it does not play basic.",
            "cy@1 is left out: it asks for more than the default limits.",
        ),
    )


def test_error_of_a_challenge_without_opponents_comes_first_and_alone(tmp_path):
    with place(tmp_path) as here:
        for name in ("mine", "bob"):
            here.referee("bots", "init", name, "--author", "x")
        manifest = here.folder / "bob" / "bot.toml"
        manifest.write_text('rulesets = ["duel"]\n' + manifest.read_text())
        with League.open(here.folder / "league", create=True) as league:
            roster = Roster(league, Workshop(league.folder, ProcessGroupLauncher(), on_build=print))
            for name in ("mine", "bob"):
                asyncio.run(roster.submit(here.folder / name, now_us=0))
            done = here.referee("bots", "challenge", "mine")
            assert (done.returncode, done.stdout) == (2, "")
            error, reason = done.stderr.splitlines()
            assert error == (
                "referee: league: no other bot can play against mine@0.1; to add one, such as a sample bot:"
                f" referee bots submit {SAMPLES / 'greedy'} --league league"
            )
            assert reason == "referee: bob@0.1 is left out: it does not play basic."


def test_gauntlet_has_the_bot_as_its_only_challenger():
    config = _make_gauntlet(BotId("a" * 32, "1"), ("bob@1", "cy@2"), "classic", 3, 60)
    assert config.name == f"{'a' * 22}-challenge"
    assert [bot.text for bot in config.bots] == [f"{'a' * 32}@1", "bob@1", "cy@2"]
    assert (config.challengers, config.games) == (1, 60)


@pytest.mark.parametrize(
    ("ruleset", "seats", "budget", "says"),
    [
        ("linko", 2, 60, "ruleset: unknown ruleset 'linko'"),
        ("duel", 3, 60, "seats: duel has 2 players, not 3"),
        ("basic", 4, 60, "bots: 2 cannot fill the 3 other seats of a table"),
        (
            "basic",
            2,
            3,
            "budget: 3 games are not enough: to let every bot play in every stage, the",
        ),
    ],
)
def test_wrong_options_are_refused_before_anything_is_created(ruleset, seats, budget, says):
    with pytest.raises(UserError) as caught:
        _make_gauntlet(ANN, ("bob@1", "cy@2"), ruleset, seats, budget)
    assert str(caught.value).startswith(f"bots challenge: {says}")


@pytest.mark.extended("checks and rates a bot")
def test_submitted_bot_is_rated_by_the_command_that_is_printed(tmp_path):
    with place(tmp_path) as here:
        for name in ("random", "greedy"):
            submitted = here.referee("bots", "submit", SAMPLE_BOTS / name)
            assert submitted.returncode == 0
        *_, last = submitted.stdout.splitlines()
        assert last == (
            "To rate it (games of `referee play` are not rated):"
            " referee bots challenge greedy@1.0 --league league"
        )
        command = last.partition(": referee ")[2].split()
        logged = ("--logs", "logs", "--messages", "--json")
        done = here.referee(*command, "--ruleset", "duel", "--budget", "4", *logged)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["tournament"] == "greedy-challenge"
        assert "To see the bot among all bots of the league: " in done.stderr.splitlines()[-1]
        assert len(list((here.folder / "logs").glob("greedy-challenge-*/*.jsonl"))) == 4 * 2
        rows = json.loads(here.referee("ratings", "--json").stdout)
        assert [(row["games"], row["ruleset"]) for row in rows] == [(4, "duel")] * 2
        assert here.referee("verify").returncode == 0
        refused = here.referee("bots", "challenge", "./greedy")
        assert refused.returncode == 2
        command = "referee bots submit ./greedy --league league"
        assert refused.stderr.endswith(f"to add it to the league: {command}\n")
