"""Which rung of the ladder this machine gives, and the launcher for it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from referee.errors import Forfeit, RefereeError, UserError, VoidGame
from referee.sandbox import bubblewrap
from referee.sandbox.cgroups import Cgroups
from referee.sandbox.launcher import Launcher
from referee.sandbox.probe import probe
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.sandbox.rungs import (
    NO_ISOLATION,
    Finding,
    Isolation,
    Refusal,
    Rung,
    State,
    rung_of,
)
from referee.sandbox.sandboxed import SandboxLauncher
from referee.sandbox.uid import UidLauncher

_INSTALL = "apt install bubblewrap, or pip install 'linko-referee[sandbox]'"
_USER_NAMESPACES = (
    "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1,"
    " sysctl kernel.apparmor_restrict_unprivileged_userns=0; in a container, run it with"
    " --security-opt seccomp=unconfined --security-opt apparmor=unconfined --cap-add SYS_ADMIN"
)
_CGROUPS = (
    "let the referee make cgroups: run it as root, or in a service with Delegate=yes"
    " (systemd-run --user --scope -p Delegate=yes referee …)"
)


async def select_isolation(wanted: Rung | None = None, required: Rung | None = None) -> Isolation:
    """The isolation that bots run under.

    Args:
        wanted: a rung that was asked for; None for the strongest that there is.
        required: the lowest that will do.

    Raises UserError where the machine cannot give it; a rung is never lowered unasked.
    """
    if wanted is not None and required is not None and wanted.height < required.height:
        raise UserError(f"isolation {wanted.value!r} is less than the required {required.value!r}")
    found = await _strongest() if wanted is None else await _exactly(wanted)
    needed = wanted or required
    if needed is not None and found.rung.height < needed.height:
        raise UserError(f"isolation {needed.value!r}: {_why(found)}")
    return found


def make_launcher(isolation: Isolation) -> Launcher:
    """How programs are started under an isolation that was settled on this machine."""
    cgroups = Cgroups.find() if isolation.cgroups else Cgroups(())
    match isolation.rung:
        case Rung.FULL | Rung.NAMESPACES:
            bwrap = bubblewrap.find()
            if bwrap is None:
                raise VoidGame("bubblewrap is gone")
            return SandboxLauncher(bwrap, cgroups, isolation.words)
        case Rung.UID:
            return UidLauncher(cgroups, isolation.words)
        case Rung.NONE:
            return ProcessGroupLauncher()


async def _strongest() -> Isolation:
    """The highest rung that this machine gives, and why it is not a higher one."""
    if sys.platform != "linux":
        return replace(
            NO_ISOLATION, refusals=(Refusal(Rung.UID, "this is not Linux", "use Linux"),)
        )
    refusals: list[Refusal] = []
    for rungs, find in (
        ((Rung.FULL, Rung.NAMESPACES), _sandbox),
        ((Rung.UID,), _users),
    ):
        found = await find(Cgroups.find())
        if isinstance(found, Isolation):
            return replace(found, refusals=(*refusals, *found.refusals), cgroups=True)
        reason, advice = found
        refusals += [Refusal(rung, reason, advice) for rung in rungs]
    return replace(NO_ISOLATION, refusals=tuple(refusals))


async def _exactly(wanted: Rung) -> Isolation:
    """A rung, or the one below that is there in its place."""
    match wanted:
        case Rung.FULL:
            return await _strongest()
        case Rung.NAMESPACES:
            found = await _sandbox(Cgroups(()))
        case Rung.UID:
            found = await _users(Cgroups(()))
        case Rung.NONE:
            return NO_ISOLATION
    if isinstance(found, Isolation):
        return found
    return replace(NO_ISOLATION, refusals=(Refusal(wanted, *found),))


async def _sandbox(cgroups: Cgroups) -> Isolation | tuple[str, str]:
    """What bubblewrap gives; or why it gives nothing, and what to do about it."""
    bwrap = bubblewrap.find()
    if bwrap is None:
        return "bubblewrap is not installed", _INSTALL
    try:
        findings = await probe(SandboxLauncher(bwrap, cgroups))
    except (Forfeit, VoidGame) as error:
        return str(error), _USER_NAMESPACES
    lacking = _lacking(findings)
    rung = rung_of(findings)
    if rung is None:
        return f"bubblewrap does not keep bots apart here: {lacking}", _USER_NAMESPACES
    refusals = () if rung is Rung.FULL else (Refusal(Rung.FULL, lacking, _CGROUPS),)
    return Isolation(rung, findings, refusals)


async def _users(cgroups: Cgroups) -> Isolation | tuple[str, str]:
    """What users of their own give; or why they give nothing, and what to do about it."""
    if os.geteuid() != 0:
        return "the referee is not root", "run it as root, better with one of the rungs above"
    try:
        return Isolation(Rung.UID, await probe(UidLauncher(cgroups)))
    except RefereeError as error:
        return str(error), "give the referee's container user ids from 61184 on"


def _lacking(findings: tuple[Finding, ...]) -> str:
    return "; ".join(
        f"{each.protection.value}: {each.reason}" for each in findings if each.state is not State.ON
    )


def _why(found: Isolation) -> str:
    reasons = [f"{each.rung.value}: {each.reason} ({each.advice})" for each in found.refusals]
    return "this machine does not give it: " + "; ".join(reasons)
