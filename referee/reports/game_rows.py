"""Make rows about games, and the JSON value of a game record.

`referee/ratings/README.md` describes the keys of the JSON value. You may add keys. If you remove a key or change
its meaning, change `FORMAT` too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Annotated, Any

from referee.clocks import SECOND_US, Clocks
from referee.records import Fault, GameRecord, GameResult, Machine, Move, Usage
from referee.reports.formats import NOTHING, Column, duration, moment, row_from
from referee.rules.actions import Action, Choice, DrawDisplay, Play
from referee.rules.ruleset import Ruleset, ruleset_text


def _list_seats(seats: tuple[int, ...]) -> str:
    return ", ".join(f"seat {seat}" for seat in seats) or NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class GameRow:
    """A game in a list of games."""

    game_id: Annotated[str, Column("game id", wrap=True)]
    ruleset: Annotated[str, Column("ruleset", drop=3)]
    round: Annotated[int | None, Column("round", right=True, drop=1)]
    """None outside of tournaments."""
    match: Annotated[tuple[str, int] | None, Column("match", right=True, drop=2)]
    """Tournament and number of the match; None outside of tournaments."""
    bots: Annotated[tuple[str, ...], Column("bots", wrap=True)]
    """`name@version` of each seat, seat 0 first. Scores and ranks are in seat order too."""
    scores: Annotated[tuple[int, ...], Column("scores", wrap=True)]
    ranks: Annotated[tuple[int, ...], Column("ranks", wrap=True)]
    forfeited: Annotated[tuple[int, ...], Column("forfeited", wrap=True, show=_list_seats)]
    """The seats that forfeited the game."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameHead:
    """The values that belong to a game as a whole, not to a seat."""

    game_id: Annotated[str, Column("game id")]
    ruleset: Annotated[str, Column("ruleset")]
    """The name, with the changed options."""
    termination: Annotated[str, Column("termination")]
    decisions: Annotated[int, Column("decisions")]
    duration_us: Annotated[int, Column("duration", show=duration)]
    started_at_us: Annotated[int, Column("started", show=moment)]
    clocks: Annotated[str, Column("clocks")]
    isolation: Annotated[str, Column("isolation")]
    machine: Annotated[str | None, Column("machine")]
    """The host, the CPU, the speed and the noise, as text; None for a game outside of tournaments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatRow:
    """A seat of a game."""

    seat: Annotated[int, Column("seat", right=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    version: Annotated[str, Column("version", wrap=True, drop=1)]
    score: Annotated[int, Column("score", right=True)]
    rank: Annotated[int, Column("rank", right=True)]
    strikes: Annotated[int, Column("strikes", right=True)]
    forfeited: Annotated[bool, Column("forfeited")]
    decisions: Annotated[int, Column("decisions", right=True, drop=3)]
    """Number of decisions that the bot made itself."""
    stood_in: Annotated[int, Column("stood in", right=True, drop=2)]
    """Number of decisions that the stand-in made for the bot."""
    dropped: Annotated[int, Column("dropped", right=True, drop=2)]
    """See `GameRecord.dropped`."""
    mean_time_us: Annotated[int | None, Column("mean time", right=True, show=duration)]
    """Mean time of the decisions that the bot made itself; None if it made none."""
    max_time_us: Annotated[int | None, Column("max time", right=True, show=duration)]
    lag_us: Annotated[int, Column("lag", right=True, show=duration, drop=4)]
    """The longest lag of a decision, in microseconds. Lag is the referee's own delay after a time limit, or the
    time by which a person has exceeded the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeRow:
    """A fault in a game."""

    move: Annotated[int, Column("move", right=True)]
    """Number of moves in the game before the fault."""
    seat: Annotated[int, Column("seat", right=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    cause: Annotated[str, Column("cause")]
    forfeit: Annotated[bool, Column("forfeit")]
    detail: Annotated[str, Column("detail", wrap=True)]
    exit_code: Annotated[int | None, Column("exit code", right=True, drop=2)]
    signal: Annotated[str | None, Column("signal", drop=1)]
    elapsed_us: Annotated[int, Column("elapsed", right=True, show=duration, drop=3)]
    """See `Evidence.elapsed_us`."""
    stderr_tail: Annotated[str, Column("stderr tail", data_only=True)]
    """The last output of the process on standard error."""


def game_rows(games: Iterable[GameResult]) -> tuple[GameRow, ...]:
    """Return a row for each game, in the given order."""
    return tuple(
        row_from(
            GameRow,
            game,
            round=game.round if game.tournament else None,
            match=game.match_key if game.tournament else None,
        )
        for game in games
    )


def game_head(record: GameRecord) -> GameHead:
    """Return the values that belong to a game as a whole."""
    return row_from(
        GameHead,
        record,
        ruleset=ruleset_text(record.ruleset),
        termination=record.termination.value,
        decisions=len(record.moves),
        clocks=_clocks_text(record.clocks),
        machine=None if record.machine is None else _machine_text(record.machine),
    )


def seat_rows(record: GameRecord) -> tuple[SeatRow, ...]:
    """Return a row for each seat, seat 0 first."""
    return tuple(_seat_row(record, seat) for seat in range(len(record.seating)))


def charge_rows(record: GameRecord) -> tuple[ChargeRow, ...]:
    """Return a row for each fault, in the order of the record."""
    return tuple(
        row_from(
            ChargeRow,
            fault.evidence,
            move=fault.move,
            seat=fault.seat,
            bot=record.names[fault.seat],
            cause=fault.cause.value,
            forfeit=fault.forfeit,
        )
        for fault in record.faults
    )


def _seat_row(record: GameRecord, seat: int) -> SeatRow:
    moves = [move for move in record.moves if move.seat == seat]
    times_us = [move.elapsed_us for move in moves if not move.stand_in]
    return SeatRow(
        seat=seat,
        bot=record.names[seat],
        version=record.seating[seat].version,
        score=record.scores[seat],
        rank=record.ranks[seat],
        strikes=sum(fault.seat == seat and not fault.forfeit for fault in record.faults),
        forfeited=seat in record.forfeited,
        decisions=len(times_us),
        stood_in=len(moves) - len(times_us),
        dropped=record.dropped[seat] if record.dropped else 0,
        mean_time_us=sum(times_us) // len(times_us) if times_us else None,
        max_time_us=max(times_us, default=None),
        lag_us=max((move.lag_us for move in moves), default=0),
    )


def _machine_text(machine: Machine) -> str:
    noise = "unknown" if machine.noise is None else f"{machine.noise:.0%}"
    return f"{machine.host}, {machine.cpu}, speed {machine.speed:,}, noise {noise}"


def _clocks_text(clocks: Clocks) -> str:
    limits = f"{duration(clocks.decision_us)} a decision"
    if clocks.bank_us is None:
        return limits
    bank = f"{limits}, {duration(clocks.bank_us)} a game"
    return f"{bank} + {duration(clocks.increment_us)} a decision" if clocks.increment_us else bank


FORMAT = "linko-game-1"


def record_json(record: GameRecord) -> dict[str, Any]:
    """Return the whole record as a JSON value. Another engine can replay the game from the JSON value alone."""
    return {
        "format": FORMAT,
        "game_id": record.game_id,
        "ruleset": _ruleset(record.ruleset),
        "seating": [
            {"seat": seat, "bot": bot.name, "version": bot.version}
            for seat, bot in enumerate(record.seating)
        ],
        "deck": list(record.deck),
        "moves": [_move(move) for move in record.moves],
        "faults": [_fault(fault) for fault in record.faults],
        "result": _result(record),
        "usage": [None if usage is None else _usage(usage) for usage in record.usage],
        "clocks": asdict(record.clocks),
        "max_strikes": record.max_strikes,
        "dropped": list(record.dropped),
        "isolation": record.isolation,
        "machine": None if record.machine is None else asdict(record.machine),
        "started_at_us": record.started_at_us,
        "duration_us": record.duration_us,
    }


def action_json(action: Action) -> dict[str, Any]:
    """Return an action as a JSON value. The value of the key `kind` determines which other keys there are."""
    if isinstance(action, Choice):
        return {"kind": action.value}
    if isinstance(action, Play):
        return {"kind": "play", **action.layer._asdict()}
    if isinstance(action, DrawDisplay):
        return {"kind": "draw-display", "slot": action.slot, "cards": list(action.cards)}
    return {"kind": "snatch-ghost", "value": action.value}


def _ruleset(ruleset: Ruleset) -> dict[str, Any]:
    fields = asdict(ruleset).items()
    return {name: value.value if isinstance(value, Enum) else value for name, value in fields}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "cpu_us": round(usage.cpu_s * SECOND_US),
        "peak_memory_kib": usage.peak_memory_kib,
    }


def _move(move: Move) -> dict[str, Any]:
    return {
        "seat": move.seat,
        "action": action_json(move.action),
        "elapsed_us": move.elapsed_us,
        "lag_us": move.lag_us,
        "stand_in": move.stand_in,
        "wall_us": move.wall_us,
        "batch_size": move.batch_size,
    }


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "seat": fault.seat,
        "cause": fault.cause.value,
        "forfeit": fault.forfeit,
        "move": fault.move,
        **asdict(fault.evidence),
    }


def _result(record: GameRecord) -> dict[str, Any]:
    return {
        "termination": record.termination.value,
        "scores": list(record.scores),
        "ranks": list(record.ranks),
        "forfeited": list(record.forfeited),
        "winners": list(record.winners),
    }
