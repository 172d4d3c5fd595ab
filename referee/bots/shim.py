"""Runs between the referee and a bot: ties the bot's life to the referee's, then becomes the bot.

`python -I -S shim.py PARENT REPORT [OPTION…] -- PROGRAM ARGUMENT…`: PARENT is the pid of the referee's
process, REPORT a file descriptor that closes when the program runs and otherwise says why it does not:
the error's number and a text. The bot gets no other descriptor than its standard ones, and signals as
they are by default; it dumps no core.

--open-files NUMBER   it may have so many descriptors; else as many as the referee

Imports nothing of the project: its start is part of every bot's start.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1


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


main()
