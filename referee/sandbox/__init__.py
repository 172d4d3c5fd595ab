"""Run one untrusted program: start it isolated, limit and measure it, and end every process that it started.

`ladder` finds the strongest isolation that the machine gives and creates the launcher for it. README.md describes
the rungs of the ladder. This package knows no gRPC, no bot and no rule of the game.

This module says what a program may use (`Limits`), what it may reach (`Access`), and what it has used
(`TotalUsage`). These are plain values. A launcher enforces the limits and the access as far as its rung can.
`monitor` watches the limits that the kernel does not enforce.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process tree may use."""

    memory_mib: int = 1024
    """Memory of all processes of the tree together, in MiB."""
    processes: int = 64
    """How many processes of the tree may exist at once."""
    cpus: float = 1.0
    """CPU time per second of real time, in cores: 1.0 is one core all the time."""
    scratch_mib: int = 64
    """Disk space in the scratch folder, in MiB."""
    open_files: int = 1024
    """Open file descriptors of each process."""
    output_kib: int = 1024
    """How many KiB are kept from the end of standard output, and as many from the end of standard error."""

    def at_most(self, maxima: Limits) -> Limits:
        """Return limits in which each field has the lower one of its values in `self` and in `maxima`."""
        return Limits(
            min(self.memory_mib, maxima.memory_mib),
            min(self.processes, maxima.processes),
            min(self.cpus, maxima.cpus),
            min(self.scratch_mib, maxima.scratch_mib),
            min(self.open_files, maxima.open_files),
            min(self.output_kib, maxima.output_kib),
        )


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a program may reach besides the system, the toolchains and its own folder."""

    scratch: Path | None = None
    """An empty folder that the program may write to. It is the program's HOME and TMPDIR."""
    link: Path | None = None
    """The folder of the socket that connects the program with the referee."""
    home: Path | None = None
    """A folder that a build may write to. A sandbox shows this folder at the path `Path.home()`."""
    writable: tuple[Path, ...] = ()
    """Folders in which the program may change everything. The program's own folder may be one of these."""
    readable: tuple[Path, ...] = ()
    """Files and folders that the program may only read."""
    network: bool = False
    """Whether the program may use the network of this machine."""
    relay: tuple[Path, int] | None = None
    """The path of a UNIX socket, and a port. The sandbox forwards each connection on the port of its loopback address to
    the socket. None if no port is forwarded."""


NO_ACCESS = Access()
"""Access to nothing besides the system, the toolchains and the program's own folder."""


@dataclass(frozen=True, slots=True)
class TotalUsage:
    """What a process tree has used since the program was started."""

    cpu_s: float
    """CPU time in seconds."""
    peak_memory_kib: int
    """The largest memory use that was seen, in KiB."""
