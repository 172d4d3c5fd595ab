"""List the shared memory, semaphores and message queues of System V, and remove those of a user.

`python -I -S system_v.py UID` removes everything that user UID has created. It becomes this user first, because
otherwise only a process with CAP_SYS_ADMIN may remove the objects. In a container, even root may lack this capability.

The module imports nothing of the project, because Python does not find the project with the options `-I -S`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

REMOVER = [sys.executable, "-I", "-S", __file__]
"""The command that removes the objects of a user. Its argument is the user id."""
_IPC_RMID = 0
_LIBC = ctypes.CDLL(None)
_IPC_NUMBER = {"shm": "shmid", "sem": "semid", "msg": "msqid"}
"""The column with the number of the object, for each table of /proc/sysvipc."""
REMOVE_IPC: dict[str, Callable[[int], int]] = {
    "shm": lambda number: _LIBC.shmctl(number, _IPC_RMID, None),
    "sem": lambda number: _LIBC.semctl(number, 0, _IPC_RMID),
    "msg": lambda number: _LIBC.msgctl(number, _IPC_RMID, None),
}
"""The function that removes an object of each table."""


def read_ipc_table(kind: str) -> list[dict[str, int]]:
    """Return a table of /proc/sysvipc; [] if the kernel has no such table.

    Args:
        kind: shm, sem or msg.
    """
    try:
        names, *rows = Path("/proc/sysvipc", kind).read_text().splitlines()
    except OSError:
        return []
    return [dict(zip(names.split(), map(int, row.split()), strict=True)) for row in rows]


def list_objects(uid: int) -> list[tuple[str, int]]:
    """Return the table and the number of each object that a user has created."""
    return [
        (kind, row[number])
        for kind, number in _IPC_NUMBER.items()
        for row in read_ipc_table(kind)
        if row["cuid"] == uid
    ]


def main() -> None:
    """Remove all objects of the user that the command line names."""
    uid = int(sys.argv[1])
    os.setgroups([])
    os.setresuid(uid + 1, uid, uid + 1)  # see `sweeper.kill_user`
    for kind, number in list_objects(uid):
        REMOVE_IPC[kind](number)


if __name__ == "__main__":
    main()
