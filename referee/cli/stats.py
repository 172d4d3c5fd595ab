"""`referee stats`: show which bots beat which, whether ratings explain that, and what else decides games."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

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
from referee.ratings.collusion import collusion_figures
from referee.ratings.effects import luck_figures, seat_figures
from referee.ratings.machines import machine_figures
from referee.reports.formats import json_text
from referee.reports.selection import GameFilter, analyses, standings
from referee.reports.statistics import (
    CollusionRow,
    LuckRow,
    MachineRow,
    NeighbourRow,
    PairRow,
    SeatWorthRow,
    collusion_rows,
    crosstable_rows,
    luck_rows,
    machine_rows,
    pair_rows,
    seat_worth_rows,
)
from referee.reports.terminal import Crosstable
from referee.reports.verdicts import TransitivityRow, describe_tests, judge_games, transitivity_rows
from referee.result_columns import ResultColumns
from referee.store.league import League

Figures = TypeVar("Figures")
Row = TypeVar("Row")

app = typer.Typer()


@app.command()
def pairs(
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    tournament: TournamentOption = None,
    ruleset: RulesetOption = None,
    seats: SeatsOption = None,
    wide: WideOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Compare every two bots: meetings, points, and how sure it is that one is better.

    Each pair has one row, with the bot of the higher fit first.

    Example: referee stats pairs --tournament demo
    """
    printer = RowsPrinter(PairRow, as_json=as_json, as_csv=as_csv, wide=wide, columns=columns)
    choice = GameFilter(tournament=tournament, ruleset=ruleset, seats=seats)
    with League.open(league, create=False, db=db) as store:
        analysed = analyses(choice.columns(store))
    rows = [row for name, analysis in analysed.items() for row in pair_rows(name, analysis.pairs())]
    printer.show(rows, "pairs")


@app.command(name="crosstable")
def show_crosstable(
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    tournament: TournamentOption = None,
    ruleset: RulesetOption = None,
    seats: SeatsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a table of every bot against every other one, best first.

    A cell is the percentage of the common games in which the bot of the row ranked higher than the bot of the
    column. A tie counts half, and a game with k seats has the weight 2 / k. `referee stats pairs` has the same figures with intervals.

    Example: referee stats crosstable --tournament demo
    """
    choice = GameFilter(tournament=tournament, ruleset=ruleset, seats=seats)
    with League.open(league, create=False, db=db) as store:
        games = choice.columns(store)
        analysed = analyses(games)
        table = standings(store, choice, games, analysed)
    bots = {name: [row.bot for row in table if row.ruleset == name] for name in analysed}
    if as_json:
        write(
            json_text(
                [
                    row
                    for name, analysis in analysed.items()
                    for row in crosstable_rows(name, bots[name], analysis.meetings())
                ]
            )
        )
        return
    if not table:
        console.print("crosstable: none")
    for name, analysis in analysed.items():
        console.print(Crosstable(bots[name], analysis.meetings(), f"crosstable, {name}"))


@app.command()
def settled(
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    tournament: TournamentOption = None,
    ruleset: RulesetOption = None,
    seats: SeatsOption = None,
    confidence: ConfidenceOption = None,
    margin: MarginOption = None,
    wide: WideOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show which neighbours by fit are settled: one bot is surely better, or both are equally good.

    The confidence holds for all verdicts together. For a tournament with `until` in its file, the command shows the
    verdicts of the newest look, with the tournament's confidence and margin. For other games it makes one test. Make
    this test only once, not again and again until the standings look settled, because wrong verdicts become more likely
    with each test.

    Example: referee stats settled --tournament demo
    """
    printer = RowsPrinter(NeighbourRow, as_json=as_json, as_csv=as_csv, wide=wide, columns=columns)
    choice = GameFilter(tournament=tournament, ruleset=ruleset, seats=seats)
    with League.open(league, create=False, db=db) as store:
        judged = judge_games(store, choice, confidence=confidence, margin=margin)
    rows = judged.neighbour_rows(ruleset)
    printer.show(rows, "neighbours")
    basis = judged.basis({row.ruleset for row in rows})
    if basis and not (as_json or as_csv):
        console.print(basis, soft_wrap=True)


@app.command()
def transitivity(
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    tournament: TournamentOption = None,
    ruleset: RulesetOption = None,
    seats: SeatsOption = None,
    wide: WideOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Test whether one number per bot explains the results, and show which pairs deviate.

    Each row shows how often the first bot of a pair ranked higher than the second, and how often it should, according to
    the strengths of the bots. Ties do not count, and neither do games in which one of the two bots forfeited. If a beats b,
    b beats c, and c beats a, then no ratings explain the results. One test covers all pairs of a ruleset. If one number
    per bot explains the results, the chance that the test says otherwise is at most 5 %.

    Example: referee stats transitivity --tournament demo
    """
    printer = RowsPrinter(
        TransitivityRow, as_json=as_json, as_csv=as_csv, wide=wide, columns=columns
    )
    choice = GameFilter(tournament=tournament, ruleset=ruleset, seats=seats)
    with League.open(league, create=False, db=db) as store:
        analysed = analyses(choice.columns(store))
    rows = [
        row
        for name, analysis in analysed.items()
        for row in transitivity_rows(name, analysis.transitivity)
    ]
    printer.show(rows, "transitivity", notes=describe_tests(analysed))


@app.command(name="seats")
def show_seats(
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    tournament: TournamentOption = None,
    ruleset: RulesetOption = None,
    wide: WideOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show the advantage of each seat, in points and games won.

    Only complete matches without a forfeit count, because after a forfeit the stand-in plays.

    Example: referee stats seats --ruleset basic
    """
    printer = RowsPrinter(SeatWorthRow, as_json=as_json, as_csv=as_csv, wide=wide, columns=columns)
    choice = GameFilter(tournament=tournament, ruleset=ruleset)
    rows = _effects(league, db, choice, seat_figures, seat_worth_rows)
    printer.show(rows, "seats")


@app.command()
def machines(
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    tournament: TournamentOption = None,
    ruleset: RulesetOption = None,
    wide: WideOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show whether bots get more points on one machine than on others in the same matches.

    Example: referee stats machines --tournament demo
    """
    printer = RowsPrinter(MachineRow, as_json=as_json, as_csv=as_csv, wide=wide, columns=columns)
    choice = GameFilter(tournament=tournament, ruleset=ruleset)
    with League.open(league, create=False, db=db) as store:
        by_ruleset = choice.columns(store).by_ruleset()
        known = store.machines(tournament=tournament)
    rows = [
        row
        for name, each in by_ruleset.items()
        for row in machine_rows(name, machine_figures(each), known)
    ]
    printer.show(rows, "machines")


@app.command()
def luck(
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    tournament: TournamentOption = None,
    ruleset: RulesetOption = None,
    wide: WideOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show how much of the differences in points comes from the luck of the deal, and how much from the bots.

    Only complete matches without a forfeit count, because after a forfeit the stand-in plays. Games with fresh deals (the key
    `deals` of a tournament file) do not count either, because no two bots play the same hand in them. At tables of two,
    a match counts only if the same two bots have played another match that meets these conditions.

    Example: referee stats luck
    """
    printer = RowsPrinter(LuckRow, as_json=as_json, as_csv=as_csv, wide=wide, columns=columns)
    choice = GameFilter(tournament=tournament, ruleset=ruleset)
    rows = _effects(league, db, choice, luck_figures, luck_rows)
    printer.show(rows, "luck")


@app.command()
def collusion(
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    tournament: TournamentOption = None,
    ruleset: RulesetOption = None,
    seats: SeatsOption = None,
    wide: WideOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show whether bots do better together than strength and styles explain: a hint at collusion, no proof.

    A model predicts the points of a bot from its strength and from the usual effect of its opponents. Each row
    is about two bots. The column `excess` shows by how many points per game the first one exceeds the prediction when
    the second one plays too. Different styles can cause an excess without cooperation. So the column `hint` marks a pair
    only if its excess is surely above 1.5 standard deviations of a bot's points in a game, and unusually large compared
    with the excesses of the other pairs.

    The results cannot show why a pair is unusual. Even a clear hint may come from different styles, so read the games.
    Collusion is also possible without a hint, because the test does not find small help, help in many pairs at once, or
    help in a tournament with few bots.

    Example: referee stats collusion --tournament demo
    """
    printer = RowsPrinter(CollusionRow, as_json=as_json, as_csv=as_csv, wide=wide, columns=columns)
    choice = GameFilter(tournament=tournament, ruleset=ruleset, seats=seats)
    rows = _effects(league, db, choice, collusion_figures, collusion_rows)
    printer.show(rows, "collusion")


def _effects(
    league: Path,
    db: str | None,
    choice: GameFilter,
    figures: Callable[[ResultColumns], Iterable[Figures]],
    rows: Callable[[str, Iterable[Figures]], tuple[Row, ...]],
) -> tuple[Row, ...]:
    """Return the rows of every ruleset. `figures` computes figures from the games of a ruleset; `rows` turns them into rows."""
    with League.open(league, create=False, db=db) as store:
        by_ruleset = choice.columns(store).by_ruleset()
    return tuple(row for name, each in by_ruleset.items() for row in rows(name, figures(each)))
