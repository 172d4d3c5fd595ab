"""Prepare a Dask worker for a tournament, or say why it cannot play."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distributed import Client
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker
from distributed.versions import get_versions

from referee.cluster import member
from referee.cluster.member import DeploymentRequest
from referee.errors import UserError

LOST = (KilledWorker, FutureCancelledError, CommClosedError)
"""The errors of Dask when a worker or the scheduler is gone."""
_PACKAGE = "linko-referee"


async def prepare(
    client: Client, address: str, request: DeploymentRequest, pack: Callable[[str], bytes]
) -> str:
    """Compare versions, test the isolation, and build the missing bots. Return why the worker cannot play; empty if it can.

    Args:
        client: the connection to the scheduler.
        address: the address of the worker.
        request: what the worker needs to know.
        pack: returns the archive of a bot (`name@version`), as `Workshop.pack` does.

    Raises the errors in `LOST` if the worker is gone.
    """
    try:
        await _compare_versions(client, address)
        missing = await call(client, address, member.deploy, request)
        reasons = []
        for bot in missing:
            arguments = request.deployment, bot, pack(bot)
            if reason := await call(client, address, member.add_bot, *arguments):
                reasons.append(f"{bot} cannot be built: {reason}")
        return "; ".join(reasons)
    except UserError as error:
        return str(error)
    except LOST:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, this worker cannot play
        return f"{type(error).__name__}: {error}"


async def call(client: Client, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in the process of a Dask worker. It needs no Dask resource `CORE`, so it runs at once, also while the worker plays."""
    results = await client.run(function, *arguments, workers=[address])
    return results[address]


async def _compare_versions(client: Client, address: str) -> None:
    """Raise UserError if a worker has another version of the referee, or another minor version of Python."""
    scheduler: Any = client.scheduler
    versions = {"op": "versions", "packages": [_PACKAGE]}
    found = await scheduler.broadcast(msg=versions, workers=[address])
    there, here = (each["packages"] for each in (found[address], get_versions([_PACKAGE])))
    for package, name in ((_PACKAGE, "the referee"), ("python", "Python")):
        theirs, ours = there.get(package), here.get(package)
        if package == "python":  # versions that differ only in the last number are compatible
            theirs, ours = (".".join(str(each).split(".")[:2]) for each in (theirs, ours))
        if theirs != ours:
            raise UserError(
                f"it has {name} {theirs}, but the driver has {ours}; install {ours} there"
            )
