"""Runs between the referee and a bot: ties the bot's life to the referee's, then becomes the bot.

`python -I -S shim.py PARENT REPORT [OPTION…] -- PROGRAM ARGUMENT…`: PARENT is the pid of the referee's
process, REPORT a file descriptor that closes when the program runs and otherwise says why it does not:
the error's number and a text. The bot gets no other descriptor than its standard ones, and signals as
they are by default; it dumps no core, and is an ordinary process even where the referee is a real-time one.

--open-files NUMBER   it may have so many descriptors; else as many as the referee

Imports nothing of the project: its start is part of every bot's start.
"""

import ctypes
import os
import resource
import signal
import struct
import sys

_PR_SET_PDEATHSIG = 1
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
        ctypes.CDLL(None).syscall(number, 0, attributes, 0)


def main() -> None:
    """Become the bot, or report why not."""
    parent, report = int(sys.argv[1]), int(sys.argv[2])
    end = sys.argv.index("--")
    options, command = sys.argv[3:end], sys.argv[end + 1 :]
    os.closerange(3, report)
    os.closerange(report + 1, os.sysconf("SC_OPEN_MAX"))
    os.set_inheritable(report, False)  # noqa: FBT003 - the function takes no keywords
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before it could be watched
        os._exit(1)
    run_in_short_slices()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):  # by Python, by a worker
        signal.signal(ignored, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "--open-files" in options:
        _limit_open_files(int(options[options.index("--open-files") + 1]))
    try:
        os.execvp(command[0], command)  # noqa: S606 - the bot's own command, without a shell
    except OSError as error:
        reason = f"{error.errno} {command[0]}: {error.strerror}"
        os.write(report, reason.encode(errors="replace"))
        os._exit(127)


def _limit_open_files(number: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY:
        number = min(number, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))


if __name__ == "__main__":
    main()
