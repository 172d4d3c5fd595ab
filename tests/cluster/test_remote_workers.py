"""Where lanes live on a cluster, what is told of lost workers, and what ends a run."""

from __future__ import annotations

import asyncio
import errno
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from distributed.client import ClosedClientError, FutureCancelledError
from distributed.core import Status
from fake_client import REQUEST, prepared, preparing, settle

from referee.cluster import remote_workers
from referee.cluster.member import MissingCopyError
from referee.cluster.remote_workers import RemoteWorkers, cluster_workers
from referee.errors import RefereeError, UserError, VoidGame
from referee.roster.roster import Roster
from referee.roster.workshop import Workshop
from referee.sandbox import NO_ISOLATION
from referee.store import HostFigures
from referee.store.league import League
from referee.tournament.assignments import Assignment, AssignmentResult, Lanes
from referee.tournament.conduct import Feeder
from referee.tournament.workers import WorkerLostError

RESULT = AssignmentResult(["a record"])


def make_group(client, dask_workers, said, lanes=3):
    """Return the `RemoteWorkers` with these Dask workers."""
    return RemoteWorkers(client, dask_workers, REQUEST.deployment, lanes, say=said.append)


@asynccontextmanager
async def started(client, said, lanes=3):
    async with prepared(client, said, lanes) as dask_workers:
        yield make_group(client, dask_workers, said, lanes)


async def begin(client, workers, lane):
    """Submit an assignment of a lane; return the task and the job of Dask."""
    count = len(client.jobs)
    task = asyncio.ensure_future(workers.submit(lane, Assignment(lane, ())))
    await settle()
    assert len(client.jobs) == count + 1
    return task, client.jobs[-1]


async def play(client, workers, lane):
    task, job = await begin(client, workers, lane)
    job.done.set_result(RESULT)
    assert await task == RESULT
    return job.address


async def play_all(client, workers, lanes):
    """Play a stretch of each lane, all at the same time; return where."""
    begun = [await begin(client, workers, lane) for lane in range(lanes)]
    for task, job in begun:
        job.done.set_result(RESULT)
        assert await task == RESULT
    return [job.address for _, job in begun]


async def test_lanes_are_spread_and_stay_where_they_are(client, said):
    for number in range(2):
        client.join(f"tcp://w:{number}")
    async with started(client, said, lanes=4) as workers:
        first = await play_all(client, workers, 4)
        assert await play_all(client, workers, 4) == first
    assert sorted(first) == ["tcp://w:0", "tcp://w:0", "tcp://w:1", "tcp://w:1"]


async def test_lanes_move_to_a_new_worker_until_the_numbers_are_equal(client, said):
    client.join("tcp://w:0")
    async with started(client, said, lanes=4) as workers:
        assert set(await play_all(client, workers, 4)) == {"tcp://w:0"}
        client.join("tcp://w:1")
        await settle()
        homes = await play_all(client, workers, 4)
        assert await play_all(client, workers, 4) == homes
    assert sorted(homes) == ["tcp://w:0", "tcp://w:0", "tcp://w:1", "tcp://w:1"]


async def test_worker_whose_lanes_are_finished_gets_one_of_another_worker(client, said):
    for number in range(2):
        client.join(f"tcp://w:{number}")
    async with started(client, said, lanes=4) as workers:
        begun = [await begin(client, workers, lane) for lane in range(4)]
        slow = begun[3][1].address
        for task, job in begun:
            if job.address != slow:  # both lanes end here
                job.done.set_result(RESULT)
                await task
        task, job = begun[3]
        job.done.set_result(RESULT)
        await task
        assert await play(client, workers, 3) != slow


async def test_lost_worker_is_told_once_and_its_lanes_move(client, said):
    for number in range(2):
        client.join(f"tcp://w:{number}")
    async with started(client, said, lanes=4) as workers:
        homes = await play_all(client, workers, 4)
        lanes = [lane for lane in range(4) if homes[lane] == "tcp://w:0"]
        playing, waiting = [(await begin(client, workers, lane))[0] for lane in lanes]
        client.lose("tcp://w:0")
        with pytest.raises(WorkerLostError, match="the worker tcp://w:0 is gone") as lost:
            await playing
        assert not lost.value.was_waiting
        with pytest.raises(WorkerLostError) as other:
            await waiting
        assert other.value.was_waiting
        assert said == ["The worker tcp://w:0 is gone. Its unfinished games are played again."]
        assert {await play(client, workers, lane) for lane in range(4)} == {"tcp://w:1"}


async def test_lane_of_a_lost_worker_moves_to_another_host_first(client, said):
    for address in ("tcp://a:0", "tcp://a:1", "tcp://b:0"):
        client.join(address)
    async with started(client, said) as workers:
        begun = [await begin(client, workers, lane) for lane in range(3)]
        assert [job.address for _, job in begun] == ["tcp://a:0", "tcp://a:1", "tcp://b:0"]
        client.lose("tcp://a:0")
        with pytest.raises(WorkerLostError):
            await begun[0][0]
        assert await play(client, workers, 0) == "tcp://b:0"
        for task, job in begun[1:]:
            job.done.set_result(RESULT)
            await task


async def test_figures_of_hosts_say_who_plays(client, said):
    for address in ("tcp://10.0.0.1:1", "tcp://10.0.0.2:1", "tcp://10.0.0.2:2"):
        client.join(address)
    async with started(client, said, lanes=4) as workers:
        assert [each.host for each in workers.list_hosts()] == ["10.0.0.1", "10.0.0.2"]
        begun = {}
        for lane in range(3):
            task, job = await begin(client, workers, lane)
            begun[job.address] = task, job
        task, job = begun["tcp://10.0.0.2:1"]
        job.done.set_result(RESULT)
        await task
        client.lose("tcp://10.0.0.2:2")
        with pytest.raises(WorkerLostError):
            await begun["tcp://10.0.0.2:2"][0]
        assert workers.list_hosts() == [
            HostFigures("10.0.0.1", playing=1, idle=0, lost=0, games=0),
            HostFigures("10.0.0.2", playing=0, idle=1, lost=1, games=1),
        ]
        begun["tcp://10.0.0.1:1"][1].done.set_result(RESULT)
        await begun["tcp://10.0.0.1:1"][0]


async def test_run_waits_for_a_worker_and_says_so_once(client, said):
    async with started(client, said) as workers:
        tasks = [
            asyncio.ensure_future(workers.submit(lane, Assignment(lane, ()))) for lane in range(3)
        ]
        await settle()
        assert said == ["Waiting for a worker that can play."]
        client.join("tcp://w:0")
        await settle()
        for job in client.jobs:
            job.done.set_result(RESULT)
        assert await asyncio.gather(*tasks) == [RESULT] * 3


async def test_process_that_died_on_a_worker_is_told(client, said):
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, job = await begin(client, workers, 0)
        job.done.set_exception(WorkerLostError("worker 0 died"))
        with pytest.raises(WorkerLostError):
            await task
    assert said == ["The unfinished games of tcp://w:0 are played again: worker 0 died."]


async def test_worker_that_has_lost_a_bot_gets_it_again(client, said):
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, job = await begin(client, workers, 0)
        client.answers["tcp://w:0"]["deploy"] = ("b@2",)
        job.done.set_exception(MissingCopyError("host: no copy of b@2 can be read"))
        with pytest.raises(WorkerLostError):
            await task
        assert await play(client, workers, 0) == "tcp://w:0"
    assert [name for _, name, *_ in client.calls] == ["deploy", "deploy", "add_bot", "leave"]
    assert said == [
        "The worker tcp://w:0 lacks a bot: host: no copy of b@2 can be read. Its unfinished games are played again."
    ]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            VoidGame("cup-2 was void 3 times: no room for a bot's folder"),
            "cup-2 was void 3 times: no room for a bot's folder",
        ),
        (
            RefereeError("no room for worker 0: Cannot allocate memory"),
            "no room for worker 0: Cannot allocate memory",
        ),
        (OSError(errno.ENOSPC, "No space left"), "OSError: [Errno 28] No space left"),
    ],
)
async def test_worker_that_fails_while_it_plays_is_prepared_again_and_another_plays(
    client, said, error, reason
):
    for number in range(2):
        client.join(f"tcp://w:{number}")
    async with asyncio.timeout(5), started(client, said, lanes=4) as workers:
        begun = [await begin(client, workers, lane) for lane in range(4)]
        failed = begun[0][1].address
        (other,) = {"tcp://w:0", "tcp://w:1"} - {failed}
        begun[0][1].done.set_exception(error)
        with pytest.raises(WorkerLostError, match=f"the worker {failed} failed: "):
            await begun[0][0]
        (waiting,) = (lane for lane in (1, 2, 3) if begun[lane][1].address == failed)
        with pytest.raises(WorkerLostError) as lost:
            await begun[waiting][0]
        assert lost.value.was_waiting
        assert await play(client, workers, waiting) == other
        for task, job in begun:
            if job.address == other:
                job.done.set_result(RESULT)
                await task
        assert [each.lost for each in workers.list_hosts()] == [1]
        assert await play(client, workers, 0) == other
        while [call[:2] for call in client.calls].count((failed, "deploy")) < 2:  # noqa: ASYNC110 - the fake has no event
            await asyncio.sleep(0.01)
        await settle()
        assert {*await play_all(client, workers, 4)} == {failed, other}
    assert said == [f"The worker {failed} failed: {reason}. Its unfinished games are played again."]


async def test_error_of_a_failed_worker_names_the_worker_and_the_reason(client, said):
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, job = await begin(client, workers, 0)
        job.done.set_exception(VoidGame("cup-2 was void 3 times"))
        with pytest.raises(WorkerLostError) as error:
            await task
    assert str(error.value) == "the worker tcp://w:0 failed: cup-2 was void 3 times"


async def test_kill_ends_the_games_of_other_lanes_on_a_failed_worker(client, said):
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, job = await begin(client, workers, 0)
        job.done.set_exception(VoidGame("cup-2 was void 3 times"))
        with pytest.raises(WorkerLostError):
            await task
        workers.kill()
        await settle()
    assert [name for _, name, *_ in client.calls] == ["deploy", "kill", "leave"]


async def test_lost_scheduler_ends_the_run(client, said):
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, _ = await begin(client, workers, 0)
        client.status = "connecting"
        with pytest.raises(RefereeError, match="the connection to the scheduler is lost"):
            await task


async def test_games_that_end_with_the_scheduler_are_not_charged_to_a_worker(client, said):
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, job = await begin(client, workers, 0)
        job.done.set_exception(FutureCancelledError("key", "scheduler-connection-lost"))
        await settle()
        client.status = "connecting"
        with pytest.raises(RefereeError, match="the connection to the scheduler is lost"):
            await task


async def test_worker_is_deployed_again_before_it_plays_on_after_a_break_of_the_drivers_link(
    client, said, monkeypatch
):
    monkeypatch.setattr(remote_workers, "LOSS_S", 0.01)
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        begun = [await begin(client, workers, lane) for lane in (0, 1)]
        for _, job in begun:
            job.done.set_exception(FutureCancelledError("key", "connection lost"))
        (playing, _), (waiting, _) = begun
        with pytest.raises(WorkerLostError):
            await playing
        with pytest.raises(WorkerLostError) as other:
            await waiting
        assert other.value.was_waiting
        assert await play(client, workers, 1) == "tcp://w:0"
        assert await play(client, workers, 0) == "tcp://w:0"
    done = [name for _, name, *_ in client.calls]
    assert done == ["deploy", "deploy", "leave"]
    assert said == ["The worker tcp://w:0 was cut off. Its unfinished games are played again."]


@pytest.mark.parametrize("status", ["closing", "running"])
async def test_closing_client_is_a_lost_scheduler(client, said, status):
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, job = await begin(client, workers, 0)
        client.status = status  # "running" if the scheduler has just come back
        client.rpc.status = Status.closed
        job.done.set_exception(RuntimeError("ConnectionPool is closed"))
        with pytest.raises(RefereeError, match="the connection to the scheduler is lost"):
            await task


@pytest.mark.parametrize(
    "error", [RuntimeError("ConnectionPool is closed"), ClosedClientError("is closed")]
)
async def test_games_for_a_closed_client_are_those_of_a_lost_scheduler(
    client, said, monkeypatch, error
):
    def refuse(*_, **__):
        raise error

    client.join("tcp://w:0")
    async with started(client, said) as workers:
        monkeypatch.setattr(client, "submit", refuse)
        client.status = "closed"
        with pytest.raises(RefereeError, match="the connection to the scheduler is lost"):
            await workers.submit(0, Assignment(0, ()))


async def test_error_of_a_game_with_an_open_client_is_no_lost_scheduler(client, said):
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, job = await begin(client, workers, 0)
        job.done.set_exception(RuntimeError("a fault of the referee"))
        with pytest.raises(RuntimeError, match="a fault of the referee"):
            await task


async def test_scheduler_that_was_started_again_ends_the_run(client, said):
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, _ = await begin(client, workers, 0)
        client.id = "second"
        with pytest.raises(RefereeError, match="the connection to the scheduler is lost"):
            await task


@asynccontextmanager
async def feeding(client, workers):
    """Feed one lane that has one game; give the `Feeder` and its task."""
    game = SimpleNamespace(game_id="cup-1", lane=0, index=0, bots=("a@1", "b@2"))
    feeder = Feeder(
        SimpleNamespace(make_task=lambda each: each),
        Lanes([game], {}, games_in_flight=1, workers=1, suspend_after=0),
        workers,
        store_games=None,
        on_small_portion=None,
    )
    task = asyncio.ensure_future(feeder.feed_worker(0))
    await settle()
    assert client.jobs == []
    yield feeder, task
    assert client.jobs == []


async def test_drain_ends_a_lane_that_waits_for_a_worker(client, said):
    async with (
        asyncio.timeout(5),
        started(client, said, lanes=1) as workers,
        feeding(client, workers) as (feeder, task),
    ):
        feeder.drain()
        client.join("tcp://w:0")
        await task
    assert said == ["Waiting for a worker that can play."]


@pytest.mark.parametrize("is_built", [False, True])
async def test_drain_ends_a_lane_that_waits_for_a_build(client, said, is_built):
    built = asyncio.get_running_loop().create_future()
    client.join("tcp://w:0", deploy=("b@2",), add_bot=built)
    async with asyncio.timeout(5), preparing(client, said, lanes=1) as dask_workers:
        workers = make_group(client, dask_workers, said, lanes=1)
        async with feeding(client, workers) as (feeder, task):
            feeder.drain()
            if is_built:
                built.set_result(None)
            await task


async def test_drain_lets_a_worker_finish_what_it_plays(client, said):
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, job = await begin(client, workers, 0)
        workers.drain()
        await settle()
        assert not task.done()
        job.done.set_result(RESULT)
        assert await task == RESULT


async def test_kill_ends_what_waits_and_what_is_played(client, said):
    async with started(client, said) as workers:
        waiting = asyncio.ensure_future(workers.submit(1, Assignment(1, ())))
        await settle()
        workers.kill()
        with pytest.raises(WorkerLostError):
            await waiting
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, _ = await begin(client, workers, 0)
        workers.kill()
        with pytest.raises(WorkerLostError):
            await task
    assert ("tcp://w:0", "kill", "s") in client.calls


async def test_kill_ends_the_games_of_a_worker_that_is_prepared_again(client, said, monkeypatch):
    monkeypatch.setattr(remote_workers, "LOSS_S", 0.01)
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, job = await begin(client, workers, 0)
        closing = asyncio.get_running_loop().create_future()  # waits for the games in play
        client.answers["tcp://w:0"]["deploy"] = closing
        job.done.set_exception(FutureCancelledError("key", "connection lost"))
        with pytest.raises(WorkerLostError):
            await task
        await settle()
        workers.kill()
        await settle()
    assert [name for _, name, *_ in client.calls] == ["deploy", "deploy", "kill", "leave"]


async def test_kill_ends_what_waits_for_a_build(client, said):
    client.join("tcp://w:0", deploy=("b@2",), add_bot=asyncio.get_running_loop().create_future())
    async with asyncio.timeout(5), preparing(client, said) as dask_workers:
        workers = make_group(client, dask_workers, said)
        task = asyncio.ensure_future(workers.submit(0, Assignment(0, ())))
        await settle()
        assert client.calls[-1][1] == "add_bot"
        workers.kill()
        with pytest.raises(WorkerLostError):
            await task
    assert client.calls[-1] == ("tcp://w:0", "leave", "s")


async def test_run_with_a_changed_copy_is_refused_before_workers_get_the_bot(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "bot.toml").write_text(
        'name = "ann"\nversion = "1"\nauthor = "x"\nlanguage = "sh"\n[run]\ncommand = ["sh"]\n'
    )
    with League.open(tmp_path / "league", create=True) as league:
        roster = Roster(league, Workshop(league.folder, None, on_build=print))
        spec = (await roster.submit(mine, now_us=0)).spec
        (spec.folder / "new").touch()
        tournament = SimpleNamespace(config=None, bots={"ann@1": spec.bot})
        with pytest.raises(UserError, match="the league's copy of ann was changed"):
            async with cluster_workers(
                "127.0.0.1:1",
                None,
                tmp_path,
                tournament=tournament,
                roster=roster,
                isolation=NO_ISOLATION,
                say=print,
            ):
                pass
