"""All six bots give the expected reply to every request of the corpus."""

import pytest
from bare_referee import Bot
from conversations import conversation
from corpus import load
from google.protobuf import json_format

from referee.pb import play_pb2

pytestmark = [
    pytest.mark.timeout(900),  # the first test with a bot builds it
    pytest.mark.unmeasured,
]


def differences(message, answer, expected):
    """Yield a text for each reply that is not the expected one."""
    if answer.ready != expected.ready or len(answer.replies) != len(expected.replies):
        yield f"{message}\ngot\n{answer}\nexpected\n{expected}"
    for request, reply, right in zip(
        message.requests, answer.replies, expected.replies, strict=False
    ):
        if reply != right:
            texts = (
                json_format.MessageToJson(each, indent=None) for each in (request, right, reply)
            )
            yield "{}\n  expected {}\n  got      {}".format(*texts)


async def test_every_reply_to_the_corpus_is_the_expected_one(spec, short_folder):
    """The bot plays as many games at the same time as it can, and gets one message for all of them."""
    wrong = []
    async with Bot(spec, short_folder) as bot:
        at_once = max(1, (await bot.hello()).max_games)
        for message, expected in conversation(load(), at_once):
            await bot.send(message)
            if expected.ready or expected.replies:
                answer = play_pb2.BotMessage()
                while len(answer.replies) < len(expected.replies) or not answer.ByteSize():
                    part = await bot.receive()
                    assert part is not None, "the bot has closed its stream"
                    answer.MergeFrom(part)
                wrong += differences(message, answer, expected)
        await bot.send_goodbye()
        assert await bot.receive() is None
        assert await bot.exit_code() == 0
    assert not wrong, f"{len(wrong)} differences, the first:\n{wrong[0]}"
