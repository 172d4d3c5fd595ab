"""A bot written from the guide alone plays complete games of every ruleset without a fault."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from referee import deals
from referee.bots.manifest import load_manifest
from referee.bots.player import BotPlayer, BotPool, SeatStart
from referee.clocks import Clocks
from referee.match.play import GameSetup, play_game
from referee.protocol import messages
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS
from referee.sandbox.process_group import ProcessGroupLauncher

FOLDER = Path(__file__).parent / "guide_bot"
CLOCKS = Clocks()


@pytest.fixture
async def pool(tmp_path_factory):
    folder = tmp_path_factory.mktemp("p")  # short: the path of a socket is limited
    pool = BotPool(ProcessGroupLauncher(), CLOCKS, max_processes=2, folder=folder)
    yield pool
    await pool.close()


async def seat(pool, number, setup):
    """Start one of two processes of the bot and make it ready for a game."""
    process = await pool.acquire(number, load_manifest(FOLDER).spec(FOLDER))
    start = messages.game_start(
        setup.game_id,
        rules=setup.ruleset,
        view=Game(setup.ruleset, 2, setup.deck).view(number),
        clocks=CLOCKS,
        seed=number,
        names=(),
        max_strikes=setup.max_strikes,
    )
    seat_start = SeatStart(setup.game_id, start, messages.RequestEncoder(setup.game_id))
    return process, await BotPlayer.join(process, seat_start, CLOCKS.game_start_us)


async def test_guide_bot_plays_every_ruleset_and_exits_after_goodbye(pool):
    for name, rules in RULESETS.items():
        setup = GameSetup(
            game_id=name,
            ruleset=rules,
            seating=(load_manifest(FOLDER).bot,) * 2,
            deck=deals.deck(bytes(32), name, rules),
            clocks=CLOCKS,
            max_strikes=1,
            isolation="none",
        )
        seated = [await seat(pool, number, setup) for number in (0, 1)]
        played = await play_game(
            setup, [player for _, player in seated], now_us=int, monotonic_ns=int
        )
        assert not played.record.faults
        for (_, player), news in zip(seated, played.unseen_events, strict=True):
            end = messages.game_end(name, news, played.record.ranks, "", forfeited=False)
            await player.leave(end)
    processes = [process for process, _ in seated]
    assert [process.session.dropped for process in processes] == [0, 0]
    await pool.close()
    assert [process.exit_code for process in processes] == [0, 0]


def test_guide_bot_without_a_referee_prints_how_to_start_it():
    environment = {key: value for key, value in os.environ.items() if "REFEREE" not in key}
    started = subprocess.run(
        [sys.executable, FOLDER / "bot.py"], env=environment, capture_output=True, check=False
    )
    assert started.returncode == 2
    assert b"referee play" in started.stderr
