"""`referee play`: one game, and what helps to find the mistakes of a bot."""

import re

import pytest
from real_runs import SAMPLE_BOTS, place

GREEDY = str(SAMPLE_BOTS / "greedy")
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
