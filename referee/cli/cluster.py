"""`referee worker`, and the options of commands that play on a Dask cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from referee.cli.isolation import NetworkOption
from referee.cli.options import INTERRUPTED, console
from referee.errors import UserError
from referee.roster.roster import Roster
from referee.sandbox import Isolation
from referee.tournament.assignments import WorkerGroup
from referee.tournament.create import Tournament
from referee.tournament.workers import local_workers

if TYPE_CHECKING:  # needs the extra `cluster`
    from referee.cluster.connection import Certificates

app = typer.Typer()

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Play on the workers of a Dask scheduler, HOST:PORT. local:N starts a scheduler and N workers here, for trying.",
    ),
]
AuthorityOption = Annotated[
    Path | None, typer.Option("--tls-ca", help="The certificate of the authority for TLS (PEM).")
]
CertificateOption = Annotated[
    Path | None, typer.Option("--tls-cert", help="The certificate of this side for TLS (PEM).")
]
KeyOption = Annotated[Path | None, typer.Option("--tls-key", help="The key of this side (PEM).")]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--bots",
        metavar="DIR",
        help="The folder for the copies of bots. By default linko-referee in the user's cache folder.",
    ),
]
OpenWorkers = Callable[[Callable[[str], None]], AbstractAsyncContextManager[WorkerGroup]]
"""Returns the workers of a tournament. The argument prints a sentence about a worker."""


def choose_workers(
    cluster: str | None,
    tls: tuple[Path | None, Path | None, Path | None],
    tournament: Tournament,
    roster: Roster,
    isolation: Isolation,
) -> OpenWorkers:
    """Return what opens the workers of a tournament: on a cluster if `cluster` is given, otherwise on this machine.

    Args:
        cluster: the option `--cluster`.
        tls: the options `--tls-ca`, `--tls-cert` and `--tls-key`.
        tournament: the tournament.
        roster: has the bots.
        isolation: the isolation of the bots.

    Raises UserError for options that do not go together, and if the extra `cluster` is not installed.
    """
    if cluster is None:
        if any(tls):
            raise UserError("--tls-ca, --tls-cert and --tls-key need --cluster")
        return lambda say: local_workers(
            tournament.config,
            isolation,
            lambda what: say(f"{what}; a new one plays its unfinished games again."),
        )
    check_extra()
    from referee.cluster.remote_workers import cluster_workers  # noqa: PLC0415 - needs the extra

    certificates = make_certificates(*tls)
    return lambda say: cluster_workers(
        cluster,
        certificates,
        default_folder(),
        tournament=tournament,
        roster=roster,
        isolation=isolation,
        say=say,
    )


@app.command()
def worker(
    scheduler: Annotated[str, typer.Argument(help="The address of the Dask scheduler, HOST:PORT.")],
    cores: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="The number of workers. By default one for each core of this machine.",
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            help="The address at which the workers listen. By default the one that reaches the scheduler."
        ),
    ] = None,
    bots: FolderOption = None,
    network: NetworkOption = False,
    tls_ca: AuthorityOption = None,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
) -> None:
    """Lend the cores of this machine to the tournaments of a Dask scheduler, until Ctrl-C.

    Bots come from the driver of the tournament. They are built and isolated on this machine. If the scheduler ends, the
    command waits for a new one at the same address.

    Example: referee worker 127.0.0.1:8786 --cores 2
    """
    check_extra()
    from referee.cluster.connection import (  # noqa: PLC0415
        check_scheduler,
        scheduler_address,
        wait_for_scheduler,
    )
    from referee.cluster.host import places, run_workers  # noqa: PLC0415

    certificates = make_certificates(tls_ca, tls_cert, tls_key)
    address = scheduler_address(scheduler, certificates)
    security = None if certificates is None else certificates.security()
    found = places(cores, bots or default_folder(), network=network)

    async def run() -> None:
        await check_scheduler(address, security)
        while True:
            console.print(f"{address}: {len(found)} workers are ready.", soft_wrap=True)
            await run_workers(address, found, host=host, security=security)
            console.print(f"{address}: the scheduler is gone. Waiting for it.", soft_wrap=True)
            await wait_for_scheduler(address, security)

    with suppress(KeyboardInterrupt):
        asyncio.run(run())
    raise typer.Exit(INTERRUPTED)


def check_extra() -> None:
    """Raise UserError if the extra `cluster` is not installed."""
    if find_spec("distributed") is None:
        raise UserError(
            "a cluster needs Dask, which is not installed: pip install 'linko-referee[cluster]'"
        )


def make_certificates(
    authority: Path | None, certificate: Path | None, key: Path | None
) -> Certificates | None:
    """Return the files for TLS; None without TLS. Raises UserError if some are given, but not all."""
    from referee.cluster.connection import Certificates  # noqa: PLC0415 - needs the extra

    if authority is None and certificate is None and key is None:
        return None
    if authority is None or certificate is None or key is None:
        raise UserError("--tls-ca, --tls-cert and --tls-key go together: give all three")
    return Certificates(authority, certificate, key)


def default_folder() -> Path:
    """Return the folder for copies of bots on a worker's machine."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "linko-referee"
