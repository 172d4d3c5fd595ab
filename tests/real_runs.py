"""Run the command `referee` in a folder of its own: short tournaments, kills, what is left behind."""

from __future__ import annotations

import asyncio
import gc
import io
import logging
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
from referee.store.league import League

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
"""Commands that start no process. An empty set stands for all subcommands."""
PATIENCE_S = 60
"""A timeout that no command reaches, however busy the machine is."""
LEAGUE_VARIABLES = ("REFEREE_LEAGUE", "REFEREE_DB")
"""Environment variables that would make commands use another league than the one in their folder."""


class Place:
    """Run commands in `folder`. The commands keep their temporary files in `temp`.

    Every process that a command starts has `temp` in its environment. By this, `processes` finds the processes.
    A command may take `patience_s` seconds.
    """

    def __init__(self, folder, temp, *, apart=False):
        self.folder = folder
        self.apart = apart
        self.temp = temp
        self.patience_s = PATIENCE_S

    def environment(self, **more):
        """Return the environment of a command, with `more` variables."""
        inherited = {
            name: value for name, value in os.environ.items() if name not in LEAGUE_VARIABLES
        }
        path = f"{BIN}:{os.environ['PATH']}"
        own = {"TMPDIR": str(self.temp), "COLUMNS": "80", "REFEREE_ISOLATION": "none"}
        return inherited | {"PATH": path} | own | more

    def referee(self, *arguments, **environment):
        """Run a command to its end. If possible, run it in this process, which is faster.

        Print the bug reports that this command and earlier ones have left, because pytest shows what a failing test has printed.
        """
        done = self._run([str(argument) for argument in arguments], environment)
        for report in self.temp.glob("referee-bug-*.txt"):
            print(report.read_text())  # noqa: T201 - for the person who reads the failure
        return done

    def _run(self, words, environment):
        own_process = environment or asyncio._get_running_loop()
        if not own_process and (only_reads(words) or not self.apart):
            return run_here(words, self.folder, self.environment())
        return subprocess.run(
            [BIN / "referee", *words],
            cwd=self.folder,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=self.patience_s,
        )

    def shell(self, line):
        """Run a line in a shell."""
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
    def started(self, *arguments, **environment):
        """Start a command in its own process group, as a terminal does. Kill the process when the context ends."""
        process = subprocess.Popen(
            [BIN / "referee", *map(str, arguments)],
            cwd=self.folder,
            env=self.environment(**environment),
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
        """Return the living processes that were started here, also those whose parents have ended."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if any(str(self.temp) in value for value in process.environ().values()):
                    found.append(process)
        return found

    def left_alone(self):
        """Wait for all processes that were started here; return True if they end by themselves."""
        _, alive = psutil.wait_procs(self.processes(), timeout=PATIENCE_S)
        return not alive and not self.processes()

    def run_folders(self):
        """Return the temporary files and folders that runs have left, each run folder by itself."""
        runs = self.temp / f"referee-{os.geteuid()}"
        left = [*self.temp.iterdir(), *(runs.iterdir() if runs.exists() else ())]
        return [path for path in left if path != runs or len(left) == 1]

    def bot(self, name, program, *, command=("python3", "bot.py")):
        """Write the folder of a bot with the Python program `program`, and return the folder."""
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

        With `few`, there is one worker, two lanes and short games. A setting in `more` replaces the default value.
        """
        defaults = ("workers = 1\n", "lanes = 2\n", "max_turns = 10\n") if few else ()
        for line in (*defaults, 'isolation = "none"\n'):
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
        """Return the stored records of a tournament in schedule order, without times and measurements."""
        with League.open(self.folder / league, create=False, db=db) as store:
            return [
                timeless(store.record(row.game_id)) for row in store.results(tournament=tournament)
            ]

    def database(self, league="league"):
        """Return a context with a connection to a league's database, in autocommit mode, to damage the database."""
        file = self.folder / league / "league.db"
        return closing(sqlite3.connect(file, isolation_level=None))


def only_reads(words):
    """Return True if the command starts no process."""
    subcommands = READERS.get(words[0])
    if subcommands is None:
        return False
    return not subcommands or bool(subcommands.intersection(words[1:2]))


def run_here(words, folder, environment):
    """Run a command in this process; return its output and exit code as `subprocess.run` does."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in numbers}
    disabled = logging.root.manager.disable
    out, err = io.StringIO(), io.StringIO()
    with (
        chdir(folder),
        patch.dict(os.environ, environment, clear=True),
        patch.object(tempfile, "tempdir", None),  # tempfile must read the new TMPDIR
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
            logging.disable(disabled)
            stop_tracker()
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def stop_tracker():
    """End the resource tracker of `multiprocessing`, which tests would take for an orphan process.

    First wait for the threads of executors, because they return their semaphores when they end. Do not wait for the timer
    of pytest's time limit, which ends with the test.
    """
    tracker = resource_tracker._resource_tracker
    if tracker._fd is None:
        return
    for thread in threading.enumerate():  # of executors that are shut down
        is_other = thread is threading.current_thread() or isinstance(thread, threading.Timer)
        if not (thread.daemon or is_other):
            thread.join(PATIENCE_S)
    for _ in range(3):  # an error that passed an asynchronous generator is freed in several steps
        gc.collect()
    tracker._stop()


@contextmanager
def place(folder, *, apart=False):
    """Give a test a `Place`. When the context ends, kill all processes that were started there.

    The folder for temporary files is not inside `folder`, because the paths of sockets must be short.

    With `apart`, every command that starts processes runs in a process of its own. Tests that have child
    processes need this, because a referee in the process of the test would also end the children of the test.
    """
    temp = Path(tempfile.mkdtemp(prefix="run-"))
    here = Place(folder, temp, apart=apart)
    try:
        yield here
    finally:
        for process in here.processes():
            with suppress(psutil.Error):
                process.kill()
        shutil.rmtree(temp, ignore_errors=True)


def timeless(record):
    """Return the record without times, durations, lag, batches, the machine and the resource usage of processes."""
    return replace(
        record,
        moves=tuple(
            replace(move, elapsed_us=0, lag_us=0, wall_us=0, batch_size=1) for move in record.moves
        ),
        faults=tuple(
            replace(fault, evidence=replace(fault.evidence, elapsed_us=0, wall_us=0, batch_size=1))
            for fault in record.faults
        ),
        usage=(None,) * len(record.seating),
        dropped=(),
        started_at_us=0,
        duration_us=0,
        machine=None,
    )


def games_done(line):
    """Return the number of played games in a progress line; 0 for any other line."""
    match = re.search(r": (\d+) of (?:at most )?\d+ games", line)
    return int(match[1]) if match else 0


def read_until(process, games):
    """Read the output of a run until `games` games are played."""
    lines = []
    while games_done(line := process.stdout.readline()) < games:
        assert line, f"the run ended earlier: {''.join(lines)}"
        lines.append(line)


def let_run(process, seconds):
    """Wait for some seconds, or until the process ends."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def workers(process):
    """Return the living worker processes of a run, oldest first."""
    found = []
    for child in psutil.Process(process.pid).children():
        with suppress(psutil.Error):
            if any("spawn_main" in word for word in child.cmdline()):
                found.append(child)
    return sorted(found, key=lambda child: child.create_time())
