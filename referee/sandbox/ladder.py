"""Find the strongest rung of the isolation ladder that this machine gives, and create the launcher for a rung."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from referee.errors import Forfeit, RefereeError, UserError, VoidGame
from referee.sandbox import bubblewrap
from referee.sandbox.cgroups import Cgroups
from referee.sandbox.launcher import Launcher
from referee.sandbox.probe import probe
from referee.sandbox.process_group import ProcessGroupLauncher, UidLauncher
from referee.sandbox.rungs import (
    NO_ISOLATION,
    Isolation,
    ProbeResult,
    Refusal,
    Rung,
    State,
    rung_from_results,
)
from referee.sandbox.sandbox import SandboxLauncher

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
    """Return the isolation for bots on this machine.

    Raises UserError if the machine does not give the wanted rung or the required one, or if `wanted` is weaker
    than `required`.

    Args:
        wanted: the rung to use; None for the strongest rung of this machine.
        required: the weakest rung that is acceptable; None if every rung is acceptable.
    """
    if wanted is not None and required is not None and wanted.height < required.height:
        raise UserError(f"isolation {wanted.value!r} is less than the required {required.value!r}")
    found = await _find_strongest() if wanted is None else await _find_exactly(wanted)
    needed = wanted or required
    if needed is not None and found.rung.height < needed.height:
        raise UserError(f"isolation {needed.value!r}: {_explain_refusals(found)}")
    return found


def make_launcher(isolation: Isolation) -> Launcher:
    """Return the launcher for an isolation that `select_isolation` returned on this machine.

    Raises VoidGame if bubblewrap was removed since then.
    """
    cgroups = Cgroups.find() if isolation.cgroups else Cgroups(())
    match isolation.rung:
        case Rung.FULL | Rung.NAMESPACES:
            bwrap = bubblewrap.find_bubblewrap()
            if bwrap is None:
                raise VoidGame(
                    "bubblewrap is gone since the isolation was selected: install it again"
                )
            return SandboxLauncher(bwrap, cgroups, isolation.summary)
        case Rung.UID:
            return UidLauncher(cgroups, isolation.summary)
        case Rung.NONE:
            return ProcessGroupLauncher()


async def _find_strongest() -> Isolation:
    """Return the isolation on the strongest rung of this machine. On Linux, add a refusal for each stronger rung."""
    if sys.platform != "linux":
        return replace(
            NO_ISOLATION, refusals=(Refusal(Rung.UID, "this is not Linux", "use Linux"),)
        )
    refusals: list[Refusal] = []
    for rungs, try_rungs in (
        ((Rung.FULL, Rung.NAMESPACES), _try_bubblewrap),
        ((Rung.UID,), _try_user_ids),
    ):
        found = await try_rungs(Cgroups.find())
        if isinstance(found, Isolation):
            return replace(found, refusals=(*refusals, *found.refusals), cgroups=True)
        reason, advice = found
        refusals += [Refusal(rung, reason, advice) for rung in rungs]
    return replace(NO_ISOLATION, refusals=tuple(refusals))


async def _find_exactly(wanted: Rung) -> Isolation:
    """Return the isolation on the wanted rung.

    If the machine does not give that rung, return the isolation on a weaker rung, with the refusals.
    """
    match wanted:
        case Rung.FULL:
            return await _find_strongest()
        case Rung.NAMESPACES:
            found = await _try_bubblewrap(Cgroups(()))
        case Rung.UID:
            found = await _try_user_ids(Cgroups(()))
        case Rung.NONE:
            return NO_ISOLATION
    if isinstance(found, Isolation):
        return found
    return replace(NO_ISOLATION, refusals=(Refusal(wanted, *found),))


async def _try_bubblewrap(cgroups: Cgroups) -> Isolation | tuple[str, str]:
    """Return the isolation that bubblewrap gives, on the rung `full` or `namespaces`.

    If bubblewrap gives neither rung, return the reason and advice.
    """
    bwrap = bubblewrap.find_bubblewrap()
    if bwrap is None:
        return "bubblewrap is not installed", _INSTALL
    try:
        results = await probe(SandboxLauncher(bwrap, cgroups))
    except (Forfeit, VoidGame) as error:
        return str(error), _USER_NAMESPACES
    gaps = _describe_gaps(results)
    rung = rung_from_results(results)
    if rung is None:
        return f"bubblewrap does not keep bots apart here: {gaps}", _USER_NAMESPACES
    refusals = () if rung is Rung.FULL else (Refusal(Rung.FULL, gaps, _CGROUPS),)
    return Isolation(rung, results, refusals)


async def _try_user_ids(cgroups: Cgroups) -> Isolation | tuple[str, str]:
    """Return the isolation on the rung `uid`. If the machine does not give that rung, return the reason and advice."""
    if os.geteuid() != 0:
        return "the referee is not root", "run the referee as root; a stronger rung is better"
    try:
        return Isolation(Rung.UID, await probe(UidLauncher(cgroups)))
    except RefereeError as error:
        return str(error), "give the referee's container the user ids 61184 to 62183"


def _describe_gaps(results: tuple[ProbeResult, ...]) -> str:
    """Return the protections that are partial or off, each with the reason."""
    return "; ".join(
        f"{each.protection.value}: {each.reason}" for each in results if each.state is not State.ON
    )


def _explain_refusals(found: Isolation) -> str:
    reasons = [f"{each.rung.value}: {each.reason} ({each.advice})" for each in found.refusals]
    return "this machine does not give it: " + "; ".join(reasons)
