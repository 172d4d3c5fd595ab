"""Write the libraries that the web pages use, from packages of npm with pinned versions.

Run `.venv/bin/python .github/renew_web_assets.py` after changing a version below. With `--check`, the script writes nothing and fails if a
committed file differs from its package. Both need `npm`.

Pages that are opened from a folder (`file://`) cannot load module scripts, so every file must be a classic script.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
VENDOR = ROOT / "referee" / "web" / "static" / "vendor"
TEST_VENDOR = ROOT / "tests" / "web" / "vendor"


@dataclass(frozen=True)
class Asset:
    """A file of an npm package, or only its licence if the package is a part of another asset."""

    package: str
    version: str
    source: str | None
    """The path of the file in the package; None if only the licence is wanted."""
    target: str
    """The name of the file here, without `.js`. The licence has this name too."""
    folder: Path = VENDOR
    change: Callable[[str], str] = str
    """Changes the text of the file."""


def make_interpreter_classic(module: str) -> str:
    """Return the module of vega-interpreter as a classic script that sets the global variable `vegaInterpreter`.

    Raises ValueError if the module is not written as expected.
    """
    body, imports = re.subn(
        r"^import \{([^}]*)\} from 'vega-util';$", r"const {\1} = vega;", module, flags=re.MULTILINE
    )
    body, exports = re.subn(
        r"^export \{ (\w+) as (\w+) \};$", r"return { \2: \1 };", body, flags=re.MULTILINE
    )
    body = re.sub(r"^//# sourceMappingURL=.*\n?", "", body, flags=re.MULTILINE)
    if (imports, exports) != (1, 1) or re.search(r"^(import|export)\b", body, re.MULTILINE):
        raise ValueError("vega-interpreter has other imports or exports than expected")
    return f"const vegaInterpreter = (() => {{\n'use strict';\n{body}}})();\n"


ASSETS = (
    Asset("htmx.org", "2.0.11", "dist/htmx.min.js", "htmx"),
    Asset("htmx-ext-sse", "2.2.4", "dist/sse.min.js", "htmx-sse"),
    Asset("idiomorph", "0.8.0", "dist/idiomorph-ext.min.js", "htmx-morph"),
    Asset("vega", "6.4.0", "build/vega.min.js", "vega"),
    Asset("d3", "7.9.0", None, "d3"),  # parts of d3 and of topojson-client are in vega
    Asset("topojson-client", "3.1.0", None, "topojson-client"),
    Asset("vega-lite", "6.4.3", "build/vega-lite.min.js", "vega-lite"),
    Asset("vega-embed", "7.3.0", "build/vega-embed.min.js", "vega-embed"),
    Asset(
        "vega-interpreter",
        "2.3.2",
        "build/vega-interpreter.js",
        "vega-interpreter",
        change=make_interpreter_classic,
    ),
    Asset("axe-core", "4.14.1", "axe.min.js", "axe.min", TEST_VENDOR),
)


def read_assets() -> dict[Path, str]:
    """Return the text of every file, read from the packages of npm."""
    files = {}
    with tempfile.TemporaryDirectory() as scratch:
        for asset in ASSETS:
            package = _download(asset, Path(scratch))
            licence = asset.folder / "LICENSES" / f"{asset.target}.txt"
            files[licence] = _clean(_read(package, "LICENSE"))
            if asset.source is not None:
                text = re.sub(r"//# sourceMappingURL=.*", "", _read(package, asset.source))
                files[asset.folder / f"{asset.target}.js"] = _clean(asset.change(text))
    return files


def _download(asset: Asset, scratch: Path) -> Path:
    """Return the archive of a package. npm compares it with the checksum of the registry."""
    folder = scratch / asset.target
    folder.mkdir()
    command = ["npm", "pack", "--silent", f"{asset.package}@{asset.version}"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (archive,) = folder.glob("*.tgz")
    return archive


def _read(archive: Path, name: str) -> str:
    with tarfile.open(archive) as package:
        file = package.extractfile(f"package/{name}")
        if file is None:
            raise FileNotFoundError(name)
        return file.read().decode()


def _clean(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip() + "\n"


def main() -> None:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the files, write nothing")
    check = parser.parse_args().check
    different = []
    for path, text in read_assets().items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        different.append(str(path.relative_to(ROOT)))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    print("\n".join(different) or "All files are equal.")  # noqa: T201
    if check and different:
        sys.exit("These files differ from their packages.")


if __name__ == "__main__":
    main()
