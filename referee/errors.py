"""Define the errors that the project raises on purpose. The type of an error says who caused it.

    RefereeError
    ├── UserError            the user gave bad input: one message, exit code 2, nothing has changed
    │   └── NotFoundError    the league does not have this id or name
    ├── StoreError           the disk or the database failed: one message, exit code 1
    ├── BotFault             a bot did something wrong: recorded and charged to the bot
    │   ├── Strike           the bot loses one decision
    │   └── Forfeit          the bot loses the game
    └── VoidGame             the referee or the machine failed: nobody is charged, the game is played again
        └── Shortage         the machine was too slow, or lacked a resource: a later attempt may succeed

Any other exception is a bug of the referee.
"""

from __future__ import annotations

import errno
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT}
"""The error numbers which say that the machine lacks a resource."""
_PATH_ERRORS = {
    errno.EACCES,
    errno.EEXIST,
    errno.EINVAL,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.ENOTEMPTY,
    errno.EPERM,
    errno.EROFS,
}
"""The error numbers which say that the path of a file is wrong, so that the user may succeed with another path."""
_NO_THREAD = "can't start new thread"
"""The message of Python's RuntimeError if the machine lacks threads."""
_MAX_WORD = 100
"""Only this many characters of a word are compared with known names, because the time of a comparison grows with the
length of the word."""
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories of characters that a terminal executes or hides."""
_UNSEEN_OTHERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
"""Matches the hidden characters that are in none of these categories. These are the characters with Unicode's property
Default_Ignorable_Code_Point, and U+2800, the Braille pattern without dots."""


class Cause(Enum):
    """The kind of a fault. Section 12 of `proto/README.md` explains each kind to bot authors."""

    NO_START = "no_start"
    """The program is missing or cannot be executed."""
    EXITED_EARLY = "exited_early"
    """The process ended before its hello."""
    CONNECT_TIMEOUT = "connect_timeout"
    """No hello arrived within the start-up limit."""
    HANDSHAKE = "handshake"
    """The stream did not begin with a hello, or the hello had a wrong protocol version or token."""
    IMPERSONATION = "impersonation"
    """The bot used the token of another bot."""
    GAME_START_TIMEOUT = "game_start_timeout"
    """The bot did not say within the game-start limit that it is ready."""
    CRASH = "crash"
    """After its hello, the process ended, closed its stream, or did not read its stream. Or it replied to none of several
    messages in a row while it played several games."""
    TIMEOUT = "timeout"
    """No reply arrived within the decision limit."""
    OUT_OF_TIME = "out_of_time"
    """The bank is used up."""
    ILLEGAL = "illegal"
    """The reply names an action that is not legal."""
    MALFORMED = "malformed"
    """The reply cannot be understood."""
    TOO_LARGE = "too_large"
    """A message was larger than the size limit."""
    FLOOD = "flood"
    """The bot sent too many messages without a request, opened too many streams or connections, or kept gRPC busy
    with other HTTP/2 frames."""
    OOM = "oom"
    """The bot's processes used more memory than the limit allows."""
    TOO_MANY_PROCESSES = "too_many_processes"
    """The bot ran more processes at the same time than the limit allows."""
    SCRATCH_FULL = "scratch_full"
    """The bot's scratch folder had more data than the limit allows."""
    STRIKES = "strikes"
    """The bot lost `max_strikes` decisions."""
    SUSPENDED = "suspended"
    """The tournament had suspended the bot after too many forfeits in a row and did not start it."""


PROCESS_CAUSES = frozenset(
    {
        Cause.IMPERSONATION,
        Cause.CRASH,
        Cause.TOO_LARGE,
        Cause.FLOOD,
        Cause.OOM,
        Cause.TOO_MANY_PROCESSES,
        Cause.SCRATCH_FULL,
    }
)
"""A fault of one of these causes ends the process of the bot, so the process can finish none of its games."""
STRIKE_CAUSES = frozenset({Cause.TIMEOUT, Cause.ILLEGAL, Cause.MALFORMED})
"""In a record, a fault of one of these causes is a strike, and a fault of any other cause is a forfeit."""
START_CAUSES = frozenset(
    {
        Cause.NO_START,
        Cause.EXITED_EARLY,
        Cause.CONNECT_TIMEOUT,
        Cause.GAME_START_TIMEOUT,
        Cause.SUSPENDED,
    }
)
"""A fault of one of these causes is charged only before the first request of a game.

`HANDSHAKE` can also be charged later, so it is missing: while the referee writes the goodbye after an invalid hello,
the bot can send a valid hello in another stream.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known about a fault."""

    detail: str
    """One sentence without a full stop that explains the fault to people, such as `the bot exited with 1`."""
    exit_code: int | None = None
    """The exit code of the bot's process; None if the process did not exit by itself."""
    signal: str | None = None
    """The name of the signal that ended the process, such as `SIGSEGV`; None if no signal did."""
    elapsed_us: int = 0
    """Microseconds that the bot took until the fault: from the request, from the message that starts the game, or from the
    start of the program. 0 if the bot had nothing to do. For a batch of several requests, this is only the part of the
    time that counts for the request; `wall_us` is the whole time."""
    wall_us: int = 0
    """See `Move.wall_us`."""
    batch_size: int = 1
    """See `Move.batch_size`."""
    stderr_tail: str = ""
    """The last part of what the process wrote to standard error."""


class RefereeError(Exception):
    """The base class of all errors that the project raises on purpose."""


class UserError(RefereeError):
    """The user's input is wrong.

    Each argument is one line of the message. For a file with several mistakes, there is a line for each mistake. Such a
    line names the file, the key and the reason. The key is left out if the mistake belongs to no key.
    """

    output: str = ""
    """The output of a program that failed, such as a build. The CLI prints it before the message."""

    def __str__(self) -> str:
        """Return the lines of the message."""
        return "\n".join(self.args)


class NotFoundError(UserError):
    """The league has no bot, tournament or game with the given name or id."""


class DamagedRecordError(UserError):
    """The stored record of a game cannot be read, or the rules do not allow its moves."""


class StoreError(RefereeError):
    """The database or an output file, such as a report, could not be read or written.

    Reasons are, for example, a full disk, a lock, or a database server that has stopped.

    A failed write has stored nothing, with one exception: if the connection to a server was lost during the commit, the server
    may have stored everything.
    """


class BotFault(RefereeError):
    """A fault of a bot, which is charged to that bot."""

    def __init__(self, cause: Cause, evidence: Evidence) -> None:
        super().__init__(f"{cause.value}: {evidence.detail}")
        self.cause = cause
        self.evidence = evidence


class Strike(BotFault):
    """A fault that costs the bot one decision, which the stand-in takes."""


class Forfeit(BotFault):
    """A fault that costs the bot the game. The stand-in decides for its seat until the game ends."""


class VoidGame(RefereeError):
    """The referee or the machine failed, so the game cannot be finished. The game is played again."""


class Shortage(VoidGame):
    """The machine was too slow, or lacked a resource such as file descriptors or memory."""


def void_game(text: str) -> VoidGame:
    """Return the error with the message `text`: a Shortage if the text says that the machine lacks a resource, else a VoidGame.

    The text says so if it contains the system's message for one of `SHORTAGES`. The error number itself is not used,
    because bubblewrap and the shim report an error only as a text.
    """
    is_shortage = any(os.strerror(number) in text for number in SHORTAGES)
    return Shortage(text) if is_shortage else VoidGame(text)


def write_error(text: str, error: OSError) -> UserError | StoreError:
    """Return the error for a file that cannot be written.

    It is a UserError if the path is wrong. Otherwise, for example if the disk is full, it is a StoreError. The
    message is `text`, followed by the reason.
    """
    kind = UserError if error.errno in _PATH_ERRORS else StoreError
    return kind(f"{text}: {error.strerror}")


def describe_shortage(error: Exception) -> str | None:
    """Return a text about the resource that the machine lacks; None if `error` has another reason."""
    if isinstance(error, OSError) and error.errno in SHORTAGES:
        return os.strerror(error.errno)
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return "no thread can be started"
    return None


@contextmanager
def copy_errors(target: Path, source: Path | None = None) -> Iterator[None]:
    """Raise a Shortage or a UserError if a copy in the `with` block fails with an OSError.

    If the machine lacks a resource, such as space on the disk of the copy, raise a Shortage that names `target`.
    Otherwise raise a UserError. Without `source`, this error names `target`. With `source`, it names the file that the
    OSError names, or `source` if the OSError names no file.
    """
    try:
        yield
    except OSError as error:
        if (shortage := describe_shortage(error)) is not None:
            raise Shortage(f"{target}: {shortage}") from error
        place = target if source is None else error.filename or source
        raise UserError(f"{place}: {error.strerror or error}") from error


def find_similar(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a mistyped one; None if no known name is similar."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    return next(iter(get_close_matches(word[:_MAX_WORD].lower(), known, n=1)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'NAME'?)` for the end of a message, or an empty text if `find_similar` finds no similar name."""
    similar = find_similar(word, known)
    return "" if similar is None else f" (did you mean {similar!r}?)"


def is_unseen(char: str) -> bool:
    """Return True if a terminal executes or hides a character.

    Spaces do not count. The only white space that counts is control characters, such as tabs, and the separators U+2028
    and U+2029.
    """
    return unicodedata.category(char) in _UNSEEN or _UNSEEN_OTHERS.match(char) is not None


def cut_middle(text: str, most: int) -> str:
    """Return `text`, or only its beginning and its end if it is longer than `most` characters.

    A shortened text has about `most` characters. The end is kept, because the reason of an error can be there.
    """
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def cut_lines(lines: Sequence[str], first: int, last: int) -> list[str]:
    """Return the first and the last lines of an output. If lines are left out, a line in between says how many."""
    left_out = len(lines) - first - last
    if left_out <= 0:
        return list(lines)
    return [*lines[:first], f"… {count_text(left_out, 'line')} left out …", *lines[-last:]]


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 game`, `3 games` or `3 matches`."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"
