"""Start schedulers and workers for tests, and tournaments on them."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from pages import ROOT
from real_runs import BIN, PATIENCE_S, SAMPLE_BOTS, place

ROUND_ROBIN = ("random", "greedy", "bait")
SHAPES = {
    "round robin": {"bots": ROUND_ROBIN, "matches": 6},
    "suspension": {"bots": (*ROUND_ROBIN, "crashes"), "matches": 4},
    "gauntlet": {
        "bots": ("greedy", "bait"),
        "matches": 6,
        "more": f'format = "gauntlet"\nchallengers = ["{SAMPLE_BOTS / "random"}"]\n',
    },
    "until": {"bots": ("random", "greedy"), "matches": 30, "more": "until = {confidence = 0.9}\n"},
}
ENOUGH_S = 280
"""A timeout that is enough for the longest of the tournaments on a busy machine."""
CRASH = "import os\nos._exit(3)\n"
QUIET = "import sys\nsys.exit(0)\n"


@contextmanager
def clean_place(folder):
    """Give a `Place` in which no process and no folder may be left after the next run of the referee.

    A program that was killed leaves its folder for the next run to remove; see `sandbox/folders.py`.
    """
    with place(folder, apart=True) as made:
        made.patience_s = ENOUGH_S
        yield made
        end = time.monotonic() + PATIENCE_S
        while made.processes() and time.monotonic() < end:
            time.sleep(0.1)
        left = [each.cmdline() for each in made.processes()]
        assert not left, f"processes: {left}"
        played = made.referee("play", made.bot("left", QUIET), made.bot("right", QUIET))
        assert played.returncode == 0, played.stderr
        assert not made.run_folders(), f"folders: {list(made.temp.rglob('*'))}"


def write_file(here, *, bots, matches, more=""):
    names = [here.bot("crashes", CRASH) if name == "crashes" else name for name in bots]
    return here.tournament(bots=names, matches=matches, more=f"lanes = 7\n{more}")


def games(here, league):
    """Return the games and the ratings of a league, without times."""
    shown = here.referee("ratings", "--json", "--league", league)
    assert shown.returncode == 0, shown.stderr
    return here.records(league), shown.stdout


def run(here, *words, code=0):
    done = here.referee("tournament", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@contextmanager
def process(here, *words, output=subprocess.DEVNULL):
    """Start a program of the cluster; end it and what it has started. `output` is as in `subprocess`."""
    started = subprocess.Popen(
        [str(word) for word in words],
        cwd=here.folder,
        env=here.environment(XDG_CACHE_HOME=here.folder, DASK_TEMPORARY_DIRECTORY=here.folder),
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    try:
        yield started
    finally:
        started.terminate()
        started.wait(PATIENCE_S)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


DASK = Path(sys.executable).with_name("dask")


def scheduler(here, port, *more):
    """Start a scheduler with the command of the page, but at another port."""
    page = (ROOT / "tournaments/README.md").read_text()
    [line] = re.findall(
        r"^dask (scheduler --host 127\.0\.0\.1 --port 8786 .*)$", page, re.MULTILINE
    )
    words = line.replace("8786", str(port)).split()
    return process(here, DASK, *words, "--no-show", *more)


def tls_options(certificates):
    """Return the options for TLS of the referee, and those of `dask scheduler`."""
    authority, own, key = (certificates.authority, certificates.certificate, certificates.key)
    return (
        ("--tls-ca", authority, "--tls-cert", own, "--tls-key", key),
        ("--protocol", "tls", "--tls-ca-file", authority, "--tls-cert", own, "--tls-key", key),
    )


def wait_for(port):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("the scheduler does not listen")


def workers(here, port, output=subprocess.DEVNULL):
    """Start a worker on one core. `output` is as in `subprocess`."""
    words = (BIN / "referee", "worker", f"127.0.0.1:{port}", "--cores", 1)
    return process(here, *words, output=output)
