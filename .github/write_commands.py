"""Write `referee/cli/README.md`, the reference of all commands, from their help: `.venv/bin/python .github/write_commands.py`.

A test compares the page with the commands.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from referee.cli.app import all_commands

PAGE = Path(__file__).parents[1] / "referee" / "cli" / "README.md"
SHARED_BY = 3
"""An option that this many commands have, with equal help, is described once for all of them. If several texts of an option are
that frequent, only the most frequent one is shared."""
HEAD = """# Commands

`.venv/bin/python .github/write_commands.py` writes this page from the help of the commands. Do not edit it: change the
help in `referee/cli` and write the page anew.

`referee --version` prints the version. `--help` after a command prints its help. Tables are for people;
programs use `--json` and `--csv`, whose rows [the page of the ratings](../ratings/README.md#rows) describes.
`referee --install-completion` lets bash, zsh or fish complete commands, options, and the names of bots, tournaments, games and
rulesets.
The [exit codes](../../tournaments/README.md#exit-codes) are the same for all commands.
"""


def reference() -> str:
    """Return the text of the page."""
    commands = all_commands()
    counts = Counter(_row(option) for command in commands.values() for option in _options(command))
    by_name: dict[str, str] = {}
    for row, count in counts.most_common():
        if count >= SHARED_BY:
            by_name.setdefault(_option_of(row), row)
    shared = sorted(by_name.values())
    index = [
        f"| [`{words}`](#{words.replace(' ', '-')}) | {_cell(_paragraphs(command)[0])} |"
        for words, command in commands.items()
    ]
    parts = [HEAD, _table(("command", "purpose"), index)]
    parts.append(f"## Shared options\n\n{_table(('option', 'meaning'), shared)}")
    parts += [_command(words, command, set(shared)) for words, command in commands.items()]
    return "\n".join(f"{part.strip()}\n" for part in parts)


def _command(words: str, command: Any, shared: set[str]) -> str:
    """Return the section of one command."""
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    usage = " ".join([words, *(["[OPTIONS]"] if _options(command) else []), *map(_name, arguments)])
    *texts, example = _paragraphs(command)
    rows = [_row(param) for param in (*arguments, *_options(command))]
    names = [_option_of(row) for row in rows if row in shared]
    own = [row for row in rows if row not in shared]
    parts = [f"## {words}", f"```\n{usage}\n```", *texts]
    parts.append(f"Example: `{example.removeprefix('Example: ')}`")
    if own:
        parts.append(_table(("argument or option", "meaning"), own).strip())
    if names:
        listed = ", ".join(f"`{name}`" for name in names)
        parts.append(f"Also [shared options](#shared-options): {listed}.")
    return "\n\n".join(parts)


def _options(command: Any) -> list[Any]:
    return [param for param in command.params if param.param_type_name == "option"]


def _paragraphs(command: Any) -> list[str]:
    return [" ".join(text.split()) for text in command.help.split("\n\n")]


def _name(param: Any) -> str:
    """Return how a parameter is written: `FILE`, `[BOT]...`, `--json`, `--seed SEED`."""
    if param.param_type_name == "argument":
        name = param.metavar if param.required else f"[{param.metavar}]"
        return f"{name}..." if param.nargs == -1 else name
    names = "/".join([*param.opts, *param.secondary_opts])
    value = param.metavar or param.name.upper()
    return names if param.is_flag else f"{names} {value}"


def _row(param: Any) -> str:
    """Return the table row of an argument or option."""
    notes = [param.help]
    if not param.required and param.default not in {None, False, ()}:
        notes.append(f"Default: `{param.default}`.")
    if param.envvar:
        notes.append(f"Environment variable: `{param.envvar}`.")
    return f"| `{_cell(_name(param))}` | {_cell(' '.join(notes))} |"


def _option_of(row: str) -> str:
    """Return the name of the option of a table row, such as `--seed`."""
    return row.split("|")[1].split(maxsplit=1)[0].strip("`")


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def _table(header: tuple[str, str], rows: list[str]) -> str:
    return "\n".join([f"| {' | '.join(header)} |", "|---|---|", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
