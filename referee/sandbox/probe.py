"""Find out what a rung protects, by trying all forbidden acts on that rung.

The probe starts three programs of `probe_programs.py`. The first runs on the rung, tries all forbidden acts, and
reports the acts that succeeded. The second is a bystander outside of the rung, and shows whether signals
and tracers reach it. The third plays the referee: it starts a fourth program on the rung. The probe kills the third
program and checks whether the fourth ends too.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import secrets
import signal
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from referee.errors import Shortage, void_game
from referee.sandbox import Access, Limits, ProbeResult, Protection, State
from referee.sandbox.cgroups import Cgroup
from referee.sandbox.folders import run_folder
from referee.sandbox.launcher import RunningProgram
from referee.sandbox.monitor import cpu_ns
from referee.sandbox.process_group import UidLauncher, make_reachable
from referee.sandbox.process_tree import read_proc_file
from referee.sandbox.resources import ProgramSpec, SandboxResources
from referee.sandbox.sandbox import SandboxLauncher
from referee.sandbox.scheduling import Scheduling
from referee.sandbox.start import shim_command
from referee.sandbox.sweeper import start_sweeper

_PROGRAMS = Path(__file__).with_name("probe_programs.py")
_PYTHON = (os.path.realpath(sys.executable), "-I", "-S")
_LIMITS = Limits(memory_mib=48, processes=16, cpus=1.0, scratch_mib=4)
_LOW_CPUS = 0.05
"""A CPU limit that a busy program exceeds at once."""
_COMPETE_NS = 20_000_000
"""In a competition, the probe computes on one core until it has used this CPU time. A program that runs on the same core must
leave the core to the probe meanwhile."""
_COMPETITIONS = 5
"""The maximum number of competitions. After one in which the program leaves the core to the probe, there are no more."""
_IDLE_SHARE = 0.25
"""A program that gets a larger share of the CPU time in a competition does not leave the core to the probe. With normal
scheduling, it gets at least half."""
_PROBE_LIMIT_S = 60.0
"""The time limit of the whole probe, which takes a fraction of a second on an idle machine. A busy machine may need 20 s."""
_ERROR_BYTES = 4096
"""How many bytes of the error output of a program are put into an error message."""
_EXIT_LIMIT_S = 10.0
"""How long to wait until processes are gone, or a program is stopped or throttled. On an idle machine it takes some ms."""


async def probe(launcher: SandboxLauncher | UidLauncher) -> tuple[ProbeResult, ...]:
    """Start the programs of the probe with the launcher, and return a result for each protection.

    Raises Shortage if the probe takes too long or the machine lacks resources. Raises another VoidGame, or `Forfeit`, if
    the launcher cannot start a program for another reason, or if the program ends before it has reported its results.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(
            run_folder()
        )  # if this process is killed, the next run removes it
        _prepare_folder(folder)
        try:
            async with asyncio.timeout(_PROBE_LIMIT_S):
                results = await _try_forbidden_acts(launcher, folder, stack)
                # Run this after the acts, not at the same time: when the program that tries the acts is killed, all
                # orphan processes with an unknown owner are killed too. The program started here could be among them.
                dies = await _kill_parent(launcher, folder)
                results[Protection.DIES_WITH_REFEREE] = dies
        except TimeoutError:
            raise Shortage(f"the tests took longer than {_PROBE_LIMIT_S:g} s") from None
        except OSError as error:
            raise void_game(f"the sandbox could not be probed: {error}") from error
        finally:
            launcher.reap()
    return tuple(results[each] for each in Protection)


def _prepare_folder(folder: Path) -> None:
    """Create the program's own folder in `folder`, and let every user reach both.

    The probe later creates the file `secret` in `folder`. Every user can enter the folder, so that its access rights
    do not hide the file. Only the isolation can hide it.
    """
    own = folder / "own"
    own.mkdir()
    own.chmod(0o755)  # the umask can take access away
    make_reachable(own)  # also the folders above `folder`
    folder.chmod(0o755)  # others may list it too


async def _try_forbidden_acts(
    launcher: SandboxLauncher | UidLauncher, folder: Path, stack: ExitStack
) -> dict[Protection, ProbeResult]:
    """Return the results for all protections except `DIES_WITH_REFEREE`."""
    marker = secrets.token_hex(8)
    async with _start_program("bystander") as bystander:
        targets = _create_targets(folder, marker, bystander, stack)
        writing = asyncio.ensure_future(_write_without_end(targets["shared"]))
        stack.callback(writing.cancel)
        program = await launcher.launch(
            [*_PYTHON, str(_PROGRAMS), "trespasser", json.dumps(targets)],
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
                assert program.process.stderr is not None  # noqa: S101 - as above
                errors = await program.process.stderr.read(_ERROR_BYTES)
                last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
                raise void_game(f"a program in the sandbox ended before it could be probed: {last}")
            harm = _harm_to(bystander)
            stopped = await _try_stopping(program, marker)
            cpu = await _try_throttling(program.cgroup)
        finally:
            before = _marked_pids(marker)
            await program.kill()
    results = {
        Protection(name): _judge(Protection(name), tried, succeeded + harm.get(name, []))
        for name, (tried, succeeded) in results.items()
    }
    results[Protection.IDLE_BOTS_STOPPED] = stopped
    results[Protection.CPU] = cpu
    results[Protection.KILL_TREE] = await _check_gone(Protection.KILL_TREE, marker, before)
    return results


def _create_targets(folder: Path, marker: str, bystander: int, stack: ExitStack) -> dict[str, Any]:
    """Create the files and the sockets that the program tries to use; return the argument TARGETS for the program."""
    shared = folder / "own" / "shared"
    shared.touch()
    shared.chmod(0o644)  # the umask can take access away
    _hold_locks(stack, shared)
    secret = folder / "secret"
    secret.write_text(marker)
    secret.chmod(0o644)  # as above
    _listen(stack, socket.AF_UNIX, f"\0{marker}")
    return {
        "own": str(folder / "own"),
        "shared": str(shared),
        "secret": str(secret),
        "bystander": bystander,
        "port": _listen(stack, socket.AF_INET, ("127.0.0.1", 0))[1],
        "abstract": marker,
        "memory_mib": _LIMITS.memory_mib,
        "processes": _LIMITS.processes,
    }


def _hold_locks(stack: ExitStack, shared: Path) -> None:
    """Hold locks on an eventfd, /dev/null and `shared`, so that the program can try to notice them.

    All probes of the machine lock the same eventfd and the same /dev/null. They use shared locks, because any number of
    probes can hold these at the same time.
    """
    common, own = (fcntl.LOCK_SH, fcntl.F_RDLCK), (fcntl.LOCK_EX, fcntl.F_WRLCK)
    for file, (kind, record_kind) in (
        (os.eventfd(0), common),
        (os.open(os.devnull, os.O_RDWR), common),
        (os.open(shared, os.O_RDWR), own),
    ):
        stack.callback(os.close, file)
        # if another program has an exclusive lock, the tested program can notice that lock instead
        with suppress(BlockingIOError):
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        with suppress(BlockingIOError):
            whole_file = struct.pack("hhqqi4x", record_kind, os.SEEK_SET, 0, 0, 0)
            # not F_SETLK: `_write_without_end` would release that lock when it closes the file
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, whole_file)


async def _write_without_end(shared: str) -> None:
    """Write into /dev/null and `shared` again and again, so that the program can try to notice it."""
    while True:
        for path in (os.devnull, shared):
            with suppress(BlockingIOError):  # the program holds a lease
                file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                os.write(file, b".")
                os.close(file)
        await asyncio.sleep(0.01)


def _harm_to(bystander: int) -> dict[str, list[str]]:
    """Return for each protection, by its name, the successful attempts against the bystander.

    The program itself cannot know which attempts were successful, because in its sandbox another process may have the
    pid of the bystander. If the referee is process 1 of a container, all pids are low, so this is likely.
    """
    status = Path(f"/proc/{bystander}/status").read_text()
    fields = dict(re.findall(r"^(ShdPnd|TracerPid):\s+(\w+)$", status, flags=re.MULTILINE))
    is_signalled = int(fields["ShdPnd"], 16) & 1 << signal.SIGURG - 1
    is_traced = fields["TracerPid"] != "0"
    return {
        "process view": ["signal the referee"] if is_signalled else [],
        "ptrace": ["trace the referee"] if is_traced else [],
    }


@asynccontextmanager
async def _start_program(*words: str, descriptor: int | None = None) -> AsyncIterator[int]:
    """Start a program of `probe_programs.py` outside of the rung, and yield its pid when it has printed a line.

    Kill the program at the end.

    Args:
        words: the role of the program and its arguments.
        descriptor: a file descriptor that the program gets, and this process closes; None for no descriptor.
    """
    program = await asyncio.create_subprocess_exec(
        *(*_PYTHON, str(_PROGRAMS), *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", os.defpath)},
        cwd="/",
        pass_fds=() if descriptor is None else (descriptor,),
    )
    if descriptor is not None:
        os.close(descriptor)
    try:
        assert program.stdout is not None  # noqa: S101 - started with a pipe
        await program.stdout.readline()
        yield program.pid
    finally:
        program.kill()
        await program.wait()


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


async def _try_stopping(program: RunningProgram, marker: str) -> ProbeResult:
    """Try to keep a busy program off a core, and then to stop it. Return the result for `IDLE_BOTS_STOPPED`."""
    program.scheduler.schedule(Scheduling.IDLE)
    # Other load on the machine can make the measured share larger, but not smaller. So one small share proves that the
    # program leaves the core to others.
    shares = (_compete(_marked_pids(marker)) for _ in range(_COMPETITIONS))
    leaves_core = any(share <= _IDLE_SHARE for share in shares)
    program.scheduler.schedule(Scheduling.STOPPED)
    until_s = time.monotonic() + _EXIT_LIMIT_S
    while (computes := program.busy_ns() is not None) and time.monotonic() < until_s:  # noqa: ASYNC110 - no event tells it
        await asyncio.sleep(0.01)
    program.scheduler.schedule(Scheduling.NORMAL)
    if computes:
        state, reason = State.OFF, "a bot can compute while it plays no game"
    elif not leaves_core or not program.scheduler.reaches_all:
        state = State.PARTIAL
        reason = "a bot can compute in a process that leaves its group, until the referee finds it"
    else:
        state, reason = State.ON, "tried, and stopped"
    return ProbeResult(Protection.IDLE_BOTS_STOPPED, state, reason)


def _compete(pids: Collection[int]) -> float:
    """Compute on one core with other processes, and return the share of the CPU time that the other processes get."""
    cores = os.sched_getaffinity(0)
    try:
        for pid in (0, *pids):
            with suppress(OSError):
                os.sched_setaffinity(pid, {min(cores)})
        before_ns, own_ns = sum(map(cpu_ns, pids)), time.thread_time_ns()
        while (spent_ns := time.thread_time_ns() - own_ns) < _COMPETE_NS:
            pass
        others_ns = sum(map(cpu_ns, pids)) - before_ns
    finally:
        os.sched_setaffinity(0, cores)
    return others_ns / (others_ns + spent_ns)


async def _try_throttling(cgroup: Cgroup | None) -> ProbeResult:
    """Lower the CPU limit of a busy program. Return the result for `CPU`: whether the kernel throttles the program."""
    if cgroup is None:
        return ProbeResult(Protection.CPU, State.OFF, "a bot can use all cores: it has no cgroup")
    before = cgroup.throttle_count
    with suppress(OSError):
        cgroup.limit_cpu(_LOW_CPUS)
        until_s = time.monotonic() + (_EXIT_LIMIT_S if cgroup.limits_cpu else 0)
        while time.monotonic() < until_s:
            if cgroup.throttle_count > before:
                return ProbeResult(Protection.CPU, State.ON, "tried, and throttled")
            await asyncio.sleep(0.01)
    return ProbeResult(
        Protection.CPU, State.OFF, "a bot can use all cores: its cgroup did not throttle it"
    )


async def _kill_parent(launcher: SandboxLauncher | UidLauncher, folder: Path) -> ProbeResult:
    """Let a process play the referee and start a program on the rung. Kill the process, and look whether the program dies.

    Return the result for `DIES_WITH_REFEREE`.
    """
    marker = secrets.token_hex(8)
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    inner = f"import time; time.sleep(1000)  # {marker}"
    child = [*_PYTHON, "-c", inner]
    command = (*_PYTHON, "-c", f"import os; os.spawnv(os.P_WAIT, {child[0]!r}, {child!r})")
    program = ProgramSpec(command, folder / "own", environment, _LIMITS, Access())
    resources = SandboxResources(launcher.cgroups, program)
    try:
        words, options = launcher.prepare_command(program, resources)
        started = shim_command("PARENT", "REPORT", options, words)
        sweeper = start_sweeper()
        if not launcher.is_sandboxed and resources.uid is not None:
            # The pid of the program is not known yet, so the sweeper gets -1: no process has the session -1. The sweeper
            # kills the processes of a user only while it holds the lock of the user id. This process holds the real lock
            # and is not killed, so the sweeper gets another file to lock.
            lock = folder / "user-id"
            lock.touch()
            os.write(sweeper, os.fsencode(f"+-1 {resources.uid} 0 {lock}\n"))
        # only this program keeps the writing end of the sweeper's pipe, so the sweeper acts when the program is killed
        async with _start_program("referee", *started, descriptor=sweeper) as referee:
            while not _marked_pids(inner, whole=True):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)
            before = _marked_pids(marker) - {referee}
        return await _check_gone(Protection.DIES_WITH_REFEREE, marker, before)
    finally:
        await asyncio.to_thread(resources.release)


async def _check_gone(protection: Protection, marker: str, before: set[int]) -> ProbeResult:
    """Wait up to `_EXIT_LIMIT_S` until no process with `marker` in its command line is left. Kill the rest, and return the result.

    Args:
        protection: the protection that the result is for.
        marker: a text in the command lines of the processes that must end.
        before: the pids of these processes before the kill.
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
    return ProbeResult(protection, state, f"processes left: {len(left)} of {len(before)}")


def _marked_pids(marker: str, *, whole: bool = False) -> set[int]:
    """Return the pids of the processes with `marker` in the first 64 KiB of their command line.

    With `whole`, an argument must be equal to `marker`.
    """
    wanted = os.fsencode(f"\0{marker}\0" if whole else marker)
    pids = set()
    for pid in psutil.pids():
        with suppress(OSError):
            if wanted in b"\0" + read_proc_file(f"/proc/{pid}/cmdline"):
                pids.add(pid)
    return pids
