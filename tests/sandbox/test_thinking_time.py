"""Test that no bot takes the time of another one, with real bots on each rung."""

import asyncio
import os
import signal
from dataclasses import replace
from functools import cache

import pytest
from isolated_games import HEALTHY, OTHER, RULES, Games, spec
from strongest_isolation import strongest

from referee.sandbox import NO_ISOLATION, Rung
from referee.sandbox.ladder import select_isolation

pytestmark = pytest.mark.unmeasured
PONDERER = spec("ponders", program="bot.py")
SEARCHER = spec("searches", program="bot.py")
TICKER = spec("ticks_all_the_time", program="bot.py")
LONG = RULES.with_options(max_turns=60)
"""In a long game, the time in which both bots get ready, and may compute, is a small part of the whole."""

MORE_RUNGS = pytest.mark.extended("starts more programs on the rungs")


@cache
def namespaces():
    return asyncio.run(select_isolation(Rung.NAMESPACES))


@pytest.fixture(
    params=[
        pytest.param(strongest, marks=pytest.mark.isolation("full"), id="full"),
        pytest.param(
            namespaces, marks=[pytest.mark.isolation("namespaces"), MORE_RUNGS], id="namespaces"
        ),
        pytest.param(lambda: NO_ISOLATION, marks=MORE_RUNGS, id="none"),
    ]
)
def isolation(request):
    return request.param()


@pytest.fixture
async def games(tmp_path_factory, isolation):
    games = Games(tmp_path_factory.mktemp("t"), isolation)
    yield games
    await games.close()


@pytest.fixture
def one_core():
    """Bind this process, and all bots that it starts, to one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def unasked_share(record):
    """Return how much CPU time seat 1 has had beyond the time of its decisions, as a share of the CPU time of seat 0."""
    searched, pondered = record.usage
    asked_s = sum(move.elapsed_us for move in record.moves if move.seat == 1) / 1e6
    return (pondered.cpu_s - asked_s) / searched.cpu_s


@pytest.mark.extended("plays more misbehaving bots")
@pytest.mark.usefixtures("one_core")
async def test_bot_that_ponders_takes_no_time_from_a_bot_that_searches(games):
    for _ in range(2):
        record = await games.play(SEARCHER, PONDERER, rules=LONG)
        assert not record.faults
    assert len(record.moves) > 50
    assert unasked_share(record) < 0.2


@pytest.mark.extended("plays more misbehaving bots")
@pytest.mark.usefixtures("one_core")
async def test_bot_may_ponder_with_permission_and_changes_no_result(tmp_path_factory, isolation):
    moves, usages = [], []
    for pondering in (False, True):
        games = Games(tmp_path_factory.mktemp("p"), isolation, pondering=pondering)
        records = [
            await games.play(SEARCHER, PONDERER, deal=deal, rules=LONG) for deal in ("one", "other")
        ]
        await games.close()
        assert not any(record.faults for record in records)
        moves.append([move.action for record in records for move in record.moves])
        usages.append(records[-1].usage)
        if not pondering:
            assert unasked_share(records[-1]) < 0.2
    assert moves[0] == moves[1]
    (_, asked), (searched, pondered) = usages
    # both games have the same decisions, so the CPU time that the second one adds is that of pondering
    assert (pondered.cpu_s - asked.cpu_s) / searched.cpu_s > 0.5


@pytest.mark.extended("plays more misbehaving bots")
async def test_bot_does_not_run_while_it_plays_no_game(games):
    assert not (await games.play(HEALTHY, TICKER)).faults
    process = games.process(TICKER)
    await games.assert_healthy_game()  # meanwhile, the last output arrives
    before = process.output.total
    await games.assert_healthy_game()
    assert process.output.total == before > 0
    assert not (await games.play(HEALTHY, TICKER)).faults
    assert games.process(TICKER) is process
    assert process.output.total > before


@pytest.mark.extended("plays more misbehaving bots")
async def test_bot_that_is_killed_between_two_games_is_replaced(games):
    assert not (await games.play(HEALTHY, TICKER)).faults
    before = games.process(TICKER)
    os.kill(before.pid, signal.SIGKILL)
    assert not (await games.play(HEALTHY, TICKER)).faults
    assert games.process(TICKER) is not before


@pytest.fixture
async def games_on_all_rungs(tmp_path_factory):
    isolations = [await asyncio.to_thread(find) for find in (strongest, namespaces)]
    found = [
        Games(tmp_path_factory.mktemp("t"), isolation) for isolation in (*isolations, NO_ISOLATION)
    ]
    yield found
    for games in found:
        await games.player.close()  # `close` asserts that no bot of any rung is left
    for games in found:
        await games.close()


@pytest.mark.isolation("namespaces")
@pytest.mark.extended("waits for longer than a minute")
async def test_bots_play_on_after_more_than_a_minute_without_a_game(games_on_all_rungs):
    """After a minute without a reply to its pings, gRPC would end the stream by default."""
    bots = [replace(HEALTHY, transport="unix"), replace(OTHER, transport="tcp")]
    processes = []
    for games in games_on_all_rungs:
        assert not (await games.play(*bots)).faults
        processes += [games.process(bot) for bot in bots]
    closed = [asyncio.ensure_future(process.session.closed.wait()) for process in processes]
    done, waiting = await asyncio.wait(closed, timeout=90)
    for each in waiting:
        each.cancel()
    assert not done
    for games in games_on_all_rungs:
        assert not (await games.play(*bots)).faults
    assert processes == [games.process(bot) for games in games_on_all_rungs for bot in bots]
