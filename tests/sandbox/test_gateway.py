"""Test that a program reaches only allowed hosts by its gateway, never this machine, and not even by tricks."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from referee.sandbox import gateway
from referee.sandbox.gateway import Address, Gateway

REGISTRY = Address("registry.example", 443)
PLAIN = Address("plain.example", 8080)
END = b"\r\n\r\n"


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
    "request_head",
    [
        b"nonsense",
        b"POST http://plain.example:8080/ HTTP/1.1",
        b"GET http://plain.example:8080/ HTTP/1.1\r\na: b\nConnection: keep-alive",
        b"GET /etc/passwd HTTP/1.1",
        b"CONNECT registry.example:x HTTP/1.1",
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
