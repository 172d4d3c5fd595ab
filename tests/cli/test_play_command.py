"""`referee play`: one game, and what helps to find the mistakes of a bot."""

import json
import re
import shlex
from dataclasses import asdict, replace

import pytest
from played import record
from real_runs import SAMPLE_BOTS, place

from referee.cli import play as play_command
from referee.clocks import Clocks
from referee.errors import StoreError
from referee.store.league import League

GREEDY, RANDOM = str(SAMPLE_BOTS / "greedy"), str(SAMPLE_BOTS / "random")
CRASHES = """
from referee.sdk import Bot, run

class Mine(Bot):
    def start(self, game):
        self.count = 0

    def decide(self, request):
        self.count += 1
        return self.choose(request) if self.count == 2 else request.legal[0]

    def choose(self, request):
        raise RuntimeError("no idea")

run(Mine)
"""
SLOW = """
import time
from referee.sdk import run

asked = []

def decide(request):
    asked.append(request)
    if len(asked) == 2:
        time.sleep(0.5)
    return request.legal[0]

run(decide)
"""
TALKS = """
import sys
from referee.sdk import run

print("loaded", flush=True)
asked = []

def decide(request):
    asked.append(request)
    if len(asked) == 3:
        print("no more", file=sys.stderr)
        sys.exit(4)
    print("deciding", flush=True)
    return request.legal[0]

run(decide)
"""


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made


@pytest.mark.extended("plays a game with real bots")
def test_watched_game_shows_faults_and_stand_ins_as_its_replay_does(here):
    here.bot("crashes", CRASHES)
    watched = here.referee("play", "./crashes", GREEDY, "--keep", "--watch").stdout
    game_id = re.search(r"play-\w+-\w+", watched)[0]
    replayed = here.referee("game", "replay", game_id).stdout
    *moves, forfeited = replayed.splitlines(keepends=True)
    assert watched.startswith("".join(moves))
    assert "crashes (seat 0): forfeits the game, crash: the bot exited with 1" in watched
    assert "(stand-in)" in watched
    assert forfeited.startswith("forfeited: crashes (seat 0)")


@pytest.fixture
def played(monkeypatch):
    """Let `referee play` play no game, but return a made one. The bots are found and added to the league."""

    async def play(order, *_, **__):
        seating = tuple(spec.bot for spec in order.bots)
        return replace(record("duel", 2), game_id="play-made", seating=seating)

    monkeypatch.setattr("referee.cli.play.play_free_game", play)


def test_unknown_bot_is_reported_with_the_database_that_was_searched(here):
    for options, league in (((), "league"), (("--db", "sqlite:///a.db"), "sqlite:///a.db")):
        done = here.referee("play", GREEDY, "eve", *options)
        says = f"BOTS: 'eve' is no folder, and {league}: there is no league here"
        assert (done.returncode, done.stderr) == (2, f"referee: {says}\n")


@pytest.mark.usefixtures("played")
def test_seed_is_printed_as_it_was_typed(here):
    done = here.referee("play", GREEDY, RANDOM, "--ruleset", "duel", "--seed", "a\tb")
    assert done.stdout.endswith("To deal the same cards: --seed 'a\tb'\n")


@pytest.mark.usefixtures("played")
def test_game_is_stored_when_the_database_is_free_again(here, monkeypatch):
    monkeypatch.setattr("referee.store.database._TRY_S", 0.0)
    problems = iter([StoreError("locked"), StoreError("locked")])
    add_games = League.add_games

    def add(league, records):
        for problem in problems:
            raise problem
        add_games(league, records)

    monkeypatch.setattr(League, "add_games", add)
    done = here.referee("play", GREEDY, RANDOM, "--ruleset", "duel", "--keep")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(
        "Stored as play-made. It is not rated: only the games of tournaments are.\n"
    )
    with League.open(here.folder / "league", create=False) as league:
        assert league.record("play-made").moves == record("duel", 2).moves


def test_game_that_cannot_be_stored_is_not_played(here, monkeypatch):
    def refuse(_league):
        raise StoreError("league.db: attempt to write a readonly database")

    monkeypatch.setattr(League, "check_writable", refuse)
    monkeypatch.setattr(play_command, "play_free_game", lambda *_, **__: pytest.fail("played"))
    done = here.referee("play", GREEDY, RANDOM, "--ruleset", "duel", "--keep")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "referee: league.db: attempt to write a readonly database\n",
    )


@pytest.mark.usefixtures("played")
def test_printed_seed_can_be_typed_in_a_shell(here):
    done = here.referee("play", GREEDY, RANDOM, "--ruleset", "duel", "--seed", "it's $HOME")
    option = done.stdout.partition("To deal the same cards: ")[2].splitlines()[0]
    assert shlex.split(option) == ["--seed", "it's $HOME"]
    assert here.shell(f"printf %s {option}").stdout == "--seedit's $HOME"


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_game_that_cannot_be_stored_is_shown_before_the_error(here, monkeypatch, more):
    monkeypatch.setattr("referee.store.database._TRY_S", 0.0)

    def fail(_league, _records):
        raise StoreError("league.db: database is locked")

    monkeypatch.setattr(League, "add_games", fail)
    done = here.referee("play", GREEDY, RANDOM, "--ruleset", "duel", "--keep", *more)
    assert done.returncode == 1
    assert done.stderr == (
        "referee: play-made was played, but not stored: league.db: database is locked\n"
    )
    assert "play-made" in done.stdout
    assert "Stored" not in done.stdout
    if more:
        assert len(json.loads(done.stdout)["moves"]) == len(record("duel", 2).moves)
    else:
        assert "To deal the same cards: --seed " in done.stdout


@pytest.mark.usefixtures("played")
def test_league_that_cannot_be_opened_after_the_game_is_no_bad_input(here, monkeypatch):
    """The same holds if a PostgreSQL server stops during the game."""
    monkeypatch.setattr("referee.store.database._TRY_S", 0.0)
    play = play_command.play_free_game

    async def lose_database(*arguments, **options):
        database = here.folder / "league" / "league.db"
        database.unlink()
        database.mkdir()
        return await play(*arguments, **options)

    monkeypatch.setattr(play_command, "play_free_game", lose_database)
    done = here.referee("play", GREEDY, RANDOM, "--ruleset", "duel", "--keep")
    assert (done.returncode, done.stderr) == (
        1,
        "referee: play-made was played, but not stored: league/league.db: unable to open database file\n",
    )
    assert "To deal the same cards: --seed " in done.stdout
    assert "Stored" not in done.stdout


@pytest.mark.extended("plays a game with real bots")
def test_slow_bot_is_charged_by_the_clocks_of_the_options_and_not_without_clocks(here):
    here.bot("slow", SLOW)
    game = ("play", "./slow", GREEDY, "--json")
    limited = json.loads(here.referee(*game, "--decision", "0.3", "--bank", "9+0.5").stdout)
    assert limited["clocks"] == asdict(
        Clocks(decision_us=300_000, bank_us=9_000_000, increment_us=500_000)
    )
    assert [fault["cause"] for fault in limited["faults"]] == ["timeout"]
    free = json.loads(here.referee(*game, "--no-clocks").stdout)
    assert (free["clocks"], free["faults"]) == (asdict(Clocks()), [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--no-clocks", "--bank", "9"), "referee: --no-clocks, --bank: choose one of them\n"),
        (("--bank", "x"), "referee: --bank: 'x' is not SECONDS or SECONDS+INCREMENT, such as"),
        (("--bank", "0"), "referee: --bank: must be more than 0"),
    ],
)
def test_wrong_clocks_are_refused(here, options, message):
    done = here.referee("play", GREEDY, RANDOM, *options)
    assert done.returncode == 2
    assert done.stderr.startswith(message)


@pytest.mark.extended("plays a game with real bots")
def test_folders_play_beside_a_league_that_cannot_be_opened(here):
    closed = here.folder / ("x" * 300)
    assert here.referee("play", GREEDY, RANDOM, "--league", closed).returncode == 0
    done = here.referee("play", GREEDY, "random", "--league", closed)
    assert (done.returncode, done.stdout) == (2, "")
    assert "File name too long" in done.stderr


@pytest.mark.usefixtures("played")
def test_incomplete_logs_are_told_with_the_reason(here, monkeypatch):
    play = play_command.play_free_game

    async def fill_disk(*arguments, logs, **options):
        logs.errors.append("logs/a.log: No space left on device")
        return await play(*arguments, logs=logs, **options)

    monkeypatch.setattr(play_command, "play_free_game", fill_disk)
    done = here.referee("play", GREEDY, RANDOM, "--ruleset", "duel", "--logs", "logs")
    assert done.stdout.splitlines()[-2:] == [
        f"Logs of the bots: {here.folder / 'logs'}",
        "The logs are incomplete: logs/a.log: No space left on device",
    ]


@pytest.mark.extended("plays games with real bots")
def test_logs_have_the_output_and_the_messages_of_each_game_and_bot(here):
    talks = here.bot("talks", TALKS)
    done = here.referee("play", "./talks", GREEDY, "--logs", "logs", "--messages")
    (game,) = (here.folder / "logs").iterdir()
    assert f"Logs of the bots: {game}\n" in done.stdout
    printed = (game / "talks@1.log").read_text().splitlines()
    printed.remove("no more")  # on standard error, which is another pipe: it may be read first
    assert printed == ["loaded", "deciding", "deciding"]
    lines = [json.loads(line) for line in (game / "talks@1.jsonl").read_text().splitlines()]
    kinds = [next(iter(line["message"])) for line in lines]
    assert kinds == ["hello", "game_starts", "ready", *["requests", "replies"] * 2, "requests"]
    config = here.tournament(bots=("greedy", talks), matches=1)
    done = here.referee("tournament", "run", config, "--logs", "more", "--json")
    assert done.returncode == 0, done.stderr
    assert [row["games"] for row in json.loads(done.stdout)["ratings"]] == [2, 2]
    names = {path.parent.name for path in (here.folder / "more").glob("*/talks@1.log")}
    assert names == {"cup-1", "cup-2"}
    assert not list((here.folder / "more").glob("*/*.jsonl"))
    here.referee("bots", "check", "./talks", "--logs", "checked")
    (checked,) = (here.folder / "checked").glob("script-classic-*/talks@1.log")
    printed = [line for line in checked.read_text().splitlines() if line != "no more"]
    assert printed[:2] == ["loaded", "deciding"]


@pytest.mark.extended("plays a game with real bots")
@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_bot_that_is_started_by_hand_plays(here, transport):
    folder = here.bot("slow", SLOW)
    with (folder / "bot.toml").open("a") as manifest:
        manifest.write(f'transport = "{transport}"\n')
    with here.started("play", "./slow", GREEDY, "--attach", "0", "--decision", "0.3") as refused:
        assert refused.wait(here.patience_s) == 2
        assert refused.stdout.read() == "referee: --attach, --decision: choose one of them\n"
    with here.started("play", "./slow", GREEDY, "--attach", "0") as game:
        assert game.stdout.readline() == f"Seat 0 waits for slow@1. Start it in {folder}:\n"
        command = game.stdout.readline()
        assert command.endswith(" python3 bot.py\n")
        bot = here.shell(f"cd slow; {command}")
        assert (bot.returncode, bot.stdout) == (0, "")
        shown = game.stdout.read()
        assert game.wait(here.patience_s) == 0
    assert "faults" not in shown.splitlines()


@pytest.mark.extended("starts a bot")
def test_bot_that_is_started_by_hand_and_fails_has_closed_its_stream(here):
    here.bot("crashes", CRASHES)
    with here.started("play", "./crashes", GREEDY, "--attach", "0", "--json") as game:
        game.stdout.readline()
        assert here.shell(f"cd crashes; {game.stdout.readline()}").returncode == 1
        (fault,) = json.loads(game.stdout.read())["faults"]
    assert fault["cause"] == "crash"
    assert fault["detail"].startswith("the bot closed its stream, or ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--attach", "2"), "referee: --attach: the game has the seats 0 to 1\n"),
        (("--attach", "1", "--keep"), "referee: --keep, --attach: choose one of them\n"),
    ],
)
def test_wrong_attach_is_refused(here, options, message):
    done = here.referee("play", GREEDY, RANDOM, *options)
    assert (done.returncode, done.stderr) == (2, message)


def test_messages_need_a_folder(here):
    done = here.referee("play", GREEDY, RANDOM, "--messages")
    assert done.returncode == 2
    assert done.stderr == "referee: --messages: needs --logs DIR, the folder for the messages\n"


def test_folder_for_logs_that_cannot_be_made_is_refused(here):
    (here.folder / "logs").write_text("a file")
    config = here.tournament()
    done = here.referee("tournament", "run", config, "--logs", "logs")
    assert done.returncode == 2
    assert done.stderr.startswith("referee: --logs: logs: ")
    assert not (here.folder / "league").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("tournament", "run", "./greedy", "./random", "--ruleset", "duel", "--seats", "2"),
        ("tournament", "resume", "cup"),
        ("tournament", "extend", "cup", "--matches", "1"),
        ("tournament", "compare", "greedy", "random"),
    ],
    ids=" ".join,
)
def test_logs_and_a_cluster_are_refused(here, words):
    for name in ("greedy", "random"):
        here.bot(name, "")
    more = ("--matches", "1") if "run" in words else ()
    done = here.referee(*words, *more, "--logs", "logs", "--cluster", "127.0.0.1:1")
    assert done.returncode == 2
    assert "--logs, --cluster: choose one of them" in done.stderr
    assert not (here.folder / "logs").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--ruleset", "classic"), "only-duels@1: rulesets: the bot does not play classic"),
        (("--ruleset", "duel", "--messages"), "--messages"),
    ],
)
def test_league_is_not_created_for_a_game_that_cannot_be_played(tmp_path, options, says):
    with place(tmp_path) as here:
        bot = here.bot("only-duels", "")
        manifest = bot / "bot.toml"
        manifest.write_text(manifest.read_text().replace("[run]", 'rulesets = ["duel"]\n[run]'))
        done = here.referee("play", "./only-duels", RANDOM, "--keep", *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"referee: {says}")
        assert not (tmp_path / "league").exists()
