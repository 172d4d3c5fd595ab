"""`referee play`: one game, and what helps to find the mistakes of a bot."""

import json
import re
from dataclasses import asdict

import pytest
from real_runs import SAMPLE_BOTS, place

from referee.clocks import Clocks

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
    assert "crashes (seat 0): forfeits the game, crash: exited with 1" in watched
    assert "(stand-in)" in watched
    assert forfeited.startswith("forfeited: crashes (seat 0)")


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
