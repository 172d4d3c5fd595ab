"""Run a bot that attacks the machine, for tests of the sandbox: `burglar.py NAME [TARGET…]`.

Each bot is a class below, as in `bot.py`. The bots play correctly and write to standard error how many attacks
they have tried. A bot that succeeds exits with `SUCCESS`. Run them only in a sandbox.
"""

import ctypes
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from bot import FOREVER_S, Fair, GoesWrong, complain, kinds, start_daemon

SUCCESS = 9
MANY = 1000


class Burglar(Fair):
    """Attacks before it plays, because a process with the threads of gRPC cannot fork safely."""

    async def run(self):
        self.tried = 0
        self.burgle()
        complain(f"tried {self.tried}")
        await super().run()

    def attempt(self, what, act):
        """Call `act`, which must raise `OSError`; exit with `SUCCESS` if it does not."""
        self.tried += 1
        try:
            act()
        except OSError:
            return
        complain(f"could {what}")
        os._exit(SUCCESS)


# Memory and processes


class TakesMuchMemory(GoesWrong):
    async def go_wrong(self, request):
        self.much = [bytearray(b"x") * (1 << 24) for _ in range(MANY)]


class FillsMemfd(GoesWrong):
    async def go_wrong(self, request):
        memory = os.memfd_create("much")
        for _ in range(MANY):
            os.write(memory, bytes(1 << 24))


class TakesMuchMemoryInChildren(GoesWrong):
    """Starts children that together exceed the limit, and goes on itself."""

    async def go_wrong(self, request):
        for _ in range(4):
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                much = bytearray(b"x") * (100 << 20)
                time.sleep(FOREVER_S if much else 0)
        time.sleep(FOREVER_S)


class ForkBomb(Burglar):
    """Starts as many processes as it can. Then it ends them, because otherwise it could not play."""

    def burgle(self):
        children = []
        with suppress(OSError):
            while self.tried < MANY:
                self.tried += 1
                if (child := os.fork()) == 0:
                    time.sleep(FOREVER_S)
                children.append(child)
        if self.tried == MANY:
            os._exit(SUCCESS)
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


class ForksAndExits(Burglar):
    """Starts a chain of processes: each one starts the next one and exits."""

    def burgle(self):
        self.tried = 1
        if os.fork() == 0:
            os.setsid()
            while True:
                with suppress(OSError):
                    if os.fork():
                        os._exit(0)
                time.sleep(0.001)


class LeavesManyDaemons(Burglar):
    def burgle(self):
        for _ in range(5):
            self.tried += 1
            start_daemon(lambda: os.execve("/bin/sleep", ["sleep", str(FOREVER_S)], {}))


# Files


class WritesEverywhere(Burglar):
    def burgle(self):
        own = Path(__file__)
        for path in (own, own.with_name("new.py"), own.parent / "__pycache__" / "bot.pyc"):
            self.attempt(f"write {path}", lambda path=path: path.write_text("pass"))
            self.attempt(f"remove {path}", path.unlink)
        for folder in (
            "/",
            "/usr",
            "/usr/bin",
            "/etc",
            "/dev",
            "/home",
            "/root",
            "/var",
            "/run",
            sys.prefix,
        ):
            path = Path(folder, "burglar")
            self.attempt(f"write {path}", lambda path=path: path.write_text("x"))
        link = Path(os.environ["REFEREE_ADDRESS"].removeprefix("unix:"))
        self.attempt("replace its socket", lambda: link.rename(link.with_name("other")))
        self.attempt("write beside its socket", lambda: link.with_name("x").write_text("x"))


class FillsScratch(Burglar):
    def burgle(self):
        for folder in (os.environ["TMPDIR"], "/tmp", "/dev/shm"):
            file = Path(folder, "much")

            def fill(file=file):
                with file.open("wb", buffering=0) as out:
                    for _ in range(MANY):
                        out.write(bytes(1 << 20))

            self.attempt(f"fill {folder}", fill)


class LeavesState(Burglar):
    """Leaves files and a queue, and succeeds if it finds them again in a later process."""

    def burgle(self):
        own = Path(__file__).parent
        for folder in (
            os.environ["HOME"],
            "/tmp",
            "/dev/shm",
            own,
            "/var/tmp",
        ):
            self.attempt("find its state", (state := Path(folder, "state")).read_text)
            with suppress(OSError):
                state.write_text("I was here")
        self.attempt("find a queue", lambda: self.message_queue(create=False))
        self.message_queue(create=True)

    def message_queue(self, *, create):
        """Open or create a System V message queue, which outlives the process that created it."""
        if ctypes.CDLL(None, use_errno=True).msgget(4711, 0o1666 if create else 0) < 0:
            raise OSError(ctypes.get_errno(), "msgget")


# The network


class UsesNetwork(Burglar):
    """Uses every kind of socket. The targets are a TCP port and an abstract socket of this machine."""

    def burgle(self):
        port, name = int(sys.argv[2]), sys.argv[3]
        for address in (("127.0.0.1", port), ("192.0.2.1", 80)):
            self.attempt(
                f"connect to {address}",
                lambda address=address: socket.create_connection(address, timeout=2),
            )
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.attempt("send a packet", lambda: udp.sendto(b"x", ("192.0.2.1", 53)))
        abstract = socket.socket(socket.AF_UNIX)
        self.attempt("connect to an abstract socket", lambda: abstract.connect(f"\0{name}"))
        self.attempt("open a raw socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
        self.attempt("open a virtual socket", lambda: socket.socket(socket.AF_VSOCK))


# Other processes


class Spies(Burglar):
    """Reads, signals and traces other processes.

    The targets are the pids of the referee and of another bot, and the folder of the other bot's socket.
    """

    def burgle(self):
        libc = ctypes.CDLL(None, use_errno=True)
        for pid in map(int, sys.argv[2:4]):
            self.attempt(f"signal {pid}", lambda pid=pid: os.kill(pid, 0))
            for file in ("environ", "mem", "cmdline", "root/etc/passwd"):
                self.attempt(f"read {file}", Path("/proc", str(pid), file).read_bytes)

            def trace(pid=pid):
                if libc.ptrace(16, pid, None, None):
                    raise OSError(ctypes.get_errno(), "ptrace")

            self.attempt(f"trace {pid}", trace)
        other = Path(sys.argv[4])
        self.attempt("look into another's folder", lambda: list(other.iterdir()))
        link = socket.socket(socket.AF_UNIX)
        self.attempt("connect to another's socket", lambda: link.connect(str(other / "socket")))
        seen = [int(each.name) for each in Path("/proc").glob("[0-9]*")]
        self.attempt(
            "see others", lambda: [path.stat() for path in self.strange(seen)][0:1] or self.none()
        )
        for signals in (signal.SIGTERM, signal.SIGKILL):
            with suppress(OSError):
                os.kill(1, signals)

    @staticmethod
    def strange(pids):
        own = {1, os.getpid(), *(int(each.name) for each in Path("/proc/self/task").iterdir())}
        return [Path("/proc", str(pid)) for pid in pids if pid not in own]

    @staticmethod
    def none():
        raise OSError("there is no other process")


class KillsEverybody(GoesWrong):
    """Sends signals to every process that it can reach, and goes on playing."""

    async def go_wrong(self, request):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
            with suppress(OSError):
                os.kill(-1, number)
        await self.say(replies=[self.reply(request)])


if __name__ == "__main__":
    import asyncio

    complain(f"I am {sys.argv[1]}")
    asyncio.run(kinds()[sys.argv[1]]().run())
