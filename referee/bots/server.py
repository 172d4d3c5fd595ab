"""Run the gRPC server of one bot, and find out who has opened a stream of the server.

The server has one method, which the bot calls to open its stream. The server listens on a UNIX socket. If the bot's
gRPC client supports only TCP, the server listens on a port of the loopback address instead. In a sandbox it still listens on a
UNIX socket, and the sandbox forwards a port to it.

In a sandbox, only the bot can reach its server. Without a sandbox, every program of the machine can reach a TCP port, and
every program of the same user can reach a UNIX socket. So a bot must prove in its hello that it knows the secret
token. `Session` also asks who has opened a stream (`Sender`), before it accepts a hello or charges a bot.
`referee.sandbox.connections` finds the program at the other end of each connection. This module compares it with the
program of the bot.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc

from referee.bots import Transport
from referee.bots.inbox import FLOOD_QUOTA
from referee.errors import Cause, Evidence, Forfeit, VoidGame
from referee.pb import play_pb2
from referee.sandbox.connections import open_connections, refuse_descriptors
from referee.sandbox.monitor import cpu_ns
from referee.sandbox.process_tree import PROCESS_TREES

SERVICE = play_pb2.DESCRIPTOR.services_by_name["RefereeService"]
GRPC_LIMIT = 1 << 24
"""The most bytes that gRPC accepts in a message. If a message is larger, gRPC closes the stream and gives no reason.

This limit is far above `inbox.MESSAGE_LIMIT`, so that the referee itself sees most messages that are too large and can
name the fault."""
CONNECTIONS = 64
"""How many connections a server has at most. A bot needs one; gRPC closes any connection beyond this number. Without
a sandbox, all programs that connect to the server share these connections."""
_SOCKET_PATH_LIMIT = 100
"""The most bytes in a socket's path; the limit of operating systems is 104 to 108 bytes."""
_NEVER_MS = (1 << 31) - 1
"""A number of milliseconds that gRPC takes for an infinite time."""
_OPTIONS = (
    ("grpc.max_receive_message_length", GRPC_LIMIT),
    ("grpc.max_concurrent_streams", 8),
    ("grpc.max_allowed_incoming_connections", CONNECTIONS),
    ("grpc.so_reuseport", 0),
    # By default gRPC closes a connection after a few pings that came too soon. But after it has read many pings at once,
    # closing the connection takes seconds of CPU time. So gRPC counts no pings, and `FloodWatch` finds the bots that send
    # too many.
    ("grpc.http2.max_ping_strikes", 0),
    # A stopped bot cannot reply to gRPC's pings and settings. By default gRPC would disconnect the bot after a minute.
    ("grpc.keepalive_time_ms", _NEVER_MS),
    ("grpc.http2.ping_timeout_ms", _NEVER_MS),
    ("grpc.http2.settings_timeout", _NEVER_MS),
)
_FOREIGN_CONNECTIONS = 8
"""How many connections other programs may have to a bot's server before the bot's hello. If they have more, all of them
are ended."""
_GUARD_PERIOD_S = 0.1
"""Seconds between two checks of the connections of a server before the bot's hello."""
_END_LIMIT_S = 1.0
"""How many seconds to wait, at most, until gRPC has closed a connection that was ended."""
_END_CHECKS = 100
"""How many times to check, within `_END_LIMIT_S`, whether gRPC has closed the connection."""

Stream = grpc.aio.ServicerContext[bytes, bytes]
Serve = Callable[[Stream], Awaitable[None]]
"""A function that uses a stream until the stream ends; `Session.serve` is one."""
_DELIVERY_S = 0.02
"""How many seconds `confirm` waits first. If the bot has already closed the stream, gRPC can report this meanwhile."""
_SEARCH_SHARE = 0.1
"""After the bot's hello, searches for the senders of further streams take at most this share of the time."""
_SEARCH_CREDIT_NS = 200_000_000
"""The most search time, in ns, that can be in reserve. The reserve grows by `_SEARCH_SHARE` of the time that passes."""
Charge = Callable[[int, Forfeit, str], None]
"""Charges a bot with a fault. Takes the pid of the bot's program, the fault, and the token that the program has used
(empty if it has used none). Does nothing if there is no such bot, or if the token is the bot's own."""


class BotServer:
    """A gRPC server for one bot.

    Args:
        socket: the path of the UNIX socket.
        serve: called with each stream that the bot or another program opens.
        transport: `unix` for the UNIX socket, `tcp` for a port of the loopback address.
    """

    def __init__(self, socket: Path, serve: Serve, transport: Transport = "unix") -> None:
        self.address = f"unix:{socket}" if transport == "unix" else "127.0.0.1:0"
        """The gRPC target. The port of a loopback address is 0 before `start`."""
        self._socket = socket
        self._serve = serve
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Start to listen. Raises `VoidGame` if the server cannot listen on its address."""
        is_unix = self.address.startswith("unix:")
        if is_unix and len(os.fsencode(self._socket)) > _SOCKET_PATH_LIMIT:
            raise VoidGame(
                f"the socket path {self._socket} is longer than {_SOCKET_PATH_LIMIT} bytes;"
                " set TMPDIR to a shorter folder"
            )
        server = grpc.aio.server(options=_OPTIONS)
        (method,) = SERVICE.methods
        handler = grpc.stream_stream_rpc_method_handler(self._play)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE.full_name, {method.name: handler}),)
        )
        try:
            port = server.add_insecure_port(self.address)
            await server.start()
            self._server = server
            if is_unix:
                refuse_descriptors(str(self._socket))
        except (RuntimeError, OSError) as error:
            raise VoidGame(f"cannot listen on {self.address}: {error}") from error
        if not is_unix:
            self.address = f"127.0.0.1:{port}"

    async def stop(self) -> None:
        """Stop the server. gRPC closes the streams, and removes the socket if the bot has not replaced it."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def _play(self, _requests: object, stream: Stream) -> None:
        await self._serve(stream)


class Sender:
    """The program that has opened a stream.

    This class stands for the bot of the server, and `Stranger` for a program that is not known to be this bot. An
    `UnclearSender` may be either; its `confirm` finds out which.
    """

    is_own = True
    """Whether the stream is known to come from the bot of the server."""

    async def confirm(self) -> bool:
        """Return whether the stream belongs to the bot of the server. Call this after a valid hello."""
        return True

    def charge_impersonation(self, token: str) -> None:
        """Charge the sender for a hello with `token`, if the sender is known to be another bot and has another token."""


OWN = Sender()


class Stranger(Sender):
    """A program that is not known to be the bot of the server.

    Args:
        program: the pid of the program; None if it is not known.
        charge: charges the bot of a program.
    """

    is_own = False

    def __init__(self, program: int | None, charge: Charge) -> None:
        self._program = program
        self._charge = charge

    async def confirm(self) -> bool:
        """See `Sender.confirm`."""
        return False

    def charge_impersonation(self, token: str) -> None:
        """See `Sender.charge_impersonation`."""
        if self._program is not None:
            detail = "the bot opened a stream with the token of another bot"
            fault = Forfeit(Cause.IMPERSONATION, Evidence(detail=detail))
            self._charge(self._program, fault, token)


class UnclearSender(Stranger):
    """Either the bot of the server or another program: both are connected to the same UNIX socket.

    gRPC does not say which connection a stream uses. So `confirm` ends the connections of all other programs. If the
    stream goes on, it is the bot's stream. If it ends, the bot may have closed it at this moment, but needs CPU time for
    that. So if the bot used no CPU time meanwhile, it was the stream of another program. Otherwise the referee cannot tell
    who opened the stream, and charges no bot.

    Args:
        stream: the stream.
        server: the server of the stream.
        program: the pid of the other program; None if it is not known, or if there are several.
    """

    def __init__(self, stream: Stream, server: ReachableServer, program: int | None) -> None:
        super().__init__(program, server.charge)
        self._stream = stream
        self._server = server
        self._is_known = False
        """Whether the stream is known to come from another program."""

    async def confirm(self) -> bool:
        """See `Sender.confirm`."""
        cpu_before_ns = 0
        try:
            # if the bot has closed the stream already, this sleep is cancelled
            await asyncio.sleep(_DELIVERY_S)
            cpu_before_ns = self._server.bot_cpu_ns()
            for _ in range(_END_CHECKS):
                if not self._server.end_foreign_connections():
                    break
                await asyncio.sleep(_END_LIMIT_S / _END_CHECKS)
            await self._stream.send_initial_metadata(())
        except (asyncio.CancelledError, grpc.aio.BaseError):  # the stream has ended
            # `cpu_before_ns` is 0 if the stream ended before the measurement, or if the bot was gone then
            self._is_known = 0 < cpu_before_ns == self._server.bot_cpu_ns()
            return False
        return True

    def charge_impersonation(self, token: str) -> None:
        """See `Sender.charge_impersonation`."""
        if self._is_known:
            super().charge_impersonation(token)


class ReachableServer:
    """A bot's server that other programs can reach too, with the connections to it.

    Args:
        address: the gRPC target of the server.
        program: the pid of the bot's program.
        charge: charges the bot of a program.
    """

    def __init__(self, address: str, program: int, charge: Charge) -> None:
        path = address.removeprefix("unix:")
        self._address = path if path != address else int(address.rpartition(":")[2])
        self._program = program
        self.charge = charge
        self._ended: Counter[int | None] = Counter()
        """How many connections `guard` has ended, by the pid of the other program; None if the pid is not known."""
        self._is_limited = False
        """Whether the time for searches is limited. `guard` sets this at its end, after the bot's hello."""
        self._credit_ns = _SEARCH_CREDIT_NS
        """The time, in ns, that searches may still take; below zero after a search that has taken longer."""
        self._credited_ns = time.monotonic_ns()
        """When time was last added to the credit, in ns of the monotonic clock."""

    def find_sender(self, stream: Stream) -> Sender:
        """Return who has just opened a stream.

        If the system does not say which program is connected, return the bot of the server; see `open_connections`.

        After the bot's hello, the time for searches is limited (`_SEARCH_SHARE`), because on some machines a search in all
        TCP connections takes 10 ms, and the event loop reads no replies meanwhile. If this time is used up, return an
        unknown sender, who is never charged.
        """
        began_ns = time.monotonic_ns()
        grown_ns = self._credit_ns + int(_SEARCH_SHARE * (began_ns - self._credited_ns))
        self._credit_ns, self._credited_ns = min(_SEARCH_CREDIT_NS, grown_ns), began_ns
        if self._is_limited and self._credit_ns <= 0:
            return Stranger(None, self.charge)
        try:
            return self._search_sender(stream)
        finally:
            self._credit_ns -= time.monotonic_ns() - began_ns

    def _search_sender(self, stream: Stream) -> Sender:
        peer = _parse_peer(stream.peer()) if isinstance(self._address, int) else None
        with open_connections(self._address, self._program) as connections:
            programs = {each.program for each in connections if each.peer == peer}
        if programs == {self._program}:
            return OWN
        others = [program for program in programs if program != self._program]
        other = others[0] if len(others) == 1 else None
        if self._program in programs:
            return UnclearSender(stream, self, other)
        return Stranger(other, self.charge)  # if there is no connection, the sender is already gone

    def bot_cpu_ns(self) -> int:
        """Return the CPU time of the bot's process tree in ns."""
        return sum(map(cpu_ns, (self._program, *PROCESS_TREES.list_pids(self._program))))

    def end_foreign_connections(self, allowed: int = 0) -> list[int | None]:
        """End all connections of other programs if there are more than `allowed`.

        Returns one value for each connection that was ended: the pid of its program, or None if that is not known.
        """
        with open_connections(self._address, self._program) as connections:
            foreign = [each for each in connections if each.program != self._program]
            if len(foreign) <= allowed:
                return []
            for connection in foreign:
                connection.end()
            return [each.program for each in foreign]

    async def guard(self) -> None:
        """Keep other programs from taking all connections of the server. Cancel this call after the bot's hello.

        Charge a bot that opens many connections to the server of another bot.
        """
        try:
            while True:
                await asyncio.sleep(_GUARD_PERIOD_S)
                self._ended.update(self.end_foreign_connections(_FOREIGN_CONNECTIONS))
                for program, count in self._ended.items():
                    if program is not None and count > FLOOD_QUOTA:
                        detail = f"the bot opened more than {FLOOD_QUOTA} connections to the server of another bot"
                        self.charge(program, Forfeit(Cause.FLOOD, Evidence(detail=detail)), "")
        finally:
            self._is_limited = True


def _parse_peer(text: str) -> tuple[str, int]:
    """Return the IPv4 address and the port in gRPC's name of a peer, such as `ipv4:127.0.0.1:50051`."""
    name, _, port = text.rpartition(":")
    return name.rpartition(":")[2].removesuffix("%5D").removesuffix("]"), int(port)
