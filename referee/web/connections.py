"""Limit the connections of browsers: how many are open, and how long one may be open without a request."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """A connection that is closed at once if `limit_concurrency` connections are open with it, or after `timeout_keep_alive` seconds without a request.

    Both are settings of uvicorn, which alone does less: at the limit it only replies to all requests with status 503, and its timeout
    begins after the first response. So connections without a request would take all file descriptors of the server.
    """

    _first_request: asyncio.TimerHandle | None = None
    """Closes the connection if the first request does not come."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note a new connection, or close it if there are too many."""
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
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
