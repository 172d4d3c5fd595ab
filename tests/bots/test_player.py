"""A seat is played through the stream of a bot."""

from types import SimpleNamespace

import pytest
from played import record

from referee.bots.clock import TimedReply
from referee.bots.player import BotPlayer, SeatStart
from referee.bots.process import BotProcess
from referee.clocks import UNLIMITED_US, DecisionTime
from referee.errors import Cause, Strike
from referee.protocol.messages import RequestEncoder
from referee.protocol.values import action_message
from referee.records import Request
from referee.rules.game import Game
from referee.sandbox import TotalUsage

LIMIT_US = 5_000_000


class FixedSession:
    """A session whose bot gives the same reply to every request."""

    dropped = 0

    def __init__(self, reply):
        self._reply = reply
        self.limits_us = []

    async def request(self, _game_id, _number, _message, limit_us):
        self.limits_us.append(limit_us)
        return self._reply


@pytest.fixture
def game():
    dealt = record()
    return Game(dealt.ruleset, len(dealt.seating), dealt.deck)


def seat(session, **start):
    process = SimpleNamespace(
        session=session,
        usage_per_game=lambda: SimpleNamespace(cpu_s=0),
        add_evidence=lambda fault: fault,
    )
    return BotPlayer(process, SeatStart("g", b"", RequestEncoder("g"), **start))


def first_request(game):
    return Request(1, game.view(0), game.decision, (), DecisionTime(LIMIT_US, None, 0))


async def test_time_beyond_the_limit_is_lag_without_clocks(game):
    action = action_message(game.decision.legal[0]).SerializeToString()
    session = FixedSession(TimedReply(action, 7_000_000))
    reply = await seat(session, is_timed=False).decide(first_request(game))
    assert (reply.elapsed_us, reply.lag_us) == (LIMIT_US, 2_000_000)
    assert session.limits_us == [UNLIMITED_US]


async def test_time_to_a_malformed_reply_includes_its_lag(game):
    session = FixedSession(TimedReply(b"", LIMIT_US, 900, LIMIT_US + 900, 3))
    with pytest.raises(Strike) as caught:
        await seat(session).decide(first_request(game))
    evidence = caught.value.evidence
    assert (caught.value.cause, evidence.elapsed_us) == (Cause.MALFORMED, LIMIT_US + 900)
    assert (evidence.wall_us, evidence.batch_size) == (LIMIT_US + 900, 3)


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
