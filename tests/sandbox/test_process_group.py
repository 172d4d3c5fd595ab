"""Tests programs that run without isolation in process groups of their own, with real processes."""

import asyncio
import errno
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from process_groups import ENVIRONMENT, descendants, first_line, read_all
from programs import LONG_NAME, little_memory, long_program, signals

from referee.errors import Cause, Forfeit, VoidGame
from referee.sandbox import DEFAULT_LIMITS, process_tree
from referee.sandbox.process_group import ProcessGroup, ProcessGroupLauncher
from referee.sandbox.process_tree import PROCESS_TREES
from referee.sandbox.shared_memory import SHARED_MEMORY

pytestmark = pytest.mark.usefixtures("only_own_processes")


def open_descriptors():
    """Return the number of open file descriptors, when the threads that read ended programs have closed theirs."""
    until_s = time.monotonic() + 5
    while any(each.name == "output" for each in threading.enumerate()):
        assert time.monotonic() < until_s, "an output is still read"
        time.sleep(0.001)
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_the_environment_is_exactly_what_was_given(python):
    program = await python("import os; print(dict(os.environ))")
    assert eval(await read_all(program)) == ENVIRONMENT  # noqa: S307


async def test_the_folder_is_the_working_directory(python, tmp_path):
    assert await read_all(await python("import os; print(os.getcwd())")) == f"{tmp_path}\n"


async def test_no_file_descriptor_of_the_referee_is_inherited(python, launch):
    other = await launch("sleep", "1000")
    leak = os.dup(2)
    os.set_inheritable(leak, True)  # noqa: FBT003 - the function takes no keywords
    program = await python("import os; print(os.listdir('/proc/self/fd'))")
    assert eval(await read_all(program)) == ["0", "1", "2", "3"]  # noqa: S307 - 3 lists the folder
    os.close(leak)
    await other.kill()


async def test_signal_handlers_are_the_defaults(python):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a worker
    try:
        program = await python("""
            for line in open("/proc/self/status"):
                if line.startswith(("SigBlk", "SigIgn")):
                    print(line.split()[1])
        """)
    finally:
        signal.signal(signal.SIGINT, before)
    blocked, ignored = map(signals, (await read_all(program)).split())
    python_own = {signal.SIGPIPE, signal.SIGXFSZ}
    assert blocked == set()
    assert ignored <= python_own


async def test_program_of_a_real_time_referee_has_the_ordinary_scheduler(python):
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))  # as in a worker
    try:
        program = await python("""
            import os
            print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))
        """)
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    assert (await read_all(program)).split() == [str(os.SCHED_OTHER), str(nice)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these limits")
async def test_program_may_not_raise_its_priority_even_if_the_referee_may(python):
    kinds = (resource.RLIMIT_RTPRIO, resource.RLIMIT_NICE)
    before = [resource.getrlimit(kind) for kind in kinds]
    try:
        for kind in kinds:
            with suppress(ValueError):  # only root may raise a limit
                resource.setrlimit(kind, (5, 5))
        program = await python("""
            import resource
            print(*resource.getrlimit(resource.RLIMIT_RTPRIO), *resource.getrlimit(resource.RLIMIT_NICE))
        """)
    finally:
        for kind, limits in zip(kinds, before, strict=True):
            resource.setrlimit(kind, limits)
    assert (await read_all(program)).split() == ["0"] * 4


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the idle class")
def test_process_that_may_not_leave_the_idle_class_stays_in_it():
    program = """
        import os
        from referee.sandbox.shim import run_in_short_slices
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        if os.geteuid() == 0:  # root may leave it
            os.setuid(65534)
        run_in_short_slices()
        print(os.sched_getscheduler(0), flush=True)
        os._exit(0)  # this user may not write what coverage has measured
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{os.SCHED_IDLE}\n", "")


async def test_sigpipe_is_not_ignored_in_other_languages(launch):
    program = await launch("sh", "-c", "grep SigIgn /proc/self/status")
    assert signals((await read_all(program)).split()[1]) == set()


async def test_default_limits_hold_without_limits(python):
    program = await python("import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))")
    assert (await read_all(program)).split() == [str(DEFAULT_LIMITS.open_files)] * 2


async def test_standard_input_is_empty(python):
    assert await read_all(await python("import sys; print(repr(sys.stdin.read()))")) == "''\n"


@pytest.fixture
def refused(launch):
    async def refused(*command):
        with pytest.raises(Forfeit) as raised:
            await launch(*command)
        assert raised.value.cause is Cause.NO_START
        assert not descendants()
        return raised.value.evidence.detail

    return refused


async def test_missing_program_is_no_start(refused):
    assert await refused("no-such-program") == (
        "the program cannot be started: no-such-program is not installed, or not in PATH"
    )


async def test_program_without_execute_permission_does_not_start(refused, tmp_path):
    (tmp_path / "bot").write_text("#!/bin/sh\n")
    assert await refused("./bot") == (
        "the program cannot be started: ./bot: Permission denied; it must be a file that may be executed (`chmod +x`)"
    )


async def test_script_without_an_interpreter_line_does_not_start(refused, tmp_path):
    (tmp_path / "bot").write_text("print()\n")
    (tmp_path / "bot").chmod(0o755)
    assert await refused("./bot") == (
        "the program cannot be started: ./bot: Exec format error; it must be a program for this machine, or a script whose first line"
        " is #! and the path of a program"
    )


@pytest.mark.parametrize("line", ["#!/no/such/interpreter\n", "#!/bin/sh\r\n"])
async def test_script_with_a_missing_interpreter_does_not_start(refused, tmp_path, line):
    (tmp_path / "bot").write_bytes(line.encode())
    (tmp_path / "bot").chmod(0o755)
    assert await refused("./bot") == (
        "the program cannot be started: ./bot: No such file or directory; if this file exists, the program in its first line (#!)"
        " does not, perhaps because the file has Windows line ends"
    )


async def test_folder_instead_of_a_program_does_not_start(refused, tmp_path):
    (tmp_path / "bot").mkdir()
    assert await refused("./bot") == (
        "the program cannot be started: ./bot: Permission denied; it must be a file that may be executed (`chmod +x`)"
    )


async def test_missing_working_directory_is_no_start(tmp_path):
    with pytest.raises(Forfeit) as raised:
        await ProcessGroupLauncher().launch(
            ["true"], folder=tmp_path / "gone", environment=ENVIRONMENT
        )
    assert raised.value.cause is Cause.NO_START
    assert raised.value.evidence.detail == (
        f"the program cannot be started: {tmp_path}/gone: No such file or directory"
    )


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EAGAIN, errno.ENOMEM])
async def test_shortage_of_a_resource_voids_the_game(launch, monkeypatch, number):
    async def full(*_args, **_more):
        raise OSError(number, os.strerror(number))

    first = await launch("true")  # opens what all programs of this process share
    await first.process.wait()
    await first.kill()
    before = open_descriptors()
    monkeypatch.setattr(asyncio, "create_subprocess_exec", full)
    with pytest.raises(VoidGame, match="no room for another process"):
        await launch("true")
    assert open_descriptors() <= before, "descriptors of an earlier test may be closed meanwhile"


async def test_lack_of_file_descriptors_voids_the_game(launch, monkeypatch):
    def full():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pipe", full)
    with pytest.raises(VoidGame, match="no file descriptors left"):
        await launch("true")


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EMFILE])
async def test_watch_or_sweeper_that_cannot_be_started_voids_the_game(launch, monkeypatch, number):
    def fail():
        raise OSError(number, os.strerror(number))

    first = await launch("true")  # opens what all programs of this process share
    await first.process.wait()
    await first.kill()
    before = open_descriptors()
    monkeypatch.setattr(PROCESS_TREES, "_sweeper", None)
    monkeypatch.setattr(process_tree, "start_sweeper", fail)
    with pytest.raises(VoidGame, match="the sweeper cannot be started"):
        await launch("true")
    monkeypatch.setattr(SHARED_MEMORY, "start", fail)
    with pytest.raises(VoidGame, match="the shared memory cannot be watched"):
        await launch("true")
    assert open_descriptors() <= before


async def test_kill_that_was_cancelled_is_finished(launch, monkeypatch):
    program = await launch("sleep", "1000")
    entered, go_on, remove = asyncio.Event(), asyncio.Event(), SHARED_MEMORY.remove_leftovers

    async def wait_and_remove(pid):
        entered.set()
        await go_on.wait()
        await remove(pid)

    monkeypatch.setattr(SHARED_MEMORY, "remove_leftovers", wait_and_remove)
    killing = asyncio.ensure_future(program.kill())
    await entered.wait()
    killing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await killing
    go_on.set()
    await program.kill()
    assert program.process.pid not in PROCESS_TREES._programs
    assert not descendants()


async def test_launch_cancelled_before_the_program_runs_leaves_nothing(launch, monkeypatch):
    """A process that never becomes the program takes the shim's place, so that the launch waits."""
    started = asyncio.Event()
    create = asyncio.create_subprocess_exec

    async def stopped(*_command, **more):
        process = await create(sys.executable, "-c", "import time; time.sleep(1000)", **more)
        started.set()
        return process

    await (await launch("true")).kill()  # the loop keeps a descriptor from the first process on
    before = open_descriptors()
    monkeypatch.setattr(asyncio, "create_subprocess_exec", stopped)
    launching = asyncio.ensure_future(launch("true"))
    await started.wait()
    launching.cancel()
    with suppress(asyncio.CancelledError):
        await launching
    assert launching.cancelled()
    assert not descendants()
    assert open_descriptors() == before


async def test_launch_cancelled_while_the_shim_is_created_leaves_nothing(launch):
    await (await launch("true")).kill()  # the loop keeps a descriptor from the first process on
    before = open_descriptors()
    for _ in range(10):
        launching = asyncio.ensure_future(launch("sleep", "1000"))
        while not (descendants() or launching.done()):  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)
        launching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await launching
        assert not descendants()
        assert open_descriptors() == before


async def test_long_arguments_are_not_read_for_the_name_of_a_process(python, tmp_path):
    program = await python(long_program(tmp_path / "other.py"))
    assert await first_line(program) == "up"
    with little_memory():
        assert program.list_others() == [LONG_NAME]


async def test_terminate_sends_sigterm(python):
    program = await python("""
        import signal
        signal.signal(signal.SIGTERM, lambda *_: exit(9))
        print("up", flush=True)
        signal.pause()
    """)
    assert await first_line(program) == "up"
    program.terminate()
    assert await program.process.wait() == 9
    await program.kill()


GARBAGE = """
import asyncio, gc, os
import uvloop
from referee import configure_process

configure_process()
from referee.sandbox.process_group import ProcessGroupLauncher
import grpc
from pathlib import Path

if os.fork() == 0:
    os._exit(gc.isenabled() and gc.get_freeze_count() > 0)
print(os.waitstatus_to_exitcode(os.wait()[1]), gc.isenabled())
os.register_at_fork(after_in_child=gc.collect)  # as any object that is made there may do

async def main():
    server = grpc.aio.server()
    server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await server.stop(None)
    cycle = [server, asyncio.get_running_loop()]
    cycle.append(cycle)
    del server, cycle
    launched = await ProcessGroupLauncher().launch(
        ["true"], folder=Path("."), environment={"PATH": os.environ["PATH"]}
    )
    print(await launched.process.wait(), gc.isenabled(), flush=True)
    await launched.kill()

gc.disable()
uvloop.run(main())
"""


def test_program_starts_while_a_grpc_server_is_garbage():
    """The destructor of a gRPC server waits for a thread, which does not exist in the child of a fork."""
    referee = subprocess.run(
        [sys.executable, "-c", GARBAGE], capture_output=True, text=True, timeout=60, check=True
    )
    assert referee.stdout == "1 True\n0 True\n", "the garbage collector is still enabled"


def test_shim_forbids_higher_priorities_and_message_queues():
    """Root without CAP_SYS_RESOURCE cannot raise these limits first, so the limits that the shim sets are recorded."""
    program = """
        import os, resource, sys
        from referee.sandbox import shim
        kept = {}
        resource.setrlimit = lambda kind, limits: kept.__setitem__(kind, limits)
        def execvp(*_):
            kinds = resource.RLIMIT_RTPRIO, resource.RLIMIT_NICE, resource.RLIMIT_MSGQUEUE
            print(*(kept[kind] for kind in kinds), flush=True)
            os._exit(0)
        os.execvp = execvp
        sys.argv = ["shim", str(os.getppid()), str(os.dup(1)), "--", "true"]
        shim.main()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("(0, 0) (0, 0) (0, 0)\n", "")


async def test_program_that_ends_while_it_is_measured_is_not_scheduled_again():
    async def breach():
        process.returncode = 0

    process, scheduler = SimpleNamespace(returncode=None), MagicMock()
    program = SimpleNamespace(
        process=process,
        scheduler=scheduler,
        _resources=SimpleNamespace(breach=lambda: None),
        _monitor=SimpleNamespace(breach=breach),
    )
    assert await ProcessGroup.breach(program) is None
    scheduler.refresh.assert_not_called()
