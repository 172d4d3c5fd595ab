"""A record played again: the one mechanism behind audit, debugging and showing a game."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from referee.errors import Cause
from referee.match.play import result, stand_in
from referee.records import GameRecord, Move
from referee.rules.actions import Decision
from referee.rules.events import Event
from referee.rules.game import Game, IllegalActionError


class Step(NamedTuple):
    """One decision of a replayed game."""

    decision: Decision
    move: Move
    events: tuple[Event, ...]
    """Unredacted."""
    game: Game
    """The game after the move; the same object at every step."""


class Difference(Exception):
    """A record does not play out as it says. The message is the first difference."""


def steps(record: GameRecord) -> Iterator[Step]:
    """Play a record again, move by move.

    Raises Difference where the deck, a seat, an action or the end of the game is not what the rules
    and the stand-in make of it, and where faults did not cost what they must.
    """
    try:
        game = Game(record.ruleset, len(record.seating), record.deck)
    except ValueError as error:
        raise Difference(str(error)) from error
    _check_faults(record)
    charges = _Charges(record)
    for number, move in enumerate(record.moves, start=1):
        decision = game.decision
        if decision is None:
            raise Difference(f"move {number}: the game is over after {number - 1} moves")
        if move.seat != decision.seat:
            raise Difference(
                f"move {number}: seat {move.seat} moves, it is for seat {decision.seat} to decide"
            )
        charges.check(number, move, decision)
        try:
            events = game.apply(move.action)
        except IllegalActionError as error:
            raise Difference(f"move {number}: {error}") from error
        yield Step(decision, move, events, game)
    if game.outcome is None:
        raise Difference(f"the game is not over after {len(record.moves)} moves")
    replayed = result(game.outcome, record.faults)
    if replayed != record.result:
        raise Difference(f"result: the record says {record.result}, the rules say {replayed}")


def _check_faults(record: GameRecord) -> None:
    """A strike costs one decision, number `max_strikes` the game, and a forfeit is a seat's last fault."""
    seats = range(len(record.seating))
    for fault in record.faults:
        if fault.seat not in seats:
            raise Difference(f"a fault is charged to seat {fault.seat}, where nobody sits")
    for seat in seats:
        own = [fault for fault in record.faults if fault.seat == seat]
        if any(fault.forfeit for fault in own[:-1]):
            raise Difference(f"seat {seat} has a fault after its forfeit")
        strikes = [fault.move for fault in own if not fault.forfeit]
        for before, at in pairwise((-1, *strikes)):
            if at <= before or not _decided_by_stand_in(record, seat, at):
                raise Difference(
                    f"seat {seat}: no stand-in decides where its strike was, at move {at + 1}"
                )
        forfeits = [fault.move for fault in own if fault.cause is Cause.STRIKES]
        if forfeits != strikes[record.max_strikes - 1 :]:
            raise Difference(
                f"seat {seat} has {len(strikes)} strikes and"
                f" {'forfeited' if forfeits else 'did not forfeit'} by them; strike"
                f" {record.max_strikes} forfeits"
            )


def _decided_by_stand_in(record: GameRecord, seat: int, at: int) -> bool:
    return at < len(record.moves) and record.moves[at].seat == seat and record.moves[at].stand_in


class _Charges:
    """Who decided, held against the faults of a record: the stand-in only for whom was charged."""

    def __init__(self, record: GameRecord) -> None:
        self._forfeited_at = {fault.seat: fault.move for fault in record.faults if fault.forfeit}
        self._faulted = {(fault.seat, fault.move) for fault in record.faults}

    def check(self, number: int, move: Move, decision: Decision) -> None:
        forfeited = self._forfeited_at.get(move.seat, number) < number
        if not move.stand_in:
            if forfeited:
                raise Difference(f"move {number}: seat {move.seat} decides after its forfeit")
            return
        if not forfeited and (move.seat, number - 1) not in self._faulted:
            raise Difference(f"move {number}: the stand-in decides without a fault")
        if move.action != stand_in(decision):
            raise Difference(f"move {number}: {move.action} is not what the stand-in does")


def check(record: GameRecord) -> None:
    """Play a record again and raise Difference at the first thing that is not right."""
    for _ in steps(record):
        pass
