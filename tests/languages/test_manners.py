"""How each of the six begins and ends, and what it does with what it does not know."""

import signal

import pytest
from bare_referee import TOKEN, Bot
from corpus import load

from referee.pb import play_pb2, table_pb2
from referee.protocol.values import layer_message
from referee.rules.cards import Layer

pytestmark = [
    pytest.mark.timeout(900),  # the first test with a bot builds it
    pytest.mark.unmeasured,
]

AT_ONCE = 16
ENDED_BY_SIGTERM = {0, -signal.SIGTERM, 128 + signal.SIGTERM}  # the last is what a JVM makes of it
NO_REFEREE = 2
BROKEN_LIMIT_S = 10
"""A client may try to connect again for a while before it says that nobody is there."""
NEW_FIELD = b"\xc2\x3e\x06future"
"""Field 1000, as no message has it yet: 6 bytes."""


@pytest.fixture
async def bot(spec, short_folder):
    """One that has said hello."""
    async with Bot(spec, short_folder) as running:
        await running.hello()
        yield running


@pytest.fixture
async def in_game(bot):
    """One in the middle of a game."""
    seat = load()[0]
    await bot.ask(play_pb2.RefereeMessage(game_starts=seat.asked.game_starts))
    await bot.ask(play_pb2.RefereeMessage(requests=seat.asked.requests[:1]))
    return bot


def start(seat):
    return play_pb2.RefereeMessage(game_starts=[seat.start])


async def answers_rightly(bot, seat, number):
    """Whether it gives the expected answer to one request of a game that has started."""
    answer = await bot.ask(play_pb2.RefereeMessage(requests=[seat.asked.requests[number]]))
    return answer == play_pb2.BotMessage(replies=[seat.answered.replies[number]])


# The beginning


async def test_hello(spec, short_folder):
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
async def test_started_by_hand_it_says_so(spec, short_folder, variables):
    async with Bot(spec, short_folder, variables) as bot:
        assert await bot.exit_code(BROKEN_LIMIT_S) == NO_REFEREE
        stdout, stderr = await bot.printed()
    assert "referee" in (stdout + stderr).lower()


async def test_nobody_at_the_address(spec, short_folder):
    variables = {"REFEREE_ADDRESS": f"unix:{short_folder / 'none'}", "REFEREE_TOKEN": TOKEN}
    async with Bot(spec, short_folder, variables) as bot:
        assert await bot.exit_code(BROKEN_LIMIT_S) > 0
        _, stderr = await bot.printed()
    assert stderr


# The end


async def test_exits_on_goodbye(in_game):
    await in_game.goodbye()
    assert await in_game.hear() is None
    assert await in_game.exit_code() == 0
    assert in_game.left() == []
    assert await in_game.printed() == ("", "")


async def test_shows_the_reason_of_a_goodbye(bot):
    await bot.goodbye("you talk too much")
    assert await bot.exit_code() == 0
    assert "you talk too much" in "".join(await bot.printed())


async def test_exits_on_sigterm(in_game):
    in_game.terminate()
    assert await in_game.exit_code() in ENDED_BY_SIGTERM
    assert in_game.left() == []


async def test_exits_when_the_stream_ends_without_goodbye(in_game):
    in_game.hang_up()
    assert await in_game.exit_code() > 0
    assert in_game.left() == []
    assert (await in_game.printed())[1]


async def test_exits_when_the_stream_breaks(in_game):
    await in_game.vanish()
    assert await in_game.exit_code() > 0
    assert in_game.left() == []
    assert (await in_game.printed())[1]


# What is to come: the schema may grow


def of_the_future(message):
    """The same message with a field that nobody knows yet."""
    message.MergeFromString(NEW_FIELD)
    return message


@pytest.mark.parametrize("kind", [0, 7, 1000])
async def test_a_decision_of_an_unknown_kind_gets_the_first_legal_action(bot, kind):
    seat = load()[0]
    await bot.ask(start(seat))
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
        answer = await bot.ask(play_pb2.RefereeMessage(requests=[request]))
        assert [reply.decision_id for reply in answer.replies] == [900 + rotated]
        assert answer.replies[0].action == actions[0]
    assert await answers_rightly(bot, seat, 0)


async def test_a_message_with_nothing_that_it_knows_gets_no_answer(bot):
    seat = load()[0]
    await bot.say(of_the_future(play_pb2.RefereeMessage()))
    await bot.ask(start(seat))
    await bot.say(of_the_future(play_pb2.RefereeMessage()))
    assert await answers_rightly(bot, seat, 0)


async def test_unknown_fields_events_and_rulesets_change_nothing(bot):
    seat = max(load(), key=lambda seat: seat.size)
    begins = play_pb2.GameStart.FromString(seat.start.SerializeToString())
    begins.ruleset.name = "of-the-future"
    for part in (begins, begins.ruleset, begins.view, begins.clocks):
        of_the_future(part)
    ready = await bot.ask(play_pb2.RefereeMessage(game_starts=[begins]))
    assert ready == play_pb2.BotMessage(ready=seat.answered.ready)
    for asked, wanted in zip(seat.asked.requests, seat.answered.replies, strict=True):
        request = play_pb2.Request.FromString(asked.SerializeToString())
        request.events.add().MergeFromString(NEW_FIELD)
        for part in (request, request.view, *request.view.display, *request.view.tables):
            of_the_future(part)
        answer = await bot.ask(of_the_future(play_pb2.RefereeMessage(requests=[request])))
        assert list(answer.replies) == [wanted]


async def test_goes_on_after_a_game_was_broken_off(bot):
    first, second = [seat for seat in load() if seat.size > 1][:2]
    await bot.ask(start(first))
    broken_off = play_pb2.GameEnd(game_id=first.start.game_id, reason="the referee has a fault")
    message = start(second)
    message.game_ends.append(broken_off)
    assert await bot.ask(message) == play_pb2.BotMessage(ready=second.answered.ready)
    assert await answers_rightly(bot, second, 0)
