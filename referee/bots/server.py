"""Run the gRPC server of one bot. The server has one method, which the bot calls to open its stream.

The server listens on a UNIX socket. If the bot's gRPC client supports only TCP, the server listens on a port of
the loopback address instead. Any program on the machine can connect to that port, so a bot must prove in its hello
that it knows the secret token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc

from referee.bots.manifest import Transport
from referee.errors import VoidGame
from referee.pb import play_pb2

SERVICE = play_pb2.DESCRIPTOR.services_by_name["RefereeService"]
MESSAGE_LIMIT = 1 << 16
"""The most bytes in a message of a bot. A larger message forfeits the game."""
_GRPC_LIMIT = 1 << 24
"""The most bytes that gRPC accepts in a message. If a message is larger, gRPC closes the stream and gives no reason.

This limit is far above `MESSAGE_LIMIT`, so that the referee itself sees most messages that are too large and can
name the fault."""
CONNECTIONS = 64
"""How many connections a bot may open. A bot needs one; gRPC closes any connection beyond this number."""
_SOCKET_PATH_LIMIT = 100
"""The most characters in a socket's path; the limit of operating systems is 104 to 108 bytes."""
_OPTIONS = (
    ("grpc.max_receive_message_length", _GRPC_LIMIT),
    ("grpc.max_concurrent_streams", 8),
    ("grpc.max_allowed_incoming_connections", CONNECTIONS),
    ("grpc.so_reuseport", 0),
)

Stream = grpc.aio.ServicerContext[bytes, bytes]
Serve = Callable[[Stream], Awaitable[None]]
"""A function that uses a stream until the stream ends; `Session.serve` is one."""


class BotServer:
    """A gRPC server for one bot.

    Args:
        socket: the path of the UNIX socket.
        serve: called with each stream that the bot opens.
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
        if len(str(self._socket)) > _SOCKET_PATH_LIMIT:
            raise VoidGame(
                f"the socket path {self._socket} is longer than {_SOCKET_PATH_LIMIT} characters;"
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
        except (RuntimeError, OSError) as error:
            raise VoidGame(f"cannot listen on {self.address}: {error}") from error
        if not self.address.startswith("unix:"):
            self.address = f"127.0.0.1:{port}"
        self._server = server

    async def stop(self) -> None:
        """Stop the server, which closes the stream, and remove the socket."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None
        self._socket.unlink(missing_ok=True)

    async def _play(self, _requests: object, stream: Stream) -> None:
        await self._serve(stream)
