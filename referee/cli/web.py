"""`referee serve`: show a league in a browser."""

from __future__ import annotations

import webbrowser
from threading import Thread
from typing import Annotated

import typer
from rich.text import Text

from referee.cli.options import (
    DEFAULT_LEAGUE,
    INTERRUPTED,
    DbOption,
    LeagueOption,
    console,
    notes,
)
from referee.errors import UserError
from referee.store.league import League
from referee.web.guard import is_loopback
from referee.web.serve import serve as serve_pages
from referee.web.views import LeagueViews

app = typer.Typer()


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
    spoilers: Annotated[
        bool,
        typer.Option(
            "--spoilers",
            help="Also show replays of deals that other bots still have to play. Bot authors must not see them.",
        ),
    ] = False,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
) -> None:
    """Show the league as web pages that update themselves while a tournament runs.

    The server only reads. Ctrl-C ends it.

    Example: referee serve --port 8000 --open
    """
    if not host:
        raise UserError("--host: the name or address is missing")

    def announce(address: str) -> None:
        console.print(Text(address), soft_wrap=True)
        if (
            open_browser
        ):  # in a thread, because a browser in the terminal would keep the server waiting
            Thread(target=webbrowser.open, args=[address], daemon=True).start()

    with League.open_read_only(league, db=db) as store:
        if not is_loopback(host):
            notes.print(
                Text(f"--host {host}: everybody who reaches this machine can read the league"),
                style="yellow",
                soft_wrap=True,
            )
        serve_pages(
            LeagueViews(store, spoilers=spoilers),
            host=host,
            port=port,
            on_ready=announce,
            exit_code=INTERRUPTED,
        )
