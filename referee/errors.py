"""Whose fault it is, as a type.

    RefereeError
    ├── UserError            the user's: bad input; a message, exit code 2, nothing changed
    │   └── NotFoundError    an id or name that the league does not know
    ├── StoreError           the disk's or the database's: what was to be written is not
    ├── BotFault             a bot's: recorded and charged
    │   ├── Strike           one decision is lost
    │   └── Forfeit          the game is lost
    └── VoidGame             the referee's or the machine's: charged to nobody, played again

Anything else that is raised is a bug of the referee.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Cause(Enum):
    """What a bot did wrong. The names are those of the causes in `proto/README.md`, section 12."""

    NO_START = "no_start"
    """The program is missing or cannot be executed."""
    EXITED_EARLY = "exited_early"
    """The process ended before its hello."""
    CONNECT_TIMEOUT = "connect_timeout"
    """No hello within the start-up limit."""
    HANDSHAKE = "handshake"
    """The hello was wrong: protocol version, token, or no hello at all."""
    IMPERSONATION = "impersonation"
    """It used another bot's token."""
    GAME_START_TIMEOUT = "game_start_timeout"
    """No ready within the game-start limit."""
    CRASH = "crash"
    """The process died or closed its stream in the middle of a game."""
    TIMEOUT = "timeout"
    """No reply within the decision limit."""
    OUT_OF_TIME = "out_of_time"
    """The bank is used up."""
    ILLEGAL = "illegal"
    """The reply names an action that is not legal."""
    MALFORMED = "malformed"
    """The reply cannot be understood."""
    TOO_LARGE = "too_large"
    """A message over the size limit."""
    FLOOD = "flood"
    """More messages, or streams, than anybody asked for."""
    OOM = "oom"
    """Its processes took more memory than their limit."""
    TOO_MANY_PROCESSES = "too_many_processes"
    """It ran more processes at once than its limit."""
    SCRATCH_FULL = "scratch_full"
    """More lay in its scratch folder than its limit."""
    STRIKES = "strikes"
    """`max_strikes` decisions were lost."""
    SUSPENDED = "suspended"
    """The tournament suspended the bot after too many forfeits; it was not started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of a fault."""

    detail: str
    """One sentence for people."""
    exit_code: int | None = None
    signal: str | None = None
    """Name of the signal that ended the process, such as `SIGSEGV`."""
    elapsed_us: int = 0
    """Microseconds since the bot was asked (or started)."""
    stderr_tail: str = ""
    """The end of what the process wrote to standard error."""


class RefereeError(Exception):
    """Root of all errors the project raises on purpose."""


class UserError(RefereeError):
    """Bad input. The message is one line that names file, key and reason."""

    output: str = ""
    """What a failed program printed, in several lines, to be shown before the message."""


class NotFoundError(UserError):
    """An id or a name that is not known."""


class StoreError(RefereeError):
    """Something could not be written: a full disk, a lock, a read-only file. Nothing is half done."""


class BotFault(RefereeError):
    """A bot's fault, charged to it."""

    def __init__(self, cause: Cause, evidence: Evidence) -> None:
        super().__init__(f"{cause.value}: {evidence.detail}")
        self.cause = cause
        self.evidence = evidence


class Strike(BotFault):
    """One decision is lost; the stand-in decides it."""


class Forfeit(BotFault):
    """The game is lost; the stand-in plays the seat to the end."""


class VoidGame(RefereeError):
    """The game cannot be finished through nobody's fault at the table; it is played again."""
