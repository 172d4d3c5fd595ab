"""Every misbehaving bot in each seat of a game, each followed by a healthy game in the same run."""

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

from referee.bots import process
from referee.bots.manifest import BotSpec
from referee.clocks import Clocks
from referee.errors import Cause
from referee.match.replay import check_record
from referee.records import BotId
from referee.rules.ruleset import RULESETS
from referee.sandbox import monitor
from referee.sandbox.limits import Limits
from referee.sandbox.monitor import ResourceMonitor
from referee.sandbox.rungs import NO_ISOLATION
from referee.tournament.assignments import Assignment, WorkerSettings
from referee.tournament.game_player import GamePlayer

FOLDER = Path(__file__).parents[1] / "misbehaving"
sys.path.insert(0, str(FOLDER))
import bot  # noqa: E402 - found in its folder
from descendants import running  # noqa: E402 - the same
from orders import game_order  # noqa: E402 - the same

RULES = RULESETS["basic"].with_options(max_turns=20)
CLOCKS = Clocks(start_up_us=20_000_000, game_start_us=1_500_000, decision_us=1_500_000)
PATIENT = replace(CLOCKS, game_start_us=20_000_000, decision_us=20_000_000)
"""Nobody healthy needs so long, however busy the machine is."""
IMPATIENT = replace(CLOCKS, start_up_us=2_000_000)
BANK = replace(CLOCKS, bank_us=1_200_000)
MAX_STRIKES = 2


@dataclass(frozen=True)
class Wrong:
    """What a bot is charged with in the end."""

    cause: Cause
    detail: str = ""
    """A pattern."""
    forfeit: bool = True
    exit_code: int | None = None
    signal: str | None = None
    start: Clocks = CLOCKS
    game: Clocks = CLOCKS


def strike(cause, detail):
    return Wrong(cause, detail, forfeit=False)


def early(detail, **more):
    return Wrong(Cause.EXITED_EARLY, f"{detail} before its hello", **more)


NO_HELLO = Wrong(Cause.CONNECT_TIMEOUT, r"no hello within 2 s", start=IMPATIENT)
HANDSHAKE = Wrong(Cause.HANDSHAKE)
LATE = strike(Cause.TIMEOUT, r"no reply within 1\.5 s")
STRIKES = Wrong(Cause.STRIKES, "strike 2 of 2")
ILLEGAL = strike(Cause.ILLEGAL, "is not a legal reply to")
MALFORMED = strike(Cause.MALFORMED, "")
FLOOD = Wrong(Cause.FLOOD, "more than 200 messages or streams")
CLOSED = Wrong(Cause.CRASH, "closed its stream")

WRONG = {
    "exits_with_0": early("exited with 0", exit_code=0),
    "exits_with_1": early("exited with 1", exit_code=1),
    "crashes_at_start": early("was ended by SIGSEGV", signal="SIGSEGV"),
    "dies_of_odd_signal_at_start": early("was ended by signal 40", signal="signal 40"),
    "hangs_at_start": NO_HELLO,
    "says_no_hello": NO_HELLO,
    "speaks_http_1": NO_HELLO,
    "speaks_noise": NO_HELLO,
    "says_preface_only": NO_HELLO,
    "has_huge_headers": replace(HANDSHAKE, detail="closed its stream before its hello"),
    "stops_itself_at_start": NO_HELLO,
    "exits_at_start_beside_daemon": early("exited with 0", exit_code=0),
    "closes_before_hello": replace(HANDSHAKE, detail="closed its stream before its hello"),
    "answers_before_hello": replace(HANDSHAKE, detail="the first message has no hello"),
    "says_garbage_for_hello": replace(HANDSHAKE, detail="the first message is no hello"),
    "speaks_version_2": replace(HANDSHAKE, detail="protocol version 2, the referee 1"),
    "has_wrong_token": replace(HANDSHAKE, detail="a wrong token"),
    "has_foreign_token": Wrong(Cause.IMPERSONATION, "another bot's token"),
    "never_ready": Wrong(Cause.GAME_START_TIMEOUT, r"no ready within 1\.5 s"),
    "exits_at_game_start": Wrong(Cause.CRASH, "exited with 4", exit_code=4),
    "segfaults": Wrong(Cause.CRASH, "was ended by SIGSEGV", signal="SIGSEGV"),
    "aborts": Wrong(Cause.CRASH, "was ended by SIGABRT", signal="SIGABRT"),
    "exits_with_3": Wrong(Cause.CRASH, "exited with 3", exit_code=3),
    "dies_of_odd_signal": Wrong(Cause.CRASH, "was ended by signal 40", signal="signal 40"),
    "closes_stream": CLOSED,
    "cancels_stream": CLOSED,
    "crashes_beside_daemon": Wrong(Cause.CRASH, "exited with 5", exit_code=5),
    "exits_with_0_beside_daemon": Wrong(Cause.CRASH, "exited with 0", exit_code=0),
    "dies_while_talking": Wrong(Cause.CRASH, "exited with 6", exit_code=6),
    "leaves_children": Wrong(Cause.CRASH, "exited with 7", exit_code=7),
    "hangs": STRIKES,
    "runs_in_circles": STRIKES,
    "stops_itself": STRIKES,
    "is_always_late": STRIKES,
    "always_plays_what_it_lacks": STRIKES,
    "is_late": LATE,
    "uses_up_its_bank": Wrong(Cause.OUT_OF_TIME, "no reply within", game=BANK),
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
    "says_100_kb": Wrong(Cause.TOO_LARGE, "a message of 100008 bytes"),
    "says_5_mb": Wrong(Cause.TOO_LARGE, "a message of 5000010 bytes"),
}
TAKES_MUCH = {
    "takes_much_memory": Wrong(Cause.OOM, r"takes \d+ MiB of memory; its limit is 250"),
    "takes_much_memory_at_start": Wrong(Cause.OOM, "its limit is 250"),
    "takes_much_memory_in_children": Wrong(Cause.OOM, "its limit is 250"),
    "runs_many_processes": Wrong(Cause.TOO_MANY_PROCESSES, r"runs 1\d processes; its limit is 10"),
    "fills_scratch": Wrong(Cause.SCRATCH_FULL, "more than 1 MiB, its limit, in its scratch"),
    "fills_scratch_with_names": Wrong(Cause.SCRATCH_FULL, "more than 1 MiB"),
}
"""By the limits of `FRUGAL`."""
FRUGAL = Limits(memory_mib=250, processes=10, scratch_mib=1, open_files=100, output_kib=8)
BEYOND_GRPC = {"says_20_mb"}
"""gRPC itself breaks the stream: a crash, with or without an exit code."""
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
    "ignores_goodbye",
    "stops_itself_at_goodbye",
    "leaves_daemon",
    "leaves_disguised_daemon",
    "leaves_zombies",
    "is_wrapped",
    "shares_memory_with_children",
    "opens_many_files",
}
NONSENSE = {"talks_nonsense"}
"""Anything that a bot can be charged with for what it says."""
ELSEWHERE = {"tells_what_it_sees", "stateless", "at_random"}
"""Serve other tests, and the soak."""


ONE_OF_EACH_KIND = {
    "exits_with_1",
    "hangs_at_start",
    "has_wrong_token",
    "has_foreign_token",
    "never_ready",
    "segfaults",
    "is_always_late",
    "is_late",
    "uses_up_its_bank",
    "plays_what_it_lacks",
    "says_garbage",
    "floods_replies",
    "says_5_mb",
    "takes_much_memory",
    "runs_many_processes",
    "fills_scratch",
    "answers_for_others",
}
"""Bots that plain `pytest` tries: at least one for each cause of a fault."""
MORE = "plays more misbehaving bots"


def plain(names):
    return extend_all_but(ONE_OF_EACH_KIND & set(names), sorted(names), MORE)


def test_plain_pytest_tries_every_cause_of_a_fault():
    tried = {
        wrong.cause for name, wrong in (WRONG | TAKES_MUCH).items() if name in ONE_OF_EACH_KIND
    }
    assert tried == {wrong.cause for wrong in (WRONG | TAKES_MUCH).values()}


def test_every_bot_of_the_folder_is_tried():
    named = {*WRONG, *TAKES_MUCH, *BEYOND_GRPC, *HARMLESS, *NONSENSE, *ELSEWHERE}
    classes = [each for each in vars(bot).values() if isclass(each) and issubclass(each, bot.Fair)]
    programs = {bot.name_of(each) for each in classes}
    assert named == programs - {"goes_wrong", "goes_wrong_for_good"}


class Run:
    """A worker's games, in this process."""

    def __init__(self, folder):
        settings = WorkerSettings(
            cores=frozenset(),
            clocks=CLOCKS,
            max_processes=4,
            isolation=NO_ISOLATION,
            folder=folder,
            parent_pid=os.getpid(),
        )
        self.player = GamePlayer(settings)
        self.folder = folder
        self.strangers = running()
        """Processes of other tests."""
        self.games = 0
        self.descriptors = 0
        """That this process has while two bots are at the table."""

    async def play(self, *specs, start=CLOCKS, game=CLOCKS, lane=0, deal=None):
        self.player._pool._clocks = start
        self.games += 1
        order = game_order(
            str(self.games), RULES, specs, clocks=game, max_strikes=MAX_STRIKES, deal=deal
        )
        (record,) = await self.player.play_assignment(Assignment(lane, (order,)))
        check_record(record)
        return record

    async def play_healthy(self):
        record = await self.play(HEALTHY, OTHER, game=PATIENT)
        assert not record.faults
        assert not record.forfeited

    async def end(self):
        """Whatever happened, nothing is left of it."""
        await self.player.close()
        assert running() <= self.strangers
        assert not list(self.folder.iterdir())
        sockets = [each.laddr for each in psutil.Process().net_connections("unix")]
        assert not [path for path in sockets if path.startswith(str(self.folder))]
        assert not self.player._pool._tokens
        assert descriptors() < self.descriptors, "as many as with two bots at the table"


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
    await run.end()


async def each_seat(run, wrong, **clocks):
    for seat in (0, 1):
        bots = [HEALTHY, HEALTHY]
        bots[seat] = wrong
        record = await run.play(*bots, **clocks)
        assert {fault.seat for fault in record.faults} <= {seat}, "the other is not charged"
        assert not any(move.stand_in for move in record.moves if move.seat != seat)
        yield seat, record
        await run.play_healthy()


@pytest.mark.parametrize("name", plain(WRONG))
async def test_a_fault(run, name):
    wrong = WRONG[name]
    async for seat, record in each_seat(run, spec(name), start=wrong.start, game=wrong.game):
        fault = record.faults[-1]
        evidence = fault.evidence
        assert (fault.cause, fault.forfeit) == (wrong.cause, wrong.forfeit)
        assert re.search(wrong.detail, evidence.detail)
        assert (evidence.exit_code, evidence.signal) == (wrong.exit_code, wrong.signal)
        for each in record.faults:
            tail = each.evidence.stderr_tail
            assert f"I am {name}" in tail or len(tail) > 2000 or wrong.start is IMPATIENT
        assert record.forfeited == ((seat,) if wrong.forfeit else ())
        if wrong.forfeit:
            assert record.ranks[seat] == 2


@pytest.mark.parametrize("name", plain(TAKES_MUCH))
async def test_a_limit(run, name):
    wrong = TAKES_MUCH[name]
    async for seat, record in each_seat(run, spec(name, limits=FRUGAL), game=PATIENT):
        (fault,) = record.faults
        assert (fault.cause, fault.forfeit) == (wrong.cause, True)
        assert re.search(wrong.detail, fault.evidence.detail)
        assert f"I am {name}" in fault.evidence.stderr_tail
        assert record.forfeited == (seat,)
        assert record.usage[1 - seat] is not None


@pytest.mark.extended("plays more misbehaving bots")
async def test_memory_that_is_shared_counts_once(run):
    async for _, record in each_seat(
        run, spec("shares_memory_with_children", limits=FRUGAL), game=PATIENT
    ):
        assert not record.faults
        assert max(usage.peak_memory_kib for usage in record.usage) > FRUGAL.memory_mib * 1024


@pytest.mark.extended("plays more misbehaving bots")
async def test_the_limit_of_files(run):
    async for _, record in each_seat(run, spec("opens_many_files", limits=FRUGAL), game=PATIENT):
        assert not record.faults
    bot = run.player._pool._processes[0, "opens_many_files@1"]
    assert "\n100 files are open\n" in bot.stderr_tail()


@pytest.mark.extended("plays more misbehaving bots")
async def test_the_limit_of_output(run):
    assert not (await run.play(HEALTHY, spec("prints_much", limits=FRUGAL), game=PATIENT)).faults
    bot = run.player._pool._processes[0, "prints_much@1"]
    assert bot.output.total == 64 << 20
    assert bot.output.last_bytes() == b"o" * (8 << 10)
    assert len(bot.error_output.tail(1 << 20)) <= 16 << 10


@pytest.mark.extended("plays more misbehaving bots")
async def test_a_bot_that_breaks_a_limit_between_games_is_started_anew(run, monkeypatch):
    monkeypatch.setattr(monitor, "_IDLE_PERIODS", 1)
    keen = spec("keen", sys.executable, "bot.py", "fair", limits=FRUGAL)
    assert not (await run.play(HEALTHY, keen, game=PATIENT)).faults
    before = run.player._pool._processes[0, "keen@1"]
    (before._folder.scratch / "late").write_bytes(b"x" * (2 << 20))
    await before.session.closed.wait()
    assert not (await run.play(HEALTHY, keen, game=PATIENT)).faults
    assert run.player._pool._processes[0, "keen@1"] is not before


@pytest.mark.extended("plays more misbehaving bots")
async def test_a_message_that_grpc_does_not_take(run):
    async for seat, record in each_seat(run, spec("says_20_mb")):
        assert record.faults[-1].cause is Cause.CRASH
        assert record.forfeited == (seat,)


@pytest.mark.parametrize("name", plain(HARMLESS))
async def test_what_is_no_fault(run, name):
    async for _seat, record in each_seat(run, spec(name), game=PATIENT):
        assert not record.faults


@pytest.mark.extended("plays more misbehaving bots")
async def test_a_bot_that_is_late_for_want_of_a_core_is_not_charged(run, monkeypatch):
    monkeypatch.setattr(ResourceMonitor, "busy_ns", lambda _: 0)
    async for seat, record in each_seat(run, spec("is_late")):
        assert not record.faults
        late = [move for move in record.moves if move.seat == seat and move.lag_us >= 100_000]
        assert len(late) == 1
        assert late[0].elapsed_us == CLOCKS.decision_us
        assert not late[0].stand_in


@pytest.mark.extended("plays more misbehaving bots")
async def test_replies_that_nobody_asked_for_are_counted(run):
    asked = dropped = late = 0
    async for seat, record in each_seat(run, spec("repeats_itself"), game=PATIENT):
        assert not record.faults
        asked += sum(move.seat == seat for move in record.moves)
        dropped += record.dropped[seat]
        late += 2  # the last ones of a game may come after it, even in the next
        assert 2 * asked - late <= dropped <= 2 * asked
        assert record.dropped[1 - seat] == 0


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("./missing", "No such file or directory"),
        ("./bot.py", "Permission denied"),
    ],
)
async def test_a_program_that_cannot_be_started(run, program, why):
    assert not os.access(FOLDER / "bot.py", os.X_OK)
    async for seat, record in each_seat(run, spec("broken", program)):
        (fault,) = record.faults
        assert (fault.seat, fault.cause, fault.move) == (seat, Cause.NO_START, 0)
        assert fault.evidence.detail == f"cannot be started: {program}: {why}"


@pytest.mark.extended("plays more misbehaving bots")
async def test_no_bot_of_the_table_starts(run):
    record = await run.play(spec("a", "./missing"), spec("b", "./missing"))
    assert [fault.cause for fault in record.faults] == [Cause.NO_START] * 2
    assert record.forfeited == (0, 1)
    assert record.winners == ()
    await run.play_healthy()


@pytest.mark.extended("plays more misbehaving bots")
async def test_three_that_go_wrong_at_a_table_of_four(run):
    """Each is charged with its own, and the fourth plays its game to the end."""
    wrong = ("segfaults", "floods_replies", "stops_itself")
    for seat in (0, 2):
        bots = [spec(name) for name in wrong]
        bots.insert(seat, HEALTHY)
        record = await run.play(*bots)
        charged = {fault.seat: fault.cause for fault in record.faults if fault.forfeit}
        others = [each for each in range(4) if each != seat]
        assert charged == dict(zip(others, (Cause.CRASH, Cause.FLOOD, Cause.STRIKES), strict=True))
        assert record.winners == (seat,)
        assert not any(move.stand_in for move in record.moves if move.seat == seat)
        await run.play_healthy()


@pytest.mark.extended("plays more misbehaving bots")
@pytest.mark.parametrize("seed", [0, 1])
async def test_a_game_beside_nonsense_is_not_changed(run, seed):
    """The same two play the same deal again, at the same time in another lane, as when they are alone."""
    nonsense = spec(f"nonsense{seed}", sys.executable, "bot.py", "talks_nonsense", str(seed))
    alone = await run.play(*STEADY, game=PATIENT, deal="beside")
    for bots in ((nonsense, HEALTHY), (HEALTHY, nonsense)):
        record, beside = await asyncio.gather(
            run.play(*bots), run.play(*STEADY, game=PATIENT, deal="beside", lane=1)
        )
        assert {record.seating[fault.seat].name for fault in record.faults} <= {nonsense.bot.name}
        assert (beside.actions, beside.faults) == (alone.actions, ())
    await run.play_healthy()


@pytest.mark.extended("plays more misbehaving bots")
async def test_limits_are_kept(run):
    """A strike costs the limit and a grace, and no more."""
    async for seat, record in each_seat(run, spec("hangs")):
        lost = [move.elapsed_us for move in record.moves if move.seat == seat and move.stand_in]
        assert lost[:MAX_STRIKES] >= [CLOCKS.decision_us] * MAX_STRIKES
        assert max(lost) < 2 * CLOCKS.decision_us
