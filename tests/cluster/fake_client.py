"""A Dask client without a cluster, and the Dask workers of a tournament that are prepared with it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

from distributed.core import Status

from referee.cluster import member
from referee.cluster.dask_workers import DaskWorkers
from referee.cluster.member import DeploymentRequest
from referee.sandbox import Rung

HERE = {"linko-referee": "0.2.0", "python": "3.11.7.final.0"}
REQUEST = DeploymentRequest(
    deployment="s", commitment="c", config=None, rung=Rung.FULL, bots={"a@1": "11", "b@2": "22"}
)


class FakeClient:
    """A Dask client whose workers do what a test says."""

    def __init__(self):
        self.status = "running"
        self.rpc = SimpleNamespace(status=Status.running)
        self.versions = {}
        self.answers = {}
        """What `deploy` and `add_bot` return or raise, now or (a Future) later, by address; by default there is nothing to do."""
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
            found = await found
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


@asynccontextmanager
async def preparing(client, said, lanes=3):
    """Give the `DaskWorkers` of a client, which are being prepared."""
    workers = DaskWorkers(client, REQUEST, lanes, pack=lambda bot: f"<{bot}>", say=said.append)
    watch = asyncio.ensure_future(workers.watch())
    workers.start()
    try:
        yield workers
    finally:
        await workers.aclose()
        watch.cancel()


@asynccontextmanager
async def prepared(client, said, lanes=3):
    """Give the `DaskWorkers` of a client when the first of them are prepared."""
    async with preparing(client, said, lanes) as workers:
        await workers._starting
        yield workers


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)
