"""What is made of a bot's messages: on a fake stream and a fake clock."""

import asyncio

import grpc
import pytest
from fakes import FakeStream, FakeTime

from referee.bots import session
from referee.bots.clock import CORE_WAIT_LIMIT_US, REPLY_GRACE_US
from referee.bots.inbox import FLOOD_QUOTA
from referee.bots.server import MESSAGE_LIMIT
from referee.bots.session import Session
from referee.errors import Cause, Evidence, Forfeit, Strike, VoidGame
from referee.pb import play_pb2, table_pb2
from referee.protocol import encode

TOKEN, OTHERS_TOKEN, GUESSED = "own", "of another bot", "guessed"
LIMIT_US = 1_000_000
START = encode.goodbye("in the place of a start")
UNKNOWN = bytes((15 << 3, 1))
"""A field that no message of the schema has."""
LEAVE = table_pb2.Action(choice=table_pb2.CHOICE_LEAVE)


def hello(version=1, token=TOKEN, max_games=1):
    return play_pb2.BotMessage(
        hello=play_pb2.Hello(protocol_version=version, token=token, max_games=max_games)
    )


def action(game, number):
    """A different one for each decision."""
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
    """A session, with the test as its bot."""

    def __init__(self):
        self.time = FakeTime()
        self.stream = FakeStream()
        self.session = Session(
            TOKEN, {TOKEN, OTHERS_TOKEN}.__contains__, self.time.clock, lambda: None
        )
        self.serving = asyncio.ensure_future(self.session.serve(self.stream))

    def say(self, *messages):
        for message in messages:
            self.stream.say(message)

    async def greet(self):
        self.say(hello())
        return await self.session.wait_for_hello(LIMIT_US, self.time.now_ns)

    async def start(self, game):
        starting = asyncio.ensure_future(self.session.start_game(game, START, LIMIT_US))
        await turn()
        self.say(ready(game))
        await starting
        self.stream.written.clear()

    async def request(self, game="g", number=1):
        """Ask, and return what comes of it as a task."""
        pending = asyncio.ensure_future(
            self.session.request(game, number, request_bytes(game, number), LIMIT_US)
        )
        await turn()
        return pending

    async def heard(self):
        """Wait until all that was said has been looked at."""
        while not self.stream.said.empty():
            await turn()
        await turn()

    async def timeout(self):
        await turn()
        self.time.creep_us(LIMIT_US + REPLY_GRACE_US)


async def turn():
    """Let everybody run who can."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def stranger():
    bot = Bot()
    yield bot
    bot.session.fail(VoidGame("the test is over"))
    bot.stream.hang_up()
    await asyncio.wait((bot.serving,))
    assert bot.serving.cancelled() or bot.serving.exception() is None


@pytest.fixture
async def bot(stranger):
    await stranger.greet()
    await stranger.start("g")
    return stranger


async def fault(pending):
    with pytest.raises((Strike, Forfeit)) as raised:
        await pending
    return raised.value


# Hello


async def test_hello(stranger):
    assert (await stranger.greet()).protocol_version == 1
    assert stranger.session.said_hello


async def test_a_hello_may_come_before_anybody_waits_for_it(stranger):
    stranger.say(hello(max_games=4))
    await stranger.heard()
    assert (await stranger.session.wait_for_hello(LIMIT_US, stranger.time.now_ns)).max_games == 4


@pytest.mark.parametrize(
    ("said", "cause", "why"),
    [
        (
            hello(version=2),
            Cause.HANDSHAKE,
            "the bot speaks protocol version 2, the referee 1",
        ),
        (hello(version=0), Cause.HANDSHAKE, "the bot speaks protocol version 0, the referee 1"),
        (hello(token=GUESSED), Cause.HANDSHAKE, "the hello has a wrong token"),
        (hello(token=""), Cause.HANDSHAKE, "the hello has a wrong token"),
        (hello(token=OTHERS_TOKEN), Cause.IMPERSONATION, "the hello has another bot's token"),
        (ready("g"), Cause.HANDSHAKE, "the first message has no hello"),
        (b"", Cause.HANDSHAKE, "the first message has no hello"),
        (
            b"\xff" * 9,
            Cause.HANDSHAKE,
            "the first message is no hello: the bytes are no linko.v1.BotMessage",
        ),
    ],
)
async def test_a_wrong_hello(stranger, said, cause, why):
    stranger.say(said)
    forfeit = await fault(stranger.session.wait_for_hello(LIMIT_US, stranger.time.now_ns))
    assert isinstance(forfeit, Forfeit)
    assert forfeit.cause is cause
    assert forfeit.evidence.detail == why
    (goodbye,) = stranger.stream.written
    assert play_pb2.RefereeMessage.FromString(goodbye).goodbye.reason == why
    await stranger.serving
    assert not stranger.session.said_hello


async def test_a_wrong_hello_of_a_bot_that_leaves_before_it_is_told(stranger):
    stranger.stream.writable.clear()
    stranger.say(hello(version=2))
    await stranger.heard()
    stranger.serving.cancel()  # as gRPC does with a stream that is gone
    await turn()
    assert stranger.session.failure is not None
    forfeit = await fault(stranger.session.wait_for_hello(LIMIT_US, stranger.time.now_ns))
    assert forfeit.cause is Cause.HANDSHAKE


async def test_no_hello_in_time_since_the_start_of_the_process(stranger):
    began_ns = stranger.time.now_ns
    stranger.time.pass_us(LIMIT_US // 2)
    waiting = asyncio.ensure_future(stranger.session.wait_for_hello(LIMIT_US, began_ns))
    await turn()
    stranger.time.creep_us(LIMIT_US // 2 + REPLY_GRACE_US)
    forfeit = await fault(waiting)
    assert forfeit.cause is Cause.CONNECT_TIMEOUT
    assert forfeit.evidence.detail == "no hello within 1 s"


async def test_a_second_stream_is_refused_and_the_first_kept(bot):
    with pytest.raises(grpc.aio.AbortError):
        await bot.session.serve(FakeStream())
    pending = await bot.request()
    bot.say(replies(("g", 1)))
    assert (await pending)[0] == bytes_of("g", 1)


# Games and answers


async def test_a_game_that_nobody_is_ready_for(stranger):
    await stranger.greet()
    starting = asyncio.ensure_future(stranger.session.start_game("g", START, LIMIT_US))
    await stranger.timeout()
    forfeit = await fault(starting)
    assert forfeit.cause is Cause.GAME_START_TIMEOUT
    assert stranger.session.unresponsive


async def test_garbage_in_the_place_of_a_ready_is_no_strike(stranger):
    await stranger.greet()
    starting = asyncio.ensure_future(stranger.session.start_game("g", START, LIMIT_US))
    await turn()
    stranger.say(b"\xff" * 9, ready("g"))
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
async def test_an_answer(bot, message, unsolicited):
    pending = await bot.request(number=7)
    assert bot.stream.written == [request_bytes("g", 7)]
    bot.time.pass_us(1234)
    bot.say(message)
    assert await pending == (bytes_of("g", 7), 1234, 0)
    assert bot.session.dropped == unsolicited


async def test_an_answer_without_an_action_is_one_that_names_none(bot):
    pending = await bot.request()
    bot.say(play_pb2.BotMessage(replies=[play_pb2.Reply(game_id="g", decision_id=1)]))
    assert (await pending)[0] == b""


async def test_an_answer_with_the_number_of_a_ready_is_none(stranger):
    await stranger.greet()
    starting = asyncio.ensure_future(stranger.session.start_game("g", START, LIMIT_US))
    await turn()
    stranger.say(replies(("g", 0)))
    await stranger.heard()
    assert not starting.done()
    assert stranger.session.dropped == 0
    stranger.say(ready("g"))
    await starting


async def test_a_request_is_written_at_once_where_there_is_one_game(bot):
    pending = asyncio.ensure_future(bot.session.request("g", 1, request_bytes("g", 1), LIMIT_US))
    await asyncio.sleep(0)
    assert bot.stream.written == [request_bytes("g", 1)]
    bot.say(replies(("g", 1)))
    await pending


async def test_requests_of_several_games_go_as_one_message(bot):
    await bot.start("h")
    await bot.start("i")
    pending = [
        asyncio.ensure_future(bot.session.request(game, 1, request_bytes(game, 1), LIMIT_US))
        for game in "ghi"
    ]
    await turn()
    (written,) = bot.stream.written
    asked = play_pb2.RefereeMessage.FromString(written).requests
    assert [each.game_id for each in asked] == ["g", "h", "i"]
    bot.say(replies(("i", 1), ("g", 1), ("h", 1)))
    assert [(await each)[0] for each in pending] == [bytes_of(game, 1) for game in "ghi"]


async def test_what_comes_while_something_is_written_waits_its_turn(bot):
    await bot.start("h")
    bot.stream.writable.clear()
    first = await bot.request("g")
    second = await bot.request("h")
    bot.session.end_game("i", START)
    await turn()
    assert bot.stream.written == [request_bytes("g", 1)]
    bot.time.pass_us(1000)
    bot.stream.writable.set()
    await turn()
    assert bot.stream.written == [request_bytes("g", 1), request_bytes("h", 1) + START]
    bot.say(replies(("g", 1), ("h", 1)))
    assert (await first)[1] == 1000
    assert (await second)[1] == 0, "its time began when it was written"


async def test_what_ends_beside_the_only_game_is_sent_after_its_request(bot):
    bot.stream.writable.clear()
    pending = await bot.request()
    bot.session.end_game("h", START)
    await turn()
    assert bot.stream.written == [request_bytes("g", 1)]
    bot.stream.writable.set()
    await turn()
    assert bot.stream.written == [request_bytes("g", 1), START]
    bot.say(replies(("g", 1)))
    await pending


async def test_a_reply_that_is_seen_a_little_after_the_deadline(bot):
    pending = await bot.request()
    bot.time.creep_us(LIMIT_US + REPLY_GRACE_US - 1000)
    bot.say(replies(("g", 1)))
    _, elapsed_us, lag_us = await pending
    assert elapsed_us == LIMIT_US
    assert lag_us == REPLY_GRACE_US - 1000


async def test_a_late_reply_is_dropped(bot):
    pending = await bot.request()
    await bot.timeout()
    assert (await fault(pending)).cause is Cause.TIMEOUT
    assert bot.session.unresponsive
    bot.say(replies(("g", 1)))
    await bot.heard()
    assert bot.session.dropped == 1
    assert not bot.session.unresponsive
    pending = await bot.request(number=2)
    bot.say(replies(("g", 2)))
    assert (await pending)[0] == bytes_of("g", 2)


async def test_a_bot_that_gives_up_a_request_and_goes_on_is_not_silent(bot):
    await fault_of_late(bot, 1)
    assert bot.session.unresponsive
    pending = await bot.request(number=2)
    bot.say(replies(("g", 2)))
    await pending
    assert not bot.session.unresponsive
    await fault_of_late(bot, 3)
    assert bot.session.unresponsive


async def fault_of_late(bot, number):
    pending = await bot.request(number=number)
    await bot.timeout()
    return await fault(pending)


async def test_a_bot_that_answers_nothing_in_time_is_silent_until_it_has_answered_everything(bot):
    for number in (1, 2):
        pending = await bot.request(number=number)
        await bot.timeout()
        await fault(pending)
    bot.say(replies(("g", 1)))
    await bot.heard()
    assert bot.session.unresponsive
    bot.say(replies(("g", 2)))
    await bot.heard()
    assert not bot.session.unresponsive


async def test_replies_that_nobody_asked_for_are_dropped_and_counted(bot):
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
    await bot.heard()
    assert bot.session.dropped == 7
    assert bot.session.failure is None


async def test_garbage_is_a_strike_for_who_waits(bot):
    pending = await bot.request()
    bot.time.pass_us(10)
    bot.say(b"\xff" * 9)
    strike = await fault(pending)
    assert isinstance(strike, Strike)
    assert strike.cause is Cause.MALFORMED
    assert strike.evidence == Evidence(detail="the bytes are no linko.v1.BotMessage", elapsed_us=10)


UNSOLICITED = {
    "replies": replies(("other", 1)),
    "readies": ready("other"),
    "hellos": hello(),
    "empty messages": b"",
    "garbage": b"\xff" * 9,
}


@pytest.mark.parametrize("kind", UNSOLICITED)
async def test_more_than_anybody_asked_for(bot, kind):
    for number in (1, 2):  # an answer opens a new quota
        bot.say(*[UNSOLICITED[kind]] * FLOOD_QUOTA)
        await bot.heard()
        pending = await bot.request(number=number)
        bot.say(replies(("g", number)))
        await pending
    bot.say(*[UNSOLICITED[kind]] * (FLOOD_QUOTA + 1))
    await bot.serving
    assert (await fault(await bot.request(number=3))).cause is Cause.FLOOD


async def test_one_message_can_be_a_flood(bot):
    pending = await bot.request()
    bot.say(ready(*["other"] * (FLOOD_QUOTA + 1)))
    assert (await fault(pending)).cause is Cause.FLOOD
    await bot.serving


async def test_streams_without_end_are_a_flood(bot):
    for _ in range(FLOOD_QUOTA + 1):
        assert bot.session.failure is None
        with pytest.raises(grpc.aio.AbortError):
            await bot.session.serve(FakeStream())
    assert bot.session.failure.cause is Cause.FLOOD


async def test_a_message_over_the_limit(bot):
    pending = await bot.request()
    bot.say(b"x" * (MESSAGE_LIMIT + 1))
    forfeit = await fault(pending)
    assert forfeit.cause is Cause.TOO_LARGE
    assert forfeit.evidence.detail == f"a message of {MESSAGE_LIMIT + 1} bytes"
    await bot.serving


async def test_a_first_message_over_the_limit_is_told_why(stranger):
    stranger.say(b"x" * (MESSAGE_LIMIT + 1))
    forfeit = await fault(stranger.session.wait_for_hello(LIMIT_US, stranger.time.now_ns))
    assert forfeit.cause is Cause.TOO_LARGE
    assert stranger.stream.written == [encode.goodbye(forfeit.evidence.detail)]


# Failures


async def test_all_who_wait_are_told_of_a_failure_each_with_its_own_time(bot):
    await bot.start("h")
    first = await bot.request("g")
    bot.time.pass_us(500)
    second = await bot.request("h")
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="was ended by SIGSEGV")))
    assert (await fault(first)).evidence.elapsed_us == 500
    assert (await fault(second)).evidence.elapsed_us == 0
    assert (await fault(await bot.request(number=2))).cause is Cause.CRASH


async def test_the_first_failure_counts(bot):
    bot.session.fail(Forfeit(Cause.FLOOD, Evidence(detail="first")))
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="second")))
    assert (await fault(await bot.request())).cause is Cause.FLOOD


async def test_a_bot_that_the_referee_ends_is_not_charged(bot):
    pending = await bot.request()
    bot.session.fail(VoidGame("ended"))
    with pytest.raises(VoidGame):
        await pending
    with pytest.raises(VoidGame):
        await (await bot.request())


async def test_the_end_of_the_stream(bot):
    bot.stream.hang_up()
    await bot.serving
    assert bot.session.closed.is_set()


async def test_a_bug_of_the_referee_is_not_charged(bot):
    pending = await bot.request()
    bot.say(ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        await pending
    await bot.serving


async def test_a_broken_stream_is_no_bug(bot):
    bot.say(grpc.aio.InternalError("broken"))
    await bot.serving
    assert bot.session.failure is None
    assert bot.session.closed.is_set()


async def test_a_bot_that_reads_nothing_holds_nobody_up(bot):
    bot.stream.writable.clear()
    pending = await bot.request()
    await bot.timeout()
    assert not bot.session.closed.is_set()
    bot.time.creep_us(CORE_WAIT_LIMIT_US - LIMIT_US)
    assert bot.session.closed.is_set(), "whoever watches the process ends it"
    bot.stream.writable.set()  # as it is when the process is gone
    assert (await fault(pending)).cause is Cause.TIMEOUT
    forfeit = await fault(await bot.request(number=2))
    assert forfeit.cause is Cause.CRASH
    assert forfeit.evidence.detail == "does not read its stream"


async def test_a_bot_is_not_given_up_when_grpc_tells_late_that_it_has_read(bot):
    bot.stream.writable.clear()
    pending = await bot.request()
    await bot.timeout()
    bot.stream.writable.set()
    assert (await fault(pending)).cause is Cause.TIMEOUT
    pending = await bot.request(number=2)
    bot.time.creep_us(CORE_WAIT_LIMIT_US - LIMIT_US)
    bot.say(replies(("g", 1), ("g", 2)))
    assert (await pending)[0] == bytes_of("g", 2)
    assert bot.session.failure is None
    assert bot.session.dropped == 1


async def test_nothing_is_written_to_a_stream_that_is_gone(bot):
    bot.stream.hang_up()
    await bot.serving
    pending = await bot.request()
    bot.session.end_game("h", START)
    await turn()
    assert bot.stream.written == []
    bot.session.fail(Forfeit(Cause.CRASH, Evidence(detail="gone")))
    assert (await fault(pending)).cause is Cause.CRASH


async def test_a_game_end_that_is_not_read_holds_no_next_game(bot, monkeypatch):
    """Nobody waits for a game end, so it has a limit of its own."""
    monkeypatch.setattr(session, "WRITE_LIMIT_S", 0.05)
    await bot.greet()
    await bot.start("g")
    bot.stream.writable.clear()
    bot.session.end_game("g", encode.goodbye("in the place of an end"))
    with pytest.raises(Forfeit) as caught:
        await bot.session.start_game("h", START, LIMIT_US)
    assert caught.value.cause is Cause.CRASH
    assert caught.value.evidence.detail == "does not read its stream"
    assert bot.session.closed.is_set()
