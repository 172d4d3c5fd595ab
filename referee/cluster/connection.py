"""Connect the driver of a tournament, or the workers of a machine, with a Dask scheduler, and prepare workers for a tournament.

`serve` runs the workers of a machine. If the scheduler ends, `serve` waits for a new one at the same address, and starts the workers
again. `prepare` prepares one worker; its error says why the worker cannot play.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import Client, Scheduler, Security, SpecCluster
from distributed.client import ClosedClientError, FutureCancelledError
from distributed.comm.core import CommClosedError
from distributed.core import Status, rpc
from distributed.scheduler import KilledWorker
from distributed.versions import get_versions

from referee.cluster import member
from referee.cluster.host import (
    CONFIG,
    SCRATCH,
    QuietNanny,
    places,
    remove_killed_runs,
    run_workers,
    worker_options,
)
from referee.cluster.member import DeploymentRequest, Place
from referee.errors import RefereeError, UserError, count_text
from referee.sandbox import Isolation, Protection, Rung, State
from referee.sandbox.folders import run_folder

CONNECT_S = 8.0
"""Timeout in seconds for connecting to a scheduler."""
_RETRY_S = 1.0
_MAX_FAILED_STARTS = 3
"""`referee worker` gives up after this many starts in a row in which a worker process ended. Fewer such starts prove
nothing, because the process may have been killed by a person, or by the kernel for lack of memory."""
_UNREACHABLE = (CommClosedError, ConnectionError, TimeoutError)
"""The errors of a connection that was closed or not made."""
LOCAL = "local:"
"""The first part of an address that starts a cluster on this machine."""
_LOST = (KilledWorker, FutureCancelledError, CommClosedError, ClosedClientError)
"""The errors of Dask when a worker or the scheduler is gone."""
_CONNECTION_OBJECT = re.compile(r"^in <[^>]*>: ")
"""Matches the beginning of an error text of Dask, such as `in <TCPConnector object at 0x…>: `."""
_PACKAGE = "linko-referee"
"""The name of the referee in a list of installed packages."""


def is_open(client: Client) -> bool:
    """Return False if the client is connecting, closing or closed.

    The status alone is not enough. If the scheduler comes back while the client closes, the status is `running`, although the
    client cannot connect any more.
    """
    return bool(client.status == "running" and client.rpc.status is Status.running)


def is_loss(error: BaseException, client: Client) -> bool:
    """Return whether an error of a call to Dask means that a worker or the scheduler is gone.

    Dask raises RuntimeError for some calls if the client is closing or closed. If the client is open, a RuntimeError is a bug.
    """
    return isinstance(error, _LOST) or (isinstance(error, RuntimeError) and not is_open(client))


@dataclass(frozen=True, slots=True)
class Certificates:
    """The files for TLS, as PEM: the authority's certificate, and the certificate and the key of this side."""

    authority: Path
    certificate: Path
    key: Path

    def security(self) -> Security:
        """Return the settings of Dask. Raises UserError if a file is missing or cannot be used."""
        for path in (self.authority, self.certificate, self.key):
            if not path.is_file():
                raise UserError(f"{path}: no such file")
        self._load()
        own = {"cert": str(self.certificate), "key": str(self.key)}
        words = {
            f"tls_{role}_{name}": path
            for role in ("client", "worker", "scheduler")
            for name, path in own.items()
        }
        return Security(tls_ca_file=str(self.authority), require_encryption=True, **words)

    def _load(self) -> None:
        """Load the files to check them. Raises UserError with the name of the first file that cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for path in (self.authority, self.certificate):
            try:
                context.load_verify_locations(path)
            except OSError as error:
                raise UserError(f"{path}: no certificate in PEM can be read from it") from error
        try:
            context.load_cert_chain(self.certificate, self.key, password="")
        except OSError as error:
            raise UserError(
                f"{self.key}: no key of the certificate {self.certificate} can be read from it; it must be PEM, without a password"
            ) from error


def scheduler_address(
    text: str, certificates: Certificates | None, *, forms: str = "HOST:PORT"
) -> str:
    """Return the address of a scheduler with its protocol, `tcp://` or `tls://`.

    Args:
        text: what the user wrote.
        certificates: the files for TLS; None without TLS.
        forms: what the user may write, for the message.

    Raises UserError if the text is no address, or if it has `tcp://` with certificates or `tls://` without. Raises UserError also if
    there are no certificates and the address is not on this machine.
    """
    address = text if "://" in text else f"{'tls' if certificates else 'tcp'}://{text}"
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")  # an empty or too long label raises ValueError
        is_address = address.partition("://")[2] == parts.netloc and "@" not in parts.netloc
    except ValueError:
        is_address = False
    if not is_address or parts.scheme not in {"tcp", "tls"} or not host or not port:
        raise UserError(f"{text!r} is not the address of a scheduler; write {forms}")
    if (parts.scheme == "tls") != (certificates is not None):
        raise UserError(
            f"{text}: an address with tls:// needs --tls-ca, --tls-cert and --tls-key, and these need tls://"
        )
    if certificates is None and not is_loopback(host):
        raise UserError(
            f"{text}: TLS is required beyond this machine; give --tls-ca, --tls-cert and --tls-key"
        )
    # `urlsplit` writes the protocol in small letters; Dask does not know `TCP`
    return f"{parts.scheme}://{parts.netloc}"


def check_address(text: str, certificates: Certificates | None) -> None:
    """Check an address and the files for TLS without connecting. Raises UserError if one is wrong."""
    if not text.startswith(LOCAL):
        scheduler_address(text, certificates, forms=f"HOST:PORT or {LOCAL}N")
        if certificates is not None:
            certificates.security()
    elif certificates is not None:
        raise UserError(f"{text}: a cluster on this machine needs no certificates")
    else:
        _local_count(text)


def check_isolation(text: str, certificates: Certificates | None, isolation: Isolation) -> None:
    """Raise UserError if bots could connect to the scheduler. They would then have the rights of the referee.

    The rung `none` is not checked, because there bots have these rights anyway.
    """
    if (
        not text.startswith(LOCAL)
        and certificates is None
        and isolation.rung is not Rung.NONE
        and isolation.state(Protection.NETWORK) is not State.ON
    ):
        raise UserError(
            f"{text}: TLS is required, because bots on the rung {isolation.rung.value!r} reach the scheduler; give --tls-ca, --tls-cert and --tls-key"
        )


async def check_cluster(text: str, certificates: Certificates | None) -> None:
    """Raise UserError if no scheduler listens at an address. An address `local:N` is not checked, because it starts a scheduler."""
    if not text.startswith(LOCAL):
        security = None if certificates is None else certificates.security()
        await check_scheduler(scheduler_address(text, certificates), security)


async def check_scheduler(address: str, security: Security | None) -> None:
    """Raise UserError if no scheduler listens at an address."""
    arguments = (security or Security()).get_connection_args("client")
    try:
        async with asyncio.timeout(
            CONNECT_S
        ):  # another server may accept the connection and never reply
            with dask.config.set({"distributed.comm.timeouts.connect": CONNECT_S}):
                async with rpc(address, timeout=CONNECT_S, connection_args=arguments) as remote:
                    kind = (await remote.identity())["type"]
    except Exception as error:  # when Dask parses what another server sends, any error may occur
        reason = await _find_reason(address, error)
        raise UserError(f"{address}: no scheduler can be reached: {reason}") from error
    if kind != "Scheduler":
        raise UserError(f"{address}: this is a {kind.lower()} of Dask, not a scheduler")


async def _find_reason(address: str, error: Exception) -> str:
    """Return one line that says why no scheduler can be reached at an address. `error` is the error of Dask."""
    # after the timeout in `check_scheduler`, the last cause is a CancelledError, which is no Exception
    *_, cause = (each for each in _list_causes(error) if isinstance(each, Exception))
    if not isinstance(cause, OSError):
        tls = " with TLS" if address.startswith("tls:") else ""
        return f"what listens there is not a scheduler{tls}"
    if isinstance(cause, TimeoutError):
        cause = await _try_to_connect(address) or cause
    text = cause.strerror or str(cause) or "no reply"
    return _CONNECTION_OBJECT.sub("", text.splitlines()[0])


async def _try_to_connect(address: str) -> OSError | None:
    """Connect to an address and disconnect. Return the error, or None if there is none.

    Dask repeats the attempt until its timeout. Then it mostly reports the timeout instead of this error.
    """
    parts = urlsplit(address)
    host_and_port = (parts.hostname, parts.port)
    try:
        made = await asyncio.to_thread(socket.create_connection, host_and_port, _RETRY_S)
    except OSError as error:
        return error
    made.close()
    return None


async def wait_for_scheduler(address: str, security: Security | None) -> None:
    """Return as soon as a scheduler listens at an address."""
    while True:
        with suppress(UserError):
            return await check_scheduler(address, security)
        await asyncio.sleep(_RETRY_S)


async def serve(
    address: str,
    found: Sequence[Place],
    *,
    host: str | None,
    security: Security | None,
    say: Callable[[str], None],
) -> None:
    """Start a Dask worker for each place. Whenever they have ended, wait for the scheduler and start them again.

    Args:
        address: the address of the scheduler.
        found: the places of the workers.
        host: see `run_workers`.
        security: the certificates; None without TLS.
        say: called with a sentence when the workers are started, and when they have ended.

    Raises UserError if no scheduler can be reached at the first check. Raises RefereeError if an OSError prevents the start of the
    workers. If the error says only that a worker process ended during its start, raises RefereeError after
    `_MAX_FAILED_STARTS` such starts in a row. A start that fails because the connection was lost is always repeated.
    """
    await check_scheduler(address, security)
    failed_starts = 0
    while True:
        say(f"{address}: starting {count_text(len(found), 'worker')}.")
        try:
            await run_workers(address, found, host=host, security=security)
        except (OSError, RuntimeError) as error:  # the errors of a Dask process that does not start
            causes = list(_list_causes(error))
            if any(isinstance(reason, _UNREACHABLE) for reason in causes):
                failed_starts = 0
            else:
                failed_starts += 1
                # without an OSError, it is only known that a process has ended; another start may succeed
                if isinstance(causes[-1], OSError) or failed_starts == _MAX_FAILED_STARTS:
                    raise _start_error(address, error) from error
        else:
            failed_starts = 0
        try:
            await check_scheduler(address, security)
        except UserError:
            say(f"{address}: the scheduler is gone. Waiting for it.")
            await wait_for_scheduler(address, security)
        else:
            say(f"{address}: a worker or its connection was lost. All workers are started again.")
            await asyncio.sleep(_RETRY_S)


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on."""
    while error is not None:
        yield error
        error = error.__cause__


def _start_error(address: str, error: Exception) -> RefereeError:
    """Return the error for the user when Dask cannot start its processes. Dask's errors name what failed; the root cause says why."""
    *_, cause = _list_causes(error)
    reason = str(cause).rstrip(".") or type(cause).__name__
    return RefereeError(f"{address}: the workers cannot be started: {reason}")


@asynccontextmanager
async def connect(
    text: str, certificates: Certificates | None, cache: Path
) -> AsyncIterator[Client]:
    """Provide a client of the scheduler at an address, or of a new cluster on this machine.

    Dask logs each lost connection, so the caller turns logs off.

    Args:
        text: the address, or `local:N` to start a scheduler and N workers here.
        certificates: the files for TLS; None without TLS.
        cache: the folder for copies of bots, for a new cluster.

    Raises UserError if no scheduler can be reached, and RefereeError if the new cluster cannot be started.
    """
    if text.startswith(LOCAL):
        security = Security.temporary()
        async with (
            _local_cluster(_local_count(text), cache, security) as address,
            _make_client(address, security) as client,
        ):
            yield client
        return
    address = scheduler_address(text, certificates)
    security = None if certificates is None else certificates.security()
    await check_scheduler(address, security)
    async with _make_client(address, security) as client:
        yield client


def _make_client(address: str, security: Security | None) -> Client:
    return Client(
        address, security=security, asynchronous=True, timeout=CONNECT_S, set_as_default=False
    )


def _local_count(text: str) -> int:
    count = text.removeprefix(LOCAL)
    if not (count.isascii() and count.isdecimal() and len(count) <= 4 and 1 <= int(count) <= 1024):  # noqa: PLR2004
        raise UserError(f"{text!r}: write {LOCAL}N, with a number of workers from 1 to 1024")
    return int(count)


@asynccontextmanager
async def _local_cluster(workers: int, cache: Path, security: Security) -> AsyncIterator[str]:
    """Start a scheduler in this process and workers on this machine; provide the scheduler's address.

    Each side must show a certificate, so other users of this machine cannot connect. Isolated bots cannot connect either, even on
    a rung where they can use the network.
    """
    with run_folder() as folder, dask.config.set(CONFIG | {SCRATCH: str(folder)}):
        found = places(workers, cache)
        cluster = SpecCluster(
            scheduler={
                "cls": Scheduler,
                "options": {
                    "protocol": "tls",
                    "security": security,
                    "host": "127.0.0.1",
                    "port": 0,
                    "dashboard": False,
                    "dashboard_address": "127.0.0.1:0",
                },
            },
            workers={
                number: {
                    "cls": QuietNanny,
                    "options": worker_options(place, security) | {"host": "127.0.0.1"},
                }
                for number, place in enumerate(found)
            },
            security=security,
            asynchronous=True,
            silence_logs=False,
        )
        async with AsyncExitStack() as stack:
            stack.callback(remove_killed_runs)
            try:
                await stack.enter_async_context(cluster)
            except (OSError, RuntimeError) as error:
                raise _start_error(f"{LOCAL}{workers}", error) from error
            assert cluster.scheduler is not None  # noqa: S101 - the cluster has started it
            cluster.scheduler.http_server.stop()  # it has no TLS; see `PlacePlugin`
            yield cluster.scheduler_address


def is_loopback(host: str) -> bool:
    """Return True if an address or a name can be reached only from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


async def prepare(
    client: Client, address: str, request: DeploymentRequest, pack: Callable[[str], bytes]
) -> None:
    """Prepare a Dask worker: compare versions, test its isolation, and let it build the bots that it does not have.

    Args:
        client: the connection to the scheduler.
        address: the address of the worker.
        request: what the worker needs to know.
        pack: returns the files of a bot (`name@version`) in a tar archive, as `Workshop.pack` does.

    Raises UserError if the worker cannot play the tournament. If the worker or the scheduler is gone, raises an error for which
    `is_loss` returns True. After any other error, such as OSError for a full disk, the worker may be able to play later.
    """
    await _compare_versions(client, address)
    missing = await call(client, address, member.deploy, request)
    reasons = []
    for bot in missing:
        arguments = request.deployment, bot, pack(bot)
        if reason := await call(client, address, member.add_bot, *arguments):
            reasons.append(f"{bot} cannot be built: {reason}")
    if reasons:
        raise UserError("; ".join(reasons))


async def call(client: Client, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in the process of a Dask worker.

    The call takes no Dask resource `CORE`, so the function runs at once, also while the worker plays.
    """
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
