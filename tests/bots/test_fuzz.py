"""Whatever a bot sends, and whenever: nothing but faults of its own come of it, and its neighbour notices nothing.

A short look each time; with REFEREE_FUZZ_S=600 each test goes on for so many seconds.
"""

import asyncio
import os
import time
from contextlib import asynccontextmanager, suppress

import grpc
import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wire import ANYTHING, FRAMES, GAME, NUMBERS, OPENING, PREFACE, TOKEN, hello, message

from referee import deals
from referee.bots.clock import Clock
from referee.bots.server import MESSAGE_LIMIT, BotServer
from referee.bots.session import Session
from referee.clocks import DecisionTime
from referee.errors import BotFault, Forfeit, Strike, VoidGame
from referee.pb import play_pb2, table_pb2
from referee.protocol import decode
from referee.records import Request
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS

FUZZ_S = float(os.environ.get("REFEREE_FUZZ_S", "0"))
LIMIT_US = 20_000
PATIENT_US = 60_000_000
AT_MOST_S = 20
"""For four limits of 20 ms: nobody waits for ever, however busy the machine is."""
QUICK_S = 0.2
pytestmark = pytest.mark.unmeasured


def again(check):
    """Run a check of hypothesis once, or for as long as was asked."""
    until = time.monotonic() + FUZZ_S
    check()
    while time.monotonic() < until:
        check()


# Reading


@pytest.fixture(scope="module")
def ask():
    """Any decision."""
    rules = RULESETS["basic"]
    game = Game(rules, 3, deals.deck(bytes(32), "any", rules))
    view = game.view(game.decision.seat)
    return Request(1, view, game.decision, (), DecisionTime(1, None, 0))


def test_any_bytes_are_a_message_or_a_value_error(ask):
    @settings(max_examples=300, deadline=None, database=None)
    @given(ANYTHING | st.binary(max_size=2000))
    def check(data):
        try:
            said = decode.parse_bot_message(data)
        except ValueError:
            return
        for reply in said.replies:
            with suppress(ValueError):
                decode.parse_action(reply.action.SerializeToString(), ask)

    again(check)


@pytest.mark.extended("sends random messages to the referee")
def test_any_bytes_are_an_action_or_a_value_error(ask):
    @settings(max_examples=300, deadline=None, database=None)
    @given(st.binary(max_size=200))
    def check(data):
        with suppress(ValueError):
            decode.parse_action(data, ask)

    again(check)


@pytest.mark.extended("sends random messages to the referee")
@pytest.mark.parametrize(
    "data",
    [
        play_pb2.BotMessage(ready=[play_pb2.Ready()] * (MESSAGE_LIMIT // 2)).SerializeToString(),
        play_pb2.BotMessage(replies=[play_pb2.Reply()] * (MESSAGE_LIMIT // 2)).SerializeToString(),
        b"\x7b" * MESSAGE_LIMIT,  # groups in groups
        b"\x1a\xff\xff\x03" * (MESSAGE_LIMIT // 4),
        b"\x80" * MESSAGE_LIMIT,  # a number without end
    ],
    ids=["readies", "replies", "groups", "lengths", "number"],
)
def test_no_message_takes_long_to_read(data):
    assert len(data) <= MESSAGE_LIMIT
    took_s = []
    for _ in range(5):
        began = time.thread_time()
        with suppress(ValueError):
            decode.parse_bot_message(data)
        took_s.append(time.thread_time() - began)
    assert min(took_s) < QUICK_S


# A live session


@asynccontextmanager
async def served(folder, name):
    """A session behind a socket."""
    session = Session(TOKEN, lambda _: False, Clock.from_loop(), lambda: None)
    server = BotServer(folder / name, session.serve)
    await server.start()
    try:
        yield session, server.address
    finally:
        session.fail(VoidGame("over"))
        await server.stop()


def request(number):
    said = play_pb2.RefereeMessage()
    said.requests.add(game_id=GAME, decision_id=number)
    return said.SerializeToString()


async def ask_all(session):
    """What the referee does in a game; what came of each question."""
    came = []
    try:
        await session.wait_for_hello(LIMIT_US, time.monotonic_ns())
        await session.start_game(GAME, b"", LIMIT_US)
        for number in NUMBERS:
            try:
                action, elapsed_us, _ = await session.request(
                    GAME, number, request(number), LIMIT_US
                )
            except Strike as strike:
                came.append(strike.cause)
            else:
                assert isinstance(action, bytes)
                assert elapsed_us <= LIMIT_US
                came.append("answer")
    except Forfeit as forfeit:
        came.append(forfeit.cause)
    return came


async def send(address, script):
    """Send pieces with pauses, in milliseconds, before them; whatever comes back is thrown away."""
    reader, writer = await asyncio.open_unix_connection(address.removeprefix("unix:"))
    hearing = asyncio.ensure_future(reader.read())
    for pause_ms, piece in script:
        if pause_ms:
            await asyncio.sleep(pause_ms / 1000)
        if writer.is_closing():  # by the server
            break
        writer.write(piece)
    await asyncio.wait((hearing,), timeout=LIMIT_US / 2e6)
    hearing.cancel()
    with suppress(asyncio.CancelledError, OSError):
        await hearing
    writer.close()


class Neighbour:
    """A bot that answers, at a session of its own in the same process."""

    def __init__(self, folder):
        self._served = served(folder, "neighbour")
        self._number = 0

    async def begin(self):
        self.session, address = await self._served.__aenter__()
        self._answering = asyncio.ensure_future(self._answer(address))
        await self.session.wait_for_hello(PATIENT_US, time.monotonic_ns())

    async def _answer(self, address):
        async with grpc.aio.insecure_channel(address) as channel:
            stream = channel.stream_stream("/linko.v1.RefereeService/Play")()
            await stream.write(hello())
            while isinstance(data := await stream.read(), bytes):
                for asked in play_pb2.RefereeMessage.FromString(data).requests:
                    reply = play_pb2.Reply(
                        game_id=GAME,
                        decision_id=asked.decision_id,
                        action=table_pb2.Action(draw_display={"slot": asked.decision_id % 6}),
                    )
                    said = play_pb2.BotMessage(replies=[reply])
                    await stream.write(said.SerializeToString())

    async def play(self):
        for _ in NUMBERS:
            self._number += 1
            written, _, _ = await self.session.request(
                GAME, self._number, request(self._number), PATIENT_US
            )
            answer = table_pb2.Action(draw_display={"slot": self._number % 6})
            assert written == answer.SerializeToString()

    async def end(self):
        assert (self.session.dropped, self.session.failure) == (0, None)
        await self._served.__aexit__(None, None, None)
        self._answering.cancel()
        with suppress(asyncio.CancelledError, grpc.RpcError):
            await self._answering


@pytest.fixture
def live(tmp_path_factory, caplog):
    """Tries a script on a session, with a neighbour that plays at the same time."""
    folder = tmp_path_factory.mktemp("s")
    came = set()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        neighbour = Neighbour(folder)
        runner.run(neighbour.begin())

        async def attempt(script):
            async with served(folder, "socket") as (session, address):
                asked, _, _ = await asyncio.wait_for(
                    asyncio.gather(ask_all(session), send(address, script), neighbour.play()),
                    AT_MOST_S,
                )
                assert session.failure is None or isinstance(session.failure, BotFault)
                came.update(asked)

        yield lambda script: runner.run(attempt(script))
        runner.run(neighbour.end())
    assert "answer" in came, "some scripts get as far as that"
    assert not caplog.records


PAUSES_MS = st.sampled_from((0, 0, 0, 1, 5, 25))
READY = play_pb2.BotMessage(ready=[play_pb2.Ready(game_id=GAME)]).SerializeToString()


def reply(number):
    said = play_pb2.Reply(game_id=GAME, decision_id=number)
    return play_pb2.BotMessage(replies=[said]).SerializeToString()


@st.composite
def scripts(draw):
    """A game as it should be, with some of it missing and anything else between its parts."""
    right = [PREFACE + OPENING, message(hello()), message(READY)]
    right += [message(reply(number)) for number in NUMBERS]
    script = []
    for piece in right:
        while draw(st.integers(0, 3)) == 3:
            script.append((draw(PAUSES_MS), draw(FRAMES)))
        if draw(st.integers(0, 9)) < 9:
            script.append((draw(st.sampled_from((0, 2))), piece))
    return script


@pytest.mark.extended("sends random messages to the referee")
def test_no_bytes_on_its_socket_let_a_bot_do_more_than_lose(live):
    @settings(
        max_examples=60,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(scripts())
    def check(script):
        live(script)

    again(check)
