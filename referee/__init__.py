"""A referee for external bots that play the card game LINKO!/Abluxxen.

This package imports nothing of its own here: a bot that imports `referee.sdk` does not load the referee.
"""

from __future__ import annotations

import gc
import os

__version__ = "0.2.0"


def configure_process() -> None:
    """Prepare this process for gRPC and numpy, and for starting programs.

    The driver and every worker process call this first. gRPC and numpy read their variables when they are
    imported, so the call has no effect if they are loaded already; worker processes inherit the driver's variables.
    """
    # gRPC's fork handlers break the start of programs while its threads run. A user cannot turn them on.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    # gRPC would print parts of a bot's HTTP/2 frames to the terminal.
    os.environ["GRPC_VERBOSITY"] = "NONE"
    # The newer server hands each message to a thread pool, which costs a quarter of a stream's CPU
    # (tests/bench/README.md). The older one reads a socket in the thread that waits for it.
    os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_listener")
    # The matrices of the ratings are small: more threads would cost each command 0.07 s of CPU and save nothing.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # uvloop runs Python in the forked child until the program starts. If the child collected a gRPC server as
    # garbage, it would wait forever for a thread that only the parent has, and the parent's loop for the child.
    os.register_at_fork(
        before=gc.disable, after_in_child=_exempt_inherited_objects, after_in_parent=gc.enable
    )


def _exempt_inherited_objects() -> None:
    """Keep the garbage collector of a forked child away from objects created before the fork."""
    gc.freeze()
    gc.enable()
