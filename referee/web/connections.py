"""Limit the connections of browsers: how many are open, and how long one may be open without a request."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """A connection of a browser. It is closed if too many connections are open, or if no request comes in time.

    A new connection is closed at once if `limit_concurrency` connections are open, itself included. An open connection is closed
    `timeout_keep_alive` seconds after it was opened, or after the first byte of a further request, unless the request is
    complete by then. `limit_concurrency` and `timeout_keep_alive` are settings of uvicorn.

    Without this class, uvicorn keeps connections above the limit open, and replies with status 503. Its own timeout begins only after a
    response, and ends with the first byte of the next request. So connections without a complete request would take all file
    descriptors of the server.
    """

    _next_request: asyncio.TimerHandle | None = None
    """Closes the connection if a request does not come in time. None from the end of the request to the first byte after the response."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note a new connection, or close it if there are too many."""
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            # uvicorn calls `connection_lost` only later. If this connection counted until then, others would get status 503.
            self.connections.discard(self)
            transport.abort()
        else:
            self._expect_request()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        if self.cycle and not self.cycle.response_complete and not self.cycle.more_body:
            self._stop_expecting()
        elif self._next_request is None:
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._stop_expecting()

    def _expect_request(self) -> None:
        self._next_request = self.loop.call_later(self.timeout_keep_alive, self.transport.abort)

    def _stop_expecting(self) -> None:
        if self._next_request is not None:
            self._next_request.cancel()
            self._next_request = None
