"""`referee ratings`: show how strong the bots of a league are, and compare two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import typer

from referee.cli.options import (
    DEFAULT_LEAGUE,
    CsvOption,
    DbOption,
    JsonOption,
    LeagueOption,
    RulesetOption,
    SeatsOption,
    TournamentOption,
    check_format,
    console,
    show_rows,
    write,
)
from referee.errors import StoreError, UserError
from referee.ratings.analysis import Analysis
from referee.ratings.checkpoint import rate_from_checkpoint
from referee.ratings.trueskill import Ratings, rating_history
from referee.records import GameResult
from referee.reports.formats import json_text
from referee.reports.rating_rows import HistoryRow, RatingRow, history_rows, rating_rows
from referee.reports.statistics import PairRow, comparison, pair_rows
from referee.reports.terminal import plot
from referee.result_columns import ResultColumns
from referee.roster import predecessors
from referee.rules.ruleset import RULESETS
from referee.store.league import League


@dataclass(frozen=True, slots=True, kw_only=True)
class GameFilter:
    """Selects the games of a command. A field that is None does not restrict the games."""

    tournament: str | None = None
    ruleset: str | None = None
    seats: int | None = None
    """Number of seats of the table."""

    def games(self, league: League) -> list[GameResult]:
        """Return the selected games in schedule order. Raises UserError for an unknown tournament or ruleset."""
        self._check(league)
        return [
            row
            for row in league.results(tournament=self.tournament)
            if self.ruleset in (None, row.ruleset) and self.seats in (None, len(row.bots))
        ]

    def columns(self, league: League) -> ResultColumns:
        """Return the selected games as result columns. Raises UserError for an unknown tournament or ruleset."""
        self._check(league)
        games = league.columns(tournament=self.tournament)
        if self.ruleset is not None:
            number = (*games.rulesets, self.ruleset).index(self.ruleset)
            games = games.select(games.ruleset == number)
        return games if self.seats is None else games.select(games.seats == self.seats)

    def _check(self, league: League) -> None:
        if self.tournament is not None:
            league.check_tournament(self.tournament)
        if self.ruleset is not None and self.ruleset not in RULESETS:
            known = ", ".join(RULESETS)
            raise UserError(f"--ruleset: unknown ruleset {self.ruleset!r}; choose one of {known}")

    def predecessors(self, league: League) -> Mapping[str, str]:
        """Map each version of a bot to its predecessor.

        If a tournament is selected, the map is empty: in the ratings of one tournament, all bots start with equal mu.
        """
        return predecessors(league) if self.tournament is None else {}


def analyses(games: ResultColumns) -> dict[str, Analysis]:
    """Return an `Analysis` of the games of each ruleset, by the name of the ruleset."""
    return {ruleset: Analysis(each) for ruleset, each in games.by_ruleset().items()}


def current_ratings(league: League, choice: GameFilter) -> list[RatingRow]:
    """Return the rows of all bots that played in the selected games, ruleset by ruleset, best bot first."""
    games = choice.columns(league)
    return standings(league, choice, games, analyses(games))


def standings(
    league: League, choice: GameFilter, games: ResultColumns, analysed: Mapping[str, Analysis]
) -> list[RatingRow]:
    """Return the rows of `current_ratings`, from games that the caller has read and analysed.

    Args:
        league: the league of the games; it stores the checkpoint of the ratings.
        choice: the filter that selected the games.
        games: `choice.columns(league)`.
        analysed: `analyses(games)`.
    """
    ratings = sequential(league, choice, games).table()
    strikes = _strikes(games)
    return [
        row
        for name, analysis in analysed.items()
        for row in rating_rows(name, ratings[name], analysis, strikes[name])
    ]


def sequential(league: League, choice: GameFilter, games: ResultColumns) -> Ratings:
    """Return the TrueSkill ratings after `games`, which must be in schedule order.

    If the league has a checkpoint for the filter `choice`, the computation continues from the checkpoint. If many
    games were added after the checkpoint, a new checkpoint is stored.
    """
    name = f"ratings: {choice}"
    ratings, worth_keeping = rate_from_checkpoint(
        league.checkpoint(name), games, predecessors=choice.predecessors(league)
    )
    if worth_keeping is not None:
        # The league may be read-only. Without a new checkpoint the next command only takes longer.
        with suppress(StoreError, UserError):
            league.keep_checkpoint(name, worth_keeping)
    return ratings


def _strikes(games: ResultColumns) -> dict[str, Counter[str]]:
    """Return the number of strikes of each bot, by ruleset."""
    strikes = {name: Counter[str]() for name in games.rulesets}
    for game, seat in zip(*games.strikes.nonzero(), strict=True):
        ruleset, bot = games.rulesets[games.ruleset[game]], games.bots[games.bot[game, seat]]
        strikes[ruleset][bot] += int(games.strikes[game, seat])
    return strikes


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
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show the ratings of all bots, from every tournament game of the league.

    Ratings are computed with TrueSkill for each ruleset, over all games in schedule order. The table is sorted
    by mu - 3 sigma, a skill that a bot almost certainly has. The fit is a rating that does not depend on the
    order of the games. The bracket behind the fit is its 95 % interval. The column `ahead` has the probability
    that a bot is better than the next bot in the table.

    Example: referee ratings --ruleset basic
    """
    if context.invoked_subcommand is not None:
        return
    check_format(as_json=as_json, as_csv=as_csv)
    choice = GameFilter(ruleset=ruleset, seats=seats)
    with League.open(league, create=False, db=db) as store:
        if bot is None:
            rows = current_ratings(store, choice)
        else:
            _show_history(store, choice, bot, as_json=as_json, as_csv=as_csv)
            return
    show_rows(RatingRow, rows, title="ratings", as_json=as_json, as_csv=as_csv)


@app.command()
def compare(
    bot: Annotated[str, typer.Argument(help="A bot: name (its newest version) or name@version.")],
    other: Annotated[str, typer.Argument(help="The bot to compare BOT with.")],
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    tournament: TournamentOption = None,
    ruleset: RulesetOption = None,
    seats: SeatsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say in a sentence for each ruleset which of two bots is better, and how sure that is.

    Example: referee ratings compare greedy bait --ruleset basic
    """
    choice = GameFilter(tournament=tournament, ruleset=ruleset, seats=seats)
    with League.open(league, create=False, db=db) as store:
        games = choice.columns(store)
        played = {games.bots[number] for number in set(games.bot.flat) if number >= 0}
        first, second = (_find_played_bot(store, played, name) for name in (bot, other))
    if first == second:
        raise UserError(f"{bot} and {other} are the same bot")
    pairs = {
        name: analysis.pair(first, second)
        for name, analysis in analyses(games).items()
        if {first, second} <= set(analysis.results.bots)
    }
    if not pairs:
        raise UserError(f"{first} and {second} have not played by the same ruleset")
    if as_json:
        rows: list[PairRow] = []
        for name, pair in pairs.items():
            rows += pair_rows(name, [pair])
        write(json_text(rows))
        return
    for name, pair in pairs.items():
        console.print(comparison(name, pair), soft_wrap=True)


def _show_history(
    store: League, choice: GameFilter, bot: str, *, as_json: bool, as_csv: bool
) -> None:
    games = choice.games(store)
    name = _find_played_bot(store, {bot for game in games for bot in game.bots}, bot)
    rows = history_rows(rating_history(games, name, predecessors=choice.predecessors(store)))
    if not (as_json or as_csv):
        for ruleset in dict.fromkeys(row.ruleset for row in rows):
            console.print(f"{name}, {ruleset}", style="bold", markup=False)
            own = [row for row in rows if row.ruleset == ruleset]
            write(plot(own, min(console.width, 100)))
    show_rows(HistoryRow, rows, title=name, as_json=as_json, as_csv=as_csv)


def _find_played_bot(store: League, played: set[str], text: str) -> str:
    """Return the `name@version` of a bot in `played`. Raises UserError if `played` does not have the bot.

    `text` is a `name@version`, or a name that means the newest version in `played`.
    """
    known = [str(row.bot) for row in store.bots() if str(row.bot) in played]
    versions = [bot for bot in known if text in (bot, bot.rpartition("@")[0])]
    if not versions:
        others = f"there are {', '.join(known)}" if known else "there are no games"
        raise UserError(f"{store.where}: no bot {text!r} has played here; {others}")
    return versions[-1]
