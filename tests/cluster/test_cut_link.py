"""A tournament has the results of a run on one machine, although a machine was cut off for half a minute."""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import contextmanager, suppress

import psutil
import pytest
from clusters import DASK, ENOUGH_S, SHAPES, games, process, tls_options, write_file
from real_runs import BIN

CUT_S = 30
NEAR, FAR = "10.203.0.1", "10.203.0.2"
PORT = 8786


def ip(*words, check=True):
    subprocess.run(["/usr/bin/env", "ip", *words], check=check, capture_output=True)


@contextmanager
def linked_namespaces():
    """Provide two network namespaces that a link connects. Its device is `wire` in both of them."""
    names = [f"referee-{os.getpid()}-{side}" for side in ("near", "far")]
    near, far = names
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", near, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", far)
        for name, address in ((near, NEAR), (far, FAR)):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "wire")
            ip("-n", name, "link", "set", "wire", "up")
        yield near, far
    finally:
        for name in names:
            ip("netns", "del", name, check=False)


def enter(namespace):
    """Return the first words of a command that runs in a network namespace."""
    return ("nsenter", f"--net=/run/netns/{namespace}")


def wait_for_listener(namespace):
    end = time.monotonic() + ENOUGH_S
    words = (*enter(namespace), "ss", "-ltnH", f"sport = :{PORT}")
    while not subprocess.run(words, check=True, capture_output=True).stdout:
        assert time.monotonic() < end, "the scheduler does not listen"
        time.sleep(0.1)


def wait_for_bots(worker):
    end = time.monotonic() + ENOUGH_S
    while not any(map(is_bot, psutil.Process(worker.pid).children(recursive=True))):
        assert time.monotonic() < end, "the worker has started no bot"
        time.sleep(0.1)


def is_bot(process):
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()[-1:] == ["bot.py"]
    return False


@pytest.mark.extended("starts clusters")
@pytest.mark.toolchain("openssl", "ip", "nsenter")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces")
def test_results_are_those_of_one_machine_although_a_machine_was_cut_off(
    here, play_locally, certificates
):
    # One game at a time, so that the games of the lost worker still take some seconds after the link is back.
    shape = SHAPES["round robin"] | {"matches": 200, "more": "games_in_flight = 1\n"}
    ours, theirs = tls_options(certificates)
    where = ("--cluster", f"{NEAR}:{PORT}", *ours)
    worker = (BIN / "referee", "worker", f"{NEAR}:{PORT}", "--cores", 1, *ours)
    run = (BIN / "referee", "tournament", "run", write_file(here, **shape), "--league", "remote")
    with (
        linked_namespaces() as (near, far),
        process(here, *enter(near), DASK, "scheduler", "--host", NEAR, "--no-dashboard", *theirs),
    ):
        wait_for_listener(near)
        with (
            process(here, *enter(near), *worker),
            process(here, *enter(far), *worker) as far_worker,
            (here.folder / "printed").open("w") as printed,
            process(here, *enter(near), *run, *where, output=printed) as driver,
        ):
            wait_for_bots(far_worker)
            time.sleep(5)  # some stretches
            ip("-n", far, "link", "set", "wire", "down")
            time.sleep(CUT_S)
            assert driver.poll() is None, "the tournament ended before the link was back"
            ip("-n", far, "link", "set", "wire", "up")
            assert driver.wait(ENOUGH_S) == 0
    said = (here.folder / "printed").read_text()
    (played,) = re.findall(rf"^{re.escape(FAR)}: .* lost; (\d+) games", said, re.MULTILINE)
    assert int(played) > 0  # whether the worker is lost depends on which side notices the cut first
    assert games(here, "remote") == play_locally(shape)
    assert here.referee("verify", "cup", "--league", "remote").returncode == 0
