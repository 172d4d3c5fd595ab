"""Options that several commands share, and the exit codes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from referee.store import League, shown_url

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
DB_VARIABLE = "REFEREE_DB"
DbOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar=DB_VARIABLE,
        metavar="URL",
        help="The league's database, where it is not a file of that folder:"
        " postgresql+psycopg://USER@HOST/DATABASE or sqlite:///FILE.",
    ),
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


def league_options(store: League) -> list[str]:
    """The options that name a league in a command to be typed; a password is to be filled in.

    What the environment says of the database it will say again.
    """
    words = ["--league", str(store.folder)]
    known = os.environ.get(DB_VARIABLE)
    if store.db is not None and not (known and shown_url(known) == store.db):
        words += ["--db", store.db]
    return words
