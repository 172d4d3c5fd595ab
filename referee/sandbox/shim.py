"""Prepare a new process and then become the program: the shim between the referee and every program.

`python -I -S shim.py PARENT REPORT [OPTION…] -- PROGRAM ARGUMENT…`

PARENT is the pid of the referee's process. The kernel kills the program when the thread that started the shim ends.
REPORT is the file descriptor of a pipe. If the shim becomes the program, it writes nothing. Without `--sandbox`,
the kernel then closes REPORT. If the shim fails, it writes `NUMBER TEXT`. NUMBER is 0 if the isolation cannot be
set up. If the program cannot be started, NUMBER is the error number.

The program inherits only its standard file descriptors, has default signal handlers, and dumps no core.

The shim carries out the options in the given order:

--join FILE           write the pid of this process to FILE, the `cgroup.procs` of a cgroup
--stage FOLDER        make a private mount namespace, and mount an empty file system at FOLDER
--bind SOURCE TARGET  make SOURCE visible at TARGET, a path below the FOLDER of --stage
--uid NUMBER          become this user, with only the group of the same number
--open-files NUMBER   limit the file descriptors of the program and of each process that it starts
--no-new-privileges   prevent that the program and its processes gain rights, for instance by set-user-ID files
--sandbox HEX         PROGRAM is bubblewrap. Pass on descriptor 3, which is the report pipe, and descriptor 4, a pipe
                      with the system call filter. HEX is this filter as hexadecimal digits

The script imports nothing of the project, because imports would delay every start of a program.
"""

import ctypes
import fcntl
import os
import resource
import signal
import struct
import sys
import warnings  # noqa: F401 - execvp imports it, and after --uid that import may fail

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CLONE_NEWNS = 0x20000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 12, 1 << 14, 1 << 18
_REPORT, _PIPE = 3, 4
"""The descriptors at which a sandbox expects the report pipe and the pipe with the system call filter."""
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of the system call sched_setattr on each machine; the C library may have no function for it."""
_SLICE_NS = 100_000
"""The shortest time slice that Linux accepts."""


def run_in_short_slices() -> None:
    """Ask the kernel for short time slices. With short slices, this process waits less if others use its core too.

    The process gets the ordinary scheduling class and keeps its nice value. It needs no special rights. A kernel before
    Linux 6.12 and a machine not listed in `_SCHED_SETATTR` keep the normal slice.
    """
    if sys.platform != "linux":
        return
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    number = _SCHED_SETATTR.get(os.uname().machine)
    if number is not None:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        size, flags = 48, 0
        attributes = struct.pack("=IIQiIQQQ", size, os.SCHED_OTHER, flags, nice, 0, _SLICE_NS, 0, 0)
        _LIBC.syscall(number, 0, attributes, 0)


def main() -> None:
    """Become the program, or report why that fails."""
    parent, report = int(sys.argv[1]), int(sys.argv[2])
    end = sys.argv.index("--")
    options, command = sys.argv[3:end], sys.argv[end + 1 :]
    os.closerange(3, report)
    os.closerange(report + 1, os.sysconf("SC_OPEN_MAX"))
    os.set_inheritable(report, False)  # noqa: FBT003 - the function takes no keywords
    run_in_short_slices()  # before --join, because no cgroup accepts a real-time process
    if "--sandbox" in options:
        report = _prepare_descriptors(
            report, bytes.fromhex(options[options.index("--sandbox") + 1])
        )
    try:
        _apply(options)
    except OSError as error:
        _fail(report, f"0 {error.filename or ' '.join(options)}: {error.strerror}")
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # after --uid: a change of user resets it
    if os.getppid() != parent:  # the referee ended before the line above
        os._exit(1)
    # Python or a worker ignores these signals; the program must get the default handlers
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(ignored, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        os.execvp(command[0], command)  # noqa: S606 - the program's own command, without a shell
    except OSError as error:
        _fail(report, f"{error.errno} {command[0]}: {error.strerror}")


def _apply(options: list[str]) -> None:
    """Carry out the options. Raises OSError if one of them fails."""
    words = iter(options)
    for option in words:
        if option == "--join":
            _join(next(words))
        elif option == "--stage":
            _stage(next(words))
        elif option == "--bind":
            _bind(next(words), next(words))
        elif option == "--uid":
            _change_user(int(next(words)))
        elif option == "--no-new-privileges":
            _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        elif option == "--open-files":
            _limit_open_files(int(next(words)))
        elif option == "--sandbox":
            next(words)
        else:
            raise ValueError(option)


def _limit_open_files(number: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY:
        number = min(number, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))


def _join(file: str) -> None:
    with open(file, "w") as procs:  # noqa: PTH123 - importing pathlib takes longer than this script
        procs.write(str(os.getpid()))


def _stage(folder: str) -> None:
    _check(_LIBC.unshare(_CLONE_NEWNS), "unshare")
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755")


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):  # noqa: PTH112 - no pathlib, as in `_join`
        os.mkdir(target)  # noqa: PTH102
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    _mount(source, target, None, _MS_BIND | _MS_REC)


def _change_user(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _prepare_descriptors(report: int, data: bytes) -> int:
    """Move the report pipe to descriptor 3, and create a pipe with `data` at descriptor 4; return 3."""
    reading, writing = os.pipe()
    os.write(writing, data)  # fits into the pipe's buffer
    os.close(writing)
    high = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _PIPE + 1) for each in (report, reading)]
    for each in {report, reading} - {_REPORT, _PIPE}:
        os.close(each)
    os.dup2(high[0], _REPORT)
    os.dup2(high[1], _PIPE)
    return _REPORT


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    _check(_LIBC.mount(*words[:3], flags, words[3]), target)


def _prctl(option: int, value: int) -> None:
    _check(_LIBC.prctl(option, value, 0, 0, 0), "prctl")


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def _fail(report: int, reason: str) -> None:
    os.write(report, reason.encode(errors="replace"))
    os._exit(127)


_LIBC = ctypes.CDLL(None, use_errno=True)

if __name__ == "__main__":
    main()
