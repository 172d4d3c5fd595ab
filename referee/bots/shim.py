"""Runs between the referee and a bot: ties the bot's life to the referee's, then becomes the bot.

`python -I -S shim.py PARENT REPORT OPEN_FILES PROGRAM ARGUMENT…`: PARENT is the pid of the referee's
process, REPORT a file descriptor that closes when the program runs and otherwise says why it does not:
the error's number and a text, OPEN_FILES how many descriptors it may have; 0: as many as the referee.
The bot gets no other descriptor than its standard ones, and signals as they
are by default; it dumps no core.

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
    parent, report, open_files = map(int, sys.argv[1:4])
    command = sys.argv[4:]
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
    if open_files:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        allowed = open_files if most == resource.RLIM_INFINITY else min(open_files, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))
    try:
        os.execvp(command[0], command)  # noqa: S606 - the bot's own command, without a shell
    except OSError as error:
        reason = f"{error.errno} {command[0]}: {error.strerror}"
        os.write(report, reason.encode(errors="replace"))
        os._exit(127)


main()
