"""Define `referee worker`, and the options of commands that play on a Dask cluster."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from referee.bots.logs import LogSettings
from referee.cli.options import INTERRUPTED, console, parse_path
from referee.errors import UserError
from referee.roster.roster import Roster
from referee.sandbox import Isolation
from referee.sandbox.folders import require_home
from referee.tournament.assignments import WorkerGroup
from referee.tournament.config import TournamentConfig
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
        help="Play on the workers of a Dask scheduler, HOST:PORT. local:N is for trials: it starts a scheduler and N workers on this machine.",
    ),
]
AuthorityOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca", parser=parse_path, help="The certificate of the authority for TLS (PEM)."
    ),
]
CertificateOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert", parser=parse_path, help="The certificate of this side for TLS (PEM)."
    ),
]
KeyOption = Annotated[
    Path | None, typer.Option("--tls-key", parser=parse_path, help="The key of this side (PEM).")
]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--bots",
        parser=parse_path,
        metavar="DIR",
        help="The folder for the copies of bots. By default linko-referee in the user's cache folder.",
    ),
]
OpenWorkers = Callable[[Callable[[str], None]], AbstractAsyncContextManager[WorkerGroup]]
"""A function that opens the workers of a tournament. It takes a function that prints messages about the workers."""


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """The cluster that the user chose with the options of a command."""

    address: str
    """The option `--cluster`."""
    certificates: Certificates | None

    def options(self) -> list[str]:
        """Return the options as words, for a command that the user can type, such as the one that resumes a tournament."""
        words = ["--cluster", self.address]
        if self.certificates is not None:
            files = self.certificates
            words += ["--tls-ca", str(files.authority), "--tls-cert", str(files.certificate)]
            words += ["--tls-key", str(files.key)]
        return words


def choose_cluster(
    address: str | None, authority: Path | None, certificate: Path | None, key: Path | None
) -> ClusterChoice | None:
    """Return the cluster that the options name, and disable logs; without `--cluster`, only return None.

    Raises UserError for wrong options, and if the extra `cluster` is not installed.
    """
    if address is None:
        if any((authority, certificate, key)):
            raise UserError("--tls-ca, --tls-cert and --tls-key need --cluster")
        return None
    check_extra()
    from referee.cluster.connection import check_address  # noqa: PLC0415 - needs the extra

    certificates = make_certificates(authority, certificate, key)
    check_address(address, certificates)
    _disable_logs()
    return ClusterChoice(address, certificates)


def check_cores(choice: ClusterChoice | None, config: TournamentConfig) -> None:
    """Raise UserError if a game needs more cores than a worker of a cluster has."""
    if choice is not None and config.cores_per_game > 1:
        raise UserError(
            f"cores_per_game: {config.cores_per_game} is impossible with --cluster: a worker has one core"
        )


def check_isolation(choice: ClusterChoice | None, isolation: Isolation) -> None:
    """Raise UserError if bots with this isolation could take over the cluster."""
    if choice is not None:
        from referee.cluster import connection  # noqa: PLC0415 - needs the extra

        connection.check_isolation(choice.address, choice.certificates, isolation)


def check_cluster(choice: ClusterChoice | None) -> None:
    """Raise UserError if no scheduler can be reached. Call this before something is stored."""
    if choice is not None:
        from referee.cluster import connection  # noqa: PLC0415 - needs the extra

        asyncio.run(connection.check_cluster(choice.address, choice.certificates))


def choose_workers(
    choice: ClusterChoice | None,
    tournament: Tournament,
    roster: Roster,
    isolation: Isolation,
    logs: LogSettings | None = None,
) -> OpenWorkers:
    """Return a function that opens the workers of a tournament: on a cluster, or on this machine if `choice` is None.

    Without a cluster, the workers write `logs`, see `WorkerSettings`. The workers of a cluster write none.
    """
    if choice is None:
        return lambda say: local_workers(
            tournament.config,
            isolation,
            lambda what: say(f"{what}; a new one plays its unfinished games again."),
            logs,
        )
    from referee.cluster.remote_workers import cluster_workers  # noqa: PLC0415 - needs the extra

    return lambda say: cluster_workers(
        choice.address,
        choice.certificates,
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
            help="How many cores to lend. Each gets one worker. By default all cores that the command may use.",
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            help="The address at which the workers listen. By default the address from which this machine reaches the scheduler."
        ),
    ] = None,
    bots: FolderOption = None,
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
        is_loopback,
        scheduler_address,
        serve,
    )
    from referee.cluster.host import places  # noqa: PLC0415

    certificates = make_certificates(tls_ca, tls_cert, tls_key)
    address = scheduler_address(scheduler, certificates)
    if host is not None and certificates is None and not is_loopback(host):
        raise UserError(
            f"--host {host}: other machines would reach the workers without TLS; give --tls-ca, --tls-cert and --tls-key"
        )
    security = None if certificates is None else certificates.security()
    found = places(cores, bots or default_folder())
    _disable_logs()
    with suppress(KeyboardInterrupt):
        asyncio.run(
            serve(
                address,
                found,
                host=host,
                security=security,
                say=lambda text: console.print(text, soft_wrap=True),
            )
        )
    raise typer.Exit(INTERRUPTED)


def _disable_logs() -> None:
    """Print no logs until this process ends. The referee logs nothing here, so only logs of libraries are lost.

    After a lost connection, Dask logs a traceback of everything that was interrupted. Some of these logs come only while the
    process exits.
    """
    logging.disable(logging.CRITICAL)


def check_extra() -> None:
    """Raise UserError if the extra `cluster` is not installed."""
    if find_spec("distributed") is None or find_spec("cryptography") is None:
        raise UserError(
            "a cluster needs Dask and cryptography, which are not installed: pip install 'linko-referee[cluster]'"
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
    cache = os.environ.get("XDG_CACHE_HOME") or require_home() / ".cache"
    return Path(cache) / "linko-referee"
