"""Tests cgroups of version 2 in a folder that imitates them."""

import re
from pathlib import Path

import pytest

from referee.sandbox import Limits
from referee.sandbox.cgroups import Cgroups, Hierarchy


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
    assert cgroup.ran_out_of_memory
    assert (cgroup.usage().cpu_s, cgroup.usage().peak_memory_kib) == (1.5, 5 << 10)


def test_cgroup_of_a_killed_referee_is_removed(version_2, tmp_path):
    cgroups = Cgroups.find(version_2)
    cgroups.create(Limits())
    parent = tmp_path / "cgroup" / "user.slice"
    [mine] = parent.glob("referee-*-1")
    gone = mine.with_name(re.sub(r"\d\.\d\d-", "X.00-", mine.name))
    mine.rename(gone)
    second = cgroups.create(Limits())
    Cgroups.find(version_2)
    assert not gone.exists()
    assert Path(second.procs_files[0]).exists()


def test_cgroup_of_a_referee_in_another_pid_namespace_is_kept(version_2, tmp_path):
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    parent = tmp_path / "cgroup" / "user.slice"
    other, gone = (parent / f"referee-1-5.00-{number}-1" for number in (namespace + 1, namespace))
    other.mkdir()
    gone.mkdir()
    Cgroups.find(version_2)
    assert other.exists()
    assert not gone.exists()


def test_no_cgroups_if_none_can_be_created(tmp_path):
    (tmp_path / "cgroup").write_text("0::/\n3:memory:/x\n")
    (tmp_path / "mountinfo").write_text("1 1 0:1 / /proc rw - cgroup2 x rw\n")
    assert Cgroups.find(tmp_path).controllers == frozenset()
    assert Cgroups.find(tmp_path / "nowhere").controllers == frozenset()
