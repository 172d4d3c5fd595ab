"""Write programs for tests, read their signals, and measure the memory that the referee takes to look at them."""

import signal
import textwrap
import tracemalloc
from contextlib import contextmanager

LONG_TEXTS = ["x" * 120_000] * 12
"""Arguments or variables of more than a megabyte. Linux allows 128 KiB for each of them."""
LONG_NAME = "a (long) \x1b name"
"""The name of the process that `long_program` starts."""


def tool(path, text="#!/bin/sh\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def long_program(path):
    """Write a program that starts a child process with `LONG_NAME` and `LONG_TEXTS`, and return its text."""
    path.write_text(
        textwrap.dedent(f"""
            import ctypes, time
            ctypes.CDLL(None).prctl(15, {LONG_NAME.encode()!r})
            print("up", flush=True)
            time.sleep(1000)
        """)
    )
    return f"""
        import os, sys
        if os.fork() == 0:
            texts = [{LONG_TEXTS[0]!r}] * {len(LONG_TEXTS)}
            os.execv(sys.executable, [sys.executable, "-I", "-S", {str(path)!r}, *texts])
        os.wait()
    """


def signals(mask):
    """Return the signals of a line of `/proc/PID/status`, without the two that the C library uses itself.

    The C library leaves these two ignored in what `posix_spawn` starts. Python 3.13 starts the processes of
    pytest-xdist that way.
    """
    return {each for each in signal.valid_signals() if int(mask, 16) >> each - 1 & 1}


@contextmanager
def little_memory():
    """Fail if the block takes half of the memory of `LONG_TEXTS`."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    limit = sum(map(len, LONG_TEXTS)) // 2
    assert peak < limit, f"{peak} bytes, not less than {limit}"
