"""Before a fetch, check the files in which a bot names the packages that it needs.

A fetch takes packages from registries only. This module refuses other sources, such as a URL, a repository or a folder.
Its error names the file and the entry, so that an author learns at once what to change. These checks are no protection.
In a sandbox, the gateway limits what a fetch can reach, whatever the files say. Without a sandbox, nothing limits it.

`CHECKS` maps the name of a file to a function that returns the content for the fetch.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.parsers import expat

from referee import toml_file
from referee.errors import UserError

_ONLY_REGISTRIES = (
    "only packages of a registry are fetched;"
    " copy other sources into the bot's folder and remove the entry,"
    " or set build.fetch in bot.toml (proto/README.md, section 3)"
)
_MAX_SHOWN = 200
"""In messages, an entry is cut to this many characters, because one entry can be as long as the whole file."""
_MAX_REQUIREMENT = 1000
"""The most characters of a requirement, and of each of its options. A requirement may have many options."""
_MAX_DEPTH = 100
"""How deep the elements of a `pom.xml` may be nested."""
_MAX_ELEMENTS = 100_000
"""The most elements of a `pom.xml`."""
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_REQUIREMENT = re.compile(rf"{_NAME} ?(?:\[[\w ,.-]*\])? ?(?:\(?[<>=!~][^@;/\\]*)?(?:;[^@/\\]*)?")
"""Matches a requirement: a name, and perhaps extras, versions and a marker. All white space must be single spaces."""
_HASH = re.compile(r"hash=\w+:\w+")
_REQUIREMENT_OPTIONS = {"--pre", "--prefer-binary", "--require-hashes"}
_NO_OPTIONS = (
    "options are not allowed, except --hash, --pre, --prefer-binary and --require-hashes;"
    " remove the line, or set build.fetch in bot.toml (proto/README.md, section 3)"
)
_NPM_SECTIONS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_NPM_REGISTRY = "registry.npmjs.org"
"""If a lock file names this host, npm uses the registry of its settings instead."""
_CARGO_SECTIONS = (
    *("dependencies", "dev-dependencies", "build-dependencies"),
    *("dev_dependencies", "build_dependencies"),
)
"""The sections with dependencies. Cargo reads the names with `_` too, up to edition 2021."""
_CARGO_PACKAGES = ("package", "project")
"""The names of the table of the package. Cargo reads `project` too, up to edition 2021."""
_GO_REPLACE = re.compile(r"(?:replace\s+)?(\S+(?:\s+\S+)?\s+=>\s+(\S+)(\s+\S+)?)")
_POM_EXTENSION = ["build", "extensions", "extension"]

Hosts = Collection[str]
"""The hosts of the registries."""


def check_requirements(file: str, content: bytes, hosts: Hosts) -> bytes:  # noqa: ARG001
    """Check a `requirements.txt`. Return its lines without comments, so that pip reads exactly what was checked.

    Raises `UserError` for any option except `--hash` and `_REQUIREMENT_OPTIONS`, for a requirement that `_REQUIREMENT` does
    not match, and for a requirement or an option that is too long.
    """
    lines = _join_lines(_text(file, content).splitlines())
    kept = [" ".join(re.sub(r"(^|\s)#.*", "", line).split()) for line in lines]
    for line in filter(None, kept):
        requirement, *options = line.split(" --")
        if max(map(len, (requirement, *options))) > _MAX_REQUIREMENT:
            raise UserError(
                f"{file}: {line[:_MAX_SHOWN]}: more than {_MAX_REQUIREMENT:,} characters in one requirement or option"
            )
        if line in _REQUIREMENT_OPTIONS:
            continue
        if line.startswith("-"):
            raise UserError(f"{file}: {line[:_MAX_SHOWN]}: {_NO_OPTIONS}")
        if not (_REQUIREMENT.fullmatch(requirement) and all(map(_HASH.fullmatch, options))):
            raise _refusal(file, line)
    return "".join(f"{line}\n" for line in kept if line).encode()


def check_package_json(file: str, content: bytes, hosts: Hosts) -> bytes:  # noqa: ARG001
    """Check a `package.json`. Raises `UserError` for workspaces, and for a dependency that is not a version, a tag or an alias."""
    root = _json(file, content)
    if root.get("workspaces"):
        raise _refusal(file, "workspaces")
    for section in (*_NPM_SECTIONS, "overrides"):
        for name, wanted in _leaves(root.get(section), section):
            _check_npm_version(file, name, wanted)
    return content


def check_package_lock(file: str, content: bytes, hosts: Hosts) -> bytes:
    """Check a `package-lock.json`. Raises `UserError` for a package that is not from a registry."""
    root = _json(file, content)
    for name, package in _locked_packages(root):
        if package.get("link"):
            raise _refusal(file, f"{name}: link")
        _check_npm_version(file, name, package.get("version", ""))
        resolved = package.get("resolved", "")
        if not isinstance(resolved, str):
            raise _refusal(file, f"{name}: resolved")
        if resolved and _host(resolved) not in {*hosts, _NPM_REGISTRY}:
            raise _refusal(file, f"{name}: {resolved}")
    return content


def check_cargo_toml(file: str, content: bytes, hosts: Hosts) -> bytes:  # noqa: ARG001
    """Check a `Cargo.toml`. Raises `UserError` for dependencies with a path or a repository, and for workspaces."""
    root = _toml(file, content)
    if _table(root.get("workspace")).get("members"):
        raise _refusal(file, "workspace.members")
    for package in _CARGO_PACKAGES:
        if "workspace" in _table(root.get(package)):
            raise _refusal(file, f"{package}.workspace")
    tables = [("", root), ("workspace.", _table(root.get("workspace")))]
    tables += [
        (f"target.{name}.", _table(table)) for name, table in _table(root.get("target")).items()
    ]
    named = [
        (f"{prefix}{section}", _table(table.get(section)))
        for prefix, table in tables
        for section in _CARGO_SECTIONS
    ]
    named += [(f"patch.{name}", _table(table)) for name, table in _table(root.get("patch")).items()]
    named.append(("replace", _table(root.get("replace"))))
    for section, table in named:
        for name, value in table.items():
            for key in _table(value):
                if key in {"git", "path"}:
                    raise _refusal(file, f"{section}.{name}.{key}")
    return content


def check_cargo_lock(file: str, content: bytes, hosts: Hosts) -> bytes:  # noqa: ARG001
    """Check a `Cargo.lock`. Raises `UserError` for a package from a repository."""
    packages = _toml(file, content).get("package", [])
    for package in packages if isinstance(packages, list) else []:
        name, source = (_table(package).get(key) for key in ("name", "source"))
        if isinstance(source, str) and source.startswith("git+"):
            raise _refusal(file, f"{name}: {source}" if isinstance(name, str) else source)
    return content


def check_go_mod(file: str, content: bytes, hosts: Hosts) -> bytes:  # noqa: ARG001
    """Check a `go.mod`. Raises `UserError` if a module is replaced by a folder.

    A replacement is a folder if it has no version, or begins with a dot or a slash.
    """
    for line in _text(file, content).splitlines():
        found = _GO_REPLACE.fullmatch(line.partition("//")[0].strip())
        if found and (found[3] is None or found[2].strip('"`').startswith((".", "/"))):
            raise _refusal(file, f"replace {found[1]}")
    return content


def check_pom(file: str, content: bytes, hosts: Hosts) -> bytes:
    """Check a `pom.xml`.

    Raises `UserError` for extensions of Maven, modules, dependencies from a path, and repositories that this machine does
    not use as registries. Repositories to which the project is uploaded (`distributionManagement`) are allowed.
    """

    def check(path: list[str], text: str) -> None:
        last = path[-1]
        if path[-3:] == _POM_EXTENSION or (last == "extensions" and text == "true"):
            raise UserError(
                f"{file}: {'.'.join(path)[:_MAX_SHOWN]}: extensions are code that runs inside Maven;"
                " remove the entry, and write an <execution> for each goal of the plugin (proto/README.md, section 3)"
            )
        is_url = last == "url" and path[-2:-1] in (["repository"], ["pluginRepository"])
        elsewhere = is_url and "distributionManagement" not in path and _host(text) not in hosts
        is_module = path[-2:] == ["modules", "module"] and "configuration" not in path
        if elsewhere or is_module or last == "systemPath":
            raise _refusal(file, f"{'.'.join(path)}: {text}")

    _visit_elements(file, content, check)
    return content


def keep(file: str, content: bytes, hosts: Hosts) -> bytes:  # noqa: ARG001
    """Return the content unchecked, because the file only gives the hashes of packages."""
    return content


CHECKS: Mapping[str, Callable[[str, bytes, Hosts], bytes]] = {
    "requirements.txt": check_requirements,
    "package.json": check_package_json,
    "package-lock.json": check_package_lock,
    "Cargo.toml": check_cargo_toml,
    "Cargo.lock": check_cargo_lock,
    "go.mod": check_go_mod,
    "go.sum": keep,
    "pom.xml": check_pom,
}
"""The check of each file that a fetch sees. It gets the file's name, its content and the hosts of the registries."""


def _refusal(file: str, entry: str) -> UserError:
    return UserError(f"{file}: {entry[:_MAX_SHOWN]}: {_ONLY_REGISTRIES}")


def _text(file: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8: {error.reason}") from None


def _join_lines(lines: Iterable[str]) -> Iterator[str]:
    """Join the lines of a `requirements.txt` as pip does, before comments are removed.

    A line that ends with a backslash continues in the next line, unless it is only a comment. If that next line is
    only a comment, it is appended with a space before it, so that it stays a comment.
    """
    parts: list[str] = []
    for line in lines:
        is_comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not is_comment:
            parts.append(line.strip("\\"))
            continue
        yield "".join((*parts, " " if is_comment else "", line))
        parts.clear()
    yield "".join(parts)


def _json(file: str, content: bytes) -> dict[str, Any]:
    try:
        root = json.loads(_text(file, content))
    except ValueError as error:
        raise UserError(f"{file}: not valid JSON: {error}") from None
    return _table(root)


def _toml(file: str, content: bytes) -> dict[str, Any]:
    text = _text(file, content)
    toml_file.refuse_long_keys(Path(file), text)
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise UserError(f"{file}: not valid TOML: {error}") from None


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _host(url: str) -> str | None:
    """Return the host of a URL with http or https; None for everything else."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.hostname if parts.scheme in {"http", "https"} else None


def _leaves(value: object, name: str) -> Iterator[tuple[str, object]]:
    """Yield the values in nested tables, each with its path, cut to `_MAX_SHOWN` characters."""
    waiting = [(name, value)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [
                (f"{name}.{key}"[:_MAX_SHOWN], inner) for key, inner in reversed(value.items())
            ]
        elif value is not None:
            yield name, value


def _locked_packages(root: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the packages of npm's lock file, each with its name or path. In version 1 of the format, packages contain packages."""
    for name, package in _table(root.get("packages")).items():
        if name:  # the entry of the bot itself has an empty name
            yield name, _table(package)
    open_tables = [_table(root.get("dependencies"))]
    while open_tables:
        for name, package in open_tables.pop().items():
            yield name, _table(package)
            open_tables.append(_table(_table(package).get("dependencies")))


def _check_npm_version(file: str, name: str, wanted: object) -> None:
    """Refuse a version that is a URL, a repository or a folder.

    Such a version has a slash or a colon, or begins with a dot. The part `npm:NAME` of an alias has a colon, and perhaps a
    slash, so it is not checked.
    """
    if not isinstance(wanted, str):
        raise _refusal(file, name)
    bare = re.sub(r"^npm:(?:@[\w.~-]+/)?[\w.~-]+", "", wanted)
    if "/" in bare or ":" in bare or bare.startswith((".", "~/")):
        raise _refusal(file, f"{name}: {wanted}")


def _visit_elements(file: str, content: bytes, visit: Callable[[list[str], str], None]) -> None:
    """Call a function with the path and the text of each element of an XML document. Paths are without the root element.

    Raises `UserError` if the document is not valid XML, has too many elements, is nested too deeply, or has a document type
    declaration, because this could define entities that expand without end.
    """
    path: list[str] = []
    texts: list[list[str]] = []
    count = 0

    def begin(name: str, _: object) -> None:
        nonlocal count
        count += 1
        if count > _MAX_ELEMENTS:
            raise UserError(f"{file}: more than {_MAX_ELEMENTS:,} elements")
        if len(path) == _MAX_DEPTH:
            raise UserError(f"{file}: elements are nested more than {_MAX_DEPTH} deep")
        path.append(name.rpartition(":")[2])
        texts.append([])

    def add(text: str) -> None:
        texts[-1].append(text)

    def end(_: str) -> None:
        visit(path[1:] or [""], "".join(texts.pop()).strip())
        path.pop()

    def refuse(*_: object) -> None:
        raise UserError(f"{file}: a document type is not allowed")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.CharacterDataHandler = add
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)  # noqa: FBT003 - the function takes no keywords
    except (expat.ExpatError, LookupError, ValueError) as error:
        # LookupError and ValueError mean that the parser does not know the encoding of the document
        raise UserError(f"{file}: not valid XML: {str(error)[:_MAX_SHOWN]}") from None
