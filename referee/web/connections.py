"""Limit the connections of browsers: how many are open, and how long one may be open without a request."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """A browser's connection, which is closed if there are too many, or if no request comes.

    It is closed at once if `limit_concurrency` connections are open, itself included, or after `timeout_keep_alive` seconds
    without a first request.
    Both are settings of uvicorn. Without this class, uvicorn keeps connections above the limit open and replies with status 503, and its
    timeout begins only after the first response. So connections without a request would take all file descriptors of the server.
    """

    _first_request: asyncio.TimerHandle | None = None
    """Closes the connection if the first request does not come."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note a new connection, or close it if there are too many."""
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            # `connection_lost` comes later; until then the others would get status 503
            self.connections.discard(self)
            transport.abort()
        else:
            self._first_request = self.loop.call_later(
                self.timeout_keep_alive, self._close_without_request
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        if self._first_request is not None:
            self._first_request.cancel()

    def _close_without_request(self) -> None:
        if not self.cycle:  # even if a part of a request has come
            self.transport.abort()
