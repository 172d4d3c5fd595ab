"""Kill or interrupt a tournament at random moments, resume it, and assert what must hold after each blow."""

from __future__ import annotations

import os
import secrets
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from random import Random

import psutil
from real_runs import let_run, read_until, workers

from referee.store.league import League

SEED = int(os.environ.get("REFEREE_SEED") or secrets.randbelow(1_000_000))
"""The seed of the random moments."""
GAMES = 60
MOODY = """
import os
from referee.sdk import Bot, run

class Moody(Bot):
    def start(self, game):
        self.game = game
        self.left = game.random.randrange(200)

    def decide(self, request):
        self.left -= 1
        if self.left == 0:
            os._exit(3)
        return self.game.random.choice(request.legal)

run(Moody)
"""


def tournament(here, isolation="none"):
    """Write a tournament file with two deterministic bots; one of them crashes, always in the same games."""
    bots = (here.bot("moody", MOODY), "greedy")
    more = f'max_turns = 500\nworkers = 2\nlanes = 4\nisolation = "{isolation}"\n'
    return here.tournament(bots=bots, matches=GAMES // 2, more=more)


class Battered:
    """Plays one tournament after the other, each in a league of its own, and strikes them.

    Args:
        here: the place in which the commands run.
        file: the tournament file.
        whole: the records of an uninterrupted run.
        span_s: the duration of that run in seconds; each blow comes within this time.
        db: creates a database and returns its URL; by default the league has an SQLite file.
    """

    def __init__(self, here, file, whole, span_s, db=None):
        self.here = here
        self.file = file
        self.whole = whole
        self.span_s = span_s
        self.chance = Random(SEED)
        self.blows = 0
        self.between = 0
        """Number of blows between the first and the last game."""
        self.ended = 0
        """Number of tournaments that were played to their end."""
        self._new_db = db or (lambda: None)
        self._begin()

    def _begin(self):
        self.league = f"league{self.ended}"
        self.db = self._new_db()
        self.kept = {}
        self.is_stored = False

    def options(self):
        return ("--league", self.league, *(("--db", self.db) if self.db else ()))

    def started(self):
        words = ("resume", "cup") if self.is_stored else ("run", self.file)
        return self.here.started("tournament", *words, *self.options())

    def strike(self, blow):
        """Start or resume, call `blow(process)` at a random moment, and check the league.

        Returns the output of the process and its exit code.
        """
        with self.started() as process:
            wait_for_handlers(process)
            began = time.monotonic()
            let_run(process, self.chance.uniform(0, self.span_s))
            hit = process.poll() is None
            # The machine may have been busier while the span was measured. Runs with fewer games say nothing about that.
            if not hit and not self.kept:
                self.span_s = min(self.span_s, time.monotonic() - began)
            blow(process)
            said, _ = process.communicate()
            assert self.here.left_alone()
        self.blows += hit
        self._check()
        self.between += hit and 0 < len(self.kept) < GAMES
        if process.returncode == 0:
            self._finish_tournament()
        return said, process.returncode

    def kill_driver_during_play(self):
        """Start or resume, kill the driver after the first games of this run, and check the league.

        The blow counts only if the run had stored games and had not ended; otherwise the tournament is played to its end.
        """
        if len(self.kept) > GAMES // 2:
            self.finish()
        stored = len(self.kept)
        with self.started() as process:
            self._wait_for_play(process, stored)
            process.kill()
            process.communicate()
            assert self.here.left_alone()
        self._check()
        if process.returncode == -signal.SIGKILL and stored < len(self.kept) < GAMES:
            self.blows += 1
            self.between += 1
            sys.stdout.write(f"driver killed with {len(self.kept)} of {GAMES} games stored\n")
        else:
            self.finish()

    def kill_workers_during_play(self):
        """Play a tournament to its end, and kill its oldest worker at three moments. Check the league."""
        with self.started() as process:
            for part in range(3):
                played = self._wait_for_play(process, part * GAMES // 4)
                alive = workers(process)
                if not alive:
                    break
                # The other one may have been started after the last kill, and may not play yet.
                try:
                    alive[0].kill()
                except psutil.NoSuchProcess:  # the run has ended meanwhile
                    break
                self.blows += 1
                self.between += 1
                sys.stdout.write(f"worker killed after {played} of {GAMES} games\n")
            said, _ = process.communicate()
            assert self.here.left_alone()
        assert process.returncode == 0, said
        self._check()
        self._finish_tournament()

    def _wait_for_play(self, process, stored):
        """Wait for a random moment in the quarter of the games that follow game `stored`.

        Return the number of played games that the driver has shown last.
        """
        played = self.chance.randint(stored + 1, stored + GAMES // 4)
        read_until(process, played)
        let_run(process, self.chance.uniform(0, self.span_s / GAMES))
        return played

    def finish(self):
        """Play the current tournament to its end."""
        if not self.is_stored and not self.kept:
            return
        done = self.here.referee("tournament", "resume", "cup", *self.options())
        assert done.returncode == 0, done.stderr
        self._check()
        self._finish_tournament()

    def _check(self):
        """Assert that the database is intact, and that stored games are neither lost nor played again."""
        if self.db is None and (self.here.folder / self.league / "league.db").exists():
            assert integrity(self.here.folder / self.league / "league.db") == "ok"
        if not League.exists_at(self.here.folder / self.league, self.db):
            return
        with League.open(self.here.folder / self.league, create=False, db=self.db) as league:
            self.is_stored = bool(league.tournaments())
            assert all(row.games == GAMES for row in league.tournaments()), "half a schedule"
            now = {row.game_id: league.record(row.game_id) for row in league.results()}
        assert self.kept.items() <= now.items(), "a finished game was lost or played again"
        self.kept = now

    def _finish_tournament(self):
        assert self.here.records(self.league, db=self.db) == self.whole
        assert self.here.referee("verify", *self.options()).returncode == 0
        assert self.here.processes() == []
        assert self.here.run_folders() == [], list(self.here.temp.rglob("*"))
        self.ended += 1
        self._begin()

    def __str__(self):
        return (
            f"seed {SEED}: {self.blows} blows, {self.between} of them between the first and the last"
            f" game; {self.ended} tournaments played to their end"
        )


def wait_for_handlers(process):
    """Wait until the command handles signals; before that, a signal ends the interpreter."""
    while process.poll() is None:
        with Path(f"/proc/{process.pid}/status").open() as status:
            caught = next(line for line in status if line.startswith("SigCgt:"))
        if int(caught.split()[1], 16) & 1 << (signal.SIGTERM - 1):
            return
        time.sleep(0.005)


def integrity(file):
    """Return the result of SQLite's integrity check."""
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]
