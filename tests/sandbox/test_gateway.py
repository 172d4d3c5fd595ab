"""Test that a program reaches only allowed hosts by its gateway, never this machine, and not even by tricks."""

import asyncio
import errno
import gc
import os
import socket
import struct
from contextlib import asynccontextmanager, suppress

import pytest
import uvloop
from sent_descriptors import assert_descriptors_are_refused_if_possible

from referee.sandbox import gateway
from referee.sandbox.gateway import Address, Gateway

REGISTRY = Address("registry.example", 443)
PLAIN = Address("plain.example", 8080)
END = b"\r\n\r\n"


@asynccontextmanager
async def proxy_server(reply):
    """Serve a proxy of the operator that gives `reply`, and yield its port, what it was asked, and when it was left."""
    asked = []
    left = asyncio.Event()

    async def serve(reader, writer):
        asked.append(await reader.readuntil(END))
        writer.write(reply)
        with suppress(ConnectionResetError):
            await reader.read()
        left.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], asked, left


@asynccontextmanager
async def echo_server():
    """Serve a server that returns the first bytes that it gets, and yield its address."""
    heads = []

    async def serve(reader, writer):
        data = await reader.read(1000)
        heads.append(data)
        writer.write(data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1]), heads


async def ask(path, request):
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(request)
    reply = await reader.readuntil(END)
    return reply, reader, writer


def connect_to(monkeypatch, address):
    """Let each name lead to `address`, as if it were no address of this machine."""
    connect = gateway._connect

    async def connect_there(_, *, may_be_local):  # noqa: ARG001
        return await connect(address, may_be_local=True)

    monkeypatch.setattr(gateway, "_connect", connect_there)


async def test_allowed_host_is_reached(tmp_path, monkeypatch):
    async with (
        echo_server() as (address, _),
        Gateway(tmp_path / "socket", {REGISTRY}, proxies={}) as served,
    ):
        connect_to(monkeypatch, address)
        reply, reader, writer = await ask(
            tmp_path / "socket", b"CONNECT Registry.example:443 HTTP/1.1" + END
        )
        assert reply.startswith(b"HTTP/1.1 200 ")
        writer.write(b"hello")
        assert await reader.read() == b"hello"
        writer.close()
        assert (served.refused, served.unreachable) == (set(), set())


async def test_gateway_takes_no_file_descriptors(tmp_path):
    """Closing one can take as long as the program has chosen."""
    async with Gateway(tmp_path / "socket", {REGISTRY}, proxies={}):
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(tmp_path / "socket"))
            assert_descriptors_are_refused_if_possible(link)


async def test_gateway_that_finds_no_descriptor_does_not_stay_open(tmp_path, monkeypatch):
    def lack(_address):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(gateway, "refuse_descriptors", lack)
    with pytest.raises(OSError, match="Too many open files"):
        async with Gateway(tmp_path / "socket", {REGISTRY}, proxies={}):
            pass
    with socket.socket(socket.AF_UNIX) as link, pytest.raises(OSError):  # noqa: PT011 - the kinds differ
        link.connect(str(tmp_path / "socket"))


async def test_plain_request_gets_a_new_head_without_headers_for_proxies(tmp_path, monkeypatch):
    async with (
        echo_server() as (address, heads),
        Gateway(tmp_path / "socket", {PLAIN}, proxies={}),
    ):
        connect_to(monkeypatch, address)
        request = b"GET http://plain.example:8080/a?b HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: x\r\nAccept: c"
        _, _, writer = await ask(tmp_path / "socket", request + END)
        writer.close()
        assert heads == [
            b"GET /a?b HTTP/1.1\r\nHost: plain.example:8080\r\nConnection: close\r\nAccept: c" + END
        ]


@pytest.mark.parametrize(
    "request_line",
    [
        b"CONNECT evil.example:443 HTTP/1.1",
        b"CONNECT registry.example:22 HTTP/1.1",
        b"CONNECT 127.0.0.1:443 HTTP/1.1",
        b"CONNECT [::1]:443 HTTP/1.1",
        b"GET http://registry.example:443.evil.example/ HTTP/1.1",
        b"GET http://evil.example/ HTTP/1.1",
        b"GET http://plain.example:8080@evil.example/ HTTP/1.1",
    ],
)
async def test_other_host_or_port_is_refused_and_named(tmp_path, request_line):
    async with Gateway(tmp_path / "socket", {REGISTRY, PLAIN}, proxies={}) as served:
        reader, writer = await asyncio.open_unix_connection(tmp_path / "socket")
        writer.write(request_line + END)
        reply = await reader.read()
        writer.close()
    assert reply.startswith(b"HTTP/1.1 403 ") == bool(served.refused)
    assert not served.unreachable
    assert b" 200 " not in reply


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "x.localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"),
        *("0.0.0.0", "169.254.169.254", "fe80::1", "224.0.0.1"),  # noqa: S104
    ],
)
async def test_this_machine_is_never_reached_even_if_a_setting_names_it(tmp_path, host):
    async with Gateway(tmp_path / "socket", {Address(host, 443)}, proxies={}) as served:
        reply, _, writer = await ask(
            tmp_path / "socket", f"CONNECT {host}:443 HTTP/1.1".encode() + END
        )
        writer.close()
    assert reply.startswith(b"HTTP/1.1 403 ")
    assert len(served.refused) == 1


async def test_name_that_leads_to_this_machine_is_refused(tmp_path, monkeypatch):
    async with echo_server() as (address, heads):
        allowed = Address("registry.example", address.port)
        loop = asyncio.get_running_loop()

        async def resolve(*_, **__):
            return [(2, 1, 6, "", tuple(address))]

        monkeypatch.setattr(loop, "getaddrinfo", resolve, raising=False)
        async with Gateway(tmp_path / "socket", {allowed}, proxies={}) as served:
            request = f"CONNECT {allowed} HTTP/1.1".encode() + END
            reply, _, writer = await ask(tmp_path / "socket", request)
            writer.close()
        assert reply.startswith(b"HTTP/1.1 403 ")
        assert served.refused == {str(allowed)}
        assert heads == []


async def test_host_that_cannot_be_reached_is_named(tmp_path, monkeypatch):
    async def fail(*_, **__):
        raise OSError("Name or service not known")

    monkeypatch.setattr(gateway, "_connect", fail)
    async with Gateway(tmp_path / "socket", {REGISTRY}, proxies={}) as served:
        request = b"CONNECT registry.example:443 HTTP/1.1" + END
        reply, _, writer = await ask(tmp_path / "socket", request)
        writer.close()
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert served.unreachable == {"registry.example:443"}


async def test_proxy_of_the_operator_gets_its_password_from_the_gateway(tmp_path):
    asked = []

    async def serve(reader, writer):
        asked.append(await reader.readuntil(END))
        writer.write(b"HTTP/1.1 200 OK" + END + b"hello")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        proxies = {"https": f"http://ann:s%40fe@127.0.0.1:{port}"}
        async with Gateway(tmp_path / "socket", {REGISTRY}, proxies=proxies):
            request = b"CONNECT registry.example:443 HTTP/1.1" + END
            reply, reader, writer = await ask(tmp_path / "socket", request)
            assert reply.startswith(b"HTTP/1.1 200 ")
            assert await reader.read() == b"hello"
            writer.close()
    assert b"Proxy-Authorization: Basic YW5uOnNAZmU=" in asked[0]


@pytest.mark.parametrize(
    ("no_proxy", "is_direct"),
    [
        ("registry.example", True),
        (".example", True),
        ("other.example, registry.example:443", True),
        ("*", True),
        ("other.example", False),
        ("registry", False),
    ],
)
@pytest.mark.parametrize(
    "line", ["CONNECT registry.example:443", "GET http://registry.example:443/"]
)
async def test_host_of_no_proxy_is_reached_without_the_proxy(
    tmp_path, monkeypatch, no_proxy, is_direct, line
):
    reached = []

    async def connect(address, *, may_be_local):
        reached.append((str(address), may_be_local))
        raise OSError("noted")

    monkeypatch.setattr(gateway, "_connect", connect)
    proxy = "http://proxy.example:3128"
    proxies = {"http": proxy, "https": proxy, "no": no_proxy}
    async with Gateway(tmp_path / "socket", {REGISTRY}, proxies=proxies):
        _, _, writer = await ask(tmp_path / "socket", f"{line} HTTP/1.1".encode() + END)
        writer.close()
    assert reached == [
        ("registry.example:443", False) if is_direct else ("proxy.example:3128", True)
    ]


@pytest.mark.parametrize(
    "request_head",
    [
        b"nonsense",
        b"POST http://plain.example:8080/ HTTP/1.1",
        b"GET http://plain.example:8080/ HTTP/1.1\r\na: b\nConnection: keep-alive",
        b"GET /etc/passwd HTTP/1.1",
        b"GET http://plain.example:8080/ HTTP/1.1\r\na: b\r\n c: d",
        b"GET http://plain.example:8080/ HTTP/1.1\r\nno header",
        b"GET http://plain.example:8080/ HTTP/1.1\r\nContent-Length : 5",
        b"CONNECT registry.example:x HTTP/1.1",
        b"CONNECT registry.example:65536 HTTP/1.1",
        b"CONNECT evil/example:443 HTTP/1.1",
        b"CONNECT " + b"a" * 256 + b":443 HTTP/1.1",
        b"GET http://" + b"a" * 256 + b"/ HTTP/1.1",
        b"a" * 100_000,
    ],
)
async def test_wrong_request_is_closed_without_a_connection(tmp_path, request_head):
    async with Gateway(tmp_path / "socket", {PLAIN, REGISTRY}, proxies={}) as served:
        reader, writer = await asyncio.open_unix_connection(tmp_path / "socket")
        writer.write(request_head + END)
        assert await reader.read() == b""
        writer.close()
        assert (served.refused, served.unreachable) == (set(), set())


async def test_headers_that_announce_content_are_dropped_in_any_spelling(tmp_path, monkeypatch):
    dropped = (
        "content-LENGTH: 5",
        "Transfer-encoding: chunked",
        "TE: trailers",
        "Trailer: a",
        "upgrade: b",
        "PROXY-AUTHORIZATION: c",
    )
    async with (
        echo_server() as (address, heads),
        Gateway(tmp_path / "socket", {PLAIN}, proxies={}),
    ):
        connect_to(monkeypatch, address)
        lines = "\r\n".join(["GET http://plain.example:8080/ HTTP/1.1", *dropped, "Accept: d"])
        _, _, writer = await ask(tmp_path / "socket", lines.encode() + END)
        writer.close()
    assert heads == [
        b"GET / HTTP/1.1\r\nHost: plain.example:8080\r\nConnection: close\r\nAccept: d" + END
    ]


async def test_only_the_first_hosts_are_named(tmp_path):
    async with Gateway(tmp_path / "socket", {REGISTRY}, proxies={}) as served:
        for number in range(30):
            request = f"CONNECT host{number}.example:443 HTTP/1.1".encode() + END
            _, _, writer = await ask(tmp_path / "socket", request)
            writer.close()
    assert served.refused == {f"host{number}.example:443" for number in range(20)}


async def test_connection_above_the_limit_is_closed_until_another_one_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(gateway, "MAX_CONNECTIONS", 1)
    request = b"CONNECT evil.example:443 HTTP/1.1" + END
    async with Gateway(tmp_path / "socket", {REGISTRY}, proxies={}):
        first, first_writer = await asyncio.open_unix_connection(tmp_path / "socket")
        second, second_writer = await asyncio.open_unix_connection(tmp_path / "socket")
        async with asyncio.timeout(5):
            assert await second.read() == b""
        second_writer.close()
        first_writer.write(request)
        assert b" 403 " in await first.read()
        first_writer.close()
        reply, _, writer = await ask(tmp_path / "socket", request)
        assert b" 403 " in reply
        writer.close()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_reset_by_the_host_ends_both_directions(tmp_path, monkeypatch, new_loop):
    async def reset(reader, writer):
        await reader.read(1)
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    async def run():
        server = await asyncio.start_server(reset, "127.0.0.1", 0)
        async with server, Gateway(tmp_path / "socket", {REGISTRY}, proxies={}) as served:
            connect_to(monkeypatch, Address(*server.sockets[0].getsockname()))
            request = b"CONNECT registry.example:443 HTTP/1.1" + END
            _, reader, writer = await ask(tmp_path / "socket", request)
            writer.write(b"x")
            async with asyncio.timeout(5):
                assert await reader.read() == b""
                await asyncio.gather(*served._tasks)
            writer.close()
            await writer.wait_closed()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


def test_program_that_leaves_before_the_reply_causes_no_error(tmp_path, monkeypatch):
    writers = []
    errors = []
    accept = Gateway._accept

    def note_and_accept(self, reader, writer):
        writers.append(writer)
        accept(self, reader, writer)

    async def lose_program(*_, **__):
        writers[0].transport.abort()
        raise OSError("no route")

    monkeypatch.setattr(Gateway, "_accept", note_and_accept)
    monkeypatch.setattr(gateway, "_connect", lose_program)

    async def run():
        asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
        async with Gateway(tmp_path / "socket", {REGISTRY}, proxies={}) as served:
            reader, writer = await asyncio.open_unix_connection(tmp_path / "socket")
            writer.write(b"CONNECT registry.example:443 HTTP/1.1" + END)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
        assert served.unreachable == {str(REGISTRY)}

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
        gc.collect()
    assert errors == []


@pytest.mark.parametrize(
    ("proxy", "reason"),
    [
        ("https://ann:secret@127.0.0.1:{port}", b"the scheme https"),
        ("socks5://ann:secret@127.0.0.1:{port}", b"the scheme socks5"),
        ("http://ann:secret@127.0.0.1:{port}x", b"https_proxy is not the URL of a proxy"),
        ("http://ann:secret/@127.0.0.1:{port}", b"https_proxy is not the URL of a proxy"),
    ],
)
async def test_proxy_that_is_not_supported_is_not_connected_to(tmp_path, proxy, reason):
    async with proxy_server(b"HTTP/1.1 200 OK" + END) as (port, asked, _):
        proxies = {"https": proxy.format(port=port)}
        async with Gateway(tmp_path / "socket", {REGISTRY}, proxies=proxies) as served:
            reader, writer = await asyncio.open_unix_connection(tmp_path / "socket")
            writer.write(b"CONNECT registry.example:443 HTTP/1.1" + END)
            async with asyncio.timeout(5):
                reply = await reader.read()
            writer.close()
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert reason in reply
    assert b"secret" not in reply
    assert (served.unreachable, asked) == ({str(REGISTRY)}, [])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required" + END, b"the proxy says HTTP/1.1 407"),
        (b"a" * 200_000 + END, b"the reply of the proxy is too long"),
    ],
)
async def test_proxy_that_makes_no_connection_is_left(tmp_path, answer, reason):
    async with proxy_server(answer) as (port, _, left):
        proxies = {"https": f"http://127.0.0.1:{port}"}
        async with Gateway(tmp_path / "socket", {REGISTRY}, proxies=proxies) as served:
            reader, writer = await asyncio.open_unix_connection(tmp_path / "socket")
            writer.write(b"CONNECT registry.example:443 HTTP/1.1" + END)
            async with asyncio.timeout(5):
                reply = await reader.read()
                await left.wait()
            writer.close()
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert reason in reply
    assert served.unreachable == {str(REGISTRY)}


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        (
            b"CONNECT [2001:DB8::1]:443 HTTP/1.1",
            b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443",
        ),
        (
            b"GET http://[2001:db8::1]:443/a HTTP/1.1",
            b"GET http://[2001:db8::1]:443/a HTTP/1.1\r\nHost: [2001:db8::1]:443",
        ),
    ],
)
async def test_ipv6_address_is_passed_on_with_brackets(tmp_path, request_line, expected):
    async with proxy_server(b"HTTP/1.1 200 OK" + END) as (port, asked, _):
        proxies = dict.fromkeys(("http", "https"), f"http://127.0.0.1:{port}")
        async with Gateway(tmp_path / "socket", {Address("2001:db8::1", 443)}, proxies=proxies):
            _, _, writer = await ask(tmp_path / "socket", request_line + END)
            writer.close()
    assert asked[0].startswith(expected + b"\r\n")
