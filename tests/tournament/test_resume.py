"""A run that was killed or interrupted can be resumed: no game is lost or doubled, and nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import signal

import psutil
import pytest
from real_runs import games_done, let_run, place, read_until

from referee.errors import Cause
from referee.store.league import League

pytestmark = pytest.mark.unmeasured
MATCHES = 30
GAMES = 2 * MATCHES
LEAGUE = "the league"
FLIGHT = "games_in_flight = 5\n"
"""With fewer games at once, a run is longer."""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Return the records of an uninterrupted run."""
    with place(tmp_path_factory.mktemp("whole")) as here:
        done = here.referee("tournament", "run", here.tournament(matches=MATCHES, more=FLIGHT))
        assert done.returncode == 0, done.stderr
        assert here.run_folders() == []
        records = here.records("league")
    assert len({record.game_id for record in records}) == GAMES
    return records


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made


def load_records(here):
    """Return the stored records by game id."""
    with League.open(here.folder / LEAGUE, create=False) as league:
        return {row.game_id: league.record(row.game_id) for row in league.results()}


def kill(process):
    process.kill()
    process.wait()


def run(here):
    return here.started(
        "tournament", "run", here.tournament(matches=MATCHES, more=FLIGHT), "--league", LEAGUE
    )


def resume(here):
    return here.started("tournament", "resume", "cup", "--league", LEAGUE)


@pytest.mark.extended("crashes, interrupts and starves the referee")
def test_a_run_killed_during_its_creation_stores_a_whole_schedule_or_none(here, uninterrupted):
    for moment in (0.4, 0.8):
        with run(here) as process:
            let_run(process, moment)
            kill(process)
            assert here.left_alone()
    with League.open(here.folder / LEAGUE, create=True) as league:
        names = [row.name for row in league.tournaments()]
        for row in league.tournaments():
            assert row.games == GAMES, "half a schedule was stored"
    command = "resume" if "cup" in names else "run"
    file = here.tournament(matches=MATCHES, more=FLIGHT)
    last = here.referee(
        "tournament", command, "cup" if command == "resume" else file, "--league", LEAGUE
    )
    assert last.returncode == 0, last.stderr
    assert here.records(LEAGUE) == uninterrupted


def interrupt(process):
    """Send Ctrl-C to the whole process group, as a terminal does."""
    os.killpg(process.pid, signal.SIGINT)


def find_resume_command(said):
    return re.search(r"^Interrupted\. To resume: (.*)$", said, re.MULTILINE)[1]


def test_ctrl_c_finishes_the_games_in_play_and_prints_how_to_resume(here, uninterrupted):
    with run(here) as process:
        read_until(process, 1)
        interrupt(process)
        said, _ = process.communicate()
    assert process.returncode == 130
    assert "Finishing the games in play" in said
    assert "died" not in said
    assert "Traceback" not in said
    assert here.processes() == []
    assert here.run_folders() == []
    assert 0 < len(load_records(here)) < GAMES
    last = here.shell(find_resume_command(said))
    assert last.returncode == 0, last.stderr
    assert "All games are played." in last.stdout
    assert here.records(LEAGUE) == uninterrupted


@pytest.mark.extended("crashes, interrupts and starves the referee")
def test_ctrl_c_twice_stops_at_once_and_can_be_resumed(here):
    slow = here.bot("slow", SLOW)
    file = here.tournament(bots=(slow, "greedy"), matches=20)
    with here.started("tournament", "run", file, "--league", LEAGUE) as process:
        read_until(process, 1)
        interrupt(process)
        assert "Finishing" in next(line for line in process.stdout if not games_done(line))
        interrupt(process)
        said, _ = process.communicate()
    assert process.returncode == 130
    assert "Stopping at once." in said
    assert "died" not in said
    assert "Traceback" not in said
    assert here.left_alone()
    assert here.run_folders() == []
    assert len(load_records(here)) < 40
    last = here.shell(find_resume_command(said))
    assert last.returncode == 0, last.stderr
    assert len(load_records(here)) == 40
    whole = here.referee("tournament", "run", file, "--league", "whole")
    assert whole.returncode == 0
    assert here.records(LEAGUE) == here.records("whole")


@pytest.mark.extended("crashes, interrupts and starves the referee")
def test_ctrl_c_before_the_first_game_can_be_resumed(here, uninterrupted):
    with run(here) as process:
        process.stdout.readline()
        interrupt(process)
        said, _ = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in said
    assert here.processes() == []
    last = here.shell(find_resume_command(said))
    assert last.returncode == 0, last.stderr
    assert here.records(LEAGUE) == uninterrupted


@pytest.fixture(params=["foreground", "background"])
def started_in(request):
    """Start programs in the foreground, or in the background of a script, where they ignore SIGINT at first."""
    before = signal.getsignal(signal.SIGINT)
    if request.param == "background":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.extended("crashes, interrupts and starves the referee")
@pytest.mark.usefixtures("started_in")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_while_a_bot_is_built_leaves_nothing_behind(here, number):
    bot = here.bot("built", "")
    manifest = bot / "bot.toml"
    build = '[build]\ncommand = ["sh", "-c", "sleep 1000 & sleep 1000"]\n'
    manifest.write_text(manifest.read_text() + build)
    file = here.tournament(bots=(bot, "greedy"))
    with here.started("tournament", "run", file, "--league", LEAGUE) as process:
        assert process.stdout.readline() == "Building built: sh -c sleep 1000 & sleep 1000\n"
        process.send_signal(number)
        said, _ = process.communicate()
    assert process.returncode == 130
    assert said == "Interrupted before the tournament was created.\n"
    assert here.left_alone()
    assert (
        json.loads(here.referee("tournament", "status", "--json", "--league", LEAGUE).stdout) == []
    )
    assert not [
        path for path in (here.folder / LEAGUE / "bots").rglob("*") if path.name == "bot.py"
    ]


@pytest.mark.extended("crashes, interrupts and starves the referee")
def test_a_bot_that_crashes_now_and_then_crashes_in_the_same_games(here):
    moody = here.bot("moody", MOODY)

    def file(workers):
        # with several games at once, chance decides in which game a crash is charged
        more = f"lanes = 4\nworkers = {workers}\ngames_in_flight = 1\n"
        return here.tournament(bots=(moody, "greedy"), matches=16, more=more)

    assert here.referee("tournament", "run", file(1), "--league", "whole").returncode == 0
    whole = here.records("whole")
    crashed = [record for record in whole if record.faults]
    assert {fault.cause for record in crashed for fault in record.faults} == {Cause.CRASH}
    assert 4 <= len(crashed) <= 30, "now and then"

    assert here.referee("tournament", "run", file(2), "--league", "shared").returncode == 0
    assert here.records("shared") == whole

    with here.started("tournament", "run", file(2), "--league", LEAGUE) as process:
        read_until(process, 4)
        kill(process)
        assert here.left_alone()
    assert 0 < len(load_records(here)) < len(whole)
    assert here.referee("tournament", "resume", "--league", LEAGUE).returncode == 0
    assert here.records(LEAGUE) == whole


@pytest.mark.extended("crashes, interrupts and starves the referee")
def test_orphans_of_a_bot_are_killed_by_the_next_run(here):
    parent = here.bot("parent", PARENT)
    file = here.tournament(bots=(parent, "greedy"), matches=40)
    with here.started("tournament", "run", file, "--league", LEAGUE) as process:
        read_until(process, 4)
        children = [each for each in here.processes() if "sleep" in each.cmdline()]
        assert children
        kill(process)
    last = here.referee("tournament", "resume", "--league", LEAGUE)
    assert last.returncode == 0, last.stderr
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    assert here.processes() == []


SLOW = """
import time
from referee.sdk import run

def decide(request):
    time.sleep(0.005)
    return request.legal[0]

run(decide)
"""

MOODY = """
import os
from referee.sdk import Bot, run

class Moody(Bot):
    def start(self, game):
        self.game = game
        self.left = game.random.randrange(40)

    def decide(self, request):
        self.left -= 1
        if self.left == 0:
            os._exit(3)
        return self.game.random.choice(request.legal)

run(Moody, max_games=8)
"""

PARENT = """
import subprocess
from referee.sdk import run

subprocess.Popen(["sleep", "1000"], start_new_session=True)
run(lambda request: request.legal[0])
"""
