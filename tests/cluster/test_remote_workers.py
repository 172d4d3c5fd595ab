"""The driver's side of a cluster: which Dask workers may play, where lanes live, and what is told of lost workers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from distributed.client import FutureCancelledError

from referee.cluster import connection, member, remote_workers
from referee.cluster.member import DeploymentRequest, MissingCopyError
from referee.cluster.remote_workers import RemoteWorkers
from referee.errors import RefereeError, UserError
from referee.sandbox import Rung
from referee.store import HostFigures
from referee.tournament.assignments import Assignment
from referee.tournament.workers import WorkerLostError

HERE = {"linko-referee": "0.2.0", "python": "3.11.7.final.0"}
REQUEST = DeploymentRequest(
    deployment="s", commitment="c", config=None, rung=Rung.FULL, bots={"a@1": "11", "b@2": "22"}
)
RECORDS = ["a record"]


class FakeClient:
    """A Dask client whose workers do what a test says."""

    def __init__(self):
        self.status = "running"
        self.versions = {}
        self.answers = {}
        """What `deploy` and `add_bot` return or raise, by address; by default there is nothing to do."""
        self.jobs = []
        self.calls = []
        self.id = "first"
        self.scheduler = SimpleNamespace(identity=self._identity, broadcast=self._broadcast)

    def join(self, address, packages=HERE, **answers):
        self.versions[address] = {"packages": packages}
        self.answers[address] = answers
        if hasattr(self, "tell"):
            self.tell((0.0, {"action": "add-worker", "worker": address}))

    def lose(self, address):
        del self.versions[address]
        self.tell((0.0, {"action": "remove-worker", "worker": address}))

    async def _identity(self, n_workers):
        assert n_workers == -1
        return {"workers": dict.fromkeys(self.versions), "id": self.id}

    def subscribe_topic(self, topic, handler):
        assert topic == "all"
        self.tell = handler

    def unsubscribe_topic(self, topic):
        assert topic == "all"

    async def _broadcast(self, msg, workers):
        assert msg == {"op": "versions", "packages": ["linko-referee"]}
        return {address: self.versions[address] for address in workers}

    async def run(self, function, *arguments, workers):
        (address,) = workers
        self.calls.append((address, function.__name__, *arguments))
        found = self.answers[address].get(
            function.__name__, () if function is member.deploy else None
        )
        if isinstance(found, Exception):
            raise found
        if isinstance(found, asyncio.Future):
            await found
        return {address: found}

    def submit(self, function, _session, _assignment, **options):
        assert function is member.play
        assert not options["allow_other_workers"]
        assert not options["pure"]
        assert options["retries"] == 0
        job = FakeJob(options["workers"][0])
        self.jobs.append(job)
        return job


class FakeJob:
    def __init__(self, address):
        self.address = address
        self.done = asyncio.get_running_loop().create_future()

    async def result(self):
        return await self.done

    def release(self):
        pass


@pytest.fixture
def client(monkeypatch):
    monkeypatch.setattr(connection, "get_versions", lambda _: {"packages": HERE})
    monkeypatch.setattr(remote_workers, "_WATCH_S", 0.005)
    return FakeClient()


@pytest.fixture
def said():
    return []


@asynccontextmanager
async def started(client, said, lanes=3):
    workers = RemoteWorkers(client, REQUEST, lanes, pack=lambda bot: f"<{bot}>", say=said.append)
    watch = asyncio.ensure_future(workers.watch())
    workers.start()
    await workers._starting
    yield workers
    await workers.aclose()
    watch.cancel()


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


async def begin(client, workers, lane):
    """Submit an assignment of a lane; return the task and the job of Dask."""
    count = len(client.jobs)
    task = asyncio.ensure_future(workers.submit(lane, Assignment(lane, ())))
    await settle()
    assert len(client.jobs) == count + 1
    return task, client.jobs[-1]


async def play(client, workers, lane):
    task, job = await begin(client, workers, lane)
    job.done.set_result(RECORDS)
    assert await task == RECORDS
    return job.address


@pytest.mark.parametrize(
    ("packages", "reason"),
    [
        (
            HERE | {"linko-referee": "0.1.0"},
            "it has the referee 0.1.0, but the driver has 0.2.0; install 0.2.0 there",
        ),
        (
            HERE | {"linko-referee": None},
            "it has the referee None, but the driver has 0.2.0; install 0.2.0 there",
        ),
        (
            HERE | {"python": "3.12.1.final.0"},
            "it has Python 3.12, but the driver has 3.11; install 3.11 there",
        ),
    ],
)
async def test_worker_with_another_version_is_refused_with_both_versions(
    client, said, packages, reason
):
    client.join("tcp://w:1", packages)
    with pytest.raises(UserError, match=reason):
        async with started(client, said):
            pass
    assert said == []  # the error tells it


async def test_worker_with_another_bug_fix_release_of_python_plays(client, said):
    client.join("tcp://w:1", HERE | {"python": "3.11.2.final.0"})
    async with started(client, said) as workers:
        assert await play(client, workers, 0) == "tcp://w:1"


async def test_reasons_are_listed_by_host_if_no_worker_can_play(client, said):
    refusal = UserError("isolation 'full': no user namespaces")
    client.join("tcp://v:1", deploy=refusal)
    client.join("tcp://v:2", deploy=refusal)
    client.join("tcp://w:1", deploy=("b@2",), add_bot="one\ntwo")
    client.join("tcp://x:1", deploy=OSError("No space left on device"))
    with pytest.raises(UserError) as error:
        async with started(client, said):
            pass
    assert error.value.args == (
        "no worker can play:",
        "v: isolation 'full': no user namespaces",
        "w: b@2 cannot be built: one",
        "w: two",
        "x: OSError: No space left on device",
    )
    assert said == []


async def test_worker_that_cannot_play_is_named_if_another_can(client, said):
    client.join("tcp://w:0")
    client.join("tcp://w:1", deploy=UserError("isolation 'full': no user namespaces"))
    client.join("tcp://w:2", deploy=OSError("No space left on device"))
    refused = "cannot play: isolation 'full': no user namespaces"
    async with started(client, said):
        assert said == [
            f"The worker tcp://w:1 {refused}",
            "The worker tcp://w:2 cannot play yet: OSError: No space left on device",
        ]
        client.join("tcp://w:3", deploy=UserError("isolation 'full': no user namespaces"))
        await settle()
        assert said[2:] == [f"The worker tcp://w:3 {refused}"]


async def test_only_missing_bots_are_sent(client, said):
    client.join("tcp://w:1", deploy=("b@2",))
    async with started(client, said):
        sent = [call for call in client.calls if call[1] == "add_bot"]
    assert sent == [("tcp://w:1", "add_bot", "s", "b@2", "<b@2>")]


async def play_all(client, workers, lanes):
    """Play a stretch of each lane, all at the same time; return where."""
    begun = [await begin(client, workers, lane) for lane in range(lanes)]
    for task, job in begun:
        job.done.set_result(RECORDS)
        assert await task == RECORDS
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
                job.done.set_result(RECORDS)
                await task
        task, job = begun[3]
        job.done.set_result(RECORDS)
        await task
        assert await play(client, workers, 3) != slow


async def test_lost_worker_is_told_once_and_its_lanes_move(client, said):
    for number in range(2):
        client.join(f"tcp://w:{number}")
    async with started(client, said, lanes=4) as workers:
        homes = [await play(client, workers, lane) for lane in range(4)]
        lanes = [lane for lane in range(4) if homes[lane] == "tcp://w:0"]
        tasks = [(await begin(client, workers, lane))[0] for lane in lanes]
        client.lose("tcp://w:0")
        for task in tasks:
            with pytest.raises(WorkerLostError):
                await task
        assert said == ["The worker tcp://w:0 is gone. Its games are played again."]
        assert {await play(client, workers, lane) for lane in range(4)} == {"tcp://w:1"}


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
        job.done.set_result(RECORDS)
        await task
        client.lose("tcp://10.0.0.2:2")
        with pytest.raises(WorkerLostError):
            await begun["tcp://10.0.0.2:2"][0]
        assert workers.list_hosts() == [
            HostFigures("10.0.0.1", playing=1, idle=0, lost=0, games=0),
            HostFigures("10.0.0.2", playing=0, idle=1, lost=1, games=1),
        ]
        begun["tcp://10.0.0.1:1"][1].done.set_result(RECORDS)
        await begun["tcp://10.0.0.1:1"][0]


async def test_more_workers_than_lanes_are_reported_once(client, said):
    for number in range(2):
        client.join(f"tcp://w:{number}")
    async with started(client, said, lanes=2) as workers:
        assert said == []
        for number in (2, 3):
            client.join(f"tcp://w:{number}")
            for _ in range(100):
                await asyncio.sleep(0)
        assert sum(host.idle for host in workers.list_hosts()) == 4
        [sentence] = said
        assert "more workers than lanes (2)" in sentence


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
            job.done.set_result(RECORDS)
        assert await asyncio.gather(*tasks) == [RECORDS] * 3


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
        "The worker tcp://w:0 lacks a bot: host: no copy of b@2 can be read. Its games are played again."
    ]


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
    monkeypatch.setattr(remote_workers, "_LOSS_S", 0.01)
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        begun = [await begin(client, workers, lane) for lane in (0, 1)]
        for _, job in begun:
            job.done.set_exception(FutureCancelledError("key", "connection lost"))
        for task, _ in begun:
            with pytest.raises(WorkerLostError):
                await task
        assert await play(client, workers, 0) == "tcp://w:0"
    done = [name for _, name, *_ in client.calls]
    assert done == ["deploy", "deploy", "leave"]
    assert said == ["The worker tcp://w:0 was cut off. Its games are played again."]


async def test_scheduler_that_is_gone_is_not_waited_for_at_the_end(client, said):
    client.join("tcp://w:0")
    client.answers["tcp://w:0"]["leave"] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(5), started(client, said):
        asyncio.get_running_loop().call_later(0.1, setattr, client, "status", "connecting")


async def test_scheduler_that_was_started_again_ends_the_run(client, said):
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, _ = await begin(client, workers, 0)
        client.id = "second"
        with pytest.raises(RefereeError, match="the connection to the scheduler is lost"):
            await task


async def test_workers_that_come_and_go_without_an_event_are_noticed(client, said):
    client.join("tcp://w:0")
    async with started(client, said) as workers:
        task, _ = await begin(client, workers, 0)
        client.tell = lambda _event: None
        client.join("tcp://w:1")
        client.lose("tcp://w:0")
        with pytest.raises(WorkerLostError):
            await task
        assert await play(client, workers, 0) == "tcp://w:1"


async def test_worker_with_a_passing_error_plays_as_soon_as_it_can(client, said):
    client.join("tcp://w:0")
    client.join("tcp://w:1", deploy=("b@2",), add_bot=OSError("No space left on device"))
    async with started(client, said, lanes=2) as workers:
        async with asyncio.timeout(5):
            while len([call for call in client.calls if call[1] == "add_bot"]) < 3:  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.01)
        assert said == ["The worker tcp://w:1 cannot play yet: OSError: No space left on device"]
        client.answers["tcp://w:1"] = {}
        async with asyncio.timeout(5):
            while sum(host.idle for host in workers.list_hosts()) < 2:  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.01)
        assert {await play(client, workers, lane) for lane in (0, 1)} == {"tcp://w:0", "tcp://w:1"}


async def test_worker_that_cannot_play_is_prepared_once(client, said):
    client.join("tcp://w:0")
    client.join("tcp://w:1", deploy=("b@2",), add_bot="go: command not found")
    async with started(client, said):
        await asyncio.sleep(0.15)  # some comparisons
    assert len([call for call in client.calls if call[1] == "add_bot"]) == 1


async def test_no_worker_plays_with_an_unexpected_error(client, said):
    client.join("tcp://w:0", deploy=OSError("No space left on device"))
    with pytest.raises(UserError, match="w: OSError: No space left on device"):
        async with started(client, said):
            pass


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


async def test_kill_ends_what_waits_for_a_build(client, said):
    client.join("tcp://w:0", deploy=("b@2",), add_bot=asyncio.get_running_loop().create_future())
    workers = RemoteWorkers(client, REQUEST, 1, pack=lambda bot: bot, say=said.append)
    workers.start()
    task = asyncio.ensure_future(workers.submit(0, Assignment(0, ())))
    await settle()
    assert client.calls[-1][1] == "add_bot"
    workers.kill()
    async with asyncio.timeout(5):
        with pytest.raises(WorkerLostError):
            await task
        await workers.aclose()
    assert client.calls[-1] == ("tcp://w:0", "leave", "s")


async def test_all_workers_are_left_at_the_end(client, said):
    for number in range(2):
        client.join(f"tcp://w:{number}")
    async with started(client, said):
        pass
    left = [call for call in client.calls if call[1] == "leave"]
    assert left == [("tcp://w:0", "leave", "s"), ("tcp://w:1", "leave", "s")]
