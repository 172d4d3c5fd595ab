"""Find the package registries that this machine uses, and their settings without any password.

An isolated fetch does not see the user's home folder and environment. It gets new settings files and variables, which
have the addresses and names of registries, and the paths of CA certificates. In a sandbox, it can reach only these
addresses and the public registries in `_PUBLIC`. URLs that are not http or https are left out.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from referee.sandbox.folders import require_home
from referee.sandbox.gateway import Address

_PUBLIC = (
    *("pypi.org", "files.pythonhosted.org"),
    *("index.crates.io", "static.crates.io", "crates.io"),
    *("proxy.golang.org", "sum.golang.org"),
    "registry.npmjs.org",
    *("repo.maven.apache.org", "repo1.maven.org"),
    # for package managers that only a `build.fetch` uses
    *("rubygems.org", "index.rubygems.org"),
    *("plugins.gradle.org", "plugins-artifacts.gradle.org"),
    *("pub.dev", "repo.hex.pm", "builds.hex.pm", "api.nuget.org", "repo.packagist.org"),
    *("luarocks.org", "hackage.haskell.org"),
)
"""The public registries of packages, which every fetch may reach by HTTPS."""
_CERTIFICATES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
    *("CURL_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO"),
)
"""The environment variables that name files or folders with CA certificates."""
_PIP_FILES = ("/etc/xdg/pip/pip.conf", "/etc/pip.conf")
"""The settings files of pip for all users. A later one overrides those before it."""
_PIP_USER_FILES = (".pip/pip.conf", ".config/pip/pip.conf")
"""The settings files of pip in the home folder. They override `_PIP_FILES`."""
_NPM_REGISTRY = re.compile(r"\s*((?:@[\w.~-]+:)?registry|cafile)\s*=\s*(\S+)\s*")
_SCHEMES = {"http", "https", "sparse+http", "sparse+https"}
_VISIBLE_ASCII = re.compile(r"[!-~]+")
_NAME = re.compile(r"[\w.-]+")
"""Matches the names that Cargo's settings give to registries."""
_PATTERN = re.compile(r"(?:[^@/]|/(?!/))+")
"""Matches a list of names and patterns. It matches no text with `@` or `//`, because this could be a login or a URL."""
_CHECKSUM_KEY = re.compile(r"[\w./+=-]+")
"""Matches the host of a checksum database of Go, perhaps with `+` and its public key."""
_MIRROR_KEYS = ("id", "mirrorOf", "blocked")


@dataclass(frozen=True, slots=True)
class Registries:
    """What a fetch may know and reach."""

    addresses: frozenset[Address]
    """The addresses of the registries."""
    variables: Mapping[str, str]
    """The environment variables that tell the package managers their registries and CA certificates."""
    files: Mapping[str, str]
    """The contents of settings files, by their path in the home folder."""
    certificates: tuple[Path, ...]
    """The absolute paths of files and folders with CA certificates, from `variables` and `files`."""

    def write_files(self, home: Path) -> None:
        """Write the settings files into a home folder.

        Only the referee may have written to this folder, because links in it are followed.
        """
        for name, content in self.files.items():
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)


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
        """Return `bare_url` of a text, and add it to `urls`. If it is None, add nothing and return an empty text."""
        bare = bare_url(text) or ""
        if bare:
            self.urls.add(bare)
        return bare

    def read_pip(self) -> None:
        """Read the indexes and the certificate of pip from `pip.conf` and the environment."""
        sections: dict[str, dict[str, str]] = {"global": {}, "install": {}}
        for file in self._pip_files():
            parser = configparser.RawConfigParser()
            with suppress(configparser.Error, UnicodeError):
                parser.read(file)
                for section in sections.keys() & parser.keys():
                    sections[section] |= {
                        key.replace("_", "-"): value for key, value in parser[section].items()
                    }
        found = {
            key: value
            for section in ("global", "install")
            for key, value in sections[section].items()
            if value  # pip ignores empty settings
        }
        for key in ("index-url", "extra-index-url", "cert"):
            variable = f"PIP_{key.upper().replace('-', '_')}"
            value = self.environment.get(variable) or found.get(key)
            if value and key != "cert":
                value = " ".join(filter(None, map(self.url, value.split())))
            if value:
                self.variables[variable] = value

    def _pip_files(self) -> list[Path]:
        """Return the settings files that pip reads.

        If the file that `PIP_CONFIG_FILE` names exists, it replaces those in the home folder.
        """
        named = self.environment.get("PIP_CONFIG_FILE")
        if named and Path(named).exists():
            own = [Path(named)]
        else:
            own = [self.home / name for name in _PIP_USER_FILES]
        return [*map(Path, _PIP_FILES), *own]

    def read_npm(self) -> list[str]:
        """Read the registries of npm, also those of single scopes, from `.npmrc` and the environment.

        Return the paths of the files with CA certificates that `.npmrc` names.
        """
        pairs = [
            (found[1], found[2].strip("\"'"))
            for line in self._lines(".npmrc")
            if (found := _NPM_REGISTRY.fullmatch(line))
        ]
        pairs += [
            ("registry", self.environment[name])
            for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY")
            if name in self.environment
        ]
        lines = [
            f"{key}={shown}"
            for key, value in pairs
            if (shown := value if key == "cafile" else self.url(value))
        ]
        self.files[".npmrc"] = "\n".join([*lines, ""])
        return [value for key, value in pairs if key == "cafile"]

    def read_go(self) -> None:
        """Read the module proxies of Go, and its checksum database.

        The word `direct` is left out, because it lets Go fetch modules from version control systems.
        """
        pairs = (line.partition("=") for line in self._lines(".config/go/env"))
        settings = {key: value for key, _, value in pairs} | dict(self.environment)
        proxies = settings.get("GOPROXY") or "https://proxy.golang.org"
        _, *words = re.split(r"([,|])", f",{proxies}")
        kept = [
            f"{separator}{shown}"
            for separator, word in zip(words[::2], map(str.strip, words[1::2]), strict=True)
            if (shown := word if word == "off" else self.url(word))
        ]
        self.variables["GOPROXY"] = "".join(kept)[1:] or "off"
        key, *urls = settings.get("GOSUMDB", "").split() or [""]
        if key == "off":
            self.variables["GOSUMDB"] = key
        elif _CHECKSUM_KEY.fullmatch(key):
            shown = self.url(" ".join(urls) or f"https://{key.partition('+')[0]}")
            if shown:
                self.variables["GOSUMDB"] = f"{key} {shown}" if urls else key
        if _PATTERN.fullmatch(settings.get("GONOSUMDB", "")):
            self.variables["GONOSUMDB"] = settings["GONOSUMDB"]

    def read_cargo(self) -> None:
        """Read the sources of Cargo that replace crates.io, and further registries, from `config.toml`."""
        file = self.home / ".cargo/config.toml"
        try:
            content = tomllib.loads(file.read_text())
        except (OSError, ValueError):
            return
        sources = self._cargo_tables(content.get("source"), ("registry", "replace-with"))
        registries = self._cargo_tables(content.get("registries"), ("index",))
        # Only crates-io may lack an address here, because Cargo knows its address. Cargo refuses every other source without one.
        located = {"crates-io", *(name for name in sources if "registry" in sources[name])}
        located |= {name for name in registries if registries[name] and name not in sources}
        lines = []
        for name in filter(located.__contains__, sources):
            target = _find_target(sources[name].get("replace-with", ""), sources, located)
            shown = {"registry": sources[name].get("registry", "")}
            lines += _cargo_lines(
                "source", name, shown | {"replace-with": "" if target == name else target}
            )
        for name, settings in registries.items():
            lines += _cargo_lines("registries", name, settings)
        self.files[".cargo/config.toml"] = "\n".join([*lines, ""])

    def _cargo_tables(self, content: object, keys: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the settings that a fetch may see, by the name of the source or registry."""
        tables = content.items() if isinstance(content, dict) else ()
        return {
            name: {key: shown for key in keys if (shown := self._cargo_value(key, values.get(key)))}
            for name, values in tables
            if isinstance(values, dict) and _NAME.fullmatch(name)
        }

    def _cargo_value(self, key: str, value: object) -> str:
        """Return the name of a source, or a URL as `bare_url` returns it; an empty text if the value is not valid."""
        if not isinstance(value, str):
            return ""
        if key == "replace-with":
            return value if _NAME.fullmatch(value) else ""
        return self.url(value)

    def read_maven(self, proxy: int | None) -> None:
        """Put the mirrors of Maven, and the proxy, into a settings file.

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
            f"<mirror>{''.join(f'<{key}>{escape(value)}</{key}>' for key, value in mirror.items())}</mirror>"
            for mirror in self._mirrors()
        )
        parts.append(f"<mirrors>{mirrors}</mirrors>")
        self.files[".m2/settings.xml"] = f"<settings>{''.join(parts)}</settings>\n"

    def _mirrors(self) -> Iterator[dict[str, str]]:
        """Yield the parts of each mirror that has a URL; nothing if the file is missing or cannot be parsed.

        The parser raises ValueError or LookupError if it does not know the encoding of the file.
        """
        try:
            root = ET.parse(self.home / ".m2/settings.xml").getroot()  # noqa: S314 - the user's own settings
        except (OSError, ET.ParseError, ValueError, LookupError):
            return
        for mirror in root.iterfind("{*}mirrors/{*}mirror"):
            parts = {each.tag.rpartition("}")[2]: (each.text or "").strip() for each in mirror}
            if url := self.url(parts.get("url", "")):
                kept = {
                    key: parts[key]
                    for key in _MIRROR_KEYS
                    if _PATTERN.fullmatch(parts.get(key, ""))
                }
                yield kept | {"url": url}

    def _lines(self, name: str) -> list[str]:
        try:
            return (self.home / name).read_text(errors="replace").splitlines()
        except OSError:
            return []


def read_registries(
    proxy: int | None = None,
    *,
    home: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Registries:
    """Return the registries that the user's settings name, and the public ones.

    Settings that cannot be read are left out. The user's own package manager reports such errors.

    Args:
        proxy: the port of the proxy on the loopback address; None if there is no proxy.
        home: the user's home folder; by default that of the referee's user.
        environment: the user's environment variables; by default those of the referee.
    """
    reader = _Reader(home or require_home(), os.environ if environment is None else environment)
    reader.read_pip()
    npm_files = reader.read_npm()
    reader.read_go()
    reader.read_cargo()
    reader.read_maven(proxy)
    certificates = {each: reader.environment.get(each, "") for each in _CERTIFICATES}
    variables = {key: value for key, value in certificates.items() if value} | reader.variables
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


def bare_url(text: str) -> str | None:
    """Return a URL without its user, password, query and fragment, because these may be secret.

    Return None if the text is no URL with the scheme `http` or `https` (also after `sparse+`), if its path has `@`, or if a
    character is not visible ASCII.
    """
    try:
        parts = urlsplit(text)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return None
    is_url = _VISIBLE_ASCII.fullmatch(text) and parts.scheme in _SCHEMES and parts.hostname
    if not is_url or "@" in parts.path:  # a password with a slash would be in the path
        return None
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path}"


def _find_target(
    name: str, sources: Mapping[str, Mapping[str, str]], located: Container[str]
) -> str:
    """Follow `replace-with` from `name` on, and return the first source with an address; empty if there is none."""
    for _ in sources:
        if name in located:
            break
        name = sources.get(name, {}).get("replace-with", "")
    return name if name in located else ""


def _cargo_lines(table: str, name: str, settings: Mapping[str, str]) -> list[str]:
    """Return a table of `config.toml` without the settings whose value is empty; no lines if all are empty."""
    shown = [f"{key} = {json.dumps(value)}" for key, value in settings.items() if value]
    return [f"[{table}.{json.dumps(name)}]", *shown] if shown else []
