"""Tests a referee that is process 1, as in a container whose entry point it is."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from real_runs import BIN, PATIENCE_S, place
from strongest_isolation import strongest

pytestmark = [
    pytest.mark.isolation("namespaces"),
    pytest.mark.toolchain("unshare"),
    pytest.mark.unmeasured,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes PID namespaces"),
]
HERE = Path(__file__).parent
SUITE_LIMIT_S = 280
STACKS_LIMIT_S = 2
AS_PROCESS_ONE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made
        assert made.left_alone()
        assert made.run_folders() == []


def referee(here, *arguments):
    """Run a command as process 1. If it hangs, the test fails with the stack of each of its threads."""
    command = [*AS_PROCESS_ONE, BIN / "referee", *arguments]
    environment = here.environment(REFEREE_ISOLATION="", PYTHONFAULTHANDLER="1")
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=here.folder, env=environment, **streams) as unshare:
        try:
            printed = unshare.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            for each in psutil.Process(unshare.pid).children():
                each.send_signal(signal.SIGABRT)  # prints the stacks, but does not end process 1
            with suppress(subprocess.TimeoutExpired):
                unshare.wait(STACKS_LIMIT_S)
            unshare.kill()
            pytest.fail("\n".join(unshare.communicate()))
    return subprocess.CompletedProcess(command, unshare.returncode, *printed)


@pytest.mark.extended("runs the tests of the isolation once more")
def test_process_1_finds_the_same_rung_as_any_other_process(here):
    done = referee(here, "doctor", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rung"] == strongest().rung.value
    assert {each["protection"]: each["state"] for each in found["protections"]} == {
        each.protection.value: each.state.value for each in strongest().results
    }


@pytest.mark.extended("plays more bots in the sandbox")
def test_process_1_plays_a_tournament_in_isolation(here):
    file = here.tournament(bots=("random", "greedy"), matches=2, more="# isolation = as it comes\n")
    done = referee(here, "tournament", "run", file)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Isolation of the bots: {strongest().summary}" in done.stdout
    assert "2 bots" in done.stdout
    assert "a new one plays" not in done.stdout
    assert {each.isolation for each in here.records("league")} == {strongest().summary}
    assert not any(each.faults for each in here.records("league"))


@pytest.mark.isolation("full")
@pytest.mark.extended("runs the tests of the isolation once more")
@pytest.mark.parametrize(
    ("file", "chosen"),
    [
        ("test_sandbox.py", "test"),
        ("test_misbehaving_isolated.py", "fork_bomb or litters_scratch or signals_reach_no_other"),
    ],
)
def test_isolation_holds_if_the_referee_is_process_1(file, chosen):
    """The process of the inner tests is process 1, and starts the sandboxes."""
    tests = ("-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "-k", chosen, HERE / file)
    done = subprocess.run(
        [*AS_PROCESS_ONE, sys.executable, *tests],
        env=os.environ | {"PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=SUITE_LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
