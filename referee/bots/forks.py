"""Forks of a process in which gRPC runs.

uvloop forks to start a program, and runs Python in the child until the program is there. Were garbage of gRPC
collected meanwhile, a server that nobody has any more, it would wait for a thread that is not in the child, for
ever, and the event loop for the child.
"""

from __future__ import annotations

import gc
import os


def spare_garbage() -> None:
    """See that no child of a fork, from now on, collects what was there before it."""
    collector = _Collector()
    os.register_at_fork(
        before=collector.stop,
        after_in_child=collector.go_on_without_what_is_there,
        after_in_parent=collector.go_on,
    )


class _Collector:
    """The garbage collector, which may have been stopped by somebody else."""

    def __init__(self) -> None:
        self._ran = True

    def stop(self) -> None:
        self._ran = gc.isenabled()
        gc.disable()

    def go_on(self) -> None:
        if self._ran:
            gc.enable()

    def go_on_without_what_is_there(self) -> None:
        gc.freeze()
        self.go_on()
