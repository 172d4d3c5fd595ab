"""`referee ratings`: show how strong the bots of a league are, and compare two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from referee.cli.options import (
    DEFAULT_LEAGUE,
    ColumnsOption,
    ConfidenceOption,
    CsvOption,
    DbOption,
    JsonOption,
    LeagueOption,
    MarginOption,
    RowsPrinter,
    RulesetOption,
    SeatsOption,
    TournamentOption,
    WideOption,
    console,
    write,
)
from referee.errors import UserError
from referee.ratings.trueskill import rating_history
from referee.reports.formats import json_text
from referee.reports.rating_rows import HistoryRow, RatingRow, history_rows
from referee.reports.selection import GameFilter, current_ratings, find_played_bot
from referee.reports.terminal import plot
from referee.reports.verdicts import judge_games, name_deviations
from referee.store.league import League

app = typer.Typer()


@app.callback(invoke_without_command=True)
def ratings(
    context: typer.Context,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    ruleset: RulesetOption = None,
    seats: SeatsOption = None,
    bot: Annotated[
        str | None,
        typer.Option(
            "--history", metavar="BOT", help="Show the rating of this bot after each round."
        ),
    ] = None,
    wide: WideOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show the ratings of all bots, from every tournament game of the league.

    Ratings are computed with TrueSkill for each ruleset, over all games in schedule order. The table is sorted
    by mu - 3 sigma, a cautious estimate of the skill. The fit is a rating that does not depend on the
    order of the games. The bracket behind the fit is its 95 % interval. The column `ahead` has the probability
    that a bot is better than the next bot in the table. A line below the table names pairs of bots whose results
    the ratings do not explain; see `referee stats transitivity`.

    Example: referee ratings --ruleset basic
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context, context.invoked_subcommand)
        return
    row_type = RatingRow if bot is None else HistoryRow
    printer = RowsPrinter(row_type, as_json=as_json, as_csv=as_csv, wide=wide, columns=columns)
    choice = GameFilter(ruleset=ruleset, seats=seats)
    rows: Sequence[RatingRow | HistoryRow]
    with League.open(league, create=False, db=db) as store:
        if bot is None:
            rows, analysed = current_ratings(store, choice)
            title, notes = "ratings", list(name_deviations(analysed))
        else:
            title, rows = _read_history(store, choice, bot)
            notes = []
            if not (as_json or as_csv):
                _show_diagrams(title, rows)
    printer.show(rows, title, notes=notes)


def _refuse_options(context: typer.Context, command: str) -> None:
    """Raise UserError if options stand before `command`, because `command` would not get them."""
    for param in context.command.params:
        source = context.get_parameter_source(param.name or "")
        if source is not None and source.name == "COMMANDLINE":
            raise UserError(
                f"{param.opts[0]}: belongs to `referee ratings`; write the options of {command} after {command}"
            )


@app.command()
def compare(
    bot: Annotated[str, typer.Argument(help="A bot: name (its newest version) or name@version.")],
    other: Annotated[str, typer.Argument(help="The bot to compare BOT with.")],
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    tournament: TournamentOption = None,
    ruleset: RulesetOption = None,
    seats: SeatsOption = None,
    confidence: ConfidenceOption = None,
    margin: MarginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say in a sentence for each ruleset which of two bots is better, and how sure that is.

    Neighbours by fit have the same verdict as in `referee stats settled`. Other pairs get the same test, but then the
    confidence holds for this pair alone. A verdict can also follow from verdicts about other bots: if A is surely ahead
    of B, and B of C, then A is ahead of C.

    If all selected games belong to one tournament with the key `until`, the verdict comes from the newest look of this
    tournament, with its own confidence and margin. If several tournaments have games, choose one with `--tournament NAME`.

    Example: referee ratings compare greedy bait --ruleset basic
    """
    choice = GameFilter(tournament=tournament, ruleset=ruleset, seats=seats)
    with League.open(league, create=False, db=db) as store:
        games = choice.columns(store)
        played = {games.bots[number] for number in set(games.bot.flat) if number >= 0}
        first, second = (find_played_bot(store, choice, played, name) for name in (bot, other))
        if first == second:
            raise UserError(f"{bot} and {other} are the same bot")
        judged = judge_games(store, choice, confidence=confidence, margin=margin)
    found = judged.compare(first, second)
    if ruleset is not None:
        found = {name: each for name, each in found.items() if name == ruleset}
    if not found and not judged.look_sentence:
        raise UserError(f"{first} and {second} have not played by the same ruleset")
    if as_json:
        write(json_text([each.row() for each in found.values()]))
        return
    for each in found.values():
        console.print(each.sentence(), soft_wrap=True)
    if basis := judged.basis(found, (first, second)):
        console.print(basis, soft_wrap=True)


def _read_history(
    store: League, choice: GameFilter, bot: str
) -> tuple[str, tuple[HistoryRow, ...]]:
    """Return the `name@version` of a bot, and its rating after each round."""
    games = choice.games(store)
    name = find_played_bot(store, choice, {bot for game in games for bot in game.bots}, bot)
    history = rating_history(games, name, predecessors=choice.predecessors(store))
    return name, history_rows(history)


def _show_diagrams(name: str, history: Sequence[HistoryRow]) -> None:
    """Draw the rating of a bot in each ruleset in which it has played at least two rounds."""
    for ruleset in dict.fromkeys(row.ruleset for row in history):
        own = [row for row in history if row.ruleset == ruleset]
        if len(own) > 1:
            console.print(f"{name}, {ruleset}", style="bold")
            write(plot(own, min(console.width, 100)))
