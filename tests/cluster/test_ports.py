"""Dask workers listen only where they must: whoever connects to an open port can run programs or fill the memory."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import psutil
import pytest
from clusters import free_port, scheduler, wait_for
from distributed import Scheduler
from real_runs import PATIENCE_S

from referee.cluster import host
from referee.cluster.host import own_address


def listening_addresses(*processes):
    """Return the process id and the address of each port at which the processes listen."""
    return {
        (process.pid, *each.laddr)
        for process in processes
        for each in process.net_connections("tcp")
        if each.status == psutil.CONN_LISTEN
    }


def process_tree(pid):
    top = psutil.Process(pid)
    return (top, *top.children(recursive=True))


@pytest.mark.extended("starts clusters")
def test_scheduler_of_the_page_is_reached_only_from_its_machine(here):
    port = free_port()
    with scheduler(here, port) as command:
        wait_for(port)
        found = listening_addresses(*process_tree(command.pid))
    assert {ip for _, ip, _ in found} == {"127.0.0.1"}
    assert port in {number for *_, number in found}


@pytest.mark.extended("starts clusters")
async def test_referee_worker_listens_only_where_it_reaches_the_scheduler(here):
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as dask:
        with here.started("worker", dask.address, "--cores", "1") as command:
            async with asyncio.timeout(PATIENCE_S):
                while not dask.workers:  # noqa: ASYNC110 - Dask offers no event
                    await asyncio.sleep(0.05)
            found = listening_addresses(*process_tree(command.pid))
            command.terminate()
            await asyncio.to_thread(command.communicate, timeout=PATIENCE_S)
    assert {ip for _, ip, _ in found} == {"127.0.0.1"}
    nanny = [pid for pid, *_ in found if pid == command.pid]
    assert (len(nanny), len(found)) == (1, 2)


LOCAL_CLUSTER = """
import asyncio, pathlib, sys, psutil
from referee.cluster.connection import connect

async def main():
    async with connect("local:2", None, pathlib.Path(sys.argv[1])) as client:
        await client.wait_for_workers(2)
        own = psutil.Process()
        for process in (own, *own.children(recursive=True)):
            for each in process.net_connections("tcp"):
                if each.status == psutil.CONN_LISTEN:
                    print("own" if process == own else "child", each.laddr.ip)

asyncio.run(main())
"""


@pytest.mark.extended("starts clusters")
def test_local_cluster_has_one_port_for_the_scheduler_and_one_for_each_nanny_and_worker(tmp_path):
    """The cluster has a process of its own, because multiprocessing leaves a process running beside it until it ends."""
    done = subprocess.run(
        [sys.executable, "-c", LOCAL_CLUSTER, tmp_path],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    scheduler_and_nannies, workers = ["own 127.0.0.1"] * 3, ["child 127.0.0.1"] * 2
    assert sorted(done.stdout.splitlines()) == sorted(scheduler_and_nannies + workers)


def test_own_address_is_that_towards_the_scheduler_with_brackets_for_ipv6(monkeypatch):
    assert own_address("tcp://127.0.0.1:8786") == "127.0.0.1"
    assert own_address("tcp://localhost:8786") == "127.0.0.1"
    monkeypatch.setattr(host, "get_ip", lambda remote: {"fd00::2": "fd00::1"}[remote])
    assert own_address("tls://[fd00::2]:8786") == "[fd00::1]"
