"""Tests that a program ends with everything that it has started, with real processes."""

import asyncio
import errno
import fcntl
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
from descendants import running
from extended import extend_all_but
from process_groups import descendants, first_line
from programs import tool

from referee.sandbox import process_group, process_tree, sweeper
from referee.sandbox.process_group import ProcessGroupLauncher

pytestmark = pytest.mark.usefixtures("only_own_processes")


PROGRAMS = {
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
    "children that it never waits for": """
        for _ in range(3):
            if os.fork() == 0:
                os._exit(0)
    """,
    "forks and exits for ever": """
        if os.fork() == 0:
            until_s = time.monotonic() + 10
            while time.monotonic() < until_s:
                if os.fork():
                    os._exit(0)
            os._exit(0)
    """,
}


# All of them end after some seconds: if a test failed and nobody killed them, they would use up the pids of the machine.
RESPAWNERS = {
    "forks and exits": """
        import os, time
        until_s = time.monotonic() + 10
        os.write(1, b"up\\n")
        while time.monotonic() < until_s:
            if os.fork():
                os._exit(0)
            os.setsid()
    """,
    "is replaced when it ends": """
        import os
        started = False
        while True:
            reading, writing = os.pipe()
            if os.fork():
                os.close(reading)
                if not started:
                    os.write(1, b"up\\n")
                while True:
                    os.wait()
            started = True
            os.setsid()
            os.close(writing)
            os.read(reading, 1)
            os.close(reading)
    """,
    "several that fork and exit": """
        import os, time
        until_s = time.monotonic() + 10
        for _ in range(4):
            os.fork()
        os.write(1, b"up\\n")
        while time.monotonic() < until_s:
            if os.fork():
                os._exit(0)
            os.setsid()
    """,
}


@pytest.mark.parametrize("ends_first", [False, True], ids=["killed", "ended by itself"])
@pytest.mark.parametrize("tree", PROGRAMS)
async def test_kill_ends_the_whole_process_tree(python, tree, ends_first):
    program = await python(
        "import os, signal, time\n"
        + textwrap.dedent(PROGRAMS[tree])
        + "\nprint('up', flush=True)\n"
        + ("os._exit(3)" if ends_first else "time.sleep(1000)")
    )
    assert await first_line(program) == "up"
    if ends_first:
        assert await program.process.wait() == 3
    await program.kill()
    assert not descendants()
    await program.kill()  # does nothing the second time


async def test_kill_removes_more_zombies_than_one_call_of_reap(python, monkeypatch):
    program = await python(
        "import os, time\n"
        "for _ in range(60):\n"
        "    if os.fork() == 0:\n"
        "        break\n"
        "else:\n"
        "    print('up', flush=True)\n"
        "time.sleep(1000)"
    )
    assert await first_line(program) == "up"
    monkeypatch.setattr(process_tree, "_REAP_LIMIT", 10)
    await program.kill()
    assert not descendants()


async def test_zombies_are_killed_without_a_search_for_their_children(python, monkeypatch):
    search, searched = process_tree._descendants, []

    def record(pid):
        searched.append(pid)
        return search(pid)

    with monkeypatch.context() as patched:
        # the monitor of the limits would remove zombies at any moment
        patched.setattr(process_tree.ProcessTrees, "reap", lambda _: None)
        program = await python("""
            import os, time
            for _ in range(20):
                if os.fork() == 0:
                    if os.fork() == 0:
                        os._exit(0)
                    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # leaves the zombie
                    os._exit(0)
                os.wait()
            print("up", flush=True)
            time.sleep(1000)
        """)
        assert await first_line(program) == "up"
        patched.setattr(process_tree, "_descendants", record)
        assert len(process_tree.PROCESS_TREES.list_descendants(program.process.pid)) == 20
        assert searched == [program.process.pid]
    await program.kill()
    assert not descendants()


@pytest.mark.parametrize(
    "environment",
    extend_all_but(["cleared"], ["inherited", "cleared"], "starts more programs on the rungs"),
)
@pytest.mark.parametrize(
    "respawner",
    extend_all_but(["forks and exits"], RESPAWNERS, "starts more programs on the rungs"),
)
async def test_process_that_starts_itself_anew_is_killed(python, respawner, environment):
    """Each new process leads a session of its own, so that no signal reaches several of them at once."""
    own = textwrap.dedent(RESPAWNERS[respawner])
    words = [sys.executable, "-c", own]
    program = await python(f"""
        import os, time
        if os.fork() == 0:
            os.setsid()
            os.execve({sys.executable!r}, {words!r}, {{}} if {environment!r} == "cleared" else os.environ)
        time.sleep(1000)
    """)
    assert await first_line(program) == "up"
    await program.kill()
    assert not running()


async def test_stopped_program_is_killed(python):
    program = await python("""
        import os, signal
        print("up", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    """)
    assert await first_line(program) == "up"
    await program.kill()
    assert program.process.returncode == -signal.SIGKILL
    assert not descendants()


async def test_kill_spares_other_programs(launch, python):
    other = await python("import time; print('up', flush=True); time.sleep(1000)")
    assert await first_line(other) == "up"
    before = descendants()
    await (await launch("sleep", "1000")).kill()
    assert descendants() == before
    await other.kill()
    assert not descendants()


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
    assert not descendants()


async def test_kill_spares_the_referees_own_children(python):
    own = await asyncio.create_subprocess_exec("sleep", "1000")
    await (await python(textwrap.dedent(PROGRAMS["daemon"]))).kill()
    assert [child.pid for child in descendants()] == [own.pid]
    own.kill()
    assert await own.wait() == -signal.SIGKILL


async def test_reap_collects_orphans_that_have_ended(launch):
    program = await launch(
        "sh", "-c", "for i in 1 2 3; do (setsid true &); done; echo; exec sleep 1000"
    )
    await program.process.stdout.readline()
    launcher = ProcessGroupLauncher()
    while len(descendants()) > 1:
        launcher.reap()
        await asyncio.sleep(0)
    assert descendants()[0].pid == program.process.pid
    launcher.reap()
    await program.kill()
    launcher.reap()


@pytest.fixture
def unawaited():
    """Return the pid of a child of this process that has ended, and that nothing waits for."""
    pid = os.posix_spawn("/bin/true", ["true"], {})
    while not process_tree.has_ended(pid):
        pass
    yield pid
    assert os.waitpid(pid, 0) == (pid, 0)


async def test_reap_collects_orphans_behind_a_child_that_nobody_waits_for(launch, unawaited):
    program = await launch("sh", "-c", "(setsid true &); echo; exec sleep 1000")
    await program.process.stdout.readline()
    while len(descendants()) > 2:
        ProcessGroupLauncher().reap()
        await asyncio.sleep(0)
    await program.kill()
    assert [child.pid for child in descendants()] == [unawaited]


async def test_reap_leaves_exit_codes_of_killed_programs(launch, monkeypatch):
    monkeypatch.setattr(process_group, "_EXIT_LIMIT_S", 0)
    programs = [await launch("sleep", "1000") for _ in range(20)]
    await asyncio.gather(*(program.kill() for program in programs))
    async with asyncio.timeout(20):
        codes = await asyncio.gather(*(program.process.wait() for program in programs))
    assert codes == [-signal.SIGKILL] * 20


async def test_reap_leaves_exit_codes_of_programs(launch):
    launcher = ProcessGroupLauncher()
    program = await launch("sh", "-c", "kill -STOP $$; exit 5")
    process = psutil.Process(program.process.pid)
    while process.status() != psutil.STATUS_STOPPED:
        pass
    process.resume()  # from here on no `await`, so the event loop does not wait for the process
    while process.status() != psutil.STATUS_ZOMBIE:
        launcher.reap()
    launcher.reap()
    assert await program.process.wait() == 5
    await program.kill()


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
PARENT = """
import os, sys, time
other = os.fork()
if other == 0:
    time.sleep(1000)
daemon, daemon_end = os.pipe()
if os.fork() == 0:
    os.setsid()
    pid = os.fork()
    if pid == 0:
        time.sleep(1000)
    os.write(daemon_end, str(pid).encode())
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
        [sys.executable, "-c", f"PROGRAM = {PARENT!r}\n{KILLED_REFEREE}"],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
    )
    with referee, subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True) as bystander:
        try:
            tree = [psutil.Process(int(pid)) for pid in referee.stdout.readline().split()]
            assert len(tree) == 4
            referee.send_signal(number)
            referee.wait()
            _, alive = psutil.wait_procs(tree, timeout=20)
            assert not alive
            assert bystander.poll() is None
        finally:
            bystander.kill()
    assert not psutil.wait_procs(descendants(), timeout=20)[1], "the sweeper has ended too"


async def test_sweeper_of_another_process_is_spared_and_reaped(launch):
    """A process that has started programs adopts the sweepers of its child processes too."""
    await (await launch("true")).kill()
    writer = sweeper.start_sweeper()
    (found,) = descendants()
    await (await launch("sleep", "1000")).kill()
    assert descendants() == [found]
    assert found.status() != psutil.STATUS_ZOMBIE
    os.close(writer)
    launcher = ProcessGroupLauncher()
    while descendants():
        launcher.reap()
        await asyncio.sleep(0)


@pytest.mark.parametrize("limit", [5, 0], ids=["unknown mark", "no mark"])
async def test_orphan_that_imitates_a_sweeper_is_killed(python, limit):
    # the orphan runs the sweeper's own command; it never ends, because it holds the writing end of its own input
    program = await python(f"""
        import os, resource, time
        reader, writer = os.pipe()
        os.dup2(reader, 0)
        os.set_inheritable(writer, True)
        if os.fork() == 0:
            resource.setrlimit(10, ({limit}, {limit}))  # the limit that carries the mark
            os.execv({sweeper.SWEEPER[0]!r}, {sweeper.SWEEPER!r})
        os.wait()
        print("up", flush=True)
        time.sleep(1000)
    """)
    assert await first_line(program) == "up"
    (orphan,) = (each for each in descendants() if each.pid != program.process.pid)
    async with asyncio.timeout(20):
        while os.getsid(orphan.pid) != orphan.pid:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)
    await program.kill()
    assert not descendants()


@pytest.mark.parametrize(
    ("code", "reason"),
    [(127, "ends with exit code 127"), (errno.EAGAIN, "temporarily unavailable")],
)
def test_sweeper_that_does_not_start_is_an_error(monkeypatch, tmp_path, code, reason):
    python = tool(tmp_path / "python", f"#!/bin/sh\nexit {code}\n")
    monkeypatch.setattr(sys, "executable", str(python))
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError, match=reason):
        sweeper.start_sweeper()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_process_that_got_the_pid_of_an_ended_program_is_spared(monkeypatch):
    with subprocess.Popen(["/bin/true"]) as ended:
        pidfd = os.pidfd_open(ended.pid)
    trees = process_tree.ProcessTrees()
    command = ["/bin/sh", "-c", "sleep 1000 & echo; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        [child] = psutil.Process(other.pid).children()
        while (child.name(), child.status()) != ("sleep", psutil.STATUS_SLEEPING):
            time.sleep(0.01)
        with monkeypatch.context() as patched:
            patched.setattr(os, "pidfd_open", lambda _: pidfd)
            trees.add(other.pid)
        try:
            assert trees.list_pids(other.pid) == []
            trees.kill(other.pid)
            assert other.poll() is None
            assert child.is_running()
            assert child.status() == psutil.STATUS_SLEEPING
        finally:
            trees.discard(other.pid)
            with suppress(psutil.NoSuchProcess):
                child.kill()
            other.kill()


FEW_ROUNDS = """
from referee.sandbox import sweeper
sweeper._ROUNDS = 3
sweeper.watch()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives bots users of their own")
@pytest.mark.parametrize("is_leased", [True, False])
def test_sweeper_spares_a_user_id_that_another_referee_has_leased(tmp_path, is_leased):
    uid, no_pid = 68_200, 1 << 23
    with (tmp_path / "a lock").open("w") as lock:
        if is_leased:
            fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen(["/bin/sleep", "1000"], user=uid, cwd="/") as sleeper:
            try:
                done = subprocess.run(
                    [sys.executable, "-c", FEW_ROUNDS],
                    input=f"+{no_pid} {uid} 0 {lock.name}\n",
                    capture_output=True,  # so `run` waits for the end of the sweeper
                    text=True,
                    timeout=60,
                    check=True,
                )
                assert (done.stdout, done.stderr) == ("", "")
                assert (sleeper.poll() is None) == is_leased
            finally:
                sleeper.kill()


@pytest.mark.parametrize(
    ("lines", "is_spared"), [("+{0} 0 0\n-{0}\n", True), ("+{0} 0 0\n", False)]
)
def test_sweeper_kills_only_programs_that_are_not_gone(lines, is_spared):
    with subprocess.Popen(["/bin/sleep", "1000"], env={}, start_new_session=True) as sleeper:
        try:
            done = subprocess.run(
                sweeper.SWEEPER,
                input=lines.format(sleeper.pid),
                capture_output=True,  # so `run` waits for the end of the sweeper
                text=True,
                timeout=60,
                check=True,
            )
            assert (done.stdout, done.stderr) == ("", "")
            assert (sleeper.poll() is None) == is_spared
        finally:
            sleeper.kill()
