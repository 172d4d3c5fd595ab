"""Play every misbehaving bot in each seat of a game; after each game play a healthy one with the same worker."""

import asyncio
import os
import re
import sys
from dataclasses import dataclass, replace
from inspect import isclass
from pathlib import Path

import psutil
import pytest
from extended import extend_all_but

from referee.bots import BotSpec, process
from referee.bots.clock import REPLY_GRACE_US
from referee.clocks import Clocks
from referee.errors import Cause
from referee.match.replay import check_record
from referee.records import BotId
from referee.rules.ruleset import RULESETS
from referee.sandbox import NO_ISOLATION, Limits, monitor
from referee.sandbox.monitor import ResourceMonitor
from referee.tournament.assignments import WorkerSettings
from referee.tournament.game_player import GamePlayer

FOLDER = Path(__file__).parents[1] / "misbehaving"
sys.path.insert(0, str(FOLDER))
import bot  # noqa: E402 - found through sys.path
from descendants import running  # noqa: E402 - the same
from orders import game_order  # noqa: E402 - the same

RULES = RULESETS["basic"].with_options(max_turns=20)
CLOCKS = Clocks(start_up_us=20_000_000, game_start_us=1_500_000, decision_us=1_500_000)
PATIENT = replace(CLOCKS, game_start_us=20_000_000, decision_us=20_000_000)
"""Limits that a healthy bot keeps even on a busy machine."""
IMPATIENT = replace(CLOCKS, start_up_us=2_000_000)
BANK = replace(CLOCKS, bank_us=1_200_000)
MAX_STRIKES = 2


@dataclass(frozen=True)
class Expected:
    """The last fault that the referee must record for a bot."""

    cause: Cause
    detail: str = ""
    """A regular expression for the detail of the evidence."""
    forfeit: bool = True
    exit_code: int | None = None
    signal: str | None = None
    start: Clocks = CLOCKS
    """The clocks for the start of the bot."""
    game: Clocks = CLOCKS
    """The clocks for its game."""


def strike(cause, detail):
    return Expected(cause, detail, forfeit=False)


def exits_early(detail, **more):
    return Expected(Cause.EXITED_EARLY, f"{detail} before its hello", **more)


NO_HELLO = Expected(Cause.CONNECT_TIMEOUT, r"the bot sent no hello within 2 s", start=IMPATIENT)
HANDSHAKE = Expected(Cause.HANDSHAKE)
LATE = strike(Cause.TIMEOUT, r"the bot sent no reply within 1\.5 s")
STRIKES = Expected(Cause.STRIKES, "this is strike 2 of 2")
ILLEGAL = strike(Cause.ILLEGAL, "is not a legal reply to")
MALFORMED = strike(Cause.MALFORMED, "")
FLOOD = Expected(Cause.FLOOD, "the bot produced more than 200 messages or streams")
CLOSED = Expected(Cause.CRASH, "^the bot closed its stream, or sent a message of more than 16 MiB$")

FAULTS = {
    "exits_with_0": exits_early("the bot exited with 0", exit_code=0),
    "exits_with_1": exits_early("the bot exited with 1", exit_code=1),
    "crashes_at_start": exits_early("the bot was ended by SIGSEGV", signal="SIGSEGV"),
    "dies_of_odd_signal_at_start": exits_early(
        "the bot was ended by signal 40", signal="signal 40"
    ),
    "hangs_at_start": NO_HELLO,
    "says_no_hello": NO_HELLO,
    "speaks_http_1": NO_HELLO,
    "speaks_noise": NO_HELLO,
    "says_preface_only": NO_HELLO,
    "has_huge_headers": replace(HANDSHAKE, detail="^the bot closed its stream before its hello$"),
    "stops_itself_at_start": NO_HELLO,
    "exits_at_start_beside_daemon": exits_early("the bot exited with 0", exit_code=0),
    "closes_before_hello": replace(
        HANDSHAKE, detail="^the bot closed its stream before its hello$"
    ),
    "answers_before_hello": replace(HANDSHAKE, detail="the first message has no hello"),
    "says_garbage_for_hello": replace(HANDSHAKE, detail="the first message is no hello"),
    "speaks_version_2": replace(HANDSHAKE, detail="protocol version 2, the referee 1"),
    "has_wrong_token": replace(HANDSHAKE, detail="a wrong token"),
    "has_foreign_token": Expected(Cause.IMPERSONATION, "another bot's token"),
    "never_ready": Expected(Cause.GAME_START_TIMEOUT, r"the bot sent no ready within 1\.5 s"),
    "exits_at_game_start": Expected(Cause.CRASH, "the bot exited with 4", exit_code=4),
    "segfaults": Expected(Cause.CRASH, "the bot was ended by SIGSEGV", signal="SIGSEGV"),
    "aborts": Expected(Cause.CRASH, "the bot was ended by SIGABRT", signal="SIGABRT"),
    "exits_with_3": Expected(Cause.CRASH, "the bot exited with 3", exit_code=3),
    "dies_of_odd_signal": Expected(
        Cause.CRASH, "the bot was ended by signal 40", signal="signal 40"
    ),
    "closes_stream": CLOSED,
    "cancels_stream": CLOSED,
    "crashes_beside_daemon": Expected(Cause.CRASH, "the bot exited with 5", exit_code=5),
    "exits_with_0_beside_daemon": Expected(Cause.CRASH, "the bot exited with 0", exit_code=0),
    "dies_while_talking": Expected(Cause.CRASH, "the bot exited with 6", exit_code=6),
    "leaves_children": Expected(Cause.CRASH, "the bot exited with 7", exit_code=7),
    "hangs": STRIKES,
    "runs_in_circles": STRIKES,
    "stops_itself": STRIKES,
    "is_always_late": STRIKES,
    "computes_while_children_end": LATE,
    "always_plays_what_it_lacks": STRIKES,
    "is_late": LATE,
    "uses_up_its_bank": Expected(Cause.OUT_OF_TIME, "the bot sent no reply within", game=BANK),
    "plays_what_it_lacks": ILLEGAL,
    "plays_out_of_range": ILLEGAL,
    "draws_out_of_range": ILLEGAL,
    "answers_in_wrong_kind": ILLEGAL,
    "answers_with_unknown_choice": MALFORMED,
    "answers_nothing": MALFORMED,
    "says_garbage": replace(MALFORMED, detail="the bytes are no linko.v1.BotMessage"),
    "prints_binary": MALFORMED,
    "floods_replies": FLOOD,
    "floods_in_one_message": FLOOD,
    "floods_without_reading": FLOOD,
    "opens_many_streams": FLOOD,
    "says_100_kb": Expected(Cause.TOO_LARGE, "the bot sent a message of 100008 bytes"),
    "says_5_mb": Expected(Cause.TOO_LARGE, "the bot sent a message of 5000010 bytes"),
}
LIMIT_FAULTS = {
    "takes_much_memory": Expected(
        Cause.OOM, r"the program takes \d+ MiB of memory; its limit is 250"
    ),
    "takes_much_memory_at_start": Expected(Cause.OOM, "its limit is 250"),
    "takes_much_memory_in_children": Expected(Cause.OOM, "its limit is 250"),
    "runs_many_processes": Expected(
        Cause.TOO_MANY_PROCESSES, r"the program runs \d\d processes and threads; its limit is 40"
    ),
    "fills_scratch": Expected(
        Cause.SCRATCH_FULL, "the program has more than its limit of 1 MiB in its scratch"
    ),
    "fills_scratch_with_names": Expected(Cause.SCRATCH_FULL, "more than its limit of 1 MiB"),
    "fills_scratch_in_deep_folders": Expected(Cause.SCRATCH_FULL, "more than its limit of 1 MiB"),
}
"""The faults of bots that take too much, with the limits of `FRUGAL`."""
FRUGAL = Limits(memory_mib=250, processes=40, scratch_mib=1, open_files=100, output_kib=8)
ABOVE_GRPC_LIMIT = {"says_20_mb"}
"""Bots with messages so large that gRPC closes the stream. That is a crash, with or without an exit code."""
HARMLESS = {
    "fair",
    "holds_four_games",
    "opens_second_stream",
    "opens_many_sockets",
    "makes_noise_beside",
    "says_hello_again",
    "repeats_itself",
    "answers_for_others",
    "prints_much",
    "prints_for_ever",
    "litters_scratch",
    "digs_deep_folders",
    "ignores_goodbye",
    "stops_itself_at_goodbye",
    "leaves_daemon",
    "leaves_disguised_daemon",
    "leaves_zombies",
    "is_wrapped",
    "shares_memory_with_children",
    "opens_many_files",
    "ponders",
    "ticks_all_the_time",
    "searches",
}
RANDOM_FAULTS = {"talks_nonsense"}
"""Bots that may be charged with any fault, because they send random messages."""
OTHER_TESTS = {"tells_what_it_sees", "stateless", "at_random"}
"""Bots that only other tests and benchmarks use."""


PLAIN = {
    "exits_with_1",
    "has_foreign_token",
    "segfaults",
    "is_late",
    "plays_what_it_lacks",
    "says_garbage",
    "takes_much_memory",
    "answers_for_others",
}
"""Bots that plain `pytest` tries: the most frequent faults, and two bots that act for another bot."""
REASON = "plays more misbehaving bots"


def select_plain(names):
    return extend_all_but(PLAIN & set(names), sorted(names), REASON)


def test_every_misbehaving_bot_is_played():
    named = {*FAULTS, *LIMIT_FAULTS, *ABOVE_GRPC_LIMIT, *HARMLESS, *RANDOM_FAULTS, *OTHER_TESTS}
    classes = [each for each in vars(bot).values() if isclass(each) and issubclass(each, bot.Fair)]
    programs = {bot.name_of(each) for each in classes}
    assert named == programs - {"goes_wrong", "goes_wrong_for_good"}, (
        "put each new bot into FAULTS, HARMLESS or another group above"
    )


def test_every_cause_has_a_misbehaving_bot():
    """Two causes need no program of their own: `no_start` and `suspended`."""
    played = {each.cause for each in (*FAULTS.values(), *LIMIT_FAULTS.values())}
    assert played | {Cause.NO_START, Cause.SUSPENDED} == set(Cause)


class Run:
    """The games of a worker, played in this process."""

    def __init__(self, folder, isolation=NO_ISOLATION):
        settings = WorkerSettings(
            cores=frozenset(),
            clocks=CLOCKS,
            max_processes=4,
            isolation=isolation,
            folder=folder,
            parent_pid=os.getpid(),
        )
        self.player = GamePlayer(settings)
        self.folder = folder
        self.strangers = running()
        """The processes of other tests."""
        self.games = 0
        self.descriptors = 0
        """The number of file descriptors of this process while it keeps two bots."""

    async def play(self, *specs, start=CLOCKS, game=CLOCKS, lane=0, deal=None, rules=RULES):
        self.player._pool._clocks = start
        self.games += 1
        order = game_order(
            str(self.games), rules, specs, clocks=game, max_strikes=MAX_STRIKES, deal=deal
        )
        (record,) = await self.player.play_all(lane, (order,))
        check_record(record)
        return record

    async def play_healthy(self):
        record = await self.play(HEALTHY, OTHER, game=PATIENT)
        assert not record.faults
        assert not record.forfeited

    async def close_and_assert_nothing_left(self):
        """Stop all bots. Check that no process, file, socket, token or file descriptor is left."""
        await self.player.close()
        assert running() <= self.strangers
        assert not list(self.folder.iterdir())
        sockets = [each.laddr for each in psutil.Process().net_connections("unix")]
        assert not [path for path in sockets if path.startswith(str(self.folder))]
        assert not self.player._pool._running
        assert descriptors() < self.descriptors, "some descriptors of the two bots are still open"


def descriptors():
    return psutil.Process().num_fds()


def spec(name, *command, **more):
    return BotSpec(BotId(name, "1"), FOLDER, command or (sys.executable, "bot.py", name), **more)


HEALTHY = spec("healthy", sys.executable, "bot.py", "fair")
OTHER = spec("other", sys.executable, "bot.py", "fair")
STEADY = [spec(name, sys.executable, "bot.py", "stateless") for name in ("steady", "other_steady")]


@pytest.fixture
async def run(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(process, "GOODBYE_S", 0.3)
    monkeypatch.setattr(process, "TERM_S", 0.3)
    monkeypatch.setattr(monitor, "MONITOR_PERIOD_S", 0.1)
    run = Run(tmp_path_factory.mktemp("r"))
    await run.play_healthy()
    run.descriptors = descriptors()
    yield run
    await run.close_and_assert_nothing_left()


async def play_each_seat(run, misbehaving, **clocks):
    for seat in (0, 1):
        bots = [HEALTHY, HEALTHY]
        bots[seat] = misbehaving
        record = await run.play(*bots, **clocks)
        faults = [each for each in record.faults if each.seat != seat]
        assert not faults, "the healthy bot was charged"
        assert not any(move.stand_in for move in record.moves if move.seat != seat)
        yield seat, record
        await run.play_healthy()


@pytest.mark.parametrize("name", select_plain(FAULTS))
async def test_misbehaving_bot_is_charged_in_every_seat(run, name):
    expected = FAULTS[name]
    async for seat, record in play_each_seat(
        run, spec(name), start=expected.start, game=expected.game
    ):
        fault = record.faults[-1]
        evidence = fault.evidence
        assert (fault.cause, fault.forfeit) == (expected.cause, expected.forfeit)
        assert re.search(expected.detail, evidence.detail)
        assert (evidence.exit_code, evidence.signal) == (expected.exit_code, expected.signal)
        for each in record.faults:
            tail = each.evidence.stderr_tail
            assert f"I am {name}" in tail or len(tail) > 2000 or expected.start is IMPATIENT
        assert record.forfeited == ((seat,) if expected.forfeit else ())
        if expected.forfeit:
            assert record.ranks[seat] == 2


@pytest.mark.parametrize("name", select_plain(LIMIT_FAULTS))
async def test_bot_above_a_limit_forfeits_in_every_seat(run, name):
    expected = LIMIT_FAULTS[name]
    async for seat, record in play_each_seat(run, spec(name, limits=FRUGAL), game=PATIENT):
        (fault,) = record.faults
        assert (fault.cause, fault.forfeit) == (expected.cause, True)
        assert re.search(expected.detail, fault.evidence.detail)
        assert f"I am {name}" in fault.evidence.stderr_tail
        assert record.forfeited == (seat,)
        assert record.usage[1 - seat] is not None


@pytest.mark.extended(REASON)
async def test_shared_memory_counts_once(run):
    async for _, record in play_each_seat(
        run, spec("shares_memory_with_children", limits=FRUGAL), game=PATIENT
    ):
        assert not record.faults
        assert max(usage.peak_memory_kib for usage in record.usage) > FRUGAL.memory_mib * 1024


@pytest.mark.extended(REASON)
async def test_bot_can_open_only_as_many_files_as_its_limit(run):
    async for _, record in play_each_seat(
        run, spec("opens_many_files", limits=FRUGAL), game=PATIENT
    ):
        assert not record.faults
    bot = run.player._pool._processes[0, "opens_many_files@1"]
    assert "\n100 files are open\n" in bot.stderr_tail()


@pytest.mark.extended(REASON)
async def test_only_the_end_of_long_output_is_kept(run):
    assert not (await run.play(HEALTHY, spec("prints_much", limits=FRUGAL), game=PATIENT)).faults
    bot = run.player._pool._processes[0, "prints_much@1"]
    assert bot.output.total >= 8 << 20
    assert bot.output.last_bytes() == b"o" * (8 << 10)
    assert len(bot.error_output.tail(1 << 20)) <= 16 << 10


@pytest.mark.extended(REASON)
async def test_bot_above_a_limit_between_games_is_replaced_without_a_fault(run, monkeypatch):
    monkeypatch.setattr(monitor, "_IDLE_PERIODS", 1)
    keen = spec("keen", sys.executable, "bot.py", "fair", limits=FRUGAL)
    assert not (await run.play(HEALTHY, keen, game=PATIENT)).faults
    before = run.player._pool._processes[0, "keen@1"]
    (before._folder.scratch / "late").write_bytes(b"x" * (2 << 20))
    await before.session.closed.wait()
    assert not (await run.play(HEALTHY, keen, game=PATIENT)).faults
    assert run.player._pool._processes[0, "keen@1"] is not before


@pytest.mark.extended(REASON)
async def test_message_above_the_limit_of_grpc_is_a_crash(run):
    async for seat, record in play_each_seat(run, spec("says_20_mb")):
        assert record.faults[-1].cause is Cause.CRASH
        assert record.forfeited == (seat,)


@pytest.mark.parametrize("name", select_plain(HARMLESS))
async def test_harmless_misbehaviour_is_not_charged(run, name):
    async for _seat, record in play_each_seat(run, spec(name), game=PATIENT):
        assert not record.faults, record.faults


@pytest.mark.extended(REASON)
async def test_bot_that_waits_for_a_core_at_its_deadline_is_not_charged(run, monkeypatch):
    monkeypatch.setattr(ResourceMonitor, "busy_ns", lambda _: 0)
    async for seat, record in play_each_seat(run, spec("is_late")):
        assert not record.faults
        late = [move for move in record.moves if move.seat == seat and move.lag_us >= 100_000]
        assert len(late) == 1
        assert late[0].elapsed_us == CLOCKS.decision_us
        assert not late[0].stand_in


@pytest.mark.extended(REASON)
async def test_unsolicited_replies_are_counted_in_the_record(run):
    asked = dropped = late = 0
    async for seat, record in play_each_seat(run, spec("repeats_itself"), game=PATIENT):
        assert not record.faults
        asked += sum(move.seat == seat for move in record.moves)
        dropped += record.dropped[seat]
        late += 2  # the last replies of a game may arrive after its end, even in the next game
        assert 2 * asked - late <= dropped <= 2 * asked
        assert record.dropped[1 - seat] == 0


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("./missing", "No such file or directory; if this file exists"),
        ("./bot.py", "Permission denied; it must be a file that may be executed (`chmod +x`)"),
    ],
)
async def test_program_that_cannot_be_started_forfeits(run, program, why):
    assert not os.access(FOLDER / "bot.py", os.X_OK)
    async for seat, record in play_each_seat(run, spec("broken", program)):
        (fault,) = record.faults
        assert (fault.seat, fault.cause, fault.move) == (seat, Cause.NO_START, 0)
        assert fault.evidence.detail.startswith(f"the program cannot be started: {program}: {why}")


@pytest.mark.extended(REASON)
async def test_game_without_a_started_bot_has_no_winner(run):
    record = await run.play(spec("a", "./missing"), spec("b", "./missing"))
    assert [fault.cause for fault in record.faults] == [Cause.NO_START] * 2
    assert record.forfeited == (0, 1)
    assert record.winners == ()
    await run.play_healthy()


@pytest.mark.extended(REASON)
async def test_three_misbehaving_bots_do_not_affect_the_fourth(run):
    """Each of the three is charged with its own fault, and the fourth bot plays the game to its end."""
    misbehaving = ("segfaults", "floods_replies", "stops_itself")
    for seat in (0, 2):
        bots = [spec(name) for name in misbehaving]
        bots.insert(seat, HEALTHY)
        record = await run.play(*bots)
        charged = {fault.seat: fault.cause for fault in record.faults if fault.forfeit}
        others = [each for each in range(4) if each != seat]
        assert charged == dict(zip(others, (Cause.CRASH, Cause.FLOOD, Cause.STRIKES), strict=True))
        assert record.winners == (seat,)
        assert not any(move.stand_in for move in record.moves if move.seat == seat)
        await run.play_healthy()


@pytest.mark.extended(REASON)
@pytest.mark.parametrize("seed", [0, 1])
async def test_nonsense_in_one_lane_does_not_change_a_game_in_another(run, seed):
    """Two steady bots make the same moves as without the nonsense in the other lane."""
    nonsense = spec(f"nonsense{seed}", sys.executable, "bot.py", "talks_nonsense", str(seed))
    alone = await run.play(*STEADY, game=PATIENT, deal="beside")
    for bots in ((nonsense, HEALTHY), (HEALTHY, nonsense)):
        record, beside = await asyncio.gather(
            run.play(*bots), run.play(*STEADY, game=PATIENT, deal="beside", lane=1)
        )
        assert {record.seating[fault.seat].name for fault in record.faults} <= {nonsense.bot.name}
        assert (beside.actions, beside.faults) == (alone.actions, ())
    await run.play_healthy()


@pytest.mark.extended(REASON)
async def test_strike_costs_the_limit_and_a_grace_period(run):
    async for seat, record in play_each_seat(run, spec("hangs")):
        lost = [move for move in record.moves if move.seat == seat and move.stand_in]
        strikes = lost[:MAX_STRIKES]
        assert [move.elapsed_us for move in strikes] == [CLOCKS.decision_us] * MAX_STRIKES
        # timers may fire 1 ms early, and late on a busy machine
        at_least_us, at_most_us = REPLY_GRACE_US - 1000, CLOCKS.decision_us // 2
        assert all(at_least_us <= move.lag_us <= at_most_us for move in strikes)
