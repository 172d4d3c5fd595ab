"""Run bots as processes and speak with them over their streams.

`manifest`, `snapshot` and `build` deal with the folder of a bot. `server`, `session`, `inbox` and `clock` deal
with the stream of a bot. `process` starts the program in the folder and opens the stream; `player` keeps the bot
processes and plays games with them. `referee.sandbox` starts, limits and ends any untrusted program, bot or not.

`BotSpec` is defined here and not in `manifest`, so that worker processes do not load pydantic.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from referee.errors import UserError
from referee.records import BotId
from referee.rules.ruleset import RULESETS
from referee.sandbox import DEFAULT_LIMITS, Limits

PYTHON_PACKAGES = "site-packages"
"""The subfolder of a bot's folder for Python packages. If it exists, PYTHONPATH names it in the bot's build and processes."""
Transport = Literal["unix", "tcp"]
"""What a bot connects to: a UNIX socket, or a port of 127.0.0.1 if its gRPC library has no UNIX sockets."""


@dataclass(frozen=True, slots=True)
class BotSpec:
    """Everything that is needed to start a bot."""

    bot: BotId
    folder: Path
    """The working directory of the bot's process; an absolute path."""
    command: tuple[str, ...]
    """The program and its arguments."""
    rulesets: tuple[str, ...] = tuple(RULESETS)
    """The names of the rulesets that the bot plays."""
    transport: Transport = "unix"
    limits: Limits = DEFAULT_LIMITS


def python_path() -> dict[str, str]:
    """Return a PATH that makes `python3` the Python of the referee.

    All bot processes get this PATH. Fetches, and builds with Python packages, get it too, so that the packages fit the
    Python that the bot runs with.
    """
    return {"PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"}


def packages_path(folder: Path) -> dict[str, str]:
    """Return the variable PYTHONPATH for the Python packages in a bot's folder; an empty dict if there are no packages.

    Raises `UserError` if there are packages and their path has a colon: Python splits PYTHONPATH at each colon.
    """
    packages = folder / PYTHON_PACKAGES
    if not packages.is_dir():
        return {}
    if ":" in str(packages):
        raise UserError(
            f"{packages}: Python finds no packages in a path with a colon; move the league or the bot to a path without one"
        )
    return {"PYTHONPATH": str(packages)}
