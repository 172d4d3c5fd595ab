"""A signal at any moment of a start ends the command with exit code 130 and leaves nothing behind."""

import re
import signal
import sqlite3
from contextlib import ExitStack, closing

import pytest
import signal_at
from real_runs import place

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MOMENTS = 40
"""The number of moments between the first module and the end of the first games."""
pytestmark = pytest.mark.extended("sends more signals")


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """Return a place, the variables that send a signal, and the number of events in a short run."""
    with ExitStack() as stack, place(tmp_path_factory.mktemp("signals"), apart=True) as here:
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
        stack.callback(signal.signal, signal.SIGHUP, before)
        variables = signal_at.prepare(here.folder / "site")
        file = here.tournament("short", matches=1)
        done = here.referee(
            "tournament", "run", file, SIGNAL_AT="0", SIGNAL_NUMBER="0", **variables
        )
        assert done.returncode == 0, done.stderr
        yield here, variables, int(re.search(r"^events: (\d+)", done.stdout, re.MULTILINE)[1])


@pytest.mark.unmeasured
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_signal_while_a_tournament_starts_leaves_a_clean_league(started, moment):
    here, variables, events = started
    at = 1 + moment * events // MOMENTS
    number = SIGNALS[moment % len(SIGNALS)]
    file, league = here.tournament(f"cup{moment}", matches=500), f"league{moment}"
    variables = variables | {"SIGNAL_AT": str(at), "SIGNAL_NUMBER": str(int(number))}
    done = here.referee("tournament", "run", file, "--league", league, **variables)
    said = done.stdout + done.stderr
    assert done.returncode == 130, (number, said)
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert here.left_alone()
    assert here.run_folders() == []
    database = here.folder / league / "league.db"
    if database.exists():
        with closing(sqlite3.connect(database)) as opened:
            assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        status = here.referee("tournament", "status", "--league", league)
        assert status.returncode == 0 or "there is no league here" in status.stderr


def test_command_under_nohup_ignores_the_end_of_its_terminal(started):
    here, variables, _ = started
    number = str(int(signal.SIGHUP))
    line = (
        f"SIGNAL_REPORT=1 SIGNAL_AT=100 SIGNAL_NUMBER={number} PYTHONPATH={variables['PYTHONPATH']}"
    )
    done = here.shell(f"trap '' HUP; {line} referee tournament status")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "sent: True\n"
