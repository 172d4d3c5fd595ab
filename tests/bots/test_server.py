"""The socket of a bot, with a client of gRPC or a bare socket at its other end. No processes."""

import asyncio
import gc
import os
import random
import socket
import sys
from contextlib import suppress

import grpc
import pytest
import pytest_asyncio

from referee.bots.server import CONNECTIONS as QUOTA
from referee.bots.server import BotServer
from referee.errors import VoidGame

METHOD = "/linko.v1.RefereeService/Play"
pytestmark = pytest.mark.asyncio(loop_scope="module")


class Stream:
    """Holds one stream as a session does, and keeps what it reads."""

    def __init__(self):
        self.context = None
        self.begun = asyncio.Event()
        self.over = asyncio.Event()
        self.heard = []

    async def serve(self, context):
        self.context = context
        self.begun.set()
        try:
            while isinstance(data := await context.read(), bytes):
                self.heard.append(data)
        finally:
            self.over.set()


@pytest.fixture
def stream():
    return Stream()


@pytest_asyncio.fixture(loop_scope="module")
async def server(stream, tmp_path_factory):
    server = BotServer(tmp_path_factory.mktemp("s") / "socket", stream.serve)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(autouse=True)
def nothing_to_say(caplog):
    """Whatever a bot does is no news for the log, nor for whoever collects what was not awaited."""
    yield
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == []


def path(server):
    return server.address.removeprefix("unix:")


def connect(server):
    link = socket.socket(socket.AF_UNIX)
    link.connect(path(server))
    return link


async def call(channel, *said):
    """A stream on which something has been said, so that the server knows of it."""
    call = channel.stream_stream(METHOD)()
    for data in said:
        await call.write(data)
    return call


async def test_messages_go_both_ways(server, stream):
    async with grpc.aio.insecure_channel(server.address) as channel:
        bot = await call(channel, b"one", b"two")
        await stream.begun.wait()
        await stream.context.write(b"three")
        assert await bot.read() == b"three"
        await bot.done_writing()
        await stream.over.wait()
        assert stream.heard == [b"one", b"two"]
        assert await bot.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("leave", ["cancelled", "closed", "gone"])
async def test_the_end_of_a_stream_is_noticed(server, stream, leave):
    channel = grpc.aio.insecure_channel(server.address)
    bot = await call(channel, b"hello")
    await stream.begun.wait()
    if leave == "cancelled":
        bot.cancel()
    elif leave == "closed":
        await bot.done_writing()
    else:
        await channel.close()
    await stream.over.wait()
    await channel.close()


async def test_what_is_written_to_a_bot_that_is_gone_raises_grpcs_own_error(server, stream):
    """That is what `Session` expects; anything else would end the game with a traceback."""
    channel = grpc.aio.insecure_channel(server.address)
    bot = await call(channel, b"hello")
    await stream.begun.wait()
    bot.cancel()
    await stream.over.wait()
    with pytest.raises(grpc.aio.BaseError):
        await stream.context.write(b"too late")
    await channel.close()


async def test_a_server_that_stops_ends_its_stream(server, stream):
    async with grpc.aio.insecure_channel(server.address) as channel:
        bot = await call(channel, b"hello")
        await stream.begun.wait()
        await server.stop()
        await stream.over.wait()
        with suppress(grpc.RpcError, asyncio.CancelledError):
            assert await bot.read() is grpc.aio.EOF
        with pytest.raises(grpc.aio.BaseError):
            await stream.context.write(b"too late")


async def test_a_handler_that_still_reads_at_the_stop_is_ended(server, stream):
    link = connect(server)
    await server.stop()
    await server.stop()
    link.close()
    assert not stream.begun.is_set()


async def test_a_second_stream_is_refused_by_status(tmp_path_factory):
    async def refuse(context):
        await context.abort(grpc.StatusCode.ALREADY_EXISTS, "there is one")

    server = BotServer(tmp_path_factory.mktemp("s") / "socket", refuse)
    await server.start()
    async with grpc.aio.insecure_channel(server.address) as channel:
        bot = channel.stream_stream(METHOD)()
        assert await bot.code() is grpc.StatusCode.ALREADY_EXISTS
        assert await bot.details() == "there is one"
    await server.stop()


async def test_a_message_beyond_all_limits_ends_the_stream(server, stream):
    async with grpc.aio.insecure_channel(server.address) as channel:
        bot = await call(channel, b"hello", bytes(20_000_000))
        await stream.over.wait()
        assert stream.heard == [b"hello"]
        assert await bot.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: referee\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        random.Random(1).randbytes(1 << 16),
    ],
    ids=["nothing", "HTTP/1", "a preface only", "noise"],
)
async def test_what_is_no_grpc_disturbs_nobody(server, stream, said):
    links = [connect(server) for _ in range(20)]
    for link in links:
        with suppress(OSError):
            link.sendall(said)
    async with grpc.aio.insecure_channel(server.address) as channel:
        bot = await call(channel, b"hello")
        await stream.begun.wait()
        await bot.done_writing()
        assert await bot.code() is grpc.StatusCode.OK
    assert stream.heard == [b"hello"]
    for link in links:
        link.close()


async def test_what_a_bot_says_in_frames_is_no_text_for_a_terminal(server, capfd):
    settings = frame(4, b"")
    goaway = frame(7, bytes(7) + b"\x01" + b"\x1b]0;owned\x07")  # an error, and what it is about
    link = connect(server)
    link.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + goaway + frame(6, b"read all"))
    heard = b""
    while b"read all" not in heard:  # the ping comes back
        data = await asyncio.to_thread(link.recv, 1 << 16)
        assert data
        heard += data
    link.close()
    assert capfd.readouterr().err == ""


def frame(kind, payload):
    """Of HTTP/2, for the connection as a whole."""
    return len(payload).to_bytes(3, "big") + bytes((kind, 0, 0, 0, 0, 0)) + payload


async def test_another_method_is_no_stream(server, stream):
    async with grpc.aio.insecure_channel(server.address) as channel:
        other = channel.stream_stream("/linko.v1.RefereeService/Other")()
        assert await other.code() is grpc.StatusCode.UNIMPLEMENTED
    assert not stream.begun.is_set()


async def test_nothing_is_left_of_a_server(stream, tmp_path_factory):
    folder = tmp_path_factory.mktemp("s")
    server = BotServer(folder / "socket", stream.serve)
    await server.stop()  # before it has started
    await server.start()
    assert (folder / "socket").is_socket()
    await server.stop()
    assert list(folder.iterdir()) == []


async def test_a_socket_path_that_no_system_takes_is_nobodys_fault(stream, tmp_path):
    server = BotServer(tmp_path / ("x" * 100), stream.serve)
    with pytest.raises(VoidGame, match=r"is longer than 100 characters; set TMPDIR to a shorter"):
        await server.start()
    await server.stop()


async def test_a_socket_that_somebody_has_left_is_replaced(stream, tmp_path_factory):
    path = tmp_path_factory.mktemp("s") / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    server = BotServer(path, stream.serve)
    await server.start()
    connect(server).close()
    await server.stop()
    assert not path.exists()


async def test_a_file_in_the_place_of_a_socket_is_nobodys_fault(stream, tmp_path_factory):
    path = tmp_path_factory.mktemp("s") / "socket"
    path.write_text("mine")
    with pytest.raises(VoidGame, match="cannot listen on"):
        await BotServer(path, stream.serve).start()
    assert path.read_text() == "mine"


async def test_sockets_beyond_the_quota_are_closed_and_the_stream_stays(server, stream):
    async with grpc.aio.insecure_channel(server.address) as channel:
        bot = await call(channel, b"hello")
        await stream.begun.wait()
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the names are not wanted
        links = [connect(server) for _ in range(300)]
        reading = [asyncio.to_thread(link.recv, 1 << 16) for link in links[QUOTA:]]
        assert await asyncio.gather(*reading) == [b""] * len(reading)
        held = len(os.listdir("/proc/self/fd")) - before - len(links)  # noqa: PTH208
        assert held <= QUOTA
        await bot.done_writing()
        assert await bot.code() is grpc.StatusCode.OK
    for link in links:
        link.close()


async def test_a_socket_that_cannot_be_made_is_nobodys_fault(stream, tmp_path_factory):
    server = BotServer(tmp_path_factory.mktemp("s") / "gone" / "socket", stream.serve)
    with pytest.raises(VoidGame, match="cannot listen on"):
        await server.start()
    await server.stop()


SERVE = """
import asyncio, os, re, sys
from pathlib import Path
from referee import configure_process

configure_process()
from referee.bots.server import BotServer

over = asyncio.Event()

async def serve(stream):
    while isinstance(data := await stream.read(), bytes):
        await stream.write(data)
    over.set()

def switches(task):
    if not (task / "comm").read_text().startswith("event_engine"):
        return 0
    return int(re.search(r"\\nvoluntary_ctxt_switches:\\s*(\\d+)", (task / "status").read_text())[1])

async def main():
    server = BotServer(Path(sys.argv[1]), serve)
    await server.start()
    print("serving", flush=True)
    await over.wait()
    print(sum(map(switches, Path("/proc/self/task").iterdir())))
    await server.stop()

asyncio.run(main())
"""
MESSAGES = 200


async def echoed(folder, **environment):
    """What a process prints that echoes messages, the last of it how often gRPC's pool was woken."""
    path = folder / "socket"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVE, path),
        env={"PATH": os.environ["PATH"], **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = b""
    while not said.endswith(b"serving\n"):
        line = await process.stdout.readline()
        assert line, said  # it has ended
        said += line
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        bot = await call(channel)
        for _ in range(MESSAGES):
            await bot.write(b"again")
            assert await bot.read() == b"again"
        await bot.done_writing()
        said += (await process.communicate())[0]
    assert process.returncode == 0, said
    *lines, woken = said.decode().splitlines()
    return lines, int(woken)


async def test_messages_are_not_handed_through_grpcs_pool_of_threads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("s")
    _, by_default = await echoed(folder, GRPC_EXPERIMENTS="")
    assert by_default > MESSAGES
    lines, woken = await echoed(folder)
    assert woken < MESSAGES / 2
    assert lines == ["serving"], "gRPC knows what it is told"


async def test_what_a_user_has_told_grpc_stays(tmp_path_factory):
    lines, woken = await echoed(tmp_path_factory.mktemp("s"), GRPC_EXPERIMENTS="-no_such_thing")
    assert any("Unknown experiment" in line for line in lines)
    assert woken > MESSAGES
