"""Test what a session does with the messages of a bot, on a fake stream and a fake clock."""

import asyncio
from itertools import count

import grpc
import pytest
from fakes import FakeStream, FakeTime

from referee.bots import session
from referee.bots.clock import (
    BATCH_LIMIT_US,
    CORE_WAIT_LIMIT_US,
    REPLY_GRACE_US,
    TimedReply,
)
from referee.bots.inbox import FLOOD_QUOTA, MESSAGE_LIMIT
from referee.bots.outbox import Cores
from referee.bots.server import OWN, Sender
from referee.bots.session import MAX_BATCH_WAIT_US, MAX_MISSED, Session
from referee.errors import Cause, Evidence, Forfeit, Strike, VoidGame
from referee.pb import play_pb2, table_pb2
from referee.protocol import messages
from referee.sandbox.scheduling import Scheduling

TOKEN, FOREIGN_TOKEN, GUESSED = "own", "of another bot", "guessed"
LIMIT_US = 1_000_000
START = messages.goodbye("stands for a game start")
"""Any message will do here; a session does not look at what it sends."""
UNKNOWN = bytes((15 << 3, 1))
"""A field that no message of the schema has, serialised."""


def hello(version=1, token=TOKEN, **more):
    return play_pb2.BotMessage(hello=play_pb2.Hello(protocol_version=version, token=token, **more))


def action(game, number):
    """Return an action that differs for each decision."""
    return table_pb2.Action(ghost_value=1000 * ord(game[0]) + number)


def bytes_of(game, number):
    return action(game, number).SerializeToString()


def replies(*pairs):
    return play_pb2.BotMessage(
        replies=[
            play_pb2.Reply(game_id=game, decision_id=number, action=action(game, number))
            for game, number in pairs
        ]
    )


def ready(*games):
    return play_pb2.BotMessage(ready=[play_pb2.Ready(game_id=game) for game in games])


def request_bytes(game, number):
    message = play_pb2.RefereeMessage()
    message.requests.add(game_id=game, decision_id=number)
    return message.SerializeToString()


class Bot:
    """A session whose bot is the test."""

    def __init__(self):
        self.time = FakeTime()
        self.stream = FakeStream()
        self.senders = {}
        """Who has opened a stream, if it was not the bot."""
        self.scheduled = [Scheduling.NORMAL]
        """The bot's scheduling after each change, oldest first."""
        self.written_before = []
        """How many messages had been written to the bot before each change."""
        self.cores = Cores()
        self.session = Session(
            TOKEN,
            {TOKEN, FOREIGN_TOKEN}.__contains__,
            self.time.clock,
            lambda: None,
            self.find_sender,
            cores=self.cores,
            pondering=False,
        )
        self.session.scheduler = self
        self.serving = asyncio.ensure_future(self.session.serve(self.stream))

    async def find_sender(self, stream):
        return self.senders.get(stream, OWN)

    def schedule(self, scheduling):
        """Note a change, in the place of a `Scheduler`."""
        if self.scheduled[-1] is not scheduling:
            self.scheduled.append(scheduling)
            self.written_before.append(len(self.stream.written))

    def take_scheduled(self):
        """Return the scheduling after each change since the last call."""
        taken, self.scheduled = self.scheduled[1:], self.scheduled[-1:]
        return taken

    def say(self, *said):
        for message in said:
            self.stream.say(message)

    async def greet(self):
        self.say(hello())
        return await self.session.wait_for_hello(LIMIT_US, self.time.now_ns)

    async def start(self, game):
        starting = asyncio.ensure_future(self.session.start_game(game, START, LIMIT_US))
        await run_ready_tasks()
        self.say(ready(game))
        await starting
        self.stream.written.clear()

    async def request(self, game="g", number=1):
        """Send a request and return the task that waits for the reply."""
        pending = asyncio.ensure_future(
            self.session.request(game, number, request_bytes(game, number), LIMIT_US)
        )
        await run_ready_tasks()
        return pending

    async def wait_until_read(self):
        """Wait until the session has processed all messages of the bot."""
        while not self.stream.said.empty() and not self.serving.done():
            await run_ready_tasks()
        await run_ready_tasks()

    async def timeout(self):
        await run_ready_tasks()
        self.time.creep_us(LIMIT_US + REPLY_GRACE_US)


async def run_ready_tasks():
    """Let all tasks run until they wait for something."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def new_bot():
    bot = Bot()
    yield bot
    bot.session.fail(VoidGame("the test is over"))
    bot.stream.hang_up()
    await asyncio.wait((bot.serving,))
    assert bot.serving.cancelled() or not is_bug(bot.serving.exception())


def is_bug(error):
    return error is not None and not isinstance(error, grpc.aio.AbortError)


@pytest.fixture
async def bot(new_bot):
    await new_bot.greet()
    await new_bot.start("g")
    return new_bot


async def expect_fault(pending):
    with pytest.raises((Strike, Forfeit)) as raised:
        await pending
    return raised.value


# Hello


async def test_valid_hello_is_accepted(new_bot):
    assert (await new_bot.greet()).protocol_version == 1
    assert new_bot.session.said_hello


async def test_hello_before_wait_for_hello_is_accepted(new_bot):
    new_bot.say(hello(max_games=4))
    await new_bot.wait_until_read()
    assert (await new_bot.session.wait_for_hello(LIMIT_US, new_bot.time.now_ns)).max_games == 4


@pytest.mark.parametrize(
    ("message", "cause", "why"),
    [
        (
            hello(version=2),
            Cause.HANDSHAKE,
            "the bot speaks protocol version 2, the referee 1",
        ),
        (hello(version=0), Cause.HANDSHAKE, "the bot speaks protocol version 0, the referee 1"),
        (hello(token=GUESSED), Cause.HANDSHAKE, "the hello has a wrong token"),
        (hello(token=""), Cause.HANDSHAKE, "the hello has a wrong token"),
        (hello(token=FOREIGN_TOKEN), Cause.IMPERSONATION, "the hello has another bot's token"),
        (ready("g"), Cause.HANDSHAKE, "the first message has no hello"),
        (b"", Cause.HANDSHAKE, "the first message has no hello"),
        (
            b"\xff" * 9,
            Cause.HANDSHAKE,
            "the first message is no hello: the bytes are no linko.v1.BotMessage",
        ),
    ],
)
async def test_invalid_hello_is_a_forfeit_and_the_bot_is_told_why(new_bot, message, cause, why):
    new_bot.say(message)
    forfeit = await expect_fault(new_bot.session.wait_for_hello(LIMIT_US, new_bot.time.now_ns))
    assert isinstance(forfeit, Forfeit)
    assert forfeit.cause is cause
    assert forfeit.evidence.detail == why
    (goodbye,) = new_bot.stream.written
    assert play_pb2.RefereeMessage.FromString(goodbye).goodbye.reason == why
    await new_bot.serving
    assert not new_bot.session.said_hello


async def test_bot_that_disconnects_after_an_invalid_hello_is_charged(new_bot):
    new_bot.stream.writable.clear()
    new_bot.say(hello(version=2))
    await new_bot.wait_until_read()
    new_bot.serving.cancel()  # gRPC does this when the stream ends
    await run_ready_tasks()
    assert new_bot.session.failure is not None
    forfeit = await expect_fault(new_bot.session.wait_for_hello(LIMIT_US, new_bot.time.now_ns))
    assert forfeit.cause is Cause.HANDSHAKE


async def test_invalid_hello_can_be_charged_after_a_request(new_bot):
    """So `HANDSHAKE` is not in `START_CAUSES`, and the replay allows it at any move."""
    other = FakeStream()
    other.writable.clear()
    other.say(hello(version=2))
    serving = asyncio.ensure_future(new_bot.session.serve(other))
    await run_ready_tasks()
    await new_bot.greet()
    await new_bot.start("g")
    pending = await new_bot.request()
    other.writable.set()
    assert (await expect_fault(pending)).cause is Cause.HANDSHAKE
    with pytest.raises(grpc.aio.AbortError):
        await serving


async def test_time_of_the_hello_runs_from_the_start_of_the_process(new_bot):
    began_ns = new_bot.time.now_ns
    new_bot.time.pass_us(LIMIT_US // 2)
    waiting = asyncio.ensure_future(new_bot.session.wait_for_hello(LIMIT_US, began_ns))
    await run_ready_tasks()
    new_bot.time.creep_us(LIMIT_US // 2 + REPLY_GRACE_US)
    forfeit = await expect_fault(waiting)
    assert forfeit.cause is Cause.CONNECT_TIMEOUT
    assert forfeit.evidence.detail == "the bot sent no hello within 1 s"


async def test_hello_after_its_deadline_is_not_accepted(new_bot):
    waiting = asyncio.ensure_future(new_bot.session.wait_for_hello(LIMIT_US, new_bot.time.now_ns))
    await new_bot.timeout()
    assert (await expect_fault(waiting)).cause is Cause.CONNECT_TIMEOUT
    new_bot.say(hello())
    await new_bot.serving  # the stream ends without an error
    assert not new_bot.session.said_hello


class StrangerOfTest(Sender):
    is_own = False

    def __init__(self):
        self.used = []
        """The tokens with which `Session` has charged an impersonation."""

    async def confirm(self):
        return False

    def charge_impersonation(self, token):
        self.used.append(token)


def open_stream(bot, sender=OWN):
    """Open another stream of the same server; return the stream and the task that serves it."""
    stream = FakeStream()
    bot.senders[stream] = sender
    return stream, asyncio.ensure_future(bot.session.serve(stream))


@pytest.mark.parametrize(
    ("message", "charged"),
    [
        (hello(version=2), []),
        (hello(token=GUESSED), []),
        (b"\xff" * 9, []),
        (b"x" * (MESSAGE_LIMIT + 1), []),
        (grpc.aio.EOF, []),
        (grpc.aio.InternalError("broken"), []),
        (hello(token=FOREIGN_TOKEN), [FOREIGN_TOKEN]),
        (hello(), [TOKEN]),
    ],
    ids=["version", "token", "noise", "large", "end", "error", "foreign token", "stolen token"],
)
async def test_stream_of_a_stranger_never_costs_the_bot_anything(new_bot, message, charged):
    stranger = StrangerOfTest()
    stream, serving = open_stream(new_bot, stranger)
    if message is grpc.aio.EOF:
        stream.hang_up()
    else:
        stream.say(message)
    await serving
    assert stranger.used == charged
    assert stream.written == []
    assert not new_bot.session.closed.is_set()
    assert not new_bot.session.said_hello
    await new_bot.greet()
    await new_bot.start("g")


async def test_silent_stream_of_a_stranger_is_aborted_at_the_hello(new_bot):
    _, serving = open_stream(new_bot, StrangerOfTest())
    await run_ready_tasks()
    assert not serving.done()
    await new_bot.greet()
    with pytest.raises(grpc.aio.AbortError):
        await serving
    await new_bot.start("g")


async def test_stolen_token_is_charged_even_after_the_hello_of_the_bot(bot):
    stranger = StrangerOfTest()
    stream, serving = open_stream(bot, stranger)
    stream.say(hello())
    with pytest.raises(grpc.aio.AbortError):
        await serving
    assert stranger.used == [TOKEN]
    assert bot.session.failure is None


async def test_silent_stream_of_a_stranger_is_refused_after_the_hello_of_the_bot(bot, monkeypatch):
    monkeypatch.setattr(session, "STRANGER_LIMIT_S", 0.01)
    _, serving = open_stream(bot, StrangerOfTest())
    with pytest.raises(grpc.aio.AbortError):
        await serving


async def test_streams_of_a_stranger_are_no_flood_of_the_bot(bot):
    for _ in range(FLOOD_QUOTA + 1):
        stream, serving = open_stream(bot, StrangerOfTest())
        stream.say(b"")
        with pytest.raises(grpc.aio.AbortError):
            await serving
    assert bot.session.failure is None


async def test_first_stream_with_a_valid_hello_is_the_stream_of_the_bot(new_bot):
    stream, serving = open_stream(new_bot)
    stream.say(hello(max_games=5))
    assert (await new_bot.session.wait_for_hello(LIMIT_US, new_bot.time.now_ns)).max_games == 5
    with pytest.raises(grpc.aio.AbortError):
        await new_bot.serving
    stream.hang_up()
    await serving
    assert new_bot.session.closed.is_set()


async def test_bot_may_close_a_stream_before_the_hello_on_another_one(new_bot):
    stream, serving = open_stream(new_bot)
    stream.hang_up()
    await serving
    assert not new_bot.session.closed.is_set()
    await new_bot.greet()


async def test_bot_may_have_four_streams_before_the_hello(new_bot):
    """A stream takes up to 16 MiB of the referee's memory for its first message."""
    others = [open_stream(new_bot) for _ in range(4)]
    await run_ready_tasks()
    *accepted, (_, refused) = others
    with pytest.raises(grpc.aio.AbortError):
        await refused
    assert not any(serving.done() for _, serving in accepted)
    await new_bot.greet()
    assert new_bot.session.failure is None
    for _, serving in accepted:
        with pytest.raises(grpc.aio.AbortError):
            await serving


async def test_end_of_the_only_stream_before_the_hello_closes_the_session(new_bot):
    new_bot.stream.hang_up()
    await new_bot.serving
    assert new_bot.session.closed.is_set()
    assert new_bot.session.connected


async def test_second_stream_is_refused_and_the_first_stays_in_use(bot):
    with pytest.raises(grpc.aio.AbortError):
        await bot.session.serve(FakeStream())
    pending = await bot.request()
    bot.say(replies(("g", 1)))
    assert (await pending)[0] == bytes_of("g", 1)


# Games and replies


async def test_missing_ready_is_a_forfeit(new_bot):
    await new_bot.greet()
    starting = asyncio.ensure_future(new_bot.session.start_game("g", START, LIMIT_US))
    await new_bot.timeout()
    forfeit = await expect_fault(starting)
    assert forfeit.cause is Cause.GAME_START_TIMEOUT
    assert new_bot.session.unresponsive


async def test_garbage_instead_of_a_ready_is_no_strike(new_bot):
    await new_bot.greet()
    starting = asyncio.ensure_future(new_bot.session.start_game("g", START, LIMIT_US))
    await run_ready_tasks()
    new_bot.say(b"\xff" * 9, ready("g"))
    await starting


@pytest.mark.parametrize(
    ("message", "unsolicited"),
    [
        (replies(("g", 7)).SerializeToString(), 0),
        (UNKNOWN + replies(("g", 7)).SerializeToString(), 0),
        (replies(("g", 7)).SerializeToString() + hello().SerializeToString(), 1),
        (replies(("g", 6), ("g", 7), ("g", 7)).SerializeToString(), 2),
    ],
    ids=["alone", "with an unknown field", "with a hello", "among others"],
)
async def test_reply_has_its_action_and_time(bot, message, unsolicited):
    pending = await bot.request(number=7)
    assert bot.stream.written == [request_bytes("g", 7)]
    bot.time.pass_us(1234)
    bot.say(message)
    assert await pending == TimedReply(bytes_of("g", 7), 1234)
    assert bot.session.dropped == unsolicited


async def test_reply_without_an_action_is_passed_on_as_empty(bot):
    pending = await bot.request()
    bot.say(play_pb2.BotMessage(replies=[play_pb2.Reply(game_id="g", decision_id=1)]))
    assert (await pending)[0] == b""


async def test_reply_with_the_number_of_a_ready_does_not_start_the_game(new_bot):
    await new_bot.greet()
    starting = asyncio.ensure_future(new_bot.session.start_game("g", START, LIMIT_US))
    await run_ready_tasks()
    new_bot.say(replies(("g", 0)))
    await new_bot.wait_until_read()
    assert not starting.done()
    assert new_bot.session.dropped == 1
    new_bot.say(ready("g"))
    await starting


async def test_request_in_the_only_game_is_written_at_once(bot):
    pending = asyncio.ensure_future(bot.session.request("g", 1, request_bytes("g", 1), LIMIT_US))
    for _ in range(2):  # the caller, the write
        await asyncio.sleep(0)
    assert bot.stream.written == [request_bytes("g", 1)]
    bot.say(replies(("g", 1)))
    await pending


async def test_requests_of_several_games_are_sent_as_a_batch(bot):
    await bot.start("h")
    await bot.start("i")
    pending = [
        asyncio.ensure_future(bot.session.request(game, 1, request_bytes(game, 1), LIMIT_US))
        for game in "ghi"
    ]
    await run_ready_tasks()
    (written,) = bot.stream.written
    requests = play_pb2.RefereeMessage.FromString(written).requests
    assert [each.game_id for each in requests] == ["g", "h", "i"]
    bot.say(replies(("i", 1), ("g", 1), ("h", 1)))
    assert [(await each)[0] for each in pending] == [bytes_of(game, 1) for game in "ghi"]


async def test_requests_wait_while_the_bot_thinks_and_then_go_out_together(bot):
    for game in "hi":
        await bot.start(game)
    first = await bot.request("g")
    others = [await bot.request("h"), await bot.request("i")]
    bot.session.end_game("x", START)
    assert bot.stream.written == [request_bytes("g", 1)]
    bot.time.pass_us(1000)
    bot.say(replies(("g", 1)))
    assert (await first).elapsed_us == 1000
    await run_ready_tasks()
    assert bot.stream.written[1:] == [START + request_bytes("h", 1) + request_bytes("i", 1)]
    bot.time.pass_us(600)
    bot.say(replies(("i", 1), ("h", 1)))
    for other in others:
        assert await other == TimedReply((await other).action, 300, 0, 600, 2)


async def test_replies_to_a_batch_may_come_in_several_messages(bot):
    await bot.start("h")
    pending = {game: asyncio.ensure_future(request_soon(bot, game)) for game in "gh"}
    await run_ready_tasks()
    assert len(bot.stream.written) == 1
    bot.time.pass_us(100_000)
    bot.say(replies(("h", 1)))
    await bot.wait_until_read()
    assert not pending["h"].done(), "its time is known when the last reply is there"
    bot.say(replies(("h", 1)))
    await bot.wait_until_read()
    assert bot.session.dropped == 1, "the second reply to a request"
    bot.time.pass_us(300_000)
    bot.say(replies(("g", 1)))
    assert await pending["g"] == TimedReply(bytes_of("g", 1), 200_000, 0, 400_000, 2)
    assert await pending["h"] == TimedReply(bytes_of("h", 1), 200_000, 0, 400_000, 2)


async def test_only_the_unanswered_requests_of_a_batch_are_late(bot):
    for game in "hi":
        await bot.start(game)
    pending = {game: asyncio.ensure_future(request_soon(bot, game)) for game in "ghi"}
    await run_ready_tasks()
    bot.time.creep_us(LIMIT_US)
    bot.say(replies(("h", 1)))
    await bot.wait_until_read()
    bot.time.creep_us(2 * LIMIT_US + REPLY_GRACE_US)
    assert await pending["h"] == TimedReply(bytes_of("h", 1), LIMIT_US // 3, 0, LIMIT_US, 3)
    for game in "gi":
        strike = await expect_fault(pending[game])
        assert strike.cause is Cause.TIMEOUT
        evidence = strike.evidence
        assert evidence.elapsed_us == LIMIT_US + REPLY_GRACE_US
        assert (evidence.wall_us, evidence.batch_size) == (3 * LIMIT_US + REPLY_GRACE_US, 3)
        assert (
            evidence.detail
            == "the bot sent no reply within 1 s, nor within 3 s for 3 requests together"
        )


async def test_readies_and_decisions_are_not_in_one_batch(bot):
    first = await bot.request("g")
    starting = asyncio.ensure_future(bot.session.start_game("h", START, LIMIT_US))
    await run_ready_tasks()
    bot.say(replies(("g", 1)))
    await first
    second = await bot.request("g", 2)
    assert bot.stream.written == [request_bytes("g", 1), START]
    bot.say(ready("h"))
    await starting
    await run_ready_tasks()
    assert bot.stream.written[2:] == [request_bytes("g", 2)]
    second.cancel()


async def request_many(bot, limit_us):
    """Send the requests of nine games, and return the number of requests in the first message."""
    bot.stream.written.clear()
    tasks = [
        asyncio.ensure_future(bot.session.request(game, 1, request_bytes(game, 1), limit_us))
        for game in MANY
    ]
    await run_ready_tasks()
    requests = play_pb2.RefereeMessage.FromString(bot.stream.written[0]).requests
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return len(requests)


MANY = [f"{number}" for number in range(9)]


async def test_batch_of_a_bot_that_may_be_slow_is_small(bot):
    for game in MANY:
        await bot.start(game)
    assert await request_many(bot, BATCH_LIMIT_US // 4) == 5


async def test_batch_of_a_bot_that_was_quick_is_large(bot):
    for game in MANY:
        await bot.start(game)
    pending = await bot.request()
    bot.time.pass_us(BATCH_LIMIT_US // 40)
    bot.say(replies(("g", 1)))
    await pending
    assert await request_many(bot, BATCH_LIMIT_US // 4) == 9


async def test_batch_of_game_starts_is_small_even_if_the_decisions_of_the_bot_were_quick(bot):
    """Game starts may take longer than decisions, for example to load a model."""
    pending = await bot.request()
    bot.time.pass_us(1000)
    bot.say(replies(("g", 1)))
    await pending
    bot.stream.written.clear()
    tasks = [
        asyncio.ensure_future(bot.session.start_game(game, START, BATCH_LIMIT_US // 4))
        for game in MANY
    ]
    await run_ready_tasks()
    assert bot.stream.written == [START * 5]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_game_starts_of_an_overdue_batch_are_called_so(bot):
    starts = [
        asyncio.ensure_future(bot.session.start_game(game, START, LIMIT_US)) for game in "ghi"
    ]
    await run_ready_tasks()
    bot.time.creep_us(3 * LIMIT_US + REPLY_GRACE_US)
    for start in starts:
        forfeit = await expect_fault(start)
        assert forfeit.cause is Cause.GAME_START_TIMEOUT
        assert (
            forfeit.evidence.detail
            == "the bot sent no ready within 1 s, nor within 3 s for 3 game starts together"
        )


async def test_decision_takes_at_most_its_limit_of_the_time_of_a_batch(bot):
    """Four times the bot's slowest decision is more than the limit of a decision."""
    for game in MANY:
        await bot.start(game)
    limit_us = BATCH_LIMIT_US // 8
    pending = asyncio.ensure_future(bot.session.request("g", 1, request_bytes("g", 1), limit_us))
    await run_ready_tasks()
    bot.time.pass_us(limit_us)
    bot.say(replies(("g", 1)))
    await pending
    assert await request_many(bot, limit_us) == 9


async def test_bot_that_lingers_pays_for_the_wait(new_bot):
    new_bot.say(hello(max_games=9, batch_wait_us=700))
    await new_bot.session.wait_for_hello(LIMIT_US, new_bot.time.now_ns)
    for game in "gh":
        await new_bot.start(game)
    rival = Rival(new_bot.cores)
    await rival.think()
    pending = await new_bot.request("g")
    assert new_bot.session.lingers
    rival.claim()
    rival.stop()
    await run_ready_tasks()
    assert rival.is_thinking, "it gets the core, because the bot lingers"
    new_bot.time.pass_us(5000)
    assert not new_bot.session.lingers
    rival.stop()
    await run_ready_tasks()
    new_bot.time.pass_us(1000)
    new_bot.say(replies(("g", 1)))
    assert (await pending).elapsed_us == 1700


async def test_bot_lingers_from_its_oldest_request_that_waits(new_bot):
    new_bot.say(hello(max_games=9, batch_wait_us=700))
    await new_bot.session.wait_for_hello(LIMIT_US, new_bot.time.now_ns)
    for game in "ghi":
        await new_bot.start(game)
    await Rival(new_bot.cores).think()
    pending = [await new_bot.request("g")]
    new_bot.time.pass_us(600)
    pending.append(await new_bot.request("h"))
    assert new_bot.session.lingers
    new_bot.time.pass_us(100)
    assert not new_bot.session.lingers
    for each in pending:
        each.cancel()


async def test_bot_cannot_linger_for_longer_than_the_largest_wait(new_bot):
    new_bot.say(hello(max_games=9, batch_wait_us=50 * MAX_BATCH_WAIT_US))
    await new_bot.session.wait_for_hello(LIMIT_US, new_bot.time.now_ns)
    for game in "gh":
        await new_bot.start(game)
    await Rival(new_bot.cores).think()
    pending = await new_bot.request("g")
    new_bot.time.pass_us(MAX_BATCH_WAIT_US - 1)
    assert new_bot.session.lingers
    new_bot.time.pass_us(1)
    assert not new_bot.session.lingers
    pending.cancel()


async def test_failed_bot_claims_no_core(bot):
    rival = Rival(bot.cores)
    await rival.think()
    pending = await bot.request("g")
    bot.session.fail(VoidGame("the process has ended"))
    with pytest.raises(VoidGame):
        await pending
    rival.stop()
    assert bot.cores.take()


async def test_bot_that_hangs_gets_one_request_at_a_time_and_then_fails(bot):
    for game in "hi":
        await bot.start(game)
    tasks = {game: asyncio.ensure_future(request_soon(bot, game)) for game in "ghi"}
    await run_ready_tasks()
    bot.time.creep_us(3 * LIMIT_US + REPLY_GRACE_US)
    for task in tasks.values():
        assert (await expect_fault(task)).cause is Cause.TIMEOUT
    bot.stream.written.clear()
    second = [await bot.request(game, 2) for game in "ghi"]
    for _ in range(MAX_MISSED - 1):
        await bot.timeout()
    assert bot.stream.written == [request_bytes("g", 2), request_bytes("h", 2)]
    assert (await expect_fault(second[0])).cause is Cause.TIMEOUT
    assert (await expect_fault(second[1])).cause is Cause.TIMEOUT
    forfeit = await expect_fault(second[2])
    assert (forfeit.cause, forfeit.evidence.detail) == (
        Cause.CRASH,
        "the bot has not replied to anything in 3 messages in a row",
    )


async def test_late_replies_are_no_flood(bot):
    games = [f"{number}" for number in range(FLOOD_QUOTA + 10)]
    for game in games:
        await bot.start(game)
    tasks = [asyncio.ensure_future(request_soon(bot, game)) for game in games]
    await run_ready_tasks()
    while not all(task.done() for task in tasks):
        await bot.timeout()
        bot.time.creep_us(60 * LIMIT_US, step_us=50_000)
        await run_ready_tasks()
        for written in bot.stream.written:
            for each in play_pb2.RefereeMessage.FromString(written).requests:
                bot.say(replies((each.game_id, 1)))
        bot.stream.written.clear()
        await bot.wait_until_read()
    assert bot.session.failure is None
    for task in tasks:
        task.exception()


async def test_core_is_given_back_if_the_caller_is_cancelled(bot):
    rival = Rival(bot.cores)
    pending = await bot.request()
    rival.claim()
    await run_ready_tasks()
    assert not rival.is_thinking
    pending.cancel()
    await run_ready_tasks()
    assert rival.is_thinking


async def test_late_hello_leaves_the_number_of_cores_unchanged(new_bot):
    waiting = asyncio.ensure_future(new_bot.session.wait_for_hello(LIMIT_US, new_bot.time.now_ns))
    await new_bot.timeout()
    assert (await expect_fault(waiting)).cause is Cause.CONNECT_TIMEOUT
    assert new_bot.cores.take()
    assert not new_bot.cores.take()


async def test_bot_that_lingers_pays_no_time_twice(new_bot):
    new_bot.say(hello(max_games=9, batch_wait_us=700))
    await new_bot.session.wait_for_hello(LIMIT_US, new_bot.time.now_ns)
    for game in "gh":
        await new_bot.start(game)
    first = await new_bot.request("g")
    second = await new_bot.request("h")
    new_bot.time.pass_us(5000)
    new_bot.say(replies(("g", 1)))
    assert (await first).elapsed_us == 5000
    await run_ready_tasks()
    new_bot.time.pass_us(300)
    new_bot.say(replies(("h", 1)))
    assert (await second).elapsed_us == 300


async def test_time_that_a_request_waits_for_a_core_costs_nothing(bot):
    rival = Rival(bot.cores)
    await rival.think()
    pending = await bot.request()
    assert bot.take_scheduled()[-1:] != [Scheduling.NORMAL]
    bot.time.creep_us(10 * LIMIT_US)
    assert bot.stream.written == []
    rival.stop()
    await run_ready_tasks()
    bot.time.pass_us(1000)
    bot.say(replies(("g", 1)))
    assert (await pending).elapsed_us == 1000


async def test_core_of_a_bot_that_fails_while_it_thinks_goes_to_the_next_bot(bot):
    pending = await bot.request()
    rivals = [Rival(bot.cores), Rival(bot.cores)]
    for rival in rivals:
        rival.claim()
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="exited")))
    await expect_fault(pending)
    assert [rival.is_thinking for rival in rivals] == [True, False]


async def test_bot_that_fails_without_a_core_gives_none_back(bot):
    rivals = [Rival(bot.cores), Rival(bot.cores)]
    await rivals[0].think()
    rivals[1].claim()
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="exited")))
    await run_ready_tasks()
    assert not rivals[1].is_thinking


async def request_soon(bot, game):
    return await bot.session.request(game, 1, request_bytes(game, 1), LIMIT_US)


class Rival:
    """Another bot that wants the core."""

    waiting, lingers, is_thinking = 1, False, False

    def __init__(self, cores):
        self.cores = cores

    def claim(self):
        self.cores.claim(self)

    async def think(self):
        self.claim()
        await run_ready_tasks()
        assert self.is_thinking

    def begin(self):
        self.is_thinking = True

    def stop(self):
        self.is_thinking = False
        self.cores.release()


async def test_reply_in_the_grace_period_has_a_lag(bot):
    pending = await bot.request()
    bot.time.creep_us(LIMIT_US + REPLY_GRACE_US - 1000)
    bot.say(replies(("g", 1)))
    _, elapsed_us, lag_us, *_ = await pending
    assert elapsed_us == LIMIT_US
    assert lag_us == REPLY_GRACE_US - 1000


async def test_late_reply_is_dropped(bot):
    pending = await bot.request()
    await bot.timeout()
    assert (await expect_fault(pending)).cause is Cause.TIMEOUT
    assert bot.session.unresponsive
    bot.say(replies(("g", 1)))
    await bot.wait_until_read()
    assert bot.session.dropped == 1
    assert not bot.session.unresponsive
    pending = await bot.request(number=2)
    bot.say(replies(("g", 2)))
    assert (await pending)[0] == bytes_of("g", 2)


async def test_bot_that_replies_to_a_later_request_is_responsive_again(bot):
    await miss_deadline(bot, 1)
    assert bot.session.unresponsive
    pending = await bot.request(number=2)
    bot.say(replies(("g", 2)))
    await pending
    assert not bot.session.unresponsive
    await miss_deadline(bot, 3)
    assert bot.session.unresponsive


async def miss_deadline(bot, number):
    pending = await bot.request(number=number)
    await bot.timeout()
    return await expect_fault(pending)


async def test_bot_of_one_game_that_never_replies_has_only_strikes(bot):
    for number in range(1, MAX_MISSED + 2):
        assert isinstance(await miss_deadline(bot, number), Strike)
    assert bot.session.failure is None


async def test_bot_that_replies_in_another_game_is_responsive_again(bot):
    await miss_deadline(bot, 1)
    await bot.start("h")
    assert not bot.session.unresponsive, "a ready is a reply too"
    await miss_deadline(bot, 2)
    assert bot.session.unresponsive
    pending = await bot.request("h", 1)
    bot.say(replies(("h", 1)))
    await pending
    for game in "hg":
        bot.session.end_game(game, START)
        assert not bot.session.unresponsive


async def test_late_reply_after_a_reply_in_another_game_is_no_flood(bot):
    await bot.start("h")
    await miss_deadline(bot, 1)
    pending = await bot.request("h", 1)
    bot.say(replies(("h", 1)))
    await pending
    bot.session.end_game("g", START)
    bot.say(*[b""] * FLOOD_QUOTA)
    bot.say(replies(("g", 1)))
    await bot.wait_until_read()
    assert bot.session.failure is None


async def test_bot_that_replies_late_only_to_its_newest_request_in_another_game_is_responsive(bot):
    await bot.start("h")
    await miss_deadline(bot, 1)
    pending = await bot.request("h", 1)
    bot.say(replies(("h", 1)))
    await pending
    pending = await bot.request("h", 2)
    await bot.timeout()
    await expect_fault(pending)
    assert bot.session.unresponsive
    bot.say(replies(("h", 2)))
    await bot.wait_until_read()
    assert not bot.session.unresponsive


@pytest.mark.parametrize("earlier", [[1], []], ids=["also to the first", "to the last alone"])
async def test_bot_is_unresponsive_until_it_has_replied_to_the_last_overdue_request(bot, earlier):
    for number in (1, 2):
        pending = await bot.request(number=number)
        await bot.timeout()
        await expect_fault(pending)
    bot.say(*(replies(("g", number)) for number in earlier))
    await bot.wait_until_read()
    assert bot.session.unresponsive
    bot.say(replies(("g", 2)))
    await bot.wait_until_read()
    assert not bot.session.unresponsive


async def test_unsolicited_replies_are_dropped_and_counted(bot):
    pending = await bot.request(number=5)
    bot.say(
        replies(("other game", 5)),
        replies(("g", 4)),
        replies(("g", 6)),
        replies(("g", 0)),
        replies(("g", 5), ("g", 5)),
        replies(("g", 5)),
        ready("g"),
        hello(),
    )
    assert (await pending)[0] == bytes_of("g", 5)
    await bot.wait_until_read()
    assert bot.session.dropped == 8
    assert bot.session.failure is None


async def test_guessed_reply_to_a_request_that_is_not_yet_written_is_dropped(bot):
    await bot.start("h")
    first, second = await bot.request("g"), await bot.request("h", 7)
    bot.say(replies(("h", 7)))
    await bot.wait_until_read()
    assert (bot.session.failure, bot.session.dropped) == (None, 1)
    for pending, pair in ((first, ("g", 1)), (second, ("h", 7))):
        assert not pending.done()
        bot.say(replies(pair))
        assert (await pending).action == bytes_of(*pair)


async def test_superfluous_ready_beside_a_valid_reply_is_ignored(bot):
    pending = await bot.request()
    message = replies(("g", 1))
    message.ready.add(game_id="g")
    bot.say(message)
    assert (await pending).action == bytes_of("g", 1)
    assert bot.session.dropped == 0


async def test_superfluous_ready_beside_a_valid_reply_is_ignored_while_a_game_start_waits(bot):
    pending = await bot.request()
    starting = asyncio.ensure_future(bot.session.start_game("h", START, LIMIT_US))
    await run_ready_tasks()
    message = replies(("g", 1))
    message.ready.add(game_id="h")  # the start of "h" is not written yet
    bot.say(message)
    assert (await pending).action == bytes_of("g", 1)
    await run_ready_tasks()
    assert not starting.done()
    bot.say(ready("h"))
    await starting
    assert (bot.session.dropped, bot.session.failure) == (0, None)


@pytest.mark.parametrize(("superfluous", "is_flood"), [(3, False), (FLOOD_QUOTA + 2, True)])
async def test_only_one_superfluous_ready_for_each_valid_reply_is_ignored(
    bot, superfluous, is_flood
):
    pending = await bot.request()
    message = replies(("g", 1))
    for _ in range(superfluous):
        message.ready.add(game_id="other")
    bot.say(message)
    assert (await pending).action == bytes_of("g", 1)
    await bot.wait_until_read()
    assert bot.session.dropped == superfluous - 1
    if is_flood:
        assert bot.session.failure.cause is Cause.FLOOD
    else:
        assert bot.session.failure is None


async def test_late_replies_and_readies_are_dropped_and_counted(bot):
    starting = asyncio.ensure_future(bot.session.start_game("h", START, LIMIT_US))
    await bot.timeout()
    await expect_fault(starting)
    await miss_deadline(bot, 1)
    message = replies(("g", 1))
    message.ready.add(game_id="h")
    bot.say(message)
    await bot.wait_until_read()
    assert bot.session.dropped == 2
    assert not bot.session.unresponsive


async def test_garbage_is_a_strike_in_the_waiting_game(bot):
    pending = await bot.request()
    bot.time.pass_us(10)
    bot.say(b"\xff" * 9)
    strike = await expect_fault(pending)
    assert isinstance(strike, Strike)
    assert strike.cause is Cause.MALFORMED
    assert strike.evidence == Evidence(detail="the bytes are no linko.v1.BotMessage", elapsed_us=10)


async def test_garbage_in_a_batch_is_charged_with_the_time_and_the_size_of_the_batch(bot):
    for game in "hi":
        await bot.start(game)
    pending = [asyncio.ensure_future(request_soon(bot, game)) for game in "ghi"]
    await run_ready_tasks()
    bot.time.pass_us(3000)
    bot.say(b"\xff" * 9)
    for each in pending:
        evidence = (await expect_fault(each)).evidence
        assert (evidence.elapsed_us, evidence.wall_us, evidence.batch_size) == (1000, 3000, 3)


async def test_crash_in_a_batch_is_charged_with_the_time_and_the_size_of_the_batch(bot):
    for game in "hi":
        await bot.start(game)
    pending = [asyncio.ensure_future(request_soon(bot, game)) for game in "ghi"]
    await run_ready_tasks()
    bot.time.pass_us(3000)
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="exited")))
    faults = await asyncio.gather(*pending, return_exceptions=True)
    [forfeit] = [each for each in faults if isinstance(each, Forfeit)]
    evidence = forfeit.evidence
    assert (evidence.elapsed_us, evidence.wall_us, evidence.batch_size) == (1000, 3000, 3)


async def test_no_share_of_a_batch_with_garbage_is_above_the_time_of_the_batch(bot, monkeypatch):
    """A request with a large limit beside one with a small limit has nearly the whole time of the batch as its share."""
    await bot.start("h")
    pending = [
        asyncio.ensure_future(bot.session.request(game, 1, request_bytes(game, 1), limit_us))
        for game, limit_us in (("g", 1000), ("h", LIMIT_US))
    ]
    await run_ready_tasks()
    now_ns, calls = bot.session.pending_requests._now_ns, count(1)
    monkeypatch.setattr(
        bot.session.pending_requests, "_now_ns", lambda: now_ns() + 20_000 * next(calls)
    )
    bot.say(b"\xff" * 9)
    for each in pending:
        evidence = (await expect_fault(each)).evidence
        assert evidence.elapsed_us <= evidence.wall_us
        assert evidence.batch_size == 2


UNSOLICITED = {
    "replies": replies(("other", 1)),
    "readies": ready("other"),
    "hellos": hello(),
    "empty messages": b"",
    "garbage": b"\xff" * 9,
}


@pytest.mark.parametrize("kind", UNSOLICITED)
async def test_more_unsolicited_messages_than_the_quota_are_a_flood(bot, kind):
    for number in (1, 2):  # a reply starts a new quota
        bot.say(*[UNSOLICITED[kind]] * FLOOD_QUOTA)
        await bot.wait_until_read()
        pending = await bot.request(number=number)
        bot.say(replies(("g", number)))
        await pending
    bot.say(*[UNSOLICITED[kind]] * (FLOOD_QUOTA + 1))
    await bot.serving
    assert (await expect_fault(await bot.request(number=3))).cause is Cause.FLOOD


async def test_one_message_can_be_a_flood(bot):
    pending = await bot.request()
    bot.say(ready(*["other"] * (FLOOD_QUOTA + 1)))
    assert (await expect_fault(pending)).cause is Cause.FLOOD
    await bot.serving


async def test_more_streams_than_the_quota_are_a_flood(bot):
    for _ in range(FLOOD_QUOTA + 1):
        assert bot.session.failure is None
        with pytest.raises(grpc.aio.AbortError):
            await bot.session.serve(FakeStream())
    assert bot.session.failure.cause is Cause.FLOOD


async def test_too_large_message_is_a_forfeit(bot):
    pending = await bot.request()
    bot.say(b"x" * (MESSAGE_LIMIT + 1))
    forfeit = await expect_fault(pending)
    assert forfeit.cause is Cause.TOO_LARGE
    assert forfeit.evidence.detail == (
        f"the bot sent a message of {MESSAGE_LIMIT + 1} bytes; the limit is {MESSAGE_LIMIT}"
    )
    await bot.serving


async def test_bot_with_a_too_large_first_message_is_told_why(new_bot):
    new_bot.say(b"x" * (MESSAGE_LIMIT + 1))
    forfeit = await expect_fault(new_bot.session.wait_for_hello(LIMIT_US, new_bot.time.now_ns))
    assert forfeit.cause is Cause.TOO_LARGE
    assert new_bot.stream.written == [messages.goodbye(forfeit.evidence.detail)]


# Failures


@pytest.fixture
def offered(monkeypatch):
    """The games that chance had to choose from when a session failed; it chooses the last one."""
    games = []
    monkeypatch.setattr(session.secrets, "choice", lambda each: games.extend(each) or each[-1])
    return games


async def test_failure_is_charged_in_one_game_and_the_others_are_void(bot, offered):
    for game in "hi":
        await bot.start(game)
    second = await bot.request("g")
    first = await bot.request("h")
    bot.time.pass_us(500)
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="the bot was ended by SIGSEGV")))
    assert [each.game_id for each in offered] == ["g", "h"]
    assert (await expect_fault(first)).cause is Cause.CRASH
    with pytest.raises(
        VoidGame, match="has failed in another game: crash: the bot was ended by SIGSEGV"
    ):
        await second
    with pytest.raises(VoidGame):
        await (await bot.request("i"))
    assert (await expect_fault(await bot.request("h", 2))).cause is Cause.CRASH


async def test_bot_cannot_choose_by_its_replies_which_game_its_failure_costs(bot, offered):
    for game in "hi":
        await bot.start(game)
    tasks = {game: asyncio.ensure_future(request_soon(bot, game)) for game in "ghi"}
    await run_ready_tasks()
    bot.say(replies(("g", 1), ("i", 1)))
    await bot.wait_until_read()
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="gone")))
    assert [each.game_id for each in offered] == ["g", "h", "i"]
    assert (await expect_fault(tasks["i"])).cause is Cause.CRASH
    for game in "gh":
        with pytest.raises(VoidGame):
            await tasks[game]


async def start_soon(bot, *games):
    """Send the starts of games, and return the tasks that wait for the readies."""
    starts = (bot.session.start_game(game, START, LIMIT_US) for game in games)
    tasks = [asyncio.ensure_future(start) for start in starts]
    await run_ready_tasks()
    return tasks


async def test_failure_costs_no_game_that_starts_if_the_bot_is_ready_in_another(bot, offered):
    starts = await start_soon(bot, "h", "i")
    pending = await bot.request("g")
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="gone")))
    assert [each.game_id for each in offered] == ["g"]
    assert (await expect_fault(pending)).cause is Cause.CRASH
    for start in starts:
        with pytest.raises(VoidGame):
            await start


async def test_failure_during_game_starts_is_charged_in_the_game_of_the_next_request(bot, offered):
    starts = await start_soon(bot, "h", "i")
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="gone")))
    assert offered == []
    for start in starts:
        with pytest.raises(VoidGame):
            await start
    assert (await expect_fault(await bot.request("g"))).cause is Cause.CRASH


async def test_failure_of_a_bot_that_is_ready_in_no_game_costs_a_game_that_starts(new_bot, offered):
    await new_bot.greet()
    first, second = await start_soon(new_bot, "g", "h")
    new_bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="gone")))
    assert [each.game_id for each in offered] == ["g", "h"]
    with pytest.raises(VoidGame):
        await first
    assert (await expect_fault(second)).cause is Cause.CRASH


async def test_bot_that_is_silent_at_all_game_starts_is_charged_with_a_crash_at_one(
    new_bot, offered
):
    await new_bot.greet()
    for _ in range(MAX_MISSED - 1):
        (start,) = await start_soon(new_bot, "g")
        await new_bot.timeout()
        assert (await expect_fault(start)).cause is Cause.GAME_START_TIMEOUT
    overdue, waiting = await start_soon(new_bot, "g", "h")
    await new_bot.timeout()
    assert (await expect_fault(overdue)).cause is Cause.GAME_START_TIMEOUT
    assert [each.game_id for each in offered] == ["h"]
    assert (await expect_fault(waiting)).cause is Cause.CRASH


async def test_failure_without_a_pending_request_is_charged_in_the_game_of_the_next_one(bot):
    await bot.start("h")
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="gone")))
    assert (await expect_fault(await bot.request("h"))).cause is Cause.CRASH
    with pytest.raises(VoidGame):
        await (await bot.request("g"))


async def test_void_game_is_charged_with_a_failure_only_if_no_other_game_is(bot):
    for game in "hi":
        await bot.start(game)
    assert bot.session.abandon_game("i") is None
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="gone")))
    assert bot.session.abandon_game("g").evidence.detail == "gone"
    assert bot.session.abandon_game("h") is None


async def test_void_game_is_not_charged_if_the_referee_ends_the_bot(bot):
    bot.session.fail(VoidGame("ended"))
    assert bot.session.abandon_game("g") is None


async def test_second_failure_is_ignored(bot):
    bot.session.fail(Forfeit(Cause.FLOOD, Evidence(detail="first")))
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="second")))
    assert (await expect_fault(await bot.request())).cause is Cause.FLOOD


async def test_bot_that_the_referee_ends_is_not_charged(bot):
    pending = await bot.request()
    bot.session.fail(VoidGame("ended"))
    with pytest.raises(VoidGame):
        await pending
    with pytest.raises(VoidGame):
        await (await bot.request())


async def test_end_of_the_stream_closes_the_session(bot):
    bot.stream.hang_up()
    await bot.serving
    assert bot.session.closed.is_set()


async def test_bug_of_the_referee_is_not_charged_to_the_bot(bot):
    pending = await bot.request()
    bot.say(ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        await pending
    await bot.serving


async def test_error_of_grpc_closes_the_session_without_a_failure(bot):
    bot.say(grpc.aio.InternalError("broken"))
    await bot.serving
    assert bot.session.failure is None
    assert bot.session.closed.is_set()


async def test_bot_that_reads_nothing_fails_after_the_core_wait_limit(bot):
    bot.stream.writable.clear()
    pending = await bot.request()
    await bot.timeout()
    assert not bot.session.closed.is_set()
    bot.time.creep_us(CORE_WAIT_LIMIT_US - LIMIT_US)
    assert bot.session.closed.is_set(), "so that the watcher of the process kills it"
    bot.stream.writable.set()  # gRPC ends a write when the process is gone
    assert (await expect_fault(pending)).cause is Cause.TIMEOUT
    forfeit = await expect_fault(await bot.request(number=2))
    assert forfeit.cause is Cause.CRASH
    assert forfeit.evidence.detail == "the bot does not read its stream"


async def test_bot_that_reads_only_a_part_of_a_request_holds_nothing_up(bot):
    """It can reply to a request before it has read the last bytes."""
    bot.stream.writable.clear()
    pending = await bot.request()
    bot.say(replies(("g", 1)))
    assert (await pending)[0] == bytes_of("g", 1)
    pending = await bot.request(number=2)
    await bot.timeout()
    assert (await expect_fault(pending)).cause is Cause.TIMEOUT
    bot.time.creep_us(CORE_WAIT_LIMIT_US - LIMIT_US)
    assert bot.session.closed.is_set()
    assert (await expect_fault(await bot.request(number=3))).cause is Cause.CRASH


async def test_bot_plays_on_if_grpc_reports_late_that_it_has_read(bot):
    bot.stream.writable.clear()
    pending = await bot.request()
    await bot.timeout()
    bot.stream.writable.set()
    assert (await expect_fault(pending)).cause is Cause.TIMEOUT
    pending = await bot.request(number=2)
    bot.time.creep_us(CORE_WAIT_LIMIT_US - LIMIT_US)
    bot.say(replies(("g", 1), ("g", 2)))
    assert (await pending)[0] == bytes_of("g", 2)
    assert bot.session.failure is None
    assert bot.session.dropped == 1


async def test_message_at_the_end_of_a_write_is_written_after_those_that_wait(bot):
    bot.stream.writable.clear()
    first = await bot.request(number=1)
    bot.say(replies(("g", 1)))  # before gRPC reports that the bot has read the request
    await first
    second = await bot.request(number=2)
    bot.stream.writable.set()
    bot.session.say_goodbye(messages.goodbye())
    await run_ready_tasks()
    assert bot.stream.written == [request_bytes("g", 1), request_bytes("g", 2), messages.goodbye()]
    second.cancel()


async def test_request_that_waits_at_the_end_of_the_stream_becomes_overdue(bot):
    await bot.start("h")
    first, second = await bot.request("g"), await bot.request("h")
    bot.session._outbox.close()
    for pending in (first, second):
        await bot.timeout()
        assert (await expect_fault(pending)).cause is Cause.TIMEOUT
    assert bot.stream.written == [request_bytes("g", 1)]


async def test_nothing_is_written_after_the_end_of_the_stream(bot):
    bot.stream.hang_up()
    await bot.serving
    pending = await bot.request()
    bot.session.end_game("h", START)
    await run_ready_tasks()
    assert bot.stream.written == []
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="gone")))
    assert (await expect_fault(pending)).cause is Cause.CRASH


async def test_game_end_travels_with_the_next_message(bot):
    bot.session.end_game("g", messages.goodbye("stands for a game end"))
    await run_ready_tasks()
    assert bot.stream.written == []
    bot.session.say_goodbye(messages.goodbye())
    await run_ready_tasks()
    [message] = bot.stream.written
    assert message == messages.goodbye("stands for a game end") + messages.goodbye()


async def test_game_end_travels_with_a_request_of_the_only_game_that_is_left(bot):
    await bot.start("h")
    end = messages.goodbye("stands for a game end")
    bot.session.end_game("h", end)
    pending = await bot.request("g")
    assert bot.stream.written == [end + request_bytes("g", 1)]
    bot.say(replies(("g", 1)))
    await pending


async def test_void_game_is_forgotten_without_an_end(bot):
    await bot.start("h")
    bot.session.abandon_game("h")
    pending = await bot.request("g")
    assert bot.stream.written == [request_bytes("g", 1)], "at once, as in its only game"
    bot.say(replies(("g", 1)))
    await pending
    bot.session.abandon_game("g")
    assert not bot.session.is_needed


# Scheduling


NORMAL, IDLE, STOPPED = Scheduling.NORMAL, Scheduling.IDLE, Scheduling.STOPPED


async def test_bot_gets_cores_only_while_something_is_expected_of_it(new_bot):
    assert new_bot.take_scheduled() == []
    await new_bot.greet()
    assert new_bot.take_scheduled() == [STOPPED]
    await new_bot.start("g")
    assert new_bot.take_scheduled() == [IDLE, NORMAL, IDLE]
    pending = await new_bot.request("g", 1)
    assert new_bot.take_scheduled() == [NORMAL]
    new_bot.say(replies(("g", 1)))
    await pending
    assert new_bot.take_scheduled() == [IDLE]
    new_bot.session.end_game("g", START)
    assert new_bot.take_scheduled() == [STOPPED]


async def test_bot_is_let_go_before_its_request_is_written(new_bot):
    await new_bot.greet()
    await new_bot.start("g")
    new_bot.written_before.clear()
    pending = await new_bot.request("g", 1)
    assert (new_bot.written_before, len(new_bot.stream.written)) == ([0], 1)
    new_bot.say(replies(("g", 1)))
    await pending
    await new_bot.start("h")  # with two games, requests are written as a batch
    new_bot.written_before.clear()
    pending = await new_bot.request("g", 2)
    assert (new_bot.written_before, len(new_bot.stream.written)) == ([0], 1)
    pending.cancel()


async def test_bot_is_idle_when_the_last_request_of_its_batch_is_answered(new_bot):
    await new_bot.greet()
    for game in "gh":
        await new_bot.start(game)
    new_bot.take_scheduled()
    tasks = [asyncio.ensure_future(request_soon(new_bot, game)) for game in "gh"]
    await run_ready_tasks()
    assert new_bot.take_scheduled() == [NORMAL]
    new_bot.say(replies(("g", 1)))
    await new_bot.wait_until_read()
    assert new_bot.take_scheduled() == []
    new_bot.say(replies(("h", 1)))
    await asyncio.wait(tasks)
    assert new_bot.take_scheduled() == [IDLE]
    new_bot.session.end_game("g", START)
    assert new_bot.take_scheduled() == []


async def test_bot_that_is_late_or_replies_nonsense_becomes_idle(new_bot):
    await new_bot.greet()
    await new_bot.start("g")
    late = await new_bot.request("g", 1)
    await new_bot.timeout()
    with pytest.raises(Strike):
        await late
    assert new_bot.take_scheduled()[-1] is IDLE
    malformed = await new_bot.request("g", 2)
    new_bot.say(b"\xff")
    with pytest.raises(Strike):
        await malformed
    assert new_bot.take_scheduled() == [NORMAL, IDLE]


async def end_game_in_silence(bot):
    """Let a new bot miss the limit of its last decision, and end the game."""
    await bot.greet()
    await bot.start("g")
    await miss_deadline(bot, 1)
    bot.session.end_game("g", START)
    await run_ready_tasks()


async def test_bot_late_in_its_last_decision_has_a_second_for_its_late_reply(new_bot):
    await end_game_in_silence(new_bot)
    assert new_bot.take_scheduled()[-1] is IDLE
    assert new_bot.session.is_needed
    new_bot.time.creep_us(990_000)
    assert new_bot.take_scheduled() == []
    new_bot.time.creep_us(20_000)
    assert new_bot.take_scheduled() == [STOPPED]
    assert not new_bot.session.is_needed


async def test_bot_is_stopped_after_its_game_even_if_the_timer_is_early(new_bot):
    await end_game_in_silence(new_bot)
    new_bot.take_scheduled()
    new_bot.time.early_us = 1_000
    new_bot.time.creep_us(1_010_000)
    assert new_bot.take_scheduled() == [STOPPED]
    assert not new_bot.session.is_needed


async def test_second_for_a_late_reply_begins_at_the_last_missed_deadline(new_bot):
    await new_bot.greet()
    await new_bot.start("g")
    await miss_deadline(new_bot, 1)
    second = asyncio.ensure_future(new_bot.session.request("g", 2, b"", LIMIT_US // 2))
    await run_ready_tasks()
    new_bot.time.creep_us(LIMIT_US // 2 + REPLY_GRACE_US)
    await expect_fault(second)
    new_bot.session.end_game("g", START)
    new_bot.take_scheduled()
    new_bot.time.creep_us(990_000)
    assert new_bot.take_scheduled() == []
    new_bot.time.creep_us(20_000)
    assert new_bot.take_scheduled() == [STOPPED]


async def test_bot_is_stopped_after_its_game_if_its_late_reply_has_come(new_bot):
    await new_bot.greet()
    await new_bot.start("g")
    await miss_deadline(new_bot, 1)
    new_bot.say(replies(("g", 1)))
    await new_bot.wait_until_read()
    new_bot.session.end_game("g", START)
    await run_ready_tasks()
    assert new_bot.take_scheduled()[-1] is STOPPED


async def test_bot_is_stopped_when_its_late_reply_comes_after_its_game(new_bot):
    await new_bot.greet()
    await new_bot.start("g")
    await miss_deadline(new_bot, 1)
    await miss_deadline(new_bot, 2)
    new_bot.session.end_game("g", START)
    new_bot.take_scheduled()
    new_bot.say(replies(("g", 1)))
    await new_bot.wait_until_read()
    assert new_bot.take_scheduled() == []
    new_bot.say(replies(("g", 2)))
    await new_bot.wait_until_read()
    assert new_bot.take_scheduled() == [STOPPED]


async def test_bot_that_is_not_ready_in_time_is_stopped(new_bot):
    await new_bot.greet()
    starting = asyncio.ensure_future(new_bot.session.start_game("g", START, LIMIT_US))
    await new_bot.timeout()
    with pytest.raises(Forfeit):
        await starting
    assert new_bot.take_scheduled() == [STOPPED, IDLE, NORMAL, IDLE, STOPPED]


async def test_scheduling_does_not_change_after_a_failure(new_bot):
    await new_bot.greet()
    await new_bot.start("g")
    pending = await new_bot.request("g", 1)
    new_bot.take_scheduled()
    new_bot.session.fail(VoidGame("the process has ended"))
    with pytest.raises(VoidGame):
        await pending
    assert new_bot.take_scheduled() == []
