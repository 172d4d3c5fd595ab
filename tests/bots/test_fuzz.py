"""Test that arbitrary bytes from a bot cause only faults of this bot, and do not affect another bot.

Each test takes a few seconds. With REFEREE_FUZZ_S=600 each test runs for 600 seconds.
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
from referee.bots.inbox import MESSAGE_LIMIT
from referee.bots.outbox import Cores
from referee.bots.server import OWN, BotServer
from referee.bots.session import Session
from referee.clocks import DecisionTime
from referee.errors import BotFault, Forfeit, Strike, VoidGame
from referee.pb import play_pb2, table_pb2
from referee.protocol import messages
from referee.records import Request
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS

FUZZ_S = float(os.environ.get("REFEREE_FUZZ_S", "0"))
LIMIT_US = 20_000
PATIENT_US = 60_000_000
TIMEOUT_S = 20
"""How long a script may take: five waits with `LIMIT_US`, with a wide margin for a busy machine."""
QUICK_S = 0.2
"""The CPU time in which a message must be parsed."""
pytestmark = pytest.mark.unmeasured


def run_for_fuzz_time(check):
    """Run a check of hypothesis once, and repeat it until `REFEREE_FUZZ_S` seconds have passed."""
    until = time.monotonic() + FUZZ_S
    check()
    while time.monotonic() < until:
        check()


# Parsing


@pytest.fixture(scope="module")
def any_request():
    """Return a request for some decision."""
    rules = RULESETS["basic"]
    game = Game(rules, 3, deals.deck(bytes(32), "any", rules))
    view = game.view(game.decision.seat)
    return Request(1, view, game.decision, (), DecisionTime(1, None, 0))


def test_arbitrary_message_is_parsed_or_raises_value_error(any_request):
    @settings(max_examples=300, deadline=None, database=None)
    @given(ANYTHING | st.binary(max_size=2000))
    def check(data):
        try:
            said = messages.parse_bot_message(data)
        except ValueError:
            return
        for reply in said.replies:
            with suppress(ValueError):
                messages.parse_action(reply.action.SerializeToString(), any_request)

    run_for_fuzz_time(check)


@pytest.mark.extended("sends random messages to the referee")
def test_arbitrary_action_is_parsed_or_raises_value_error(any_request):
    @settings(max_examples=300, deadline=None, database=None)
    @given(st.binary(max_size=200))
    def check(data):
        with suppress(ValueError):
            messages.parse_action(data, any_request)

    run_for_fuzz_time(check)


@pytest.mark.extended("sends random messages to the referee")
@pytest.mark.parametrize(
    "data",
    [
        play_pb2.BotMessage(ready=[play_pb2.Ready()] * (MESSAGE_LIMIT // 2)).SerializeToString(),
        play_pb2.BotMessage(replies=[play_pb2.Reply()] * (MESSAGE_LIMIT // 2)).SerializeToString(),
        b"\x7b" * MESSAGE_LIMIT,  # nested groups
        b"\x1a\xff\xff\x03" * (MESSAGE_LIMIT // 4),
        b"\x80" * MESSAGE_LIMIT,  # a number that never ends
    ],
    ids=["readies", "replies", "groups", "lengths", "number"],
)
def test_message_of_maximum_size_is_parsed_quickly(data):
    assert len(data) <= MESSAGE_LIMIT
    took_s = []
    for _ in range(5):
        began = time.thread_time()
        with suppress(ValueError):
            messages.parse_bot_message(data)
        took_s.append(time.thread_time() - began)
    assert min(took_s) < QUICK_S


# Real sessions


@asynccontextmanager
async def run_session(folder, name):
    """Serve a session on a socket."""

    async def find_sender(_):
        return OWN

    session = Session(
        TOKEN,
        lambda _: False,
        Clock.from_loop(),
        lambda: None,
        find_sender,
        cores=Cores(),
        pondering=False,
    )
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


async def play_all(session):
    """Play a short game as the referee; return the outcome of each request: "reply" or the cause of the fault."""
    outcomes = []
    try:
        await session.wait_for_hello(LIMIT_US, time.monotonic_ns())
        await session.start_game(GAME, b"", LIMIT_US)
        for number in NUMBERS:
            try:
                action, elapsed_us, *_ = await session.request(
                    GAME, number, request(number), LIMIT_US
                )
            except Strike as strike:
                outcomes.append(strike.cause)
            else:
                assert isinstance(action, bytes)
                assert elapsed_us <= LIMIT_US
                outcomes.append("reply")
    except Forfeit as forfeit:
        outcomes.append(forfeit.cause)
    return outcomes


async def send(address, script):
    """Send a script: pairs of a pause in milliseconds and the bytes to send after it. Ignore what comes back."""
    reader, writer = await asyncio.open_unix_connection(address.removeprefix("unix:"))
    reading = asyncio.ensure_future(reader.read())
    for pause_ms, piece in script:
        if pause_ms:
            await asyncio.sleep(pause_ms / 1000)
        if writer.is_closing():  # by the server
            break
        writer.write(piece)
    await asyncio.wait((reading,), timeout=LIMIT_US / 2e6)
    reading.cancel()
    with suppress(asyncio.CancelledError, OSError):
        await reading
    writer.close()


class Neighbour:
    """A healthy bot with a session of its own in the same process."""

    def __init__(self, folder):
        self._running = run_session(folder, "neighbour")
        self._number = 0

    async def begin(self):
        self.session, address = await self._running.__aenter__()
        self._replying = asyncio.ensure_future(self._reply(address))
        await self.session.wait_for_hello(PATIENT_US, time.monotonic_ns())

    async def _reply(self, address):
        async with grpc.aio.insecure_channel(address) as channel:
            stream = channel.stream_stream("/linko.v1.RefereeService/Play")()
            await stream.write(hello())
            while isinstance(data := await stream.read(), bytes):
                for pending in play_pb2.RefereeMessage.FromString(data).requests:
                    reply = play_pb2.Reply(
                        game_id=GAME,
                        decision_id=pending.decision_id,
                        action=table_pb2.Action(draw_display={"slot": pending.decision_id % 6}),
                    )
                    replies = play_pb2.BotMessage(replies=[reply])
                    await stream.write(replies.SerializeToString())

    async def play(self):
        for _ in NUMBERS:
            self._number += 1
            written, *_ = await self.session.request(
                GAME, self._number, request(self._number), PATIENT_US
            )
            expected = table_pb2.Action(draw_display={"slot": self._number % 6})
            assert written == expected.SerializeToString()

    async def end(self):
        assert (self.session.dropped, self.session.failure) == (0, None)
        await self._running.__aexit__(None, None, None)
        self._replying.cancel()
        with suppress(asyncio.CancelledError, grpc.RpcError):
            await self._replying


@pytest.fixture
def live_session(tmp_path_factory, caplog):
    """Return a function that sends a script to a session while a neighbour plays."""
    folder = tmp_path_factory.mktemp("s")
    outcomes = set()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        neighbour = Neighbour(folder)
        runner.run(neighbour.begin())

        async def run_script(script):
            async with run_session(folder, "socket") as (session, address):
                played, _, _ = await asyncio.wait_for(
                    asyncio.gather(play_all(session), send(address, script), neighbour.play()),
                    TIMEOUT_S,
                )
                assert session.failure is None or isinstance(session.failure, BotFault)
                outcomes.update(played)

        yield lambda script: runner.run(run_script(script))
        runner.run(neighbour.end())
    assert "reply" in outcomes, "some scripts must contain valid replies"
    assert not caplog.records


PAUSES_MS = st.sampled_from((0, 0, 0, 1, 5, 25))
READY = play_pb2.BotMessage(ready=[play_pb2.Ready(game_id=GAME)]).SerializeToString()


def reply(number):
    said = play_pb2.Reply(game_id=GAME, decision_id=number)
    return play_pb2.BotMessage(replies=[said]).SerializeToString()


@st.composite
def scripts(draw):
    """Draw the messages of a correct game, with some of them missing and other bytes between them."""
    correct = [PREFACE + OPENING, message(hello()), message(READY)]
    correct += [message(reply(number)) for number in NUMBERS]
    script = []
    for piece in correct:
        while draw(st.integers(0, 3)) == 3:
            script.append((draw(PAUSES_MS), draw(FRAMES)))
        if draw(st.integers(0, 9)) < 9:
            script.append((draw(st.sampled_from((0, 2))), piece))
    return script


@pytest.mark.extended("sends random messages to the referee")
def test_arbitrary_bytes_on_a_socket_harm_only_their_own_bot(live_session):
    @settings(
        max_examples=60,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(scripts())
    def check(script):
        live_session(script)

    run_for_fuzz_time(check)
