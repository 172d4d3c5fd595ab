"""Ctrl-C while Dask workers start. The terminal sends SIGINT also to the processes that start."""

from __future__ import annotations

import logging
import os
import signal
import time

import pytest
import typer
from clusters import ROUND_ROBIN, free_port, process, scheduler, wait_for, write_file
from real_runs import BIN, PATIENCE_S

from referee.cli.cluster import choose_cluster, worker
from referee.cluster import connection

DELAYS = (0.2, 0.6, 1.0, 1.5, 2.5)
"""Seconds from the first message to Ctrl-C. A Dask worker needs about two seconds to start."""


def interrupt(started, output, sign, delay):
    """Press Ctrl-C `delay` seconds after a command has printed `sign`; return what the command prints."""
    end = time.monotonic() + PATIENCE_S
    while sign not in output.read_text():
        assert time.monotonic() < end, output.read_text()
        time.sleep(0.02)
    time.sleep(delay)
    os.killpg(started.pid, signal.SIGINT)
    code = started.wait(PATIENCE_S)
    printed = output.read_text()
    assert code == 130, printed
    return printed


@pytest.mark.extended("starts clusters")
@pytest.mark.parametrize("delay", DELAYS)
def test_interrupted_start_of_a_local_cluster_prints_no_traceback(here, delay):
    file, output = write_file(here, bots=ROUND_ROBIN, matches=300), here.folder / "output"
    words = (BIN / "referee", "tournament", "run", file, "--cluster", "local:2")
    with output.open("w") as writer, process(here, *words, output=writer) as started:
        printed = interrupt(started, output, "Commitment:", delay)
    assert "Traceback" not in printed
    assert printed.splitlines()[-1].startswith("Interrupted. To resume:")


@pytest.mark.extended("starts clusters")
def test_interrupted_start_of_workers_prints_no_traceback(here):
    port, output = free_port(), here.folder / "output"
    words = (BIN / "referee", "worker", f"127.0.0.1:{port}", "--cores", 2)
    with scheduler(here, port):
        wait_for(port)
        for delay in DELAYS:
            with output.open("w") as writer, process(here, *words, output=writer) as started:
                printed = interrupt(started, output, "starting", delay)
            assert len(printed.splitlines()) == 1, printed


@pytest.fixture
def _logs():
    """Turn logs on again after a test."""
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("_logs")
def test_interrupted_worker_prints_no_logs_while_it_exits(monkeypatch, tmp_path):
    """Dask logs then that it ends a process, if a second Ctrl-C has interrupted the first end."""

    async def serve(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(connection, "serve", serve)
    with pytest.raises(typer.Exit) as ended:
        worker("127.0.0.1:8786", bots=tmp_path)
    assert ended.value.exit_code == 130
    assert not logging.getLogger("distributed.process").isEnabledFor(logging.CRITICAL)


@pytest.mark.usefixtures("_logs")
def test_driver_prints_no_logs_while_it_exits():
    """If a worker is lost, asyncio logs at the exit that nobody has retrieved an exception of Dask."""
    choose_cluster("local:1", None, None, None)
    assert not logging.getLogger("asyncio").isEnabledFor(logging.CRITICAL)
