"""The home folder of a build that must not see its user's: empty but for copies of package caches.

Copies, since a build that could write into the caches themselves could leave a surprise for the next one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from referee.bots.folder import remove
from referee.errors import VoidGame

_CACHES: Mapping[str, tuple[str, ...]] = {
    "cargo": (".cargo/registry", ".cargo/git"),
    "go": ("go/pkg/mod", ".cache/go-build"),
    "gradle": (".gradle/caches/modules-2",),
    "mvn": (".m2/repository",),
    "npm": (".npm/_cacache",),
}
"""What is copied for a build, by the program that it is."""
_KEPT = ("LANG", "LC_ALL", "PATH", "TERM", "TZ")
_KEPT_WITH_NETWORK = (
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *(
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
    ),
    *("GOPROXY", "GOSUMDB", "npm_config_registry", "PIP_INDEX_URL"),
)


@contextmanager
def build_home(command: Sequence[str], beside: Path) -> Iterator[Path]:
    """A home folder for a build, removed with all that it has left there.

    Args:
        command: the build's; whose caches are copied follows from its program.
        beside: the folder that is built, on whose disk it is.

    Raises VoidGame where there is no room.
    """
    try:
        home = Path(tempfile.mkdtemp(prefix="home-", dir=beside.parent))
    except OSError as error:
        raise VoidGame(f"no room for a build: {error}") from error
    try:
        for cache in _CACHES.get(Path(command[0]).name, ()):
            _copy(Path.home() / cache, home / cache)
        yield home
    except OSError as error:
        raise VoidGame(f"no room for a build: {error}") from error
    finally:
        remove(home)


def environment(home: Path, *, network: bool) -> dict[str, str]:
    """What a build is told: of the referee's environment only what is no secret.

    Its home is where the user's is, if it can be: tools take what they find in their caches only there.
    """
    names = (*_KEPT, *_KEPT_WITH_NETWORK) if network else _KEPT
    kept = {name: os.environ[name] for name in names if name in os.environ}
    own = {
        "HOME": str(home),
        "TMPDIR": str(home),
        "JAVA_TOOL_OPTIONS": f"-Duser.home={home}",  # it asks for the user, not for HOME
    }
    return kept | toolchains() | own


def toolchains() -> dict[str, str]:
    """Toolchains that are found by a variable and not by PATH: those of rustup."""
    rustup = Path(os.environ.get("RUSTUP_HOME", Path.home() / ".rustup"))
    return {"RUSTUP_HOME": str(rustup)} if (rustup / "toolchains").is_dir() else {}


def _copy(cache: Path, into: Path) -> None:
    """Copy a folder, where it is there; what vanishes meanwhile was no part of it."""
    if cache.is_dir():
        try:
            shutil.copytree(cache, into, symlinks=True)
        except shutil.Error as errors:
            if any(Path(source).exists() for source, _, _ in errors.args[0]):
                raise
