"""The command line: parse what people type, call the other packages, print the results.

Exit codes:
    0    success
    1    something is wrong: a stored game is not correct, a bot failed its check, or a run cannot go on
    2    bad input; no game was played
    130  interrupted; the run can be resumed
"""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from referee import configure_process


def main() -> None:
    """Run the command line and exit."""
    # Before the command begins, there is nothing to clean up. And while modules are imported, an exception from a
    # signal handler could get lost.
    handle_interrupts(_exit_at_once)
    _open_closed_streams()
    configure_process()
    # Imported here, because a worker process imports this module too but needs none of the commands.
    from referee.cli.app import run  # noqa: PLC0415

    run()


def _open_closed_streams() -> None:
    """Connect each standard stream that is closed, as after `>&-` in a shell, with the null device.

    Otherwise, the next file that is opened gets the descriptor of the stream, and with it what other code prints there.
    """
    # The order matters: `open` takes the lowest free descriptor, and those of the streams are 0, 1 and 2.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115 - stays open
            # inheritable for worker processes, as standard streams are
            os.set_inheritable(stream.fileno(), True)  # noqa: FBT003 - it takes no keyword
            setattr(sys, name, stream)


def handle_interrupts(handler: signal.Handlers | Callable[[int, FrameType | None], object]) -> None:
    """Set the handler of the signals that interrupt the referee: SIGINT, SIGTERM and SIGHUP.

    A shell script starts its background commands with SIGINT ignored; the referee handles it all the same. `nohup` starts a
    command with SIGHUP ignored; then the referee ignores it too.
    """
    for number in interrupt_signals():
        signal.signal(number, handler)


def interrupt_signals() -> list[signal.Signals]:
    """Return the signals that interrupt the referee; without SIGHUP if it is ignored, as under `nohup`."""
    has_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if has_nohup else [signal.SIGHUP])]


def _exit_at_once(_number: int, _frame: FrameType | None) -> None:
    os._exit(130)
