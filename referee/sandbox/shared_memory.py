"""Remove the shared memory that a program on the rung `none` leaves behind.

Such a program runs as the referee's user, and the kernel does not store which program has made a file. So the referee
watches `/dev/shm` by inotify. As long as no close event has come for a new file, its creator still has it open or
mapped. If during this time only processes of one program have the file open or mapped, this program has made it. A file
that is closed before the referee scans the open files of the programs has no known creator and is kept.

A segment of System V stores the pid of its creator. The kernel can give this pid to another process later. So the
referee trusts the pid only while the creator is still a process of the program. It also trusts the pid of a program
that has ended, as long as no process has this pid.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import stat
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import psutil

from referee.sandbox.process_tree import PROCESS_TREES
from referee.sandbox.system_v import REMOVE_IPC, read_ipc_table

_FOLDER = b"/dev/shm"
_CLOSE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x18, 0x40, 0x80, 0x100, 0x200
_IS_FOLDER, _OVERFLOW = 0x40000000, 0x4000
_EVENT = struct.Struct("iIII")
"""The start of an inotify event: watch, mask, cookie, length of the name."""
_READ_BYTES = 1 << 15
"""How many bytes of events to read before a scan: about 1,000 events if file names have at most 15 bytes, otherwise fewer."""
_BACKLOG_BYTES = 16_384 * 272
"""How many bytes of events to read after a scan, and before a program is killed. This empties the queue of the kernel, which
keeps at most 16,384 events by default, each with 16 bytes and a file name of at most 256. A limit is needed, because a program
can make events without end."""
_PAUSE_S = 0.002
"""The shortest time between two scans."""
_PAUSES_PER_SCAN = 9
"""A pause is this many times longer than the scan before it, so scans take at most a tenth of the time."""
_SCANS = 3
"""How many times to scan for the creator of a file. One scan is not enough, because the event for a new file comes
shortly before the creator has the file open."""
_MAX_FILES = 4096
"""The largest number of files to remember for one program, and of unfinished renames to remember for all programs."""
_CLOCK_ERROR_S = 2
"""By how much a segment may seem older than its creator, because the kernel rounds both times."""


class _HeldFile(NamedTuple):
    """A file of /dev/shm that a process has open or mapped."""

    inode: int
    name: bytes
    """The name by which the process has opened it, or its new name after a rename."""
    is_deleted: bool
    """Whether this name is gone. The file may have another name."""


@dataclass
class _NewFile:
    """A new file of /dev/shm that nobody has closed yet."""

    is_deleted: bool = False
    """Whether the name of the file has been deleted. After a rename, this means the new name."""
    scans_left: int = _SCANS
    """How many more scans may find the creator. After these scans, the creator may have closed the file. Then another
    program that opens the file would be taken for the creator."""


@dataclass
class _Leftovers:
    """What a program has made."""

    start_s: float
    """When the program was started, in seconds since 1970."""
    inodes: set[int] = field(default_factory=set)
    segments: set[tuple[int, int]] = field(default_factory=set)
    """The id and the creator's pid of each segment."""


class SharedMemoryWatch:
    """Finds what programs make in shared memory, and removes it when they are gone.

    Call `start` before each program starts, `add` when it runs, `scan_again` before its process tree is killed and
    `remove_leftovers` after that.
    """

    def __init__(self) -> None:
        self._inotify = -1
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop that waits for events."""
        self._programs: dict[int, _Leftovers] = {}
        self._created: dict[bytes, _NewFile] = {}
        """The new files whose creator is not known yet, by name."""
        self._moved: dict[int, _NewFile] = {}
        """Files of `_created` that are being renamed, by the cookie of the event. A file that moves to another folder stays
        here, because no second event comes for it."""
        self._unconfirmed: dict[int, int] = {}
        """The program that has a file open, by the inode of the file. An entry stays until `_find_other_holders` has
        searched for other processes that have the file open."""
        self._search: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to watch, with the running event loop. Where the machine does not allow it, no file is removed."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._inotify = _watch_folder()
            PROCESS_TREES.before_reap = self._note_segments
        if loop is not self._loop:
            self._loop, self._search = loop, None
            self._wait_for_events(loop)

    def add(self, pid: int) -> None:
        """Register a program that has just been started."""
        self._programs[pid] = _Leftovers(time.time())

    def note_segments(self, pid: int, *, has_ended: bool) -> None:
        """Remember the segments that the present processes of a program have created. Without new segments this is cheap.

        Args:
            pid: the process id of the program.
            has_ended: whether the program has ended, so that another process may get its pid.
        """
        new = self._new_segments(pid)
        if new:
            own = () if has_ended else (pid,)
            self._note_segments(pid, *own, *PROCESS_TREES.list_pids(pid))
        if new and has_ended and not psutil.pid_exists(pid):
            # No process has the pid now. It is unlikely that another process has had it since the program ended, because
            # the kernel tries all other pids before it uses a pid again.
            self._programs[pid].segments |= {_identify(row) for row in new if row["cpid"] == pid}

    async def scan_again(self, pid: int, *, has_ended: bool) -> None:
        """Find what a program has made. Call this before its processes are killed.

        `note_segments` explains the arguments.
        """
        if (left := self._programs.get(pid)) is None:
            return
        self.note_segments(pid, has_ended=has_ended)
        self._read_events(_BACKLOG_BYTES)
        self._scan()
        own = {inode: pid for inode, owner in self._unconfirmed.items() if owner == pid}
        if own:
            left.inodes |= own.keys() - await asyncio.to_thread(_find_held, own)

    async def remove_leftovers(self, pid: int) -> None:
        """Remove what a program has made and nobody uses. Call this when its processes are gone."""
        left = self._programs.pop(pid, None)
        if left is not None and left.inodes:
            await asyncio.to_thread(_remove_files, left.inodes)
        if left is not None and left.segments:
            for row in read_ipc_table("shm"):
                if _identify(row) in left.segments and not row["nattch"]:
                    REMOVE_IPC["shm"](row["shmid"])

    def _new_segments(self, pid: int) -> list[dict[str, int]]:
        """Return the rows of the segments that a program may have made.

        The referee's user has created these segments. They are not older than the program, and not remembered yet.
        """
        if (left := self._programs.get(pid)) is None:
            return []
        return [
            row
            for row in read_ipc_table("shm")
            if row["cuid"] == os.geteuid()
            and row["ctime"] >= left.start_s - _CLOCK_ERROR_S
            and _identify(row) not in left.segments
        ]

    def _note_segments(self, pid: int, *creators: int) -> None:
        """Remember the segments that some processes of a program have created.

        Call this before the referee waits for these processes, because the segments of a process that is gone are not
        remembered. If another process has got its pid, that process is younger than the segments, and they are not
        remembered either.
        """
        for row in self._new_segments(pid):
            # the process may be gone; if this runs in another thread, the event loop may have removed the program
            with suppress(psutil.Error, KeyError):
                if row["cpid"] in creators:
                    start_s = psutil.Process(row["cpid"]).create_time()
                    if row["ctime"] >= start_s - _CLOCK_ERROR_S:
                        self._programs[pid].segments.add(_identify(row))

    def _handle_events(self) -> None:
        """Scan for the programs that have made new files. Then pause until the next scan."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._inotify)
        began_s = time.perf_counter()
        self._read_events()
        self._scan()
        pause_s = max(_PAUSE_S, _PAUSES_PER_SCAN * (time.perf_counter() - began_s))
        loop.call_later(pause_s, self._wait_for_events, loop)

    def _wait_for_events(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._created:
            self._handle_events()
        elif self._inotify >= 0:
            loop.add_reader(self._inotify, self._handle_events)

    def _read_events(self, size: int = _READ_BYTES) -> None:
        """Update `_created` by the oldest events that have come, at most `size` bytes."""
        try:
            data = os.read(self._inotify, size)
        except OSError:  # there are no events, or no watch
            return
        position = 0
        while position < len(data):
            _, mask, cookie, length = _EVENT.unpack_from(data, position)
            position += _EVENT.size + length
            self._take_event(mask, cookie, data[position - length : position].rstrip(b"\0"))
        if len(self._moved) > _MAX_FILES:
            self._moved.clear()

    def _take_event(self, mask: int, cookie: int, name: bytes) -> None:
        if mask & _OVERFLOW:  # events are lost
            self._created.clear()
            self._moved.clear()
        elif mask & _IS_FOLDER:
            pass
        elif mask & _CREATE:
            self._created[name] = _NewFile()
        elif mask & _CLOSE:
            self._created.pop(name, None)
        elif mask & _DELETE and name in self._created:
            self._created[name].is_deleted = True
        elif mask & _MOVED_FROM and name in self._created:
            self._moved[cookie] = self._created.pop(name)
        elif mask & _MOVED_TO:
            self._created.pop(name, None)
            if cookie in self._moved:
                self._created[name] = self._moved.pop(cookie)

    def _scan(self) -> None:
        """Find the programs that have new files open, and start the search for other holders."""
        if not self._created:
            return
        wanted = self._created.copy()
        found = {
            file.inode: (pid, file.name)
            for pid in self._programs
            for member in (pid, *PROCESS_TREES.list_pids(pid))
            for file in _held_files(member)
            if file.name in wanted and wanted[file.name].is_deleted is file.is_deleted
        }
        # skip files that somebody has closed or renamed during the scan, because another program may have made them
        self._read_events(_BACKLOG_BYTES)
        for inode, (pid, name) in found.items():
            if self._created.get(name) is wanted[name]:
                del self._created[name]
                if len(self._programs[pid].inodes) < _MAX_FILES:
                    self._unconfirmed[inode] = pid
        for name, file in wanted.items():
            if self._created.get(name) is file:
                file.scans_left -= 1
        self._created = {name: file for name, file in self._created.items() if file.scans_left}
        if self._unconfirmed and (self._search is None or self._search.done()):
            self._search = asyncio.get_running_loop().create_task(self._find_other_holders())

    async def _find_other_holders(self) -> None:
        """Remember each unconfirmed file that only processes of its program have open."""
        while self._unconfirmed:
            began_s = time.perf_counter()
            files = dict(self._unconfirmed)
            held = await asyncio.to_thread(_find_held, files)
            for inode, pid in files.items():
                del self._unconfirmed[inode]
                if inode not in held and pid in self._programs:
                    self._programs[pid].inodes.add(inode)
            if self._unconfirmed:
                await asyncio.sleep(_PAUSES_PER_SCAN * (time.perf_counter() - began_s))


SHARED_MEMORY = SharedMemoryWatch()
"""The watch of this process. It is shared, because all programs of the rung `none` use one `/dev/shm`."""


def _watch_folder() -> int:
    """Return an inotify descriptor for /dev/shm; -1 if there is none.

    The folder must be a tmpfs, because a tmpfs does not use inode numbers again.
    """
    mounts = Path("/proc/self/mounts")
    if not mounts.exists() or b" /dev/shm tmpfs " not in mounts.read_bytes():
        return -1
    libc = ctypes.CDLL(None)
    inotify: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    events = _CLOSE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
    if inotify >= 0 and libc.inotify_add_watch(inotify, _FOLDER, events) < 0:
        os.close(inotify)
        return -1
    return inotify


def _held_files(pid: int) -> Iterator[_HeldFile]:
    """Yield the files of /dev/shm that a process has open or mapped."""
    prefix, deleted = _FOLDER + b"/", b" (deleted)"
    with suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - names, not paths
            link = f"/proc/{pid}/fd/{number}"
            with suppress(OSError):
                path = os.readlink(os.fsencode(link))  # noqa: PTH115 - bytes
                if path.startswith(prefix):
                    name = path.removeprefix(prefix)
                    inode = os.stat(link).st_ino  # noqa: PTH116 - much faster than a path
                    yield _HeldFile(inode, name.removesuffix(deleted), name.endswith(deleted))
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_bytes().splitlines():
            if b" /dev/shm/" in line:
                fields = line.split(None, 5)
                name = fields[5].removeprefix(prefix)
                yield _HeldFile(int(fields[4]), name.removesuffix(deleted), name.endswith(deleted))


def _find_held(owners: Mapping[int, int | None]) -> set[int]:
    """Return the inodes of the files that a process outside of the file's program has open or mapped.

    `owners` contains the inode of each file to check, with the file's program. If the program is None,
    every process counts.
    """
    held: set[int] = set()
    for pid in psutil.pids():
        if found := {file.inode for file in _held_files(pid)} & owners.keys():
            program = PROCESS_TREES.find_program(pid)
            held |= {each for each in found if owners[each] is None or owners[each] != program}
    return held


def _remove_files(inodes: set[int]) -> None:
    """Remove the files with these inodes from /dev/shm, except files that a process still has open or mapped."""
    inodes = inodes - _find_held(dict.fromkeys(inodes))
    with suppress(OSError), os.scandir(_FOLDER) as entries:
        for entry in list(entries):
            with suppress(OSError):
                info = entry.stat(follow_symlinks=False)
                if (
                    info.st_ino in inodes
                    and stat.S_ISREG(info.st_mode)
                    and info.st_uid == os.geteuid()
                ):
                    os.unlink(entry.path)  # noqa: PTH108 - bytes


def _identify(segment: dict[str, int]) -> tuple[int, int]:
    """Return the id of a segment and the pid of its creator."""
    return segment["shmid"], segment["cpid"]
