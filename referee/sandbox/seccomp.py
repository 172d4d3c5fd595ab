"""Build the filter that refuses dangerous system calls.

The filter is a deny list, because nobody can list all calls that the runtimes of all languages need. The deny list
contains calls that reach into other processes, make namespaces or mounts, change the whole machine (for example its
clock), use keys of the kernel, or help an attack on the kernel more than they help bots. The filter is a program in
classic BPF that reads a `struct seccomp_data`; see seccomp(2).

The filter of a program that plays also refuses file locks, leases, and notifications about files. With them, two
sandboxes could pass messages to each other, because some files are the same in all sandboxes. For example, the kernel
has only one inode for all eventfd and epoll descriptors of the machine.

The referee reads from UNIX sockets: those of gRPC and of the gateway. A program can send file descriptors through
these sockets, and the kernel closes the descriptors in the referee. With the socket option SO_LINGER or the calls splice
and sendfile, a program could make this closing take as long as it likes. (The two calls hold the lock of a pipe while
they wait.) So the filter refuses the option and both calls. A program can also send a descriptor of a large memory file,
and no filter can prevent that. The kernel then frees this file in the referee, which takes some time (see "Sent memory
files" in README.md). From Linux 6.16 on, the referee makes these UNIX sockets refuse all descriptors; see
`refuse_descriptors` in `connections.py`.

On the rung `uid`, programs have a smaller filter, which refuses only the calls for keys of the kernel.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

_NR, _ARCH, _ARGUMENTS = 0, 4, 16
"""Offsets of the call number, the architecture and the arguments in struct seccomp_data."""
_LOAD, _AND, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_SET, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
"""The codes of the BPF instructions."""
_ALLOW, _ERRNO, _NOTIFY, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x7FC00000, 0x80000000
"""What the filter returns to the kernel; an error number is added to `_ERRNO`, and `_NOTIFY` passes the call on
to another process, which answers it."""
_NOTHING_DONE = 0
"""With this error number, the kernel does not carry out the call, but the call returns 0 as after success."""
_NEW_NAMESPACES = 0x7E020080
"""The flags CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_STREAM, _SOCK_DGRAM = 1, 2
_SOCKET_TYPE = 0xF
"""The bits of the second argument of `socket` that are the type. The others are flags."""
_INTERNET_PROTOCOLS = (0, 6, 17)
"""The protocols that programs need for internet sockets: 0 (the default of the socket's type), TCP and UDP."""
_SOL_SOCKET, _SO_LINGER = 1, 13
_PR_SET_MM = 35
"""The option of `prctl` that changes where the kernel finds the arguments and the environment of a process. With it, a
program could make them very large; see `read_proc_file` in `process_tree.py`."""
_PR_SCHED_CORE = 62
"""The option of `prctl` for core scheduling: the program shares no core with other programs. With it, while a bot runs on
one hardware thread of a core, the kernel keeps the other one idle. A bot of another game may need that one."""
_PRIO_USER = 2
"""The argument of `setpriority` for all processes of a user."""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""The requests TIOCSTI and TIOCLINUX, which put keystrokes into a terminal."""
_LOCK_COMMANDS = (6, 7, 37, 38, 1024, 1026, 1036, 1038, 1040)
"""The commands of `fcntl` by which two sandboxes could pass messages through a common file: F_SETLK, F_SETLKW,
F_OFD_SETLK, F_OFD_SETLKW, F_SETLEASE, F_NOTIFY, F_SET_RW_HINT, F_SET_FILE_RW_HINT and F_SETDELEG. The other commands
that set locks exist only for 32-bit programs, and the filter kills such a program at its first call."""
_X32 = 0x40000000
"""The calls of the x32 ABI have this number or a higher one."""
_KEY_CALLS = ("add_key", "keyctl", "request_key")
"""The calls that work with keys of the kernel."""

_COMMON = {
    "fsconfig": 431,
    "fsmount": 432,
    "fsopen": 430,
    "fspick": 433,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "io_uring_setup": 425,
    "mount_setattr": 442,
    "move_mount": 429,
    "open_tree": 428,
    "open_tree_attr": 467,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "quotactl_fd": 443,
}
"""Calls with the same number on every architecture."""
_X86_64 = {
    "acct": 163,
    "add_key": 248,
    "adjtimex": 159,
    "bpf": 321,
    "chroot": 161,
    "clock_adjtime": 305,
    "clock_settime": 227,
    "delete_module": 176,
    "fanotify_init": 300,
    "finit_module": 313,
    "init_module": 175,
    "ioperm": 173,
    "io_setup": 206,
    "iopl": 172,
    "kcmp": 312,
    "kexec_file_load": 320,
    "kexec_load": 246,
    "keyctl": 250,
    "mount": 165,
    "move_pages": 279,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "perf_event_open": 298,
    "pivot_root": 155,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "ptrace": 101,
    "quotactl": 179,
    "reboot": 169,
    "request_key": 249,
    "setns": 308,
    "settimeofday": 164,
    "swapoff": 168,
    "swapon": 167,
    "syslog": 103,
    "umount2": 166,
    "unshare": 272,
    "userfaultfd": 323,
    "vhangup": 153,
}
_AARCH64 = {
    "acct": 89,
    "add_key": 217,
    "adjtimex": 171,
    "bpf": 280,
    "chroot": 51,
    "clock_adjtime": 266,
    "clock_settime": 112,
    "delete_module": 106,
    "fanotify_init": 262,
    "finit_module": 273,
    "init_module": 105,
    "io_setup": 0,
    "kcmp": 272,
    "kexec_file_load": 294,
    "kexec_load": 104,
    "keyctl": 219,
    "mount": 40,
    "move_pages": 239,
    "name_to_handle_at": 264,
    "open_by_handle_at": 265,
    "perf_event_open": 241,
    "pivot_root": 41,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "ptrace": 117,
    "quotactl": 60,
    "reboot": 142,
    "request_key": 218,
    "setns": 268,
    "settimeofday": 170,
    "swapoff": 225,
    "swapon": 224,
    "syslog": 116,
    "umount2": 39,
    "unshare": 97,
    "userfaultfd": 282,
    "vhangup": 58,
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """The numbers that the filter needs for one kind of machine."""

    audit: int
    """The AUDIT_ARCH constant."""
    refused: Mapping[str, int]
    """The calls that are always refused, whatever their arguments are: numbers by name."""
    audit_32: int
    """The AUDIT_ARCH constant of 32-bit programs."""
    keys_32: tuple[int, ...]
    """The numbers of `_KEY_CALLS` in 32-bit programs."""
    locks: Mapping[str, int]
    """The calls that are refused together with the locks of `fcntl`: numbers by name."""
    copies: Mapping[str, int]
    """The calls that copy between descriptors and can hold the lock of a pipe: numbers by name."""
    scheduling: Mapping[str, int]
    """The calls that change how the kernel schedules a process; their first argument is its pid: numbers by name."""
    set_cores: int
    """The call sched_setaffinity, with which a program chooses its cores."""
    prlimit: int
    setpriority: int
    fcntl: int
    clone: int
    socket: int
    socketpair: int
    setsockopt: int
    ioctl: int
    prctl: int
    sysinfo: int
    clone3: int = 435


ARCHITECTURES = {
    "x86_64": Architecture(
        0xC000003E,
        refused=_X86_64 | _COMMON,
        audit_32=0x40000003,
        keys_32=(286, 288, 287),
        locks={"flock": 73, "inotify_init": 253, "inotify_init1": 294},
        copies={"sendfile": 40, "splice": 275},
        scheduling={"sched_setattr": 314, "sched_setparam": 142, "sched_setscheduler": 144},
        set_cores=203,
        prlimit=302,
        setpriority=141,
        fcntl=72,
        clone=56,
        socket=41,
        socketpair=53,
        setsockopt=54,
        ioctl=16,
        prctl=157,
        sysinfo=99,
    ),
    "aarch64": Architecture(
        0xC00000B7,
        refused=_AARCH64 | _COMMON,
        audit_32=0x40000028,
        keys_32=(309, 311, 310),
        locks={"flock": 32, "inotify_init1": 26},
        copies={"sendfile": 71, "splice": 76},
        scheduling={"sched_setattr": 274, "sched_setparam": 118, "sched_setscheduler": 119},
        set_cores=122,
        prlimit=261,
        setpriority=140,
        fcntl=25,
        clone=220,
        socket=198,
        socketpair=199,
        setsockopt=208,
        ioctl=29,
        prctl=167,
        sysinfo=179,
    ),
}
"""The machines for which `build_filter` has a filter, by the name that `platform.machine` returns."""


@cache
def build_filter(machine: str, *, allow_locks: bool) -> bytes | None:
    """Return the filter for a machine, in the format of bubblewrap's option --seccomp.

    Return None for a machine that is not in `ARCHITECTURES`. On such a machine, programs run without a filter.

    Args:
        machine: the name that `platform.machine` returns.
        allow_locks: whether the program may use file locks, leases, and notifications about files.
    """
    known = ARCHITECTURES.get(machine)
    if known is None:
        return None
    # with ENOSYS, the kernel seems to have no locks; package managers and runtimes then go on without locks
    locks = [_if_equal(number, _refuse(errno.ENOSYS)) for number in sorted(known.locks.values())]
    locks.append(_if_equal(known.fcntl, _refuse_values(1, _LOCK_COMMANDS, errno.ENOSYS)))
    return b"".join(
        (
            _op(_LOAD, _ARCH),
            _op(_JUMP_EQUAL, known.audit, 1, 0),
            _op(_RETURN, _KILL_PROCESS),
            _op(_LOAD, _NR),
            _op(_JUMP_ABOVE, _X32, 0, 1),
            _refuse(errno.ENOSYS),
            # the flags of clone3 are in memory, which no filter can read; after ENOSYS, the C library uses clone instead
            _if_equal(known.clone3, _refuse(errno.ENOSYS)),
            *(_if_equal(number, _refuse(errno.EPERM)) for number in sorted(known.refused.values())),
            # the kernel itself returns EINVAL for descriptors that do not support these calls, so most programs use read
            # and write after this error
            *(_if_equal(number, _refuse(errno.EINVAL)) for number in sorted(known.copies.values())),
            # .NET does not start if this call fails, so the call returns success, but the cores do not change
            _if_equal(known.set_cores, _refuse(_NOTHING_DONE)),
            *([] if allow_locks else locks),
            _if_equal(known.clone, _filter_clone()),
            _if_equal(known.socket, _filter_socket()),
            _if_equal(known.socketpair, _filter_socketpair()),
            _if_equal(known.setsockopt, _filter_setsockopt()),
            _if_equal(known.ioctl, _refuse_values(1, _TERMINAL_INPUT, errno.EPERM)),
            _if_equal(known.prctl, _refuse_values(0, (_PR_SET_MM, _PR_SCHED_CORE), errno.EPERM)),
            # `init.py` is process 1 of the sandbox, and has the same user id as the program. Without these rules, the program
            # could slow `init.py` down, or make it end before it reports that the program has started.
            *(
                _if_equal(number, _refuse_values(0, (1,), errno.EPERM))
                for number in sorted(known.scheduling.values())
            ),
            _if_equal(known.setpriority, _filter_setpriority()),
            _if_equal(known.prlimit, _filter_prlimit()),
            _op(_RETURN, _ALLOW),
        )
    )


def build_sysinfo_filters(machine: str) -> tuple[bytes, bytes] | None:
    """Return two filters for the call sysinfo: one that passes it on to another process, and one that refuses it.

    Return None for a machine that is not in `ARCHITECTURES`. On such a machine, the kernel answers the call.
    """
    known = ARCHITECTURES.get(machine)
    if known is None:
        return None

    def build(action: bytes) -> bytes:
        return _op(_LOAD, _NR) + _if_equal(known.sysinfo, action) + _op(_RETURN, _ALLOW)

    return build(_op(_RETURN, _NOTIFY)), build(_refuse(errno.ENOSYS))


def build_key_filter(machine: str) -> bytes | None:
    """Return a filter that refuses only the calls for keys of the kernel.

    Keys outlive the program, and other programs with the same user id can read them. The filter works for 32-bit
    programs too. Return None for a machine that is not in `ARCHITECTURES`.
    """
    known = ARCHITECTURES.get(machine)
    if known is None:
        return None

    def refuse(numbers: Iterable[int]) -> bytes:
        refused = (_if_equal(number, _refuse(errno.EPERM)) for number in numbers)
        return b"".join((_op(_LOAD, _NR), _op(_AND, _X32 - 1), *refused, _op(_RETURN, _ALLOW)))

    return b"".join(
        (
            _op(_LOAD, _ARCH),
            _if_equal(known.audit, refuse(known.refused[name] for name in _KEY_CALLS)),
            _if_equal(known.audit_32, refuse(known.keys_32)),
            _op(_RETURN, _ALLOW),
        )
    )


def _filter_clone() -> bytes:
    """Return instructions that refuse `clone` if its flags ask for a new namespace."""
    return b"".join(
        (
            _load_argument(0),
            _op(_JUMP_SET, _NEW_NAMESPACES, 0, 1),
            _refuse(errno.EPERM),
            _op(_RETURN, _ALLOW),
        )
    )


def _filter_socket() -> bytes:
    """Return instructions that allow `socket` only for UNIX, TCP, UDP and NETLINK_ROUTE sockets.

    The C library looks up addresses with NETLINK_ROUTE, the netlink protocol with the number 0. If the protocol of an
    internet socket is 0, its type decides the protocol. Only streams and datagrams are allowed, because other types could
    be SCTP or DCCP.
    """
    allowed = _op(_RETURN, _ALLOW)
    by_protocol = b"".join(
        (
            _load_argument(2),
            *(_if_equal(protocol, allowed) for protocol in _INTERNET_PROTOCOLS),
            _refuse(errno.EPROTONOSUPPORT),
        )
    )
    internet = b"".join(
        (
            _load_argument(1),
            _op(_AND, _SOCKET_TYPE),
            *(_if_equal(kind, by_protocol) for kind in (_SOCK_STREAM, _SOCK_DGRAM)),
            _refuse(errno.ESOCKTNOSUPPORT),
        )
    )
    return b"".join(
        (
            _load_argument(0),
            _if_equal(_AF_UNIX, allowed),
            *(_if_equal(family, internet) for family in (_AF_INET, _AF_INET6)),
            _if_equal(_AF_NETLINK, _load_argument(2) + _if_equal(0, allowed)),
            _refuse(errno.EAFNOSUPPORT),
        )
    )


def _filter_socketpair() -> bytes:
    """Return instructions that allow `socketpair` only for UNIX sockets.

    For another family, the kernel would load the module of the family and run its code, even if the family has no pairs.
    """
    allowed = _if_equal(_AF_UNIX, _op(_RETURN, _ALLOW))
    return b"".join((_load_argument(0), allowed, _refuse(errno.EAFNOSUPPORT)))


def _filter_setsockopt() -> bytes:
    """Return instructions that refuse `setsockopt` with SO_LINGER, as a kernel without this option would.

    .NET sets this option before it aborts a connection. It accepts the error number ENOPROTOOPT. After any other error
    number, it leaves the socket open.
    """
    refused = _load_argument(2) + _if_equal(_SO_LINGER, _refuse(errno.ENOPROTOOPT))
    return b"".join((_load_argument(1), _if_equal(_SOL_SOCKET, refused), _op(_RETURN, _ALLOW)))


def _filter_setpriority() -> bytes:
    """Return instructions that refuse `setpriority` for process 1, for its group, and for all processes of a user."""
    others = _load_argument(0) + _if_equal(_PRIO_USER, _refuse(errno.EPERM))
    return b"".join((others, _refuse_values(1, (1,), errno.EPERM)))


def _filter_prlimit() -> bytes:
    """Return instructions that allow `prlimit` only for the process that calls it.

    To refuse the pid 1 is not enough: `prlimit` with the id of any thread of process 1 changes the limits of process 1 too.
    """
    own = _if_equal(0, _op(_RETURN, _ALLOW))
    return b"".join((_load_argument(0), own, _refuse(errno.EPERM)))


def _refuse_values(argument: int, values: Iterable[int], error: int) -> bytes:
    """Return instructions that refuse a system call with an error number if an argument has one of `values`."""
    refused = (_if_equal(value, _refuse(error)) for value in values)
    return b"".join((_load_argument(argument), *refused, _op(_RETURN, _ALLOW)))


def _if_equal(value: int, then: bytes) -> bytes:
    """Return instructions that run `then` if the loaded word is `value`, and jump over `then` if not."""
    return _op(_JUMP_EQUAL, value, 0, len(then) // 8) + then


def _load_argument(number: int) -> bytes:
    """Return the instruction that loads the lower 32 bits of an argument.

    These bits come first, because all `ARCHITECTURES` are little-endian.
    """
    return _op(_LOAD, _ARGUMENTS + 8 * number)


def _refuse(number: int) -> bytes:
    """Return the instruction that lets the system call fail with an error number."""
    return _op(_RETURN, _ERRNO | number)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Encode one instruction."""
    return struct.pack("<HBBI", code, if_true, if_false, value)
