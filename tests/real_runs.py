"""The command `referee` as a process of its own, playing short tournaments: what several tests need."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import (
    chdir,
    closing,
    contextmanager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from dataclasses import replace
from multiprocessing import resource_tracker
from pathlib import Path
from unittest.mock import patch

import psutil

from referee.cli import app
from referee.store import League

SAMPLE_BOTS = Path(__file__).parents[1] / "sample_bots"
BIN = Path(sys.executable).parent
SEED = "5eed" * 16
THREE = ("random", "greedy", "bait")
READERS = {
    "bots": {"init", "list", "log", "retire", "show"},
    "game": {"list", "show", "replay"},
    "ratings": set(),
    "stats": set(),
    "tournament": {"export", "plan", "standings", "status"},
    "verify": set(),
}
"""Commands that start no process."""
PATIENCE_S = 60
"""Nothing here takes so long, however busy the machine is."""
COVERAGE = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")
"""What makes processes measure the coverage of their lines."""
NAMING = ("REFEREE_LEAGUE", "REFEREE_DB")
"""What names another league than the place's."""


class Place:
    """A folder to run the command in, and a folder for what it keeps while it runs.

    Whatever was started here has the second folder in its environment, by which it is found.
    """

    def __init__(self, folder, temp, *, apart=False, measured=False):
        self.folder = folder
        self.apart = apart
        self.temp = temp
        self.measured = measured
        self.hidden = set(NAMING if measured else (*NAMING, *COVERAGE))

    def environment(self, **more):
        kept = {key: value for key, value in os.environ.items() if key not in self.hidden}
        path = f"{BIN}:{os.environ['PATH']}"
        own = {"TMPDIR": str(self.temp), "COLUMNS": "80", "REFEREE_ISOLATION": "none"}
        return kept | {"PATH": path} | own | more

    def referee(self, *arguments, **environment):
        """Run a command to its end, in this process where it can: that saves a start each."""
        words = [str(argument) for argument in arguments]
        reads = only_reads(words)
        if not (environment or asyncio._get_running_loop()) and (reads or not self.apart):
            with nullcontext() if reads or self.measured else untraced():
                return run_here(words, self.folder, self.environment())
        return subprocess.run(
            [BIN / "referee", *words],
            cwd=self.folder,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    def shell(self, line):
        """Type a line into a shell."""
        return subprocess.run(  # noqa: S602 - as a person types it
            line,
            shell=True,
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    @contextmanager
    def started(self, *arguments):
        """A command while it runs, in a process group of its own, as from a terminal."""
        process = subprocess.Popen(
            [BIN / "referee", *map(str, arguments)],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def processes(self):
        """All that was started here and is alive, whoever is its parent now."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if any(str(self.temp) in value for value in process.environ().values()):
                    found.append(process)
        return found

    def left_alone(self):
        """Whether everything that was started here ends by itself."""
        _, alive = psutil.wait_procs(self.processes(), timeout=PATIENCE_S)
        return not alive and not self.processes()

    def run_folders(self):
        return list(self.temp.iterdir())

    def bot(self, name, program, *, command=("python3", "bot.py")):
        """Make a bot of a Python program."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "bot.py").write_text(program)
        words = ", ".join(f'"{word}"' for word in command)
        (folder / "bot.toml").write_text(
            f'name = "{name}"\nversion = "1"\nauthor = "x"\nlanguage = "python"\n'
            f"[run]\ncommand = [{words}]\n"
        )
        return folder

    def tournament(self, name="cup", *, bots=("random", "greedy"), matches=4, more="", few=True):
        """Write a tournament file: the classic game at tables of two, without isolation.

        With little to do: one worker, two lanes, short games. All of that where `more` says nothing else.
        """
        lines = ("workers = 1\n", "lanes = 2\n", "max_turns = 10\n") if few else ()
        for line in (*lines, 'isolation = "none"\n'):
            if line.split()[0] not in more:
                more = line + more
        folders = [SAMPLE_BOTS / bot if isinstance(bot, str) else bot for bot in bots]
        listed = ", ".join(f'"{folder}"' for folder in folders)
        path = self.folder / f"{name}.toml"
        path.write_text(
            f'name = "{name}"\nruleset = "classic"\nseats = 2\nmatches = {matches}\n'
            f'seed = "{SEED}"\nbots = [{listed}]\n{more}'
        )
        return path

    def records(self, league, tournament="cup", db=None):
        """What is stored of a tournament, in schedule order, without what no two runs share."""
        with League.open(self.folder / league, create=False, db=db) as store:
            return [
                timeless(store.record(row.game_id)) for row in store.results(tournament=tournament)
            ]

    def database(self, league="league"):
        """The database of a league, to be spoilt; open in a `with`. Each statement is done at once."""
        file = self.folder / league / "league.db"
        return closing(sqlite3.connect(file, isolation_level=None))


def only_reads(words):
    """Whether a command starts no process."""
    known = READERS.get(words[0])
    return known is not None and (not known or (words[1:2] != [] and words[1] in known))


def run_here(words, folder, environment):
    """Run a command in this process; what it prints and how it exits is as in one of its own."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    out, err = io.StringIO(), io.StringIO()
    with (
        chdir(folder),
        patch.dict(os.environ, environment, clear=True),
        patch.object(tempfile, "tempdir", None),  # to be found anew, by TMPDIR
        patch.object(sys, "argv", ["referee", *words]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            app.run()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            stop_tracker()
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def stop_tracker():
    """End the process that keeps account of semaphores, at which others would wonder, where there is one.

    Not before all who have some have given them back, as a process at its end waits for them too.
    """
    tracker = resource_tracker._resource_tracker
    if tracker._fd is None:
        return
    for thread in threading.enumerate():  # of executors that are shut down
        if not thread.daemon and thread is not threading.current_thread():
            thread.join(PATIENCE_S)
    gc.collect()
    tracker._stop()


@contextmanager
def untraced():
    """Without taking coverage: what is played in tests is so much of the same, and takes twice as long."""
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(trace)


@contextmanager
def place(folder, *, apart=False, measured=False):
    """A place for a test. Sockets have short paths, so that the second folder is not in the first.

    `apart` is for where the tests' process has children of its own, which a referee in it would end with
    its bots: whatever starts some then runs in a process of its own.

    Coverage of what is started there need not be `measured` where others run the same lines: it takes
    half as much time again.
    """
    temp = Path(tempfile.mkdtemp(prefix="run-"))
    here = Place(folder, temp, apart=apart, measured=measured)
    try:
        yield here
    finally:
        for process in here.processes():
            with suppress(psutil.Error):
                process.kill()
        shutil.rmtree(temp, ignore_errors=True)


def timeless(record):
    """A record without times, durations and lag, and what was measured of processes."""
    return replace(
        record,
        moves=tuple(replace(move, elapsed_us=0, lag_us=0) for move in record.moves),
        faults=tuple(
            replace(fault, evidence=replace(fault.evidence, elapsed_us=0))
            for fault in record.faults
        ),
        usage=(None,) * len(record.seating),
        dropped=(),
        started_at_us=0,
        duration_us=0,
    )


def games_done(line):
    """How many games a progress line says are played; 0 for any other line."""
    match = re.search(r": (\d+) of (?:at most )?\d+ games", line)
    return int(match[1]) if match else 0


def read_until(process, games):
    """Read what a run prints until so many games are played."""
    while games_done(line := process.stdout.readline()) < games:
        assert line, "the run ended before"


def let_run(process, seconds):
    """Let a process run for a moment, or to its end."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def workers(process):
    """The worker processes of a run."""
    children = psutil.Process(process.pid).children()
    return sorted(
        (child for child in children if any("spawn_main" in word for word in child.cmdline())),
        key=lambda child: child.create_time(),
    )
