"""A new bot to begin with: a sample bot under another name.

The templates are the sample bots themselves, so what a bot author begins with is tested, and played.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from referee.bots import snapshot as snapshots
from referee.bots.manifest import FILE_NAME, load_manifest
from referee.errors import UserError
from referee.toml_file import Line, Name

SAMPLE_BOTS = Path(__file__).parents[1] / "sample_bots"
"""In the package; in a clone, a link to where they are."""
LANGUAGES = {
    "python": "greedy",
    "go": "greedy_go",
    "rust": "greedy_rust",
    "java": "greedy_java",
    "typescript": "greedy_typescript",
    "cpp": "greedy_cpp",
}
"""The sample bot that each language's bots begin as."""
_KEY = '^{} = ".*"$'
_DESCRIPTION = "Plays by the policy of greedy, until it is taught better"
_README = "README.md"


def make(folder: Path, *, name: str, language: str, author: str) -> None:
    """Write a complete bot into a new folder.

    Args:
        folder: made by this.
        name: of the bot, for its manifest.
        language: one of `LANGUAGES`.
        author: for its manifest.

    Raises UserError for a name or author that no manifest may have, and where there is such a folder
    or none can be made.
    """
    _check(name, author)
    if folder.exists() or folder.is_symlink():
        raise UserError(f"{folder}: is there already")
    template = (SAMPLE_BOTS / LANGUAGES[language]).resolve()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        snapshots.take(template, folder, built=True)
        _rename(folder, template.name, name, author)
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}") from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    load_manifest(folder)


def _check(name: str, author: str) -> None:
    for what, text, kind in (("NAME", name, Name), ("--author", author, Line)):
        try:
            TypeAdapter(kind).validate_python(text)
        except ValidationError as error:
            reason = str(error.errors()[0]["ctx"]["error"])
            raise UserError(f"{what}: {reason}") from error


def _rename(folder: Path, old: str, name: str, author: str) -> None:
    """Give a copy of a sample bot its own name, where the sample has its name."""
    manifest = folder / FILE_NAME
    text = manifest.read_text()
    values = {"name": name, "version": "0.1", "author": author, "description": _DESCRIPTION}
    for key, value in values.items():
        line = f"{key} = {json.dumps(value, ensure_ascii=False)}"
        old_line = re.search(_KEY.format(key), text, flags=re.MULTILINE)
        text = text if old_line is None else text.replace(old_line[0], line)
    manifest.write_text(text)
    readme = folder / _README
    readme.write_text(readme.read_text().replace(f"# {old}\n", f"# {name}\n", 1))
