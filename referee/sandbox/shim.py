"""Prepare a new process and then become the program: the shim between the referee and every program.

`python -I -S shim.py PARENT REPORT [OPTION…] -- PROGRAM ARGUMENT…`

PARENT is the pid of the referee's process. If the referee's process has already ended, the shim exits. On Linux, the
kernel later kills the program when the thread that started the shim ends.

REPORT is the file descriptor of a pipe. If the shim becomes the program, it writes nothing. Without `--sandbox`, the
kernel then closes REPORT. If the shim fails, it writes `NUMBER TEXT`. NUMBER is 0 if the isolation cannot be set up. If
the program cannot be started, NUMBER is the error number.

The program inherits only its standard file descriptors (with --sandbox, also the pipes described there), and has the
default handlers of the signals that Python and the referee ignore. It writes no core file. Three more limits exist only
on Linux: the program can create no POSIX message queue (the queue would outlive it), cannot become a real-time process,
and cannot raise its priority. A program with CAP_SYS_RESOURCE can lift these limits. The last two do not hold for a
program with CAP_SYS_NICE.

The shim carries out the options in the given order:

--join FILE           write the pid of this process to FILE, the `cgroup.procs` of a cgroup
--prepare FOLDER      make a private mount namespace, and mount an empty file system at FOLDER
--bind SOURCE TARGET  make SOURCE visible at TARGET, a path below the FOLDER of --prepare
--copy SOURCE TARGET  copy the file SOURCE to TARGET
--device SOURCE TARGET
                      create the device file TARGET for the device of SOURCE; if that is forbidden, do what --bind does
--private SIZE N SHARED… N CLOSED… N KEPT… N WRITABLE…
                      make a private mount namespace and a private namespace for shared memory, semaphores and message
                      queues. Each N is the number of paths that follow. Hide the contents of the folders SHARED and
                      CLOSED: mount an empty file system of at most SIZE bytes at each of them. Every user may write
                      to SHARED, only root to CLOSED. Then show the paths KEPT and WRITABLE at their own places
                      again. From Linux 5.12 on, everything except SHARED and WRITABLE is read-only. Do nothing if the
                      kernel refuses the namespaces
--reach FOLDER        fail if the user of this process cannot enter and read FOLDER. Give this option after --uid
--uid NUMBER          become this user, with only the group of the same number
--processes NUMBER    limit the processes and threads of this user
--open-files NUMBER   limit the file descriptors of the program and of each process that it starts
--mark NUMBER         mark the process and all processes that it starts with NUMBER; `process_tree.py` explains the mark
--no-new-privileges   prevent the program and its processes from gaining rights, for example by set-user-ID files
--filter HEX          install a system call filter, a program in classic BPF as hexadecimal digits. Do nothing if the
                      kernel has no such filters. Give this option after --no-new-privileges
--sandbox HEX,…       PROGRAM is bubblewrap. Pass on descriptor 3, which is the report pipe, and a pipe for each HEX,
                      from descriptor 4 on. HEX is the content of the pipe as hexadecimal digits. The first
                      pipe contains the system call filter, and the others the contents of files

The script imports nothing of the project, because imports would delay every start of a program.
"""

import ctypes
import errno
import fcntl
import os
import resource
import stat
import struct
import sys
import warnings  # noqa: F401 - execvp imports it, and after --uid that import may fail

_SIGINT, _SIGKILL, _SIGPIPE, _SIGXFSZ = 2, 9, 13, 25
"""Numbers of signals. The module `signal` takes longer to import than all others together."""
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_SECCOMP_MODE_FILTER = 2
_INSTRUCTION_BYTES = 8
"""The size of an instruction of a filter."""
_CLONE_NEWNS, _CLONE_NEWIPC = 0x20000, 0x8000000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 12, 1 << 14, 1 << 18
_RLIMIT_LOCKS = 10
"""The resource limit that stores the mark. It has no effect, and the module `resource` has no name for it."""
_MOUNT_SETATTR = 442
"""The number of the system call mount_setattr, which is the same on all machines."""
_AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = -100, 0x8000, 1
_REPORT = 3
"""The descriptor at which a sandbox expects the report pipe. The other pipes follow."""
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of the system call sched_setattr on each machine; the C library may have no function for it."""
_SLICE_NS = 100_000
"""The shortest time slice that Linux accepts."""


def run_in_short_slices() -> None:
    """Ask the kernel for short time slices. With short slices, this process waits less if others use its core too.

    The process gets the ordinary scheduling class and keeps its nice value. It needs no special rights.
    Exception: a process in the idle class (`chrt --idle`) that is not root stays there with the normal slice. A kernel before
    Linux 6.12 and a machine not listed in `_SCHED_SETATTR` keep the normal slice too.
    """
    if sys.platform != "linux":
        return
    try:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        return
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
    run_in_short_slices()  # before --join, because a cgroup may refuse a real-time process
    if "--sandbox" in options:
        contents = options[options.index("--sandbox") + 1].split(",")
        report = _prepare_descriptors(report, [bytes.fromhex(each) for each in contents])
    try:
        _apply(options)
    except OSError as error:
        _fail(report, f"0 {error.filename or ' '.join(options)}: {error.strerror}")
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)  # after --uid, because a change of user resets it
    # PR_SET_PDEATHSIG has no effect if the referee had already ended
    if os.getppid() != parent:
        os._exit(1)
    # Python or a worker ignores these signals; the program must get the default handlers
    for ignored in (_SIGPIPE, _SIGXFSZ, _SIGINT):
        _LIBC.signal(ignored, None)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        for kind in (resource.RLIMIT_MSGQUEUE, resource.RLIMIT_RTPRIO, resource.RLIMIT_NICE):
            resource.setrlimit(kind, (0, 0))
    try:
        os.execvp(command[0], command)  # noqa: S606 - the program's own command, without a shell
    except OSError as error:
        _fail(report, f"{error.errno} {command[0]}: {error.strerror}")


def _apply(options: list[str]) -> None:
    """Carry out the options. Raises OSError if one of them fails."""
    simple = {
        "--join": _join,
        "--prepare": _prepare,
        "--reach": _check_access,
        "--uid": _change_user,
        "--processes": _limit_processes,
        "--mark": _mark,
        "--open-files": _limit_open_files,
        "--filter": _install_filter,
    }
    on_target = {"--bind": _bind, "--copy": _copy, "--device": _create_device}
    words = iter(options)
    for option in words:
        if option in on_target:
            on_target[option](next(words), next(words))
        elif option == "--private":
            size = next(words)
            lists = [[next(words) for _ in range(int(next(words)))] for _ in range(4)]
            _make_private(size, *lists)
        elif option == "--no-new-privileges":
            _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        elif option == "--sandbox":
            next(words)
        else:
            simple[option](next(words))


def _mark(text: str) -> None:
    # if this process has a lower hard limit, that replaces the mark, and the program is found only by its session or user
    if sys.platform == "linux":
        _limit(_RLIMIT_LOCKS, int(text))


def _limit_processes(text: str) -> None:
    _limit(resource.RLIMIT_NPROC, int(text))


def _limit_open_files(text: str) -> None:
    _limit(resource.RLIMIT_NOFILE, int(text))


def _limit(kind: int, number: int) -> None:
    """Set a resource limit to `number`, or to the present hard limit if that is lower."""
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY:
        number = min(number, most)
    resource.setrlimit(kind, (number, number))


def _join(file: str) -> None:
    with open(file, "w") as procs:  # noqa: PTH123 - importing pathlib takes longer than this script
        procs.write(str(os.getpid()))


def _prepare(folder: str) -> None:
    _check(_LIBC.unshare(_CLONE_NEWNS), "unshare")
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", folder, "tmpfs", _MS_NOSUID, "mode=755")


def _bind(source: str, target: str) -> None:
    _make_target(source, target)
    _mount(source, target, None, _MS_BIND | _MS_REC)


def _make_target(source: str, target: str) -> None:
    """Create the folder or file at which `source` can be mounted."""
    if os.path.isdir(source):  # noqa: PTH112 - no pathlib, as in `_join`
        os.mkdir(target)  # noqa: PTH102
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))


def _copy(source: str, target: str) -> None:
    with open(source, "rb") as old, open(target, "xb") as new:  # noqa: PTH123 - as in `_join`
        os.fchmod(new.fileno(), os.fstat(old.fileno()).st_mode & 0o777)
        new.write(old.read())


def _create_device(source: str, target: str) -> None:
    try:
        os.mknod(target, stat.S_IFCHR, os.stat(source).st_rdev)  # noqa: PTH116 - as in `_join`
    except OSError:  # a container may forbid it
        _bind(source, target)
    else:
        os.chmod(target, 0o666)  # noqa: PTH101, S103 - for every user, as in /dev


def _make_private(
    size: str, shared: list[str], closed: list[str], kept: list[str], writable: list[str]
) -> None:
    here = os.getcwd()  # noqa: PTH109 - no pathlib, as in `_join`
    private = b"none", b"/", None, _MS_REC | _MS_PRIVATE, None
    if _LIBC.unshare(_CLONE_NEWNS | _CLONE_NEWIPC) or _LIBC.mount(*private):
        return
    # open everything before it is hidden, and sort it, so that a folder is shown before the folders in it
    opened = [(path, os.open(path, os.O_PATH)) for path in sorted({*kept, *writable})]
    for folders, mode in ((shared, "1777"), (closed, "755")):
        for folder in folders:
            _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode={mode},size={size}")
    for path, descriptor in opened:
        source = f"/proc/self/fd/{descriptor}"
        if not os.path.lexists(path):
            _make_parents(path)
        if not os.path.lexists(path):
            _make_target(source, path)
        _mount(source, path, None, _MS_BIND | _MS_REC)
        os.close(descriptor)
    _set_read_only("/", recursive=True)
    for folder in (*shared, *writable):
        _set_read_only(folder, clear=True)
    # enter the working directory again, because this process may still be in a folder that is now hidden
    os.chdir(here)


def _make_parents(path: str) -> None:
    """Create the folders above `path` that are missing, and let every user pass through them."""
    parent = os.path.dirname(path)  # noqa: PTH120 - no pathlib, as in `_join`
    if not os.path.lexists(parent):
        _make_parents(parent)
        os.mkdir(parent)  # noqa: PTH102
        os.chmod(parent, 0o755)  # noqa: PTH101, S103


def _set_read_only(path: str, *, recursive: bool = False, clear: bool = False) -> None:
    """Make a mount read-only, or writable with `clear`. A kernel before Linux 5.12 cannot do it and changes nothing."""
    bits = (0, _MOUNT_ATTR_RDONLY) if clear else (_MOUNT_ATTR_RDONLY, 0)
    flags = _AT_RECURSIVE if recursive else 0
    attributes = struct.pack("=QQQQ", *bits, 0, 0)
    _LIBC.syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), flags, attributes, len(attributes))


def _check_access(folder: str) -> None:
    if not os.access(folder, os.R_OK | os.X_OK):
        raise OSError(
            errno.EACCES,
            "cannot be reached by the bot, which runs as another user with this isolation:"
            " chmod o+rx this folder and those above it",
            folder,
        )


def _change_user(text: str) -> None:
    uid = int(text)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _install_filter(text: str) -> None:
    program = bytes.fromhex(text)
    buffer = ctypes.create_string_buffer(program)
    size = len(program) // _INSTRUCTION_BYTES
    description = struct.pack("HP", size, ctypes.addressof(buffer))  # struct sock_fprog
    if _LIBC.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, description):
        number = ctypes.get_errno()
        if number != errno.EINVAL:  # EINVAL: the kernel has no filters
            raise OSError(number, os.strerror(number), "seccomp")


def _prepare_descriptors(report: int, contents: list[bytes]) -> int:
    """Move the report pipe to descriptor 3, and create a pipe for each content from descriptor 4 on; return 3."""
    pipes = [report]
    for content in contents:
        reading, writing = os.pipe()
        os.write(writing, content)  # fits into the pipe's buffer
        os.close(writing)
        pipes.append(reading)
    end = _REPORT + len(pipes)
    high = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, end) for each in pipes]
    for each in pipes:
        if each >= end:
            os.close(each)
    for number, each in enumerate(high, _REPORT):
        os.dup2(each, number)
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
