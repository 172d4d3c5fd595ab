"""`referee bots debug`: a bot gets the requests of a stored game again."""

import json
import re
from dataclasses import replace

import pytest
from played import record
from real_runs import SAMPLE_BOTS, place

from referee.cli.debug import _choose_seat
from referee.errors import UserError
from referee.records import BotId
from referee.roster.roster import enter_person, person_id
from referee.store.league import League

FAILS = """
import sys
from referee.sdk import Bot, run

class Mine(Bot):
    def start(self, game):
        self.count = 0

    def decide(self, request):
        self.count += 1
        print("deciding", self.count, file=sys.stderr)
        if self.count == 3:
            raise RuntimeError("no idea")
        return request.legal[0]

run(Mine)
"""

ECHO = (SAMPLE_BOTS.parent / "tests" / "bench" / "echo_bot.py").read_text()
WRONG_IDS = ECHO.replace("decision_id=request.decision_id", "decision_id=request.decision_id + 1")
TWICE = ECHO.replace("await call.write(answer", "for _ in range(2): await call.write(answer")
LATE = """
import time
from referee.sdk import Bot, run

class Mine(Bot):
    def decide(self, request):
        time.sleep(0.4)
        return request.legal[0]

run(Mine)
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A league with a tournament of `random` and of a bot that crashes at its third decision."""
    with place(tmp_path_factory.mktemp("debug")) as made:
        fails = made.bot("fails", FAILS)
        done = made.referee("tournament", "run", made.tournament(bots=("random", fails), matches=1))
        assert done.returncode == 0, done.stderr
        yield made


@pytest.mark.extended("plays games with real bots")
def test_bot_that_uses_only_the_seed_decides_as_in_the_game(here):
    done = here.referee("bots", "debug", "random", "cup-2")
    assert done.returncode == 0, done.stderr
    assert "random@1.0 gets the requests of seat 1, which random@1.0 played." in done.stdout
    assert done.stdout.endswith(" requests: all as stored.\n")
    assert "printed" not in done.stdout


@pytest.mark.extended("plays games with real bots")
def test_crash_is_shown_with_its_request_and_what_the_bot_printed(here):
    done = here.referee("bots", "debug", "./fails", "cup-1")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "3 requests: all as stored."
    assert "   fault  the bot exited with 1 (crash), as stored" in lines
    assert " printed  deciding 1" in map(str.rstrip, lines)
    assert "RuntimeError: no idea" in done.stdout
    assert done.stdout.count("layers, top last") == 1  # only the last request is shown whole


@pytest.mark.extended("plays games with real bots")
def test_lines_are_as_long_as_their_text_if_the_output_is_no_terminal(here):
    done = here.shell("unset COLUMNS; referee bots debug ./fails cup-1")
    assert "layers, top last" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 300


@pytest.mark.extended("plays games with real bots")
def test_output_of_a_bot_that_does_not_start_has_a_bar_before_each_line(here):
    long_line = "x" * 120
    dies = here.bot("dies", f'import sys\nsys.exit("{long_line}\\n1 request: all as stored.")\n')
    done = here.referee("bots", "debug", dies, "cup-1", "--seat", "0")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    first = lines.index(f"| {long_line}")
    assert lines[first + 1] == "| 1 request: all as stored."
    assert "1 request: all as stored." not in lines


@pytest.mark.extended("plays games with real bots")
def test_mended_bot_differs_from_the_stored_fault_and_stops_after_the_move(here):
    mended = here.folder / "mended"
    mended.mkdir(exist_ok=True)
    for name in ("bot.py", "bot.toml"):
        text = (here.folder / "fails" / name).read_text()
        (mended / name).write_text(text.replace("self.count == 3", "False"))
    done = here.referee("bots", "debug", "./mended", "cup-1")
    assert done.returncode == 0, done.stderr
    assert "3 requests: 1 not as stored.\n" in done.stdout
    assert "  stored  the bot exited with 1 (crash)" in done.stdout
    done = here.referee("bots", "debug", "fails", "cup-1:1", "--logs", "logs", "--messages")
    assert done.returncode == 0, done.stderr
    assert (here.folder / "logs" / "cup-1" / "fails@1.log").read_text().startswith("deciding 1\n")


@pytest.mark.extended("plays games with real bots")
def test_messages_without_a_folder_are_refused_before_the_build(here):
    built = here.bot("built", FAILS)
    manifest = built / "bot.toml"
    manifest.write_text(manifest.read_text() + '[build]\ncommand = ["true"]\n')
    done = here.referee("bots", "debug", "./built", "cup-1", "--seat", "1", "--messages")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "referee: --messages: needs --logs DIR, the folder for the messages\n"


@pytest.mark.extended("plays games with real bots")
def test_pending_request_and_its_id_are_shown_when_a_reply_has_a_wrong_id(here):
    here.bot("wrong_ids", WRONG_IDS)
    with here.started("bots", "debug", "./wrong_ids", "cup-1", "--seat", "1") as debug:
        assert debug.stdout.readline().startswith("wrong_ids@1 gets the requests of seat 1")
        lines = [debug.stdout.readline() for _ in range(3)]
        assert lines[1] == "request 2, turn 2: play\n"
        assert " dropped  a message came that belongs to no pending request" in lines[-1]
        debug.terminate()


@pytest.mark.extended("plays games with real bots")
def test_number_of_second_replies_is_in_the_last_line(here):
    here.bot("twice", TWICE)
    done = here.referee("bots", "debug", "./twice", "cup-1", "--seat", "1")
    shown = " ".join(done.stdout.split())
    assert re.search(r"\. \d+ messages of the bot belonged to no pending request", shown)


@pytest.mark.extended("plays games with real bots")
def test_late_reply_of_a_stored_timeout_is_late_as_stored(here):
    here.bot("late", LATE)
    played = here.referee("play", "./late", "random", "--decision", "0.2", "--keep", "--json")
    done = here.referee("bots", "debug", "./late", f"{json.loads(played.stdout)['game_id']}:0")
    assert done.returncode == 0, done.stderr
    assert "(the limit is 200.0 ms), late as stored (timeout)" in " ".join(done.stdout.split())


@pytest.mark.extended("plays games with real bots")
def test_bot_that_is_started_by_hand_gets_the_requests(here):
    with here.started("bots", "debug", "fails", "cup-1:1", "--attach") as debug:
        assert debug.stdout.readline().startswith("fails@1 gets the requests of seat 1")
        assert debug.stdout.readline().startswith("Seat 1 waits for fails@1. Start it in ")
        command = debug.stdout.readline()
        assert here.shell(f"cd fails; {command}").stderr == "deciding 1\n"
        assert debug.stdout.read().endswith("1 request: all as stored.\n")


@pytest.mark.extended("plays games with real bots")
def test_kept_game_of_play_is_sent_again_without_its_seed(here):
    kept = json.loads(here.referee("play", "random", "./fails", "--keep", "--json").stdout)
    done = here.referee("bots", "debug", "./fails", kept["game_id"])
    assert done.returncode == 1, done.stderr
    assert (
        "The seed for the bot's random numbers is not stored, because the game belongs"
        in done.stdout
    )
    assert "fails@1 gets the requests of seat 1, which fails@1 played." in done.stdout
    assert done.stdout.endswith("3 requests: all as stored.\n")


@pytest.mark.extended("plays games with real bots")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("random", "cup-9"), "no game 'cup-9'"),
        (("random", "cup-1:x"), "cup-1:x: 'x' is not the number of a move"),
        (("random", "cup-1:99999999999"), "is not the number of a move"),
        (("random", "cup-1:9999"), "cup-1:9999: cup-1 ends with move "),
        (("random", "cup-1", "--seat", "2"), "--seat: cup-1 has the seats 0 to 1"),
        (
            (str(SAMPLE_BOTS / "greedy"), "cup-1"),
            "cup-1: no bot is called greedy; choose a seat with --seat: 0 random@1.0, 1 fails@1",
        ),
        (("random@9", "cup-1"), "there is no version '9' of 'random'"),
    ],
)
def test_wrong_arguments_are_refused(here, arguments, message):
    done = here.referee("bots", "debug", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_person_cannot_be_debugged(tmp_path):
    with place(tmp_path) as here:
        with League.open(tmp_path / "league", create=True) as league:
            for name in ("ada", "bob"):
                enter_person(league, person_id(league, name), now_us=1)
            seating = (BotId("ada", "person"), BotId("bob", "person"))
            league.add_game(replace(record("duel", 2), game_id="played", seating=seating))
        done = here.referee("bots", "debug", "ada", "played")
        assert done.returncode == 2
        assert done.stderr == "referee: ada@person is a person, not a bot\n"


@pytest.mark.parametrize(
    ("bot", "seat"),
    [("mine@1", 0), ("mine@1+2", 1), ("other@1", 2), ("other@2", 2), ("mine@2", None)],
)
def test_seat_is_that_of_the_version_or_else_of_the_name(bot, seat):
    seating = tuple(map(BotId.parse, ("mine@1", "mine@1+2", "other@1")))
    game = replace(record("basic", 3), game_id="cup-1", seating=seating)
    if seat is not None:
        assert _choose_seat(game, BotId.parse(bot), None) == seat
        return
    with pytest.raises(UserError) as caught:
        _choose_seat(game, BotId.parse(bot), None)
    assert str(caught.value) == (
        "cup-1: mine has several seats; choose a seat with --seat: 0 mine@1, 1 mine@1+2, 2 other@1"
    )
