"""Talk with another sandbox through what both share, for tests of the sandbox: `channels.py SOCKET FILE…`.

Two of these programs run in two sandboxes; each FILE is shown to both. A program connects to SOCKET and gets one
request a line. `send CHANNEL BIT` changes something, `receive CHANNEL` reads it. The reply is a number: for `receive`
the reading. Each channel is a class below. Run them only in a sandbox.
"""

import ctypes
import errno
import fcntl
import inspect
import os
import re
import signal
import socket
import struct
import sys
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.shmat.restype = ctypes.c_void_p
LIBC.sem_open.restype = ctypes.c_void_p
REFUSED = -1.0
"""The reading of a channel whose system call fails."""
KEY, NAME = 4711, "covert"
MANY = 30
F_OFD_GETLK, F_OFD_SETLK = 36, 37
FADV_RANDOM = 1
PAGE = 1 << 12
SO_COOKIE = 57


def check(result):
    """Raise OSError if a function of the C library has failed."""
    if result is None or result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def read_one_byte(file):
    with suppress(OSError), file.open("rb", buffering=0) as opened:
        opened.read(1)


class Channel(ABC):
    """A way to pass bits. `send` of the one program and `receive` of the other are called in turn."""

    def __init__(self, files):
        self.files = [Path(file) for file in files]

    @abstractmethod
    def send(self, bit):
        """Change something, in one way for 0 and in another for 1."""

    @abstractmethod
    def receive(self):
        """Return a number that is higher or lower if the bit was 1."""


# What is shared by the files that both programs are shown


class OnFiles(Channel):
    """Uses every file; a reading is the number of files that say 1."""

    def __init__(self, files):
        super().__init__(files)
        self.opened = [os.eventfd(0)]  # all eventfd descriptors of a machine have one inode
        for file in self.files:
            with suppress(OSError):
                self.opened.append(os.open(file, os.O_RDONLY))

    def send(self, bit):
        for file in self.opened:
            with suppress(OSError):
                self.send_on(file, bit)

    def receive(self):
        count = 0
        for file in self.opened:
            with suppress(OSError):
                count += self.receive_on(file)
        return count

    @abstractmethod
    def send_on(self, file, bit):
        """Do the work of `send` on one open file."""

    @abstractmethod
    def receive_on(self, file):
        """Return whether one open file says 1."""


class Flock(OnFiles):
    def send_on(self, file, bit):
        fcntl.flock(file, fcntl.LOCK_EX if bit else fcntl.LOCK_UN)

    def receive_on(self, file):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 1
        fcntl.flock(file, fcntl.LOCK_UN)
        return 0


class RecordLock(OnFiles):
    """Locks a range for reading; the other one asks who would be in the way of a lock for writing."""

    get, set = fcntl.F_GETLK, fcntl.F_SETLK

    def send_on(self, file, bit):
        fcntl.fcntl(file, self.set, self.pack(fcntl.F_RDLCK if bit else fcntl.F_UNLCK))

    def receive_on(self, file):
        [found] = struct.unpack_from("h", fcntl.fcntl(file, self.get, self.pack(fcntl.F_WRLCK)))
        return found != fcntl.F_UNLCK

    @staticmethod
    def pack(kind):
        return struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 1, 0)


class OpenFileLock(RecordLock):
    """The same with locks that belong to the open file instead of the process."""

    get, set = F_OFD_GETLK, F_OFD_SETLK


class Lease(Channel):
    """Opens the files; the other one gets a lease for writing only if nobody else has a file open."""

    def __init__(self, files):
        super().__init__(files)
        self.opened = []

    def send(self, bit):
        for file in self.opened:
            os.close(file)
        self.opened = [os.open(file, os.O_RDONLY) for file in self.files * bit]

    def receive(self):
        return sum(map(self.is_open_elsewhere, self.files))

    @staticmethod
    def is_open_elsewhere(file):
        with file.open("rb") as opened:
            try:
                fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            except OSError as error:
                return error.errno == errno.EAGAIN
        return False


class Inotify(Channel):
    """Sees that a file, or a file in a folder, is opened."""

    OPENED = 0x20

    def __init__(self, files):
        super().__init__(files)
        self.queue = None

    def send(self, bit):
        for file in self.files if bit else ():
            with suppress(OSError):
                os.close(os.open(file, os.O_RDONLY))

    def receive(self):
        if self.queue is None:
            self.queue = check(LIBC.inotify_init1(os.O_NONBLOCK))
            for path in {*self.files, *(file.parent for file in self.files)}:
                LIBC.inotify_add_watch(self.queue, os.fsencode(path), self.OPENED)
            return 0
        try:
            return len(os.read(self.queue, 1 << 16))
        except BlockingIOError:
            return 0


class Dnotify(Channel):
    """Sees by a signal that a file in a folder is read."""

    def __init__(self, files):
        super().__init__(files)
        self.folders = []
        self.signals = 0

    def send(self, bit):
        for file in self.files if bit else ():
            read_one_byte(file)

    def receive(self):
        if not self.folders:
            signal.signal(signal.SIGIO, self.count)
            for folder in {file.parent for file in self.files}:
                self.folders.append(os.open(folder, os.O_RDONLY))
                fcntl.fcntl(self.folders[-1], fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT)
        seen, self.signals = self.signals, 0
        return seen

    def count(self, *_):
        self.signals += 1


class AccessTime(Channel):
    def send(self, bit):
        for file in self.files if bit else ():
            read_one_byte(file)

    def receive(self):
        return max(file.stat().st_atime_ns for file in self.files)


class ModificationTime(Channel):
    """Sets the times of files that everybody may write to, such as device files."""

    def __init__(self, files):
        super().__init__(files)
        self.files = [file for file in self.files if file.parts[1] != "proc"]
        self.known = 0

    def send(self, bit):
        for file in self.files if bit else ():
            with suppress(OSError):
                before = file.stat().st_mtime_ns
                while (
                    file.stat().st_mtime_ns == before
                ):  # the kernel's clock for files ticks slowly
                    os.utime(file)

    def receive(self):
        newest = max(file.stat().st_mtime_ns for file in self.files)
        changed, self.known = newest != self.known, newest
        return changed


class PageCache(Channel):
    """Reads a page of the last file, or does not. Then the page comes from memory, or slowly from the disk."""

    def __init__(self, files):
        super().__init__(files)
        self.page = 0
        self.file = os.open(self.files[-1], os.O_RDONLY)
        os.posix_fadvise(self.file, 0, 0, FADV_RANDOM)

    def send(self, bit):
        if bit:
            self.read()
        self.page += 1

    def receive(self):
        began = time.perf_counter_ns()
        self.read()
        self.page += 1
        return time.perf_counter_ns() - began

    def read(self):
        os.pread(self.file, 1, self.page * PAGE)


class Disk(Channel):
    """Fills the folders that it may write to; the other one looks at the free space of everything it is shown."""

    def send(self, bit):
        for folder in (os.environ["HOME"], "/tmp", "/dev/shm"):
            with suppress(OSError):
                Path(folder, NAME).write_bytes(bytes(bit << 22))

    def receive(self):
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        total = 0
        for folder in {*(line.split()[1] for line in mounts), *map(str, self.files)}:
            with suppress(OSError):
                figures = os.statvfs(folder)
                total += figures.f_bfree + figures.f_bavail + figures.f_ffree
        return total


# Means to talk with other processes


class AbstractSocket(Channel):
    kind = socket.SOCK_STREAM

    def send(self, bit):
        self.bound = socket.socket(socket.AF_UNIX, self.kind)
        if bit:
            self.bound.bind(f"\0{NAME}-{self.kind}")

    def receive(self):
        with socket.socket(socket.AF_UNIX, self.kind) as own:
            try:
                own.bind(f"\0{NAME}-{self.kind}")
            except OSError:
                return 1
        return 0


class AbstractDatagrams(AbstractSocket):
    kind = socket.SOCK_DGRAM


class LoopbackPort(Channel):
    def send(self, bit):
        self.bound = socket.socket()
        if bit:
            self.bound.bind(("127.0.0.1", KEY))

    def receive(self):
        with socket.socket() as own:
            try:
                own.bind(("127.0.0.1", KEY))
            except OSError:
                return 1
        return 0


class SharedMemory(Channel):
    """System V shared memory."""

    def send(self, bit):
        own = check(LIBC.shmget(KEY, PAGE, 0o1666))
        ctypes.memset(LIBC.shmat(own, None, 0), bit, 1)

    def receive(self):
        other = check(LIBC.shmget(KEY, PAGE, 0))
        return ctypes.string_at(LIBC.shmat(other, None, 0), 1)[0]


class Semaphores(Channel):
    """System V semaphores."""

    GETVAL, SETVAL = 12, 16

    def send(self, bit):
        check(LIBC.semctl(check(LIBC.semget(KEY, 1, 0o1666)), 0, self.SETVAL, bit))

    def receive(self):
        return check(LIBC.semctl(check(LIBC.semget(KEY, 1, 0)), 0, self.GETVAL))


class MessageQueue(Channel):
    """A System V message queue."""

    def send(self, bit):
        queue = check(LIBC.msgget(KEY, 0o1666))
        if bit:
            check(LIBC.msgsnd(queue, struct.pack("q8x", 1), 8, 0))

    def receive(self):
        queue = check(LIBC.msgget(KEY, 0))
        return LIBC.msgrcv(queue, ctypes.create_string_buffer(16), 8, 0, 0o4000) >= 0


class NamedMemory(Channel):
    """POSIX shared memory, and files in the folders that everybody may write to on other systems."""

    def send(self, bit):
        for folder in ("/dev/shm", "/dev/mqueue", "/tmp", "/var/tmp", "/run/lock"):
            with suppress(OSError):
                Path(folder, NAME).write_bytes(bytes(bit))

    def receive(self):
        sizes = (
            Path(folder, NAME)
            for folder in ("/dev/shm", "/dev/mqueue", "/tmp", "/var/tmp", "/run/lock")
        )
        return sum(path.stat().st_size for path in sizes if path.exists())


class NamedSemaphore(Channel):
    """A POSIX semaphore."""

    def send(self, bit):
        if bit:
            check(LIBC.sem_open(f"/{NAME}".encode(), os.O_CREAT, 0o666, 1))
        else:
            LIBC.sem_unlink(f"/{NAME}".encode())

    def receive(self):
        return LIBC.sem_open(f"/{NAME}".encode(), 0) is not None


class NamedQueue(Channel):
    """A POSIX message queue."""

    def send(self, bit):
        if bit:
            os.close(check(LIBC.mq_open(f"/{NAME}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)))
        else:
            LIBC.mq_unlink(f"/{NAME}".encode())

    def receive(self):
        queue = LIBC.mq_open(f"/{NAME}".encode(), os.O_RDONLY)
        if queue >= 0:
            os.close(queue)
        return queue >= 0


# What the kernel tells about all processes


class WithChildren(Channel):
    """Starts many processes for a 1, and ends them for a 0."""

    def __init__(self, files):
        super().__init__(files)
        self.children = []

    def send(self, bit):
        for child in self.children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self.children = []
        for _ in range(MANY * bit):
            if (child := os.fork()) == 0:
                signal.pause()
            self.children.append(child)


class Processes(WithChildren):
    """Counts the processes in /proc."""

    def receive(self):
        return sum(each.name.isdecimal() for each in Path("/proc").iterdir())


class Signals(WithChildren):
    """Counts the processes that it could send a signal to, among those that may have been started last."""

    def receive(self):
        if (child := os.fork()) == 0:
            os._exit(0)
        os.waitpid(child, 0)
        count = 0
        for pid in range(max(1, child - 10 * MANY), child):
            with suppress(OSError):
                os.kill(pid, 0)
                count += 1
        return count


class LoadAverage(WithChildren):
    """Reads the number of threads of the machine."""

    def receive(self):
        return float(Path("/proc/loadavg").read_text().partition("/")[2].split()[0])


class ForksInStat(WithChildren):
    """Reads how many processes have been started since the last time."""

    def __init__(self, files):
        super().__init__(files)
        self.last = 0

    def receive(self):
        [number] = re.findall(r"processes (\d+)", Path("/proc/stat").read_text())
        more, self.last = int(number) - self.last, int(number)
        return more


class SysinfoProcesses(WithChildren):
    def receive(self):
        return sysinfo()[10]


def sysinfo():
    """Return uptime, three loads, total, free, shared and buffer memory, total and free swap, and processes."""
    result = ctypes.create_string_buffer(256)
    check(LIBC.sysinfo(result))
    return struct.unpack_from("q9QH", result)


class Memory(Channel):
    """Holds much shared memory for a 1."""

    def __init__(self, files):
        super().__init__(files)
        self.held = os.memfd_create(NAME)

    def send(self, bit):
        os.ftruncate(self.held, 0)
        os.pwrite(self.held, b"x" * (bit << 24), 0)


class SysinfoMemory(Memory):
    def receive(self):
        return sysinfo()[6]


class Meminfo(Memory):
    def receive(self):
        [size] = re.findall(r"Shmem: +(\d+)", Path("/proc/meminfo").read_text())
        return int(size)


class Vmstat(Memory):
    def receive(self):
        [pages] = re.findall(r"nr_shmem (\d+)", Path("/proc/vmstat").read_text())
        return int(pages)


class MemoryPressure(Memory):
    def receive(self):
        return float(re.findall(r"total=(\d+)", Path("/proc/pressure/memory").read_text())[0])


class OpenFiles(Channel):
    """Opens many files; the other one reads how many are open on the machine."""

    def __init__(self, files):
        super().__init__(files)
        self.opened = []

    def send(self, bit):
        for each in self.opened:
            os.close(each)
        self.opened = [end for _ in range(MANY * 10 * bit) for end in os.pipe()]

    def receive(self):
        return int(Path("/proc/sys/fs/file-nr").read_text().split()[0])


class LocksInProc(Channel):
    """Locks a file of its own; the other one counts all locks of the machine."""

    def send(self, bit):
        self.own = Path(os.environ["HOME"], NAME).open("w")
        if bit:
            fcntl.fcntl(self.own, F_OFD_SETLK, RecordLock.pack(fcntl.F_WRLCK))

    def receive(self):
        return len(Path("/proc/locks").read_text().splitlines())


class PipePages(Channel):
    """Takes all memory that pipes of one user may have; then a new pipe of this user is smaller."""

    def __init__(self, files):
        super().__init__(files)
        self.pipes = []

    def send(self, bit):
        for end in self.pipes:
            os.close(end)
        self.pipes = []
        for _ in range(100 * bit):
            self.pipes += os.pipe()
            with suppress(OSError):
                fcntl.fcntl(self.pipes[-1], fcntl.F_SETPIPE_SZ, 1 << 20)

    def receive(self):
        ends = os.pipe()
        size = fcntl.fcntl(ends[0], fcntl.F_GETPIPE_SZ)
        for end in ends:
            os.close(end)
        return size


class DescriptorsInFlight(Channel):
    """Sends as many descriptors as may be on their way between sockets of one user, and does not receive them."""

    MESSAGES, IN_ONE = 8, 250

    def __init__(self, files):
        super().__init__(files)
        self.held = ()

    def send(self, bit):
        for end in self.held:
            end.close()
        self.held = socket.socketpair() if bit else ()
        with suppress(OSError):
            for _ in range(self.MESSAGES * bit):
                socket.send_fds(self.held[0], [b"x"], [0] * self.IN_ONE)

    def receive(self):
        one, other = socket.socketpair()
        with one, other:
            try:
                socket.send_fds(one, [b"x"], [0])
            except OSError:
                return 1
        return 0


class PendingSignals(Channel):
    """Takes all signals that may be pending for one user."""

    def __init__(self, files):
        super().__init__(files)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMAX})

    def send(self, bit):
        while bit and LIBC.sigqueue(os.getpid(), signal.SIGRTMAX, None) == 0:
            pass
        while not bit and signal.sigtimedwait({signal.SIGRTMAX}, 0):
            pass

    def receive(self):
        if LIBC.sigqueue(os.getpid(), signal.SIGRTMAX, None):
            return 1
        signal.sigtimedwait({signal.SIGRTMAX}, 0)
        return 0


# What cannot be hidden


class Core(Channel):
    """Computes, or sleeps; the other one measures how far it comes on the same core."""

    WINDOW_S = 0.02

    def __init__(self, files):
        super().__init__(files)
        self.child = None

    def send(self, bit):
        if self.child is not None:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            self.child = None
        if bit and (child := os.fork()) == 0:
            while True:
                pass
        elif bit:
            self.child = child

    def receive(self):
        steps, until_s = 0, time.perf_counter() + self.WINDOW_S
        while time.perf_counter() < until_s:
            steps += 1
        return steps


class InodeNumbers(Channel):
    """Makes many pipes for a 1; pipes and sockets get their numbers from one counter for each core."""

    def __init__(self, files):
        super().__init__(files)
        self.last = 0

    def send(self, bit):
        for _ in range(MANY * bit):
            for end in os.pipe():
                os.close(end)

    def receive(self):
        reading, writing = os.pipe()
        number = os.fstat(reading).st_ino
        os.close(reading)
        os.close(writing)
        more, self.last = number - self.last, number
        return more


class SocketCookies(InodeNumbers):
    """The same with the cookies of sockets."""

    def send(self, bit):
        for _ in range(MANY * bit):
            self.cookie()

    def receive(self):
        number = self.cookie()
        more, self.last = number - self.last, number
        return more

    @staticmethod
    def cookie():
        with socket.socket(socket.AF_UNIX) as own:
            return struct.unpack("Q", own.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8))[0]


class EventIds(Channel):
    """Holds many eventfds; each has the lowest number that is free on the machine."""

    def __init__(self, files):
        super().__init__(files)
        self.held = []

    def send(self, bit):
        for each in self.held:
            os.close(each)
        self.held = [os.eventfd(0) for _ in range(MANY * bit)]

    def receive(self):
        own = os.eventfd(0)
        text = Path(f"/proc/self/fdinfo/{own}").read_text()
        os.close(own)
        return int(re.findall(r"eventfd-id: *(\d+)", text)[0])


def kinds():
    """Return all channels by their names, such as `InodeNumbers`."""
    found, left = {}, [Channel]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        if not inspect.isabstract(kind):
            found[kind.__name__] = kind
    return found


def main():
    link = socket.socket(socket.AF_UNIX)
    link.connect(sys.argv[1])
    used = {}
    with link.makefile("rw") as lines:
        for line in lines:
            act, name, *bit = line.split()
            reading = REFUSED
            with suppress(OSError, ValueError, IndexError):
                if name not in used:
                    used[name] = kinds()[name](sys.argv[2:])
                reading = used[name].receive() if act == "receive" else used[name].send(int(*bit))
            lines.write(f"{float(reading or 0)}\n")
            lines.flush()


if __name__ == "__main__":
    main()
