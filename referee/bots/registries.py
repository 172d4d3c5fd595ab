"""Find the package registries that this machine uses, and their settings without any password.

A fetch runs without the user's home folder and environment. So it gets new settings files and variables, which contain only
the addresses of registries and the paths of CA certificates. The addresses are also those that the fetch may reach.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from referee.sandbox.gateway import Address

_PUBLIC = (
    *("pypi.org", "files.pythonhosted.org"),
    *("index.crates.io", "static.crates.io", "crates.io"),
    *("proxy.golang.org", "sum.golang.org"),
    "registry.npmjs.org",
    *("repo.maven.apache.org", "repo1.maven.org"),
    # for `build.fetch`
    *("rubygems.org", "index.rubygems.org"),
    *("plugins.gradle.org", "plugins-artifacts.gradle.org"),
    *("pub.dev", "repo.hex.pm", "api.nuget.org", "repo.packagist.org", "luarocks.org"),
    "hackage.haskell.org",
)
"""The public registries of packages, which every fetch may reach by HTTPS."""
_CERTIFICATES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
    *("CURL_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO"),
)
"""The environment variables that name files or folders with CA certificates."""
_PIP_FILES = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf")
_NPM_REGISTRY = re.compile(r"\s*((?:@[\w.~-]+:)?registry|cafile)\s*=\s*(\S+)\s*")
_URL = re.compile(r"(?:sparse\+)?https?://\S+")
_MIRROR_KEYS = ("id", "url", "mirrorOf", "blocked")


@dataclass(frozen=True, slots=True)
class Registries:
    """What a fetch may know and reach."""

    addresses: frozenset[Address]
    """The addresses of the registries."""
    variables: Mapping[str, str]
    """Environment variables."""
    files: Mapping[str, str]
    """The contents of settings files, by their path in the home folder."""
    certificates: tuple[Path, ...]
    """The files and folders with CA certificates that the variables and files name."""


@dataclass
class _Reader:
    """Collects the settings of all package managers.

    Args:
        home: the user's home folder.
        environment: the user's environment variables.
    """

    home: Path
    environment: Mapping[str, str]
    urls: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def url(self, text: str) -> str:
        """Note the URL of a registry, and return it without user and password."""
        bare = without_login(text)
        self.urls.add(bare)
        return bare

    def read_pip(self) -> None:
        """Read the indexes and the certificate of pip from `pip.conf` and the environment."""
        found: dict[str, str] = {}
        for name in _PIP_FILES:
            parser = configparser.RawConfigParser()
            with suppress(configparser.Error, UnicodeError):
                parser.read(self._expand(name))
                for section in ("global", "install"):
                    found |= dict(parser[section]) if parser.has_section(section) else {}
        for key in ("index-url", "extra-index-url", "cert"):
            variable = f"PIP_{key.upper().replace('-', '_')}"
            value = self.environment.get(variable, found.get(key))
            if value:
                words = value.split()
                self.variables[variable] = (
                    value if key == "cert" else " ".join(map(self.url, words))
                )

    def read_npm(self) -> None:
        """Read the registries of npm, also those of single scopes, from `.npmrc` and the environment."""
        lines = [
            f"{found[1]}={self.url(found[2]) if _URL.match(found[2]) else found[2]}"
            for line in self._lines(".npmrc")
            if (found := _NPM_REGISTRY.fullmatch(line))
        ]
        lines += [
            f"registry={self.url(self.environment[name])}"
            for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY")
            if name in self.environment
        ]
        self.files[".npmrc"] = "\n".join([*lines, ""])

    def read_go(self) -> None:
        """Read the module proxies of Go. The word `direct` is left out: it means version control systems."""
        pairs = (line.partition("=") for line in self._lines(".config/go/env"))
        settings = {key: value for key, _, value in pairs} | dict(self.environment)
        proxies = settings.get("GOPROXY") or "https://proxy.golang.org"
        for each in re.split(r"[,|]", proxies):
            if _URL.fullmatch(each):
                self.url(each)
        bare = re.sub(r"[^,|]+", lambda found: without_login(found[0]), proxies)
        self.variables["GOPROXY"] = re.sub(r"[,|]?\bdirect\b", "", bare) or "off"
        for name in ("GOSUMDB", "GONOSUMDB"):
            if settings.get(name):
                self.variables[name] = settings[name]

    def read_cargo(self) -> None:
        """Read the sources of Cargo that replace crates.io, and further registries, from `config.toml`."""
        file = self.home / ".cargo/config.toml"
        try:
            content = tomllib.loads(file.read_text())
        except (OSError, ValueError):
            return
        lines = []
        for table, keys in (("source", ("registry", "replace-with")), ("registries", ("index",))):
            for name, values in _tables(content.get(table)):
                lines.append(f"[{table}.{json.dumps(name)}]")
                for key in keys:
                    if isinstance(value := values.get(key), str):
                        shown = self.url(value) if _URL.match(value) else value
                        lines.append(f"{key} = {json.dumps(shown)}")
        self.files[".cargo/config.toml"] = "\n".join([*lines, ""])

    def read_maven(self, proxy: int | None) -> None:
        """Read the mirrors of Maven, and write a settings file with them.

        Args:
            proxy: the port of the proxy on the loopback address; None if there is no proxy.
        """
        parts = []
        if proxy is not None:
            each = "".join(
                f"<proxy><id>{scheme}</id><protocol>{scheme}</protocol><host>127.0.0.1</host>"
                f"<port>{proxy}</port></proxy>"
                for scheme in ("http", "https")
            )
            parts.append(f"<proxies>{each}</proxies>")
        mirrors = "".join(
            f"<mirror>{''.join(map(self._mirror_part, mirror))}</mirror>"
            for mirror in self._mirrors()
        )
        parts.append(f"<mirrors>{mirrors}</mirrors>")
        self.files[".m2/settings.xml"] = f"<settings>{''.join(parts)}</settings>\n"

    def _mirrors(self) -> Iterator[list[tuple[str, str]]]:
        try:
            root = ET.parse(self.home / ".m2/settings.xml").getroot()  # noqa: S314 - the user's own settings
        except (OSError, ET.ParseError):
            return
        for mirror in root.iterfind("{*}mirrors/{*}mirror"):
            pairs = [(each.tag.rpartition("}")[2], (each.text or "").strip()) for each in mirror]
            yield [(key, value) for key, value in pairs if key in _MIRROR_KEYS]

    def _mirror_part(self, pair: tuple[str, str]) -> str:
        key, value = pair
        shown = self.url(value) if key == "url" and _URL.match(value) else value
        return f"<{key}>{escape(shown)}</{key}>"

    def _lines(self, name: str) -> list[str]:
        try:
            return (self.home / name).read_text(errors="replace").splitlines()
        except OSError:
            return []

    def _expand(self, name: str) -> Path:
        return self.home / name[2:] if name.startswith("~/") else Path(name)


def read_registries(
    proxy: int | None = None,
    *,
    home: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Registries:
    """Return the registries that the user's settings name, and the public ones.

    Settings that cannot be read are left out: the package manager of the user would complain about them.

    Args:
        proxy: the port of the proxy on the loopback address; None if there is no proxy.
        home: the user's home folder; by default that of the referee's user.
        environment: the user's environment variables; by default those of the referee.
    """
    reader = _Reader(home or Path.home(), os.environ if environment is None else environment)
    reader.read_pip()
    reader.read_npm()
    reader.read_go()
    reader.read_cargo()
    reader.read_maven(proxy)
    certificates = {each: reader.environment.get(each, "") for each in _CERTIFICATES}
    variables = {key: value for key, value in certificates.items() if value} | reader.variables
    npm_files = re.findall(r"^cafile=(\S+)$", reader.files[".npmrc"], re.MULTILINE)
    paths = [variables[name] for name in _CERTIFICATES if name in variables] + npm_files
    return Registries(
        frozenset({*(Address(name, 443) for name in _PUBLIC), *_addresses(reader.urls)}),
        variables,
        reader.files,
        tuple(path for name in dict.fromkeys(paths) if (path := Path(name)).is_absolute()),
    )


def _addresses(urls: Iterable[str]) -> Iterator[Address]:
    for url in urls:
        with suppress(ValueError):
            yield Address.parse(url.removeprefix("sparse+"))


def without_login(url: str) -> str:
    """Return a URL without user and password. A text that is no URL stays as it is."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _tables(content: object) -> Iterator[tuple[str, Mapping[str, object]]]:
    if isinstance(content, dict):
        yield from ((name, table) for name, table in content.items() if isinstance(table, dict))
