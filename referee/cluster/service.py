"""Keep the workers of a machine at a scheduler, also when the scheduler is started again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from distributed import Security
from distributed.comm.core import CommClosedError

from referee.cluster.connection import check_scheduler, wait_for_scheduler
from referee.cluster.host import run_workers
from referee.cluster.member import Place
from referee.errors import RefereeError

_LOST = (CommClosedError, ConnectionError, TimeoutError)
"""The errors of a connection that was closed or not made."""


async def serve(
    address: str,
    found: Sequence[Place],
    *,
    host: str | None,
    security: Security | None,
    say: Callable[[str], None],
) -> None:
    """Start a Dask worker for each place. When the scheduler is gone, wait for it and start them again, without an end.

    Args:
        address: the address of the scheduler.
        found: the places of the workers.
        host: see `run_workers`.
        security: the certificates; None without TLS.
        say: called with a sentence when the workers are started, and when the scheduler is gone.

    Raises UserError if no scheduler can be reached at first, and RefereeError if the workers cannot be started for another
    reason than a lost connection.
    """
    await check_scheduler(address, security)
    while True:
        say(f"{address}: starting {len(found)} workers.")
        try:
            await run_workers(address, found, host=host, security=security)
        except (OSError, RuntimeError) as error:  # the errors of a Dask process that does not start
            reasons = list(_list_causes(error))
            if not any(isinstance(reason, _LOST) for reason in reasons):
                text = ": ".join(str(reason).rstrip(".") for reason in reasons)
                raise RefereeError(f"{address}: the workers cannot be started: {text}") from error
        say(f"{address}: the scheduler is gone. Waiting for it.")
        await wait_for_scheduler(address, security)


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on."""
    while error is not None:
        yield error
        error = error.__cause__
