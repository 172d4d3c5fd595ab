"""Test that programs are stopped, kept off cores that others want, and let go, with and without cgroups."""

import asyncio
import os
import signal
import sys
import tempfile
import textwrap
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from process_groups import descendants, first_line, ignore_earlier_tests, kill_descendants
from strongest_isolation import strongest

from referee.sandbox import Limits, user_ids
from referee.sandbox.cgroups import Cgroup, Hierarchy
from referee.sandbox.monitor import cpu_ns
from referee.sandbox.process_tree import PROCESS_TREES
from referee.sandbox.scheduling import SEARCH_DELAY_S, Scheduler, Scheduling

PATH = {"PATH": os.environ["PATH"]}
SPIN = "while :; do :; done"
PROGRAM = f"setsid sh -c 'echo ready; {SPIN}' & {SPIN}"
"""Two processes compute without end. The second has left the process group of the first."""
SANDBOX = pytest.mark.isolation("namespaces")
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives bots users of their own")
NO_GROUP = 1 << 23
"""The number of a process group that does not exist: Linux gives no number above 2^22."""
SETTLED_S = 0.1
"""A process that no longer counts as runnable may still have to wait for a core to reach its last instruction. When CPU times did
not change for so long, all processes have stopped."""
MAKERS = {
    "sandbox": "SandboxLauncher(BUBBLEWRAP, Cgroups(()))",
    "sandbox_in_cgroup": "SandboxLauncher(BUBBLEWRAP, Cgroups.find())",
    "uid": "UidLauncher(Cgroups(()))",
    "uid_in_cgroup": "UidLauncher(Cgroups.find())",
    "none": "ProcessGroupLauncher()",
}
IMPORTS = """
import asyncio
from pathlib import Path
from referee.sandbox import Limits
from referee.sandbox.cgroups import Cgroups
from referee.sandbox.process_group import ProcessGroupLauncher, UidLauncher
from referee.sandbox.sandbox import SandboxLauncher
from referee.sandbox.scheduling import Scheduling
BUBBLEWRAP = Path({bubblewrap!r})
"""
"""The names that the texts of `MAKERS` need."""
KINDS = [
    pytest.param("sandbox", marks=SANDBOX),
    pytest.param("sandbox_in_cgroup", marks=SANDBOX),
    pytest.param("uid", marks=ROOT),
    pytest.param("uid_in_cgroup", marks=ROOT),
    "none",
]
FEW_KINDS = [
    KINDS[1],
    *(
        pytest.param(
            *kind.values,
            marks=(*kind.marks, pytest.mark.extended("starts more programs on the rungs")),
        )
        for kind in (KINDS[0], *KINDS[2:4])
    ),
    "none",
]
"""The same kinds; plain `pytest` takes only one with a cgroup and one without."""
SIGNALLED = [kind for kind in KINDS if "cgroup" not in str(kind)]
"""The kinds that stop programs by signals."""


@pytest.fixture(autouse=True)
def _find_isolation():
    """Find the strongest isolation before an event loop runs, because the search needs a loop of its own."""
    strongest()


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="s-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
async def start(folder):
    """Return a function that starts `PROGRAM` with a kind of launcher, and waits until both processes compute."""
    ignore_earlier_tests()
    programs = []

    async def start(kind):
        exec(imports(), names := {})  # noqa: S102 - texts of this module
        launcher = eval(MAKERS[kind], names)  # noqa: S307 - the same
        programs.append(
            await launcher.launch(
                ["sh", "-c", PROGRAM], folder=folder, environment=PATH, limits=Limits(cpus=2.0)
            )
        )
        assert await first_line(programs[-1]) == "ready"
        await until(lambda: len(runnable()) == 2)
        return programs[-1]

    yield start
    for program in programs:
        await program.kill()
    left = descendants()
    kill_descendants()
    assert not [each for each in left if each.status() != psutil.STATUS_ZOMBIE]


def imports():
    return IMPORTS.format(bubblewrap=str(strongest().bubblewrap))


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.001)


def runnable():
    """Return the pids of the program's processes that run or wait for a core."""
    found = []
    for pid in list_pids():
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() == psutil.STATUS_RUNNING:
                found.append(pid)
    return found


def list_pids():
    """Return the pids of all descendants, much faster than psutil does on a machine with many processes."""
    return set(PROCESS_TREES.list_pids(os.getpid()))


def used_ns():
    return sum(map(cpu_ns, list_pids()))


async def until_cpu_time_is_final():
    """Wait until the CPU time of the program has not changed for `SETTLED_S`."""
    async with asyncio.timeout(60):
        before_ns = None
        while before_ns != (before_ns := used_ns()):  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(SETTLED_S)


def compute(cpu_s):
    """Use CPU time in this process."""
    until_s = time.thread_time() + cpu_s
    while time.thread_time() < until_s:
        pass


@contextmanager
def one_core():
    """Bind this process and the program to one core."""
    before = os.sched_getaffinity(0)
    core = {min(before)}
    for pid in [0, *list_pids()]:
        os.sched_setaffinity(pid, core)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize("kind", KINDS)
async def test_stopped_program_does_not_run_until_it_is_let_go(start, kind):
    program = await start(kind)
    program.scheduler.schedule(Scheduling.STOPPED)
    await until(lambda: not runnable())
    await until_cpu_time_is_final()
    before_ns, usage = used_ns(), program.usage()
    compute(0.05)
    assert used_ns() == before_ns
    assert program.usage() == usage
    assert await program.breach() is None
    assert program.busy_ns() is None
    program.scheduler.schedule(Scheduling.NORMAL)
    await until(lambda: len(runnable()) == 2)


@pytest.mark.parametrize("kind", FEW_KINDS)
async def test_idle_program_leaves_its_core_to_others(start, kind):
    program = await start(kind)
    await program.breach()  # a look of the monitor
    with one_core():
        for _ in range(2):
            program.scheduler.schedule(Scheduling.IDLE)
            before_ns = used_ns()
            compute(0.2)
            assert used_ns() - before_ns < 0.02e9
            program.scheduler.schedule(Scheduling.NORMAL)
            await until(lambda before_ns=before_ns: used_ns() - before_ns > 0.1e9)


@pytest.mark.parametrize("kind", FEW_KINDS)
async def test_scheduling_may_change_in_any_order(start, kind):
    program = await start(kind)
    program.scheduler.schedule(Scheduling.IDLE)
    program.scheduler.schedule(Scheduling.STOPPED)
    await until(lambda: not runnable())
    program.scheduler.schedule(Scheduling.IDLE)
    program.scheduler.schedule(Scheduling.NORMAL)
    await until(lambda: len(runnable()) == 2)
    with one_core():
        before_ns = used_ns()
        compute(0.05)
        await until(lambda: used_ns() - before_ns > 0.1e9)


@pytest.mark.parametrize(
    ("files", "is_idle", "reaches_all"),
    [({"cpu.idle"}, "1", False), ({"cpu.idle", "cgroup.freeze"}, "0", True)],
)
async def test_stopped_program_stays_idle_if_it_cannot_be_frozen(
    tmp_path, files, is_idle, reaches_all
):
    """SIGSTOP does not stop a process that has left the group and that no search has found."""
    for name in files:
        (tmp_path / name).write_text("0")
    scheduler = Scheduler(Cgroup([Hierarchy(tmp_path, frozenset({"cpu"}), 1)]), list)
    scheduler.group = NO_GROUP
    assert scheduler.reaches_all is reaches_all
    for scheduling in (Scheduling.IDLE, Scheduling.STOPPED):
        scheduler.schedule(Scheduling.NORMAL)
        assert (tmp_path / "cpu.idle").read_text() == "0"
        scheduler.schedule(scheduling)
        scheduler.schedule(Scheduling.STOPPED)
        assert (tmp_path / "cpu.idle").read_text() == is_idle
    scheduler.close()
    assert (tmp_path / "cpu.idle").read_text() == "0"


@pytest.mark.parametrize("kind", SIGNALLED)
async def test_process_outside_the_group_is_stopped_when_the_monitor_sees_it(start, kind):
    program = await start(kind)
    program.scheduler.schedule(Scheduling.IDLE)
    await until(lambda: len(runnable()) == 1)
    await program.breach()
    await until(lambda: not runnable())


@pytest.fixture
def searched():
    """Return a scheduler without a cgroup, and the list to which it adds each search."""
    searches = []
    scheduler = Scheduler(None, lambda: searches.append("search") or [])
    scheduler.group = NO_GROUP
    yield scheduler, searches
    scheduler.close()


async def test_stopped_program_is_searched_soon(searched):
    scheduler, searches = searched
    scheduler.schedule(Scheduling.STOPPED)
    assert not searches
    await until(lambda: searches)


@pytest.mark.parametrize("scheduling", [Scheduling.IDLE, Scheduling.NORMAL])
async def test_program_that_plays_again_at_once_is_not_searched(searched, scheduling):
    scheduler, searches = searched
    scheduler.schedule(Scheduling.STOPPED)
    scheduler.schedule(scheduling)
    await asyncio.sleep(3 * SEARCH_DELAY_S)
    assert not searches


async def test_forced_stop_searches_at_once(searched):
    scheduler, searches = searched
    scheduler.schedule(Scheduling.STOPPED)
    scheduler.override(Scheduling.STOPPED)
    await asyncio.sleep(3 * SEARCH_DELAY_S)
    assert searches == ["search"]


async def test_program_that_has_ended_is_not_searched(searched):
    scheduler, searches = searched
    scheduler.schedule(Scheduling.STOPPED)
    scheduler.close()
    await asyncio.sleep(3 * SEARCH_DELAY_S)
    assert not searches


@pytest.mark.parametrize("kind", FEW_KINDS)
async def test_stopped_program_can_be_killed(start, kind):
    program = await start(kind)
    program.scheduler.schedule(Scheduling.STOPPED)
    await until(lambda: not runnable())
    await program.kill()
    if "sandbox" in kind:  # bubblewrap has noticed the end of process 1
        assert program._bubblewrap.returncode == 128 + signal.SIGKILL
    program.scheduler.schedule(Scheduling.STOPPED)  # does nothing


@ROOT
@pytest.mark.parametrize("scheduling", [Scheduling.IDLE, Scheduling.STOPPED])
async def test_killed_program_gets_a_core_before_its_end_is_awaited(start, scheduling, monkeypatch):
    """In the idle class on a busy core, a killed process needs many seconds to end."""
    program = await start("uid_in_cgroup")
    name = "cpu.idle" if scheduling is Scheduling.IDLE else "cgroup.freeze"
    file = None if program.cgroup is None else program.cgroup.find_file(name)
    if file is None:
        pytest.skip(f"this machine gives the referee no {name}")
    program.scheduler.schedule(scheduling)
    assert file.read_text() == "1\n"
    list_pids, found = user_ids.list_pids, []

    def record_and_list(uid):
        """Stand in for the search whether processes of the user still run, which is repeated until none does."""
        found.append(file.read_text())
        return list_pids(uid)

    monkeypatch.setattr(user_ids, "list_pids", record_and_list)
    await program.kill()
    assert set(found) == {"0\n"}


@pytest.mark.parametrize("kind", ["none", pytest.param("sandbox", marks=SANDBOX)])
async def test_usage_is_measured_before_new_processes_are_searched_for(start, kind, monkeypatch):
    program, calls = await start(kind), []
    breach = program._monitor.breach
    monkeypatch.setattr(program._monitor, "breach", lambda: (calls.append("measure"), breach())[1])
    monkeypatch.setattr(program.scheduler, "refresh", lambda: calls.append("refresh"))
    assert await program.breach() is None
    assert calls == ["measure", "refresh"]


@pytest.mark.parametrize("kind", FEW_KINDS)
async def test_stopped_program_gets_sigterm_when_it_is_let_go(start, kind):
    program = await start(kind)
    program.scheduler.schedule(Scheduling.STOPPED)
    await until(lambda: not runnable())
    program.terminate()
    program.scheduler.schedule(Scheduling.NORMAL)
    assert await program.process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("kind", FEW_KINDS)
@pytest.mark.parametrize("scheduling", ["IDLE", "STOPPED"])
async def test_killed_referee_leaves_no_stopped_program(folder, kind, scheduling):
    program = f"""
        async def main():
            launcher = {MAKERS[kind]}
            program = await launcher.launch(
                ["sh", "-c", {PROGRAM!r}], folder=Path({str(folder)!r}),
                environment={{**{PATH!r}, "REFEREE_TOKEN": "of this test"}}, limits=Limits())
            await program.process.stdout.readline()
            program.scheduler.schedule(Scheduling.{scheduling})
            print("stopped", flush=True)
            await asyncio.sleep(1000)
        asyncio.run(main())
    """
    ignore_earlier_tests()
    referee = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", imports() + textwrap.dedent(program)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert await referee.stdout.readline() == b"stopped\n"
    tree = psutil.Process(referee.pid).children(recursive=True)
    spinning = [each for each in tree if each.name() == "sh"]
    assert len(spinning) == 2
    referee.kill()
    await referee.wait()
    assert not psutil.wait_procs(spinning, timeout=20)[1]
    psutil.wait_procs(descendants(), timeout=20)  # the sweeper of that process
