"""Tests programs in sandboxes of bubblewrap."""

import asyncio
import ctypes
import errno
import fcntl
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psutil
import pytest
from extended import extend_cases_but
from own_cgroups import own_cgroups, read_cpu_limit
from programs import LONG_NAME, little_memory, long_program, signals, tool
from strongest_isolation import strongest

from referee.errors import Cause, Forfeit, VoidGame
from referee.sandbox import Access, Limits, bubblewrap, init, rung_from_results, seccomp
from referee.sandbox.cgroups import Cgroup, Cgroups
from referee.sandbox.mounts import hidden_folders
from referee.sandbox.probe import probe
from referee.sandbox.sandbox import SandboxedProgram, SandboxLauncher
from referee.sandbox.sweeper import SWEEPER

pytestmark = pytest.mark.isolation("namespaces")
PYTHON = os.path.realpath(sys.executable)
INIT = Path(init.__file__)
PATH = {"PATH": os.environ["PATH"]}


@pytest.fixture
def launcher():
    return SandboxLauncher(strongest().bubblewrap, Cgroups.find())


@pytest.fixture
def place(tmp_path):
    """Return a folder with three folders of a program: its own, its scratch folder, and the socket's."""
    for name in ("own", "scratch", "link"):
        (tmp_path / name).mkdir(mode=0o755)
    return tmp_path


@pytest.fixture
async def launch(launcher, place):
    """Launch programs. They are killed at the end, also if the test has failed before it kills them."""
    programs = []

    async def launch(*command, **more):
        program = await launcher.launch(
            command,
            folder=place / "own",
            environment={**PATH, "HOME": str(place / "scratch")},
            access=more.pop("access", Access(scratch=place / "scratch", link=place / "link")),
            **more,
        )
        programs.append(program)
        return program

    yield launch
    for program in programs:
        await program.kill()


@pytest.fixture
def python(launch):
    def python(program, *arguments, **more):
        return launch(PYTHON, "-I", "-c", textwrap.dedent(program), *arguments, **more)

    return python


async def read_all(launched):
    text = await launched.process.stdout.read()
    await launched.kill()
    return text.decode()


async def first_line(launched):
    return (await launched.process.stdout.readline()).decode().strip()


def list_leftovers():
    """Return the cgroups and child processes of this process.

    Zombies may belong to other tests. The sweeper is a child of process 1, which may be this process. A process that is
    just ending has no command line any more.
    """
    children = [child for child in psutil.Process().children() if child.status() != "zombie"]
    others = [child for child in children if (words := _words(child)) and SWEEPER[-1] not in words]
    return [*own_cgroups(), *others]


def _words(process):
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


@pytest.fixture(autouse=True)
async def _check_leftovers(launcher):
    yield
    launcher.reap()
    assert not list_leftovers()


@pytest.mark.isolation("full")
async def test_cgroups_of_a_running_program_are_found_as_leftovers(launch):
    launched = await launch("cat")
    assert own_cgroups()
    await launched.kill()


async def test_program_sees_only_its_own_processes(launch):
    launched = await launch(
        "sh", "-c", "ls /proc > $HOME/all; grep -c '^[0-9]' $HOME/all; id -u; hostname"
    )
    processes, uid, host = (await read_all(launched)).split()
    assert int(processes) == 3  # init, sh, ls
    assert int(uid) != 0
    assert host == "sandbox"


async def test_environment_in_the_sandbox_is_exactly_what_was_given(launcher, place):
    launched = await launcher.launch(
        ["env"], folder=place / "own", environment={"A": "b", "LANG": "C.UTF-8"}
    )
    assert set((await read_all(launched)).split()) == {"A=b", "LANG=C.UTF-8", f"PWD={place}/own"}


async def test_no_file_descriptor_is_inherited(python):
    launched = await python("import os; print(os.listdir('/proc/self/fd'))")
    assert eval(await read_all(launched)) == ["0", "1", "2", "3"]  # noqa: S307 - 3 lists the folder


NAMESPACES = ("ipc", "mnt", "net", "pid", "user", "uts")


async def test_program_has_no_rights_and_namespaces_of_its_own(python):
    launched = await python(
        f"""
        import json, os, resource
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        limits = map(resource.getrlimit, (resource.RLIMIT_CORE, resource.RLIMIT_MSGQUEUE))
        print(json.dumps([
            [int(value, 16) for name, value in status.items() if name.startswith("Cap")],
            int(status["NoNewPrivs"]),
            list(limits),
            os.getpgrp() == os.getpid(),
            os.getsid(0),
            [os.readlink(f"/proc/self/ns/{{name}}") for name in {NAMESPACES}],
        ]))
        """
    )
    found = json.loads(await read_all(launched))
    capabilities, no_new_rights, limits, leads_its_group, session, namespaces = found
    assert capabilities == [0] * 5
    assert no_new_rights == 1
    assert limits == [[0, 0], [0, 0]]
    assert leads_its_group
    assert session == 1, "the session of the referee, or of another program"
    own = [os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES]  # noqa: PTH115 - as in the program
    assert not set(own) & set(namespaces)


async def test_umask_of_the_referee_does_not_count_in_the_sandbox(launch):
    before = os.umask(0o027)
    try:
        launched = await launch("sh", "-c", "umask")
    finally:
        os.umask(before)
    assert await read_all(launched) == "0022\n"


async def test_umask_of_the_referee_does_not_change_what_the_probe_finds(launcher):
    before = os.umask(0o077)
    try:
        results = await probe(launcher)
    finally:
        os.umask(before)
    assert rung_from_results(results) is strongest().rung


async def test_probe_needs_no_program_in_the_path(launcher, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert rung_from_results(await probe(launcher)) is strongest().rung


async def test_program_cannot_write_in_folders_of_the_sandbox_itself(python):
    folders = ["/", "/dev", *map(str, hidden_folders())]
    launched = await python(
        f"""
        for folder in {folders}:
            try:
                open(folder + "/file", "w")
            except OSError as error:
                print(error.strerror)
        """
    )
    assert (await read_all(launched)).splitlines() == ["Read-only file system"] * len(folders)


async def test_program_cannot_read_the_memory_or_environment_of_process_1(python):
    launched = await python(
        """
        for file in ("mem", "environ"):
            try:
                open(f"/proc/1/{file}", "rb")
            except OSError as error:
                print(error.strerror)
        """
    )
    assert (await read_all(launched)).splitlines() == ["Permission denied"] * 2


async def test_outputs_are_pipes(python):
    launched = await python(
        "import os, stat; print([stat.S_ISFIFO(os.fstat(number).st_mode) for number in (1, 2)])"
    )
    assert await read_all(launched) == "[True, True]\n"


async def test_program_may_have_the_smallest_limit_of_open_files(python):
    """The shim and bubblewrap need more open files than that."""
    launched = await python(
        """
        import resource
        print(*resource.getrlimit(resource.RLIMIT_NOFILE))
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (33, 33))
        except ValueError as error:
            print(error)
        """,
        limits=Limits(open_files=32),
    )
    assert (await read_all(launched)).splitlines() == [
        "32 32",
        "not allowed to raise maximum limit",
    ]


@pytest.mark.skipif(not bubblewrap._counts_by_namespace(), reason="needs Linux 5.14")
async def test_pending_signals_are_limited_for_each_sandbox(python):
    launched = await python(
        """
        import ctypes, os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMAX})
        count = 0
        while count < 1000 and ctypes.CDLL(None).sigqueue(os.getpid(), signal.SIGRTMAX, None) == 0:
            count += 1
        print(count)
        """
    )
    assert await read_all(launched) == "256\n"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (
            ("./missing",),
            (
                "./missing: No such file or directory; if this file exists, the program in its first line (#!) does not,"
                " perhaps because the file has Windows line ends"
            ),
        ),
        (("no-such-program",), "no-such-program is not installed, or not in PATH"),
        (
            ("./own.txt",),
            "./own.txt: Permission denied; it must be a file that may be executed (`chmod +x`)",
        ),
    ],
)
async def test_program_that_cannot_be_started_is_no_start(launch, place, command, why):
    (place / "own" / "own.txt").write_text("x")
    with pytest.raises(Forfeit) as raised:
        await launch(*command)
    assert raised.value.cause is Cause.NO_START
    assert raised.value.evidence.detail == f"the program cannot be started: {why}"


async def test_failed_start_leaves_nothing(place, monkeypatch):
    async def give_up(launched, _program):
        await launched._report.first_line
        raise VoidGame("given up")

    monkeypatch.setattr(SandboxedProgram, "wait_for_start", give_up)
    launcher = SandboxLauncher(
        strongest().bubblewrap, Cgroups(())
    )  # a cgroup would kill what is left
    for _ in range(10):
        with pytest.raises(VoidGame, match="given up"):
            await launcher.launch(["sleep", "1000"], folder=place / "own", environment=PATH)
        assert not list_leftovers()


def lack_descriptors(*_arguments):
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


async def test_program_is_killed_and_its_resources_released_without_descriptors(
    launch, monkeypatch
):
    launched = await launch("sleep", "1000")
    with monkeypatch.context() as patch:
        patch.setattr(psutil.Process, "kill", lack_descriptors)
        patch.setattr(psutil.Process, "wait", lack_descriptors)
        patch.setattr("referee.sandbox.sandbox._EXIT_LIMIT_S", 0.1)
        await launched.kill()
    assert launched._resources.uid is None
    assert not list_leftovers()


async def test_start_without_descriptors_voids_the_game_and_leaves_nothing(launch, monkeypatch):
    monkeypatch.setattr(SandboxedProgram, "_find_init", lack_descriptors)
    with pytest.raises(VoidGame, match=r"the sandbox cannot be watched: .*Too many open files"):
        await launch("sleep", "1000")
    assert not list_leftovers()


async def test_launch_cancelled_while_the_shim_is_created_leaves_nothing(place):
    launcher = SandboxLauncher(strongest().bubblewrap, Cgroups(()))
    for _ in range(10):
        launching = asyncio.ensure_future(
            launcher.launch(["sleep", "1000"], folder=place / "own", environment=PATH)
        )
        while not (list_leftovers() or launching.done()):  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)
        launching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await launching
        assert not list_leftovers()


async def test_sandbox_that_cannot_be_set_up_voids_the_game(place):
    launcher = SandboxLauncher(Path("/bin/false"), Cgroups(()))
    with pytest.raises(VoidGame, match=r"cannot be set up: .* no reason; its exit code is 1"):
        await launcher.launch(["true"], folder=place / "own", environment={})
    launcher = SandboxLauncher(Path("/no/such/bwrap"), Cgroups(()))
    with pytest.raises(VoidGame, match="the sandbox cannot be set up"):
        await launcher.launch(["true"], folder=place / "own", environment={})


async def test_reason_that_bubblewrap_prints_in_two_parts_is_complete(place):
    """The report pipe closes between the parts."""
    script = "#!/bin/sh\nprintf 'bwrap: ' >&2\nexec 3>&-\nsleep 0.1\nprintf 'no such folder' >&2\n"
    bwrap = tool(place / "bin" / "bwrap", script)
    with pytest.raises(VoidGame, match=r"cannot be set up: bwrap: no such folder$"):
        await SandboxLauncher(bwrap, Cgroups(())).launch(
            ["true"], folder=place / "own", environment={}
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives bots users of their own")
async def test_folder_that_the_programs_user_cannot_read_voids_the_game(launch, place):
    (place / "own").chmod(0o700)
    with pytest.raises(VoidGame, match="must be readable for everybody"):
        await launch("true")


async def test_program_cannot_interrupt_process_1(launch):
    for _ in range(10):
        launched = await launch("sh", "-c", "kill -INT 1; kill -TERM 1; exit 3")
        assert await launched.process.wait() == 3
        await launched.kill()


@pytest.mark.toolchain("g++")
@pytest.mark.extended("compiles a program that is faster than process 1")
async def test_program_that_takes_resources_from_process_1_still_counts_as_started(launch, place):
    (place / "fast.cpp").write_text(
        """
        #include <initializer_list>
        #include <sys/resource.h>
        #include <unistd.h>

        int main() {
            const struct rlimit none = {0, 0};
            for (auto kind : {RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_AS})
                prlimit(1, kind, &none, nullptr);
            pause();
        }
        """
    )
    command = ("g++", "-static", place / "fast.cpp", "-o", place / "own" / "fast")
    compiler = await asyncio.create_subprocess_exec(*command)
    assert await compiler.wait() == 0
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # so that the program can run before process 1
    try:
        for _ in range(50):
            launched = await launch("./fast")
            await launched.kill()
    finally:
        os.sched_setaffinity(0, cores)


@pytest.mark.parametrize(
    ("program", "code"),
    extend_cases_but(
        ["exit 3", "kill -SEGV $$"],
        {
            "exit 3": ("exit 3", 3),
            "exit 139": ("exit 139", 139),
            "kill -SEGV $$": ("kill -SEGV $$", -signal.SIGSEGV),
            "kill -40 $$": ("kill -40 $$", -40),
            "true": ("true", 0),
        },
        "starts more programs on the rungs",
    ),
)
async def test_exit_code_or_signal_is_reported_exactly(launch, program, code):
    launched = await launch("sh", "-c", program)
    assert await launched.process.wait() == code
    assert launched.process.returncode == code
    await launched.kill()


async def test_program_ignores_and_blocks_no_signal(launch):
    launched = await launch("grep", "-E", "SigBlk|SigIgn", "/proc/self/status")
    masks = (await read_all(launched)).split()[1::2]
    assert list(map(signals, masks)) == [set(), set()]


async def test_sigterm_reaches_the_program(launch):
    launched = await launch(
        "sh", "-c", "trap 'echo bye; exit 4' TERM; echo on; while :; do :; done"
    )
    assert await first_line(launched) == "on"
    launched.terminate()
    assert await launched.process.wait() == 4
    await launched.kill()


async def test_processes_left_running_are_listed_and_killed(launch):
    launched = await launch("sh", "-c", "setsid sh -c 'echo on; exec >&-; sleep 1000' & exit 0")
    assert await first_line(launched) == "on"
    assert await launched.process.wait() == 0
    assert set(launched.list_others()) <= {"sh", "sleep"}
    assert launched.list_others()
    before = launched._init.children(recursive=True)
    assert before
    await launched.kill()
    assert not psutil.wait_procs(before, timeout=0)[1]


@pytest.mark.extended("the same is tested without a sandbox")
async def test_long_arguments_are_not_read_for_the_name_of_a_process(python, place):
    launched = await python(long_program(place / "own" / "other.py"))
    try:
        assert await first_line(launched) == "up"
        with little_memory():
            assert launched.list_others() == [LONG_NAME]
    finally:
        await launched.kill()


async def test_sandbox_ends_with_a_killed_referee(place):
    """The referee is a process of its own here, and is killed."""
    program = f"""
        import asyncio, sys, time
        from pathlib import Path
        from referee.sandbox.cgroups import Cgroups
        from referee.sandbox.sandbox import SandboxLauncher
        async def main():
            launcher = SandboxLauncher(Path({str(strongest().bubblewrap)!r}), Cgroups(()))
            launched = await launcher.launch(
                ["sleep", "1000"], folder=Path({str(place / "own")!r}), environment={{}})
            print(launched.process.pid, flush=True)
            time.sleep(1000)
        asyncio.run(main())
    """
    referee = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", textwrap.dedent(program)), stdout=asyncio.subprocess.PIPE
    )
    bot = psutil.Process(int(await referee.stdout.readline()))
    assert bot.name() == "sleep"
    referee.kill()
    await referee.wait()
    assert not psutil.wait_procs([bot], timeout=10)[1]
    psutil.wait_procs(psutil.Process().children(), timeout=10)  # the sweeper of that process


async def test_scratch_folder_is_empty_limited_and_not_kept(python, place):
    program = """
        import os
        from pathlib import Path
        home = Path(os.environ["HOME"])
        print(list(home.iterdir()))
        done = 0
        for file in (home / "a", Path("/tmp/b")):
            try:
                with file.open("wb") as out:
                    while True:
                        done += out.write(bytes(1 << 16))
                        out.flush()
            except OSError as error:
                print(error.strerror)
        print(done >> 20)
    """
    for _ in range(2):
        launched = await python(program, limits=Limits(scratch_mib=2))
        assert (await read_all(launched)).splitlines() == [
            "[]",
            *["No space left on device"] * 2,
            "2",
        ]
    assert list((place / "scratch").iterdir()) == []


async def test_relay_connects_tcp_with_the_socket(python, place):
    socket = place / "link" / "socket"

    async def answer(reader, writer):
        writer.write(b"got " + await reader.readline())
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(answer, socket)
    launched = await python(
        """
        import socket
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", 50051)) as link:
                link.sendall(b"hello\\n")
                while data := link.recv(100):
                    print(data.decode(), end="")
        """,
        access=Access(link=place / "link", relay=(socket, 50051)),
    )
    assert await read_all(launched) == "got hello\n" * 2
    server.close()


async def test_loopback_of_the_machine_is_not_reached(python):
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    program = f"import socket; print(socket.socket().connect_ex(('127.0.0.1', {port})))"
    assert await read_all(await python(program)) != "0\n"
    server.close()


async def test_writable_folder_belongs_to_the_referee_afterwards(launch, place):
    made = place / "made"
    made.mkdir()
    (made / "old").write_text("old")
    launched = await launch(
        "sh",
        "-c",
        f"cd {made} && echo new > new && echo newer > old",
        access=Access(writable=(made,)),
    )
    assert await launched.process.wait() == 0
    await launched.kill()
    assert (made / "new").read_text() == "new\n"
    assert (made / "old").read_text() == "newer\n"
    assert {path.stat().st_uid for path in (made, *made.iterdir())} == {os.getuid()}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives bots users of their own")
async def test_every_program_has_its_own_user_id(launch):
    both = [await launch("sh", "-c", "id -u; sleep 1000") for _ in range(2)]
    assert len({await first_line(each) for each in both}) == 2
    for each in both:
        await each.kill()


@pytest.mark.isolation("full")
async def test_program_with_too_much_memory_is_killed_and_charged(python):
    launched = await python("x = bytearray(1 << 28)", limits=Limits(memory_mib=64))
    assert await launched.process.wait() == -signal.SIGKILL
    await launched.kill()
    fault = await launched.breach()
    assert fault.cause is Cause.OOM
    assert "64 MiB" in fault.evidence.detail
    assert 64 << 10 <= launched.usage().peak_memory_kib <= 81 << 10


START_MANY = """
    import os, sys, time
    many = 1
    try:
        while many < int(sys.argv[1]):
            if os.fork() == 0:
                time.sleep(1000)
            many += 1
    except OSError:
        pass
    print(many, flush=True)
    time.sleep(1000)
"""


@pytest.fixture(params=["cgroups", "no cgroups"])
def with_or_without_cgroups(request, monkeypatch, launcher):
    if request.param == "no cgroups":
        if not bubblewrap._counts_by_namespace():
            pytest.skip("needs Linux 5.14")
        monkeypatch.setattr(launcher, "cgroups", Cgroups(()))


@pytest.mark.usefixtures("with_or_without_cgroups")
async def test_processes_refused_by_the_kernel_are_not_charged(python):
    """The kernel's limit is higher than the program's, because the sandbox has processes of its own."""
    launched = await python(START_MANY, "1000", limits=Limits(processes=10))
    many, fault = await first_line(launched), await launched.breach()
    await launched.kill()
    assert 10 <= int(many) < 20
    assert fault is None


@pytest.mark.parametrize(("count", "is_charged"), [(18, False), (19, True)])
async def test_too_many_processes_are_charged_if_the_kernel_does_not_refuse_them(
    place, monkeypatch, count, is_charged
):
    monkeypatch.setattr(platform, "release", lambda: "5.13.19-generic")
    launcher = SandboxLauncher(strongest().bubblewrap, Cgroups(()))
    launched = await launcher.launch(
        [PYTHON, "-c", textwrap.dedent(START_MANY), str(count)],
        folder=place / "own",
        environment={},
        limits=Limits(processes=10),
    )
    printed, fault = await first_line(launched), await launched.breach()
    await launched.kill()
    assert printed == str(count)
    assert (fault is not None) == is_charged
    if is_charged:
        assert fault.cause is Cause.TOO_MANY_PROCESSES
        assert fault.evidence.detail == "the program runs 19 processes and threads; its limit is 10"


@pytest.mark.isolation("full")
async def test_cgroup_counts_cpu_time(python):
    launched = await python("import time\nwhile time.process_time() < 0.3: pass")
    await launched.process.wait()
    assert launched.usage().cpu_s > 0.3
    await launched.kill()
    assert launched.usage().cpu_s > 0.3
    assert await launched.breach() is None


@pytest.mark.isolation("full")
async def test_low_cpu_limit_does_not_slow_the_start_down(launch):
    launched = await launch("sleep", "1000", limits=Limits(cpus=0.01))
    count, limit = launched.cgroup.throttle_count, read_cpu_limit(launched.cgroup)
    await launched.kill()
    assert limit == "1000"
    assert count < 10  # under the program's limit, the start alone would be throttled more often


@pytest.mark.isolation("full")
async def test_program_without_its_cpu_limit_is_killed(launch, monkeypatch):
    limit_cpu = Cgroup.limit_cpu

    def refuse(self, cpus):
        if cpus < 1:
            raise OSError(errno.EINVAL, "refused")
        limit_cpu(self, cpus)

    monkeypatch.setattr(Cgroup, "limit_cpu", refuse)
    with pytest.raises(VoidGame, match=r"no CPU limit for a bot: .*refused"):
        await launch("sleep", "1000", limits=Limits(cpus=0.5))
    assert not list_leftovers()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes copies and devices")
async def test_two_sandboxes_share_no_inode(python, place):
    (place / "own" / "code").write_text("pass")
    program = """
        import json, os, sys, time
        print(json.dumps([(each.st_dev, each.st_ino) for each in map(os.stat, sys.argv[1:])]), flush=True)
        time.sleep(1000)
    """
    paths = [
        *("/usr", "/usr/bin/env", "/etc/ssl", "/etc/ld.so.cache", "/dev", "/proc"),
        *(f"/dev/{name}" for name in ("full", "null", "random", "tty", "urandom", "zero")),
        *(PYTHON, bubblewrap.__file__, str(Path(bubblewrap.__file__).with_name("init.py"))),
        *(str(place / "own"), str(place / "own" / "code")),
    ]
    host = [(each.st_dev, each.st_ino) for each in map(os.stat, paths)]
    both = [await python(program, *paths) for _ in range(2)]
    first, second = [list(map(tuple, json.loads(await first_line(each)))) for each in both]
    for each in both:
        await each.kill()
    shared = [
        path
        for path, *inodes in zip(paths, host, first, second, strict=True)
        if len(set(inodes)) < len(inodes)
    ]
    assert not shared


async def test_folders_are_overlays_if_only_the_program_can_enter_its_scratch_folder(launch, place):
    (place / "scratch").chmod(0o700)
    launched = await launch("stat", "-c", "%d", "/usr")
    assert int(await read_all(launched)) != os.stat("/usr").st_dev  # noqa: PTH116 - as short as can be


async def test_folders_are_bind_mounts_if_bubblewrap_makes_no_overlays(place):
    text = f"""#!/bin/sh
        case "$*" in *--overlay-src*) exit 1;; esac
        exec "{strongest().bubblewrap}" "$@"
        """
    old = tool(place / "lib" / "package" / "bin" / "bwrap", text)
    launched = await SandboxLauncher(old, Cgroups(())).launch(
        ["stat", "-c", "%d", "/usr", "."],
        folder=place / "own",
        environment=PATH,
        access=Access(scratch=place / "scratch"),
    )
    devices = [str(folder.stat().st_dev) for folder in (Path("/usr"), place / "own")]
    assert (await read_all(launched)).split() == devices


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes mounts")
async def test_mounts_inside_a_shown_folder_are_shown(place):
    (place / "own" / "a b" / "mounted").mkdir(parents=True)
    text = f"""
        import asyncio, subprocess
        from pathlib import Path
        import uvloop
        from referee.sandbox import Access
        from referee.sandbox.cgroups import Cgroups
        from referee.sandbox.sandbox import SandboxLauncher
        place = Path({str(place)!r})
        inner = place / "own" / "a b" / "mounted"
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", inner], check=True)
        (inner / "file").write_text("it is here")
        async def main():
            launched = await SandboxLauncher(Path({str(strongest().bubblewrap)!r}), Cgroups(())).launch(
                ["cat", "a b/mounted/file"], folder=place / "own",
                environment={{"PATH": "/usr/bin:/bin"}}, access=Access(scratch=place / "scratch"))
            print((await launched.process.stdout.read()).decode())
            await launched.kill()
        uvloop.run(main())
    """
    referee = await asyncio.create_subprocess_exec(
        *("unshare", "--mount", sys.executable, "-c", textwrap.dedent(text)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert (await referee.communicate())[0] == b"it is here\n"


async def test_program_named_by_a_manifest_is_not_shown(launch, place):
    """A manifest may name a program anywhere, but that does not make the program visible."""
    secret = place / "elsewhere" / "bin"
    secret.mkdir(parents=True)
    (secret / "tool").write_text("#!/bin/sh\necho I am here\n")
    (secret / "tool").chmod(0o755)
    with pytest.raises(Forfeit):
        await launch(str(secret / "tool"))
    (place / "own" / "link").symlink_to(secret / "tool")
    with pytest.raises(Forfeit):
        await launch("./link")


async def test_files_about_the_machine_are_hidden(python):
    program = """
        import json, os
        print(json.dumps([sorted(os.listdir("/etc")), os.listdir(os.path.expanduser("~")),
            os.path.exists("/etc/passwd"), os.path.exists("/var"), os.path.exists("/sys/kernel")]))
    """
    etc, home, *others = json.loads(await read_all(await python(program)))
    assert "ld.so.cache" in etc
    assert not {"hostname", "hosts", "passwd", "shadow", "resolv.conf"} & set(etc)
    assert home == []
    assert others == [False] * 3


async def test_keyrings_are_hidden(launch):
    """If the referee is not root, all bots share its session keyring, and `/proc/keys` tells how many processes use it."""
    launched = await launch("sh", "-c", "cat /proc/keys /proc/key-users; echo end")
    assert await read_all(launched) == "end\n"


async def test_proc_does_not_change_with_what_others_do(python):
    """The program reads all files of /proc that are not about a process, before and after others use the machine."""
    program = """
        import json, os, signal, zlib

        # the first one is random, and the second one tells the frequency of the cores
        skipped = {"/proc/sys/kernel/random/uuid", "/proc/cpuinfo"}

        def read_all():
            found = {}
            for top in set(os.listdir("/proc")) - {"self", "thread-self", "net"}:
                if top.isdecimal():
                    continue
                files = [os.path.join(folder, name) for folder, _, names in os.walk("/proc/" + top)
                    for name in names] or ["/proc/" + top]
                for file in {*files} - skipped:
                    try:
                        with open(file, "rb") as opened:
                            found[file] = zlib.crc32(opened.read(1 << 20))
                    except OSError as error:
                        found[file] = error.errno
            return found

        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        before = read_all()
        print(len(before), flush=True)
        signal.sigwait([signal.SIGTERM])
        after = read_all()
        print(json.dumps([each for each in before if before[each] != after[each]]))
    """
    launched = await python(program)
    assert int(await first_line(launched)) > 100
    with tempfile.TemporaryFile() as file, ThreadPoolExecutor(20) as threads:
        barrier = Barrier(21)
        try:
            for _ in range(20):
                threads.submit(barrier.wait)
            os.posix_fallocate(file.fileno(), 0, 1 << 24)
            fcntl.flock(file, fcntl.LOCK_EX)
            pipes = [os.pipe() for _ in range(100)]
            memory = os.memfd_create("much")
            os.write(memory, bytes(1 << 24))
            launched.terminate()
            changed = json.loads(await read_all(launched))
        finally:
            barrier.abort()  # also after a failure, or the threads would never end
    for descriptor in (memory, *(end for pipe in pipes for end in pipe)):
        os.close(descriptor)
    assert changed == []


async def test_proc_describes_a_machine_of_the_programs_size(python):
    program = """
        import os, re
        from pathlib import Path
        print(re.findall(r"MemTotal: *(\\d+)", Path("/proc/meminfo").read_text())[0])
        print(len(re.findall(r"cpu\\d", Path("/proc/stat").read_text())) == os.cpu_count())
        print(Path("/proc/loadavg").read_text().strip())
        print({line.partition(":")[2].partition(":")[2].strip() for line in Path("/proc/self/cgroup").open()} <= {"/"})
    """
    launched = await python(program, limits=Limits(memory_mib=100))
    assert (await read_all(launched)).splitlines() == [
        str(100 << 10),
        "True",
        "0.00 0.00 0.00 1/1 1",
        "True",
    ]


SYSINFO = """
    import ctypes, os, struct, threading
    libc = ctypes.CDLL(None, use_errno=True)

    def tell(address):
        result = libc.sysinfo(address)
        print(result, result and os.strerror(ctypes.get_errno()), flush=True)

    fields = ctypes.create_string_buffer(200)
    tell(fields)
    print(*struct.unpack_from("q9QH6xQQI4x", fields)[1:])
    print(fields.raw[112:].count(0))
    tell(None)
    tell(ctypes.c_void_p(-1))
    thread = threading.Thread(target=tell, args=(fields,))
    thread.start()
    thread.join()
    if os.fork() == 0:
        libc.prctl(4, 0, 0, 0, 0)  # nobody may read or write the memory of this process
        tell(fields)
        os._exit(0)
    os.wait()
    print(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20)
"""


@pytest.mark.skipif(os.uname().machine not in seccomp.ARCHITECTURES, reason="no filter for it")
async def test_sysinfo_describes_an_idle_machine_of_the_programs_size(python):
    size = 100 << 20
    launched = await python(SYSINFO, limits=Limits(memory_mib=100))
    assert (await read_all(launched)).splitlines() == [
        "0 0",
        f"0 0 0 {size} {size} 0 0 0 0 1 0 0 1",
        str(200 - 112),
        "-1 Bad address",
        "-1 Bad address",
        "0 0",
        "-1 Operation not permitted",
        "100",
    ]


async def test_many_processes_are_answered_and_killed_callers_are_forgotten(python):
    program = """
        import ctypes, os, signal
        libc, fields = ctypes.CDLL(None), ctypes.create_string_buffer(200)
        for round in range(5):
            callers = []
            for _ in range(20):
                callers.append(os.fork())
                if callers[-1] == 0:
                    while libc.sysinfo(fields) == 0:
                        pass
                    os._exit(1)
            for caller in callers:
                os.kill(caller, signal.SIGKILL)
            print({os.waitpid(caller, 0)[1] for caller in callers})
        print(libc.sysinfo(fields))
    """
    assert (await read_all(await python(program))).splitlines() == [*["{9}"] * 5, "0"]


def call_sysinfo_if_the_kernel_cannot_ask(refusing):
    """Return the report of `init.py` and the process of a program that prints what sysinfo returns."""
    program = (
        "import ctypes, os; print(ctypes.CDLL(None).sysinfo(ctypes.create_string_buffer(200)))"
    )
    reading, report = os.pipe()
    done = subprocess.run(
        [
            *(PYTHON, "-I", "-S", str(INIT), str(report), "--sysinfo", "1", "", refusing.hex()),
            *("--", PYTHON, "-c", program),
        ],
        pass_fds=(report,),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: ctypes.CDLL(None).prctl(38, 1, 0, 0, 0),  # as bubblewrap does
    )
    os.close(report)
    with open(reading) as lines:  # noqa: PTH123 - a descriptor
        return lines.read(), done


@pytest.mark.skipif(os.uname().machine not in seccomp.ARCHITECTURES, reason="no filter for it")
def test_sysinfo_is_refused_if_the_kernel_cannot_ask():
    _, refusing = seccomp.build_sysinfo_filters(os.uname().machine)
    _, done = call_sysinfo_if_the_kernel_cannot_ask(refusing)
    assert done.stdout == "-1\n", done.stderr


@pytest.mark.skipif(os.uname().machine not in seccomp.ARCHITECTURES, reason="no filter for it")
def test_program_is_not_started_if_sysinfo_cannot_be_refused_either():
    report, done = call_sysinfo_if_the_kernel_cannot_ask(b"")
    assert report == "refused 0 the filter for sysinfo cannot be set: Invalid argument\n"
    assert done.stdout == "", done.stderr
