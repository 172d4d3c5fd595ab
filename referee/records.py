"""Define the values that all parts share: bots, games, their records and results, requests and replies.

A `GameRecord` holds the rules, the deck and every action, so `referee.match.replay` can play the game again
with the same result. A `GameResult` holds only the result. `Player` is the interface between a game and the
bot on a seat: the package `bots` implements `Player` with a process, `tournament.person` with a person.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

from referee.clocks import Clocks, DecisionTime
from referee.errors import PROCESS_CAUSES, Cause, Evidence
from referee.rules.actions import Action, Decision
from referee.rules.events import Event, Termination, View
from referee.rules.game import competition_ranks
from referee.rules.ruleset import Ruleset


@dataclass(frozen=True, slots=True)
class BotId:
    """The name and version of a bot."""

    name: str
    """The name in its manifest."""
    version: str
    """The version in the league, such as `1.0+2`; for a bot outside a league, the version in its manifest."""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the id from `text` in the form `name@version`. Without `@`, the version is empty."""
        name, _, version = text.partition("@")
        return cls(name, version)


def name_seats(seating: Sequence[BotId]) -> tuple[str, ...]:
    """Return for each seat the name of its bot, with a number if it is not the bot's first seat.

    For example, the second seat of the bot `greedy` is called `greedy#2`, and its third seat `greedy#3`.
    """
    numbers = [seating[: seat + 1].count(bot) for seat, bot in enumerate(seating)]
    return tuple(
        bot.name if number == 1 else f"{bot.name}#{number}"
        for bot, number in zip(seating, numbers, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledGame:
    """A game in the schedule of a tournament. Rounds and matches count from 1, all other integer fields from 0."""

    index: int
    """Position in the schedule."""
    stage: int
    """Number of the stage. The ruleset depends on the stage."""
    round: int
    """Round number inside the stage."""
    match: int
    """Number of the match in the tournament."""
    seating: int
    """Number of the cyclic seating. In a match of k bots, seat s has the bot at position (seating + s) mod k of `Match.order`."""
    lane: int
    """Number of the lane that plays the game."""
    bots: tuple[str, ...]
    """`name@version` of each seat, clockwise from seat 0, which starts the game."""
    deal_id: str
    """The id from which the deck is derived; see `Stage.deal_id`. If the stage has fresh deals, each game has an id of its
    own. If not, all games of a match have the same id."""
    game_id: str
    """`TOURNAMENT-N`: the name of the tournament and the number of the game, from 1."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The CPU time and memory that the process tree of a bot used."""

    cpu_s: float
    """Seconds of CPU time."""
    peak_memory_kib: int
    """The largest memory use, in KiB, since the start of the bot's process."""


@dataclass(slots=True)
class Move:
    """One decision of a game and the action taken."""

    seat: int
    action: Action
    elapsed_us: int
    """The charged time in microseconds, from the start of the request's clock to the reply or the fault. It is at most the
    time limit of the decision. In a batch it is the decision's share of the time of the batch. 0 if the bot got no request."""
    lag_us: int
    """Microseconds from the time limit until the referee saw the reply or stopped waiting for it; 0 if
    the limit was not exceeded."""
    stand_in: bool
    """True if the stand-in chose the action."""
    wall_us: int = 0
    """Microseconds from sending a batch of several requests to its last reply or timeout; 0 for a single request."""
    batch_size: int = 1
    """Number of requests in the message with which the bot got the request of this decision."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a bot in a game."""

    seat: int
    cause: Cause
    forfeit: bool
    """True if the fault cost the game, False for a strike."""
    move: int
    """Number of moves in the game before the fault."""
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class ChargedFault:
    """A fault, with its game and the bot that is charged."""

    game_id: str
    bot: str
    """`name@version`."""
    fault: Fault


def host_name() -> str:
    """Return the name of this machine's host. If it is not UTF-8, a `?` replaces each wrong byte, so that it can be stored and sent."""
    return socket.gethostname().encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine that played a game, as its worker measured it.

    If the tournament scales its clocks, `verify` computes the expected limits from `speed`. Everything else is for information only.
    """

    host: str
    """The name of the host; see `host_name`."""
    cpu: str
    """The model of the CPU."""
    speed: int
    """Decisions of the rules engine per second of CPU time on one core, in a fixed set of games."""
    noise: float | None
    """How much of the worker's cores other programs and virtual machines used, as a share from 0 to 1. It is the newest
    measurement; see `MachineMonitor.measure`. None if no measurement has succeeded yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameRecord:
    """Everything about one finished game."""

    game_id: str
    ruleset: Ruleset
    seating: tuple[BotId, ...]
    """The bot of each seat, seat 0 first. A bot may have several seats."""
    deck: tuple[int, ...]
    """The cards in drawing order; ruling R14 in `referee/rules/README.md` says how they are dealt."""
    moves: tuple[Move, ...]
    faults: tuple[Fault, ...]
    termination: Termination
    """Why the game ended."""
    scores: tuple[int, ...]
    """Points of each seat by the rules; forfeits do not change them."""
    ranks: tuple[int, ...]
    """Final rank of each seat, as in `final_ranks`."""
    forfeited: tuple[int, ...]
    """The seats that forfeited, ascending."""
    usage: tuple[Usage | None, ...]
    """The usage of the bot of each seat in this game, for information only; None for a bot without a process."""
    clocks: Clocks
    max_strikes: int
    """Number of strikes at which a seat forfeits the game."""
    dropped: tuple[int, ...] = ()
    """For each seat, how many replies, readies and hellos of the bot the referee dropped, because they came late, twice or
    without a request. Each of them counts in all games that the bot's process played at that time. The tuple is empty if
    nothing was dropped in the game."""
    isolation: str
    """The isolation of the bots: the rung, and the protections that were off."""
    started_at_us: int
    """Start of the game in microseconds since 1970-01-01 UTC, for information only."""
    duration_us: int
    """Microseconds from the start to the end of the game, without the time in which the game waited for other games."""
    machine: Machine | None = None
    """The machine that played the game; None outside of tournaments."""

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each seat, as in `name_seats`."""
        return name_seats(self.seating)

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions of all moves, in the order of the moves."""
        return tuple(move.action for move in self.moves)

    @property
    def winners(self) -> tuple[int, ...]:
        """The seats of rank 1 that did not forfeit."""
        return tuple(
            seat for seat, rank in enumerate(self.ranks) if rank == 1 and seat not in self.forfeited
        )

    @property
    def failed_processes(self) -> frozenset[str]:
        """The bots (`name@version`) whose process failed in the game."""
        return frozenset(
            str(self.seating[fault.seat]) for fault in self.faults if fault.cause in PROCESS_CAUSES
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GameResult:
    """The result of a game, without its moves: the input of ratings and reports.

    For thousands of games use `referee.result_columns.ResultColumns`, which is faster.
    """

    game_id: str
    tournament: str
    """Name of the tournament; empty for a game outside tournaments."""
    index: int
    """Position in the schedule of the tournament, from 0; 0 for a game outside tournaments."""
    ruleset: str
    """Name of the ruleset."""
    round: int
    """Round number inside the stage, from 1; 0 for a game outside tournaments."""
    match: int
    """Number of the match in the tournament, from 1. Each game outside tournaments is a match of its own."""
    bots: tuple[str, ...]
    """`name@version` of each seat, seat 0 first."""
    scores: tuple[int, ...]
    """Points of each seat by the rules; forfeits do not change them."""
    ranks: tuple[int, ...]
    """Final rank of each seat, as in `final_ranks`."""
    forfeited: tuple[int, ...]
    """The seats that forfeited, ascending."""

    @classmethod
    def from_record(cls, tournament: str, game: ScheduledGame, record: GameRecord) -> Self:
        """Return the result of `game`, which belongs to the tournament `tournament`, from its record."""
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
    def points(self) -> tuple[int, ...]:
        """Like `scores`, but a seat that forfeited gets the lowest score of the game, however well its stand-in played."""
        lowest = min(self.scores)
        return tuple(
            lowest if seat in self.forfeited else score for seat, score in enumerate(self.scores)
        )

    @property
    def match_key(self) -> tuple[str, int]:
        """The tournament and the match number, which together identify the match of the game."""
        return self.tournament, self.match


def final_ranks(rule_ranks: Sequence[int], faults: Sequence[Fault]) -> tuple[int, ...]:
    """Return the final rank of each seat, from the ranks by the rules and the faults of the game.

    Seats that forfeited rank behind all other seats. Of two seats that forfeited, the seat that forfeited
    later ranks better. Seats that forfeited at the same move share a rank. Ranks are numbered as in 1-2-2-4.
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
    """A decision that a seat must make, with everything that the seat may know."""

    number: int
    """Number of the decision in the game, from 1."""
    view: View
    decision: Decision
    events: tuple[Event, ...]
    """The redacted events since the seat's previous request."""
    time: DecisionTime
    """The time for the decision."""


@dataclass(slots=True)
class Reply:
    """A player's action, with its time."""

    action: Action
    """The action. It may be illegal; `play_game` checks it."""
    elapsed_us: int
    """See `Move.elapsed_us`."""
    lag_us: int
    """Microseconds from the time limit until the referee saw the reply; 0 if it saw the reply in time."""
    wall_us: int = 0
    """See `Move.wall_us`."""
    batch_size: int = 1
    """See `Move.batch_size`."""


class Player(Protocol):
    """Make the decisions of one seat of one game."""

    async def decide(self, request: Request) -> Reply:
        """Return the player's reply to a request.

        The player must enforce the time limit of the request, because the caller does not. For bots, `bots/clock.py` does it.

        Raises `Strike` if the player loses this decision, and `Forfeit` if the player loses the game. In the
        evidence of the error, `elapsed_us` is the time from the request to the fault.
        """
        ...


class Meetings(NamedTuple):
    """What the games of a ruleset tell about a pair of bots."""

    first: int
    """A bot, as a position in a list of bots."""
    second: int
    """The other bot, which comes later in the list."""
    compared: float
    """Sum of the weights of the games in which both bots played. A game with k seats has the weight 2 / k."""
    better: float
    """The same sum, but only for games in which the first bot ranked higher. A tie counts with half of the weight."""
