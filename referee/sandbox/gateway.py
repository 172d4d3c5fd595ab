"""Serve an HTTP proxy on a UNIX socket, by which a program without a network reaches a few allowed hosts.

A sandbox with its own network namespace reaches nothing. `Access.relay` forwards one port of its loopback address to the
socket of a gateway, and the program is told to use this port as its proxy. Since no other way leads out of the sandbox,
the program reaches only what the gateway connects it to:

    program --HTTP proxy--> port in the sandbox --relay--> UNIX socket --gateway--> allowed host and port

The gateway looks up the addresses of an allowed host itself. It connects to no loopback, link-local, unspecified or
multicast address, whatever name leads there.

If the machine's operator has set a proxy (`https_proxy`, `http_proxy`), the gateway passes the name of an allowed host on
to the proxy, and the proxy looks up the address. Hosts that are not allowed are refused in this case too. The
gateway then refuses an allowed host only if it is `localhost`, a name that ends in `.localhost`, or a loopback,
link-local, unspecified or multicast address. The proxy decides where all other names lead. Hosts in `no_proxy` are
reached without the proxy.

The gateway does not read TLS, so a program can also reach other sites that the servers of an allowed host serve.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

from referee.sandbox.connections import refuse_descriptors

MAX_CONNECTIONS = 256
"""How many connections a program may have at once. Further ones are closed."""
_MAX_NAMES = 20
"""The maximum number of hosts in `Gateway.refused`, and also in `Gateway.unreachable`."""
_HEAD_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 16
_HEAD_LIMIT_S = 30.0
"""How long a program may take to send the head of a request."""
_CONNECT_LIMIT_S = 10.0
"""The time limit to look up a host and to connect to it. The reply of the operator's proxy to CONNECT has the same limit."""
_LEADS_TO_LOCAL = "leads to a loopback, link-local, unspecified or multicast address"
_HOST = re.compile(r"[a-z0-9._:-]{1,255}")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[^\r\n\0]*")
"""Matches a header on one line. If a plain request (GET or HEAD) has a header of any other form, it is refused
without a reply, because a server could read this header in another way than the gateway."""
_DROPPED_HEADERS = {
    *(b"connection", b"host", b"keep-alive", b"proxy-authorization", b"proxy-connection"),
    *(b"content-length", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
}
"""The headers that the gateway removes from a plain request. They are meant for the gateway, or the gateway sets them itself, or
they announce content."""

_BROKEN = (OSError, RuntimeError, asyncio.IncompleteReadError)
"""The errors of a connection that cannot be made or whose other end is gone. If the other end is gone, a write with uvloop
raises RuntimeError."""

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Address(NamedTuple):
    """The host and the port of a server."""

    host: str
    """The name in lower case, or an IP address."""
    port: int

    @classmethod
    def parse(cls, url: str) -> Address:
        """Return the address of a URL. Raises ValueError if it is malformed, has no host, or is neither `http` nor `https`."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{url}: not a URL with http or https")
        return cls(parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class _Request(NamedTuple):
    """The head of a request to the gateway: either CONNECT, or a plain request (GET or HEAD)."""

    method: str
    address: Address
    path: str
    """The path and the query; empty for CONNECT."""
    headers: tuple[bytes, ...]
    """The headers to pass on, without line ends; none for CONNECT."""


class _RefusedError(Exception):
    """The gateway does not connect to a host."""


class Gateway:
    """Serves one program as its HTTP proxy, until the end of `async with`.

    Args:
        path: where the UNIX socket is created.
        allowed: the addresses that the program may reach.
        proxies: the proxies of the operator, as `getproxies_environment` returns them; None to call that function. The
            gateway uses the proxies, except for the hosts in `no_proxy`. The program does not see the proxies' passwords.
    """

    def __init__(
        self, path: Path, allowed: Iterable[Address], proxies: Mapping[str, str] | None = None
    ) -> None:
        self._path = path
        self._allowed = frozenset(allowed)
        self._proxies = dict(getproxies_environment() if proxies is None else proxies)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.refused: set[str] = set()
        """The first hosts that were refused, each with its port. A host is refused if it is not allowed or is local, see `_is_local`."""
        self.unreachable: set[str] = set()
        """The first allowed hosts that could not be reached."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._accept, self._path, limit=_HEAD_BYTES)
        try:
            refuse_descriptors(str(self._path))
        except OSError:
            self._server.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None  # noqa: S101 - `__aenter__` has run
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._serve((reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, program: _Streams) -> None:
        """Serve one connection of the program to its end."""
        reader, writer = program
        try:
            async with asyncio.timeout(_HEAD_LIMIT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._forward(_parse_head(head), program)
        except (ValueError, asyncio.LimitOverrunError, *_BROKEN):
            pass  # the request is wrong or took too long, or one of the ends is gone
        finally:
            writer.close()

    async def _forward(self, request: _Request, program: _Streams) -> None:
        try:
            host = await self._reach(request)
        except _RefusedError as error:
            _note(self.refused, request.address)
            await _send_error(program[1], "403 Forbidden", str(error))
            return
        except _BROKEN as error:
            _note(self.unreachable, request.address)
            reason = f"{request.address} cannot be reached: {error}"
            await _send_error(program[1], "502 Bad Gateway", reason)
            return
        try:
            if request.method == "CONNECT":
                program[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _carry_both(program, host)
            else:
                # Pass on nothing more from the program. A second request could be for a host that is not allowed, and
                # the operator's proxy would serve it.
                await _carry(host[0], program[1])
        finally:
            host[1].close()

    async def _reach(self, request: _Request) -> _Streams:
        """Connect to the host of a request, directly or by the operator's proxy. If the request is plain, also send its head.

        Raises `_RefusedError` if the program may not reach the host, and one of `_BROKEN` if the host cannot be reached.
        """
        address = request.address
        if address not in self._allowed:
            raise _RefusedError(f"{address} is not a package registry that this machine uses")
        if _is_local(address.host):
            raise _RefusedError(f"{address} {_LEADS_TO_LOCAL}")
        scheme = "https" if request.method == "CONNECT" else "http"
        proxy = self._proxies.get(scheme)
        if proxy is None or self._is_direct(address):
            streams = await _connect(address, may_be_local=False)
            if request.method != "CONNECT":
                streams[1].write(_head(request, request.path, ""))
            return streams
        server, login = _parse_proxy(f"{scheme}_proxy", proxy)
        streams = await _connect(server, may_be_local=True)
        if request.method == "CONNECT":
            await _connect_by_proxy(streams, address, login)
        else:
            streams[1].write(_head(request, f"http://{address}{request.path}", login))
        return streams

    def _is_direct(self, address: Address) -> bool:
        """Return whether `no_proxy` names the host, alone or with its port."""
        names = (address.host, str(address))
        return any(proxy_bypass_environment(name, self._proxies) for name in names)


def _parse_head(head: bytes) -> _Request:
    """Parse the head of a request to a proxy. Raises ValueError if it is wrong."""
    first, *headers = head[:-4].split(b"\r\n")
    method, target, _ = first.decode("ascii").split(" ")
    if method == "CONNECT":
        host, _, port = target.rpartition(":")
        address = Address(host.strip("[]").lower(), int(port))
        return _Request(method, _checked(address), "", ())
    found = [_HEADER.fullmatch(each) for each in headers]
    if method not in {"GET", "HEAD"} or not all(found):
        raise ValueError("not a GET or HEAD with well-formed headers")
    address = _checked(Address.parse(target))
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [each[0] for each in found if each and each[1].lower() not in _DROPPED_HEADERS]
    return _Request(method, address, path, tuple(kept))


def _checked(address: Address) -> Address:
    """Return `address` if its host and its port are well-formed; otherwise raise ValueError."""
    if not _HOST.fullmatch(address.host) or not 0 < address.port < 1 << 16:
        raise ValueError("not the name of a host and a port")
    return address


def _note(names: set[str], address: Address) -> None:
    if len(names) < _MAX_NAMES:
        names.add(str(address))


def _head(request: _Request, target: str, login: str) -> bytes:
    """Return the head of a plain request as the gateway passes it on. It asks the host to close the connection after the reply."""
    lines = [f"{request.method} {target} HTTP/1.1", f"Host: {request.address}", "Connection: close"]
    own = [*lines, login] if login else lines
    return b"\r\n".join((*(line.encode() for line in own), *request.headers, b"", b""))


def _parse_proxy(variable: str, url: str) -> tuple[Address, str]:
    """Return the address of the operator's proxy, and the header with its password.

    Raises OSError if the URL is malformed or its scheme is not `http`. The program sees the error message, so the message
    contains nothing of the URL except the scheme.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        address = Address(parts.hostname or "", parts.port or 80)
    except ValueError:
        raise OSError(f"{variable} is not the URL of a proxy: use http://host:port") from None
    if parts.scheme != "http":
        raise OSError(
            f"{variable} names a proxy with the scheme {parts.scheme}: use a proxy with the scheme http"
        )
    return address, _login(parts.username, parts.password)


def _login(user: str | None, password: str | None) -> str:
    """Return the header with the operator's password for a proxy; empty if the URL of the proxy names no user."""
    if user is None:
        return ""
    text = f"{unquote(user)}:{unquote(password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(text.encode()).decode()}"


async def _connect_by_proxy(streams: _Streams, address: Address, login: str) -> None:
    """Ask the operator's proxy for a connection to `address`. If that fails, close `streams` and raise one of `_BROKEN`."""
    lines = [f"CONNECT {address} HTTP/1.1", f"Host: {address}", *([login] if login else []), "", ""]
    try:
        streams[1].write("\r\n".join(lines).encode())
        async with asyncio.timeout(_CONNECT_LIMIT_S):
            head = await streams[0].readuntil(b"\r\n\r\n")
        _check_reply(head)
    except BaseException as error:
        streams[1].close()
        if isinstance(error, asyncio.LimitOverrunError):
            raise OSError("the reply of the proxy is too long") from None
        raise


def _check_reply(head: bytes) -> None:
    """Raise OSError unless the operator's proxy has made a connection."""
    status = head.split(b"\r\n")[0].split(b" ")
    if len(status) < 2 or status[1] != b"200":  # noqa: PLR2004 - a status line has a code
        raise OSError(f"the proxy says {b' '.join(status).decode('latin-1')}")


async def _connect(address: Address, *, may_be_local: bool) -> _Streams:
    """Connect to one of the addresses of a host.

    Raises `_RefusedError` if `may_be_local` is False and all addresses of the host are local. Raises OSError, which may be a
    TimeoutError, if no connection is made.
    """
    async with asyncio.timeout(_CONNECT_LIMIT_S):
        found = await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
        numbers = dict.fromkeys(str(each[4][0]) for each in found)
        reachable = [each for each in numbers if may_be_local or not _is_local(each)]
        if not reachable:
            raise _RefusedError(f"{address} {_LEADS_TO_LOCAL}")
        failure: OSError | None = None
        for number in reachable:
            try:
                return await asyncio.open_connection(number, address.port, limit=_HEAD_BYTES)
            except OSError as error:
                failure = error
        raise failure or OSError("no address")


def _is_local(host: str) -> bool:
    """Return whether a host is `localhost`, a name below it, or a loopback, link-local, unspecified or multicast address.

    No name is looked up. Addresses of private networks do not count as local, because a registry may have one.
    """
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


async def _send_error(program: asyncio.StreamWriter, status: str, reason: str) -> None:
    body = f"{reason}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    program.write(head.encode() + body)
    await program.drain()


async def _carry_both(program: _Streams, host: _Streams) -> None:
    """Copy in both directions until both have ended. If one direction fails, the other one ends at once."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_carry(program[0], host[1]))
            group.create_task(_carry(host[0], program[1]))
    except* _BROKEN:
        pass


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy what arrives until the source ends. Raises one of `_BROKEN` if the source or the target is gone."""
    while data := await source.read(_CHUNK_BYTES):
        if target.is_closing():
            raise ConnectionResetError("the target is gone")
        target.write(data)
        await target.drain()
    if target.can_write_eof() and not target.is_closing():
        target.write_eof()
