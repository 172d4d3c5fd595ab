"""Play whole games with real bot processes, in this process and in a worker process."""

import ast
import asyncio
import gc
import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context, resource_tracker
from pathlib import Path
from unittest.mock import MagicMock

import psutil
import pytest

from referee import deals
from referee.bots import BotSpec
from referee.bots.player import BotPlayer, BotPool
from referee.clocks import SECOND_US, Clocks
from referee.errors import Cause, Evidence, Forfeit, VoidGame
from referee.match.play import GameSetup
from referee.match.replay import check_record
from referee.protocol import messages
from referee.records import BotId, GameRecord
from referee.rules.events import Termination
from referee.rules.ruleset import RULESETS
from referee.sandbox import NO_ISOLATION
from referee.tournament import game_player, worker
from referee.tournament.assignments import Assignment, Forfeits, GameTask, WorkerSettings
from referee.tournament.game_player import VOID_ATTEMPTS, GamePlayer, make_free_task

BOTS = Path(__file__).parents[1] / "misbehaving"
RULES = RULESETS["basic"].with_options(max_turns=20)
PATIENT = Clocks(
    start_up_us=60 * SECOND_US, game_start_us=60 * SECOND_US, decision_us=1000 * SECOND_US
)

EXPLAINS_ITSELF = """
import sys
from referee.sdk import Choice, run

explanations = ["I pass"]


def decide(request):
    if explanations:
        print(explanations.pop(), file=sys.stderr, flush=True)
        return Choice.PASS
    print("noise " * 1000, file=sys.stderr, flush=True)
    return request.legal[0]


run(decide)
"""
"""A bot that gives the reason for its illegal first action, and prints much afterwards."""


def make_task(number, *kinds, clocks=PATIENT):
    """Return the task of a game with bots of these kinds (see tests/misbehaving)."""
    bots = tuple(
        BotSpec(BotId(f"{kind}-{seat}", "1"), BOTS, ("python3", "bot.py", kind))
        for seat, kind in enumerate(kinds)
    )
    setup = GameSetup(
        game_id=f"game-{number}",
        ruleset=RULES,
        seating=tuple(spec.bot for spec in bots),
        deck=deals.deck(bytes(32), str(number), RULES),
        clocks=clocks,
        max_strikes=2,
        isolation="none",
    )
    return GameTask(
        setup=setup,
        bots=bots,
        opaque_id=f"opaque-{number}",
        seeds=tuple(range(len(bots))),
        names=(),
    )


def test_each_copy_of_a_bot_has_a_process_of_its_own_and_the_id_of_the_bot():
    ann, bob = (BotSpec(BotId(name, "1"), BOTS, ("python3",)) for name in ("ann", "bob"))
    task = make_free_task((ann, bob, ann, BotId("cy", "person")), RULES, "7", NO_ISOLATION)
    assert [spec and str(spec.bot) for spec in task.bots] == ["ann@1", "bob@1", "ann#2@1", None]
    assert [str(bot) for bot in task.setup.seating] == ["ann@1", "bob@1", "ann@1", "cy@person"]
    assert len(set(task.seeds)) == 4


@pytest.fixture
def settings(tmp_path_factory):
    return WorkerSettings(
        cores=frozenset(),
        clocks=PATIENT,
        max_processes=8,
        isolation=NO_ISOLATION,
        folder=tmp_path_factory.mktemp("w"),  # short: the path of a socket is limited
        parent_pid=os.getpid(),
    )


@pytest.fixture
async def play(settings):
    before = set(
        psutil.Process().children(recursive=True)
    )  # for example the resource tracker of another test
    player = GamePlayer(settings)

    async def play(*tasks, suspended=frozenset()):
        records = await player.play_all(0, tasks, suspended)
        for record in records:
            check_record(record)
        return records

    yield play
    await player.close()
    assert not list(settings.folder.iterdir())
    assert set(psutil.Process().children(recursive=True)) <= before


async def test_start_of_the_game_has_the_seed_of_the_seat_and_the_names(play, monkeypatch):
    starts, make = {}, messages.game_start

    def note(opaque_id, **start):
        starts[start["view"].seat] = opaque_id, start["seed"], start["names"]
        return make(opaque_id, **start)

    monkeypatch.setattr(messages, "game_start", note)
    await play(replace(make_task(1, "fair", "fair"), seeds=(70, 71), names=("ann", "bob")))
    assert starts == {seat: ("opaque-1", 70 + seat, ("ann", "bob")) for seat in range(2)}


async def test_every_fault_has_the_standard_error_of_its_bot(play):
    (record,) = await play(make_task(1, "always_plays_what_it_lacks", "fair"))
    assert [fault.cause for fault in record.faults] == [Cause.ILLEGAL, Cause.ILLEGAL, Cause.STRIKES]
    assert {fault.evidence.stderr_tail for fault in record.faults} == {
        "I am always_plays_what_it_lacks\n"
    }


async def test_illegal_action_has_the_standard_error_of_its_moment(play):
    task = make_task(1, "fair", "fair")
    spec = replace(task.bots[0], command=("python3", "-c", EXPLAINS_ITSELF))
    (record,) = await play(replace(task, bots=(spec, task.bots[1])))
    (fault,) = record.faults
    assert (fault.cause, fault.evidence.stderr_tail) == (Cause.ILLEGAL, "I pass\n")


async def test_a_suspended_bot_is_not_started(play):
    (record,) = await play(make_task(1, "exits_with_1", "fair"), suspended={"exits_with_1-0@1"})
    assert [(fault.seat, fault.cause) for fault in record.faults] == [(0, Cause.SUSPENDED)]
    assert record.faults[0].evidence.stderr_tail == ""
    assert record.ranks == (2, 1)


@pytest.mark.extended("plays more games")
async def test_a_bot_that_keeps_computing_is_killed_after_its_forfeit(play, settings):
    clocks = replace(PATIENT, decision_us=SECOND_US // 2)
    (record,) = await play(make_task(1, "runs_in_circles", "fair", clocks=clocks))
    assert [fault.cause for fault in record.faults] == [Cause.TIMEOUT, Cause.TIMEOUT, Cause.STRIKES]
    burners = [bot for bot in bots_in(settings.folder) if bot.cmdline()[-1] == "runs_in_circles"]
    _, alive = await asyncio.to_thread(psutil.wait_procs, burners, timeout=30)
    assert alive == []


class VoidSeats:
    """Makes the first attempts to start a bot void, and lists the processes of all other attempts."""

    def __init__(self, monkeypatch, name, times):
        self.seated = []
        seat = BotPool.acquire

        async def void_seat(pool, lane, spec):
            nonlocal times
            if spec.bot.name == name and times:
                times -= 1
                raise VoidGame("no room")
            process = await seat(pool, lane, spec)
            self.seated.append(process)
            return process

        monkeypatch.setattr(BotPool, "acquire", void_seat)


async def test_a_void_game_is_played_again_by_new_processes(play, monkeypatch):
    seats = VoidSeats(monkeypatch, "fair-1", times=VOID_ATTEMPTS - 1)
    (record,) = await play(make_task(1, "fair", "fair"))
    assert record.faults == ()
    assert len(set(seats.seated)) == VOID_ATTEMPTS + 1


@pytest.mark.extended("plays more games")
async def test_a_game_that_is_void_every_time_raises_void_game(play, monkeypatch):
    VoidSeats(monkeypatch, "fair-0", times=VOID_ATTEMPTS)
    message = f"game-1 was played alone {VOID_ATTEMPTS} times, and was void each time: no room"
    with pytest.raises(VoidGame, match=message):
        await play(make_task(1, "fair", "fair"))


@pytest.mark.extended("plays more games")
async def test_a_void_game_does_not_disturb_the_other_games_of_its_portion(play, monkeypatch):
    kinds = ("holds_four_games", "holds_four_games")
    await play(make_task(1, *kinds))
    seat_in_first_game = 1  # `find_capacity` takes a seat too
    VoidSeats(monkeypatch, "holds_four_games-1", times=1 + seat_in_first_game)
    records = await play(*(make_task(number, *kinds) for number in (2, 3, 4)))
    assert [record.game_id for record in records] == ["game-2", "game-3", "game-4"]
    assert [record.faults for record in records] == [(), (), ()]


async def test_processes_that_play_on_do_not_count_void_games(settings, monkeypatch):
    join, decide, counts = BotPlayer.join, BotPlayer.decide, []

    async def join_or_void(process, start, limit_us):
        if (start.game_id, process.spec.bot.name) == ("opaque-1", "holds_four_games-1"):
            process.change_games(-1)
            raise VoidGame("no room")
        return await join(process, start, limit_us)

    async def decide_or_void(player, request):
        if player._game_id == "opaque-2":
            raise VoidGame("no room")
        counts.append((player._process.games, player._process.session._games.copy()))
        return await decide(player, request)

    monkeypatch.setattr(BotPlayer, "join", join_or_void)
    monkeypatch.setattr(BotPlayer, "decide", decide_or_void)
    player = GamePlayer(settings)
    kinds = ("holds_four_games", "holds_four_games")
    try:
        (record,) = await player.play_portion(
            0, [make_task(number, *kinds) for number in (1, 2, 3)]
        )
    finally:
        await player.close()
    assert (record.game_id, record.faults) == ("game-3", ())
    assert counts[-1] == (1, {"opaque-3"})


async def test_void_game_is_played_alone_afterwards_though_its_bots_hold_more(
    settings, monkeypatch
):
    join, voids = BotPlayer.join, []

    async def join_or_void(process, start, limit_us):
        if start.game_id == "opaque-2" and not voids:
            voids.append(VoidGame("no room"))
            process.change_games(-1)
            raise voids[0]
        return await join(process, start, limit_us)

    monkeypatch.setattr(BotPlayer, "join", join_or_void)
    one, two, three = (
        make_task(number, "holds_four_games", "holds_four_games") for number in (1, 2, 3)
    )
    player = GamePlayer(settings)
    try:
        portions = [await player.play_portion(0, tasks) for tasks in ((one, two), (two, three))]
    finally:
        await player.close()
    assert [[record.game_id for record in each] for each in portions] == [["game-1"], ["game-2"]]


async def test_bots_that_make_the_charged_games_of_each_other_void_are_charged_in_the_replays(
    play, monkeypatch
):
    join, decide = BotPlayer.join, BotPlayer.decide
    charged = {"holds_four_games-0": "opaque-1", "holds_four_games-1": "opaque-2"}
    sessions, both_games = {}, asyncio.Barrier(2)

    async def note_and_join(process, start, limit_us):
        sessions[process.spec.bot.name] = process.session
        return await join(process, start, limit_us)

    async def fail_and_decide(player, request):
        if charged:
            await both_games.wait()
        while charged:
            bot, game_id = charged.popitem()
            sessions[bot]._charged_game = game_id
            sessions[bot].fail(Forfeit(Cause.CRASH, Evidence(detail="exited with 3")))
        return await decide(player, request)

    monkeypatch.setattr(BotPlayer, "join", note_and_join)
    monkeypatch.setattr(BotPlayer, "decide", fail_and_decide)
    kinds = ("holds_four_games", "holds_four_games")
    records = await play(*(make_task(number, *kinds) for number in (1, 2)))
    for seat, record in enumerate(records):
        [fault] = record.faults
        assert (fault.seat, fault.cause, fault.move) == (seat, Cause.CRASH, 0)
        assert fault.evidence.detail == "exited with 3, in an earlier attempt to play this game"
        assert fault.evidence.stderr_tail == "I am holds_four_games\n"
        assert record.failed_processes == {f"holds_four_games-{seat}@1"}


async def test_failure_in_the_only_game_of_a_portion_is_not_charged_if_the_game_is_void(
    play, monkeypatch
):
    decide, voids = BotPlayer.decide, []

    async def fail_and_decide(player, request):
        if not voids:
            player._process.session.fail(Forfeit(Cause.CRASH, Evidence(detail="gone")))
            voids.append(VoidGame("no room"))
            raise voids[0]
        return await decide(player, request)

    monkeypatch.setattr(BotPlayer, "decide", fail_and_decide)
    (record,) = await play(make_task(1, "fair", "fair"))
    assert record.faults == ()


@pytest.mark.extended("plays more games")
async def test_a_portion_has_the_games_that_its_bots_can_hold(settings, monkeypatch):
    four, one = ("holds_four_games", "holds_four_games"), ("holds_four_games", "fair")
    tasks = [make_task(number, *four) for number in range(6)]
    player = GamePlayer(settings)

    async def count(*tasks, singles=frozenset()):
        records = await player.play_portion(0, tasks, frozenset(), singles)
        assert player.small_portion in {None, len(records)}
        return [record.game_id for record in records]

    try:
        assert await count(*tasks) == ["game-0", "game-1", "game-2", "game-3"]
        assert player.small_portion == 4
        assert await count(*tasks[:3]) == ["game-0", "game-1", "game-2"]
        assert player.small_portion is None
        assert await count(make_task(7, *one), make_task(8, *one)) == ["game-7"]
        assert player.small_portion == 1
        assert await count(*tasks, singles={"holds_four_games-1@1"}) == ["game-0"]
        assert player.small_portion is None, "it is a single"
        unstartable = make_task(10, "holds_four_games", "exits_with_1")
        assert await count(*tasks[:2], unstartable) == ["game-0", "game-1"]
        assert await count(unstartable, *tasks) == ["game-10"]
        monkeypatch.setattr(game_player, "MAX_BOTS", 2)
        third = "holds_four_games", "holds_four_games", "holds_four_games"
        assert await count(*tasks[:2], make_task(11, *third)) == ["game-0", "game-1"]
        assert player.small_portion == 2, "too many bots"
        mixed = make_task(9, *one), *tasks[:2]
        assert await count(*mixed, singles={"fair-1@1"}) == ["game-9"]
        assert await count(*mixed[::-1], singles={"fair-1@1"}) == ["game-1", "game-0"]
    finally:
        await player.close()


@pytest.mark.extended("plays more games")
async def test_bot_that_ends_before_several_games_start_plays_one_game_at_a_time(
    settings, monkeypatch
):
    tasks = [make_task(number, "holds_four_games", "holds_four_games") for number in range(1, 8)]
    player, sizes = GamePlayer(settings), []
    await player.play_portion(0, tasks[:2])
    join = BotPlayer.join

    async def end_and_join(process, opening, limit_us):
        if process.has_played and process.session.failure is None and not sizes:
            gone = Forfeit(Cause.CRASH, Evidence(detail="the process has ended"))
            asyncio.get_running_loop().call_soon(process.session.fail, gone)
        return await join(process, opening, limit_us)

    monkeypatch.setattr(BotPlayer, "join", end_and_join)
    missing, records = tasks[2:], []
    try:
        while missing:
            played = await player.play_portion(0, missing)
            records += played
            sizes.append(len(played))
            done = {record.game_id for record in played}
            missing = [task for task in missing if task.setup.game_id not in done]
    finally:
        await player.close()
    assert max(sizes) == 1
    assert [record.faults for record in records] == [()] * 5


def played_record(task):
    """Return the record of a game without moves."""
    seats = len(task.bots)
    return GameRecord(
        game_id=task.setup.game_id,
        ruleset=RULES,
        seating=task.setup.seating,
        deck=task.setup.deck,
        moves=(),
        faults=(),
        termination=Termination.TURN_LIMIT,
        scores=(0,) * seats,
        ranks=(1,) * seats,
        forfeited=(),
        usage=(None,) * seats,
        clocks=PATIENT,
        max_strikes=2,
        isolation="none",
        started_at_us=0,
        duration_us=0,
    )


class VoidAfter:
    """A `GamePlayer` that plays some portions of one game, and whose next game is void."""

    def __init__(self, portions):
        self._portions = portions
        self.small_portion = None

    async def play_portion(self, _lane, missing, _suspended, _singles):
        if not self._portions:
            raise VoidGame("no room")
        self._portions -= 1
        return [played_record(missing[0])]


@pytest.mark.parametrize("portions", [1, 2])
def test_games_that_were_played_before_a_void_game_are_returned(monkeypatch, portions):
    tasks = tuple(make_task(number, "fair", "fair") for number in range(3))
    stretch = Assignment(lane=0, bundles=(tasks[:1], tasks[1:]), least_s=60)
    monkeypatch.setattr(worker, "_WORKERS", [imitation := MagicMock()])
    imitation.adapt = lambda task: task
    imitation.runner.run = asyncio.run
    imitation.monitor.measure.return_value = None
    imitation.player = VoidAfter(portions)
    records = worker.play_games(stretch).records
    assert [record.game_id for record in records] == [f"game-{n}" for n in range(portions)]
    with pytest.raises(VoidGame, match="no room"):
        worker.play_games(replace(stretch, bundles=(tasks[portions:],)))


@pytest.fixture
def executor(settings):
    with ProcessPoolExecutor(
        1,
        mp_context=get_context("spawn"),
        initializer=worker.initialize_worker,
        initargs=(settings,),
    ) as executor:
        yield executor
        with suppress(BrokenProcessPool):
            executor.submit(worker.stop_worker).result()
    del executor
    gc.collect()  # semaphores that are collected later would start the tracker again
    resource_tracker._resource_tracker._stop()  # else other tests find it among the children of this process


def test_a_bot_inherits_no_variable_and_no_descriptor_of_its_worker(executor):
    report = executor.submit(
        worker.play_games, Assignment(0, ((make_task(1, "tells_what_it_sees", "fair"),),))
    )
    (fault,) = report.result().records[0].faults
    _, environment, descriptors = map(str.strip, fault.evidence.stderr_tail.splitlines())
    seen = ast.literal_eval(environment)
    assert seen.keys() == {"PATH", "HOME", "TMPDIR", "LANG", "REFEREE_ADDRESS", "REFEREE_TOKEN"}
    assert seen["PATH"].startswith(f"{Path(sys.executable).parent}:")
    assert ast.literal_eval(descriptors) == ["0", "1", "2"]


@pytest.mark.extended("plays more games")
def test_forfeits_in_earlier_bundles_of_an_assignment_suspend_a_bot(executor):
    bundles = tuple((make_task(number, "exits_with_1", "fair"),) for number in range(1, 5))
    assignment = Assignment(0, bundles, Forfeits(2), least_s=60)
    records = executor.submit(worker.play_games, assignment).result().records
    early, suspended = Cause.EXITED_EARLY, Cause.SUSPENDED
    causes = [[fault.cause for fault in record.faults] for record in records]
    assert causes == [[early], [early], [suspended], [suspended]]


def test_a_worker_has_real_time_priority_if_that_is_allowed(executor):
    pid = executor.submit(os.getpid).result()
    assert os.getsid(pid) == pid
    is_nice = os.getpriority(os.PRIO_PROCESS, 0) > 0
    is_real_time = may_be_real_time() and not is_nice
    assert os.sched_getscheduler(pid) == (os.SCHED_RR if is_real_time else os.SCHED_OTHER)


def may_be_real_time():
    """Return True if processes may become real-time processes; another process tries it."""
    ask = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    asked = subprocess.run([sys.executable, "-c", ask], capture_output=True, check=False)
    return asked.returncode == 0


def bots_in(folder):
    """Return the bot processes whose socket is in this folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get("REFEREE_ADDRESS", "").startswith(f"unix:{folder}"):
                found.append(process)
    return found


@pytest.mark.extended("plays more games")
@pytest.mark.parametrize("kind", ["hangs", "runs_in_circles"])
def test_bots_die_with_their_worker_however_it_dies(executor, settings, kind):
    pid = executor.submit(os.getpid).result()
    playing = executor.submit(worker.play_games, Assignment(0, ((make_task(1, kind, kind),),)))
    while len(bots := bots_in(settings.folder)) < 2:
        assert not playing.done()
    os.kill(pid, signal.SIGKILL)
    gone, alive = psutil.wait_procs(bots, timeout=30)
    assert (len(gone), alive) == (2, [])
    with pytest.raises(BrokenProcessPool):
        playing.result()
