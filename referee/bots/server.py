"""The referee's end of one bot's socket: a gRPC server with one method and room for one stream.

The socket is a UNIX one unless the bot's client knows only TCP; then it is a port of the loopback address,
which whoever is on the machine may knock at: the token in the hello says who may come in.
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
"""Bytes of a message from a bot; larger ones forfeit."""
_GRPC_LIMIT = 1 << 24
"""Beyond this gRPC itself breaks the stream, and nobody can say why any more."""
CONNECTIONS = 64
"""How many sockets a bot may hold, of which it needs one. gRPC closes what is more."""
_SOCKET_PATH_LIMIT = 100
_OPTIONS = (
    ("grpc.max_receive_message_length", _GRPC_LIMIT),
    ("grpc.max_concurrent_streams", 8),
    ("grpc.max_allowed_incoming_connections", CONNECTIONS),
    ("grpc.so_reuseport", 0),
)

Stream = grpc.aio.ServicerContext[bytes, bytes]
Serve = Callable[[Stream], Awaitable[None]]
"""Holds a bot's stream to its end."""


class BotServer:
    """Serves one bot.

    Args:
        socket: the path of its UNIX socket.
        serve: holds its stream.
        transport: what the bot connects to.
    """

    def __init__(self, socket: Path, serve: Serve, transport: Transport = "unix") -> None:
        self.address = f"unix:{socket}" if transport == "unix" else "127.0.0.1:0"
        """A gRPC target; the port of a loopback address is known after `start`."""
        self._socket = socket
        self._serve = serve
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Listen. Raises VoidGame when that is not possible."""
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
        """Close the socket and the stream, and remove the socket."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None
        self._socket.unlink(missing_ok=True)

    async def _play(self, _requests: object, stream: Stream) -> None:
        await self._serve(stream)
