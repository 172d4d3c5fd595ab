"""What a bot's processes may use of the machine, and what they did use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one bot may use, all its processes together unless said otherwise."""

    memory_mib: int = 1024
    processes: int = 64
    """Threads count as processes, as the kernel counts them."""
    cpus: float = 1.0
    """Cores' worth of CPU time."""
    scratch_mib: int = 64
    open_files: int = 1024
    """Of one process."""
    output_kib: int = 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """What a bot has used so far, all its processes together."""

    cpu_s: float
    peak_memory_kib: int
