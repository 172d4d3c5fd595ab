"""The live screen of a terminal while a tournament is played."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest
from extended import extend_all_but
from real_runs import BIN, THREE, place


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


def plain(written):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written).replace("\r", "")


def frames(written):
    """Return the texts that were drawn one after another, each until it was erased."""
    return [plain(part) for part in re.split(r"(?:\x1b\[1A|\r)*\x1b\[2K", written)]


@pytest.mark.parametrize("columns", extend_all_but([80], [80, 170], "plays further tournaments"))
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
