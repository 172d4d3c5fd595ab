"""Tests what the referee removes from shared memory after bots on the rung `none`, and what it keeps."""

import asyncio
import ctypes
import os
import signal
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from isolated_games import Games, spec
from process_groups import first_line

from referee.sandbox import NO_ISOLATION, shared_memory
from referee.sandbox.shared_memory import SHARED_MEMORY, SharedMemoryWatch
from referee.sandbox.system_v import REMOVE_IPC, read_ipc_table

pytestmark = [
    pytest.mark.skipif(not Path("/dev/shm").is_mount(), reason="needs a /dev/shm"),  # noqa: S108
    pytest.mark.usefixtures("only_own_processes", "bystander"),
]
OWN_NAMES = f"left-by-{os.getpid()}-"
"""How the names of files begin that programs of these tests make; other workers of pytest have others."""
FILE = f"/dev/shm/{OWN_NAMES}file"  # noqa: S108
OTHER_FILE = f"/dev/shm/{OWN_NAMES}other"  # noqa: S108
SIZE = (1 << 20) + os.getpid()
"""The size of the segments that programs of these tests make."""


def left():
    """Return the files and segments that programs of these tests have made."""
    files = {str(path) for path in Path("/dev/shm").glob(f"{OWN_NAMES}*")}  # noqa: S108
    return files | {row["shmid"] for row in read_ipc_table("shm") if row["size"] == SIZE}


class Bystander:
    """Makes files and segments as another program of the user, and uses them no more."""

    def __init__(self):
        self.paths, self.segments = [], []

    def make(self):
        path = Path(f"/dev/shm/bystander-{os.getpid()}-{len(self.paths)}")  # noqa: S108
        path.write_bytes(bytes(1 << 20))
        self.paths.append(path)
        self.segments.append(ctypes.CDLL(None).shmget(0, 1 << 20, 0o1600))

    def remove(self):
        """Remove them, and assert that none is missing."""
        missing = [number for number in self.segments if REMOVE_IPC["shm"](number)]
        missing += [path for path in self.paths if not path.exists()]
        for path in self.paths:
            path.unlink(missing_ok=True)
        assert not missing


@pytest.fixture
def bystander():
    """Make a file and a segment before the test. They must exist after it; the programs' own are removed."""
    bystander = Bystander()
    bystander.make()
    yield bystander
    for each in left():
        with suppress(FileNotFoundError):
            REMOVE_IPC["shm"](each) if isinstance(each, int) else Path(each).unlink()
    bystander.remove()


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("leaves_shared_memory", 1),
        ("keeps_shared_memory_mapped", 1),
        ("leaves_segment", 1),
        ("leaves_shared_memory_of_daemon", 2),
    ],
)
@pytest.mark.extended("plays more misbehaving bots")
async def test_nothing_of_a_bot_remains_in_shared_memory(name, count, bystander, tmp_path_factory):
    games = Games(tmp_path_factory.mktemp("i"), NO_ISOLATION)
    async for _, record in games.each_seat(spec(name)):
        assert not record.faults
        assert len(left()) >= count
        bystander.make()
    await games.close()
    assert not left()


@pytest.fixture
def make_file(python):
    """Return a function that starts a program that makes `FILE`, and waits until it is done.

    The program closes the file only when the watch knows that the program has made it.
    """

    async def make_file(then="pass"):
        program = await python(f"""
            import os, signal, time
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            with open("{FILE}", "wb") as file:
                file.write(bytes(1 << 20))
                print("made", flush=True)
                signal.sigwait([signal.SIGUSR1])
                {then}
            print("done", flush=True)
            time.sleep(1000)
        """)
        assert await first_line(program) == "made"
        pid = program.process.pid
        inode = Path(FILE).stat().st_ino  # noqa: ASYNC240 - does not block
        async with asyncio.timeout(60):
            while inode not in SHARED_MEMORY._programs[pid].inodes:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.001)
        os.kill(pid, signal.SIGUSR1)
        assert await first_line(program) == "done"
        return program

    return make_file


async def test_closed_file_of_a_program_is_removed(make_file, bystander):
    program = await make_file()
    assert left() == {FILE}
    bystander.make()
    await program.kill()
    assert not left()


async def test_renamed_file_of_a_program_is_removed(make_file):
    program = await make_file(f'os.rename(file.name, "{OTHER_FILE}")')
    assert left() == {OTHER_FILE}
    await program.kill()
    assert not left()


async def test_file_of_a_program_that_has_ended_itself_is_removed(make_file):
    program = await make_file('print("done", flush=True); os._exit(0)')
    await program.process.wait()
    assert left() == {FILE}
    await program.kill()
    assert not left()


async def test_segment_of_a_program_that_ends_at_once_is_removed(python, bystander):
    program = await python(f"import ctypes; print(ctypes.CDLL(None).shmget(0, {SIZE}, 0o1600))")
    number = int(await first_line(program))
    await program.process.wait()
    bystander.make()
    assert left() == {number}
    await program.kill()
    assert not left()


async def test_file_made_after_thousands_of_others_is_removed(python):
    program = await python(f"""
        import os, time
        for _ in range(2_000):
            open("{OTHER_FILE}", "wb").close()
            os.unlink("{OTHER_FILE}")
        file = open("{FILE}", "wb")
        print("done", flush=True)
        time.sleep(1000)
    """)
    assert await first_line(program) == "done"
    assert left() == {FILE}
    await program.kill()
    assert not left()


async def test_file_made_after_thousands_of_long_names_is_removed(python, tmp_path):
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    other = OTHER_FILE + 200 * "x"
    program = await python(f"""
        import os, time
        for _ in range(2_000):
            open("{other}", "wb").close()
            os.unlink("{other}")
        file = open("{FILE}", "wb")
        open("{ready}", "wb").close()
        time.sleep(1000)
    """)
    # this blocks the event loop, so that no event is read before the kill
    ready.read_bytes()
    assert left() == {FILE}
    await program.kill()
    assert not left()


class Events:
    """Sends events to a watch through a pipe, as the kernel does through inotify."""

    def __init__(self, pipe):
        self.watch = SharedMemoryWatch()
        self.watch._inotify, self._pipe = pipe

    def send(self, mask, name, cookie=0):
        os.write(self._pipe, struct.pack("iIII16s", 1, mask, cookie, 16, name))


@pytest.fixture
def events():
    pipe = os.pipe2(os.O_NONBLOCK)
    yield Events(pipe)
    for end in pipe:
        os.close(end)


def test_file_is_still_new_if_its_rename_comes_in_two_reads(events):
    events.send(shared_memory._CREATE, b"old")
    events.send(shared_memory._MOVED_FROM, b"old", cookie=7)
    events.watch._read_events()
    events.send(shared_memory._CREATE, b"other")
    events.watch._read_events()
    events.send(shared_memory._MOVED_TO, b"new", cookie=7)
    events.watch._read_events()
    assert events.watch._created.keys() == {b"other", b"new"}


def test_files_that_leave_the_folder_are_forgotten_in_time(events):
    for number in range(3 * shared_memory._MAX_FILES):
        events.send(shared_memory._CREATE, b"gone")
        events.send(shared_memory._MOVED_FROM, b"gone", cookie=number)
        events.watch._read_events()
    assert not events.watch._created
    assert len(events.watch._moved) <= shared_memory._MAX_FILES


def scan_during(events, monkeypatch, happen):
    """Scan a program that has a new file open. `happen` is called during the scan."""

    def hold_while_events_come(_pid):
        happen()
        yield shared_memory._HeldFile(inode=1, name=b"file", is_deleted=False)

    monkeypatch.setattr(shared_memory.PROCESS_TREES, "list_pids", lambda _pid: [])
    monkeypatch.setattr(shared_memory, "_held_files", hold_while_events_come)
    events.watch.add(os.getpid())
    events.send(shared_memory._CREATE, b"file")
    events.watch._read_events()
    events.watch._scan()


async def test_file_that_is_closed_during_a_scan_has_no_known_creator(events, monkeypatch):
    def close():
        for _ in range(1500):
            events.send(shared_memory._CLOSE, b"other")
        events.send(shared_memory._CLOSE, b"file")

    scan_during(events, monkeypatch, close)
    assert not events.watch._unconfirmed


async def test_renamed_file_is_not_taken_for_a_new_file_with_its_old_name(events, monkeypatch):
    def rename_and_create():
        events.send(shared_memory._MOVED_FROM, b"file", cookie=7)
        events.send(shared_memory._MOVED_TO, b"other", cookie=7)
        events.send(shared_memory._CREATE, b"file")

    scan_during(events, monkeypatch, rename_and_create)
    assert not events.watch._unconfirmed
    assert events.watch._created.keys() == {b"file", b"other"}


async def test_file_that_another_process_uses_is_kept(make_file):
    program = await make_file()
    with Path(FILE).open("rb"):  # noqa: ASYNC230 - does not block
        await program.kill()
        assert left() == {FILE}


@pytest.mark.parametrize("is_closed", [True, False])
async def test_file_of_another_process_that_a_program_opens_is_kept(python, is_closed):
    program = await python(f"""
        import time
        print("started", flush=True)
        while True:
            try:
                file = open("{FILE}")
                break
            except FileNotFoundError:
                pass
        print("open", flush=True)
        time.sleep(1000)
    """)
    assert await first_line(program) == "started"
    with Path(FILE).open("wb") as file:  # noqa: ASYNC230 - does not block
        if is_closed:
            file.close()
        assert await first_line(program) == "open"
        await program.kill()
    assert left() == {FILE}
