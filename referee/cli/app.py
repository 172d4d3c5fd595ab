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
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from referee import __version__
from referee.cli.options import INTERRUPTED, UNSOUND, USER_ERROR
from referee.errors import RefereeError, UserError
from referee.reports.formats import visible

_MIN_DESCRIPTORS = 64
"""gRPC and the database need open files: some libraries end the process when none is left."""


class LazyGroup(TyperGroup):
    """A group of commands that imports the module of a command when the command is used.

    Args:
        modules: by command name, the module of `referee.cli` whose Typer app `app` has the command.
        attributes: further arguments of `TyperGroup`.
    """

    def __init__(self, *, modules: Mapping[str, str], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._modules = dict(modules)
        """The commands that are not imported yet."""
        self.commands.update({name: TyperCommand(name) for name in modules})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Typer's signature
        """Return a command, to run it or to list it; None if the group has none of this name."""
        return self.load(cmd_name)

    def load(self, name: str) -> Any:
        """Return a command, imported from its module; None if the group has none of this name."""
        if name in self._modules:
            app: typer.Typer = import_module(f"referee.cli.{self._modules.pop(name)}").app
            group = typer.main.get_group(app)
            command = self.commands[name] = group.commands.get(name, group)
            command.help = _join_lines(command.help or "")
        return self.commands.get(name)


_MODULES: dict[str, tuple[str, str | dict[str, str]]] = {
    "play": ("Play one game between bots; the first one starts.", "single_game"),
    "tournament": (
        "Run tournaments and see how they stand.",
        {
            "plan": "tournament",
            "run": "running",
            "resume": "running",
            "extend": "running",
            "status": "tournament",
            "standings": "tournament",
            "export": "verification",
        },
    ),
    "bots": (
        "Make, check, submit and look at bots.",
        {
            "init": "bot_check",
            "check": "bot_check",
            "submit": "bot_check",
            "list": "bots",
            "show": "bots",
            "log": "bots",
            "retire": "bots",
        },
    ),
    "ratings": (
        "Show the ratings of all bots, from every tournament game of the league.",
        "ratings",
    ),
    "stats": (
        "See who beats whom, and what seats, luck and collusion do.",
        dict.fromkeys(("pairs", "crosstable", "settled", "seats", "luck", "collusion"), "stats"),
    ),
    "game": (
        "Look at games.",
        {"list": "stored_games", "show": "stored_games", "replay": "verification"},
    ),
    "verify": (
        "Check stored games: decks against the seed, moves against the rules, results against both.",
        "verification",
    ),
    "doctor": (
        "Try what bots are kept from on this machine, and say what to install for more.",
        "launching",
    ),
}
"""The first help line of every command and group, and the module of every command, in the order of the help."""


class _RootGroup(LazyGroup):
    """All commands. It lists them without importing them, by the help lines of `_MODULES`."""

    def __init__(self, **attributes: Any) -> None:
        single = {name: module for name, (_, module) in _MODULES.items() if isinstance(module, str)}
        super().__init__(modules=single, **attributes)
        self.commands = {
            name: TyperCommand(name, help=line)
            if isinstance(modules, str)
            else LazyGroup(name=name, help=line, modules=modules, no_args_is_help=True)
            for name, (line, modules) in _MODULES.items()
        }

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Typer's signature
        """Return a command or group to list it: its name and its help line are enough."""
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command to run: its name, the command itself and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else self.load(name), rest


app = typer.Typer(
    name="referee",
    cls=_RootGroup,
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
        if isinstance(command, TyperGroup):
            for name in list(command.commands):
                load = getattr(command, "load", command.commands.get)
                visit(f"{words} {name}", load(name))

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
