"""All commands in one place, and what becomes of errors."""

from __future__ import annotations

import resource
import signal
import sys
import tempfile
import traceback

import typer
from rich.console import Console
from rich.markup import escape

from referee.cli.bots import app as bots
from referee.cli.options import INTERRUPTED, UNSOUND, USER_ERROR
from referee.cli.ratings import app as ratings
from referee.cli.single_game import play
from referee.cli.stats import app as stats
from referee.cli.stored_games import app as games
from referee.cli.tournament import app as tournaments
from referee.cli.verification import doctor, verify
from referee.errors import RefereeError, UserError
from referee.reports.formats import visible
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


_DESCRIPTORS = 64
"""File descriptors that the libraries take for granted: some end the process where there are none."""


def run() -> None:
    """Run the command line and exit. SIGTERM is taken as Ctrl-C is: bots and builds are ended first.

    Also where SIGINT was ignored, as a script does with what it starts in the background.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        _check_descriptors()
        app()
    except UserError as error:
        if isinstance(error, BuildError):
            sys.stderr.write(f"{error.output}\n")
        _complain(str(error))
        sys.exit(USER_ERROR)
    except RefereeError as error:
        _complain(str(error))
        sys.exit(UNSOUND)
    except OSError as error:  # the machine's: no room on a disk, no descriptors, no processes
        _complain(_told(error))
        sys.exit(UNSOUND)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - a bug of the referee's, whatever it is
        _complain(f"this is a bug of the referee: {_kept(error)}")
        sys.exit(UNSOUND)
    finally:  # all is said and done: the interpreter would only complain of an interrupt
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def _check_descriptors() -> None:
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= allowed < _DESCRIPTORS:
        raise RefereeError(
            f"{allowed} open files are allowed (`ulimit -n`), which is too few: {_DESCRIPTORS} are the least"
        )


def _told(error: OSError) -> str:
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{error.strerror or error}"


def _kept(error: Exception) -> str:
    """One line about an error; the file in which the rest of it is kept, to be reported."""
    line = traceback.format_exception_only(error)[-1].strip()
    try:
        number, name = tempfile.mkstemp(prefix="referee-bug-", suffix=".txt")
        with open(number, "w") as file:  # noqa: PTH123 - closes the descriptor
            traceback.print_exception(error, file=file)
    except OSError:
        return line
    return f"{line}; please report it with {name}"


def _complain(text: str) -> None:
    Console(stderr=True, soft_wrap=True).print(f"[bold red]referee:[/] {escape(visible(text))}")
