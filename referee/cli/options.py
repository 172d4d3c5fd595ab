"""Print results, declare the options that several commands share, and define the exit codes.

`referee --help` imports this module too, so it must not load the store, gRPC or numpy.
"""

from __future__ import annotations

import codecs
import errno
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import FileIO, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from referee.errors import UserError
from referee.ratings.stopping import (
    CONFIDENCE,
    MARGIN,
    MAX_CONFIDENCE,
    MAX_MARGIN,
    MIN_CONFIDENCE,
)
from referee.reports.formats import csv_text, find_fields, items_of, json_text
from referee.rules.ruleset import RULESETS

_SIMILAR = {"µ": "u", "×": "x", "·": ".", "…": "..."}
"""ASCII texts that replace these characters if a stream cannot write them.

Braille characters become a space or `*`. All other characters become escapes such as `\\u20ac`.
"""
_BRAILLE = "\u2800\u28ff"
"""The first and the last Braille character. The first one is blank."""
_FULL_WIDTH = 100_000
"""The width, in characters, of output that no terminal limits: a file, a pipe, and a table with `--wide`."""

_UNREAD = {errno.EPIPE, errno.EIO}
"""The error numbers of a write to a pipe that nobody reads any more, and of a write to a closed terminal."""

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from referee.bots.logs import LogSettings


class Output(Console):
    """Standard output or standard error. After a write has failed, all further output is discarded.

    The error of the write is raised, for example if the disk is full. It is not raised if the terminal is closed, or if the
    reader of a pipe has closed the pipe: then nobody can read the output any more.
    """

    @contextmanager
    def widen(self, width: int) -> Iterator[None]:
        """Print at least `width` characters wide inside the `with` block; a narrower terminal wraps the lines itself."""
        before = self.width
        self.width = max(width, before)
        try:
            yield
        finally:
            self.width = before

    def __exit__(self, *exc: object) -> None:
        """Write what was printed. Rich calls this method after each print and after each refresh of a live screen."""
        try:
            super().__exit__(*exc)
        except OSError as error:
            self._give_up(error)

    def write(self, text: str) -> None:
        """Write a text without wrapping or colours, and flush."""
        try:
            self.file.write(text)
            self.file.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Discard all further output. Raise the error, unless it means that nobody can read the output any more."""
        self.on_broken_pipe()
        if error.errno not in _UNREAD:
            raise error

    def on_broken_pipe(self) -> None:
        """Discard all further output. The command goes on, because a running tournament must still store its games.

        Rich calls this method after a broken pipe; its own version would end the process. The file descriptor is redirected,
        because Python keeps the text that it could not write, and tries again at the end of the process. Without the
        redirection, that would fail with the same error.
        """
        self.quiet = True
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, self.file.fileno())
        os.close(silence)


console = Output(highlight=False, markup=False, emoji=False)
notes = Output(stderr=True, highlight=False, markup=False, emoji=False)
"""Standard error, for progress and warnings.

Markup and emoji are off here and in `console`, because texts of users may contain brackets and colons.
"""


def prepare_output() -> None:
    """Set the width of standard output, and make both output streams replace characters that they cannot write.

    If standard output is a file or a pipe, its width is not limited, unless the environment variable COLUMNS gives a width.
    Characters that a stream cannot write become similar ASCII characters, or else escapes. A stream with the encoding UTF-8
    is changed only if its error handler is `strict`, because this handler raises an error for a path that is not UTF-8.

    If the environment variable PYTHONUNBUFFERED is set, both streams are replaced. The streams that Python makes in this case
    write only the part of a text that still fits on the disk, and raise no error.
    """
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        console.width = _FULL_WIDTH
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and isinstance(stream.buffer, RawIOBase):
            file = _WholeFile(stream.fileno(), "w", closefd=False)
            stream = TextIOWrapper(file, stream.encoding, stream.errors, write_through=True)
            setattr(sys, name, stream)
        if isinstance(stream, TextIOWrapper) and (
            stream.errors == "strict" or stream.encoding.lower() not in {"utf-8", "utf8"}
        ):
            codecs.register_error("similar-ascii", _similar_ascii)
            stream.reconfigure(errors="similar-ascii")


class _WholeFile(FileIO):
    """An unbuffered file that writes all bytes or raises an error. `FileIO` may write only some of them."""

    def write(self, data: ReadableBuffer) -> int:
        """Write bytes, and return their number."""
        rest = whole = memoryview(data)
        while rest:
            rest = rest[os.write(self.fileno(), rest) :]
        return len(whole)


def _similar_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace characters that an encoding does not have. `codecs.register_error` prescribes the parameter and the result."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(map(_replace, wrong)), error.end


def _replace(char: str) -> str:
    if _BRAILLE[0] <= char <= _BRAILLE[-1]:  # a part of a line in a diagram
        return " " if char == _BRAILLE[0] else "*"
    return _SIMILAR.get(char) or char.encode("unicode_escape").decode()


class RowsPrinter:
    """Prints rows as a table, as JSON or as CSV, as the options of a command say.

    A command creates the printer before it computes the rows, so that a wrong option is refused before a long computation.

    Args:
        row_type: the type of the rows.
        as_json: print JSON.
        as_csv: print CSV.
        wide: show all columns of the table, whatever the width of the terminal; None if the command has no `--wide`.
        columns: the names of the columns to print, with commas between them; by default all.

    Raises UserError if both `as_json` and `as_csv` are true, or if `columns` names an unknown column.
    """

    def __init__(
        self,
        row_type: type,
        *,
        as_json: bool = False,
        as_csv: bool = False,
        wide: bool | None = None,
        columns: str | None = None,
    ) -> None:
        if as_json and as_csv:
            raise UserError("--json, --csv: choose one of them")
        self._row_type = row_type
        self._as_json = as_json
        self._as_csv = as_csv
        self._wide = wide
        self._fields = None if columns is None else find_fields(row_type, columns)

    def show(
        self,
        rows: Sequence[object],
        title: str,
        *,
        keep: Collection[str] = (),
        notes: Iterable[str] = (),
    ) -> None:
        """Print rows.

        Args:
            rows: the rows.
            title: the text above the table.
            keep: the keys of columns that are never hidden.
            notes: sentences below the table. JSON and CSV do not have them.
        """
        if self._as_json:
            write(json_text([dict(items_of(row, self._fields)) for row in rows]))
        elif self._as_csv:
            write(csv_text(self._row_type, rows, self._fields))
        else:
            from referee.reports.terminal import RowsTable  # noqa: PLC0415 - not for `--help`

            hint = "" if self._wide is None else "; --wide shows them"
            table = RowsTable(
                self._row_type, rows, title, hint=hint, columns=self._fields, keep=keep
            )
            with console.widen(_FULL_WIDTH if self._wide else table.least_width()):
                console.print(table)
            print_notes(notes)


def show_table(
    row_type: type, rows: Sequence[object], title: str = "", *, wide: bool | None = None
) -> None:
    """Print one of several tables of a command. For the arguments, see `RowsPrinter` and its method `show`."""
    RowsPrinter(row_type, wide=wide).show(rows, title)


def print_notes(notes: Iterable[str]) -> None:
    """Print the sentences below a table."""
    for note in notes:
        console.print(note)


def write(text: str) -> None:
    """Print a text without wrapping or colours."""
    console.write(text if text.endswith("\n") else text + "\n")


UNSOUND = 1
"""Exit code: a check of stored games or of a bot failed, a bot had a fault in `bots debug`, a tournament in a list cannot be
read, or a command cannot go on."""
NOT_KNOWN = 1
"""Exit code of `tournament compare`: no verdict after the last game."""
USER_ERROR = 2
"""Exit code: bad input. The command has played no game, except in rare cases: for example, another referee took over the
league during a tournament."""
INTERRUPTED = 130
"""Exit code: interrupted by a signal. A tournament keeps its stored games and can be resumed. Commands such as `play`, `serve`
and `worker` cannot be resumed."""


def parse_path(text: str) -> Path:
    """Return the path that was typed. Raises BadParameter if it is empty, because `Path("")` is the current folder."""
    if not text:
        raise typer.BadParameter("the path is missing")
    return Path(text)


LeagueOption = Annotated[
    Path,
    typer.Option(
        "--league",
        parser=parse_path,
        envvar="REFEREE_LEAGUE",
        help="The folder of the league, with its games and bots.",
    ),
]
DB_VARIABLE = "REFEREE_DB"
DbOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar=DB_VARIABLE,
        metavar="URL",
        help="The database of the league, if it is not the file in the league folder:"
        " postgresql+psycopg:///DB or sqlite:///FILE.",
    ),
]
WideOption = Annotated[
    bool,
    typer.Option(
        "--wide",
        help="Show all columns. By default, columns that do not fit into the terminal are hidden. A file or a pipe gets all.",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Show only these columns, in this order, such as bot,mu,sigma. Their names are the titles in the table, or the"
        " keys of the JSON. A column with an interval has three keys; each of them selects the whole column.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FinalJsonOption = Annotated[
    bool,
    typer.Option(
        "--json",
        help="At the end, print the tables as JSON. Everything else goes to standard error.",
    ),
]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
TournamentArgument = Annotated[str, typer.Argument(help="The name of the tournament.")]

TournamentOption = Annotated[
    str | None,
    typer.Option("--tournament", help="Only games of this tournament."),
]
PlayedRulesetOption = Annotated[
    str, typer.Option("--ruleset", help=f"One of {', '.join(RULESETS)}.")
]
PlayedSeatsOption = Annotated[int, typer.Option("--seats", help="The number of bots at a table.")]
RulesetOption = Annotated[str | None, typer.Option("--ruleset", help="Only games of this ruleset.")]
SeatsOption = Annotated[
    int | None, typer.Option("--seats", min=2, max=5, help="Only games with this number of seats.")
]
ConfidenceOption = Annotated[
    float | None,
    typer.Option(
        "--confidence",
        min=MIN_CONFIDENCE,
        max=MAX_CONFIDENCE,
        help="The probability that all verdicts are right."
        f" Default: {CONFIDENCE}, or that of the tournament's `until`.",
    ),
]
MarginOption = Annotated[
    float | None,
    typer.Option(
        "--margin",
        min=0,
        max=MAX_MARGIN,
        help="Two bots are equal if their fits surely differ by less than this."
        f" Default: {MARGIN:g}, or that of the tournament's `until`.",
    ),
]

LogsOption = Annotated[
    Path | None,
    typer.Option(
        "--logs",
        parser=parse_path,
        metavar="DIR",
        help="Write what the bots print into this folder: a file for each game and bot.",
    ),
]
MessagesOption = Annotated[
    bool,
    typer.Option(
        "--messages", help="With --logs: write all messages of the protocol too, as JSON lines."
    ),
]


def is_move_number(text: str) -> bool:
    """Return whether a text is a number of moves, as in `GAME:MOVE`."""
    return text.isascii() and text.isdecimal() and len(text) < 10  # noqa: PLR2004 - no game has a billion moves


def choose_logs(folder: Path | None, *, messages: bool) -> LogSettings | None:
    """Return the settings for the options `--logs` and `--messages`; None without logs. Create the folder.

    Raises UserError if the folder cannot be created, or if `messages` is true and `folder` is None.
    """
    from referee.bots.logs import LogSettings  # noqa: PLC0415 - loads gRPC

    if folder is None:
        if messages:
            raise UserError("--messages: needs --logs DIR, the folder for the messages")
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--logs: {folder}: {error.strerror}") from error
    return LogSettings(folder.resolve(), messages)


DEFAULT_LEAGUE = Path("league")
