"""Rows about games: lists of them, and one game in detail."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Annotated

from referee.clocks import Clocks
from referee.records import GameRecord
from referee.reports.columns import Column
from referee.reports.inputs import FinishedGame
from referee.reports.show import duration, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class GameRow:
    """A game in a list."""

    game_id: Annotated[str, Column("game", wrap=True)]
    ruleset: Annotated[str, Column("ruleset", drop=3)]
    round: Annotated[int, Column("round", right=True, drop=1)]
    match: Annotated[Hashable, Column("match", right=True, drop=2)]
    bots: Annotated[tuple[str, ...], Column("bots", wrap=True)]
    """Who sat where, seat 0 first; so are scores and ranks."""
    scores: Annotated[tuple[int, ...], Column("scores", wrap=True)]
    ranks: Annotated[tuple[int, ...], Column("ranks", wrap=True)]
    forfeited: Annotated[tuple[int, ...], Column("forfeited", wrap=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GameHead:
    """A game as a whole."""

    game_id: Annotated[str, Column("game")]
    ruleset: Annotated[str, Column("ruleset")]
    termination: Annotated[str, Column("ended by")]
    decisions: Annotated[int, Column("decisions")]
    duration_us: Annotated[int, Column("took", show=duration)]
    started_at_us: Annotated[int, Column("started", show=moment)]
    clocks: Annotated[str, Column("time limits")]
    isolation: Annotated[str, Column("isolation")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatRow:
    """A seat of a game."""

    seat: Annotated[int, Column("seat", right=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    version: Annotated[str, Column("version", wrap=True, drop=1)]
    score: Annotated[int, Column("score", right=True)]
    rank: Annotated[int, Column("rank", right=True)]
    strikes: Annotated[int, Column("strikes", right=True)]
    forfeited: Annotated[bool, Column("forfeited", show=lambda yes: "yes" if yes else "no")]
    decisions: Annotated[int, Column("decided", right=True, drop=3)]
    """By the bot itself."""
    stood_in: Annotated[int, Column("stood in", right=True, drop=2)]
    """Decisions that the stand-in took for it."""
    dropped: Annotated[int, Column("dropped", right=True, drop=2)]
    """Replies and hellos that came too late, twice or unasked."""
    mean_us: Annotated[int | None, Column("mean time", right=True, show=duration)]
    """Mean time of the bot's own decisions; None where it took none."""
    max_us: Annotated[int | None, Column("longest", right=True, show=duration)]
    lag_us: Annotated[int, Column("lag", right=True, show=duration, drop=4)]
    """How far beyond a decision's limit the referee was at most when it saw the reply or gave it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeRow:
    """A fault in a game."""

    move: Annotated[int, Column("move", right=True)]
    """How many moves the game had when it happened."""
    seat: Annotated[int, Column("seat", right=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    cause: Annotated[str, Column("cause")]
    forfeit: Annotated[bool, Column("cost", show=lambda yes: "forfeit" if yes else "strike")]
    detail: Annotated[str, Column("detail", wrap=True)]
    exit_code: Annotated[int | None, Column("exit", right=True, drop=2)]
    signal: Annotated[str | None, Column("signal", drop=1)]
    elapsed_us: Annotated[int, Column("after", right=True, show=duration, drop=3)]
    """Since the bot was asked, or started."""
    stderr_tail: Annotated[str, Column("stderr", data_only=True)]
    """The end of what the process wrote to standard error."""


def game_rows(games: Iterable[FinishedGame]) -> tuple[GameRow, ...]:
    """One row a game, in the order given."""
    return tuple(
        GameRow(
            game_id=game.game_id,
            ruleset=game.ruleset,
            round=game.round,
            match=game.match,
            bots=game.bots,
            scores=game.scores,
            ranks=game.ranks,
            forfeited=game.forfeited,
        )
        for game in games
    )


def game_head(record: GameRecord) -> GameHead:
    """What there is to say of a game as a whole."""
    return GameHead(
        game_id=record.game_id,
        ruleset=record.ruleset.name,
        termination=record.result.termination.value,
        decisions=len(record.moves),
        duration_us=record.duration_us,
        started_at_us=record.started_at_us,
        clocks=_clocks_text(record.clocks),
        isolation=record.isolation,
    )


def seat_rows(record: GameRecord) -> tuple[SeatRow, ...]:
    """One row a seat, seat 0 first."""
    return tuple(_seat_row(record, seat) for seat in range(len(record.seating)))


def charge_rows(record: GameRecord) -> tuple[ChargeRow, ...]:
    """One row a fault, in order."""
    return tuple(
        ChargeRow(
            move=fault.move,
            seat=fault.seat,
            bot=record.seating[fault.seat].name,
            cause=fault.cause.value,
            forfeit=fault.forfeit,
            detail=fault.evidence.detail,
            exit_code=fault.evidence.exit_code,
            signal=fault.evidence.signal,
            elapsed_us=fault.evidence.elapsed_us,
            stderr_tail=fault.evidence.stderr_tail,
        )
        for fault in record.faults
    )


def _seat_row(record: GameRecord, seat: int) -> SeatRow:
    moves = [move for move in record.moves if move.seat == seat]
    times_us = [move.elapsed_us for move in moves if not move.stand_in]
    return SeatRow(
        seat=seat,
        bot=record.seating[seat].name,
        version=record.seating[seat].version,
        score=record.result.scores[seat],
        rank=record.result.ranks[seat],
        strikes=sum(fault.seat == seat and not fault.forfeit for fault in record.faults),
        forfeited=seat in record.result.forfeited,
        decisions=len(times_us),
        stood_in=len(moves) - len(times_us),
        dropped=record.dropped[seat] if record.dropped else 0,
        mean_us=sum(times_us) // len(times_us) if times_us else None,
        max_us=max(times_us, default=None),
        lag_us=max((move.lag_us for move in moves), default=0),
    )


def _clocks_text(clocks: Clocks) -> str:
    limits = f"{duration(clocks.decision_us)} a decision"
    if clocks.bank_us is None:
        return limits
    bank = f"{limits}, {duration(clocks.bank_us)} a game"
    return f"{bank} + {duration(clocks.increment_us)} a decision" if clocks.increment_us else bank
