"""The server closes connections above its limit, and connections on which no request comes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from unittest.mock import MagicMock

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn.server import ServerState

from referee.web.connections import Connection

PATIENCE_S = 20
IDLE_S = 0.05
LIMIT = 3
HELLO = PlainTextResponse("hello")
REQUEST = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


def configure(idle_s, app=HELLO):
    return uvicorn.Config(
        app,
        log_config=None,
        ws="none",
        limit_concurrency=LIMIT + 1,
        timeout_keep_alive=idle_s,
    )


@asynccontextmanager
async def serving(idle_s):
    """Serve connections at a free port, and yield a function that connects and returns a reader and a writer."""
    config, state = configure(idle_s), ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(config, state, {}), "127.0.0.1", 0)
    writers = []

    async def connect():
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writers.append(writer)
        return reader, writer

    async with asyncio.timeout(PATIENCE_S):
        yield connect
        for writer in writers:
            writer.close()
        while state.connections:  # noqa: ASYNC110 - connections have no event for their end
            await asyncio.sleep(0.001)
    server.close()
    await server.wait_closed()


@asynccontextmanager
async def unconnected(number, idle_s, app=HELLO):
    """Yield connections with transports that only note what is called."""
    config, state = configure(idle_s, app), ServerState()
    connections = [Connection(config, state, {}) for _ in range(number)]
    for each in connections:
        transport = MagicMock()
        transport.get_extra_info.return_value = None
        transport.is_closing.return_value = False
        each.connection_made(transport)
    yield connections
    for each in connections:
        each.connection_lost(None)


async def respond(connection):
    """Send a whole request on an unconnected connection, and return the response."""
    connection.data_received(REQUEST)
    await asyncio.gather(*connection.tasks)
    return b"".join(call.args[0] for call in connection.transport.write.call_args_list)


async def request(reader, writer):
    """Return the first line of the response."""
    writer.write(REQUEST)
    return await reader.readline()


async def test_connection_above_the_limit_is_closed_at_once():
    async with serving(PATIENCE_S) as connect:
        kept = [await connect() for _ in range(LIMIT)]
        reader, _ = await connect()
        assert await reader.read() == b""
        assert [b"200" in await request(*each) for each in kept] == [True] * LIMIT


async def test_connection_above_the_limit_does_not_count_until_it_is_closed():
    async with unconnected(LIMIT + 1, PATIENCE_S) as connections:
        *_, further = connections
        further.transport.abort.assert_called_once()
        assert b"200 OK" in await respond(connections[0])


@pytest.mark.parametrize("sent", [b"", REQUEST[:20]], ids=["nothing", "a part"])
async def test_connection_whose_first_request_does_not_come_is_closed(sent):
    async with serving(IDLE_S) as connect:
        reader, writer = await connect()
        writer.write(sent)
        assert await reader.read() == b""


async def test_connection_whose_request_has_no_body_is_closed():
    async def read_form(scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        await HELLO(scope, receive, send)

    is_closed = asyncio.Event()
    async with unconnected(1, IDLE_S, read_form) as (connection,):
        connection.transport.abort.side_effect = is_closed.set
        connection.data_received(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            await is_closed.wait()


async def test_connection_whose_further_request_does_not_come_is_closed():
    is_closed = asyncio.Event()
    async with unconnected(1, IDLE_S) as (connection,):
        connection.transport.abort.side_effect = is_closed.set
        await respond(connection)
        async with asyncio.timeout(PATIENCE_S):
            while not is_closed.is_set():
                connection.data_received(b"G")  # the timeout does not begin again
                await asyncio.sleep(IDLE_S / 10)


async def test_connection_with_a_request_stays_open_for_its_response():
    async def reply_late(scope, receive, send):
        await asyncio.sleep(4 * IDLE_S)
        await HELLO(scope, receive, send)

    async with unconnected(1, IDLE_S, reply_late) as (connection,):
        assert b"200 OK" in await respond(connection)
        connection.transport.abort.assert_not_called()
