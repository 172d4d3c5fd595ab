"""`referee verify`: everything checked again, by the seed and by the rules."""

from __future__ import annotations

from typing import Annotated

import typer

from referee.cli.options import DEFAULT_LEAGUE, LeagueOption
from referee.cli.output import console
from referee.errors import RefereeError
from referee.match import Difference
from referee.store import League
from referee.tournament.audit import audit
from referee.tournament.stored import StoredTournament, audit_free_games


def verify(
    tournament: Annotated[
        str | None, typer.Argument(help="The tournament's name; by default, all are checked.")
    ] = None,
    league: LeagueOption = DEFAULT_LEAGUE,
) -> None:
    """Check stored games: decks against the seed, moves against the rules, results against both.

    Games of `play --keep` are checked too, where no tournament is named, but for their decks.
    Names the first difference and exits with 1 when there is one.

    Example: referee verify demo
    """
    with League.open(league, create=False) as store:
        names = [tournament] if tournament else [row.name for row in store.tournaments()]
        for name in names:
            try:
                checked = audit(StoredTournament(store, name))
            except Difference as difference:
                raise RefereeError(f"{name}: {difference}") from difference
            games = store.tournament(name).games
            of_all = "" if checked == games else f" of {games}"
            console.print(f"{name}: {checked}{of_all} games check.")
        if tournament is None:
            try:
                free = audit_free_games(store)
            except Difference as difference:
                raise RefereeError(str(difference)) from difference
            if free:
                console.print(f"games of play --keep: {free} check, but for their decks.")
