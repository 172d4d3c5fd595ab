"""Decide how a sandbox shows files of the machine, and collect what the shim prepares for that.

Two sandboxes that see one inode can pass bits to each other, for example by the times or the locks of a file. So a
sandbox gets inodes of its own: it shows folders as overlays. If the referee is root, the shim also mounts an empty file
system at `_PREPARED`, in a private mount namespace. There it copies single files and creates device files. What cannot be
shown as an overlay, a copy or a new device file is shown by a bind mount.

Most system-wide files of /proc contain counters of the whole machine. A program could send bits with these counters:
it starts processes, and a program in another sandbox sees that the counter has grown. So a sandbox covers the
system-wide folders of /proc, and the system-wide files that everybody may read. The exceptions are `_OWN_FOLDERS` and
`_CONSTANT_FILES`, which carry no bits or few. A covered file is empty, or has plausible contents if runtimes of
programming languages read it.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import tempfile
import time
from functools import cache, cached_property
from pathlib import Path

import psutil

from referee.sandbox import Limits

_PREPARED = Path("/sys")
"""Where the shim mounts an empty file system, in which it prepares files. This mount hides /sys, which no program needs."""
_FIRST_CONTENT = 5
"""The file descriptor of the first pipe with the content of a file. Descriptor 3 is the report pipe, and 4 is the pipe with the
system call filter; see the option --sandbox of `shim.py`."""
_DEVICES = ("full", "null", "random", "tty", "urandom", "zero")
"""The device files that bubblewrap shows in /dev."""
_TRIAL_LIMIT_S = 10.0
_PROC = Path("/proc")
_CONSTANT_FILES = frozenset(
    {
        "bootconfig",
        "cmdline",
        "config.gz",
        "consoles",
        "cpuinfo",
        "devices",
        "dma",
        "execdomains",
        "filesystems",
        "iomem",
        "ioports",
        "kallsyms",
        "misc",
        "mtrr",
        "partitions",
        "version",
        "version_signature",
    }
)
"""The files of /proc through which bots cannot send bits, because they do not change while bots play. The exception is `cpuinfo`:
its frequencies change (see the README of this package)."""
_OWN_FOLDERS = frozenset({"sys", "sysvipc"})
"""The folders of /proc that a sandbox does not cover as a whole. `sys` contains mostly settings (see `_COUNTING_FOLDERS`), and
`sysvipc` lists only what the program itself has made."""
_COUNTING_FOLDERS = ("sys/fs", "sys/kernel/pty")
"""The folders in /proc/sys that contain not only settings but also counts, such as the number of open files."""


class Overlays:
    """Tries, once for each file system, whether bubblewrap can show its folders as overlays.

    Args:
        bwrap: the path of bubblewrap. Before version 0.11 it makes no overlays.
    """

    def __init__(self, bwrap: Path) -> None:
        self._bwrap = bwrap
        self._possible: dict[int, bool] = {}
        """The results of the trials, by the device number of the file system."""

    def are_possible(self, folder: Path) -> bool:
        """Return whether `folder` can be shown as an overlay, with an empty folder as its second layer.

        The first call for a file system takes about 10 ms. Raises OSError if no process can be started, or if
        the trial takes too long.
        """
        device = folder.stat().st_dev
        if device not in self._possible:
            self._possible[device] = self._try(folder)
        return self._possible[device]

    def _try(self, folder: Path) -> bool:
        # here bubblewrap runs as the referee's user, so the empty folder must belong to this user
        with tempfile.TemporaryDirectory() as empty:
            layers = ("--overlay-src", folder, "--overlay-src", empty, "--ro-overlay", folder)
            words = (self._bwrap, "--unshare-user", "--ro-bind", "/", "/", *layers, "true")
            try:
                done = subprocess.run(
                    words, check=False, capture_output=True, timeout=_TRIAL_LIMIT_S
                )
            except subprocess.TimeoutExpired as error:
                # the trial has no result, so keep none: the next call tries again
                raise OSError(
                    f"the trial of an overlay did not end within {_TRIAL_LIMIT_S:g} s"
                ) from error
        return done.returncode == 0


class Mounts:
    """Chooses how one sandbox shows each file, and collects the shim's options that prepare the files.

    If the referee is root, bubblewrap runs as another user. If this user cannot reach a file at its own path, the shim
    shows the file below `_PREPARED`. The shim passes the contents of new files to bubblewrap through pipes.

    Args:
        uid: the user of the program; None if bubblewrap runs as the referee's user.
        overlays: says which folders can be shown as overlays.
        empty: an empty folder; None if the sandbox shows no folder as an overlay.
    """

    def __init__(self, uid: int | None, overlays: Overlays, empty: Path | None) -> None:
        self._uid = uid
        self._overlays = overlays
        self._empty = empty
        self._sources: dict[Path, str] = {}
        self.options: list[str] = [] if uid is None else ["--prepare", str(_PREPARED)]
        """The options of the shim that prepare the files."""
        self.contents: list[bytes] = []
        """The contents of new files, in the order of their pipes."""

    def add_content(self, content: bytes) -> int:
        """Add the content of a new file, and return the descriptor from which bubblewrap reads it."""
        self.contents.append(content)
        return _FIRST_CONTENT + len(self.contents) - 1

    def is_reachable(self, path: Path) -> bool:
        """Return whether bubblewrap's user can reach `path` at its own place."""
        return self._uid is None or all(map(_others_can_enter, path.parents))

    def source(self, path: Path) -> str:
        """Return `path`, or a bind mount of it in `_PREPARED` if bubblewrap's user cannot reach `path` at its own place."""
        if path not in self._sources:
            reachable = self.is_reachable(path)
            self._sources[path] = str(path) if reachable else self._prepare("--bind", path)
        return self._sources[path]

    def show(self, path: Path) -> list[str]:
        """Return bubblewrap's options that show a file or a folder at its own path, only for reading."""
        if not path.is_dir():
            source = str(path) if self._uid is None else self._prepare("--copy", path)
            return ["--ro-bind", source, str(path)]
        if self._empty is None or not self._can_overlay(path, self._empty):
            return ["--ro-bind", self.source(path), str(path)]
        layers = (path, self._empty)  # bubblewrap requires two layers or more
        sources = [word for layer in layers for word in ("--overlay-src", self.source(layer))]
        return [*sources, "--ro-overlay", str(path)]

    def show_devices(self) -> list[str]:
        """Return bubblewrap's options that replace the device files in /dev by those that the shim creates.

        If the referee is not root, return no options. Then all sandboxes share the device files of the machine.
        """
        if self._uid is None:
            return []
        words = []
        for path in (Path("/dev", name) for name in _DEVICES):
            words += ["--dev-bind", self._prepare("--device", path), str(path)]
        return words

    def _prepare(self, how: str, path: Path) -> str:
        target = f"{_PREPARED}/{len(self.options)}"
        self.options += [how, str(path), target]
        return target

    def _can_overlay(self, folder: Path, empty: Path) -> bool:
        """Return whether a folder can be shown as an overlay.

        The kernel refuses an overlay if something is mounted inside the folder, or if one layer contains the other.
        """
        inside = f"{folder.resolve()}/"
        obstacles = (*self._mount_points, str(empty.resolve()))
        if any(path.startswith(inside) for path in obstacles):
            return False
        return self._overlays.are_possible(folder)

    @cached_property
    def _mount_points(self) -> list[str]:
        """The folders and files on which something is mounted."""
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
        paths = (line.split(" ")[4] for line in lines)
        return [re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), path) for path in paths]


def _others_can_enter(folder: Path) -> bool:
    return bool(folder.stat().st_mode & 0o001)


def frozen_files(limits: Limits) -> dict[Path, bytes]:
    """Return the files of /proc that a sandbox covers, each with the content that the sandbox shows instead.

    Most contents are empty. The others describe an idle machine that has as much memory as the program's limit.
    """
    contents = {
        "loadavg": "0.00 0.00 0.00 1/1 1\n",
        "meminfo": _meminfo(limits.memory_mib << 10),
        "stat": _stat(),
        "uptime": f"{time.clock_gettime(time.CLOCK_BOOTTIME):.2f} 0.00\n",
    }
    return {_PROC / name: contents.get(name, "").encode() for name in _changing_files()}


@cache
def hidden_folders() -> tuple[Path, ...]:
    """Return the folders of /proc that a sandbox covers with empty folders."""
    folders = [entry.name for entry in os.scandir(_PROC) if entry.is_dir(follow_symlinks=False)]
    hidden = [name for name in folders if not name.isdecimal() and name not in _OWN_FOLDERS]
    return tuple(
        path
        for name in (*sorted(hidden), *_COUNTING_FOLDERS)
        if (path := _PROC / name).is_dir() and any(path.iterdir())
    )


@cache
def _changing_files() -> tuple[str, ...]:
    """Return the names of the files in /proc that may change and that everybody may read."""
    return tuple(
        sorted(
            entry.name
            for entry in os.scandir(_PROC)
            if entry.name not in _CONSTANT_FILES
            and not entry.is_symlink()
            and not entry.is_dir()
            and entry.stat().st_mode & stat.S_IROTH
        )
    )


def _meminfo(total_kib: int) -> str:
    figures = dict.fromkeys(("MemTotal", "MemFree", "MemAvailable"), total_kib)
    names = ("Buffers", "Cached", "SwapCached", "SwapTotal", "SwapFree", "Shmem", "SReclaimable")
    figures |= dict.fromkeys(names, 0)
    return "".join(f"{name + ':':15} {size:8} kB\n" for name, size in figures.items())


@cache
def _stat() -> str:
    names = ("cpu ", *(f"cpu{number}" for number in range(os.cpu_count() or 1)))
    lines = [
        *(f"{name} 0 0 0 0 0 0 0 0 0 0" for name in names),
        *("intr 0", "ctxt 0", f"btime {int(psutil.boot_time())}", "processes 1"),
        *("procs_running 1", "procs_blocked 0", "softirq 0 0 0 0 0 0 0 0 0 0 0"),
    ]
    return "\n".join(lines) + "\n"
