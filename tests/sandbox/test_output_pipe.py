"""Tests the pipes of a program's outputs: what passes through them, and that no program can block the event loop."""

import asyncio
import os
import threading
import time

import psutil
import pytest
from process_groups import first_line, read_all

from referee.errors import Shortage
from referee.sandbox.output_pipe import open_output

pytestmark = pytest.mark.usefixtures("only_own_processes")
MUCH = 8 << 20


async def test_outputs_are_pipes(python):
    program = await python(
        "import os, stat; print([stat.S_ISFIFO(os.fstat(number).st_mode) for number in (1, 2)])"
    )
    assert await read_all(program) == "[True, True]\n"


async def test_long_outputs_arrive_whole(python):
    program = await python(f"""
        import sys
        for number in range({MUCH} // 8):
            print(f"{{number:7}}")
        sys.stderr.write("the end")
    """)
    read = asyncio.gather(program.process.stdout.read(), program.process.stderr.read())
    assert await program.process.wait() == 0
    output, errors = await read
    assert [int(line) for line in output.split()] == list(range(MUCH // 8))
    assert errors == b"the end"


async def test_output_that_nobody_takes_stays_in_the_pipe():
    with open_output() as (end, reader):
        written = 0

        def write():
            nonlocal written
            for _ in range(MUCH >> 16):
                written += os.write(own_end, bytes(1 << 16))
            os.close(own_end)

        own_end = os.dup(end)
    writing = threading.Thread(target=write)
    writing.start()
    await asyncio.sleep(0.3)
    assert written < 1 << 20
    assert len(await reader.read()) == MUCH
    writing.join()


async def test_output_in_small_pieces_is_read_at_most_once_in_a_millisecond():
    with open_output() as (end, reader):
        own_end = os.dup(end)
    began_s = time.monotonic()

    def write():
        while time.monotonic() < began_s + 0.3:
            os.write(own_end, b"x")
        os.close(own_end)

    writing = asyncio.ensure_future(asyncio.to_thread(write))
    pieces = 0
    while await reader.read(1 << 16):
        pieces += 1
    await writing
    assert pieces <= (time.monotonic() - began_s) * 1000


async def test_pipe_is_closed_when_its_end_is_seen(monkeypatch):
    loop = asyncio.get_running_loop()
    call = loop.call_soon_threadsafe

    def call_and_dawdle(*arguments):
        call(*arguments)
        time.sleep(0.2)

    before = psutil.Process().num_fds()
    with open_output() as (_, reader):
        monkeypatch.setattr(loop, "call_soon_threadsafe", call_and_dawdle)
    assert not await reader.read()
    assert psutil.Process().num_fds() == before


async def test_thread_ends_when_nobody_wants_the_rest_of_an_output():
    earlier, before = set(threading.enumerate()), psutil.Process().num_fds()
    with open_output() as (end, reader):
        own_end = os.dup(end)
    (thread,) = set(threading.enumerate()) - earlier
    for _ in range(4):  # the thread stops at the third chunk, because the reader has enough
        os.write(own_end, bytes(1 << 16))
        await asyncio.sleep(0.1)
    os.close(own_end)
    assert thread.is_alive()
    del reader
    await asyncio.to_thread(thread.join, 10)
    assert not thread.is_alive()
    assert psutil.Process().num_fds() == before


@pytest.mark.parametrize("call", ["os.splice(empty, 1, 4096)", "os.sendfile(1, empty, None, 4096)"])
async def test_program_that_holds_the_lock_of_its_output_blocks_no_other_task(python, call):
    """The program ends by itself after twenty seconds, so that the test fails if it blocks the event loop."""
    began_s = time.monotonic()
    program = await python(f"""
        import os, socket, threading
        threading.Timer(20, os._exit, [0]).start()
        ends = socket.socketpair()
        empty = ends[0].fileno()
        threading.Timer(1, os.write, [2, b"holds"]).start()
        os.write(1, b"first" + bytes(1))
        {call}
    """)
    assert await program.process.stderr.read(5) == b"holds"
    await asyncio.sleep(0.1)
    await program.kill()
    await program.process.stdout.read()
    assert time.monotonic() - began_s < 15


async def test_program_that_ends_at_once_has_written_its_line(launch):
    for number in range(20):
        assert await first_line(await launch("echo", str(number))) == str(number)


async def test_lack_of_threads_voids_the_game(launch, monkeypatch):
    def full(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", full)
    with pytest.raises(Shortage, match="no room for another process"):
        await launch("true")
