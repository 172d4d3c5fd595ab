"""Start the Dask workers of a machine: one for each core, pinned to this core, and watched by a nanny.

A nanny is a part of Dask in this process. It starts the process of one Dask worker, and starts it again if it dies.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import dask
from distributed import Nanny, Security, Status, Worker, WorkerPlugin
from distributed.comm.addressing import get_address_host, unparse_host_port
from distributed.utils import ensure_ip, get_ip

from referee.cluster import member
from referee.cluster.member import Place
from referee.records import host_name
from referee.sandbox.folders import run_folder

CORE = "core"
"""The Dask resource that a task with games needs. Each worker has one."""
SCRATCH = "temporary-directory"
"""The name of Dask's setting that says in which folder Dask writes its own files."""
CONFIG: dict[str, object] = {
    "distributed.worker.daemon": False,  # a daemonic process may not start the game process
    "distributed.worker.multiprocessing-method": "spawn",
    "distributed.worker.use-file-locking": False,
    "distributed.admin.event-loop": "asyncio",
}
"""The settings of Dask that the nannies and their workers need."""


def remove_killed_runs() -> None:
    """Remove the run folders that killed Dask workers have left on this machine, and end their programs."""
    # `run_folder` does this at its start
    with run_folder():
        pass


class QuietNanny(Nanny):
    """A nanny that protects its Dask worker from Ctrl-C, which the terminal sends to all processes of a command."""

    async def instantiate(self) -> Status:
        """Start a process; called by Dask. SIGINT is blocked in the process until `PlacePlugin.setup` runs.

        Dask creates a new thread, which starts the process. The new thread inherits the blocked signals of the current thread, and the
        process inherits those of the new thread. Dask creates the thread before it gives control back to the event loop. So SIGINT can be
        unblocked here in the next pass of the loop.
        """
        # the start of the resource tracker unblocks SIGINT in the current thread, so it must come before SIGINT is blocked
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        asyncio.get_running_loop().call_soon(
            signal.pthread_sigmask, signal.SIG_UNBLOCK, {signal.SIGINT}
        )
        try:
            return await super().instantiate()
        except asyncio.CancelledError:
            # Dask leaves the new process running, which would print a traceback after the end of this process
            if self.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
            raise


class PlacePlugin(WorkerPlugin):
    """Prepares the process of a Dask worker: stops its web server, ignores Ctrl-C, and pins the process to its cores.

    At the start it ends the bots of killed workers and removes their run folders.
    """

    name = "referee"

    def __init__(self, place: Place) -> None:
        self._place = place

    def setup(self, worker: Worker) -> None:
        """Called by Dask when the process starts."""
        worker.http_server.stop()  # it has no TLS, and whoever reaches it can fill the memory of this process
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        if self._place.cores:
            with suppress(OSError):  # without pinning, games are slower
                os.sched_setaffinity(0, self._place.cores)
        remove_killed_runs()
        member.set_place(self._place)

    async def teardown(self, worker: Worker) -> None:
        """End the game processes first: this process cannot exit while one runs."""
        del worker
        await member.kill_all()


def worker_options(place: Place, security: Security | None) -> dict[str, Any]:
    """Return the arguments of a `Nanny`, except the address of the scheduler.

    Args:
        place: what the worker may use.
        security: the certificates; None without TLS.
    """
    return {
        "nthreads": 1,
        "resources": {CORE: 1},
        "memory_limit": 0,  # the sandbox limits the memory of bots
        "dashboard": False,
        "dashboard_address": "127.0.0.1:0",  # even without a dashboard, Dask starts a web server; `PlacePlugin` stops it
        "plugins": (PlacePlugin(place),),
        "security": security,
        "silence_logs": logging.CRITICAL,
    }


def places(count: int | None, folder: Path) -> list[Place]:
    """Return a place for each worker of this machine, one core each.

    Args:
        count: the number of workers; None for one per core. With more workers than cores, workers share cores.
        folder: the folder for copies of bots; a relative one is made absolute.
    """
    folder = folder.resolve()  # bots start in other working directories
    cores = sorted(os.sched_getaffinity(0))
    numbers = range(len(cores) if count is None else count)
    return [Place(frozenset({cores[number % len(cores)]}), folder) for number in numbers]


def own_address(scheduler: str) -> str:
    """Return the address that this machine uses to reach a scheduler. An IPv6 address gets brackets.

    Raises ConnectionError if the name of the scheduler cannot be resolved.
    """
    try:
        remote = ensure_ip(get_address_host(scheduler))
    except socket.gaierror as error:
        raise ConnectionError(str(error)) from error
    return unparse_host_port(get_ip(remote))


async def run_workers(
    scheduler: str, worker_places: Iterable[Place], *, host: str | None, security: Security | None
) -> None:
    """Start a Dask worker for each place, and return when all have ended.

    A worker that is killed is started again. All end when this task is cancelled, when the scheduler is gone, and when a killed worker
    cannot be started again. Dask logs each lost connection, so the caller turns logs off.

    Args:
        scheduler: the address of the scheduler.
        worker_places: what each worker may use.
        host: the address at which the workers listen; None for `own_address`.
        security: the certificates; None without TLS.
    """
    # Always give Dask a host. Without one, its workers listen at all addresses of the machine; only its nannies do not.
    host = own_address(scheduler) if host is None else unparse_host_port(host)
    with run_folder() as folder, dask.config.set(CONFIG | {SCRATCH: str(folder)}):
        async with AsyncExitStack() as stack:
            stack.callback(remove_killed_runs)
            nannies = [
                await stack.enter_async_context(
                    QuietNanny(
                        scheduler,
                        name=f"{host_name()}-{number}-{secrets.token_hex(4)}",
                        host=host,
                        **worker_options(place, security),
                    )
                )
                for number, place in enumerate(worker_places)
            ]
            finished = [asyncio.ensure_future(nanny.finished()) for nanny in nannies]
            try:
                await asyncio.wait(finished, return_when=asyncio.FIRST_COMPLETED)
            finally:  # all at once: otherwise lanes would move to workers that are about to end
                await asyncio.gather(*(nanny.close() for nanny in nannies))
