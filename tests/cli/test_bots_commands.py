"""`referee bots`: create, check, submit, list, show and retire bots."""

import json
import os
import shutil
from unittest.mock import Mock

import pytest
from real_runs import place

GREETING = """
import sys
from referee.sdk import run

print("\\x1b[31mwhat now\\x1b[0m", file=sys.stderr)

def decide(request):
    raise RuntimeError("no idea")

run(decide)
"""


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A league with a tournament of three bots. One of them crashes and has a second version."""
    with place(tmp_path_factory.mktemp("bots")) as made:
        fails = made.bot("fails", GREETING)
        manifest = fails / "bot.toml"
        text = manifest.read_text().replace('author = "x"', 'author = "=1+1"')
        manifest.write_text(text.replace('language = "python"', 'language = "@python"'))
        done = made.referee(
            "tournament", "run", made.tournament(bots=("random", "greedy", fails), matches=1)
        )
        assert done.returncode == 0, done.stderr
        manifest.write_text(manifest.read_text().replace('version = "1"', 'version = "2"'))
        done = made.referee("play", "./fails", "greedy", "--keep")
        assert done.returncode == 0, done.stderr
        yield made


def checked_output(here, *arguments):
    done = here.referee(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_new_bot_plays(here):
    said = checked_output(here, "bots", "init", "mine", "--language", "python", "--author", "Ada")
    assert f"mine is in {here.folder}/mine" in said
    assert "referee bots check mine" in said
    assert 'author = "Ada"' in (here.folder / "mine" / "bot.toml").read_text()
    (here.folder / "second").mkdir()
    checked_output(here, "bots", "init", "other")
    record = json.loads(
        checked_output(here, "play", "./mine", "./other", "--ruleset", "duel", "--json")
    )
    assert [seat["bot"] for seat in record["seating"]] == ["mine", "other"]
    assert record["faults"] == []


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 4711"), OSError("no name")])
def test_user_without_a_name_must_name_the_author(here, monkeypatch, error):
    """Python 3.13 raises OSError, older versions KeyError."""
    monkeypatch.setattr("getpass.getuser", Mock(side_effect=error))
    done = here.referee("bots", "init", "mine")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "referee: --author: this user has no name; give --author\n"
    assert not (here.folder / "mine").exists()
    checked_output(here, "bots", "init", "mine", "--author", "Ada")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("init", "mine", "--language", "cobol"),
            "--language: unknown language 'cobol'; choose one of python, go, rust, java, typescript, cpp; section 5 of",
        ),
        (("init", "a/b"), "NAME: 'a/b' is not a valid name"),
        (("init", "fails"), "fails: exists already; choose a new folder"),
        (("show", "nobody"), "league: the league has no bot 'nobody'"),
        (("show", "fails@9"), "there is no version '9' of 'fails'; there are: 1, 2"),
        (("log", "nobody"), "league: the league has no bot 'nobody'"),
        (("retire", "nobody"), "league: the league has no bot 'nobody'"),
        (("list", "--json", "--csv"), "--json, --csv: choose one of them"),
        (("log", "fails", "--json", "--csv"), "--json, --csv: choose one of them"),
    ],
)
def test_bad_input_is_refused_in_one_line(played, arguments, says):
    done = played.referee("bots", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_list_has_every_version_with_its_games_and_faults(played):
    rows = {row["bot"]: row for row in json.loads(checked_output(played, "bots", "list", "--json"))}
    assert set(rows) == {"random@1.0", "greedy@1.0", "fails@1", "fails@2"}
    first = rows["fails@1"]
    assert (first["games"], first["forfeits"], first["strikes"]) == (4, 4, 0)
    assert (rows["fails@2"]["games"], rows["greedy@1.0"]["games"]) == (1, 5)
    assert (first["author"], first["language"]) == ("=1+1", "@python")
    assert first["folder"] == str(played.folder / "fails")
    assert first["content_hash"] != rows["fails@2"]["content_hash"]
    assert (first["checked_at_us"], first["retired_at_us"]) == (None, None)
    lines = checked_output(played, "bots", "list", "--csv").splitlines()
    assert sum("'=1+1" in line and "'@python" in line for line in lines) == 2
    assert len(lines) == 5
    assert "fails@1" in checked_output(played, "bots", "list")


def test_version_is_shown_with_ratings_and_faults(played):
    shown = json.loads(checked_output(played, "bots", "show", "fails@1", "--json"))
    assert shown["bot"]["bot"] == "fails@1"
    assert shown["versions"] == ["fails@1", "fails@2"]
    program, *arguments = shown["command"]
    assert [row["ruleset"] for row in shown["ratings"]] == ["classic"]
    assert [(row["cause"], row["forfeits"]) for row in shown["faults"]] == [("crash", 4)]
    usage = shown["usage"]
    assert usage["games_measured"] == 4
    assert usage["mean_peak_memory_kib"] > 5_000
    assert usage["max_peak_memory_kib"] >= usage["mean_peak_memory_kib"]
    text = checked_output(played, "bots", "show", "fails@1")
    assert f"{usage['max_peak_memory_kib'] / 1024:.1f} MiB" in text
    assert "versions: fails@1, fails@2" in text
    assert f"command: {' '.join([program, *arguments])}\n" in text
    assert "crash" in text


def test_name_alone_means_the_newest_version(played):
    assert (
        json.loads(checked_output(played, "bots", "show", "fails", "--json"))["bot"]["bot"]
        == "fails@2"
    )


def test_stderr_of_a_bot_is_printed_with_escaped_control_codes(played):
    text = checked_output(played, "bots", "log", "fails", "--limit", "2")
    assert text.count("crash (forfeit)") == 2
    assert "fails@1" in text
    assert "RuntimeError: no idea" in text
    assert "\x1b" not in text
    rows = json.loads(checked_output(played, "bots", "log", "fails@1", "--limit", "3", "--json"))
    assert [row["cause"] for row in rows] == ["crash"] * 3
    assert all("no idea" in row["stderr_tail"] for row in rows)
    assert checked_output(played, "bots", "log", "fails@1", "--csv").count("crash") == 4
    assert checked_output(played, "bots", "log", "greedy") == "No faults of greedy.\n"
    every = checked_output(played, "bots", "log", "fails", "--limit", "9" * 30, "--json")
    assert len(json.loads(every)) > 3


@pytest.mark.extended("plays further tournaments")
def test_output_of_a_build_can_be_read(here):
    bot = here.bot("built", "from referee.sdk import run\nrun(lambda request: request.legal[0])\n")
    manifest = bot / "bot.toml"
    build = '[build]\ncommand = ["sh", "-c", "printf compiled; printf \'\\\\033\'"]\n'
    manifest.write_text(manifest.read_text() + build)
    done = here.referee(
        "play", "./built", here.bot("second", (bot / "bot.py").read_text()), "--keep"
    )
    assert done.returncode == 0, done.stderr
    assert "Building built: sh -c" in done.stderr
    assert checked_output(here, "bots", "log", "built", "--build") == "compiled\\x1b\n"


@pytest.mark.extended("plays more games")
def test_bots_of_a_moved_league_are_built_again_before_they_play(here):
    """Each command that plays with bots of a moved league builds each of them again, once."""
    bot = here.bot("built", "from referee.sdk import run\nrun(lambda request: request.legal[0])\n")
    with (bot / "bot.toml").open("a") as manifest:
        manifest.write('[build]\ncommand = ["touch", "made"]\n')
    file = here.tournament(bots=("random", bot), matches=1)
    done = here.referee("tournament", "run", file)
    assert done.stderr == "Building built: touch made\n"
    shutil.rmtree(bot)
    cup = here.folder / "again.toml"
    cup.write_text(file.read_text().replace(str(bot), "built"))
    for number, words in enumerate(
        (
            ("play", "built", "random", "--ruleset", "duel"),
            ("bots", "debug", "built", "cup-1"),
            ("tournament", "extend", "cup", "--matches", "1"),
            ("tournament", "run", cup),
        )
    ):
        before = here.folder / ("league" if number == 0 else f"league-{number - 1}")
        league = before.rename(here.folder / f"league-{number}")
        for printed in ("Building built: touch made\n", ""):
            done = here.referee(*words, "--league", league)
            assert (done.returncode, done.stderr) == (0, printed), done.stdout


@pytest.mark.extended("starts more commands")
def test_build_of_a_game_that_is_not_stored_does_not_stay_for_ever(here):
    bot = here.bot("built", "from referee.sdk import run\nrun(lambda request: request.legal[0])\n")
    with (bot / "bot.toml").open("a") as manifest:
        manifest.write('[build]\ncommand = ["touch", "made"]\n')
    game = ("play", "./built", "./built", "--ruleset", "duel")
    for printed in ("Building built: touch made\n", ""):
        done = here.referee(*game)
        assert (done.returncode, done.stderr) == (0, printed)
    [old] = (here.folder / "league" / "bots" / "built").glob("*/passing")
    os.utime(old, (0, 0))
    (bot / "more").touch()
    assert here.referee(*game).returncode == 0
    [new] = (here.folder / "league" / "bots" / "built").glob("*/bot")
    assert (new / "more").exists()


def test_failed_build_shows_its_output(here):
    bot = here.bot("broken", "")
    manifest = bot / "bot.toml"
    build = '[build]\ncommand = ["sh", "-c", "echo main.c: no semicolon; exit 2"]\n'
    manifest.write_text(manifest.read_text() + build)
    done = here.referee("tournament", "run", here.tournament(bots=(bot, "greedy")))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-2:] == [
        "main.c: no semicolon",
        "referee: broken: bot.toml: build.command: exited with 2",
    ]


@pytest.mark.extended("plays further tournaments")
def test_retired_version_plays_in_no_new_tournament(here):
    bot = here.bot("old", "from referee.sdk import run\nrun(lambda request: request.legal[0])\n")
    file = here.tournament(bots=(bot, "greedy"), matches=1)
    assert here.referee("tournament", "run", file).returncode == 0
    assert checked_output(here, "bots", "retire", "old") == "old@1 is retired.\n"
    assert "old@1" not in checked_output(here, "bots", "list", "--csv")
    assert "old@1" in checked_output(here, "bots", "list", "--retired", "--csv")
    for entry in (f'"{bot}"', '"old@1"'):
        file.write_text(file.read_text().replace(f'"{bot}"', entry))
        done = here.referee("tournament", "run", file)
        assert done.returncode == 2
        assert "old@1 is retired; submit it again to let it play" in done.stderr
    assert "old@1" in checked_output(here, "ratings", "--csv")


# Check and submit

FAIR = "from referee.sdk import run\nrun(lambda request: request.legal[0])\n"
WRONG_IN_DUELS = """
from referee.sdk import DecisionKind, run

def decide(request):
    if request.kind is DecisionKind.GHOST_SET:
        raise RuntimeError("what is a ghost?")
    return request.legal[0]

run(decide)
"""


def only(folder, *rulesets):
    """Limit a bot to these rulesets, so that its check is shorter."""
    manifest = folder / "bot.toml"
    listed = ", ".join(f'"{ruleset}"' for ruleset in rulesets)
    manifest.write_text(f"rulesets = [{listed}]\n" + manifest.read_text())
    return folder


@pytest.mark.extended("plays further tournaments")
def test_submitted_bot_can_be_retired_submitted_again_and_taken_over(here):
    bot = only(here.bot("fair", FAIR), "classic")
    said = checked_output(here, "bots", "submit", "fair")
    assert "fair@1: the check has passed." in said
    assert said.endswith(
        "fair@1 is in the league league.\nTo rate it (games of `referee play` are not rated):"
        " referee bots challenge fair@1 --league league\n"
    )
    (row,) = json.loads(checked_output(here, "bots", "list", "--json"))
    assert row["bot"] == "fair@1"
    assert row["checked_at_us"] >= row["added_at_us"]
    assert "check passed" in checked_output(here, "bots", "show", "fair")
    steps = json.loads(checked_output(here, "bots", "show", "fair", "--json"))["check"]["steps"]
    assert {step["verdict"] for step in steps} == {"pass", "skip", "info"}

    checked_output(here, "bots", "retire", "fair")
    assert json.loads(checked_output(here, "bots", "list", "--json")) == []
    again = checked_output(here, "bots", "submit", "fair")
    assert "fair@1 is in the league league, as it was before.\n" in again
    assert len(json.loads(checked_output(here, "bots", "list", "--json"))) == 1

    manifest = bot / "bot.toml"
    manifest.write_text(manifest.read_text().replace('author = "x"', 'author = "Eve"'))
    done = here.referee("bots", "submit", "fair")
    assert (done.returncode, done.stdout) == (2, "")
    assert "name: 'fair' is a bot of x in this league, and this one is by Eve" in done.stderr
    taken = checked_output(here, "bots", "submit", "fair", "--any-author")
    assert "fair@1+2 is in the league league.\n" in taken
    manifest.write_text(manifest.read_text().replace('author = "Eve"', 'author = "x"'))
    back = checked_output(here, "bots", "submit", "fair", "--any-author")
    assert "fair@1 is in the league league, as it was before.\n" in back
    assert "referee bots challenge fair@1 " in back, "the name alone means fair@1+2"

    file = here.tournament(bots=(), matches=1)
    file.write_text(file.read_text().replace("bots = []", 'bots = ["fair", "fair@1"]'))
    done = here.referee("tournament", "run", file)
    assert done.returncode == 0, done.stderr
    assert {str(seat) for record in here.records("league") for seat in record.seating} == {
        "fair@1",
        "fair@1+2",
    }


@pytest.mark.extended("checks more bots")
def test_bot_that_fails_the_check_is_not_submitted(here):
    only(here.bot("wrong", WRONG_IN_DUELS), "duel")
    done = here.referee("bots", "submit", "wrong")
    assert (done.returncode, done.stderr) == (1, "")
    assert "FAIL  decisions: duel" in done.stdout
    assert "what is a ghost?" in done.stdout
    assert done.stdout.endswith("The bot was not submitted.\n")
    assert json.loads(checked_output(here, "bots", "list", "--json")) == []
    report = here.referee("bots", "check", "wrong", "--json")
    assert report.returncode == 1
    assert json.loads(report.stdout)["ok"] is False


def test_folder_without_a_bot_creates_no_league(here):
    (here.folder / "empty").mkdir()
    for path, says in (("nowhere", "no such folder"), ("empty", "empty/bot.toml: no such file")):
        done = here.referee("bots", "submit", path)
        assert done.returncode == 2
        assert says in done.stderr
    assert here.referee("bots", "check", "nowhere").returncode == 2
    assert not (here.folder / "league").exists()


def test_folder_whose_path_is_not_utf8_creates_no_league(here):
    here.bot("mine", FAIR)
    (here.folder / "mine").rename(here.folder / "mine\udcff")
    done = here.referee("bots", "submit", "mine\udcff")
    assert done.returncode == 2
    assert done.stderr == "referee: mine\\udcff: its path is not UTF-8; rename the folder\n"
    assert not (here.folder / "league").exists()


def test_path_that_is_not_utf8_is_printed_with_escapes(here):
    here.folder /= "odd\udcff"
    here.folder.mkdir()
    done = here.referee("bots", "init", "mine", PYTHONIOENCODING="utf-8:strict")
    assert (done.returncode, done.stderr) == (0, "")
    assert "odd\\udcff/mine; read its README.md first.\n" in done.stdout


def test_list_marks_retired_versions_at_80_columns(here):
    bots = (here.bot("old", FAIR), here.bot("new", FAIR))
    done = here.referee("play", *bots, "--ruleset", "duel", "--keep")
    assert done.returncode == 0, done.stderr
    assert checked_output(here, "bots", "retire", "old") == "old@1 is retired.\n"
    said = checked_output(here, "bots", "list", "--retired")
    assert max(map(len, said.splitlines())) <= 80
    [line] = [line for line in said.splitlines() if "old@1" in line]
    assert " UTC " in line
    assert "retired" in said.split("hidden here")[0]
    file = here.tournament(bots=bots)
    file.write_text(file.read_text().replace(f'"{bots[0]}"', '"old@1"'))
    done = here.referee("tournament", "plan", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"referee: {file}: bots[0]: old@1 is retired; submit it again to "
    )
    assert checked_output(here, "bots", "log", "old", "--build") == (
        "old@1 has no build output: it needs no build, or its build printed nothing.\n"
    )


def test_build_output_of_a_missing_copy_or_a_person_is_refused(here):
    here.bot("fair", FAIR)
    here.bot("other", FAIR)
    done = here.referee("play", "fair", "other", "--ruleset", "duel", "--keep")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(here.folder / "league" / "bots" / "fair")
    done = here.referee("bots", "log", "fair", "--build")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("the league's copy of fair is gone; submit it again\n")
    with here.database("league") as database:
        database.execute("UPDATE bots SET language = 'person' WHERE name = 'fair'")
    done = here.referee("bots", "log", "fair", "--build")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "referee: fair@1 is a person, not a bot\n"
