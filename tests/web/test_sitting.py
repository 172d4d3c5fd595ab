"""The page of a finished game with a person says whether the game is stored. The process of the game is a fake."""

from __future__ import annotations

import asyncio
import multiprocessing
from types import SimpleNamespace

import pytest

from referee.errors import StoreError
from referee.records import BotId
from referee.rules.ruleset import RULESETS
from referee.tournament.person import Ended
from referee.web import sitting
from referee.web.sitting import Sitting

PATIENCE_S = 20
ORDER = SimpleNamespace(players=(BotId("anna", "person"),), ruleset=RULESETS["basic"])


class FinishedGame:
    """A process that says at once that its game has ended. The record of the game is the number 7."""

    pid = None

    def __init__(self, args, **_words):
        self._connection = args[0]

    def start(self):
        self._connection.send(Ended(7))


@pytest.fixture
def play(monkeypatch):
    """Return a function that plays a game and returns it when it is over."""
    context = SimpleNamespace(Pipe=multiprocessing.Pipe, Process=FinishedGame)
    monkeypatch.setattr(sitting, "get_context", lambda _: context)

    async def play_and_store(store):
        played = Sitting(ORDER, store, lambda error: str(error).removeprefix("/league: "))
        async with asyncio.timeout(PATIENCE_S):
            while not played.shown.is_over:  # noqa: ASYNC110 - a game has no event for its end
                await asyncio.sleep(0.001)
        await played.close()
        return played

    return play_and_store


async def test_finished_game_is_stored(play):
    stored = []
    played = await play(stored.append)
    assert (stored, played.is_stored, played.shown.problem) == ([7], True, None)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StoreError("/league: the disk is full"), "The game is not stored: the disk is full"),
        (ZeroDivisionError("oops"), "The game is not stored. This is a bug of the referee."),
    ],
)
async def test_game_that_cannot_be_stored_is_over_and_says_so(play, error, text):
    def fail(_record):
        raise error

    played = await play(fail)
    assert not played.is_stored
    assert played.shown.problem.startswith(text)
