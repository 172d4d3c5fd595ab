"""Tests the measurement of process trees, with real processes."""

import asyncio
import os
import re
import signal
import sys
import textwrap
from contextlib import suppress
from threading import Event
from types import SimpleNamespace

import psutil
import pytest
from extended import extend_all_but

from referee.errors import Cause, Evidence, Forfeit, Shortage, VoidGame
from referee.sandbox import SPARE_PROCESSES, Limits, monitor, process_tree
from referee.sandbox.process_group import ProcessGroup, ProcessGroupLauncher
from referee.sandbox.sandbox import SandboxedProgram

ENVIRONMENT = {"PATH": os.environ["PATH"], "REFEREE_TOKEN": "a token"}
MIB = 1024


@pytest.fixture
async def start(tmp_path):
    """Return a function that starts a Python program and waits for its first line. All are killed at the end."""
    programs = []

    async def start(program):
        command = (sys.executable, "-c", textwrap.dedent(program))
        launcher = ProcessGroupLauncher()
        launched = await launcher.launch(command, folder=tmp_path, environment=ENVIRONMENT)
        programs.append(launched)
        await launched.process.stdout.readline()
        return launched

    yield start
    for launched in programs:
        await launched.kill()


async def within(limit_s):
    """Yield every 10 ms until `limit_s` seconds have passed."""
    for _ in range(limit_s * 100):
        yield
        await asyncio.sleep(0.01)


async def test_usage_has_cpu_time_and_peak_memory(start):
    launched = await start("""
        import time
        hog = b"x" * (60 << 20)
        del hog
        while time.process_time() < 0.3:
            pass
        print("up", flush=True)
        time.sleep(1000)
    """)
    usage = launched.usage()
    assert 0.25 <= usage.cpu_s < 0.6
    assert 60 * MIB < usage.peak_memory_kib < 100 * MIB
    assert launched.usage().cpu_s <= usage.cpu_s + 0.05


@pytest.mark.parametrize("name", ["VmHWM:9999999", "\\nVmHWM:9999999"])
async def test_program_name_that_looks_like_a_figure_is_ignored(start, name):
    launched = await start(f"""
        import ctypes, time
        ctypes.CDLL(None).prctl(15, b"{name}")
        print("up", flush=True)
        time.sleep(1000)
    """)
    assert launched.usage().peak_memory_kib < 100 * MIB


async def test_usage_includes_running_and_ended_children(start):
    launched = await start("""
        import os, time
        if os.fork() == 0:
            while time.process_time() < 0.3:
                pass
            os._exit(0)
        os.wait()
        if os.fork() == 0:
            os.setsid()
            hog = b"x" * (60 << 20)
            if os.fork() == 0:
                del hog
                hog = b"y" * (60 << 20)
                print("up", flush=True)
            time.sleep(1000)
        time.sleep(1000)
    """)
    assert launched._monitor.measure().threads == 3
    usage = launched.usage()
    assert usage.cpu_s >= 0.25
    assert 120 * MIB < usage.peak_memory_kib < 200 * MIB


THREADS = """
    import os, threading, time
    if {in_child} and os.fork():
        time.sleep(1000)
    for _ in range({others}):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    print("up", flush=True)
    if {main_ends}:
        import ctypes
        ctypes.CDLL(None).pthread_exit(None)
    time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("in_child", "main_ends", "most"), [(False, False, 20), (True, False, 21), (False, True, 19)]
)
async def test_threads_count_as_processes(start, in_child, main_ends, most):
    launched = await start(THREADS.format(in_child=in_child, others=19, main_ends=main_ends))
    async for _ in within(10):
        if launched._monitor.measure().threads == most:  # the main thread ends after its line
            break
    launched._monitor._limits = Limits(processes=most - SPARE_PROCESSES)
    assert await launched.breach() is None
    launched._monitor._limits = Limits(processes=most - SPARE_PROCESSES - 1)
    fault = await launched.breach()
    assert fault.cause is Cause.TOO_MANY_PROCESSES
    detail = (
        f"the program runs {most} processes and threads; its limit is {most - SPARE_PROCESSES - 1}"
    )
    assert fault.evidence.detail == detail


MAPPINGS = """
    import mmap, os, time
    descriptor = os.memfd_create("shared")
    os.pwrite(descriptor, bytes(8 << 20), 0)
    flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
    keep = [mmap.mmap(descriptor, 8 << 20, flags, mmap.PROT_READ) for _ in range(64)]
    print("up", flush=True)
    time.sleep(1000)
"""


async def test_memory_that_is_mapped_many_times_counts_once(start):
    launched = await start(MAPPINGS)
    assert launched._monitor.measure().memory_kib > 512 * MIB
    launched._monitor._limits = Limits(memory_mib=64)
    assert await launched.breach() is None


async def test_very_many_mappings_are_charged_without_a_walk_through_all_pages(start, monkeypatch):
    launched = await start(MAPPINGS)
    monkeypatch.setattr(monitor, "_proportional_kib", lambda _: pytest.fail("read smaps_rollup"))
    launched._monitor._limits = Limits(memory_mib=31)
    fault = await launched.breach()
    assert fault.cause is Cause.OOM
    assert re.fullmatch(
        r"the program has 5\d\d MiB of resident memory, with shared memory counted in each mapping;"
        r" at most 16 times its limit of 31 MiB are allowed",
        fault.evidence.detail,
    )


async def test_event_loop_runs_while_shared_memory_is_measured(start, monkeypatch):
    launched, has_run = await start("print(flush=True); __import__('time').sleep(9)"), Event()

    def measure(_):
        assert has_run.wait(10)
        return 5 * MIB

    monkeypatch.setattr(monitor, "_proportional_kib", measure)
    launched._monitor._limits = Limits(memory_mib=4)
    asyncio.get_running_loop().call_later(0.01, has_run.set)
    fault = await launched.breach()
    assert fault.evidence.detail == "the program takes 5 MiB of memory; its limit is 4 MiB"


async def test_zombies_do_not_count_as_processes(start):
    launched = await start("""
        import os, time
        for _ in range(5):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        print("up", flush=True)
        time.sleep(1000)
    """)
    assert len(psutil.Process(launched.process.pid).children()) == 5
    assert launched._monitor.measure().threads == 1


async def test_usage_of_an_ended_program_is_the_last_measurement(start):
    launched = await start("import time; print(flush=True); time.sleep(1000)")
    before = launched.usage()
    await launched.kill()
    assert launched.usage() == before
    assert before.peak_memory_kib > MIB


async def test_each_program_is_measured_separately(start):
    one, two = await asyncio.gather(
        start("""
            import os, time
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    hog = b"x" * (60 << 20)
                    print("up", flush=True)
                    time.sleep(1000)
                os._exit(0)
            os.wait()
            time.sleep(1000)
        """),
        start("import time; print(flush=True); time.sleep(1000)"),
    )
    assert one._monitor.measure().threads + two._monitor.measure().threads == 3


async def test_sleeping_program_is_not_busy(start):
    launched = await start("""
        import threading, time
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        print("up", flush=True)
        time.sleep(1000)
    """)
    async for _ in within(10):
        if launched.busy_ns() is None:  # it falls asleep soon
            return
    pytest.fail("it never sleeps")


async def test_program_with_too_many_threads_counts_as_busy_and_is_not_searched(start, monkeypatch):
    launched = await start(THREADS.format(in_child=False, others=30, main_ends=False))
    async for _ in within(10):
        if launched.busy_ns() is None:
            break
    launched._monitor._limits = Limits(processes=20)
    for module, search in ((monitor, "_thread_states"), (process_tree, "_child_pids")):
        monkeypatch.setattr(module, search, None)
    assert launched.busy_ns() > 0
    monkeypatch.undo()


@pytest.mark.parametrize(
    "who",
    extend_all_but(
        {"thread", "children that end"},
        ["thread", "threads that end", "child", "children that end"],
        "starts more programs on the rungs",
    ),
)
async def test_program_is_busy_if_any_thread_of_its_tree_is(start, who):
    launched = await start(f"""
        import os, threading, time
        def toil(seconds):
            began = time.monotonic()
            while time.monotonic() < began + seconds: pass
        def child(seconds):
            if os.fork() == 0:
                toil(seconds)
                os._exit(0)
        print("up", flush=True)
        if "{who}" == "thread":
            threading.Thread(target=toil, args=(1000,), daemon=True).start()
            time.sleep(1000)
        elif "{who}" == "child":
            child(1000)
            time.sleep(1000)
        while True:
            if "{who}" == "threads that end":
                thread = threading.Thread(target=toil, args=(0.001,))
                thread.start()
                thread.join()
            else:
                child(0.001)
                os.wait()
    """)
    begin_ns, begin_s = await busy_ns(launched), cpu_s(launched)
    async for _ in within(10):
        if cpu_s(launched) > begin_s + 0.5:
            break
    assert await busy_ns(launched) - begin_ns > 400_000_000


async def busy_ns(launched):
    """Wait until the program is busy; between two short threads or children it is not."""
    async for _ in within(10):
        if (now_ns := launched.busy_ns()) is not None:
            return now_ns
    pytest.fail("it is never busy")


def cpu_s(launched):
    """Return the CPU time of the program and its children, as psutil counts it."""
    process = psutil.Process(launched.process.pid)
    total_s = sum(process.cpu_times()[:4])
    for child in process.children():
        with suppress(psutil.NoSuchProcess):
            total_s += sum(child.cpu_times()[:4])
    return total_s


async def test_ended_process_does_not_lower_the_cpu_time(start):
    launched = await start("""
        import os, signal, time
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so the kernel adds the time of the child to no other process
        child = os.fork()
        while child == 0:
            pass
        while time.process_time() < 0.3:
            pass
        print(child, flush=True)
        while True:
            pass
    """)
    before_ns = await busy_ns(launched)
    child = next(pid for pid in launched._monitor.find_members() if pid != launched.process.pid)
    os.kill(child, signal.SIGKILL)
    async for _ in within(10):
        if not psutil.pid_exists(child):
            break
    after_ns = await busy_ns(launched)
    assert after_ns - before_ns > 1_000_000_000
    assert await busy_ns(launched) - after_ns < 1_000_000_000


async def test_ended_program_is_not_busy(start):
    launched = await start("print('up', flush=True)")
    await launched.process.wait()
    assert launched.busy_ns() is None


@pytest.mark.parametrize("kind", [ProcessGroup, SandboxedProgram])
@pytest.mark.parametrize("fault", [Forfeit(Cause.TOO_MANY_PROCESSES, Evidence(detail="")), None])
async def test_fault_of_a_program_counts_more_than_a_lack_of_memory(kind, fault):
    async def breach():
        return fault

    void = VoidGame("no memory")
    program = SimpleNamespace(
        process=SimpleNamespace(returncode=1),
        _resources=SimpleNamespace(breach=lambda: void),
        _monitor=SimpleNamespace(breach=breach),
    )
    assert await kind.breach(program) is (fault or void)


@pytest.mark.parametrize(("is_in_use", "periods"), [(True, 2), (False, 1 + monitor._IDLE_PERIODS)])
async def test_program_is_measured_more_often_while_it_plays(monkeypatch, is_in_use, periods):
    waits = []
    fault = Forfeit(Cause.OOM, Evidence(detail=""))
    results = iter((None, fault))

    async def breach():
        return next(results)

    async def sleep(seconds):
        waits.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    program = SimpleNamespace(breach=breach)
    folder = SimpleNamespace(scratch_kib=lambda _: 0)
    failure = await monitor.wait_for_breach(program, folder, Limits(), is_in_use=lambda: is_in_use)
    assert failure is fault
    assert len(waits) == periods


async def test_lack_of_threads_voids_the_game(monkeypatch):
    async def lack_threads(*_arguments):
        raise RuntimeError("can't start new thread")

    async def breach():
        return None

    monkeypatch.setattr(monitor, "MONITOR_PERIOD_S", 0)
    monkeypatch.setattr(asyncio, "to_thread", lack_threads)
    program, folder = SimpleNamespace(breach=breach), SimpleNamespace(scratch_kib=None)
    failure = await monitor.wait_for_breach(program, folder, Limits(), is_in_use=lambda: True)
    assert isinstance(failure, Shortage)
    assert str(failure) == "the bot cannot be measured: no thread can be started"


@pytest.mark.parametrize(
    ("text", "found"), [("can't start new thread", Shortage), ("broken", RuntimeError)]
)
async def test_only_a_lack_of_threads_is_a_shortage_of_a_measurement(monkeypatch, text, found):
    async def fail(*_arguments):
        raise RuntimeError(text)

    monkeypatch.setattr(asyncio, "to_thread", fail)
    own = SimpleNamespace(_limits=Limits(memory_mib=4), _limited_members=list)
    measuring = monitor.ResourceMonitor._find_excess_memory(own, 5 * 1024)
    if found is RuntimeError:
        with pytest.raises(RuntimeError, match=text):
            await measuring
    else:
        assert isinstance(await measuring, found)
