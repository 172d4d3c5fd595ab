"""The live screen of a terminal while a tournament is played."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest
from real_runs import BIN, PATIENCE_S, THREE, place

from referee.store.league import League


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made


def watched(here, *arguments, columns, lines, term="xterm-256color"):
    """Run a command in a terminal of this size; return its output and its exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environment = here.environment(TERM=term)
    del environment["COLUMNS"]
    process = subprocess.Popen(
        [BIN / "referee", *map(str, arguments)],
        cwd=here.folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    written = bytearray()
    while True:
        try:
            written += os.read(ours, 1 << 16)
        except OSError:  # the last writer has gone
            break
    os.close(ours)
    return written.decode(), process.wait()


def take_terminal():
    """Make the terminal of standard input the terminal of this session, so that its end sends SIGHUP."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.extended("plays further tournaments")
@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("signals", "term"),
    [
        pytest.param(1, "xterm-256color", id="hangup"),
        pytest.param(2, "xterm-256color", id="two signals"),
        pytest.param(0, "xterm-256color", id="no signal"),
        pytest.param(0, "dumb", id="no signal, plain lines"),
    ],
)
def test_run_ends_and_can_be_resumed_after_its_terminal_was_closed(here, signals, term):
    """Without a signal, only the writes fail. A shell may send SIGHUP once more than the kernel."""
    file = here.tournament(matches=2000)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [BIN / "referee", "tournament", "run", file],
        cwd=here.folder,
        env=here.environment(TERM=term),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal if signals else None,  # noqa: PLW1509 - the child takes no lock
    )
    os.close(theirs)
    try:
        written = b""
        while not re.search(rb"cup.* [1-9]\d*(/| of )4000", written):
            written += os.read(ours, 1 << 16)
        os.close(ours)
        if signals == 2:
            process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE_S) == 130
    finally:
        process.kill()
        process.wait()
    assert here.left_alone()
    assert here.run_folders() == []
    [row] = json.loads(here.referee("tournament", "status", "--json").stdout)
    assert 0 < row["done"] < row["games"] == 4000
    with League.open(here.folder / "league", create=False) as league, league.lock():
        assert all(not record.faults for record in here.records("league"))


def plain(written):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written).replace("\r", "")


def frames(written):
    """Return the texts that were drawn one after another, each until it was erased."""
    return [plain(part) for part in re.split(r"(?:\x1b\[1A|\r)*\x1b\[2K", written)]


@pytest.mark.extended("plays further tournaments")
@pytest.mark.parametrize("columns", [80, 170])
def test_live_screen_ends_with_the_final_table(here, columns):
    file = here.tournament(bots=THREE, matches=10)
    written, code = watched(here, "tournament", "run", file, columns=columns, lines=24)
    assert code == 0
    drawn = frames(written)
    bars = [text for text in drawn if re.search(r"cup [━╸╺ ]+ +\d+/60 ", text)]
    assert len(bars) >= 2
    assert any(re.search(r" games/s \S+ left *$", text, re.MULTILINE) for text in bars)
    assert any("so far, classic" in text for text in drawn)
    assert "no faults" in plain(written)
    end = drawn[-1]
    assert "so far" not in end
    assert re.search(r"^cup: 60 of 60 games, [\d.]+ games/s, \d+ s, no faults$", end, re.MULTILINE)
    assert "cup, classic" in end
    assert all(f" {bot}@1.0 " in end for bot in ("random", "greedy", "bait"))
    assert "All games are played. Seed: " in end
    assert ("hidden here" in end) == (columns == 80)
    table = end[: end.index("All games")].splitlines()
    assert all(len(line) <= columns for line in table)


@pytest.mark.extended("plays further tournaments")
def test_progress_bar_stays_visible_above_many_tables(here):
    stages = "".join(
        f'[[stage]]\nruleset = "{name}"\nmatches = 2\n'
        for name in ("classic", "basic", "advanced", "expert")
    )
    file = here.tournament(matches=2, more=stages)
    written, code = watched(here, "tournament", "run", file, columns=80, lines=12)
    assert code == 0
    drawn = [text for text in frames(written) if "/16 " in text]
    assert drawn


@pytest.mark.extended("plays further tournaments")
def test_dumb_terminal_gets_plain_lines(here):
    file = here.tournament(matches=4)
    written, code = watched(here, "tournament", "run", file, columns=80, lines=24, term="dumb")
    assert code == 0
    assert "\x1b" not in written
    assert "s left, no faults" in written
    assert "All games are played." in written
