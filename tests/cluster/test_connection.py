"""Addresses of schedulers, TLS, and errors of users who want a cluster."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
import struct
from dataclasses import replace
from threading import Thread
from urllib.parse import urlsplit

import pytest
from clusters import free_port, process, run, scheduler, tls_options, wait_for
from distributed import Scheduler, Security
from distributed.comm.core import CommClosedError
from pages import ROOT
from real_runs import BIN, place

from referee.cluster import connection
from referee.cluster.connection import (
    check_address,
    check_isolation,
    connect,
    scheduler_address,
)
from referee.errors import RefereeError, UserError
from referee.sandbox import NO_ISOLATION, ProbeResult, Protection, Rung, State


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made


@pytest.fixture
def _impatient(monkeypatch):
    """Wait for a scheduler for one second instead of ten."""
    monkeypatch.setattr(connection, "CONNECT_S", 1.0)


@pytest.mark.parametrize(
    "text", ["127.0.0.1:8786", "localhost:8786", "tcp://[::1]:8786", "TCP://127.0.0.1:8786"]
)
def test_address_of_this_machine_needs_no_tls(text):
    assert scheduler_address(text, None).startswith("tcp://")


@pytest.mark.parametrize("text", ["10.0.0.1:8786", "tcp://host:1", "0.0.0.0:8786"])
def test_address_beyond_this_machine_needs_tls(text):
    with pytest.raises(UserError, match="TLS is required beyond this machine; give --tls-ca"):
        scheduler_address(text, None)


@pytest.mark.toolchain("openssl")
def test_file_for_tls_that_cannot_be_used_is_named(certificates, tmp_path):
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("garbage\n")
    foreign = certificates.key.with_name("authority.key")
    for name, path in (
        ("authority", garbage),
        ("certificate", garbage),
        ("key", garbage),
        ("key", foreign),
    ):
        with pytest.raises(UserError, match=f"^{path}: no .*PEM"):
            check_address("10.0.0.1:8786", replace(certificates, **{name: path}))


@pytest.mark.toolchain("openssl")
def test_bots_that_reach_a_scheduler_need_tls_there(certificates):
    uid = replace(NO_ISOLATION, rung=Rung.UID)
    network = ProbeResult(Protection.NETWORK, State.ON, "no address was reached")
    full = replace(NO_ISOLATION, rung=Rung.FULL, results=(network,))
    with pytest.raises(UserError, match="TLS is required, because bots on the rung 'uid' reach"):
        check_isolation("127.0.0.1:8786", None, uid)
    for address, files, isolation in (
        ("127.0.0.1:8786", certificates, uid),
        ("local:2", None, uid),
        ("127.0.0.1:8786", None, full),
        ("127.0.0.1:8786", None, NO_ISOLATION),  # bots have the rights of the referee anyway
    ):
        check_isolation(address, files, isolation)


@pytest.mark.extended("starts clusters")
async def test_other_programs_cannot_connect_to_a_cluster_of_this_machine(tmp_path):
    without_certificate = ssl.create_default_context()
    without_certificate.check_hostname = False
    without_certificate.verify_mode = ssl.CERT_NONE
    async with connect("local:1", None, tmp_path) as client:
        assert await client.run(os.getpid)
        [worker] = (await client.scheduler.identity())["workers"]
        for address in (client.scheduler.address, worker):
            parts = urlsplit(address)
            assert parts.scheme == "tls"
            with pytest.raises(UserError, match="no scheduler can be reached"):
                await connection.check_scheduler(f"tcp://{parts.netloc}", None)
            reader, writer = await asyncio.open_connection(
                parts.hostname, parts.port, ssl=without_certificate
            )
            with pytest.raises(ssl.SSLError, match="certificate required"):
                await reader.read()
            writer.transport.abort()


async def test_local_cluster_that_cannot_be_started_is_no_bug(tmp_path, monkeypatch):
    class FullDisk(Scheduler):
        async def start_unsafe(self):
            raise OSError("no space")

    monkeypatch.setattr(connection, "Scheduler", FullDisk)
    with pytest.raises(RefereeError, match=r"^local:1: the workers cannot be started: no space$"):
        async with connect("local:1", None, tmp_path):
            pytest.fail("the cluster was started")


@pytest.mark.extended("probes the isolation")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives each bot a user id of its own")
def test_cluster_that_bots_reach_is_refused_before_a_game(here):
    words = ("tournament", "run", here.tournament(), "--cluster", "127.0.0.1:8786")
    done = here.referee(*words, "--isolation", "uid")
    assert done.returncode == 2
    assert "bots on the rung 'uid' reach the scheduler; give --tls-ca" in done.stderr
    assert "resume" not in done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        "127.0.0.1:x",
        "127.0.0.1:99999",
        "http://127.0.0.1:1",
        ":1",
        "[::1:8786",
        "[x]:1",
        "\u2100:1",
        "127.0.0.1:8786/foo",
        "127.0.0.1:8786?",
        "127.0.0.1:8786#x",
        "user@127.0.0.1:8786",
        "127.0.0.1:87\n86",
        "a..b:8786",
        f"{'x' * 70}:8786",
    ],
)
def test_text_that_is_no_address_is_refused(text):
    for check, forms in ((scheduler_address, "HOST:PORT"), (check_address, "HOST:PORT or local:N")):
        with pytest.raises(UserError, match=f"is not the address of a scheduler; write {forms}$"):
            check(text, None)


@pytest.mark.toolchain("openssl")
def test_certificates_and_protocol_must_fit(certificates):
    assert scheduler_address("10.0.0.1:8786", certificates) == "tls://10.0.0.1:8786"
    for text, given in (("tcp://127.0.0.1:1", certificates), ("tls://127.0.0.1:1", None)):
        with pytest.raises(
            UserError, match="an address with tls:// needs --tls-ca, --tls-cert and --tls-key"
        ):
            scheduler_address(text, given)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ["--cluster", "local:0"],
            "'local:0': write local:N, with a number of workers from 1 to 1024",
        ),
        (["--cluster", "10.1.2.3:8786"], "TLS is required beyond this machine"),
        (["--cluster", "127.0.0.1:8786", "--tls-ca", "x"], "go together: give all three"),
        (["--tls-key", "x"], "--tls-ca, --tls-cert and --tls-key need --cluster"),
        (
            ["--cluster", "10.1.2.3:1", "--tls-ca", "x", "--tls-cert", "x", "--tls-key", "x"],
            "x: no such file",
        ),
    ],
)
def test_wrong_options_are_refused_before_a_game(here, words, reason):
    done = here.referee("tournament", "run", here.tournament(), *words)
    assert done.returncode == 2
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_several_cores_for_a_game_are_refused(here):
    file = here.tournament(more="cores_per_game = 2\n")
    done = here.referee("tournament", "run", file, "--cluster", "local:1")
    assert done.returncode == 2
    assert "cores_per_game: 2 is impossible with --cluster" in done.stderr


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("command", [("tournament", "run", "cup.toml", "--cluster"), ("worker",)])
def test_address_where_nothing_listens_is_one_line(here, command):
    here.tournament()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = here.referee(*command, address)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"tcp://{address}: no scheduler can be reached: Connection refused" in line


@pytest.mark.usefixtures("_impatient")
async def test_unknown_host_is_the_reason(monkeypatch):
    def resolve(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(UserError, match=r"can be reached: Name or service not known$"):
        await connection.check_scheduler("tcp://no-such-host.invalid:1", None)


@pytest.mark.parametrize(
    "text", ["in <distributed.comm.tcp.TCPConnector object at 0x7f9c47a7d410>: E: no", "E: no"]
)
async def test_reason_of_a_connection_names_no_python_object(monkeypatch, text):
    class Unreachable:
        def __init__(self, *_, **__):
            raise OSError("Timed out") from CommClosedError(text)

    monkeypatch.setattr(connection, "rpc", Unreachable)
    with pytest.raises(UserError) as raised:
        await connection.check_scheduler("tcp://127.0.0.1:1", None)
    assert str(raised.value) == "tcp://127.0.0.1:1: no scheduler can be reached: E: no"


async def test_reason_is_plain_if_a_scheduler_has_no_tls(monkeypatch):
    """If the scheduler has sent its first message before TLS begins, Tornado raises ValueError."""

    class NotIdle:
        def __init__(self, *_, **__):
            raise ValueError("IOStream is not idle; cannot convert to SSL")

    monkeypatch.setattr(connection, "rpc", NotIdle)
    with pytest.raises(UserError, match=r"what listens there is not a scheduler with TLS$"):
        await connection.check_scheduler("tls://127.0.0.1:1", None)


async def test_reason_is_given_if_tls_fails():
    certificate = Security.temporary()
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as plain:
        address = plain.address.replace("tcp", "tls")
        with pytest.raises(UserError, match=r"reached: (\[SSL|what listens .* TLS$)"):
            await connection.check_scheduler(address, certificate)


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (b"", "no reply"),
        (b"HTTP/1.0 400 Bad Request\r\n\r\n", "what listens there is not a scheduler"),
        (bytes(64), "what listens there is not a scheduler"),
        (struct.pack("<QQ", 8, 0), "what listens there is not a scheduler"),  # no frames
        (struct.pack("<QQQ2s", 18, 1, 2, b"xx"), "what listens there is not a scheduler"),
    ],
    ids=["silent", "web server", "zeros", "no frames", "frame of text"],
)
async def test_address_of_another_server_is_refused_in_time(monkeypatch, greeting, reason):
    """Dask waits for ever for a reply of a silent server, and reads sizes and numbers of frames from what any other server sends."""
    monkeypatch.setattr(connection, "CONNECT_S", 0.5)

    def greet():
        peer, _ = server.accept()
        with peer:
            peer.sendall(greeting)
            peer.recv(1 << 16)

    with socket.create_server(("127.0.0.1", 0)) as server:
        greeter = Thread(target=greet)
        if greeting:  # a connection that nobody accepts is silent
            greeter.start()
        async with asyncio.timeout(20):
            with pytest.raises(UserError, match=f"no scheduler can be reached: {reason}$"):
                await connection.check_scheduler(f"tcp://127.0.0.1:{server.getsockname()[1]}", None)
        if greeting:
            greeter.join()


def test_workers_that_other_machines_reach_need_tls(here):
    done = here.referee("worker", "127.0.0.1:8786", "--host", "0.0.0.0")  # noqa: S104 - refused
    assert done.returncode == 2
    assert "--host 0.0.0.0: other machines would reach the workers without TLS" in done.stderr


@pytest.mark.usefixtures("_impatient")
def test_nothing_is_stored_if_no_scheduler_can_be_reached(here):
    file = here.tournament()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = here.referee("tournament", "run", file, "--cluster", address)
        assert (done.returncode, done.stdout) == (2, "")
        assert not (here.folder / "league").exists()
        assert here.referee("tournament", "run", file).returncode == 0
        words = ("extend", "cup", "--matches", "2", "--cluster", address)
        done = here.referee("tournament", *words)
        assert (done.returncode, done.stdout) == (2, "")
    assert "no scheduler can be reached" in done.stderr
    done = here.referee("tournament", "resume")
    assert "every tournament is finished" in done.stderr


@pytest.mark.usefixtures("_impatient")
def test_tournament_whose_scheduler_ends_can_be_resumed_on_the_same_cluster(here, monkeypatch):
    async def reachable(_address, _certificates):
        await asyncio.sleep(0)

    monkeypatch.setattr(connection, "check_cluster", reachable)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = here.referee("tournament", "run", here.tournament(), "--cluster", address)
    assert f"resume cup --league league --cluster {address}" in done.stdout


@pytest.mark.toolchain("openssl")
@pytest.mark.extended("starts clusters")
def test_tournament_is_played_over_tls(here, certificates):
    port = free_port()
    ours, theirs = tls_options(certificates)
    with scheduler(here, port, *theirs):
        wait_for(port)
        with process(here, BIN / "referee", "worker", f"127.0.0.1:{port}", "--cores", 1, *ours):
            file = here.tournament()
            run(here, "run", file, "--cluster", f"127.0.0.1:{port}", *ours)
            plain = here.referee("tournament", "run", file, "--cluster", f"127.0.0.1:{port}")
            assert plain.returncode == 2
    assert len(here.records("league")) == 8


@pytest.mark.extended("starts clusters")
def test_bot_that_no_worker_can_build_ends_the_run_before_a_game(here, tmp_path):
    bot = here.bot("built", (ROOT / "sample_bots/random/bot.py").read_text())
    with (bot / "bot.toml").open("a") as manifest:
        manifest.write(f'[build]\ncommand = ["test", "-e", "{tmp_path}/tool"]\n')
    (tmp_path / "tool").touch()
    file = here.tournament(bots=("greedy", bot))
    assert here.referee("tournament", "run", file).returncode == 0
    (tmp_path / "tool").unlink()  # the toolchain of the driver, which the worker lacks
    shutil.rmtree(here.folder / "cache", ignore_errors=True)
    done = here.referee(
        "tournament", "run", file, "--cluster", "local:1", XDG_CACHE_HOME=str(here.folder / "cache")
    )
    assert done.returncode == 2, done.stdout
    heading, reason = done.stderr.splitlines()
    assert heading == "referee: no worker can play:"
    assert "built@1 cannot be built: built: bot.toml: build.command:" in reason
    assert "cannot be built" not in done.stdout
