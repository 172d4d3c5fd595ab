"""The command line: parse what people type, call the other packages, print the results.

Exit codes:
    0    success
    1    a check of stored games or of a bot failed, a bot had a fault in `bots debug`, `tournament compare` found no verdict,
         a tournament in a list cannot be read, or the command cannot go on
    2    bad input; the command has played no game, except in rare cases: for example, another referee took over the league
    130  interrupted; a tournament can be resumed
"""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from referee import configure_process


def main() -> None:
    """Run the command line and exit."""
    # Until the command begins, an interrupt ends the process at once, because there is nothing to clean up. If the
    # handler raised an exception instead, it could get lost while modules are imported.
    handle_interrupts(_exit_at_once)
    _open_closed_streams()
    configure_process()
    # Imported here, because a worker process imports this module too but needs none of the commands.
    from referee.cli.app import run  # noqa: PLC0415

    run()


def _open_closed_streams() -> None:
    """Connect closed standard streams to the null device. For example, `>&-` in a shell closes standard output.

    Otherwise, the next file that is opened gets the descriptor of the closed stream. Then everything that other code
    writes to this descriptor goes into that file.
    """
    # The order matters: `open` takes the lowest free descriptor, and those of the streams are 0, 1 and 2.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115 - stays open
            # worker processes must inherit the stream, as they inherit open standard streams
            os.set_inheritable(stream.fileno(), True)  # noqa: FBT003 - it takes no keyword
            setattr(sys, name, stream)


def handle_interrupts(handler: signal.Handlers | Callable[[int, FrameType | None], object]) -> None:
    """Set the handler of the signals that interrupt the referee: SIGINT, SIGTERM and SIGHUP.

    A shell script starts its background commands with SIGINT ignored. The handler is set nevertheless. `nohup` starts a
    command with SIGHUP ignored. Then SIGHUP stays ignored.
    """
    for number in interrupt_signals():
        signal.signal(number, handler)


def interrupt_signals() -> list[signal.Signals]:
    """Return the signals that interrupt the referee; without SIGHUP if it is ignored, as under `nohup`."""
    has_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if has_nohup else [signal.SIGHUP])]


def _exit_at_once(_number: int, _frame: FrameType | None) -> None:
    os._exit(130)
