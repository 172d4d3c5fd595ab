"""Find the cgroups of this process, to see that none is left, and read their limits."""

import os
from pathlib import Path

from referee.sandbox.cgroups import Cgroups


def own_cgroups():
    """Return the cgroups that this process has made.

    Their names have the PID namespace: process 1 of another namespace is another process, and may have left cgroups of its own.
    """
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    pattern = f"referee-{namespace}-{os.getpid()}-*"
    return [path for each in Cgroups.find()._hierarchies for path in each.folder.glob(pattern)]


def read_cpu_limit(cgroup):
    """Return the CPU time of each period, in µs, as the kernel writes it."""
    file = cgroup.find_file("cpu.max") or cgroup.find_file("cpu.cfs_quota_us")
    return file.read_text().split()[0]
