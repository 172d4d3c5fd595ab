"""Make mounts that only some processes see: a small disk, or a read-only folder."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from real_runs import BIN, PATIENCE_S


class Mounted:
    """Runs commands that see the mounts; made by `mounted`."""

    def __init__(self, here, holder):
        self.here = here
        self._enter = (
            *("nsenter", "--target", str(holder.pid), "--user", "--mount"),
            *("--preserve-credentials", "env", f"--chdir={here.folder}"),
        )
        self.root = Path(f"/proc/{holder.pid}/root")
        """The path at which processes outside see the same files."""

    def run(self, *command):
        return subprocess.run(
            [*self._enter, *map(str, command)],
            env=self.here.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    @contextmanager
    def started(self, *arguments):
        """Start a command of the referee; end it when the context ends."""
        with subprocess.Popen(
            [*self._enter, BIN / "referee", *map(str, arguments)],
            env=self.here.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.terminate()

    def referee(self, *arguments):
        """Run a command of the referee to its end, in a process of its own."""
        return self.run(BIN / "referee", *arguments)


@contextmanager
def mounted(here, script, *arguments):
    """Run a shell script in a new mount namespace, and give access to it; the mounts end with the block."""
    words = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")
    with subprocess.Popen(
        [*words, f"{script}\necho ready\nexec cat", "sh", *map(str, arguments)],
        cwd=here.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as holder:
        if holder.stdout.readline() != "ready\n":
            pytest.skip(f"this machine allows no mounts: {holder.stderr.read().strip()}")
        yield Mounted(here, holder)
        holder.stdin.close()


READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"'
DISK = 'mount -t tmpfs -o size="$2" tmpfs "$1"'
