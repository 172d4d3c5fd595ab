"""A seat is played through the stream of a bot."""

from types import SimpleNamespace

import pytest
from played import record

from referee.bots.clock import TimedReply
from referee.bots.player import BotPlayer, SeatStart
from referee.bots.process import BotProcess
from referee.clocks import UNLIMITED_US, DecisionTime
from referee.protocol.messages import RequestEncoder
from referee.protocol.values import action_message
from referee.records import Request
from referee.rules.game import Game
from referee.sandbox import TotalUsage

LIMIT_US = 5_000_000


class SlowSession:
    """A session whose bot replies with the first legal action after seven seconds."""

    dropped = 0

    def __init__(self, decision):
        self._reply = action_message(decision.legal[0]).SerializeToString()
        self.limits_us = []

    async def request(self, _game_id, _number, _message, limit_us):
        self.limits_us.append(limit_us)
        return TimedReply(self._reply, 7_000_000)


@pytest.fixture
def game():
    dealt = record()
    return Game(dealt.ruleset, len(dealt.seating), dealt.deck)


async def test_time_beyond_the_limit_is_lag_without_clocks(game):
    session = SlowSession(game.decision)
    process = SimpleNamespace(session=session, usage_per_game=lambda: SimpleNamespace(cpu_s=0))
    player = BotPlayer(process, SeatStart("g", b"", RequestEncoder("g"), is_timed=False))
    time = DecisionTime(LIMIT_US, None, 0)
    reply = await player.decide(Request(1, game.view(0), game.decision, (), time))
    assert (reply.elapsed_us, reply.lag_us) == (LIMIT_US, 2_000_000)
    assert session.limits_us == [UNLIMITED_US]


async def test_cpu_time_counts_for_the_games_that_the_process_played_then():
    process = BotProcess.__new__(BotProcess)
    process.games, process.session = 0, SimpleNamespace(dropped=0)
    process._counted_cpu_s = process._cpu_per_game_s = 0.0

    def spend(cpu_s):
        total = process.usage().cpu_s + cpu_s
        process.usage = lambda: TotalUsage(total, 9)

    def start_game(game_id):
        process.change_games(1)
        return BotPlayer(process, SeatStart(game_id, b"", RequestEncoder(game_id)))

    process.usage = lambda: TotalUsage(0.0, 9)
    spend(100)
    first = start_game("1")
    spend(8)
    second = start_game("2")
    spend(4)
    process.change_games(-1)
    spend(1)
    assert (first.usage().cpu_s, second.usage().cpu_s) == (8 + 2 + 1, 2 + 1)
