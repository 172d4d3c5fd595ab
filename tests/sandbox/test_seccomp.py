"""Tests the system call filter with an interpreter of classic BPF."""

import errno
import fcntl
import re
import socket
import struct
from pathlib import Path

import pytest

from referee.sandbox import seccomp

ALLOW, KILL, ERRNO, ASK = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000


def run_filter(program, *, arch, number, arguments=()):
    """Return what the kernel does with a system call, by the rules of classic BPF."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, arch, 0, *padded)
    instructions = list(struct.iter_unpack("<HBBI", program))
    word, at = 0, 0
    while True:
        code, if_true, if_false, value = instructions[at]
        at += 1
        if code == 0x20:
            [word] = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            word &= value
        elif code == 0x06:
            return value
        else:
            met = {0x15: word == value, 0x35: word >= value, 0x45: bool(word & value)}[code]
            at += if_true if met else if_false


@pytest.fixture(params=seccomp.ARCHITECTURES)
def machine(request):
    return request.param


@pytest.fixture
def call(machine):
    known = seccomp.ARCHITECTURES[machine]

    def call(number, *arguments, arch=known.audit, allow_locks=False):
        program = seccomp.build_filter(machine, allow_locks=allow_locks)
        return run_filter(program, arch=arch, number=number, arguments=arguments)

    return call


def test_listed_calls_are_refused_and_all_others_allowed(machine, call):
    known = seccomp.ARCHITECTURES[machine]
    special = {known.clone, known.socket, known.socketpair, known.ioctl}
    for number in range(600):
        if number in known.refused.values():
            assert call(number) == ERRNO | errno.EPERM
        elif number == known.clone3 or number in known.locks.values():
            assert call(number) == ERRNO | errno.ENOSYS
        elif number in known.copies.values():
            assert call(number) == ERRNO | errno.EINVAL
        elif number == known.set_cores:
            assert call(number) == ERRNO  # success, but nothing is done
        elif number not in special:
            assert call(number) == ALLOW
    assert not special & set(known.refused.values())


def test_clone_may_make_threads_and_processes_but_no_namespaces(machine, call):
    clone = seccomp.ARCHITECTURES[machine].clone
    thread, fork = 0x3D0F00, 0x1200011
    for flags in (thread, fork):
        assert call(clone, flags) == ALLOW
        for new in (0x20000, 0x10000000, 0x20000000, 0x40000000, 0x2000000):
            assert call(clone, flags | new) == ERRNO | errno.EPERM


def test_only_some_socket_families_are_allowed(machine, call):
    number = seccomp.ARCHITECTURES[machine].socket
    assert [family for family in range(50) if call(number, family, 1) == ALLOW] == [1, 2, 10, 16]
    assert call(number, 16, 3, 15) == ERRNO | errno.EAFNOSUPPORT
    assert call(number, 40, 1) == ERRNO | errno.EAFNOSUPPORT


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_internet_sockets_are_only_tcp_and_udp(machine, call, family):
    number = seccomp.ARCHITECTURES[machine].socket
    flags = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
    types = [kind for kind in range(16) if call(number, family, kind | flags) == ALLOW]
    assert types == [socket.SOCK_STREAM, socket.SOCK_DGRAM]
    for kind in types:
        allowed = [each for each in range(300) if call(number, family, kind, each) == ALLOW]
        assert allowed == [0, socket.IPPROTO_TCP, socket.IPPROTO_UDP]
    mptcp = 262
    assert call(number, family, 1, mptcp) == ERRNO | errno.EPROTONOSUPPORT  # Go then takes TCP


def test_socketpair_makes_only_unix_sockets(machine, call):
    number = seccomp.ARCHITECTURES[machine].socketpair
    assert [family for family in range(50) if call(number, family, 1) == ALLOW] == [socket.AF_UNIX]


def test_sockets_cannot_linger(machine, call):
    number = seccomp.ARCHITECTURES[machine].setsockopt
    level, linger = socket.SOL_SOCKET, socket.SO_LINGER
    refused = ERRNO | errno.ENOPROTOOPT
    high = 7 << 32  # the kernel reads only the lower half of both arguments
    options = [(each, name) for each in range(20) for name in range(100)]
    assert [each for each in options if call(number, 3, *each) != ALLOW] == [(level, linger)]
    for each in ((level, linger), (level | high, linger), (level, linger | high)):
        assert call(number, 3, *each) == refused


def test_prctl_cannot_move_the_arguments_of_a_process_or_claim_a_core(machine, call):
    number = seccomp.ARCHITECTURES[machine].prctl
    set_mm, sched_core = 35, 62
    refused = [option for option in range(100) if call(number, option) != ALLOW]
    assert refused == [set_mm, sched_core]
    for option in refused:
        assert call(number, option, 1) == ERRNO | errno.EPERM


def test_priority_and_limits_of_process_1_cannot_be_changed(machine, call):
    known = seccomp.ARCHITECTURES[machine]
    refused = ERRNO | errno.EPERM
    for number in known.scheduling.values():
        assert [pid for pid in range(100) if call(number, pid) != ALLOW] == [1]
        assert call(number, 1 | 7 << 32) == refused  # the kernel reads only the lower half
    process, group, user = range(3)
    for which in (process, group):
        assert [who for who in range(100) if call(known.setpriority, which, who) != ALLOW] == [1]
    assert {call(known.setpriority, user, who) for who in range(100)} == {refused}
    assert [pid for pid in range(100) if call(known.prlimit, pid) == ALLOW] == [0]
    assert call(known.prlimit, 1) == refused


def test_ioctl_cannot_put_keystrokes_into_a_terminal(machine, call):
    number = seccomp.ARCHITECTURES[machine].ioctl
    assert call(number, 0, 0x5412) == ERRNO | errno.EPERM
    assert call(number, 0, 0x5412 | 7 << 32) == ERRNO | errno.EPERM
    assert call(number, 0, 0x5413) == ALLOW


def test_locks_are_refused_only_if_they_are_not_allowed(machine, call):
    known = seccomp.ARCHITECTURES[machine]
    commands = {
        number
        for name, number in vars(fcntl).items()
        if name in {"F_SETLK", "F_SETLKW", "F_OFD_SETLK", "F_OFD_SETLKW", "F_SETLEASE", "F_NOTIFY"}
    }
    assert len(commands) == 6
    hints = {1036, 1038}
    delegations = {1040}
    refused = {each for each in range(1100) if call(known.fcntl, 3, each) != ALLOW}
    assert refused == commands | hints | delegations
    for command in refused:
        assert call(known.fcntl, 3, command) == ERRNO | errno.ENOSYS
        assert call(known.fcntl, 3, command, allow_locks=True) == ALLOW
    for number in known.locks.values():
        assert call(number, allow_locks=True) == ALLOW


def test_calls_of_another_architecture_are_refused(call):
    assert call(0, arch=0x40000003) == KILL
    assert call(0x40000000 | 101) == ERRNO | errno.ENOSYS


def test_filters_of_both_machines_refuse_the_same_calls():
    """Only x86-64 has calls for its ports."""
    intel, arm = (set(seccomp.ARCHITECTURES[name].refused) for name in ("x86_64", "aarch64"))
    assert intel - arm == {"ioperm", "iopl"}
    assert arm < intel
    io_uring = {"io_uring_enter", "io_uring_register", "io_uring_setup"}
    kernel = {"bpf", "keyctl", "perf_event_open", "userfaultfd"}
    namespaces = {"mount", "move_mount", "open_tree", "pivot_root", "setns", "unshare"}
    others = {"pidfd_getfd", "process_vm_readv", "process_vm_writev", "ptrace"}
    assert io_uring | kernel | namespaces | others < arm


def test_unknown_machine_has_no_filter():
    assert seccomp.build_filter("riscv64", allow_locks=False) is None


UNISTD = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def test_call_numbers_agree_with_the_kernels_headers(machine):
    """The numbers of aarch64 are the generic ones, whose header every Debian machine has."""
    header = UNISTD[machine]
    if not header.exists():
        pytest.skip(f"{header} is not installed: `apt install linux-libc-dev`")
    in_header = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text()))
    known = seccomp.ARCHITECTURES[machine]
    numbers = dict(
        known.refused | known.locks | known.copies | known.scheduling,
        prlimit64=known.prlimit,
        setpriority=known.setpriority,
        fcntl=known.fcntl,
        sched_setaffinity=known.set_cores,
        clone=known.clone,
        clone3=known.clone3,
        socket=known.socket,
        socketpair=known.socketpair,
        setsockopt=known.setsockopt,
        ioctl=known.ioctl,
        prctl=known.prctl,
    )
    newer = {name for name in numbers if name not in in_header}
    assert all(numbers[name] > max(map(int, in_header.values())) for name in newer)
    assert newer <= {"open_tree_attr"}
    assert {name: int(in_header[name]) for name in numbers.keys() - newer} == {
        name: number for name, number in numbers.items() if name not in newer
    }


def test_numbers_of_32_bit_programs_agree_with_the_kernels_header():
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_32.h")
    if not header.exists():
        pytest.skip(f"{header} is not installed: `apt install linux-libc-dev`")
    in_header = dict(re.findall(r"#define __NR_(\w+)\s+(\d+)", header.read_text()))
    numbers = tuple(int(in_header[name]) for name in ("add_key", "keyctl", "request_key"))
    assert seccomp.ARCHITECTURES["x86_64"].keys_32 == numbers


def test_sysinfo_filters_ask_or_refuse_that_call_only(machine):
    known = seccomp.ARCHITECTURES[machine]
    for program, answer in zip(
        seccomp.build_sysinfo_filters(machine), (ASK, ERRNO | errno.ENOSYS), strict=True
    ):
        found = {
            number: run_filter(program, arch=known.audit, number=number) for number in range(600)
        }
        assert found.pop(known.sysinfo) == answer
        assert set(found.values()) == {ALLOW}


def test_machine_without_a_filter_has_no_sysinfo_filters():
    assert seccomp.build_sysinfo_filters("riscv64") is None


def test_key_filter_refuses_only_the_calls_for_keys(machine):
    known = seccomp.ARCHITECTURES[machine]
    keys = {known.refused[name] for name in ("add_key", "keyctl", "request_key")}
    other = 0xC0000015  # PowerPC
    refused = {known.audit: keys, known.audit_32: set(known.keys_32), other: set()}
    numbers = [*range(600), *range(0x40000000, 0x40000258)]
    program = seccomp.build_key_filter(machine)
    for arch, wanted in refused.items():
        answers = {each: run_filter(program, arch=arch, number=each) for each in numbers}
        x32 = {number | 0x40000000 for number in wanted}
        assert {each for each in numbers if answers[each] == ERRNO | errno.EPERM} == wanted | x32
        assert set(answers.values()) <= {ALLOW, ERRNO | errno.EPERM}


def test_machine_without_a_filter_has_no_key_filter():
    assert seccomp.build_key_filter("riscv64") is None
