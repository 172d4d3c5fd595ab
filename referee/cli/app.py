"""All commands in one place, and what becomes of errors."""

from __future__ import annotations

import signal
import sys

import typer
from rich.console import Console
from rich.markup import escape

from referee.cli.bots import app as bots
from referee.cli.doctor import doctor
from referee.cli.game import app as games
from referee.cli.options import INTERRUPTED, UNSOUND, USER_ERROR
from referee.cli.play import play
from referee.cli.ratings import app as ratings
from referee.cli.stats import app as stats
from referee.cli.tournament import app as tournaments
from referee.cli.verify import verify
from referee.errors import RefereeError, UserError
from referee.reports import visible
from referee.roster import BuildError

app = typer.Typer(
    name="referee",
    help="Referee bots that play LINKO!/Abluxxen: single games, tournaments, ratings.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(tournaments, name="tournament")
app.add_typer(games, name="game")
app.add_typer(bots, name="bots")
app.add_typer(ratings, name="ratings")
app.add_typer(stats, name="stats")
for command in (play, verify, doctor):
    app.command()(command)


def run() -> None:
    """Run the command line and exit. SIGTERM is taken as Ctrl-C is: bots and builds are ended first.

    Also where SIGINT was ignored, as a script does with what it starts in the background.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        app()
    except UserError as error:
        if isinstance(error, BuildError):
            sys.stderr.write(f"{error.output}\n")
        _complain(error)
        sys.exit(USER_ERROR)
    except RefereeError as error:
        _complain(error)
        sys.exit(UNSOUND)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _complain(error: RefereeError) -> None:
    Console(stderr=True, soft_wrap=True).print(
        f"[bold red]referee:[/] {escape(visible(str(error)))}"
    )
