"""Tests cgroups in folders that imitate them."""

import errno
import os
import re
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from referee.errors import Cause, Shortage, VoidGame
from referee.sandbox import Access, Limits, TotalUsage, cgroups
from referee.sandbox.cgroups import Cgroups, Hierarchy, MemoryShortage, find_hierarchies
from referee.sandbox.resources import ProgramSpec, SandboxResources

PROGRAM = ProgramSpec(("true",), Path("/usr"), {}, Limits(memory_mib=100), Access())


@pytest.fixture
def version_2(tmp_path, monkeypatch):
    """Return a folder like /proc/self whose cgroup is in a delegated slice.

    The referee's own cgroup contains processes, so new cgroups are created beside it.
    """
    mount = tmp_path / "cgroup"
    own = mount / "user.slice" / "referee.scope"
    own.mkdir(parents=True)
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "cgroup").write_text("0::/user.slice/referee.scope\n")
    (proc / "mountinfo").write_text(f"30 23 0:27 / {mount} rw - cgroup2 cgroup2 rw\n")
    make, remove = Path.mkdir, Path.rmdir
    (own.parent / "cgroup.procs").write_text("")

    def mkdir(self, *args, **more):
        make(self, *args, **more)
        if self.parent == own.parent:  # where the controllers are enabled
            for name in ("memory.max", "memory.swap.max", "pids.max", "cpu.max", "cgroup.procs"):
                (self / name).write_text("max")
            (self / "memory.peak").write_text(str(5 << 20))
            (self / "memory.events").write_text("low 0\noom 2\noom_kill 1\n")
            (self / "cpu.stat").write_text("usage_usec 1500000\nnr_throttled 3\n")

    def rmdir(self):
        if self.parent == own.parent:
            for file in self.iterdir():
                file.unlink()
        remove(self)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", rmdir)
    return proc


def test_cgroup_of_version_2_limits_and_measures(version_2, tmp_path):
    cgroups = Cgroups.find(version_2)
    parent = tmp_path / "cgroup" / "user.slice"
    assert cgroups._hierarchies == (Hierarchy(parent, frozenset({"memory", "pids", "cpu"}), 2),)
    cgroup = cgroups.create(Limits(memory_mib=100, processes=10, cpus=1.5))
    [procs_file] = cgroup.procs_files
    folder = Path(procs_file).parent
    limits = {name: (folder / name).read_text() for name in ("memory.max", "pids.max", "cpu.max")}
    assert limits == {
        "memory.max": str((100 + 16) << 20),
        "pids.max": str(10 + 8),
        "cpu.max": "150000 100000",
    }
    assert (folder / "memory.swap.max").read_text() == "0"
    assert cgroup.throttle_count == 3
    cgroup.remove()
    assert not folder.exists()
    assert cgroup.shortage is MemoryShortage.OWN
    assert (cgroup.cpu_s, cgroup.peak_memory_kib) == (1.5, 5 << 10)


def test_cgroup_of_version_1_limits_swap_and_tcp_buffers_too(tmp_path):
    hierarchy = Hierarchy(tmp_path, frozenset({"memory"}), 1)
    cgroup = Cgroups((hierarchy,)).create(Limits(memory_mib=100))
    folder = Path(cgroup.procs_files[0]).parent
    assert {file.name: int(file.read_text()) >> 20 for file in folder.iterdir()} == {
        "memory.limit_in_bytes": 100 + 16,
        "memory.memsw.limit_in_bytes": 100 + 16,
        "memory.kmem.tcp.limit_in_bytes": 64,
    }


def test_cgroup_of_version_1_is_found(tmp_path):
    own = tmp_path / "memory" / "user"
    own.mkdir(parents=True)
    (tmp_path / "cgroup").write_text("4:memory:/user\n")
    mount = f"30 23 0:27 / {own.parent} rw - cgroup cgroup rw,memory\n"
    (tmp_path / "mountinfo").write_text(mount)
    assert Cgroups.find(tmp_path)._hierarchies == (Hierarchy(own, frozenset({"memory"}), 1),)


def test_program_in_a_cgroup_of_version_1_is_killed(tmp_path):
    cgroup = Cgroups((Hierarchy(tmp_path, frozenset(), 1),)).create(Limits())
    with subprocess.Popen(["/bin/sleep", "1000"]) as program:
        Path(cgroup.procs_files[0]).write_text(f"{program.pid}\n")
        try:
            cgroup.kill()
            assert program.wait(10) == -signal.SIGKILL
        finally:
            program.kill()


def test_cgroups_of_two_objects_have_different_names(version_2):
    """In the process of a Dask worker, each tournament has its own `Cgroups` object."""
    first, second = Cgroups.find(version_2), Cgroups.find(version_2)
    assert first.create(Limits()).procs_files != second.create(Limits()).procs_files


def test_cgroup_of_a_killed_referee_is_removed(version_2, tmp_path):
    cgroups = Cgroups.find(version_2)
    cgroups.create(Limits())
    parent = tmp_path / "cgroup" / "user.slice"
    [mine] = parent.glob("referee-*")
    gone = mine.with_name(re.sub(r"^(referee-\d+-\d+)-\d+-", r"\1-1-", mine.name))
    mine.rename(gone)
    second = cgroups.create(Limits())
    Cgroups.find(version_2)
    assert not gone.exists()
    assert Path(second.procs_files[0]).exists()


def test_cgroup_of_a_running_referee_is_kept_when_the_wall_clock_jumps(version_2, monkeypatch):
    cgroup = Cgroups.find(version_2).create(Limits())
    started_s = psutil.Process().create_time()
    monkeypatch.setattr(psutil.Process, "create_time", lambda _self: started_s + 3600)
    Cgroups.find(version_2)
    assert Path(cgroup.procs_files[0]).exists()


def test_trial_of_a_killed_referee_with_the_same_pid_does_no_harm(version_2, tmp_path, monkeypatch):
    """In a container, each referee may be process 1."""
    with monkeypatch.context() as killed:
        killed.setattr(Path, "rmdir", lambda _self: None)
        killed.setattr(cgroups, "_start_ticks", lambda _pid: 1)
        list(find_hierarchies(version_2))
    (left,) = tmp_path.glob("cgroup/user.slice/referee-*")
    assert Cgroups.find(version_2).controllers == {"memory", "pids", "cpu"}
    assert not left.exists()


def test_cgroup_of_a_referee_in_another_pid_namespace_is_kept(version_2, tmp_path):
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    parent = tmp_path / "cgroup" / "user.slice"
    other, gone = (parent / f"referee-{number}-1-5-1" for number in (namespace + 1, namespace))
    other.mkdir()
    gone.mkdir()
    Cgroups.find(version_2)
    assert other.exists()
    assert not gone.exists()


def test_what_the_cgroup_does_not_count_is_measured(version_2, tmp_path):
    """Linux before 5.19 has no `memory.peak`."""
    resources = SandboxResources(Cgroups.find(version_2), PROGRAM)
    (peak,) = tmp_path.glob("cgroup/user.slice/referee-*/memory.peak")
    peak.unlink()
    for _ in range(2):
        assert resources.usage(lambda: TotalUsage(9.0, 77)) == TotalUsage(1.5, 77)
        resources.release()


def test_cpu_time_of_a_busy_program_is_that_of_its_cgroup(version_2):
    """The monitor does not see what an ended process has computed."""
    resources = SandboxResources(Cgroups.find(version_2), PROGRAM)
    assert resources.busy_ns(lambda: 9) == 1_500_000_000
    assert resources.busy_ns(lambda: None) is None
    assert SandboxResources(Cgroups(()), PROGRAM).busy_ns(lambda: 9) == 9


@pytest.mark.parametrize(("cpus", "at_first"), [(0.01, "100000"), (1.5, "150000")])
def test_program_is_started_with_at_least_one_core(version_2, tmp_path, cpus, at_first):
    program = replace(PROGRAM, limits=Limits(cpus=cpus))
    resources = SandboxResources(Cgroups.find(version_2), program)
    (file,) = tmp_path.glob("cgroup/user.slice/referee-*/cpu.max")
    assert file.read_text() == f"{at_first} 100000"
    resources.limit_cpu()
    assert file.read_text() == f"{round(cpus * 100_000)} 100000"
    file.unlink()
    file.mkdir()
    with pytest.raises(VoidGame, match="no CPU limit for a bot"):
        resources.limit_cpu()
    file.rmdir()


def test_no_cgroups_if_none_can_be_created(tmp_path):
    (tmp_path / "cgroup").write_text("0::/\n3:memory:/x\n")
    (tmp_path / "mountinfo").write_text("1 1 0:1 / /proc rw - cgroup2 x rw\n")
    assert Cgroups.find(tmp_path).controllers == frozenset()
    assert Cgroups.find(tmp_path / "nowhere").controllers == frozenset()


@pytest.mark.parametrize(("cpus", "quota"), [(0.2, "20000"), (0.5, "50000"), (8.0, "-1")])
def test_cpu_limit_above_that_of_a_container_is_left_to_the_container(
    tmp_path, monkeypatch, cpus, quota
):
    """The kernel refuses a quota above that of the parent cgroup, here half of a core."""
    write = Path.write_text

    def write_text(self, text):
        if self.name == "cpu.cfs_quota_us" and int(text) > 50_000:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return write(self, text)

    monkeypatch.setattr(Path, "write_text", write_text)
    cgroups = Cgroups((Hierarchy(tmp_path, frozenset({"cpu"}), 1),))
    cgroup = cgroups.create(Limits(cpus=cpus))
    (file,) = tmp_path.glob("*/cpu.cfs_quota_us")
    assert file.read_text() == quota
    cgroup.limit_cpu(0.1)
    assert file.read_text() == "10000"


@pytest.fixture
def counters(tmp_path):
    """Return a function that writes the counters of a version, and returns the failure of a program with this cgroup."""

    def find_breach(version, files):
        hierarchy = Hierarchy(tmp_path, frozenset({"memory"}), version)
        resources = SandboxResources(Cgroups((hierarchy,)), PROGRAM)
        (folder,) = tmp_path.iterdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        before = resources.breach()
        for file in folder.iterdir():
            file.unlink()
        resources.release()
        assert repr(resources.breach()) == repr(before)
        return before

    return find_breach


def version_1(peak_mib, swapped_mib=0, oom_kill=1):
    """Return the counters of a cgroup of version 1 with a limit of 116 MiB. The peak may be in memory or partly swapped."""
    return {
        "memory.oom_control": f"oom_kill_disable 0\nunder_oom 0\noom_kill {oom_kill}\n",
        "memory.limit_in_bytes": f"{116 << 20}\n",
        "memory.max_usage_in_bytes": f"{(peak_mib << 20) - 4096}\n",
        "memory.memsw.max_usage_in_bytes": f"{(peak_mib + swapped_mib << 20) - 4096}\n",
    }


OWN_SHORTAGES = [
    (2, {"memory.events": "max 9\noom 1\noom_kill 1\n"}),
    (1, version_1(116)),
    (1, version_1(50, swapped_mib=66)),
]
OTHER_SHORTAGES = [
    (2, {"memory.events": "max 0\noom 0\noom_kill 1\n"}),
    (1, version_1(115)),
]
NO_SHORTAGES = [
    (2, {"memory.events": "max 9\noom 1\noom_kill 0\n"}),
    (1, version_1(116, oom_kill=0)),
    (2, {}),
]


@pytest.mark.parametrize(("version", "files"), OWN_SHORTAGES)
def test_program_killed_at_its_own_memory_limit_is_charged(counters, version, files):
    fault = counters(version, files)
    assert fault.cause is Cause.OOM
    assert "100 MiB" in fault.evidence.detail


@pytest.mark.parametrize(("version", "files"), OTHER_SHORTAGES)
def test_program_killed_because_the_machine_lacks_memory_is_not_charged(counters, version, files):
    failure = counters(version, files)
    assert isinstance(failure, VoidGame)
    assert "add memory" in str(failure)


@pytest.mark.parametrize(("version", "files"), NO_SHORTAGES)
def test_program_that_the_kernel_has_not_killed_has_no_failure(counters, version, files):
    assert counters(version, files) is None


def test_cgroups_that_cannot_be_searched_are_not_missing(version_2, monkeypatch):
    def fail(_path):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(Path, "read_text", fail)
    with pytest.raises(Shortage, match=r"the cgroups cannot be found: .*Too many open files"):
        Cgroups.find(version_2)
