"""Runs between the referee and a bot: ties the bot's life to the referee's, then becomes the bot.

`python -I -S shim.py PARENT REPORT [OPTION…] -- PROGRAM ARGUMENT…`: PARENT is the pid of the referee's
process, REPORT a file descriptor that closes when the program runs and otherwise says why it does not: the
error's number (0 where it is not the program's) and a text. The bot gets no other descriptor than its
standard ones, and signals as they are by default; it dumps no core.

The options are followed in the order in which they come:

--join FILE           write the own pid there: the `cgroup.procs` of a cgroup
--stage FOLDER        be alone with one's mounts, and have an empty one here
--bind SOURCE TARGET  make SOURCE appear at TARGET, which is in the stage
--uid NUMBER          become this user, of the group of the same number and of no other
--open-files NUMBER   have no more descriptors than so many, nor has what it starts
--no-new-privileges   have no program give more rights
--sandbox HEX         the program is a sandbox: it gets the report as descriptor 3, and at descriptor 4 a
                      pipe with these bytes

Imports nothing of the project: its start is part of every bot's start.
"""

import ctypes
import fcntl
import os
import resource
import signal
import struct
import sys
import warnings  # noqa: F401 - execvp wants it, when another user may not get at it any more

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CLONE_NEWNS = 0x20000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 12, 1 << 14, 1 << 18
_REPORT, _PIPE = 3, 4
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of the system call, for which the C library has no function."""
_SLICE_NS = 100_000


def run_in_short_slices() -> None:
    """Have the kernel run this process often and briefly: it waits less where others want the core too.

    An ordinary process from now on, as nice as it was. Asks for no right; a kernel before Linux 6.12,
    or of another machine than those above, leaves the slice as it is.
    """
    if sys.platform != "linux":
        return
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    number = _SCHED_SETATTR.get(os.uname().machine)
    if number is not None:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        size, flags = 48, 0
        attributes = struct.pack("=IIQiIQQQ", size, os.SCHED_OTHER, flags, nice, 0, _SLICE_NS, 0, 0)
        _LIBC.syscall(number, 0, attributes, 0)


def main() -> None:
    """Become the bot, or report why not."""
    parent, report = int(sys.argv[1]), int(sys.argv[2])
    end = sys.argv.index("--")
    options, command = sys.argv[3:end], sys.argv[end + 1 :]
    os.closerange(3, report)
    os.closerange(report + 1, os.sysconf("SC_OPEN_MAX"))
    os.set_inheritable(report, False)  # noqa: FBT003 - the function takes no keywords
    run_in_short_slices()  # first of all: no cgroup takes a real-time process
    if "--sandbox" in options:
        report = _hand_over(report, bytes.fromhex(options[options.index("--sandbox") + 1]))
    try:
        _follow(options)
    except OSError as error:
        _give_up(report, f"0 {error.filename or ' '.join(options)}: {error.strerror}")
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # a new uid forgets it: not before
    if os.getppid() != parent:  # it died before it could be watched
        os._exit(1)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):  # by Python, by a worker
        signal.signal(ignored, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        os.execvp(command[0], command)  # noqa: S606 - the bot's own command, without a shell
    except OSError as error:
        _give_up(report, f"{error.errno} {command[0]}: {error.strerror}")


def _follow(options: list[str]) -> None:
    words = iter(options)
    for option in words:
        if option == "--join":
            _join(next(words))
        elif option == "--stage":
            _stage(next(words))
        elif option == "--bind":
            _bind(next(words), next(words))
        elif option == "--uid":
            _become(int(next(words)))
        elif option == "--no-new-privileges":
            _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        elif option == "--open-files":
            _limit_open_files(int(next(words)))
        elif option == "--sandbox":
            next(words)
        else:
            raise ValueError(option)


def _limit_open_files(number: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY:
        number = min(number, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))


def _join(file: str) -> None:
    with open(file, "w") as procs:  # noqa: PTH123 - pathlib takes longer to import than all of this
        procs.write(str(os.getpid()))


def _stage(folder: str) -> None:
    _check(_LIBC.unshare(_CLONE_NEWNS), "unshare")
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755")


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):  # noqa: PTH112 - as above
        os.mkdir(target)  # noqa: PTH102
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    _mount(source, target, None, _MS_BIND | _MS_REC)


def _become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _hand_over(report: int, data: bytes) -> int:
    """Put the report and a pipe where a sandbox expects them; the report's new descriptor."""
    reading, writing = os.pipe()
    os.write(writing, data)  # less than a pipe holds
    os.close(writing)
    high = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _PIPE + 1) for each in (report, reading)]
    for each in {report, reading} - {_REPORT, _PIPE}:
        os.close(each)
    os.dup2(high[0], _REPORT)
    os.dup2(high[1], _PIPE)
    return _REPORT


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    _check(_LIBC.mount(*words[:3], flags, words[3]), target)


def _prctl(option: int, value: int) -> None:
    _check(_LIBC.prctl(option, value, 0, 0, 0), "prctl")


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def _give_up(report: int, reason: str) -> None:
    os.write(report, reason.encode(errors="replace"))
    os._exit(127)


_LIBC = ctypes.CDLL(None, use_errno=True)

if __name__ == "__main__":
    main()
