"""`referee tournament compare` plays two bots until a verdict is known, and says it in the last line."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from real_runs import SAMPLE_BOTS, place, read_until
from sample_league import SampleLeague

from referee.store.league import League

COMPARE = ("tournament", "compare")
RULES = ("--ruleset", "classic")
GREEDY, RANDOM = SAMPLE_BOTS / "greedy", SAMPLE_BOTS / "random"


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A league in which greedy and random were compared."""
    with place(tmp_path_factory.mktemp("compare")) as made:
        done = made.referee(*COMPARE, GREEDY, RANDOM, *RULES)
        assert (done.returncode, done.stderr) == (0, "")
        made.said = done.stdout
        yield made


@pytest.fixture(scope="module")
def without_games(tmp_path_factory):
    """A league with bots and no games."""
    with place(tmp_path_factory.mktemp("compare")) as made:
        SampleLeague(made.folder).league.close()
        yield made


def renamed(here, bot, name):
    """Return the folder of a copy of a sample bot with another name."""
    folder = here.folder / name
    shutil.copytree(SAMPLE_BOTS / bot, folder)
    manifest = folder / "bot.toml"
    manifest.write_text(manifest.read_text().replace(f'name = "{bot}"', f'name = "{name}"'))
    return folder


@pytest.mark.extended("plays further tournaments")
def test_better_bot_is_named_with_the_games_used(here):
    last = here.said.splitlines()[-1]
    found = re.fullmatch(r"greedy@1\.0 is better than random@1\.0, known after (\d+) games\.", last)
    assert found is not None, last
    assert here.said.startswith("greedy-vs-random: at most 2000 games, 2 bots. Commitment: ")
    status = json.loads(here.referee("tournament", "status", "greedy-vs-random", "--json").stdout)
    assert status["finished"]
    assert status["rounds"][-1]["done"] == int(found[1]) < 2000


@pytest.mark.extended("plays further tournaments")
def test_comparison_is_a_tournament_like_any_other(here):
    [row] = json.loads(here.referee("tournament", "status", "--json").stdout)
    assert (row["tournament"], row["bots"], row["rulesets"]) == (
        "greedy-vs-random",
        2,
        ["classic"],
    )
    done = here.referee("verify", "greedy-vs-random")
    assert (done.returncode, done.stdout) == (
        0,
        f"greedy-vs-random: {row['games']} games verified.\n",
    )
    rated = json.loads(here.referee("ratings", "--json").stdout)
    assert [(each["bot"], each["games"]) for each in rated] == [
        ("greedy@1.0", row["games"]),
        ("random@1.0", row["games"]),
    ]
    assert here.referee("tournament", "export", "greedy-vs-random").returncode == 0
    assert here.referee("verify", "greedy-vs-random.zip").returncode == 0


@pytest.mark.extended("plays further tournaments")
def test_too_few_games_give_no_verdict(here):
    few = ("--max-games", "5", "--logs", "logs", "--messages", "--json")
    done = here.referee(*COMPARE, GREEDY, SAMPLE_BOTS / "bait", *RULES, *few)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("Not known after 4 games: neither ")
    assert [row["verdict"] for row in json.loads(done.stdout)["neighbours"]] == ["open"]
    assert len(list((here.folder / "logs").glob("greedy-vs-bait-*/*.jsonl"))) == 4 * 2


@pytest.mark.extended("plays more games")
def test_twins_are_equal(here):
    one, other = renamed(here, "greedy", "castor"), renamed(here, "greedy", "pollux")
    done = here.referee(*COMPARE, one, other, *RULES, "--margin", "4", "--league", "twins")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(
        r"(castor@1\.0 and pollux|pollux@1\.0 and castor)@1\.0 are equal within 4,"
        r" known after \d+ games\.",
        done.stdout.splitlines()[-1],
    )


@pytest.mark.extended("plays more games")
def test_second_comparison_of_bots_of_the_league_gets_another_name(here):
    shutil.copytree(here.folder / "league", here.folder / "again")
    done = here.referee(*COMPARE, "greedy", "random@1.0", *RULES, "--league", "again")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "The league has a tournament greedy-vs-random already; the new one is called"
        " greedy-vs-random-2.\n"
    )


@pytest.mark.extended("plays more games")
def test_long_names_are_cut_to_a_valid_name(here):
    long = renamed(here, "greedy", "a" * 32)
    done = here.referee(*COMPARE, long, RANDOM, "--max-games", "4", *RULES, "--league", "long")
    assert done.stderr == ""
    with League.open(here.folder / "long", create=False) as league:
        assert league.tournament_names() == [f"{'a' * 14}-vs-random"]


@pytest.mark.extended("kills a run")
def test_resumed_comparison_gives_the_verdict(here):
    with here.started(*COMPARE, GREEDY, RANDOM, *RULES, "--league", "killed") as process:
        read_until(process, 0)
        process.kill()
        process.wait()
        assert here.left_alone()
    done = here.referee("tournament", "resume", "--league", "killed")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("greedy@1.0 is better than random@1.0, known ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("./nobody", "greedy"), "tournament compare: BOT: './nobody': no such folder"),
        (
            ("greedy", "eve"),
            "tournament compare: OTHER: league: the league has no bot 'eve'; if you mean a folder, write",
        ),
        (
            ("greedy", "greedy@1.0"),
            "tournament compare: OTHER: the same bot as BOT, greedy@1.0; choose two different bots\n",
        ),
        (
            ("greedy", "greedy"),
            "tournament compare: OTHER: the same bot as BOT, greedy@1.0; choose two different bots\n",
        ),
        (
            ("greedy", "random", "--ruleset", "linko"),
            "tournament compare: ruleset: unknown ruleset 'linko'; choose one of classic, ",
        ),
        (("greedy", "random", "--tls-ca", "x"), "--tls-ca, --tls-cert and --tls-key need --cl"),
        (("greedy", "random", "--isolation", "glass"), "--isolation: unknown rung 'glass'; choo"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_input_is_refused_in_one_line(without_games, arguments, says):
    done = without_games.referee(*COMPARE, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"referee: {says}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "wrong", [("--max-games", "3"), ("--confidence", "1"), ("--margin", "-1"), ("--margin", "nan")]
)
def test_impossible_numbers_are_refused(without_games, wrong):
    done = without_games.referee(*COMPARE, "greedy", "random", *wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Invalid value for '{wrong[0]}'" in done.stderr
