"""Programs started, and ended with all they started. Real processes, no gRPC."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from referee.errors import Cause, Forfeit, VoidGame
from referee.sandbox import process_tree
from referee.sandbox.process_group import ProcessGroupLauncher

ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "REFEREE_TOKEN": "a token"}


@pytest.fixture
def launch(tmp_path):
    launcher = ProcessGroupLauncher()

    async def launch(*command, environment=ENVIRONMENT):
        return await launcher.launch(command, folder=tmp_path, environment=environment)

    return launch


@pytest.fixture
def python(launch):
    def python(program, **more):
        return launch(sys.executable, "-c", textwrap.dedent(program), **more)

    return python


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


_left: list[psutil.Process] = []


@pytest.fixture(autouse=True)
async def _left_by_other_tests():
    """They adopt the orphans of programs that they kill, and wait for none of them.

    What a test leaves itself, because it fails, is ended: the event loop waits for its outputs.
    """
    psutil.wait_procs(psutil.Process().children(), timeout=0)
    _left[:] = psutil.Process().children(recursive=True)
    yield
    process_tree.kill_all(children())


def children():
    return [each for each in psutil.Process().children(recursive=True) if each not in _left]


async def said(launched):
    """All of standard output, once the program has ended."""
    text = await launched.process.stdout.read()
    await launched.kill()
    return text.decode()


async def first_line(launched):
    return (await launched.process.stdout.readline()).decode().strip()


def signals(mask):
    """The signals of a line of `/proc/PID/status`, but for the two that the C library keeps for itself.

    It leaves these ignored in what `posix_spawn` starts, so with Python 3.13 in the processes of pytest-xdist.
    """
    return {each for each in signal.valid_signals() if int(mask, 16) >> each - 1 & 1}


async def test_the_environment_is_exactly_what_was_given(python):
    launched = await python("import os; print(dict(os.environ))")
    assert eval(await said(launched)) == ENVIRONMENT  # noqa: S307


async def test_the_folder_is_the_working_directory(python, tmp_path):
    assert await said(await python("import os; print(os.getcwd())")) == f"{tmp_path}\n"


async def test_no_file_descriptor_of_the_referee_is_inherited(python, launch):
    other = await launch("sleep", "1000")
    leak = os.dup(2)
    os.set_inheritable(leak, True)  # noqa: FBT003 - the function takes no keywords
    launched = await python("import os; print(os.listdir('/proc/self/fd'))")
    assert eval(await said(launched)) == ["0", "1", "2", "3"]  # noqa: S307 - 3 lists the folder
    os.close(leak)
    await other.kill()


async def test_signal_handlers_are_the_defaults(python):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a worker
    try:
        launched = await python("""
            for line in open("/proc/self/status"):
                if line.startswith(("SigBlk", "SigIgn")):
                    print(line.split()[1])
        """)
    finally:
        signal.signal(signal.SIGINT, before)
    blocked, ignored = map(signals, (await said(launched)).split())
    python_own = {signal.SIGPIPE, signal.SIGXFSZ}
    assert blocked == set()
    assert ignored <= python_own


async def test_program_of_a_real_time_referee_has_the_ordinary_scheduler(python):
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))  # as in a worker
    try:
        launched = await python("""
            import os
            print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))
        """)
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    assert (await said(launched)).split() == [str(os.SCHED_OTHER), str(nice)]


async def test_sigpipe_is_not_ignored_in_other_languages(launch):
    launched = await launch("sh", "-c", "grep SigIgn /proc/self/status")
    assert signals((await said(launched)).split()[1]) == set()


async def test_standard_input_is_empty(python):
    assert await said(await python("import sys; print(repr(sys.stdin.read()))")) == "''\n"


@pytest.fixture
def refused(launch):
    async def refused(*command):
        with pytest.raises(Forfeit) as raised:
            await launch(*command)
        assert raised.value.cause is Cause.NO_START
        assert not children()
        return raised.value.evidence.detail

    return refused


async def test_missing_program_is_no_start(refused):
    assert await refused("no-such-program") == (
        "cannot be started: no-such-program is not installed, or not in PATH"
    )


async def test_program_without_execute_permission_does_not_start(refused, tmp_path):
    (tmp_path / "bot").write_text("#!/bin/sh\n")
    assert await refused("./bot") == "cannot be started: ./bot: Permission denied"


async def test_script_without_an_interpreter_line_does_not_start(refused, tmp_path):
    (tmp_path / "bot").write_text("print()\n")
    (tmp_path / "bot").chmod(0o755)
    assert await refused("./bot") == "cannot be started: ./bot: Exec format error"


async def test_script_with_a_missing_interpreter_does_not_start(refused, tmp_path):
    (tmp_path / "bot").write_text("#!/no/such/interpreter\n")
    (tmp_path / "bot").chmod(0o755)
    assert await refused("./bot") == "cannot be started: ./bot: No such file or directory"


async def test_folder_instead_of_a_program_does_not_start(refused, tmp_path):
    (tmp_path / "bot").mkdir()
    assert await refused("./bot") == "cannot be started: ./bot: Permission denied"


async def test_missing_working_directory_is_no_start(tmp_path):
    with pytest.raises(Forfeit) as raised:
        await ProcessGroupLauncher().launch(
            ["true"], folder=tmp_path / "gone", environment=ENVIRONMENT
        )
    assert raised.value.cause is Cause.NO_START
    assert raised.value.evidence.detail == (
        f"cannot be started: {tmp_path}/gone: No such file or directory"
    )


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EAGAIN, errno.ENOMEM])
async def test_shortage_of_a_resource_voids_the_game(launch, monkeypatch, number):
    async def full(*_args, **_more):
        raise OSError(number, os.strerror(number))

    before = descriptors()
    monkeypatch.setattr(asyncio, "create_subprocess_exec", full)
    with pytest.raises(VoidGame, match="no room for another process"):
        await launch("true")
    assert descriptors() == before


async def test_lack_of_file_descriptors_voids_the_game(launch, monkeypatch):
    def full():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pipe", full)
    with pytest.raises(VoidGame, match="no file descriptors left"):
        await launch("true")


async def test_launch_cancelled_before_the_program_runs_leaves_nothing(launch, monkeypatch):
    """The shim is stopped before it becomes the program, so that the launch has to wait for it."""
    started = asyncio.Event()
    create = asyncio.create_subprocess_exec

    async def stopped(*_command, **more):
        process = await create(sys.executable, "-c", "import time; time.sleep(1000)", **more)
        started.set()
        return process

    await (await launch("true")).kill()  # the loop keeps a descriptor from the first process on
    before = descriptors()
    monkeypatch.setattr(asyncio, "create_subprocess_exec", stopped)
    launching = asyncio.ensure_future(launch("true"))
    await started.wait()
    launching.cancel()
    with suppress(asyncio.CancelledError):
        await launching
    assert launching.cancelled()
    assert not children()
    assert descriptors() == before


async def test_terminate_sends_sigterm(python):
    launched = await python("""
        import signal
        signal.signal(signal.SIGTERM, lambda *_: exit(9))
        print("up", flush=True)
        signal.pause()
    """)
    assert await first_line(launched) == "up"
    launched.terminate()
    assert await launched.process.wait() == 9
    await launched.kill()


PROCESS_TREES = {
    "alone": "",
    "children": """
        for _ in range(3):
            if os.fork() == 0:
                time.sleep(1000)
    """,
    "grandchildren": """
        if os.fork() == 0:
            os.fork()
            time.sleep(1000)
    """,
    "child in a session of its own": """
        if os.fork() == 0:
            os.setsid()
            time.sleep(1000)
    """,
    "child with an environment of its own": """
        if os.fork() == 0:
            os.execve("/bin/sleep", ["sleep", "1000"], {})
    """,
    "daemon": """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(1000)
            os._exit(0)
        os.wait()
    """,
    "daemon with an environment of its own": """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execve("/bin/sleep", ["sleep", "1000"], {})
            os._exit(0)
        os.wait()
    """,
    "daemon that leads a session": """
        if os.fork() == 0:
            if os.fork() == 0:
                os.setsid()
                os.execve("/bin/sh", ["sh", "-c", "sleep 1000; sleep 1000"], {})
            os._exit(0)
        os.wait()
    """,
    "orphan with an environment of its own": """
        if os.fork() == 0:
            if os.fork() == 0:
                os.execve("/bin/sleep", ["sleep", "1000"], {})
            os._exit(0)
        os.wait()
    """,
    "orphans that have ended": """
        for _ in range(3):
            if os.fork() == 0:
                if os.fork() == 0:
                    os._exit(0)
                os._exit(0)
            os.wait()
    """,
    "daemons that have ended": """
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os._exit(0)
                os._exit(0)
            os.wait()
    """,
    "children that it never looked after": """
        for _ in range(3):
            if os.fork() == 0:
                os._exit(0)
    """,
    "forks and exits for ever": """
        if os.fork() == 0:
            while True:
                if os.fork():
                    os._exit(0)
    """,
}


@pytest.mark.parametrize("ends_first", [False, True], ids=["killed", "ended by itself"])
@pytest.mark.parametrize("family", PROCESS_TREES)
async def test_kill_ends_the_whole_process_tree(python, family, ends_first):
    launched = await python(
        "import os, signal, time\n"
        + textwrap.dedent(PROCESS_TREES[family])
        + "\nprint('up', flush=True)\n"
        + ("os._exit(3)" if ends_first else "time.sleep(1000)")
    )
    assert await first_line(launched) == "up"
    if ends_first:
        assert await launched.process.wait() == 3
    await launched.kill()
    assert not children()
    await launched.kill()  # once is enough


async def test_child_started_during_kill_is_killed(python, monkeypatch):
    """Between the look and its own end a program may start one more."""
    launched = await python("""
        import os, signal, time
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        print("up", flush=True)
        signal.sigwait({signal.SIGUSR1})
        if os.fork() == 0:
            os.setsid()
        time.sleep(1000)
    """)
    assert await first_line(launched) == "up"
    look, looked = process_tree.PROCESS_TREES.list_descendants, []

    def look_too_early(pid):
        looked.append(look(pid))
        if len(looked) == 1:
            os.kill(pid, signal.SIGUSR1)
            until_s = time.monotonic() + 10
            while time.monotonic() < until_s and not has_left(look(pid), pid):
                pass
        return looked[-1]

    monkeypatch.setattr(process_tree.PROCESS_TREES, "list_descendants", look_too_early)
    await launched.kill()
    assert looked[0] == []
    assert any(looked)
    assert not children()


def has_left(family, pid):
    return any(os.getsid(each.pid) != pid for each in family)


async def test_stopped_program_is_killed(python):
    launched = await python("""
        import os, signal
        print("up", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    """)
    assert await first_line(launched) == "up"
    await launched.kill()
    assert launched.process.returncode == -signal.SIGKILL
    assert not children()


@pytest.mark.parametrize("token", ["its own", ENVIRONMENT["REFEREE_TOKEN"]])
async def test_kill_spares_other_programs(launch, python, token):
    """Also one that has found out this one's token."""
    other = await python(
        "import time; print('up', flush=True); time.sleep(1000)",
        environment={**ENVIRONMENT, "REFEREE_TOKEN": token},
    )
    assert await first_line(other) == "up"
    there = children()
    await (await launch("sleep", "1000")).kill()
    assert children() == there
    await other.kill()
    assert not children()


async def test_program_that_is_being_started_is_no_orphan(launch):
    programs = await asyncio.gather(*(launch("sleep", "1000") for _ in range(4)))
    *others, last = await asyncio.gather(
        *(program.kill() for program in programs),
        *(launch("true") for _ in range(4)),
        launch("cat"),
    )
    for other in others[4:]:
        assert await other.process.wait() == 0
        await other.kill()
    await last.kill()
    assert not children()


async def test_kill_spares_the_referees_own_children(python):
    own = await asyncio.create_subprocess_exec("sleep", "1000")
    await (await python(textwrap.dedent(PROCESS_TREES["daemon"]))).kill()
    assert [child.pid for child in children()] == [own.pid]
    own.kill()
    assert await own.wait() == -signal.SIGKILL


async def test_reap_collects_orphans_that_have_ended(launch):
    launched = await launch(
        "sh", "-c", "for i in 1 2 3; do (setsid true &); done; echo; exec sleep 1000"
    )
    await launched.process.stdout.readline()
    launcher = ProcessGroupLauncher()
    while len(children()) > 1:
        launcher.reap()
        await asyncio.sleep(0)
    assert children()[0].pid == launched.process.pid
    launcher.reap()
    await launched.kill()
    launcher.reap()


async def test_reap_leaves_exit_codes_of_programs(launch):
    launcher = ProcessGroupLauncher()
    launched = await launch("sh", "-c", "exit 5")
    while psutil.Process(launched.process.pid).status() != psutil.STATUS_ZOMBIE:
        launcher.reap()
    launcher.reap()
    assert await launched.process.wait() == 5
    await launched.kill()


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
    """A server of gRPC that nobody has any more waits for a thread, which the child of a fork has not."""
    referee = subprocess.run(
        [sys.executable, "-c", GARBAGE], capture_output=True, text=True, timeout=60, check=True
    )
    assert referee.stdout == "1 True\n0 True\n", "the collector goes on"


KILLED_REFEREE = """
import asyncio, os, sys
from pathlib import Path
from referee.sandbox.process_group import ProcessGroupLauncher

async def main():
    for number in range(2):
        launched = await ProcessGroupLauncher().launch(
            [sys.executable, "-c", PROGRAM],
            folder=Path("."),
            environment={"PATH": os.environ["PATH"], "REFEREE_TOKEN": f"token {number}"},
        )
        pids = [launched.process.pid, *map(int, (await launched.process.stdout.readline()).split())]
        if number == 0:
            await launched.kill()
    print(*pids, flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""
MOTHER = """
import os, sys, time
other = os.fork()
if other == 0:
    time.sleep(1000)
daemon, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    pid = os.fork()
    if pid == 0:
        time.sleep(1000)
    os.write(told, str(pid).encode())
    os._exit(0)
os.wait()
disguised = os.fork()
if disguised == 0:
    os.execve("/bin/sleep", ["sleep", "1000"], {})
print(other, disguised, os.read(daemon, 99).decode(), flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_process_trees_end_with_a_killed_referee(tmp_path, number):
    referee = subprocess.Popen(
        [sys.executable, "-c", f"PROGRAM = {MOTHER!r}\n{KILLED_REFEREE}"],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
    )
    with referee, subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True) as bystander:
        family = [psutil.Process(int(pid)) for pid in referee.stdout.readline().split()]
        assert len(family) == 4
        referee.send_signal(number)
        referee.wait()
        _, alive = psutil.wait_procs(family, timeout=20)
        assert not alive
        assert bystander.poll() is None
        bystander.kill()
    assert not psutil.wait_procs(children(), timeout=20)[1], "the sweeper has ended too"


async def test_sweeper_of_another_process_is_spared_and_reaped(launch):
    """A process that has started programs adopts those of the processes that it starts."""
    await (await launch("true")).kill()
    telling = process_tree._start_sweeper()
    (sweeper,) = children()
    await (await launch("sleep", "1000")).kill()
    assert children() == [sweeper]
    assert sweeper.status() != psutil.STATUS_ZOMBIE
    os.close(telling)
    launcher = ProcessGroupLauncher()
    while children():
        launcher.reap()
        await asyncio.sleep(0)


@pytest.mark.parametrize(("told", "spared"), [("+{0} a\n-{0}\n", True), ("+{0} b\n", False)])
def test_sweeper_spares_programs_that_are_gone_or_have_another_token(told, spared):
    with subprocess.Popen(["/bin/sleep", "1000"], env={}, start_new_session=True) as sleeper:
        done = subprocess.run(
            process_tree._SWEEPER,
            input=told.format(sleeper.pid),
            capture_output=True,  # so this waits for its end
            text=True,
            timeout=60,
            check=True,
        )
        assert (done.stdout, done.stderr) == ("", "")
        assert (sleeper.poll() is None) == spared
        sleeper.kill()
