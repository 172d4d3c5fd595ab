"""Find the programs at the other ends of the connections that this process has accepted.

A library such as gRPC accepts connections itself and does not say who connects. But its sockets are open files of this
process. The kernel knows the process at the other end of a UNIX socket. For TCP it knows only the socket at the other
end; then /proc shows which process has this socket open.

`refuse_descriptors` also searches the open files of this process. It finds the socket on which gRPC or the gateway
listens, and sets an option of that socket.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from referee.sandbox.process_tree import PROCESS_TREES

_CREDENTIALS = struct.Struct("3i")
"""The process id, the user id and the group id of a peer."""
_SO_PASSRIGHTS = 83
"""The socket option that allows others to send file descriptors. It exists since Linux 6.16, and is on by default."""


class Connection:
    """A connection that this process has accepted.

    Args:
        link: a duplicate of the socket of the connection.
        program: see the attribute.
    """

    def __init__(self, link: socket.socket, program: int | None) -> None:
        self.program = program
        """The pid of the registered program whose process tree is at the other end.

        None if the process at the other end belongs to no registered program, or is gone.
        """
        self.peer = None if link.family == socket.AF_UNIX else _name_peer(link)
        """The IPv4 address and the TCP port at the other end; None for a UNIX socket, or if the other end is gone."""
        self._link = link

    def end(self) -> None:
        """End the connection in both directions. The owner of the socket then closes it."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)


@contextmanager
def open_connections(address: str | int, expected: int) -> Iterator[list[Connection]]:
    """Yield the connections that this process has accepted at an address. They can be used until the context ends.

    Args:
        address: the path of the UNIX socket, or the TCP port, on which this process listens.
        expected: the pid of the program for which this process runs the server. If the system does not say which program is
            at the other end of a connection, this function assumes the program `expected`.

    Raises OSError if no file descriptors are left, because a connection could be missed then.
    """
    links: list[socket.socket] = []
    try:
        for link in _duplicate_sockets(address):
            links.append(link)  # noqa: PERF402 - so that all are closed if the search fails
        programs = _find_programs(links, expected)
        yield [Connection(*each) for each in zip(links, programs, strict=True)]
    finally:
        for link in links:
            link.close()


def refuse_descriptors(address: str) -> None:
    """Prevent programs from sending file descriptors to this process through its listening UNIX socket at `address`.

    The kernel would close the descriptors in a thread of this process, and the program can choose how long that takes.
    Before Linux 6.16 and on other systems this function changes nothing, because the kernel has no such option.

    Raises OSError if no file descriptors are left.
    """
    for link in _duplicate_sockets(address, listening=True):
        with link, suppress(OSError):
            link.setsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)


def _duplicate_sockets(address: str | int, *, listening: bool = False) -> Iterator[socket.socket]:
    """Yield a duplicate of the socket of each connection that this process has accepted at an address.

    If `listening` is True, yield instead a duplicate of the socket that listens at the address.

    Several descriptors may belong to one socket, for instance while another call has duplicates. Then yield only one.
    """
    inodes = set()
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - numbers, not paths
        try:
            duplicate = os.dup(int(name))
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            continue  # closed in the meantime
        status = os.fstat(duplicate)
        if not stat.S_ISSOCK(status.st_mode) or status.st_ino in inodes:
            os.close(duplicate)
            continue
        inodes.add(status.st_ino)
        link = socket.socket(fileno=duplicate)
        if _is_at(link, address, listening=listening):
            yield link
        else:
            link.close()


def _is_at(link: socket.socket, address: str | int, *, listening: bool) -> bool:
    """Return whether a socket belongs to a connection accepted at an address; if `listening` is True, whether it listens there."""
    try:
        name = link.getsockname()
        own: object = name[1] if isinstance(name, tuple) and len(name) > 1 else name
        is_listening = link.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:
        return False
    return own == address and bool(is_listening) == listening


def _name_peer(link: socket.socket) -> tuple[str, int] | None:
    try:
        return _strip_ipv6(link.getpeername())
    except OSError:
        return None


def _strip_ipv6(name: tuple[str, int]) -> tuple[str, int]:
    """Return the IPv4 address and the port of a socket name, also for `::ffff:127.0.0.1`."""
    return name[0].rpartition(":")[2], name[1]


def _find_programs(links: Sequence[socket.socket], expected: int) -> list[int | None]:
    """Return the pid of the program at the other end of each connection; see `Connection.program`."""
    if sys.platform != "linux":
        return [expected] * len(links)
    if any(link.family != socket.AF_UNIX for link in links):
        return _find_tcp_programs(links, expected)
    options = (
        link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size) for link in links
    )
    return [PROCESS_TREES.find_program(_CREDENTIALS.unpack(option)[0]) for option in options]


def _find_tcp_programs(links: Sequence[socket.socket], expected: int) -> list[int | None]:
    inodes = _inodes_by_ends()
    files = [inodes.get((_name_peer(link), _strip_ipv6(link.getsockname()))) for link in links]
    # an item of `files` is None if the other end of the connection is closed
    found: dict[str | None, int | None] = {None: None}
    for pid in (expected, *PROCESS_TREES.list_pids(expected)):
        try:
            found |= dict.fromkeys(_open_files(pid), expected)
        except PermissionError:  # assume that the expected program has made all connections
            return [expected] * len(links)
    missing = {file for file in files if file not in found}
    for name in os.listdir("/proc") if missing else ():  # noqa: PTH208 - names, not paths
        if name.isdecimal():
            with suppress(PermissionError):
                for file in missing.intersection(_open_files(int(name))):
                    found[file] = PROCESS_TREES.find_program(int(name))
    return [found.get(file) for file in files]


_End = tuple[str, int]
"""An IPv4 address and a port."""


def _inodes_by_ends() -> dict[tuple[_End | None, _End], str]:
    """Return the names that open TCP sockets have in /proc/PID/fd. The key of a name is the socket's own end and its peer's end.

    Ports alone are not enough as a key, because two programs can use one port at different loopback addresses.
    """
    found: dict[tuple[_End | None, _End], str] = {}
    for table in ("tcp", "tcp6"):  # a socket for both versions of IP is in the second table
        with suppress(OSError), open(f"/proc/net/{table}", encoding="ascii") as lines:  # noqa: PTH123
            next(lines)  # the heading
            for fields in map(str.split, lines):
                own, peer = map(_parse_end, fields[1:3])
                if fields[9] != "0":
                    found[own, peer] = f"socket:[{fields[9]}]"
    return found


def _parse_end(text: str) -> _End:
    """Parse an end of a connection in /proc/net/tcp or tcp6, such as `0100007F:C383`.

    The last eight digits before the colon are the IPv4 address, also in tcp6.
    """
    address, _, port = text.rpartition(":")
    return socket.inet_ntoa(struct.pack("=I", int(address[-8:], 16))), int(port, 16)


def _open_files(pid: int) -> Iterator[str]:
    """Yield the path or name of each open file of a process, such as `socket:[123]`, from /proc.

    Raises PermissionError if the referee may not see the open files of that process.
    """
    folder = f"/proc/{pid}/fd"
    with suppress(FileNotFoundError, ProcessLookupError):
        for name in os.listdir(folder):  # noqa: PTH208 - numbers, not paths
            try:
                yield os.readlink(f"{folder}/{name}")  # noqa: PTH115 - the text, not a path
            except OSError as error:
                # closed in the meantime, or in a folder so deep that its path is too long
                if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
                    raise
