"""Tests that a program ends with everything that it has started, with real processes."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest
from process_groups import ENVIRONMENT, descendants, first_line

from referee.sandbox import process_tree
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
            while True:
                if os.fork():
                    os._exit(0)
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


async def test_zombies_are_killed_without_a_search_for_their_children(python, monkeypatch):
    program = await python("""
        import os, time
        for _ in range(20):
            if os.fork() == 0:
                if os.fork() == 0:
                    os._exit(0)
                os._exit(0)
            os.wait()
        print("up", flush=True)
        time.sleep(1000)
    """)
    assert await first_line(program) == "up"
    search, searched = process_tree._descendants, []

    def record(pid):
        searched.append(pid)
        return search(pid)

    monkeypatch.setattr(process_tree, "_descendants", record)
    assert len(process_tree.PROCESS_TREES.list_descendants(program.process.pid)) >= 10
    assert len(searched) < 10
    await program.kill()
    assert not descendants()


async def test_child_started_during_kill_is_killed(python, monkeypatch):
    """Between the search for its tree and its own end a program may start another process."""
    program = await python("""
        import os, signal, time
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        print("up", flush=True)
        signal.sigwait({signal.SIGUSR1})
        if os.fork() == 0:
            os.setsid()
        time.sleep(1000)
    """)
    assert await first_line(program) == "up"
    search, found = process_tree.PROCESS_TREES.list_descendants, []

    def search_too_early(pid):
        found.append(search(pid))
        if len(found) == 1:
            os.kill(pid, signal.SIGUSR1)
            until_s = time.monotonic() + 10
            while time.monotonic() < until_s and not has_other_session(search(pid), pid):
                pass
        return found[-1]

    monkeypatch.setattr(process_tree.PROCESS_TREES, "list_descendants", search_too_early)
    await program.kill()
    assert found[0] == []
    assert any(found)
    assert not descendants()


def has_other_session(tree, pid):
    return any(os.getsid(each.pid) != pid for each in tree)


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


@pytest.mark.parametrize("token", ["its own", ENVIRONMENT["REFEREE_TOKEN"]])
async def test_kill_spares_other_programs(launch, python, token):
    """Also a program that has found out the token of the killed one."""
    other = await python(
        "import time; print('up', flush=True); time.sleep(1000)",
        environment={**ENVIRONMENT, "REFEREE_TOKEN": token},
    )
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


async def test_reap_leaves_exit_codes_of_programs(launch):
    launcher = ProcessGroupLauncher()
    program = await launch("sh", "-c", "exit 5")
    while psutil.Process(program.process.pid).status() != psutil.STATUS_ZOMBIE:
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
        tree = [psutil.Process(int(pid)) for pid in referee.stdout.readline().split()]
        assert len(tree) == 4
        referee.send_signal(number)
        referee.wait()
        _, alive = psutil.wait_procs(tree, timeout=20)
        assert not alive
        assert bystander.poll() is None
        bystander.kill()
    assert not psutil.wait_procs(descendants(), timeout=20)[1], "the sweeper has ended too"


async def test_sweeper_of_another_process_is_spared_and_reaped(launch):
    """A process that has started programs adopts the sweepers of its child processes too."""
    await (await launch("true")).kill()
    writer = process_tree._start_sweeper()
    (sweeper,) = descendants()
    await (await launch("sleep", "1000")).kill()
    assert descendants() == [sweeper]
    assert sweeper.status() != psutil.STATUS_ZOMBIE
    os.close(writer)
    launcher = ProcessGroupLauncher()
    while descendants():
        launcher.reap()
        await asyncio.sleep(0)


@pytest.mark.parametrize(("lines", "is_spared"), [("+{0} a\n-{0}\n", True), ("+{0} b\n", False)])
def test_sweeper_kills_only_programs_that_are_not_gone(lines, is_spared):
    with subprocess.Popen(["/bin/sleep", "1000"], env={}, start_new_session=True) as sleeper:
        done = subprocess.run(
            process_tree._SWEEPER,
            input=lines.format(sleeper.pid),
            capture_output=True,  # so `run` waits for the end of the sweeper
            text=True,
            timeout=60,
            check=True,
        )
        assert (done.stdout, done.stderr) == ("", "")
        assert (sleeper.poll() is None) == is_spared
        sleeper.kill()
