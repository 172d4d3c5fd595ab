"""All six give the expected answer to every request of the corpus."""

import pytest
from bare_referee import Bot
from conversations import conversation
from corpus import load
from google.protobuf import json_format

pytestmark = [
    pytest.mark.timeout(900),  # the first test with a bot builds it
    pytest.mark.unmeasured,
]


def differences(said, answer, wanted):
    """Each request that was answered otherwise, for people."""
    if answer.ready != wanted.ready or len(answer.replies) != len(wanted.replies):
        yield f"{said}\nanswered by\n{answer}\nnot by\n{wanted}"
    for request, reply, right in zip(said.requests, answer.replies, wanted.replies, strict=False):
        if reply != right:
            texts = (
                json_format.MessageToJson(each, indent=None) for each in (request, right, reply)
            )
            yield "{}\n  wanted {}\n  got    {}".format(*texts)


async def test_answers_the_corpus(spec, short_folder):
    """With as many games in progress as the bot can hold, in one message each time."""
    wrong = []
    async with Bot(spec, short_folder) as bot:
        at_once = max(1, (await bot.hello()).max_games)
        for said, wanted in conversation(load(), at_once):
            await bot.say(said)
            if wanted.ready or wanted.replies:
                answer = await bot.hear()
                assert answer is not None, "the bot has closed its stream"
                wrong += differences(said, answer, wanted)
        await bot.goodbye()
        assert await bot.hear() is None
        assert await bot.exit_code() == 0
    assert not wrong, f"{len(wrong)} differences, the first:\n{wrong[0]}"
