"""`referee serve` and `referee report`: show a league in a browser, from a server or from files."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Annotated

import typer
from rich.text import Text

from referee.cli.isolation import IsolationOption, parse_rung
from referee.cli.options import (
    DEFAULT_LEAGUE,
    INTERRUPTED,
    DbOption,
    LeagueOption,
    TournamentArgument,
    console,
    notes,
    parse_path,
)
from referee.errors import UserError, count_text
from referee.reports.formats import visible
from referee.store.league import League
from referee.web.lobby import Lobby
from referee.web.report import write_report
from referee.web.serve import serve as serve_pages
from referee.web.views import PATIENCE_S, LeagueViews

app = typer.Typer()
_NAMED = 5
"""`report` names at most this number of games with damaged records."""

SpoilersOption = Annotated[
    bool,
    typer.Option(
        "--spoilers",
        help="Also show replays of games whose deal is still to be played in other seatings. Bot authors must not see them.",
    ),
]


@app.command()
def serve(
    host: Annotated[
        str,
        typer.Option(
            help="The name or address at which the server listens. By default only this machine reaches it.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 chooses a free one.")
    ] = 8080,
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the first page in a browser.")
    ] = False,
    spoilers: SpoilersOption = False,
    isolation: IsolationOption = None,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
) -> None:
    """Show the league as live web pages, with a seat for people who want to play against its bots.

    The command prints two addresses: of the league, and of the seat for people. Give the second address only to people
    who may start games. Ctrl-C ends the server. A second Ctrl-C stops at once, even while a finished game is being stored.

    Example: referee serve --port 8000 --open
    """
    if not host:
        raise UserError("--host: the name or address is missing")

    rung = parse_rung("--isolation", isolation)

    def announce(address: str, seat: str, is_private: bool) -> None:
        if not is_private:
            notes.print(
                Text(f"--host {host}: everybody who reaches this machine can read the league"),
                style="yellow",
                soft_wrap=True,
            )
        console.print(Text(address), soft_wrap=True)
        console.print(Text(f"{seat} (play against bots)"), soft_wrap=True)
        if open_browser:
            # in a thread, because a browser that runs in the terminal would block the server
            Thread(target=webbrowser.open, args=[address], daemon=True).start()

    with League.open_read_only(league, db=db) as store:
        serve_pages(
            LeagueViews(store, spoilers=spoilers, patience_s=PATIENCE_S),
            Lobby(store, lambda: League.open(league, create=False, db=db), rung),
            host=host,
            port=port,
            on_ready=announce,
            exit_code=INTERRUPTED,
        )


@app.command()
def report(
    name: TournamentArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output", parser=parse_path, help="Where to write: a folder that is new or empty."
        ),
    ],
    spoilers: SpoilersOption = False,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
) -> None:
    """Write the pages of a tournament into a folder. A game has a replay when its deal has been played in all seatings.

    The pages open in a browser without a server.

    Example: referee report demo --output demo-report
    """
    with League.open_read_only(league, db=db) as store:
        written = write_report(LeagueViews(store, spoilers=spoilers), name, output)
    lines = [f"{output / 'index.html'}: {count_text(written.replays, 'replay')}."]
    if written.hidden:
        games = count_text(written.hidden, "more game")
        lines.append(
            f"There is no replay of {games} yet, because the deals are not yet played in all seatings."
            " With --spoilers, the report has these replays. Do not show such a report to authors of bots."
        )
    if written.damaged:
        lines.append(_describe_damaged(written.damaged))
    for line in lines:
        console.print(Text(visible(line)), soft_wrap=True)


def _describe_damaged(games: Sequence[str]) -> str:
    """Return two sentences about games with records that cannot be replayed."""
    names = ", ".join(games[:_NAMED])
    more = f" and {len(games) - _NAMED} more" if len(games) > _NAMED else ""
    if len(games) == 1:
        return f"The record of {names} is damaged, so there is no replay. The page of the game says why."
    return f"The records of {len(games)} games are damaged, so there is no replay: {names}{more}. The pages of the games say why."
