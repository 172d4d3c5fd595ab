"""Start programs without isolation for tests, and find what they have started."""

import os
from contextlib import suppress

import psutil

ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "REFEREE_TOKEN": "a token"}
_others: list[psutil.Process] = []
"""Descendants of this process that earlier tests have left."""


def ignore_earlier_tests():
    """Collect the orphans that earlier tests have left, and leave the remaining ones out of `descendants`.

    This process adopts the orphans of programs that it kills, and nobody waits for them.
    """
    psutil.wait_procs(psutil.Process().children(), timeout=0)
    _others[:] = psutil.Process().children(recursive=True)


def descendants():
    """Return the processes below this one that the current test has started."""
    return [each for each in psutil.Process().children(recursive=True) if each not in _others]


def kill_descendants():
    """Kill what a failed test has left, because the event loop waits for its outputs."""
    for each in descendants():
        with suppress(psutil.Error):
            each.kill()


async def read_all(program):
    """Return all of standard output, and kill the program's tree."""
    text = await program.process.stdout.read()
    await program.kill()
    return text.decode()


async def first_line(program):
    return (await program.process.stdout.readline()).decode().strip()
