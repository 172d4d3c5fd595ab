"""Options that several commands share, and the exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

UNSOUND = 1
"""Something is not right: a record does not check, a run cannot go on."""
USER_ERROR = 2
"""Bad input; nothing was changed."""
INTERRUPTED = 130
"""Interrupted; what was finished is stored, and the run can be resumed."""

LeagueOption = Annotated[
    Path,
    typer.Option("--league", envvar="REFEREE_LEAGUE", help="The folder where all games are kept."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets.")]
TournamentArgument = Annotated[str, typer.Argument(help="The tournament's name.")]

TournamentOption = Annotated[
    str | None,
    typer.Option("--tournament", help="Only games of this tournament; by default, of all."),
]
RulesetOption = Annotated[
    str | None, typer.Option("--ruleset", help="Only this ruleset; by default, all.")
]
SeatsOption = Annotated[
    int | None, typer.Option("--seats", min=2, max=5, help="Only tables of this size.")
]

DEFAULT_LEAGUE = Path("league")
