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
    os.register_at_fork(before=gc.disable, after_in_child=_go_on, after_in_parent=gc.enable)


def _go_on() -> None:
    gc.freeze()
    gc.enable()
