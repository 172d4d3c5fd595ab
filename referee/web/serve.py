"""Run the server of the pages until a signal ends it, and tell open pages when the league has changed.

`Feed` sends the changes as server-sent events. One task polls the league for all visitors, and only while there are visitors. It counts
the changes. Each visitor's stream compares the count with the count of its last event. So nothing is queued for a visitor who does not read.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from referee.errors import RefereeError, UserError
from referee.web.app import create_app
from referee.web.connections import Connection
from referee.web.hosts import KnownHosts, is_loopback, url_host
from referee.web.lobby import Lobby
from referee.web.problems import LOG, UVICORN_LOG
from referee.web.seat_pages import SEAT
from referee.web.views import LeagueViews

POLL_S = 0.5
"""Seconds between two polls of the league."""
PAUSE_S = 1.0
"""Minimum time between two events for a visitor, in seconds."""
STREAMS = 200
"""The limit of open streams."""
_PING_S = 15
"""Seconds between two comments in a stream. Browsers ignore comments, but each comment shows both sides that the connection is alive."""
_SEND_S = 20.0
"""Timeout for sending an event or a comment, in seconds. If a visitor does not read, all buffers fill up, and then the timeout ends
the stream."""
_RETRY_MS = 1_000
"""How long a browser waits before it connects again."""
_SWITCH_INTERVAL_S = 0.0001
"""How long a thread that computes ratings may keep other threads waiting, in seconds. A thread that makes a page calls numpy
thousands of times, and may have to wait after each call. With Python's default of 5 ms, the page of a tournament of 100,000
games took 15 s while ratings were computed."""
_NICE = 10
"""The server increases its nice value by this number, so that a tournament on the same machine goes first."""
_CONNECTIONS = STREAMS + 200
"""The limit of open connections. Further ones are closed at once."""
_BACKLOG = 100
"""The event loop accepts at most this number of waiting connections in one step. It closes those above the limit `_CONNECTIONS`
only after the step. With uvicorn's default of 2,048, one step could take all file descriptors."""
_IDLE_S = 10
"""How long an open connection waits for a request before it is closed, in seconds; see `Connection`."""
_GRACE_S = 1
"""When the server ends and all games have ended, responses have this time to end, in seconds. After that, they are given up."""


def serve(
    views: LeagueViews,
    lobby: Lobby,
    *,
    host: str,
    port: int,
    on_ready: Callable[[str, str, bool], object],
    exit_code: int,
) -> None:
    """Serve the pages until a signal ends the server.

    uvicorn handles the signals: SIGINT or SIGTERM ends the server. Then uvicorn restores the former signal handlers and raises
    the signal again.

    Args:
        views: the league.
        lobby: the games with people. They end with the server.
        host: the name or address at which the server listens.
        port: the port; 0 for a free one.
        on_ready: called when the server accepts connections, with three arguments: the address of the first page, the address
            of the seat, and True if only programs on this machine reach the server.
        exit_code: the exit code of this process if the server must stop it. After a signal, `Lobby.close` ends all games, which
            may take a minute. If the process still runs `_GRACE_S` later, for example because a page is still being made, the
            server stops it. If SIGINT comes after an earlier signal, the server stops it at once.

    Raises UserError if the server cannot listen at the host or the port.
    """
    with _listen(host, port) as listener:
        feed = Feed(views.league.change_mark)
        listening, bound_port = listener.getsockname()[:2]
        hosts = KnownHosts(host, listening)
        config = uvicorn.Config(
            create_app(views, lobby, hosts=hosts, events=feed.respond),
            http=Connection,
            ws="none",
            lifespan="off",
            access_log=False,
            log_level="error",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_CONNECTIONS + 1,
            backlog=_BACKLOG,
            timeout_keep_alive=_IDLE_S,
        )
        os.nice(_NICE)
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        address = f"http://{url_host(host, listening)}:{bound_port}"

        def announce() -> None:
            seat = f"{address}{SEAT}/{lobby.token}"
            on_ready(f"{address}/", seat, is_loopback(listening))

        _Server(config, feed, lobby, announce, exit_code).run(sockets=[listener])


class _Server(uvicorn.Server):
    """A uvicorn server that calls `on_ready` after its start. When it shuts down, it ends all games and all streams.

    Without this class, a shutdown would wait for open streams. It would also wait for a thread that makes a page, however long
    the thread needs. So `shutdown` limits how long this process still runs.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        feed: Feed,
        lobby: Lobby,
        on_ready: Callable[[], object],
        exit_code: int,
    ) -> None:
        super().__init__(config)
        self._feed = feed
        self._lobby = lobby
        self._on_ready = on_ready
        self._exit_code = exit_code

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections."""
        await super().startup(sockets)
        self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note the signal. From now on, print only errors of the referee, because uvicorn logs each response that is given up.

        If SIGINT comes after an earlier signal, end this process at once, because `shutdown` may wait a minute for a finished game
        that cannot be stored.
        """
        LOG.setLevel(logging.ERROR)
        UVICORN_LOG.setLevel(logging.CRITICAL)
        super().handle_exit(sig, frame)
        if self.force_exit:
            os._exit(self._exit_code)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all games, then close all connections."""
        await self._lobby.close()
        # A thread that makes a page cannot be stopped, and Python would wait for it. So a timer ends the process. This loses
        # nothing, because all games have ended, and pages only read the league.
        last_resort = threading.Timer(_GRACE_S, os._exit, [self._exit_code])
        last_resort.daemon = True
        last_resort.start()
        self._feed.close()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises UserError if that is not possible."""
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError):
        raise UserError(f"--host: {host!r} is not a name or address of this machine") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise UserError(_explain(error, host, port)) from None
    return listener


def _explain(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"--port: another program uses port {port}; choose another port, or 0 for a free one"
        case errno.EACCES:
            return f"--port: this user may not use port {port}; choose a port of at least 1024"
        case errno.EADDRNOTAVAIL:
            return f"--host: {host!r} is not a name or address of this machine"
        case _:
            return f"--host, --port: {host}:{port}: {error.strerror}"


class _Stream(EventSourceResponse):
    """A stream of events.

    Args:
        events: the events.
        on_end: called when the response has ended. A response to the method HEAD has no stream, but ends too.
    """

    def __init__(
        self, events: AsyncIterator[ServerSentEvent], on_end: Callable[[], object]
    ) -> None:
        super().__init__(events, ping=_PING_S, send_timeout=_SEND_S)
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until one side ends the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()


class Feed:
    """The stream of changes, for all visitors. Use it in one event loop.

    Args:
        read_mark: returns `League.change_mark()`. It is called in a thread.
        limit: how many visitors can have a stream at a time.
    """

    def __init__(self, read_mark: Callable[[], int], *, limit: int = STREAMS) -> None:
        self._read_mark = read_mark
        self._limit = limit
        self._streams = 0
        """Number of streams that `respond` has returned and that have not ended. Some of them may not have begun."""
        self.visitors = 0
        """Number of streams that have begun and not ended."""
        self._changes = 0
        self._mark: int | None = None
        self._news = asyncio.Event()
        """Set at the next change, and then replaced."""
        self._poll: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()

    async def respond(self, _request: Request) -> Response:
        """Return a stream of events. Raises HTTPException if too many streams are open."""
        if self._streams >= self._limit:
            raise HTTPException(
                503,
                "Too many pages are open: this page does not update itself.",
                {"retry-after": "60"},
            )
        self._streams += 1
        return _Stream(self.events(), self._release)

    def _release(self) -> None:
        self._streams -= 1

    async def events(self) -> AsyncIterator[ServerSentEvent]:
        """Yield an event `change` at once, and then whenever the league has changed.

        The first event is for changes between the making of the page and this call.
        """
        self.visitors += 1
        try:
            if self._poll is None:
                self._poll = asyncio.create_task(self._watch())
            while not self._closed.is_set():
                seen = self._changes
                yield ServerSentEvent(str(seen), event="change", retry=_RETRY_MS)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closed.wait(), PAUSE_S)
                while seen == self._changes and not self._closed.is_set():
                    await self._news.wait()
        finally:
            self.visitors -= 1
            if not self.visitors and self._poll is not None:
                self._poll.cancel()
                self._poll = None

    def close(self) -> None:
        """End all streams."""
        self._closed.set()
        self._news.set()

    async def _watch(self) -> None:
        """Poll the league. An error does not end the streams, because the league may be readable again at the next poll.

        After an unexpected error has been printed, no other one is printed until a poll has succeeded.
        """
        printed = False
        while True:
            try:
                mark = await run_in_threadpool(self._read_mark)
            except RefereeError:
                pass  # the pages show this error
            except Exception:  # noqa: BLE001 - only this task polls, and no page would show that it has ended
                if not printed:
                    LOG.exception("The changes of the league cannot be read.")
                printed = True
            else:
                printed = False
                self._note(mark)
            await asyncio.sleep(POLL_S)

    def _note(self, mark: int) -> None:
        """Send an event if the change mark is new.

        The first poll of the server always sends an event, because the league may have changed between the first event of the
        stream and this poll.
        """
        if mark != self._mark:
            self._mark = mark
            self._changes += 1
            self._news.set()
            self._news = asyncio.Event()
