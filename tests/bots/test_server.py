"""Test the gRPC server of a bot with a gRPC client or a bare socket, without a bot process."""

import asyncio
import errno
import gc
import os
import random
import socket
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
import pytest_asyncio
from sent_descriptors import assert_descriptors_are_refused_if_possible

from referee.bots import server as server_module
from referee.bots.inbox import FLOOD_QUOTA
from referee.bots.server import CONNECTIONS, OWN, BotServer, ReachableServer, UnclearSender
from referee.errors import Cause, VoidGame

METHOD = "/linko.v1.RefereeService/Play"
pytestmark = pytest.mark.asyncio(loop_scope="module")


class Stream:
    """Reads one stream as a session does, and keeps the messages."""

    def __init__(self):
        self.context = None
        self.begun = asyncio.Event()
        self.over = asyncio.Event()
        self.messages = []

    async def serve(self, context):
        self.context = context
        self.begun.set()
        try:
            while isinstance(data := await context.read(), bytes):
                self.messages.append(data)
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
def no_log_records(caplog):
    """Check that nothing is logged, not even about tasks whose exceptions nobody has retrieved."""
    yield
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == []


def path(server):
    return server.address.removeprefix("unix:")


def connect(server):
    link = socket.socket(socket.AF_UNIX)
    link.connect(path(server))
    return link


async def open_stream(channel, *messages):
    """Open a stream and send messages on it. The server notices a stream only with its first message."""
    call = channel.stream_stream(METHOD)()
    for data in messages:
        await call.write(data)
    return call


async def test_no_program_can_send_file_descriptors(server):
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(server._socket))
        assert_descriptors_are_refused_if_possible(link)


async def test_server_that_finds_no_descriptor_voids_the_game_and_is_stopped(
    stream, tmp_path, monkeypatch
):
    def lack(_address):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(server_module, "refuse_descriptors", lack)
    server = BotServer(tmp_path / "socket", stream.serve)
    with pytest.raises(VoidGame, match="Too many open files"):
        await server.start()
    await server.stop()
    assert not server._socket.exists()


async def test_server_stops_after_a_bot_has_replaced_its_socket_by_a_folder(stream, tmp_path):
    server = BotServer(tmp_path / "socket", stream.serve)
    await server.start()
    server._socket.unlink()
    server._socket.mkdir()
    await server.stop()


async def test_messages_go_both_ways(server, stream):
    async with grpc.aio.insecure_channel(server.address) as channel:
        bot = await open_stream(channel, b"one", b"two")
        await stream.begun.wait()
        await stream.context.write(b"three")
        assert await bot.read() == b"three"
        await bot.done_writing()
        await stream.over.wait()
        assert stream.messages == [b"one", b"two"]
        assert await bot.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("leave", ["cancelled", "closed", "gone"])
async def test_end_of_a_stream_ends_the_handler(server, stream, leave):
    channel = grpc.aio.insecure_channel(server.address)
    bot = await open_stream(channel, b"hello")
    await stream.begun.wait()
    if leave == "cancelled":
        bot.cancel()
    elif leave == "closed":
        await bot.done_writing()
    else:
        await channel.close()
    await stream.over.wait()
    await channel.close()


async def test_write_to_a_bot_that_is_gone_raises_the_error_of_grpc(server, stream):
    """`Session` handles only this error; any other would count as a bug of the referee."""
    channel = grpc.aio.insecure_channel(server.address)
    bot = await open_stream(channel, b"hello")
    await stream.begun.wait()
    bot.cancel()
    await stream.over.wait()
    with pytest.raises(grpc.aio.BaseError):
        await stream.context.write(b"too late")
    await channel.close()


async def test_stopped_server_ends_its_stream(server, stream):
    async with grpc.aio.insecure_channel(server.address) as channel:
        bot = await open_stream(channel, b"hello")
        await stream.begun.wait()
        await server.stop()
        await stream.over.wait()
        with suppress(grpc.RpcError, asyncio.CancelledError):
            assert await bot.read() is grpc.aio.EOF
        with pytest.raises(grpc.aio.BaseError):
            await stream.context.write(b"too late")


async def test_server_can_be_stopped_twice_with_an_open_connection(server, stream):
    link = connect(server)
    await server.stop()
    await server.stop()
    link.close()
    assert not stream.begun.is_set()


async def test_client_sees_the_status_of_a_refused_stream(tmp_path_factory):
    async def refuse(context):
        await context.abort(grpc.StatusCode.ALREADY_EXISTS, "there is one")

    server = BotServer(tmp_path_factory.mktemp("s") / "socket", refuse)
    await server.start()
    async with grpc.aio.insecure_channel(server.address) as channel:
        bot = channel.stream_stream(METHOD)()
        assert await bot.code() is grpc.StatusCode.ALREADY_EXISTS
        assert await bot.details() == "there is one"
    await server.stop()


async def test_message_above_the_limit_of_grpc_ends_the_stream(server, stream):
    async with grpc.aio.insecure_channel(server.address) as channel:
        bot = await open_stream(channel, b"hello", bytes(20_000_000))
        await stream.over.wait()
        assert stream.messages == [b"hello"]
        assert await bot.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: referee\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        random.Random(1).randbytes(1 << 16),
    ],
    ids=["nothing", "HTTP/1", "a preface only", "noise"],
)
async def test_clients_that_speak_no_grpc_do_not_disturb_a_stream(server, stream, data):
    links = [connect(server) for _ in range(20)]
    for link in links:
        with suppress(OSError):
            link.sendall(data)
    async with grpc.aio.insecure_channel(server.address) as channel:
        bot = await open_stream(channel, b"hello")
        await stream.begun.wait()
        await bot.done_writing()
        assert await bot.code() is grpc.StatusCode.OK
    assert stream.messages == [b"hello"]
    for link in links:
        link.close()


async def test_text_in_frames_of_a_bot_is_not_printed(server, capfd):
    settings = frame(4, b"")
    goaway = frame(7, bytes(7) + b"\x01" + b"\x1b]0;owned\x07")  # an error with a debug text
    link = connect(server)
    link.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + goaway + frame(6, b"read all"))
    received = b""
    while (
        b"read all" not in received
    ):  # the server sends the ping back after it has read the goaway
        data = await asyncio.to_thread(link.recv, 1 << 16)
        assert data
        received += data
    link.close()
    assert capfd.readouterr().err == ""


def frame(kind, payload):
    """Return an HTTP/2 frame on stream 0, which means the whole connection."""
    return len(payload).to_bytes(3, "big") + bytes((kind, 0, 0, 0, 0, 0)) + payload


async def test_unknown_method_is_unimplemented(server, stream):
    async with grpc.aio.insecure_channel(server.address) as channel:
        other = channel.stream_stream("/linko.v1.RefereeService/Other")()
        assert await other.code() is grpc.StatusCode.UNIMPLEMENTED
    assert not stream.begun.is_set()


async def test_stopped_server_removes_its_socket(stream, tmp_path_factory):
    folder = tmp_path_factory.mktemp("s")
    server = BotServer(folder / "socket", stream.serve)
    await server.stop()  # has no effect before the start
    await server.start()
    assert (folder / "socket").is_socket()
    await server.stop()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("char", "length"), [("x", 101), ("é", 100)])
async def test_too_long_socket_path_is_a_void_game(stream, tmp_path_factory, char, length):
    folder = tmp_path_factory.mktemp("s")
    server = BotServer(Path(f"{folder}/".ljust(length, char)), stream.serve)
    with pytest.raises(VoidGame, match=r"is longer than 100 bytes; set TMPDIR to a shorter"):
        await server.start()
    await server.stop()


async def test_length_of_the_socket_path_does_not_matter_for_tcp(stream, tmp_path):
    server = BotServer(tmp_path / ("x" * 100), stream.serve, "tcp")
    await server.start()
    await server.stop()


async def test_abandoned_socket_is_replaced(stream, tmp_path_factory):
    path = tmp_path_factory.mktemp("s") / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    server = BotServer(path, stream.serve)
    await server.start()
    connect(server).close()
    await server.stop()
    assert not path.exists()


async def test_file_at_the_socket_path_is_a_void_game_and_stays(stream, tmp_path_factory):
    path = tmp_path_factory.mktemp("s") / "socket"
    path.write_text("mine")
    with pytest.raises(VoidGame, match="cannot listen on"):
        await BotServer(path, stream.serve).start()
    assert path.read_text() == "mine"


async def test_connections_beyond_the_quota_are_closed_and_the_stream_stays(server, stream):
    async with grpc.aio.insecure_channel(server.address) as channel:
        bot = await open_stream(channel, b"hello")
        await stream.begun.wait()
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the names are not wanted
        links = [connect(server) for _ in range(300)]
        reading = [asyncio.to_thread(link.recv, 1 << 16) for link in links[CONNECTIONS:]]
        assert await asyncio.gather(*reading) == [b""] * len(reading)
        held = len(os.listdir("/proc/self/fd")) - before - len(links)  # noqa: PTH208
        assert held <= CONNECTIONS
        await bot.done_writing()
        assert await bot.code() is grpc.StatusCode.OK
    for link in links:
        link.close()


async def test_missing_folder_of_the_socket_is_a_void_game(stream, tmp_path_factory):
    server = BotServer(tmp_path_factory.mktemp("s") / "gone" / "socket", stream.serve)
    with pytest.raises(VoidGame, match="cannot listen on"):
        await server.start()
    await server.stop()


class SharedServer:
    """A server to which its bot and another program are connected; implements `ReachableServer`."""

    def __init__(self, cpu_ns=(5, 5)):
        self.charged = []
        self.cpu_ns = list(cpu_ns)
        """What the bot's CPU time is at each measurement."""

    def charge(self, program, fault, token):
        self.charged.append((program, fault.cause, token))

    def end_foreign_connections(self):
        return []

    def bot_cpu_ns(self):
        return self.cpu_ns.pop(0)


class EndedStream:
    async def send_initial_metadata(self, _metadata):
        raise asyncio.CancelledError


class OpenedStream:
    def peer(self):
        return "ipv4:127.0.0.1:7"


async def test_after_the_hello_searches_for_senders_take_a_tenth_of_the_time(monkeypatch):
    now_ns = 0

    @contextmanager
    def open_connections(_address, _expected):
        nonlocal now_ns
        now_ns += 10_000_000
        yield [SimpleNamespace(program=1, peer=("127.0.0.1", 7))]

    def count_searches(streams):
        return [server.find_sender(OpenedStream()) for _ in range(streams)].count(OWN)

    monkeypatch.setattr(server_module, "open_connections", open_connections)
    monkeypatch.setattr(server_module, "time", SimpleNamespace(monotonic_ns=lambda: now_ns))
    server = ReachableServer("127.0.0.1:50051", 1, lambda *_: None)
    assert count_searches(100) == 100
    now_ns += 60_000_000_000
    guard = asyncio.ensure_future(server.guard())
    await asyncio.sleep(0)
    guard.cancel()
    await asyncio.wait((guard,))
    assert 20 <= count_searches(1000) <= 23
    now_ns += 1_000_000_000
    assert 10 <= count_searches(1000) <= 12


@pytest.mark.parametrize(
    ("connections", "is_charged"), [(FLOOD_QUOTA, False), (FLOOD_QUOTA + 1, True)]
)
async def test_only_a_program_with_too_many_connections_to_the_server_of_another_bot_is_charged(
    monkeypatch, connections, is_charged
):
    charged = []
    ended = iter(([7] * connections, [None] * (FLOOD_QUOTA + 1)))

    def end_connections(_allowed):
        if (programs := next(ended, None)) is None:
            guard.cancel()
        return programs or []

    monkeypatch.setattr(server_module, "_GUARD_PERIOD_S", 0)
    server = ReachableServer(
        "127.0.0.1:50051", 1, lambda program, fault, _: charged.append((program, fault.cause))
    )
    monkeypatch.setattr(server, "end_foreign_connections", end_connections)
    guard = asyncio.ensure_future(server.guard())
    await asyncio.wait((guard,))
    assert set(charged) == ({(7, Cause.FLOOD)} if is_charged else set())


@pytest.mark.parametrize(
    ("cpu_ns", "charged"),
    [((5, 5), [(7, Cause.IMPERSONATION, "token")]), ((5, 6), []), ((0, 0), [])],
)
async def test_unclear_sender_is_charged_only_if_the_bot_cannot_have_closed_the_stream(
    cpu_ns, charged
):
    server = SharedServer(cpu_ns)
    sender = UnclearSender(EndedStream(), server, 7)
    assert not await sender.confirm()
    sender.charge_impersonation("token")
    assert server.charged == charged


async def test_program_that_is_only_connected_is_not_charged_for_an_unclear_hello():
    server = SharedServer()
    UnclearSender(EndedStream(), server, 7).charge_impersonation("token")
    assert server.charged == []


async def test_bot_that_closes_its_stream_before_the_check_charges_nobody():
    server = SharedServer()
    sender = UnclearSender(EndedStream(), server, 7)
    confirming = asyncio.ensure_future(sender.confirm())
    await asyncio.sleep(0)
    confirming.cancel()  # gRPC does this at the end of a stream
    assert not await confirming
    sender.charge_impersonation("token")
    assert server.charged == []


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


async def run_echo_server(folder, **environment):
    """Send messages to an echo server in a process of its own.

    Returns the lines that the process prints, and how often the threads of gRPC's pool woke up.
    """
    path = folder / "socket"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVE, path),
        env={"PATH": os.environ["PATH"], **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = b""
    while not output.endswith(b"serving\n"):
        line = await process.stdout.readline()
        assert line, output  # otherwise the process has ended
        output += line
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        bot = await open_stream(channel)
        for _ in range(MESSAGES):
            await bot.write(b"again")
            assert await bot.read() == b"again"
        await bot.done_writing()
        output += (await process.communicate())[0]
    assert process.returncode == 0, output
    *lines, wake_ups = output.decode().splitlines()
    return lines, int(wake_ups)


@pytest.mark.extended("starts more bots")
async def test_messages_do_not_pass_through_the_thread_pool_of_grpc(tmp_path_factory):
    folder = tmp_path_factory.mktemp("s")
    _, by_default = await run_echo_server(folder, GRPC_EXPERIMENTS="")
    assert by_default > MESSAGES
    lines, wake_ups = await run_echo_server(folder)
    assert wake_ups < MESSAGES / 2
    assert lines == ["serving"], "gRPC must not warn about an unknown experiment"


async def test_grpc_experiments_of_the_user_stay(tmp_path_factory):
    lines, wake_ups = await run_echo_server(
        tmp_path_factory.mktemp("s"), GRPC_EXPERIMENTS="-no_such_thing"
    )
    assert any("Unknown experiment" in line for line in lines)
    assert wake_ups > MESSAGES
