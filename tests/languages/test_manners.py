"""Each of the six bots starts and ends correctly and tolerates unknown parts of messages."""

import signal

import pytest
from bare_referee import TOKEN, Bot
from corpus import load

from referee.pb import play_pb2, table_pb2
from referee.protocol.values import layer_message
from referee.rules.ruleset import Layer

pytestmark = [
    pytest.mark.timeout(900),  # the first test with a bot builds it
    pytest.mark.unmeasured,
]

AT_ONCE = 64
ENDED_BY_SIGTERM = {0, -signal.SIGTERM, 128 + signal.SIGTERM}  # the last is the exit code of a JVM
NO_REFEREE = 2
BROKEN_LIMIT_S = 10
"""A client may retry for a while before it reports that nobody listens."""
NEW_FIELD = b"\xc2\x3e\x06future"
"""Field 1000 with 6 bytes; no message has this field."""


@pytest.fixture
async def bot(spec, short_folder):
    """Return a bot that has sent its hello."""
    async with Bot(spec, short_folder) as running:
        await running.hello()
        yield running


@pytest.fixture
async def in_game(bot):
    """Return a bot in the middle of a game."""
    seat = load()[0]
    await bot.exchange(play_pb2.RefereeMessage(game_starts=seat.sent.game_starts))
    await bot.exchange(play_pb2.RefereeMessage(requests=seat.sent.requests[:1]))
    return bot


def start(seat):
    return play_pb2.RefereeMessage(game_starts=[seat.start])


async def replies_correctly(bot, seat, number):
    """Return True if the bot gives the expected reply to one request of a game that has started."""
    answer = await bot.exchange(play_pb2.RefereeMessage(requests=[seat.sent.requests[number]]))
    return answer == play_pb2.BotMessage(replies=[seat.expected.replies[number]])


# Start


async def test_hello_has_version_token_name_and_number_of_games(spec, short_folder):
    async with Bot(spec, short_folder) as bot:
        hello = await bot.hello()
    assert hello.protocol_version == 1
    assert hello.token == TOKEN
    assert hello.name
    assert hello.max_games == AT_ONCE


@pytest.mark.parametrize(
    "variables",
    [{}, {"REFEREE_ADDRESS": "unix:/nowhere"}, {"REFEREE_TOKEN": TOKEN}],
    ids=["neither", "no token", "no address"],
)
async def test_bot_started_by_hand_prints_a_hint_and_exits_with_2(spec, short_folder, variables):
    async with Bot(spec, short_folder, variables) as bot:
        assert await bot.exit_code(BROKEN_LIMIT_S) == NO_REFEREE
        stdout, stderr = await bot.read_output()
    assert "referee" in (stdout + stderr).lower()


async def test_address_without_a_referee_is_an_error(spec, short_folder):
    variables = {"REFEREE_ADDRESS": f"unix:{short_folder / 'none'}", "REFEREE_TOKEN": TOKEN}
    async with Bot(spec, short_folder, variables) as bot:
        assert await bot.exit_code(BROKEN_LIMIT_S) > 0
        _, stderr = await bot.read_output()
    assert stderr


# End


async def test_bot_exits_with_0_after_goodbye(in_game):
    await in_game.send_goodbye()
    assert await in_game.receive() is None
    assert await in_game.exit_code() == 0
    assert in_game.list_other_processes() == []
    assert await in_game.read_output() == ("", "")


async def test_reason_of_a_goodbye_is_printed(bot):
    await bot.send_goodbye("too many messages")
    assert await bot.exit_code() == 0
    assert "too many messages" in "".join(await bot.read_output())


async def test_goodbye_is_read_after_requests_whose_replies_cannot_be_sent(in_game):
    in_game.pause()
    for request in load()[0].sent.requests[1:9]:
        await in_game.send(play_pb2.RefereeMessage(requests=[request]))
    await in_game.send_goodbye("no game is left")
    await in_game.close_stream()
    in_game.resume()
    assert await in_game.exit_code() == 0
    assert "no game is left" in "".join(await in_game.read_output())


async def test_bot_exits_on_sigterm(in_game):
    in_game.terminate()
    assert await in_game.exit_code() in ENDED_BY_SIGTERM
    assert in_game.list_other_processes() == []


async def test_bot_exits_with_an_error_when_the_stream_ends_without_goodbye(in_game):
    await in_game.close_stream()
    assert await in_game.exit_code() > 0
    assert in_game.list_other_processes() == []
    assert (await in_game.read_output())[1]


async def test_bot_exits_with_an_error_when_a_message_cannot_be_decoded(in_game):
    await in_game.send_bytes(b"\xff")
    assert await in_game.exit_code(BROKEN_LIMIT_S) > 0
    assert (await in_game.read_output())[1]


async def test_bot_exits_with_an_error_when_the_stream_breaks(in_game):
    await in_game.break_connection()
    assert await in_game.exit_code() > 0
    assert in_game.list_other_processes() == []
    assert (await in_game.read_output())[1]


# Parts that later versions of the schema may add


def add_unknown_field(message):
    """Add an unknown field to a message and return the message."""
    message.MergeFromString(NEW_FIELD)
    return message


@pytest.mark.parametrize("kind", [0, 7, 1000])
async def test_unknown_kind_of_decision_gets_the_first_legal_action(bot, kind):
    seat = load()[0]
    await bot.exchange(start(seat))
    legal = [
        table_pb2.Action(play=layer_message(Layer(3, 1, 0))),
        table_pb2.Action(draw_display=table_pb2.DrawDisplay(slot=2, cards=[14, 13])),
        table_pb2.Action(play=layer_message(Layer(13, 4, 2))),
        table_pb2.Action(choice=table_pb2.CHOICE_TAKE),
    ]
    for rotated in range(len(legal)):
        actions = legal[rotated:] + legal[:rotated]
        request = play_pb2.Request(
            game_id=seat.start.game_id,
            decision_id=900 + rotated,
            kind=kind,
            view=seat.start.view,
            legal=actions,
        )
        answer = await bot.exchange(play_pb2.RefereeMessage(requests=[request]))
        assert [reply.decision_id for reply in answer.replies] == [900 + rotated]
        assert answer.replies[0].action == actions[0]
    assert await replies_correctly(bot, seat, 0)


async def test_message_with_unknown_fields_only_gets_no_answer(bot):
    seat = load()[0]
    await bot.send(add_unknown_field(play_pb2.RefereeMessage()))
    await bot.exchange(start(seat))
    await bot.send(add_unknown_field(play_pb2.RefereeMessage()))
    assert await replies_correctly(bot, seat, 0)


async def test_unknown_fields_events_and_rulesets_do_not_change_the_replies(bot):
    seat = max(load(), key=lambda seat: seat.size)
    begins = play_pb2.GameStart.FromString(seat.start.SerializeToString())
    begins.ruleset.name = "of-the-future"
    for part in (begins, begins.ruleset, begins.view, begins.clocks):
        add_unknown_field(part)
    ready = await bot.exchange(play_pb2.RefereeMessage(game_starts=[begins]))
    assert ready == play_pb2.BotMessage(ready=seat.expected.ready)
    for known, expected in zip(seat.sent.requests, seat.expected.replies, strict=True):
        request = play_pb2.Request.FromString(known.SerializeToString())
        request.events.add().MergeFromString(NEW_FIELD)
        for part in (request, request.view, *request.view.display, *request.view.tables):
            add_unknown_field(part)
        answer = await bot.exchange(add_unknown_field(play_pb2.RefereeMessage(requests=[request])))
        assert list(answer.replies) == [expected]


async def test_void_game_does_not_disturb_the_next_one(bot):
    first, second = [seat for seat in load() if seat.size > 1][:2]
    await bot.exchange(start(first))
    void = play_pb2.GameEnd(game_id=first.start.game_id, reason="the referee has a fault")
    message = start(second)
    message.game_ends.append(void)
    assert await bot.exchange(message) == play_pb2.BotMessage(ready=second.expected.ready)
    assert await replies_correctly(bot, second, 0)
