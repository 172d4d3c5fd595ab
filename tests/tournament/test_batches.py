"""Bots that hold several games get their requests in batches, and their faults stay in their games."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from real_runs import place

from referee.errors import Cause
from referee.store.league import League

pytestmark = pytest.mark.unmeasured


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made


def play(here, program, *, more="", matches=8):
    """Let a bot play against `random` with several games at once; return the records in schedule order, and what was printed."""
    file = here.tournament(bots=(here.bot("mine", program), "random"), matches=matches, more=more)
    done = here.referee("tournament", "run", file)
    assert done.returncode == 0, done.stdout + done.stderr
    verified = here.referee("verify", "cup")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    with League.open(here.folder / "league", create=False) as league:
        records = [league.record(row.game_id) for row in league.results(tournament="cup")]
    return records, done.stdout


def moves_of(record, name):
    seat = [bot.name for bot in record.seating].index(name)
    return [move for move in record.moves if move.seat == seat and not move.stand_in]


ECHO = """
from referee.sdk import run
run(lambda request: request.legal[0], max_games=64)
"""


def test_bots_that_hold_many_games_get_batches_without_a_setting(here):
    records, printed = play(here, ECHO)
    assert "possible" not in printed
    sizes = Counter(move.batch_size for record in records for move in moves_of(record, "mine"))
    assert max(sizes) >= 6, sizes
    assert sum(size * count for size, count in sizes.items()) / sizes.total() > 3
    for record in records:
        assert record.faults == ()
        for move in record.moves:
            assert (move.wall_us > 0) is (move.batch_size > 1)
            assert move.batch_size == 1 or move.elapsed_us <= move.wall_us


@pytest.mark.extended("plays further tournaments")
def test_duration_of_a_game_does_not_contain_the_other_games(here):
    slow = ECHO.replace("lambda request: request.legal[0]", "decide").replace(
        "run(",
        "import time\ndef decide(request):\n    time.sleep(0.01)\n    return request.legal[0]\nrun(",
        1,
    )
    records, _ = play(here, slow, matches=4)
    for record in records:
        assert any(move.batch_size > 1 for move in record.moves)
        thinking_us = sum(move.elapsed_us for move in record.moves)
        assert thinking_us <= record.duration_us < 1.5 * thinking_us + 100_000


@pytest.mark.extended("plays further tournaments")
def test_games_at_once_are_cut_to_what_the_bots_hold(here):
    two = ECHO.replace("max_games=64", "max_games=2")
    records, printed = play(here, two, more="games_in_flight = 8\n")
    assert printed.count("games_in_flight = 8: only 2 at the same time are possible") == 1
    assert {move.batch_size for record in records for move in record.moves} == {1, 2}


@pytest.mark.extended("plays further tournaments")
def test_cpu_time_of_a_game_is_a_part_of_that_of_the_process(here):
    began_s = time.monotonic()
    records, _ = play(here, ECHO, matches=64)  # the kernel counts CPU time in steps of 10 ms
    wall_s = time.monotonic() - began_s
    assert 0 < sum(usage.cpu_s for record in records for usage in record.usage) < wall_s


SERIAL = """
import time
from referee.sdk import run

def decide(request):
    time.sleep(0.4 * request.time_left_us / 1e6)
    return request.legal[0]

run(decide, max_games=64)
"""


@pytest.mark.extended("plays more games")
def test_bot_that_decides_one_request_after_the_other_loses_nothing(here):
    records, _ = play(here, SERIAL, more="[clocks]\ndecision = 0.8\n", matches=3)
    assert [record.faults for record in records] == [()] * 6
    moves = [move for record in records for move in moves_of(record, "mine")]
    assert max(move.batch_size for move in moves) >= 3, "three replies take longer than one limit"
    assert all(320_000 <= move.elapsed_us <= 800_000 for move in moves)


ANSWERS_HALF = """
import asyncio, os
import grpc
from referee.pb import play_pb2

async def main():
    async with grpc.aio.insecure_channel(os.environ["REFEREE_ADDRESS"]) as channel:
        call = channel.stream_stream("/linko.v1.RefereeService/Play")()
        hello = play_pb2.Hello(protocol_version=1, token=os.environ["REFEREE_TOKEN"], max_games=8)
        await call.write(play_pb2.BotMessage(hello=hello).SerializeToString())
        victim = None
        while (data := await call.read()) is not grpc.aio.EOF:
            message = play_pb2.RefereeMessage.FromString(data)
            answer = play_pb2.BotMessage()
            for start in message.game_starts:
                answer.ready.add(game_id=start.game_id)
            if len(message.requests) > 2 and victim is None:
                victim = message.requests[1].game_id, message.requests[1].decision_id
            for request in message.requests:
                if (request.game_id, request.decision_id) != victim:
                    reply = play_pb2.BotMessage()
                    reply.replies.add(game_id=request.game_id, decision_id=request.decision_id, action=request.legal[0])
                    await call.write(reply.SerializeToString())
                elif KIND == "illegal":
                    reply = play_pb2.BotMessage()
                    reply.replies.add(game_id=request.game_id, decision_id=request.decision_id, action={"ghost_value": 5})
                    await call.write(reply.SerializeToString())
            if answer.ready:
                await call.write(answer.SerializeToString())

asyncio.run(main())
"""


@pytest.mark.extended("plays further tournaments")
@pytest.mark.parametrize(
    ("mode", "cause"),
    [
        pytest.param("silent", Cause.TIMEOUT, marks=pytest.mark.extended("plays more games")),
        ("illegal", Cause.ILLEGAL),
    ],
)
def test_missing_or_illegal_reply_in_a_batch_is_a_strike_in_its_game_only(here, mode, cause):
    program = ANSWERS_HALF.replace("KIND", repr(mode))
    records, _ = play(here, program, more="[clocks]\ndecision = 0.3\n", matches=4)
    charged = [record for record in records if record.faults]
    assert len(charged) == 2, "one game of the process in each of two lanes"
    for record in charged:
        [fault] = record.faults
        assert (fault.cause, fault.forfeit) == (cause, False)
        assert fault.evidence.batch_size > 2


CRASHES = """
import os
from referee.sdk import Bot, run

class Mine(Bot):
    def start(self, game):
        self.left = game.random.randrange(3, 15)

    def decide(self, request):
        self.left -= 1
        if self.left == 0:
            os._exit(3)
        return request.legal[0]

run(Mine, max_games=64)
"""


@pytest.mark.extended("plays further tournaments")
def test_crash_is_charged_once_and_the_bot_then_plays_one_game_at_a_time(here):
    records, _ = play(here, CRASHES, more="[faults]\nsuspend_after = 0\n", matches=12)
    crashed = [record for record in records if record.faults]
    assert 2 <= len(crashed) < len(records), "now and then"
    for record in crashed:
        assert [fault.cause for fault in record.faults] == [Cause.CRASH]
    together = [
        record for record in crashed if any(m.batch_size > 1 for m in moves_of(record, "mine"))
    ]
    assert len(together) <= 2, "each of two lanes can lose the bot before it knows of the other"
    assert here.referee("tournament", "extend", "cup", "--matches", "3").returncode == 0
    with League.open(here.folder / "league", create=False) as league:
        later = [league.record(row.game_id) for row in league.results(tournament="cup")]
    added = later[len(records) :]
    assert len(added) == 6
    assert {move.batch_size for record in added for move in record.moves} == {1}, (
        "another run knows"
    )
