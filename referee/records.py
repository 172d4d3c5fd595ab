"""What is kept of a game: frozen values, no behaviour but small derivations.

A record holds the rules, the deck and every action, so that replaying it gives its result again
(`referee.match.replay`). Reports, ratings and the store work on these types.

The seam between a game and whoever decides in it: one method.

`match` plays whole games over this seam; `bots` puts a process behind it, tests put a function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from referee.clocks import Clocks, DecisionTime
from referee.errors import Cause, Evidence
from referee.rules.actions import Action, Decision
from referee.rules.events import Event, Termination
from referee.rules.ruleset import Ruleset
from referee.rules.scoring import competition_ranks
from referee.rules.view import View


@dataclass(frozen=True, slots=True)
class BotId:
    """A bot as records name it: its manifest's name and version."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the id that `text`, a `name@version`, stands for."""
        name, _, version = text.partition("@")
        return cls(name, version)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledGame:
    """A game of a tournament's schedule. All numbers count from 0, over the whole tournament."""

    index: int
    """Its position in the schedule."""
    stage: int
    """The stage of the tournament, which tells the ruleset."""
    round: int
    """Of its stage."""
    match: int
    """Also numbers the deal."""
    seating: int
    """Which of the cyclic seatings of the match: by how many places the bots have moved."""
    lane: int
    bots: tuple[str, ...]
    """`name@version` of each seat; seat 0, which starts, first, then clockwise."""
    deal_id: str
    """`NAME-deal-N`, N from 1: shared by the games of the match."""
    game_id: str
    """`NAME-N`, N from 1."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a bot's process took of the machine, with everything that it started."""

    cpu_s: float
    """Seconds of CPU time."""
    peak_memory_kib: int
    """The most memory that was seen in use at once since the process was started."""


@dataclass(slots=True)
class Move:
    """One decision and what was done."""

    seat: int
    action: Action
    elapsed_us: int
    """From the request's write to the reply's arrival or the fault, the limit at most; 0 where the
    stand-in decided unasked."""
    lag_us: int
    """How long after the limit the referee itself took to see the reply, or to stop waiting for it."""
    stand_in: bool
    """The stand-in chose this action."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A bot's fault and what it cost."""

    seat: int
    cause: Cause
    forfeit: bool
    """True: it forfeited the game. False: a strike."""
    move: int
    """How many moves the game had when it happened."""
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class ChargedFault:
    """A fault together with the game and the bot that it is charged to."""

    game_id: str
    bot: str
    """`name@version`."""
    fault: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class GameRecord:
    """Everything that is kept of a game."""

    game_id: str
    ruleset: Ruleset
    seating: tuple[BotId, ...]
    """Seat 0 first."""
    deck: tuple[int, ...]
    """In drawing order, dealt as ruling R14 has it."""
    moves: tuple[Move, ...]
    faults: tuple[Fault, ...]
    termination: Termination
    """Why the game ended."""
    scores: tuple[int, ...]
    """Points of each seat by the rules."""
    ranks: tuple[int, ...]
    """Final rank of each seat, as in `final_ranks`."""
    forfeited: tuple[int, ...]
    """The seats that forfeited, ascending."""
    usage: tuple[Usage | None, ...]
    """Of each seat, its CPU time that of this game; information only. None where there was no process
    to be measured."""
    clocks: Clocks
    max_strikes: int
    """The strike that forfeited the game."""
    dropped: tuple[int, ...] = ()
    """How many replies and hellos of each seat's bot came too late, twice or unasked while the game was
    played, and were dropped; empty where none were."""
    isolation: str
    """What the bots ran under: the rung of the isolation ladder, and the protections that were not on."""
    started_at_us: int
    """Microseconds since 1970-01-01 UTC; information only."""
    duration_us: int

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions alone, in order."""
        return tuple(move.action for move in self.moves)

    @property
    def winners(self) -> tuple[int, ...]:
        """The seats of rank 1 that did not forfeit."""
        return tuple(
            seat for seat, rank in enumerate(self.ranks) if rank == 1 and seat not in self.forfeited
        )

    @property
    def charged_faults(self) -> tuple[ChargedFault, ...]:
        """The faults with the bots that they are charged to, in order."""
        return tuple(
            ChargedFault(self.game_id, str(self.seating[fault.seat]), fault)
            for fault in self.faults
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GameResult:
    """The result of a game, without its moves: the input of ratings and reports.

    Where there are many thousands, use `referee.result_columns.ResultColumns`.
    """

    game_id: str
    tournament: str
    """Name of the tournament; empty for a game outside tournaments."""
    index: int
    """Position in the schedule of the tournament, from 0."""
    ruleset: str
    """Name of the ruleset."""
    round: int
    """Round number inside the stage, from 0."""
    match: int
    """Number of the match, unique within the tournament. A game outside tournaments has its own."""
    bots: tuple[str, ...]
    """`name@version` of each seat, seat 0 first."""
    scores: tuple[int, ...]
    """Points of each seat."""
    ranks: tuple[int, ...]
    """Final rank of each seat, as in `final_ranks`."""
    forfeited: tuple[int, ...]
    """The seats that forfeited, ascending."""

    @classmethod
    def from_record(cls, tournament: str, game: ScheduledGame, record: GameRecord) -> Self:
        """Return the result of a game that `tournament` scheduled, from its record."""
        return cls(
            game_id=game.game_id,
            tournament=tournament,
            index=game.index,
            ruleset=record.ruleset.name,
            round=game.round,
            match=game.match,
            bots=tuple(map(str, record.seating)),
            scores=record.scores,
            ranks=record.ranks,
            forfeited=record.forfeited,
        )

    @property
    def match_key(self) -> tuple[str, int]:
        """Tournament and match: equal for the games of one match, different for all others."""
        return self.tournament, self.match


def final_ranks(rule_ranks: Sequence[int], faults: Sequence[Fault]) -> tuple[int, ...]:
    """Return the final rank of each seat, from the ranks by the rules and the faults of the game.

    Equal ranks are shared, as in 1-2-2-4. Seats that forfeited rank behind all others, and an earlier
    forfeit ranks behind a later one. Forfeits at the same move are tied.
    """
    forfeited_at = {fault.seat: fault.move for fault in faults if fault.forfeit}
    return competition_ranks(
        [
            (0, forfeited_at[seat]) if seat in forfeited_at else (1, -rank)
            for seat, rank in enumerate(rule_ranks)
        ]
    )


def forfeited_seats(faults: Sequence[Fault]) -> tuple[int, ...]:
    """Return the seats that forfeited, ascending."""
    return tuple(sorted(fault.seat for fault in faults if fault.forfeit))


@dataclass(slots=True)
class Request:
    """One decision put to one seat. All of it is already redacted for that seat."""

    number: int
    """Number of the decision in its game, from 1."""
    view: View
    decision: Decision
    events: tuple[Event, ...]
    """What happened since this seat was last asked in this game."""
    time: DecisionTime


@dataclass(slots=True)
class Reply:
    """What a player decided."""

    action: Action
    """May be illegal; the match checks it."""
    elapsed_us: int
    """Microseconds from the request's write to the reply's arrival, the limit at most."""
    lag_us: int
    """How long after the limit the referee itself took to see the reply."""


class Player(Protocol):
    """Decides for one seat of one game."""

    async def decide(self, request: Request) -> Reply:
        """Answer one decision.

        Raises `Strike` when this decision is lost and `Forfeit` when the whole game is; both carry
        the time that had passed. Returns or raises within `request.time` and a fixed grace period.
        """
        ...
