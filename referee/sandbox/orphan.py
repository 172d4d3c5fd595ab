"""Starts a program as the referee does, and waits to be killed: `python -I -S orphan.py PROGRAM ARGUMENT…`.

PARENT and REPORT among the arguments are what the shim wants. Says `runs` when the program does.

Imports nothing of the project: it plays the part of a referee's process in a probe.
"""

import os
import sys
import time


def main() -> None:
    """Start it, and say so."""
    report, report_end = os.pipe()
    meaning = {"PARENT": str(os.getpid()), "REPORT": str(report_end)}
    words = [meaning.get(word, word) for word in sys.argv[1:]]
    if os.fork() == 0:
        os.set_inheritable(report_end, True)  # noqa: FBT003 - the function takes no keywords
        os.setsid()
        os.execv(words[0], words)  # noqa: S606 - what the referee's own code has put together
    os.close(report_end)
    os.read(report, 100)
    print("runs", flush=True)
    time.sleep(1000)


if __name__ == "__main__":
    main()
