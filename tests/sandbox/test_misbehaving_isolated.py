"""Tests bots that attack their surroundings, under the strongest isolation and in each seat."""

import asyncio
import hashlib
import re
import secrets
import socket
import sys
import time
from dataclasses import replace

import psutil
import pytest
from extended import extend_all_but
from isolated_games import FOLDER, HEALTHY, OTHER, SHORT, Games, spec
from strongest_isolation import strongest

from referee.errors import Cause

sys.path.insert(0, str(FOLDER))
import bot
import burglar

pytestmark = [pytest.mark.isolation("full"), pytest.mark.unmeasured]
MORE = pytest.mark.extended("plays more misbehaving bots")
OUT_OF_MEMORY = {"takes_much_memory", "fills_memfd"}
OUT_OF_MEMORY_TEXT = re.compile(
    r"^the program has used up its 1024 MiB of memory, and the kernel has ended it$"
    r"|^the program takes \d+ MiB of memory; its limit is 1024 MiB$"
)
"""Either the kernel or the monitor of the referee notices it first."""
REFUSED = {
    "fork_bomb": 20,
    "forks_and_exits": 1,
    "leaves_many_daemons": 5,
    "writes_everywhere": 18,
    "fills_scratch": 3,
    "fills_tcp_buffers": 1,
    "leaves_its_core": 2,
    "signals_by_locks": 38,
    "passes_descriptors": 2,
    "passes_slow_sockets": 20,
}
"""Bots whose attempts are refused, with the least number of attempts."""
PLAIN = {"fork_bomb", "passes_descriptors"}
"""The bots that plain `pytest` plays."""
UNSANDBOXED = {
    "respawns_for_ever",
    "starts_more_and_more",
    "binds_names",
    "reads_files",
    "leaves_memory",
    "leaves_shared_memory",
    "keeps_shared_memory_mapped",
    "leaves_segment",
    "leaves_shared_memory_of_daemon",
}
"""Bots that `test_misbehaving_unsandboxed.py` plays."""
OTHERS = {
    "takes_much_memory_in_children",
    "leaves_state",
    "uses_network",
    "spies",
    "kills_everybody",
    "holds_its_outputs",
}


@pytest.fixture
async def games(tmp_path_factory):
    games = Games(tmp_path_factory.mktemp("i"))
    yield games
    await games.close()


def test_every_kind_of_burglar_has_a_test():
    here = {name for name, kind in bot.kinds().items() if kind.__module__ == "burglar"}
    here.remove("burglar")
    assert here == {*OUT_OF_MEMORY, *REFUSED, *OTHERS, *UNSANDBOXED}


@MORE
@pytest.mark.parametrize("name", sorted(OUT_OF_MEMORY))
async def test_bot_that_takes_too_much_memory_forfeits(games, name):
    before = psutil.virtual_memory().shared
    async for seat, record in games.each_seat(spec(name)):
        (fault,) = record.faults
        assert (fault.cause, fault.forfeit) == (Cause.OOM, True)
        assert OUT_OF_MEMORY_TEXT.search(fault.evidence.detail)
        assert f"I am {name}" in fault.evidence.stderr_tail
        assert record.forfeited == (seat,)
        assert record.ranks[seat] == 2
        assert record.isolation == strongest().summary
    # a memfd must be gone; memory that is not shared says nothing, because other tests use gigabytes
    assert psutil.virtual_memory().shared - before < 1 << 29


@pytest.mark.parametrize(
    "name", extend_all_but(PLAIN, sorted(REFUSED), "plays more misbehaving bots")
)
async def test_refused_attempts_are_no_fault_and_do_no_harm(games, name):
    files = {path: digest(path) for path in FOLDER.glob("*.py")}
    wrong = spec(name)
    async for _, record in games.each_seat(wrong):
        assert not record.faults
        tried = games.process(wrong).error_output.tail(1 << 20).split("tried ")[1]
        assert int(tried.split()[0]) >= REFUSED[name]
    assert files == {path: digest(path) for path in FOLDER.glob("*.py")}


async def test_bot_that_holds_the_locks_of_its_outputs_delays_nobody(games):
    began_s = time.monotonic()
    async for _, record in games.each_seat(spec("holds_its_outputs")):
        assert not record.faults
    assert time.monotonic() - began_s < burglar.HOLD_S


@MORE
async def test_state_of_a_process_is_gone_for_the_next_one(games):
    wrong = spec("leaves_state")
    for lane in (0, 0, 1):
        record = await games.play(wrong, HEALTHY, lane=lane)
        assert not record.faults
        assert "tried 6" in games.process(wrong, lane).stderr_tail()
        await games.player._pool.discard(lane)


async def test_network_cannot_be_reached(games):
    name = secrets.token_hex(8)
    connections = []
    server = await asyncio.start_server(lambda *_: connections.append(1), "127.0.0.1", 0)
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        wrong = spec("uses_network", server.sockets[0].getsockname()[1], name)
        async for _, record in games.each_seat(wrong):
            assert not record.faults
            assert "tried 6" in games.process(wrong).stderr_tail()
    server.close()
    assert not connections


async def test_another_bot_cannot_be_reached(games):
    await games.assert_healthy_game()
    victim = games.process(HEALTHY)
    folder = victim._folder.socket.parent
    wrong = spec("spies", psutil.Process().pid, victim.pid, folder)
    async for _, record in games.each_seat(wrong):
        assert not record.faults
        assert "tried 15" in games.process(wrong).stderr_tail()
    assert games.process(HEALTHY) is victim


@MORE
async def test_signals_reach_no_other_program(games):
    await games.assert_healthy_game()
    victims = games.process(HEALTHY), games.process(OTHER)
    async for _, record in games.each_seat(spec("kills_everybody")):
        assert not record.faults
    assert (games.process(HEALTHY), games.process(OTHER)) == victims


@MORE
async def test_bot_whose_children_take_too_much_memory_forfeits(games):
    """The bot owes a reply all the time, so the cause depends on what is noticed first."""
    async for seat, record in games.each_seat(spec("takes_much_memory_in_children"), clocks=SHORT):
        assert record.forfeited == (seat,)
        assert {fault.cause for fault in record.faults} <= {
            Cause.OOM,
            Cause.TIMEOUT,
            Cause.STRIKES,
        }


@MORE
@pytest.mark.parametrize(
    ("name", "cause", "code", "signal"),
    [
        ("segfaults", Cause.CRASH, None, "SIGSEGV"),
        ("dies_of_odd_signal", Cause.CRASH, None, "signal 40"),
        ("exits_with_3", Cause.CRASH, 3, None),
        ("exits_with_0", Cause.EXITED_EARLY, 0, None),
        ("crashes_beside_daemon", Cause.CRASH, 5, None),
        ("leaves_children", Cause.CRASH, 7, None),
        ("stops_itself", Cause.STRIKES, None, None),
    ],
)
async def test_faults_are_charged_as_without_isolation(games, name, cause, code, signal):
    async for seat, record in games.each_seat(spec(name, program="bot.py"), clocks=SHORT):
        evidence = record.faults[-1].evidence
        assert record.faults[-1].cause is cause
        assert (evidence.exit_code, evidence.signal) == (code, signal)
        assert record.forfeited == (seat,)


@MORE
async def test_bot_gains_no_time_from_children_that_end(games):
    wrong = spec("computes_while_children_end", program="bot.py")
    async for _, record in games.each_seat(wrong, clocks=SHORT):
        assert [fault.cause for fault in record.faults] == [Cause.TIMEOUT]


@MORE
@pytest.mark.parametrize("name", ["litters_scratch", "leaves_disguised_daemon", "is_wrapped"])
async def test_harmless_behaviour_is_no_fault_in_a_sandbox(games, name):
    async for _, record in games.each_seat(spec(name, program="bot.py")):
        assert not record.faults


@MORE
async def test_bot_that_knows_only_tcp_plays_in_a_sandbox(games):
    async for _, record in games.each_seat(
        replace(spec("fair", program="bot.py"), transport="tcp")
    ):
        assert not record.faults


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
