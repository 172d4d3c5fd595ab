"""Finds out what a rung protects by trying, inside of it, everything that is forbidden there."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil

from referee.errors import VoidGame
from referee.sandbox.cgroups import Cgroup
from referee.sandbox.limits import Access, Limits
from referee.sandbox.resources import ProgramSpec, SandboxResources
from referee.sandbox.rungs import Finding, Protection, State
from referee.sandbox.sandboxed import SandboxLauncher
from referee.sandbox.starting import shim
from referee.sandbox.uid import UidLauncher

_TRESPASS = Path(__file__).with_name("trespass.py")
_ORPHAN = Path(__file__).with_name("orphan.py")
_PYTHON = (os.path.realpath(sys.executable), "-I", "-S")
_LIMITS = Limits(memory_mib=48, processes=16, cpus=1.0, scratch_mib=4)
_FEW_CPUS = 0.05
_PATIENCE_S = 20.0
"""For what takes a fraction of a second where a machine has nothing else to do."""
_GONE_S = 2.0


async def probe(launcher: SandboxLauncher | UidLauncher) -> tuple[Finding, ...]:
    """What a launcher protects: a finding for each protection.

    Raises VoidGame and `Forfeit` where it cannot start a program.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="probe-")))
        _furnish(folder)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                found = await _trespass(launcher, folder, stack)
                # not at the same time: the end of one program may be that of another's orphans
                found[Protection.DIES_WITH_REFEREE] = await _orphan(launcher, folder)
        except TimeoutError:
            raise VoidGame(f"no sandbox was probed within {_PATIENCE_S:g} s") from None
        finally:
            launcher.reap()
    return tuple(found[each] for each in Protection)


def _furnish(folder: Path) -> None:
    (folder / "own").mkdir()
    folder.chmod(0o755)  # what keeps bots from the secret must not be this


async def _trespass(
    launcher: SandboxLauncher | UidLauncher, folder: Path, stack: ExitStack
) -> dict[Protection, Finding]:
    marker = secrets.token_hex(8)
    secret = folder / "secret"
    secret.write_text(marker)
    targets = {
        "own": str(folder / "own"),
        "secret": str(secret),
        "referee": os.getpid(),
        "port": _listen(stack, socket.AF_INET, ("127.0.0.1", 0))[1],
        "abstract": marker,
        "memory_mib": _LIMITS.memory_mib,
        "processes": _LIMITS.processes,
    }
    _listen(stack, socket.AF_UNIX, f"\0{marker}")
    launched = await launcher.launch(
        [*_PYTHON, str(_TRESPASS), json.dumps(targets)],
        folder=folder / "own",
        environment={"PATH": os.environ.get("PATH", os.defpath)},
        limits=_LIMITS,
        access=Access(shown=(_TRESPASS,)),
    )
    try:
        assert launched.process.stdout is not None  # noqa: S101 - a launcher makes both pipes
        done = json.loads(await launched.process.stdout.readline() or "{}")
        await launched.process.stdout.readline()
        if not done:
            raise VoidGame("a program in the sandbox ended before it could be probed")
        throttled = await _throttle(launched.cgroup)
    finally:
        before = _marked(marker)
        await launched.kill()
    found = {Protection(name): _attempted(Protection(name), *what) for name, what in done.items()}
    found[Protection.CPU] = throttled
    found[Protection.KILL_TREE] = await _gone(Protection.KILL_TREE, marker, before)
    return found


def _listen(stack: ExitStack, family: int, address: Any) -> Any:
    """A socket that somebody in a sandbox should not reach; its address."""
    listening = stack.enter_context(socket.socket(family))
    listening.bind(address)
    listening.listen()
    return listening.getsockname()


def _attempted(protection: Protection, tried: int, could: Sequence[str]) -> Finding:
    if not could:
        return Finding(protection, State.ON, "tried, and refused")
    state = State.PARTIAL if len(could) < tried else State.OFF
    return Finding(protection, state, f"a bot can {', '.join(could)}")


async def _throttle(cgroup: Cgroup | None) -> Finding:
    """Whether a program that runs in circles gets no more than a share of a core."""
    off = Finding(Protection.CPU, State.OFF, "a bot can have all cores: no cgroup counts its time")
    if cgroup is None:
        return off
    before = cgroup.throttled
    with suppress(OSError):
        cgroup.limit_cpu(_FEW_CPUS)
        until_s = time.monotonic() + _GONE_S
        while time.monotonic() < until_s:
            if cgroup.throttled > before:
                return Finding(Protection.CPU, State.ON, "tried, and throttled")
            await asyncio.sleep(0.01)
    return off


async def _orphan(launcher: SandboxLauncher | UidLauncher, folder: Path) -> Finding:
    """Whether a bot and what it has started end with a referee that is killed."""
    marker = secrets.token_hex(8)
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    inner = f"sleep 1000; : {marker}"
    command = ["sh", "-c", f"sh -c '{inner}'; : {marker}"]
    program = ProgramSpec(tuple(command), folder / "own", environment, _LIMITS, Access())
    grounds = SandboxResources(launcher.cgroups, program)
    try:
        words, options = launcher.words(program, grounds)
        started = shim("PARENT", "REPORT", options, words)
        referee = await asyncio.create_subprocess_exec(
            *(*_PYTHON, str(_ORPHAN), *started),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            cwd="/",
        )
        try:
            assert referee.stdout is not None  # noqa: S101 - it was asked for
            await referee.stdout.readline()
            while not _marked(inner, whole=True):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)
            before = _marked(marker) - {referee.pid}
        finally:
            referee.kill()
            await referee.wait()
        return await _gone(Protection.DIES_WITH_REFEREE, marker, before)
    finally:
        await asyncio.to_thread(grounds.give_back)


async def _gone(protection: Protection, marker: str, before: set[int]) -> Finding:
    """Whether processes are gone that were there before; those that are not are ended."""
    if not before:
        return Finding(protection, State.OFF, "nothing ran that could have ended")
    until_s = time.monotonic() + _GONE_S
    while (left := _marked(marker)) and time.monotonic() < until_s:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)
    for pid in left:
        with suppress(psutil.Error):
            psutil.Process(pid).kill()
    if not left:
        return Finding(protection, State.ON, "tried, and nothing was left")
    state = State.PARTIAL if len(left) < len(before) else State.OFF
    return Finding(protection, state, f"{len(left)} of {len(before)} processes were left")


def _marked(marker: str, *, whole: bool = False) -> set[int]:
    """Processes with this in a word of their command line, or as a `whole` word."""
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(marker == word if whole else marker in word for word in process.cmdline()):
                found.add(process.pid)
    return found
