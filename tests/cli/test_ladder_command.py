"""`ladder run` plays the matches that tell most between the current bots of the league."""

import json
import re

import pytest
from real_runs import SAMPLE_BOTS, place

from referee.cli import run as cli_run
from referee.cli.ladder import make_ladder
from referee.errors import UserError
from referee.store.league import League

BOTS = ("ann@1", "bob@1", "cy@2")


@pytest.fixture
def league(tmp_path):
    with League.open(tmp_path / "league", create=True) as opened:
        yield opened


def test_ladder_has_all_bots_and_as_many_whole_matches_as_fit(league):
    config = make_ladder(league, BOTS, "duel", 2, 61, 0.5)
    assert (config.name, config.games) == ("ladder-duel", 60)
    assert [bot.text for bot in config.bots] == [*BOTS]
    assert config.ladder.minutes == 0.5
    assert config.ladder.earlier == ()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((BOTS, "linko", 2, 60, 1), "ladder run: ruleset: unknown ruleset 'linko'"),
        ((BOTS, "duel", 3, 60, 1), "ladder run: seats: duel has 2 players, not 3"),
        ((BOTS, "basic", 0, 60, 1), "ladder run: seats: basic has 2 to 5 players, not 0"),
        (
            (BOTS, "basic", 1_000_000, 60, 1),
            "ladder run: seats: basic has 2 to 5 players, not 1000000",
        ),
        ((("x",) * 201, "Linko", 2, 60, 1), "ladder run: ruleset: unknown ruleset 'Linko'"),
        ((BOTS, "basic", 4, 60, 1), "ladder run: bots: 3 cannot fill the 4 seats of a table"),
        (
            (BOTS, "basic", 2, 1, 1),
            "--games: 1 is not enough; a match at a table of 2 has 2 games",
        ),
        ((BOTS, "basic", 2, 60, 0), "--minutes: it must be a number above 0"),
        ((BOTS, "basic", 2, 60, float("nan")), "--minutes: it must be a number above 0"),
        ((("x",) * 201, "basic", 2, 60, 1), "LEAGUE: a ladder has at most 200 bots, and 201 play"),
        (
            (BOTS[:1], "basic", 2, 60, 1),
            "LEAGUE: a ladder needs at least two bots that play basic, and",
        ),
    ],
)
def test_wrong_options_are_refused(league, options, says):
    with pytest.raises(UserError) as caught:
        make_ladder(league, *options)
    assert str(caught.value).startswith(says.replace("LEAGUE", str(league.where)))
    assert len(caught.value.args) == 1


@pytest.mark.parametrize("bots", [("x",), ("x",) * 201])
def test_command_that_mends_the_number_of_bots_means_the_same_league(league, bots):
    with pytest.raises(UserError) as caught:
        make_ladder(league, bots, "basic", 2, 60, 1)
    assert str(caught.value).endswith(f" --league {league.folder}")


@pytest.mark.extended("plays two ladders")
def test_ladder_ends_in_time_counts_in_the_ratings_and_is_verified(tmp_path, monkeypatch):
    with place(tmp_path) as here:
        bots = [SAMPLE_BOTS / name for name in ("random", "greedy", "bait")]
        options = ("--ruleset", "duel", "--seats", "2", "--matches", "1")
        here.referee("tournament", "run", *bots, *options)
        done = here.referee("ladder", "run", "--ruleset", "duel", "--minutes", "0.01")
        assert (done.returncode, done.stderr) == (0, "")
        assert re.search(
            r"^The time is over after \d+ games\. Seed: \w{64}$", done.stdout, re.MULTILINE
        )
        rows = json.loads(here.referee("ratings", "--json").stdout)
        statuses = json.loads(here.referee("tournament", "status", "--json").stdout)
        ladder = next(row for row in statuses if row["tournament"] == "ladder-duel")
        assert 20 <= ladder["games"] < 2000
        assert sum(row["games"] for row in rows) == 2 * (6 + ladder["games"])
        with League.open(here.folder / "league", create=False) as league:
            config = json.loads(league.tournament("ladder-duel").config)
        pairs = [(0, 1), (0, 2), (1, 2)]  # each pair has played one match of two games
        assert [tuple(each[:3]) for each in config["ladder"]["earlier"]] == [
            (*pair, 2) for pair in pairs
        ]
        logged = ("--logs", "logs", "--messages", "--json")
        again = here.referee("ladder", "run", "--ruleset", "duel", "--games", "20", *logged)
        assert again.returncode == 0, again.stderr
        rated = {row["bot"]: row["games"] for row in json.loads(again.stdout)["ratings"]}
        assert sum(rated.values()) == 2 * (6 + ladder["games"] + 20)
        assert len(list((here.folder / "logs").glob("ladder-duel-*/*.jsonl"))) == 20 * 2
        assert "The last planned game is played. Seed: " in again.stderr
        assert here.referee("tournament", "export", "ladder-duel").returncode == 0
        assert here.referee("verify", "ladder-duel.zip").returncode == 0
        assert here.referee("verify").returncode == 0
        monkeypatch.setattr(cli_run, "refresh_bots", None)  # refused before bots are built
        (here.folder / "league").rename(here.folder / "other")
        words = ("tournament", "extend", "ladder-duel", "--matches", "1", "--league", "other")
        assert here.referee(*words).stderr == (
            "referee: ladder-duel: it is a ladder, which cannot be extended; for more games:"
            " referee ladder run --ruleset duel --seats 2 --league other\n"
        )
