"""Find the command that was typed, run it, and turn errors into messages and exit codes.

The module of a command is imported when the command runs. So `referee --help`, `--version` and a mistyped command
load neither the database nor gRPC, numpy or pydantic.
"""

from __future__ import annotations

import re
import resource
import signal
import sys
import tempfile
import traceback
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup, TyperOption

from referee import __version__
from referee.cli import handle_interrupts, interrupt_signals
from referee.cli.completion import CompletedCommand
from referee.cli.options import (
    INTERRUPTED,
    UNSOUND,
    USER_ERROR,
    Output,
    prepare_output,
    write,
)
from referee.errors import RefereeError, UserError, cut_middle, describe_shortage
from referee.reports.formats import visible

_MIN_DESCRIPTORS = 64
"""The smallest accepted limit of open files. With a lower limit, some libraries end the process without a message."""
_MORE_THREADS = "raise the limit of processes and threads (ulimit -u), or end some"
"""What to do if no thread can be started."""
_MAX_LINES = 20
"""The largest number of lines of an error message."""
_MAX_MESSAGE = 4_000
"""The largest number of characters of a line in an error message. Longer lines are cut in the middle.

Rich needs minutes to print a text of 100,000 characters."""

_GROUPS = {
    "tournament": "Run tournaments and show their results.",
    "bots": "Create, check, submit and show bots.",
    "ladder": "Rate the bots of the league in few games.",
    "stats": "Show who beats whom, and the effects of seats, luck and collusion.",
    "game": "List, show and replay games.",
}
"""The first help line of every group of commands."""
_COMMANDS = {
    "play": ("play", "Play one game between bots; the first bot starts."),
    "tournament plan": (
        "tournament",
        "Show the size of a tournament before it is played: games, meetings of bots, and expected time.",
    ),
    "tournament run": (
        "run",
        "Create a tournament from a file, or from bots and options, and play it.",
    ),
    "tournament compare": (
        "compare",
        "Play matches between two bots until it is known whether one is better or both are equal.",
    ),
    "tournament resume": (
        "run",
        "Continue a tournament that was interrupted: play its missing games.",
    ),
    "tournament extend": ("run", "Add matches to a tournament, finished or not, and play them."),
    "tournament status": (
        "tournament",
        "Show the progress and the faults of a tournament, or list all tournaments.",
    ),
    "tournament standings": (
        "tournament",
        "Show the standings of a tournament: the ratings from its own games, or a table of total points.",
    ),
    "tournament schema": (
        "tournament",
        "Print the JSON Schema of tournament files, with which an editor completes and checks them.",
    ),
    "tournament export": (
        "verify",
        "Write a tournament into one archive: schedule, games, hashes of the bots, ratings, and the seed.",
    ),
    "bots init": (
        "submit",
        "Create a new folder with a bot that is ready to be built and to play.",
    ),
    "bots check": (
        "submit",
        "Build a bot, play with it, and report step by step what is right and what is not.",
    ),
    "bots submit": ("submit", "Check a bot and copy it into the league."),
    "bots challenge": (
        "compare",
        "Rate a bot: play a gauntlet of it against the other current bots of the league.",
    ),
    "ladder run": (
        "ladder",
        "Play, for some minutes, the matches that tell most about the order of the league's bots.",
    ),
    "bots list": ("bots", "List the versions of all bots in the league, without retired versions."),
    "bots show": (
        "bots",
        "Show a version of a bot: its source folder, command, check, ratings, faults, CPU time, memory and batches.",
    ),
    "bots log": (
        "bots",
        "Show the last faults of a bot, each with the end of the bot's standard error.",
    ),
    "bots debug": (
        "debug",
        "Send the requests of a stored game to a bot again, and compare its replies with the stored ones.",
    ),
    "bots retire": (
        "bots",
        "Retire a version of a bot: the version plays in no new tournament, but its games and ratings stay.",
    ),
    "bots schema": (
        "bots",
        "Print the JSON Schema of bot.toml, with which an editor completes and checks the file.",
    ),
    "ratings": (
        "ratings",
        "Show the ratings of all bots, from every tournament game of the league.",
    ),
    "stats pairs": (
        "stats",
        "Compare every two bots: meetings, points, and how sure it is that one is better.",
    ),
    "stats crosstable": ("stats", "Show a table of every bot against every other one, best first."),
    "stats settled": (
        "stats",
        "Show which neighbours by fit are settled: one bot is surely better, or both are equally good.",
    ),
    "stats transitivity": (
        "stats",
        "Test whether one number per bot explains the results, and show which pairs deviate.",
    ),
    "stats machines": (
        "stats",
        "Show whether bots get more points on one machine than on others in the same matches.",
    ),
    "stats seats": ("stats", "Show the advantage of each seat, in points and games won."),
    "stats luck": (
        "stats",
        "Show how much of the differences in points comes from the luck of the deal, and how much from the bots.",
    ),
    "stats collusion": (
        "stats",
        "Show whether bots do better together than strength and styles explain: a hint at collusion, no proof.",
    ),
    "game list": ("games", "List the games of the league in schedule order."),
    "game show": (
        "games",
        "Show the result and the faults of a game; with --json the whole record.",
    ),
    "game replay": ("games", "Show a stored game move by move."),
    "serve": (
        "web",
        "Show the league as live web pages, with a seat for people who want to play against its bots.",
    ),
    "report": (
        "web",
        "Write the pages of a tournament into a folder. A game has a replay when its deal has been played in all seatings.",
    ),
    "verify": (
        "verify",
        "Check stored games: decks against the seed, moves and results against the rules, times against the clocks.",
    ),
    "worker": (
        "cluster",
        "Lend the cores of this machine to the tournaments of a Dask scheduler, until Ctrl-C.",
    ),
    "doctor": (
        "isolation",
        "Test the isolation of bots on this machine, and say what to install for a stronger one.",
    ),
}
"""The module and the first help line of every command, in the order of the help.

A test compares the lines with the docstrings of the commands.
"""


class LazyGroup(TyperGroup):
    """A group of commands. It lists them from `_COMMANDS`, and imports only the module of the command that runs."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._prefix = f"{self.name} " if self.name in _GROUPS else ""
        """The beginning of the keys in `_COMMANDS` that belong to this group, such as `bots `; empty for the whole program."""
        self._modules: dict[str, str] = {}
        """The module of each command that is not loaded yet, by the name of the command."""
        for words, (module, line) in _COMMANDS.items():
            name, _, inner = words.removeprefix(self._prefix).partition(" ")
            if not words.startswith(self._prefix) or name in self.commands:
                continue  # a command of another group, or a group that is listed already
            if inner:
                self.commands[name] = LazyGroup(name=name, help=_GROUPS[name], no_args_is_help=True)
            else:
                self.commands[name] = TyperCommand(name, help=line)
                self._modules[name] = module

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the group itself, including those that Typer adds."""
        params = super().get_params(ctx)
        for param in params:
            if isinstance(param, TyperOption) and param.is_flag and param.default is None:
                param.default = False  # Typer would import pydantic to convert None
        return params

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of the command to run, the command itself, and the arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        if ctx.resilient_parsing and name in self._modules:  # a shell completes the words
            return name, CompletedCommand(f"{self._prefix}{name}", partial(self.load, name)), rest
        if name is not None:
            command = self.load(name)
            if not isinstance(command, LazyGroup):
                # The module of the command has been imported. Until here, a signal ended the process at once.
                _raise_on_interrupts()
        return name, command, rest

    def load(self, name: str) -> Any:
        """Return the command `name`. At the first call, import the module of the command."""
        if name in self._modules:
            app: typer.Typer = import_module(f"referee.cli.{self._modules.pop(name)}").app
            group = typer.main.get_group(app)
            # `referee ratings` is a command and a group. Its module has no command `ratings`, so the group is used.
            command = self.commands[name] = group.commands.get(name, group)
            for each in (command, *getattr(command, "commands", {}).values()):
                _tidy_help(each)
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
    """Import all commands, and return them by their words, such as `referee bots list`.

    A group that does nothing without a command, such as `referee bots`, is left out.
    """
    found: dict[str, TyperCommand | TyperGroup] = {}

    def visit(words: str, command: Any) -> None:
        if not isinstance(command, TyperGroup) or command.invoke_without_command:
            found[words] = command
        for name in getattr(command, "commands", ()):
            inner = command.load(name) if isinstance(command, LazyGroup) else command.commands[name]
            visit(f"{words} {name}", inner)

    visit("referee", typer.main.get_group(app))
    return found


def _tidy_help(command: Any) -> None:
    """Join the lines of each paragraph of the help, and write the names of arguments in upper case, as the help texts do.

    Without this function, Typer shows the line breaks of the docstrings, and the lower-case names of the Python parameters.
    """
    command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", command.help or "")
    for param in command.params:
        if param.param_type_name == "argument" and param.metavar is None:
            param.metavar = param.name.upper()


def _show_version(wanted: bool) -> None:
    if wanted:
        write(f"referee {__version__}")
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
    """Let bots play LINKO!/Abluxxen: single games, tournaments, ratings."""


def run() -> None:
    """Run the command line and exit.

    SIGTERM and SIGHUP have the same effect as Ctrl-C: bots and builds are stopped before the referee ends. If the terminal
    is closed, errors are not printed, but the exit code is the same. One exception: if Typer refuses an option or argument
    and cannot print the error, the exit code is 1 instead of 2.
    """
    prepare_output()
    try:
        _check_descriptors()
        app()
    except UserError as error:
        _print_error(*error.args, output=error.output)
        sys.exit(USER_ERROR)
    except RefereeError as error:
        _print_error(str(error))
        sys.exit(UNSOUND)
    except OSError as error:  # a full disk, too many open files or processes
        _print_error(_os_error_text(error))
        sys.exit(UNSOUND)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - any other error is a bug of the referee
        if (shortage := describe_shortage(error)) is not None:
            _print_error(f"{shortage}: {_MORE_THREADS}")
        else:
            _print_error(f"this is a bug of the referee: {_write_bug_report(error)}")
        sys.exit(UNSOUND)
    finally:  # The referee ends now. A further signal would only print a traceback.
        handle_interrupts(signal.SIG_IGN)


def _raise_on_interrupts() -> None:
    """Let SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt from now on, so that the command can clean up."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in set(interrupt_signals()) - {signal.SIGINT}:
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))


def _check_descriptors() -> None:
    """Raise RefereeError if this process may open fewer files than `_MIN_DESCRIPTORS`."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= allowed < _MIN_DESCRIPTORS:
        raise RefereeError(
            f"{allowed} open files are allowed, but the referee needs at least {_MIN_DESCRIPTORS};"
            " to raise the limit: ulimit -n 1024"
        )


def _os_error_text(error: OSError) -> str:
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{error.strerror or error}"


def _write_bug_report(error: Exception) -> str:
    """Write an error with its traceback to a file. Return one line that names the error and the file.

    If the file cannot be written, the line names only the error.
    """
    line = traceback.format_exception_only(error)[-1].strip()
    try:
        number, name = tempfile.mkstemp(prefix="referee-bug-", suffix=".txt")
        with open(number, "w", encoding="utf-8") as file:  # noqa: PTH123 - Path cannot open a descriptor
            file.write(f"referee {__version__}, Python {sys.version}\n\n")
            traceback.print_exception(error, file=file)
    except OSError:
        return line
    return f"{line}; please report it with {name}"


def _print_error(*lines: str, output: str = "") -> None:
    """Print the lines of an error to standard error, after the `output` of the program that failed.

    Raise no error if the terminal is closed or the disk is full.
    """
    if len(lines) > _MAX_LINES:
        lines = (*lines[: _MAX_LINES - 1], f"{len(lines) - _MAX_LINES + 1} more lines")
    console = Output(stderr=True, soft_wrap=True, emoji=False)
    with suppress(OSError):  # the disk is full; `Output` ignores a closed terminal
        if output:
            console.write(f"{output}\n")
        for line in lines:
            text = visible(cut_middle(line, _MAX_MESSAGE))
            console.print(f"[bold red]referee:[/] {escape(text)}")
