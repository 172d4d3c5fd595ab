"""Let a program without a network reach a few named hosts: an HTTP proxy on a UNIX socket.

A sandbox with its own network namespace reaches nothing. `Access.relay` forwards one port of its loopback address to the
socket of a gateway, and the program is told to use this port as its proxy. Since no other way leads out of the sandbox,
the program reaches only what the gateway connects it to:

    program --HTTP proxy--> port in the sandbox --relay--> UNIX socket --gateway--> allowed host and port

The gateway finds the addresses of a host itself and connects to no loopback or link-local address, whatever name leads
there. It does not read what is sent by TLS, so a program can reach all sites that one allowed host serves.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

MAX_CONNECTIONS = 256
"""How many connections a program may have at once. Further ones wait."""
_HEAD_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 16
_HEAD_LIMIT_S = 30.0
"""How long a program may take to send the head of a request."""
_CONNECT_LIMIT_S = 10.0
"""How long a host may take to accept a connection."""
_HOP_HEADERS = {"connection", "host", "keep-alive", "proxy-authorization", "proxy-connection"}
"""The headers of a plain request that are for the gateway, or that the gateway sets itself."""

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Address(NamedTuple):
    """The host and the port of a server."""

    host: str
    """The name in lower case, or an IP address."""
    port: int

    @classmethod
    def parse(cls, url: str) -> Address:
        """Return the address of a URL with the scheme `http` or `https`. Raises ValueError if it has no host."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{url}: not a URL with http or https")
        return cls(parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class _Request(NamedTuple):
    """The head of a request to the gateway."""

    method: str
    address: Address
    path: str
    """The path and the query; empty for CONNECT."""
    headers: tuple[bytes, ...]
    """The headers to pass on, without line ends; none for CONNECT."""


class _RefusedError(Exception):
    """The gateway does not connect to a host."""


class Gateway:
    """Serves one program as its HTTP proxy; an asynchronous context manager.

    Args:
        path: where the UNIX socket is created.
        allowed: the addresses that the program may reach.
        proxies: the proxies of the operator, as `getproxies_environment` returns them. The gateway uses them, and the
            program does not see their passwords.
    """

    def __init__(
        self, path: Path, allowed: Iterable[Address], proxies: Mapping[str, str] | None = None
    ) -> None:
        self._path = path
        self._allowed = frozenset(allowed)
        self._proxies = dict(getproxies_environment() if proxies is None else proxies)
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.refused: set[str] = set()
        """The hosts, each with its port, that the program wanted to reach and that are not allowed."""
        self.unreachable: set[str] = set()
        """The allowed hosts that could not be reached."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._accept, self._path, limit=_HEAD_BYTES)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None  # noqa: S101 - `__aenter__` has run
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve((reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, program: _Streams) -> None:
        """Serve one connection of the program to its end."""
        reader, writer = program
        try:
            async with self._slots:
                with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
                    async with asyncio.timeout(_HEAD_LIMIT_S):
                        head = await reader.readuntil(b"\r\n\r\n")
                    await self._forward(_parse_head(head), program)
        except asyncio.LimitOverrunError:
            pass  # the head is too long: the connection is closed
        finally:
            writer.close()

    async def _forward(self, request: _Request, program: _Streams) -> None:
        try:
            host = await self._reach(request)
        except _RefusedError as error:
            self.refused.add(str(request.address))
            program[1].write(_error("403 Forbidden", str(error)))
            await program[1].drain()
            return
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self.unreachable.add(str(request.address))
            reason = f"{request.address} cannot be reached: {error}"
            program[1].write(_error("502 Bad Gateway", reason))
            await program[1].drain()
            return
        try:
            if request.method == "CONNECT":
                program[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await asyncio.gather(_carry(program[0], host[1]), _carry(host[0], program[1]))
            else:  # a second request on the connection could be for another host of a proxy
                await _carry(host[0], program[1])
        finally:
            host[1].close()

    async def _reach(self, request: _Request) -> _Streams:
        """Connect to the host of a request, perhaps by a proxy, and send the head of a plain request.

        Raises `_RefusedError` if the program may not reach the host, and OSError, TimeoutError or IncompleteReadError if
        the host cannot be reached.
        """
        address = request.address
        if address not in self._allowed:
            raise _RefusedError(f"{address} is not a package registry that this machine uses")
        if _is_local(address.host):
            raise _RefusedError(f"{address} is this machine itself")
        scheme = "https" if request.method == "CONNECT" else "http"
        proxy = self._proxies.get(scheme)
        if proxy is None or proxy_bypass_environment(address.host, self._proxies):
            streams = await _connect(address, may_be_local=False)
            if request.method != "CONNECT":
                streams[1].write(_head(request, request.path, ""))
            return streams
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        login = _login(parts.username, parts.password)
        streams = await _connect(Address(parts.hostname or "", parts.port or 80), may_be_local=True)
        if request.method == "CONNECT":
            await _connect_by_proxy(streams, address, login)
        else:
            streams[1].write(_head(request, f"http://{address}{request.path}", login))
        return streams


def _parse_head(head: bytes) -> _Request:
    """Parse the head of a request to a proxy. Raises ValueError if it is wrong."""
    first, *headers = head[:-4].split(b"\r\n")
    method, target, _ = first.decode("ascii").split(" ")
    if method == "CONNECT":
        host, _, port = target.rpartition(":")
        return _Request(method, Address(host.strip("[]").lower(), int(port)), "", ())
    if method not in {"GET", "HEAD"} or any(b"\n" in each or b"\r" in each for each in headers):
        raise ValueError("not a request without content")
    address = Address.parse(target)
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [
        each
        for each in headers
        if each.partition(b":")[0].decode("latin-1").lower() not in _HOP_HEADERS
    ]
    return _Request(method, address, path, tuple(kept))


def _head(request: _Request, target: str, login: str) -> bytes:
    """Return the head of a plain request as the gateway passes it on. The host closes the connection after its reply."""
    lines = [f"{request.method} {target} HTTP/1.1", f"Host: {request.address}", "Connection: close"]
    own = [*lines, login] if login else lines
    return b"\r\n".join((*(line.encode() for line in own), *request.headers, b"", b""))


def _login(user: str | None, password: str | None) -> str:
    """Return the header with the operator's password for a proxy; empty if the proxy needs none."""
    if user is None:
        return ""
    text = f"{unquote(user)}:{unquote(password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(text.encode()).decode()}"


async def _connect_by_proxy(streams: _Streams, address: Address, login: str) -> None:
    """Ask the operator's proxy for a connection. Raises OSError or IncompleteReadError if the proxy refuses it."""
    lines = [f"CONNECT {address} HTTP/1.1", f"Host: {address}", *([login] if login else []), "", ""]
    streams[1].write("\r\n".join(lines).encode())
    async with asyncio.timeout(_CONNECT_LIMIT_S):
        head = await streams[0].readuntil(b"\r\n\r\n")
    status = head.split(b"\r\n")[0].split(b" ")
    if len(status) < 2 or status[1] != b"200":  # noqa: PLR2004 - a status line has a code
        raise OSError(f"the proxy says {b' '.join(status).decode('latin-1')}")


async def _connect(address: Address, *, may_be_local: bool) -> _Streams:
    """Connect to one of the addresses of a host.

    Raises `_RefusedError` if all are addresses of this machine and `may_be_local` is False; OSError or TimeoutError if
    no connection is made.
    """
    async with asyncio.timeout(_CONNECT_LIMIT_S):
        found = await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
        numbers = dict.fromkeys(str(each[4][0]) for each in found)
        reachable = [each for each in numbers if may_be_local or not _is_local(each)]
        if not reachable:
            raise _RefusedError(f"{address} is this machine itself")
        failure: OSError | None = None
        for number in reachable:
            try:
                return await asyncio.open_connection(number, address.port, limit=_HEAD_BYTES)
            except OSError as error:
                failure = error
        raise failure or OSError("no address")


def _is_local(host: str) -> bool:
    """Return whether a host is this machine, or an address that only this link has, by its name or its number."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        number = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if isinstance(number, ipaddress.IPv6Address):
        number = number.ipv4_mapped or number
    return (
        number.is_loopback or number.is_link_local or number.is_unspecified or number.is_multicast
    )


def _error(status: str, reason: str) -> bytes:
    body = f"{reason}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy what arrives until one of the ends is closed."""
    with suppress(OSError):
        while data := await source.read(_CHUNK_BYTES):
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
