"""Each of the six bots plays whole games: at every table, several at once, and after a strike."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from contextlib import asynccontextmanager
from dataclasses import replace

import psutil
import pytest
from policy import choose
from record_corpus import SEED, TABLES

from referee import deals
from referee.bots.player import BotPlayer, BotPool, SeatStart
from referee.clocks import Clocks, DecisionTime
from referee.errors import Cause, Strike
from referee.match.play import GameSetup, play_game
from referee.pb import play_pb2
from referee.protocol import messages
from referee.protocol.values import action_value, ruleset_message
from referee.records import BotId, Reply
from referee.rules.game import Game
from referee.sandbox.process_group import ProcessGroupLauncher

pytestmark = [
    pytest.mark.timeout(900),  # the first test with a bot builds it
    pytest.mark.unmeasured,
]

CLOCKS = Clocks()
CHANCE = BotId("chance", "1")
SHORT_US = 20_000


class Chance:
    """A player that chooses legal actions at random, without a process."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    async def decide(self, ask):
        return Reply(self._random.choice(ask.decision.legal), 0, 0)


class ComparedPlayer:
    """The player of the bot. Each reply must be that of the policy."""

    def __init__(self, player, setup):
        self.player = player
        self.decisions = 0
        self._rules = ruleset_message(setup.ruleset)
        self._encoder = messages.RequestEncoder(setup.game_id)

    async def decide(self, ask):
        (request,) = play_pb2.RefereeMessage.FromString(self._encoder.encode(ask)).requests
        answer = await self.ask(ask)
        assert answer.action == action_value(choose(request, self._rules))
        self.decisions += 1
        return answer

    async def ask(self, ask):
        return await self.player.decide(ask)


class StoppedOnce(ComparedPlayer):
    """A player that stops the bot process at its third decision until the limit is over."""

    def __init__(self, player, setup, pid):
        super().__init__(player, setup)
        self._pid = pid

    async def ask(self, ask):
        if self.decisions != 2:
            return await super().ask(ask)
        os.killpg(self._pid, signal.SIGSTOP)
        # The process may still run for a moment after the signal has been sent.
        while psutil.Process(self._pid).status() != psutil.STATUS_STOPPED:
            pass
        try:
            return await super().ask(replace(ask, time=DecisionTime(SHORT_US, None, 0)))
        except Strike:
            self.decisions += 1
            raise
        finally:
            os.killpg(self._pid, signal.SIGCONT)


@asynccontextmanager
async def pool_of(folder, *, pondering=False):
    launcher = ProcessGroupLauncher()
    pool = BotPool(launcher, CLOCKS, max_processes=1, folder=folder, pondering=pondering)
    try:
        yield pool
    finally:
        await pool.close()


async def play(process, spec, rules, seats, seat_of):
    """Play a game of a bot against random players; return the recorded game and the bot's player."""
    name = f"{rules.name}-{seats}"
    mine = seats - 1
    setup = GameSetup(
        game_id=deals.opaque_id(SEED, name),
        ruleset=rules,
        seating=(*[CHANCE] * mine, spec.bot),
        deck=deals.deck(SEED, name, rules),
        clocks=CLOCKS,
        max_strikes=3,
        isolation="none",
    )
    start = messages.game_start(
        setup.game_id,
        rules=rules,
        view=Game(rules, seats, setup.deck).view(mine),
        clocks=CLOCKS,
        seed=0,
        names=(),
        max_strikes=setup.max_strikes,
    )
    seat_start = SeatStart(setup.game_id, start, messages.RequestEncoder(setup.game_id))
    player = await BotPlayer.join(process, seat_start, CLOCKS.game_start_us)
    compared = seat_of(player, setup)
    players = [*(Chance(seat) for seat in range(mine)), compared]
    played = await play_game(setup, players, now_us=int, monotonic_ns=int)
    ranks = played.record.ranks
    await player.leave(
        messages.game_end(setup.game_id, played.unseen_events[mine], ranks, "", forfeited=False)
    )
    return played, compared


async def test_bot_plays_every_table_without_faults_with_several_games_at_once(spec, short_folder):
    async with pool_of(short_folder) as pool:
        process = await pool.acquire(0, spec)
        room = asyncio.Semaphore(process.max_games)

        async def one(rules, seats):
            async with room:
                process.change_games(1)
                return await play(process, spec, rules, seats, ComparedPlayer)

        games = await asyncio.gather(*(one(rules, seats) for rules, seats in TABLES))
        assert process.session.dropped == 0
    assert process.exit_code == 0
    for played, seat in games:
        assert played.record.faults == ()
        assert seat.decisions


async def test_late_reply_is_dropped_and_the_bot_plays_on(spec, short_folder):
    """The process is stopped during a decision and replies after the limit."""
    # a bot that may ponder runs all the time, so the referee does not undo the stop
    async with pool_of(short_folder, pondering=True) as pool:
        process = await pool.acquire(0, spec)
        pid = process._launched.process.pid
        rules, seats = TABLES[0]
        played, seat = await play(
            process, spec, rules, seats, lambda *game: StoppedOnce(*game, pid)
        )
        assert process.session.dropped == 1
        assert not process.session.unresponsive
    assert process.exit_code == 0
    assert [fault.cause for fault in played.record.faults] == [Cause.TIMEOUT]
    assert seat.decisions > 10
