"""Define the interface of all launchers: start a program, keep its output, and end its process tree.

Each rung of the isolation ladder has one launcher:

    full, namespaces   `SandboxLauncher` in `sandbox`
    uid                `UidLauncher` in `process_group`
    none               `ProcessGroupLauncher` in `process_group`

`AttachLauncher` in `referee/bots/attach.py` is for a bot that a person starts.

Call `check_capacity` before a bot or a worker is started. If a resource runs out in the middle of a start, the event
loop and gRPC leave incomplete objects behind, and gRPC may even end the referee. `charge_or_void` makes such a
check after a bot has failed, because a lack of resources may be the reason.
"""

from __future__ import annotations

import _thread
import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from referee.errors import Forfeit, Shortage, VoidGame, describe_shortage
from referee.sandbox import Access, Limits, TotalUsage
from referee.sandbox.scheduling import Scheduler

DEFAULT_KEPT_BYTES = 1 << 20
"""How many bytes `Output` keeps by default."""
_CHUNK_BYTES = 1 << 16
_EXIT_LIMIT_S = 1.0
"""How long `list_left_running` waits for the other processes of a program to exit."""
_EXIT_CHECKS = 20
"""How many times `list_left_running` looks for running processes within `_EXIT_LIMIT_S`."""
_DESCRIPTORS = 64
"""How many file descriptors must be free. A bot needs about twelve, and several bots may start at once."""
_THREADS = 8
"""How many threads must be free for the referee, which needs threads of its own for the new process."""
ALL_THREADS = 32
"""How many threads must be free for the referee and for the new process together."""


class Process(Protocol):
    """The part of `asyncio.subprocess.Process` that callers need."""

    @property
    def pid(self) -> int:
        """The process id, as the referee sees it."""
        ...

    @property
    def stdout(self) -> asyncio.StreamReader | None:
        """The pipe from standard output."""
        ...

    @property
    def stderr(self) -> asyncio.StreamReader | None:
        """The pipe from standard error."""
        ...

    @property
    def returncode(self) -> int | None:
        """The exit code, or the negative number of the signal that ended the process; None while it runs."""
        ...

    async def wait(self) -> int:
        """Wait until the process ends, and return `returncode`."""
        ...


class RunningProgram(Protocol):
    """A program that a launcher has started, with its process tree."""

    @property
    def process(self) -> Process:
        """The process of the program itself."""
        ...

    @property
    def scheduler(self) -> Scheduler:
        """Sets when the process tree gets a core. All methods of `RunningProgram` also work while the tree is stopped."""
        ...

    def terminate(self) -> None:
        """Send SIGTERM to the program and its process group. A stopped program gets the signal only when it runs again."""
        ...

    def list_others(self) -> list[str]:
        """Return the names of all running processes of the tree except the program itself.

        A name has at most 15 bytes, and a process can choose its name.
        """
        ...

    def usage(self) -> TotalUsage:
        """Return what the process tree has used since the start.

        A call is cheap enough to be made before and after each game.
        """
        ...

    def busy_ns(self) -> int | None:
        """Return the CPU time of the process tree in ns; None if no thread of the tree runs or waits for a core now.

        At a deadline, `bots/clock.py` uses this to decide whether a program gets more time for a missing reply. If the
        result is None, the program gets no more time. Otherwise it gets some more CPU time.

        A cgroup counts ended processes too. Without one, the CPU time of ended threads is included. For a process that
        has ended since the previous result, its last measured CPU time and one more second are included. The second stands
        for the unknown time that it computed after that measurement. A call takes about 20 µs for each thread.

        If the kernel does not limit the number of processes, a tree may have more threads than its limit plus
        `SPARE_PROCESSES`. Such a tree counts as running, and its threads are not read one by one.
        """
        ...

    async def breach(self) -> Forfeit | VoidGame | None:
        """Return a `Forfeit` if the process tree exceeds its limit of memory or processes.

        Return a `VoidGame` if the kernel has ended a process of the tree because the machine lacks memory, or if the
        machine lacks a thread to measure the tree. Otherwise return None.

        The method is cheap enough for two calls each second. Call it once more after the program has ended, because
        the kernel may have ended the program at a limit.
        """
        ...

    async def kill(self) -> None:
        """Kill all processes of the process tree, and wait until they are gone."""
        ...


class Output:
    """Read one output of a process (standard output or standard error) all the time, and keep its first and last bytes.

    If nothing read the output, the process would wait as soon as its pipe is full. This object keeps at most
    `head_bytes + 2 * kept_bytes` bytes.

    Args:
        kept_bytes: how many bytes from the end of the output are kept.
        head_bytes: how many bytes from the beginning of the output are kept too.
        on_chunk: called with each chunk that is read.
    """

    def __init__(
        self,
        kept_bytes: int = DEFAULT_KEPT_BYTES,
        head_bytes: int = 0,
        on_chunk: Callable[[bytes], None] | None = None,
    ) -> None:
        self._kept_bytes = kept_bytes
        self._head_bytes = head_bytes
        self._head = b""
        self._on_chunk = on_chunk
        self._bytes = bytearray()
        self.total = 0
        """How many bytes of the output have been read."""

    async def drain(self, pipe: asyncio.StreamReader) -> None:
        """Read a pipe to its end. Run this as a task, and cancel the task when the process is gone."""
        while chunk := await pipe.read(_CHUNK_BYTES):
            self.add(chunk)
            # without this pause, a pipe that is never empty would block the event loop
            await asyncio.sleep(0)

    def add(self, chunk: bytes) -> None:
        """Append a chunk. Drop the oldest bytes if there are more than `2 * kept_bytes`."""
        if self._on_chunk is not None:
            self._on_chunk(chunk)
        self.total += len(chunk)
        if missing := self._head_bytes - len(self._head):
            self._head += chunk[:missing]
            chunk = chunk[missing:]
        self._bytes += chunk
        if len(self._bytes) > 2 * self._kept_bytes:
            del self._bytes[: -self._kept_bytes]

    def last_bytes(self) -> bytes:
        """Return the last `kept_bytes` bytes after the head, or all bytes after the head if there are fewer."""
        return bytes(self._bytes[-self._kept_bytes :])

    def tail(self, size: int) -> str:
        """Return the last `size` bytes as text, or fewer if fewer are kept. Escape control characters except line ends and tabs."""
        if self.total == len(self._head) + len(self._bytes):
            return _as_text((self._head + self._bytes)[max(0, self.total - size) :])
        return _as_text(self._bytes[max(0, len(self._bytes) - size) :])

    def text(self) -> str:
        """Return the first and the last bytes of the output as text, escaped as in `tail`.

        If bytes between them are left out, a line says how many.
        """
        last = self.last_bytes()
        left_out = self.total - len(self._head) - len(last)
        if not left_out:
            return _as_text(self._head + last)
        return f"{_as_text(self._head)}\n… {left_out} bytes left out …\n{_as_text(last)}"


def printable(text: str) -> str:
    """Escape the control characters of a text except line ends and tabs."""
    return "".join(char if char.isprintable() or char in "\n\t" else _escape(char) for char in text)


class Launcher(Protocol):
    """Starts programs on one rung of the isolation ladder."""

    @property
    def isolation(self) -> str:
        """The rung and the missing protections, as game records store them: `Isolation.summary`."""
        ...

    @property
    def is_sandboxed(self) -> bool:
        """Whether each program runs in a sandbox, with its own file tree and its own loopback address."""
        ...

    @property
    def is_unprotected(self) -> bool:
        """Whether programs have all rights of the referee."""
        ...

    async def launch(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        limits: Limits = ...,
        access: Access = ...,
    ) -> RunningProgram:
        """Start a program in `folder` with exactly this environment.

        All paths must be absolute. The default of `limits` is `DEFAULT_LIMITS`. The launcher passes the limits
        to the shim or, in a sandbox, to `init.py`, also to the resource monitor, and to the cgroup if there is one.

        Raises `Forfeit` (no_start) if the program is missing or cannot be executed. Raises `VoidGame` if the
        machine lacks resources or the isolation cannot be set up.
        """
        ...

    def reap(self) -> None:
        """Remove the zombies of orphan processes that have ended. A call is cheap enough to be made after each game."""
        ...


async def list_left_running(program: RunningProgram) -> list[str]:
    """Return the names of the processes that a program has left running. Call this when the program has ended.

    Waits up to one second until these processes exit. If all of them exit in time, the list is empty. Control
    characters in the names are escaped.
    """
    for _ in range(_EXIT_CHECKS):
        if not program.list_others():
            break
        await asyncio.sleep(_EXIT_LIMIT_S / _EXIT_CHECKS)
    return [printable(name) for name in program.list_others()]


def check_capacity(threads: int = _THREADS) -> None:
    """Raise `Shortage` if the machine lacks file descriptors or threads for one more process.

    The check takes 64 file descriptors and `threads` threads, and gives them back at once. It does not wait until the
    threads run, so the check is fast on a busy machine too.
    """
    with ExitStack() as stack:
        try:
            for _ in range(_DESCRIPTORS // 2):
                for end in os.pipe():
                    stack.callback(os.close, end)
            gate = _thread.allocate_lock()
            gate.acquire()
            stack.callback(gate.release)
            for _ in range(threads):
                _thread.start_new_thread(_wait_for_gate, (gate,))
        except (OSError, RuntimeError) as error:
            reason = describe_shortage(error) or error
            raise Shortage(f"no room for another process: {reason}") from error


def _wait_for_gate(gate: _thread.LockType) -> None:
    with gate:
        pass


def charge_or_void(fault: Forfeit) -> Forfeit | VoidGame:
    """Return `fault`. If the machine lacks resources, return a `VoidGame` instead, which charges no bot."""
    try:
        check_capacity(ALL_THREADS)
    except VoidGame as void:
        return void
    return fault


def signal_name(number: int) -> str:
    """Return the name of a signal, such as `SIGSEGV`. If Python knows no name, return a text such as `signal 40`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _as_text(data: bytes | bytearray) -> str:
    """Return output as text. Escape control characters except line ends and tabs."""
    return printable(data.decode("utf-8", "backslashreplace"))


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
