"""Run a bot that attacks the machine, for tests of the sandbox: `burglar.py NAME [TARGET…]`.

Each bot is a class below, as in `bot.py`. The bots play correctly and write to standard error how many attacks
they have tried. A bot that succeeds exits with `SUCCESS`. Run them only in a
sandbox, except for those at the end, which attack the rungs without a sandbox.
"""

import ctypes
import fcntl
import mmap
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path


def chain():
    """Be replaced by a new process with a session of its own, again and again, for at most ten seconds.

    The pause keeps the number of zombies below what a machine can have, if a test fails and nobody removes them.
    """
    until_s = time.monotonic() + 10
    while time.monotonic() < until_s:
        time.sleep(0.0005)
        with suppress(OSError):
            if os.fork():
                os._exit(0)
            os.setsid()


def tree():
    """Start processes with sessions of their own that do the same, until there are 256. They end after a minute."""
    for _ in range(8):
        with suppress(OSError):
            if os.fork() == 0:
                os.setsid()
    time.sleep(60)


if sys.argv[1:] in (["chain"], ["tree"]):
    globals()[sys.argv[1]]()  # without the imports below, which `-S` does not find

from bot import FOREVER_S, Fair, GoesWrong, complain, kinds, start_daemon

SUCCESS = 9
MANY = 1000
HOLD_S = 100
"""How long `HoldsItsOutputs` holds the locks of its outputs."""


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


class FillsTcpBuffers(Burglar):
    """Sends as much as it can to TCP sockets that nobody reads: at most 1 GiB in 256 connections."""

    def burgle(self):
        self.tried = 1
        sent = 0
        with socket.create_server(("127.0.0.1", 0), backlog=256) as server:
            links = [socket.create_connection(server.getsockname()) for _ in range(256)]
            for link in links:
                link.setblocking(False)
                with suppress(BlockingIOError):
                    for _ in range(4):
                        sent += link.send(bytes(1 << 20))
            for link in links:
                link.close()
        if sent > 200 << 20:
            complain(f"{sent >> 20} MiB are in buffers")
            os._exit(SUCCESS)


class TakesMuchMemoryInChildren(GoesWrong):
    """Starts children that together exceed the limit, and goes on itself."""

    async def go_wrong(self, request):
        for _ in range(4):
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                much = bytearray(b"x") * (100 << 20)
                time.sleep(FOREVER_S if much else 0)
        time.sleep(FOREVER_S)


class LeavesItsCore(Burglar):
    """Takes other cores, and all asynchronous I/O of the machine."""

    def burgle(self):
        def choose_cores():
            before, machine = os.sched_getaffinity(0), set(range(os.cpu_count()))
            os.sched_setaffinity(0, {min(before)} if before == machine else machine)
            if os.sched_getaffinity(0) == before:  # a sandbox says yes and does nothing
                raise PermissionError("the cores are the same as before")

        self.attempt("choose its cores", choose_cores)

        def set_up_io():
            number = {"x86_64": 206, "aarch64": 0}[os.uname().machine]
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.syscall(number, 1, ctypes.byref(ctypes.c_ulong())) != 0:
                raise OSError(ctypes.get_errno(), "io_setup")

        self.attempt("set up asynchronous I/O", set_up_io)


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


class SignalsByLocks(Burglar):
    """Locks and watches files that other sandboxes may see too."""

    def burgle(self):
        events, epoll = os.eventfd(0), select.epoll()
        files = [os.open(path, os.O_RDONLY) for path in (__file__, sys.executable, "/dev/null")]
        files.append(os.open("/proc/self/ns/time", os.O_RDONLY))
        read_lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 1, 0)
        for file in (*files, events, epoll.fileno()):
            self.attempt("flock", partial(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB))
            for command in (fcntl.F_SETLK, fcntl.F_SETLKW, fcntl.F_OFD_SETLK, fcntl.F_OFD_SETLKW):
                self.attempt("lock", partial(fcntl.fcntl, file, command, read_lock))
            self.attempt("lease", partial(fcntl.fcntl, file, fcntl.F_SETLEASE, fcntl.F_RDLCK))
        folder = os.open(Path(__file__).parent, os.O_RDONLY)
        self.attempt("dnotify", partial(fcntl.fcntl, folder, fcntl.F_NOTIFY, fcntl.DN_ACCESS))
        self.attempt("inotify", self.watch)

    @staticmethod
    def watch():
        if ctypes.CDLL(None, use_errno=True).inotify_init1(0) < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")


# The outputs and the gRPC server, which the referee reads


class PassesDescriptors(Burglar):
    """Sends a file descriptor through each output. The referee would close it, which can take a long time."""

    def burgle(self):
        for output in (1, 2):
            self.attempt("send a descriptor", lambda output=output: pass_descriptor(output))


class PassesSlowSockets(Burglar):
    """Sends TCP sockets through many connections to its server. Closing one would take a thread of gRPC a minute."""

    def burgle(self):
        self.links = []
        for _ in range(20):
            link = socket.socket(socket.AF_UNIX)
            link.connect(os.environ["REFEREE_ADDRESS"].removeprefix("unix:"))
            self.links.append(link)
            self.attempt("send a slow socket", lambda link=link: self.pass_slow_socket(link))

    def pass_slow_socket(self, link):
        with socket.create_server(("127.0.0.1", 0)) as server:
            slow = socket.create_connection(server.getsockname())
            self.links.append(server.accept()[0])
        with slow:
            set_linger(slow, 60)
            slow.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    slow.send(bytes(1 << 16))
            slow.setblocking(True)
            try:
                socket.send_fds(link, [b"PRI * HTTP/2.0\r\n\r\n"], [slow.fileno()])
            except OSError:
                set_linger(slow, 0)  # the bot closes the socket itself
                raise


def set_linger(link, seconds):
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, seconds))


class HoldsItsOutputs(Fair):
    """Holds the locks of both outputs for `HOLD_S`, but no longer, so that a referee that waits goes on then."""

    ends = None

    async def answer(self, request):
        if self.ends is None:
            self.ends = socket.socketpair()
            threading.Timer(HOLD_S, self.ends[1].send, [b"xx"]).start()
            for output in (1, 2):
                os.write(output, b"holds\n")
                words = (self.ends[0].fileno(), output, 1)
                threading.Thread(target=os.splice, args=words, daemon=True).start()
            time.sleep(0.2)  # both threads have the locks then
        await super().answer(request)


def pass_descriptor(output):
    with socket.socket(fileno=os.dup(output)) as link:
        socket.send_fds(link, [b"x"], [0])


# The rungs without a sandbox


class RespawnsForEver(Burglar):
    """Leaves a process without environment that replaces itself all the time, faster than a list can find it."""

    def burgle(self):
        self.tried = 1
        words = [sys.executable, "-I", "-S", __file__, "chain"]
        start_daemon(lambda: os.execve(sys.executable, words, {}))


class StartsMoreAndMore(GoesWrong):
    """Starts many processes, each with a session of its own and without environment."""

    async def go_wrong(self, request):
        words = [sys.executable, "-I", "-S", __file__, "tree"]
        start_daemon(lambda: os.execve(sys.executable, words, {}))
        time.sleep(FOREVER_S)


class BindsNames(Burglar):
    """Takes the names of abstract sockets and files that could lock user ids."""

    def burgle(self):
        self.names = []
        for uid in range(66_000, 66_500):  # as many as its open files allow
            self.tried += 1
            with suppress(OSError):
                name = socket.socket(socket.AF_UNIX)
                name.bind(f"\0referee-uid-{uid}")
                self.names.append(name)
        for parent in ("/run", "/var/lib"):
            lock = Path(parent, "referee-user-ids", str(os.getuid()))
            self.attempt(f"open {lock}", lock.open)


class ReadsFiles(Burglar):
    """Reads the files that its arguments name."""

    def burgle(self):
        for path in sys.argv[2:]:
            self.attempt(f"read {path}", Path(path).read_bytes)


class LeavesMemory(Burglar):
    """Leaves files in all folders for temporary files, and shared memory, a semaphore and message queues."""

    def burgle(self):
        libc = ctypes.CDLL(None, use_errno=True)
        for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run/lock"):
            self.tried += 1
            with suppress(OSError):
                Path(folder, f"left-by-burglar-{os.getpid()}").mkdir()
                Path(folder, f"left-by-burglar-{os.getpid()}", "file").write_bytes(bytes(1 << 20))
        key = 0x4C494E4B
        libc.shmget(key, 1 << 20, 0o1666)
        libc.semget(key, 1, 0o1666)
        libc.msgget(key, 0o1666)

        def make_posix_queue():
            queue = ctypes.CDLL("librt.so.1", use_errno=True).mq_open(
                b"/burglar", os.O_CREAT | os.O_RDWR, 0o666, None
            )
            if queue < 0:
                raise OSError(ctypes.get_errno(), "mq_open")

        self.attempt("make a POSIX queue", make_posix_queue)


class LeavesSharedMemory(Burglar):
    """Leaves a closed file of 16 MiB in /dev/shm. Its name tells the test which referee has started the bot."""

    path = Path("/dev/shm", f"left-by-{os.getppid()}-{os.getpid()}")

    def burgle(self):
        self.tried = 1
        self.make()

    def make(self):
        with self.path.open("wb", buffering=0) as file:
            for _ in range(16):
                file.write(bytes(1 << 20))
                time.sleep(0.01)


class KeepsSharedMemoryMapped(LeavesSharedMemory):
    """Maps a file, gives it another name as `sem_open` does, and plays on with the mapping."""

    def make(self):
        first = self.path.with_suffix(".first")
        with first.open("wb+") as file:
            file.truncate(16 << 20)
            self.mapping = mmap.mmap(file.fileno(), 16 << 20)
        self.path.hardlink_to(first)
        first.unlink()
        self.mapping[:] = bytes(16 << 20)


class LeavesSegment(LeavesSharedMemory):
    """Leaves a segment of System V. Its size tells the test which referee has started the bot."""

    size = (1 << 20) + os.getppid()

    def make(self):
        if ctypes.CDLL(None).shmget(0, LeavesSegment.size, 0o1600) < 0:
            os._exit(SUCCESS)


class LeavesSharedMemoryOfDaemon(LeavesSharedMemory):
    """Starts a process with a session of its own that leaves a file and a segment, and ends."""

    def make(self):
        reader, writer = os.pipe()

        def live():
            LeavesSharedMemory.make(self)
            LeavesSegment.make(self)
            os._exit(0)

        start_daemon(live)
        os.close(writer)
        os.read(reader, 1)  # until the process has ended


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
