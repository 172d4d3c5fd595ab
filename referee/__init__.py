"""A referee for external bots that play the card game LINKO!/Abluxxen.

This module imports no other module of the referee, because Python also loads it in every bot that imports
`referee.sdk`.
"""

from __future__ import annotations

import gc
import os

__version__ = "0.2.0"


def configure_process() -> None:
    """Prepare this process for gRPC, numpy and the start of programs, and make garbage collections rarer.

    The driver and every worker process call this function first, because gRPC and numpy read their environment
    variables when they are imported.
    """
    # While gRPC's threads run, gRPC's fork handlers break the start of a program. So the referee turns the
    # handlers off, even if the user has turned them on.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    # Without this variable, gRPC would print parts of a bot's HTTP/2 frames to the terminal.
    os.environ["GRPC_VERBOSITY"] = "NONE"
    # This value selects gRPC's older server. The thread pool of gRPC's newer server costs a quarter of the CPU
    # time of a stream (tests/bench/README.md).
    os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_listener")
    # The matrices of the ratings are small. More than one numpy thread would cost each command 0.07 s of CPU time
    # and save nothing.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The garbage collector finds nearly nothing to free in a game, so it can run rarely. In a worker that plays 64 games
    # at once, it takes 9 % of the CPU time with Python's default thresholds, and 4 % with these.
    gc.set_threshold(5_000, 50, 100)
    # To start a program, uvloop forks the process and runs Python in the child until the program starts. If the
    # garbage collector freed a gRPC server in the child, the child would wait forever for a thread that exists only
    # in the parent. The event loop of the parent waits for the child, so the parent would hang too.
    os.register_at_fork(
        before=gc.disable, after_in_child=_exempt_inherited_objects, after_in_parent=gc.enable
    )


def _exempt_inherited_objects() -> None:
    """Turn the garbage collector on in a forked child, but exempt all objects that were created before the fork."""
    gc.freeze()
    gc.enable()
