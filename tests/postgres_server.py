"""Start a PostgreSQL server for tests, on a UNIX socket in a temporary folder, and delete it afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from sqlalchemy import URL, create_engine

SETTINGS = (
    "listen_addresses=",
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "shared_buffers=16MB",
    "max_connections=40",
    "autovacuum=off",  # its transactions would come between those of a test
)
"""Settings that save time and memory; data would be lost in a crash."""
PATIENCE_S = 60
"""A timeout that no program of the server reaches, however busy the machine is."""


def programs() -> Path | None:
    """Return the folder of the server's programs, which Debian does not put into PATH; None if not installed."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    return next((each for each in folders if (each / "pg_ctl").exists()), None)


def _version(folder):
    major = folder.parent.name
    return int(major) if major.isdigit() else 0


class Server:
    """A running server that accepts every connection to its socket."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._numbers = count(1)

    def url(self, database: str, **more: str) -> str:
        """Return the URL of a database."""
        query = {"host": str(self.socket)} | more
        url = URL.create("postgresql+psycopg", "postgres", database=database, query=query)
        return url.render_as_string()

    @contextmanager
    def database(self, options: str = ""):
        """Create an empty database, yield its URL, and drop the database."""
        name = f"league{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} {options}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def cut_off(self) -> None:
        """Close every connection to the databases that `database` has made."""
        self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE starts_with(datname, 'league')"
        )

    def execute(self, statement: str, database: str = "postgres") -> None:
        execute(self.url(database), statement)


def execute(url: str, *statements: str) -> list[tuple]:
    """Run each statement in its own transaction; return the rows of the last one."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            for statement in statements:
                result = connection.exec_driver_sql(statement)
            return [tuple(row) for row in result] if result.returns_rows else []
    finally:
        engine.dispose()


@contextmanager
def server(folder: Path):
    """Start a server with the programs in `folder`, yield it, and stop it."""
    home = Path(tempfile.mkdtemp(prefix="pg-"))  # the path of a socket must be short
    data = home / "data"
    if os.geteuid() == 0:  # the server refuses to run as root
        account = pwd.getpwnam("postgres")
        os.chown(home, account.pw_uid, account.pw_gid)
        home.chmod(0o755)
        user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    else:
        user = {}

    def run(program, *arguments):
        done = subprocess.run(
            [folder / program, *arguments],
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            **user,
        )
        assert done.returncode == 0, done.stdout

    try:
        run(
            "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"
        )
        settings = " ".join(f"-c {each}" for each in (*SETTINGS, f"unix_socket_directories={home}"))
        run("pg_ctl", "start", "-w", "-D", data, "-l", home / "log", "-o", settings)
        try:
            yield Server(home)
        finally:
            run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", data)
    finally:
        shutil.rmtree(home, ignore_errors=True)
