"""Find the command that was typed, run it, and turn errors into messages and exit codes.

The module of a command is imported when the command runs. So `referee --help`, `referee --version` and a
mistyped command load neither the database nor gRPC, numpy or pydantic. What a command does belongs into the
command's own module.
"""

from __future__ import annotations

import re
import resource
import signal
import sys
import tempfile
import traceback
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup, TyperOption

from referee import __version__
from referee.cli.options import INTERRUPTED, UNSOUND, USER_ERROR
from referee.errors import RefereeError, UserError
from referee.reports.formats import visible

_MIN_DESCRIPTORS = 64
"""gRPC and the database need open files: some libraries end the process when none is left."""


_GROUPS = {
    "tournament": "Run tournaments and show their results.",
    "bots": "Create, check, submit and show bots.",
    "stats": "Show who beats whom, and the effects of seats, luck and collusion.",
    "game": "List, show and replay games.",
}
"""The first help line of every group of commands."""
_COMMANDS = {
    "play": ("play", "Play one game between bots; the first one starts."),
    "tournament plan": (
        "tournament",
        "Show what a tournament would come to: how many games, how even, and how long it may take.",
    ),
    "tournament run": ("run", "Create a tournament from a file and play it."),
    "tournament resume": ("run", "Play the games of a tournament that are still missing."),
    "tournament extend": ("run", "Add matches to a tournament, finished or not, and play them."),
    "tournament status": (
        "tournament",
        "Show how far a tournament is and what faults there were, or list all tournaments.",
    ),
    "tournament standings": (
        "tournament",
        "Show the ratings of a tournament's bots, from its own games alone.",
    ),
    "tournament export": (
        "verify",
        "Write a tournament into one archive: schedule, games, bots' hashes, ratings, and the seed.",
    ),
    "bots init": (
        "submit",
        "Write a new bot into a folder here: it builds and plays, and waits for your ideas.",
    ),
    "bots check": (
        "submit",
        "Build a bot, start it, play with it, and say what is right and what is not.",
    ),
    "bots submit": ("submit", "Check a bot and bring it into the league, as it is now."),
    "bots list": ("bots", "List the versions of all bots that the league knows."),
    "bots show": (
        "bots",
        "Show a version of a bot: where it came from, its check, ratings, faults, CPU time and memory.",
    ),
    "bots log": (
        "bots",
        "Show the last faults of a bot with what it had written to standard error.",
    ),
    "bots retire": (
        "bots",
        "Let a version of a bot play no more new tournaments; its games and ratings stay.",
    ),
    "ratings": (
        "ratings",
        "Show the ratings of all bots, from every tournament game of the league.",
    ),
    "stats pairs": (
        "stats",
        "Compare every two bots: meetings, points, and how sure it is that one is the better.",
    ),
    "stats crosstable": ("stats", "Show every bot against every other, best first."),
    "stats settled": (
        "stats",
        "Say which places in the table are settled: who is surely ahead of the next, or surely as good.",
    ),
    "stats seats": ("stats", "Show what each seat is worth, in points and games won."),
    "stats luck": (
        "stats",
        "Show how much of the points is the luck of the deal, and how much the bots' play.",
    ),
    "stats collusion": (
        "stats",
        "Show how each bot fares in the company of each other one: a hint at collusion, no proof.",
    ),
    "game list": ("games", "List games, in the order of their schedules."),
    "game show": (
        "games",
        "Show how a game ended and what went wrong in it; with --json, the whole record.",
    ),
    "game replay": ("games", "Play a stored game again, move by move, and tell what happens."),
    "verify": (
        "verify",
        "Check stored games: decks against the seed, moves against the rules, results against both.",
    ),
    "doctor": (
        "isolation",
        "Test the isolation of bots on this machine, and say what to install for more.",
    ),
}
"""The module and the first help line of every command, in the order of the help.

A test compares the lines with the docstrings of the commands.
"""


class LazyGroup(TyperGroup):
    """A group that lists its commands by `_COMMANDS` and imports only the command that runs."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        path = f"{self.name} " if self.name in _GROUPS else ""
        self._modules: dict[str, str] = {}
        """By name, the modules of the commands that are not loaded yet."""
        for words, (module, line) in _COMMANDS.items():
            name, _, inner = words.removeprefix(path).partition(" ")
            if not words.startswith(path) or name in self.commands:
                continue
            if inner:
                self.commands[name] = LazyGroup(name=name, help=_GROUPS[name], no_args_is_help=True)
            else:
                self.commands[name] = TyperCommand(name, help=line)
                self._modules[name] = module

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the group itself, those of Typer included."""
        params = super().get_params(ctx)
        for param in params:
            if isinstance(param, TyperOption) and param.is_flag and param.default is None:
                param.default = False  # Typer would import pydantic to convert None
        return params

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command to run: its name, the command itself and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else self.load(name), rest

    def load(self, name: str) -> Any:
        """Return a command, imported from its module."""
        if name in self._modules:
            app: typer.Typer = import_module(f"referee.cli.{self._modules.pop(name)}").app
            group = typer.main.get_group(app)
            command = self.commands[name] = group.commands.get(name, group)
            command.help = _join_lines(command.help or "")
        return self.commands[name]


app = typer.Typer(
    name="referee",
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def all_commands() -> dict[str, TyperCommand | TyperGroup]:
    """Import every command that does something and return it by the words that call it."""
    found: dict[str, TyperCommand | TyperGroup] = {}

    def visit(words: str, command: Any) -> None:
        if not isinstance(command, TyperGroup) or command.invoke_without_command:
            found[words] = command
        for name in getattr(command, "commands", ()):
            inner = command.load(name) if isinstance(command, LazyGroup) else command.commands[name]
            visit(f"{words} {name}", inner)

    visit("referee", typer.main.get_group(app))
    return found


def _join_lines(text: str) -> str:
    """Make each paragraph one line: Typer keeps line breaks, which differ from those of the terminal."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"referee {__version__}\n")
        raise typer.Exit


@app.callback()
def _referee(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Referee bots that play LINKO!/Abluxxen: single games, tournaments, ratings."""


def run() -> None:
    """Run the command line and exit.

    SIGTERM interrupts like Ctrl-C, so that bots and builds are ended first. Both also work where SIGINT was
    ignored, as a shell does for a program that a script starts in the background.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        _check_descriptors()
        app()
    except UserError as error:
        if error.output:
            sys.stderr.write(f"{error.output}\n")
        _print_error(str(error))
        sys.exit(USER_ERROR)
    except RefereeError as error:
        _print_error(str(error))
        sys.exit(UNSOUND)
    except OSError as error:  # the machine's: no room on a disk, no descriptors, no processes
        _print_error(_os_error_text(error))
        sys.exit(UNSOUND)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - a bug of the referee, whatever it is
        _print_error(f"this is a bug of the referee: {_write_bug_report(error)}")
        sys.exit(UNSOUND)
    finally:  # Another interrupt now would only make the interpreter print a traceback.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def _check_descriptors() -> None:
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= allowed < _MIN_DESCRIPTORS:
        raise RefereeError(
            f"{allowed} open files are allowed (`ulimit -n`), which is too few:"
            f" the referee needs at least {_MIN_DESCRIPTORS}"
        )


def _os_error_text(error: OSError) -> str:
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{error.strerror or error}"


def _write_bug_report(error: Exception) -> str:
    """Write an error with its traceback to a file; return one line that names the error and the file."""
    line = traceback.format_exception_only(error)[-1].strip()
    try:
        number, name = tempfile.mkstemp(prefix="referee-bug-", suffix=".txt")
        with open(number, "w") as file:  # noqa: PTH123 - closes the descriptor
            file.write(f"referee {__version__}, Python {sys.version}\n\n")
            traceback.print_exception(error, file=file)
    except OSError:
        return line
    return f"{line}; please report it with {name}"


def _print_error(text: str) -> None:
    Console(stderr=True, soft_wrap=True).print(f"[bold red]referee:[/] {escape(visible(text))}")
