"""`referee ratings`: how strong the bots of a league are."""

from __future__ import annotations

from typing import Annotated

import typer

from referee.cli.options import DEFAULT_LEAGUE, CsvOption, DbOption, JsonOption, LeagueOption
from referee.cli.output import show_rows
from referee.cli.results import current_standings
from referee.errors import UserError
from referee.reports import StandingRow
from referee.rules.ruleset import RULESETS
from referee.store import League


def ratings(
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    ruleset: Annotated[
        str | None, typer.Option("--ruleset", help="Only this ruleset; by default, all.")
    ] = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show the ratings of all bots, from every tournament game of the league.

    TrueSkill, by ruleset, over all games in schedule order. The rating that bots are ranked by is
    mu - 3 sigma: what a bot is worth at the least, as far as its games can tell.

    Example: referee ratings --ruleset basic
    """
    if ruleset is not None and ruleset not in RULESETS:
        raise UserError(f"--ruleset: unknown ruleset {ruleset!r}; there are {', '.join(RULESETS)}")
    with League.open(league, create=False, db=db) as store:
        rows = current_standings(store, ruleset=ruleset)
    show_rows(StandingRow, rows, title="ratings", as_json=as_json, as_csv=as_csv)
