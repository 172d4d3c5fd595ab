"""Find out what a rung protects, by trying all forbidden acts on that rung.

The probe starts two programs of `probe_programs.py`. The first runs on the rung, tries all forbidden acts, and
reports the acts that succeeded. The second plays the referee: it starts a third program on the rung. The probe kills
the second program and checks whether the third program ends too.
"""

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
from referee.sandbox import Access, Limits
from referee.sandbox.cgroups import Cgroup
from referee.sandbox.process_group import UidLauncher
from referee.sandbox.resources import ProgramSpec, SandboxResources
from referee.sandbox.rungs import ProbeResult, Protection, State
from referee.sandbox.sandbox import SandboxLauncher
from referee.sandbox.start import shim_command

_PROGRAMS = Path(__file__).with_name("probe_programs.py")
_PYTHON = (os.path.realpath(sys.executable), "-I", "-S")
_LIMITS = Limits(memory_mib=48, processes=16, cpus=1.0, scratch_mib=4)
_LOW_CPUS = 0.05
"""A CPU limit that a busy program exceeds at once."""
_PROBE_LIMIT_S = 20.0
"""The time limit of the whole probe, which takes a fraction of a second on an idle machine."""
_EXIT_LIMIT_S = 2.0
"""How long to wait until processes are gone or a program is throttled."""


async def probe(launcher: SandboxLauncher | UidLauncher) -> tuple[ProbeResult, ...]:
    """Start the programs of the probe with the launcher, and return a result for each protection.

    Raises VoidGame or `Forfeit` if the launcher cannot start a program, and VoidGame if the probe takes too long.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="probe-")))
        _prepare_folder(folder)
        try:
            async with asyncio.timeout(_PROBE_LIMIT_S):
                results = await _try_forbidden_acts(launcher, folder, stack)
                # Run this after the acts: when one program is killed, orphan processes with an unknown
                # owner are killed too, and they may belong to the other program.
                dies = await _kill_parent(launcher, folder)
                results[Protection.DIES_WITH_REFEREE] = dies
        except TimeoutError:
            raise VoidGame(f"the sandbox could not be probed within {_PROBE_LIMIT_S:g} s") from None
        finally:
            launcher.reap()
    return tuple(results[each] for each in Protection)


def _prepare_folder(folder: Path) -> None:
    """Create the program's own folder in `folder`, and let every user enter `folder`.

    The probe later creates the file `secret` in `folder`. Its access rights let every
    user read this file, so only the isolation can hide it.
    """
    (folder / "own").mkdir()
    folder.chmod(0o755)


async def _try_forbidden_acts(
    launcher: SandboxLauncher | UidLauncher, folder: Path, stack: ExitStack
) -> dict[Protection, ProbeResult]:
    """Return the results for all protections except `DIES_WITH_REFEREE`."""
    marker = secrets.token_hex(8)
    program = await launcher.launch(
        [
            *_PYTHON,
            str(_PROGRAMS),
            "trespasser",
            json.dumps(_create_targets(folder, marker, stack)),
        ],
        folder=folder / "own",
        environment={"PATH": os.environ.get("PATH", os.defpath)},
        limits=_LIMITS,
        access=Access(readable=(_PROGRAMS,)),
    )
    try:
        assert program.process.stdout is not None  # noqa: S101 - a launcher makes both pipes
        results = json.loads(await program.process.stdout.readline() or "{}")
        await program.process.stdout.readline()
        if not results:
            raise VoidGame("a program in the sandbox ended before it could be probed")
        cpu = await _try_throttling(program.cgroup)
    finally:
        before = _marked_pids(marker)
        await program.kill()
    results = {
        Protection(name): _judge(Protection(name), tried, succeeded)
        for name, (tried, succeeded) in results.items()
    }
    results[Protection.CPU] = cpu
    results[Protection.KILL_TREE] = await _check_gone(Protection.KILL_TREE, marker, before)
    return results


def _create_targets(folder: Path, marker: str, stack: ExitStack) -> dict[str, Any]:
    """Create the file and the sockets that the program must not reach; return the argument TARGETS for the program."""
    secret = folder / "secret"
    secret.write_text(marker)
    _listen(stack, socket.AF_UNIX, f"\0{marker}")
    return {
        "own": str(folder / "own"),
        "secret": str(secret),
        "referee": os.getpid(),
        "port": _listen(stack, socket.AF_INET, ("127.0.0.1", 0))[1],
        "abstract": marker,
        "memory_mib": _LIMITS.memory_mib,
        "processes": _LIMITS.processes,
    }


def _listen(stack: ExitStack, family: int, address: Any) -> Any:
    """Open a listening socket and return its address."""
    listening = stack.enter_context(socket.socket(family))
    listening.bind(address)
    listening.listen()
    return listening.getsockname()


def _judge(protection: Protection, tried: int, succeeded: Sequence[str]) -> ProbeResult:
    """Return the result for a protection, from the number of attempts and the list of successful attempts."""
    if not succeeded:
        return ProbeResult(protection, State.ON, "tried, and refused")
    state = State.PARTIAL if len(succeeded) < tried else State.OFF
    return ProbeResult(protection, state, f"a bot can {', '.join(succeeded)}")


async def _try_throttling(cgroup: Cgroup | None) -> ProbeResult:
    """Lower the CPU limit of a busy program, and return for `CPU` whether the kernel throttles the program."""
    if cgroup is None:
        return ProbeResult(Protection.CPU, State.OFF, "a bot can use all cores: it has no cgroup")
    before = cgroup.throttle_count
    with suppress(OSError):
        cgroup.limit_cpu(_LOW_CPUS)
        until_s = time.monotonic() + _EXIT_LIMIT_S
        while time.monotonic() < until_s:
            if cgroup.throttle_count > before:
                return ProbeResult(Protection.CPU, State.ON, "tried, and throttled")
            await asyncio.sleep(0.01)
    return ProbeResult(
        Protection.CPU, State.OFF, "a bot can use all cores: its cgroup did not throttle it"
    )


async def _kill_parent(launcher: SandboxLauncher | UidLauncher, folder: Path) -> ProbeResult:
    """Let a process start a program as the referee does, kill the process, and return what happened to the program."""
    marker = secrets.token_hex(8)
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    inner = f"sleep 1000; : {marker}"
    command = ["sh", "-c", f"sh -c '{inner}'; : {marker}"]
    program = ProgramSpec(tuple(command), folder / "own", environment, _LIMITS, Access())
    resources = SandboxResources(launcher.cgroups, program)
    try:
        words, options = launcher.prepare_command(program, resources)
        started = shim_command("PARENT", "REPORT", options, words)
        referee = await asyncio.create_subprocess_exec(
            *(*_PYTHON, str(_PROGRAMS), "referee", *started),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            cwd="/",
        )
        try:
            assert referee.stdout is not None  # noqa: S101 - started with a pipe
            await referee.stdout.readline()
            while not _marked_pids(inner, whole=True):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)
            before = _marked_pids(marker) - {referee.pid}
        finally:
            referee.kill()
            await referee.wait()
        return await _check_gone(Protection.DIES_WITH_REFEREE, marker, before)
    finally:
        await asyncio.to_thread(resources.release)


async def _check_gone(protection: Protection, marker: str, before: set[int]) -> ProbeResult:
    """Wait for the end of all marked processes, and return the result. Kill the processes that remain.

    Args:
        protection: the protection that the result is for.
        marker: the text in the command lines of the marked processes.
        before: the pids of the marked processes before the kill.
    """
    if not before:
        return ProbeResult(
            protection,
            State.OFF,
            "not tested: none of the program's processes was running before the kill",
        )
    until_s = time.monotonic() + _EXIT_LIMIT_S
    while (left := _marked_pids(marker)) and time.monotonic() < until_s:  # noqa: ASYNC110 - no event tells it
        await asyncio.sleep(0.01)
    for pid in left:
        with suppress(psutil.Error):
            psutil.Process(pid).kill()
    if not left:
        return ProbeResult(protection, State.ON, "tried, and nothing was left")
    state = State.PARTIAL if len(left) < len(before) else State.OFF
    return ProbeResult(protection, state, f"{len(left)} of {len(before)} processes were left")


def _marked_pids(marker: str, *, whole: bool = False) -> set[int]:
    """Return the pids of the processes with `marker` in an argument of their command line.

    With `whole`, the argument must be equal to `marker`.
    """
    pids = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(marker == word if whole else marker in word for word in process.cmdline()):
                pids.add(process.pid)
    return pids
