"""A user id for each bot process, so that no two have the same at the same time. Only for root.

An id is taken by a lock that the kernel frees with its holder, so that neither another referee on this
machine has the same one nor anything is left of it.
"""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from referee.errors import VoidGame

_RANGES = (range(66_000, 67_000), range(61_184, 62_184))
"""Ids that distributions leave unused, and those that systemd gives to services for a while."""


class Slot:
    """An id that nobody else has until it is freed."""

    def __init__(self, uid: int, lock: socket.socket) -> None:
        self.uid = uid
        self._lock = lock

    def free(self) -> None:
        """Let others have it: when nothing runs with it any more."""
        self._lock.close()


def take() -> Slot | None:
    """A free id; None where the referee is not root and must share its own.

    Raises VoidGame when all are taken.
    """
    if os.geteuid() != 0:
        return None
    for uid in _mapped():
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0referee-uid-{uid}")
        except OSError as error:
            lock.close()
            if error.errno != errno.EADDRINUSE:
                raise VoidGame(f"no user id for a bot: {error}") from error
        else:
            return Slot(uid, lock)
    raise VoidGame("no user id for a bot is left")


def _mapped() -> range:
    """Those ids that there are here: a container may have few."""
    spans = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    for ids in _RANGES:
        for first, _, count in spans:
            if int(first) <= ids.start and ids.stop <= int(first) + int(count):
                return ids
    return range(0)
