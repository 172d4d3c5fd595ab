"""The page of a finished game with a person shows the result at once, and says whether the game is stored. The process is a fake."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from referee.errors import StoreError
from referee.records import BotId
from referee.rules.ruleset import RULESETS
from referee.tournament.person import Ended
from referee.web import sitting
from referee.web.sitting import Sitting, Storage

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
    """Return a function that plays a game and returns it when it is over. With `leave`, the game is left before the end is known."""
    context = SimpleNamespace(Pipe=multiprocessing.Pipe, Process=FinishedGame)
    monkeypatch.setattr(sitting, "get_context", lambda _: context)

    async def play_and_store(store, *, leave=False):
        played = Sitting(ORDER, store, lambda error: str(error).removeprefix("/league: "))
        if leave:
            await played.close()
        async with asyncio.timeout(PATIENCE_S):
            while not played.shown.is_over:  # noqa: ASYNC110 - a game has no event for its end
                await asyncio.sleep(0.001)
        return played

    return play_and_store


async def test_finished_game_is_stored(play):
    stored = []
    played = await play(stored.append)
    await played.close()
    assert (stored, played.shown.storage, played.shown.problem) == ([7], Storage.DONE, None)


async def test_game_that_is_not_to_be_stored_says_nothing_about_it(play):
    played = await play(None)
    await played.close()
    assert (played.shown.record, played.shown.storage, played.shown.problem) == (7, None, None)


async def test_result_is_shown_while_the_game_is_being_stored(play):
    is_free, stored = threading.Event(), []

    def wait_and_store(record):
        assert is_free.wait(PATIENCE_S)
        stored.append(record)

    played = await play(wait_and_store)
    leaving = asyncio.create_task(played.close())
    await asyncio.sleep(0)
    shown = played.shown
    assert (shown.record, shown.storage, shown.problem) == (7, Storage.PENDING, None)
    is_free.set()
    await leaving
    assert (stored, shown.storage, shown.problem) == ([7], Storage.DONE, None)


@pytest.mark.usefixtures("play")
async def test_page_that_waits_gets_the_end_of_the_game_at_once(monkeypatch):
    monkeypatch.setattr(sitting, "result_data", str)
    played = Sitting(ORDER, None, str)
    async with asyncio.timeout(PATIENCE_S):
        news = await played.news(moves=0, decision=0, patience_s=10 * PATIENCE_S)
    assert (news["over"], news["result"]) == (True, "7")


async def test_games_that_are_being_stored_delay_no_other_game(play):
    """asyncio has few threads for all games together."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    is_free = threading.Event()
    slow = await play(lambda _record: is_free.wait(PATIENCE_S))
    assert slow.shown.storage is Storage.PENDING
    other = await play(None)
    async with asyncio.timeout(PATIENCE_S / 2):
        await other.close()
    is_free.set()
    await slow.close()


async def test_game_that_is_left_before_its_end_is_lost(play):
    stored = []
    played = await play(stored.append, leave=True)
    assert played.shown.problem.startswith("The game was stopped")
    assert (stored, played.shown.record, played.shown.storage) == ([], None, None)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StoreError("/league: the disk is full"), "The game is not stored: the disk is full"),
        (ZeroDivisionError("oops"), "The game is not stored. This is a bug of the referee."),
    ],
)
async def test_game_that_cannot_be_stored_has_its_result_and_says_so(play, error, text):
    def fail(_record):
        raise error

    played = await play(fail)
    await played.close()
    assert (played.shown.record, played.shown.storage) == (7, None)
    assert played.shown.problem.startswith(text)
