"""Replay the record of a game, for verification, debugging and showing the game.

The replay checks this:

- The moves and the result follow the rules.
- The stand-in follows its policy, and decides only after a fault of the seat.
- Each fault is at a decision of its seat or before the first request.
- A seat forfeits at strike number `max_strikes`.

`check_record` also checks the times of the moves and the noise of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from referee.clocks import Clocks, DecisionTime, SeatClock
from referee.errors import START_CAUSES, STRIKE_CAUSES, Cause, Evidence, count_text
from referee.match import stand_in_action
from referee.records import Fault, GameRecord, Move, final_ranks, forfeited_seats
from referee.rules.actions import Decision
from referee.rules.events import Event
from referee.rules.game import Game, IllegalActionError, Outcome

_REQUEST_CAUSES = {Cause.OUT_OF_TIME, Cause.STRIKES}
"""A forfeit of one of these causes happens only at a decision of the seat."""


class ReplayedMove(NamedTuple):
    """One decision of a replayed game."""

    decision: Decision
    move: Move
    events: tuple[Event, ...]
    """The events that the move caused, unredacted."""
    game: Game
    """The game after the move. The next move of the replay changes this object."""


class Difference(Exception):
    """A record differs from its replay, or has an impossible time or measurement. The message names the first difference.

    It is no RefereeError: the caller must turn it into one, or the user sees a bug report.
    """


def make_game(record: GameRecord) -> Game:
    """Return the game of a record before its first move.

    Raises Difference if the deck has wrong cards, or if the ruleset does not allow this number of seats.
    """
    try:
        return Game(record.ruleset, len(record.seating), record.deck)
    except ValueError as error:
        raise Difference(str(error)) from error


def replay_moves(record: GameRecord) -> Iterator[ReplayedMove]:
    """Replay a record move by move.

    Raises Difference at the first error:

    - The deck has wrong cards, or the number of seats is wrong.
    - The game cannot have had these faults (see `_check_faults`).
    - A move or the result breaks the rules.
    - The stand-in makes a wrong move, or decides where the seat must decide.
    - A seat decides after its forfeit.
    """
    game = make_game(record)
    _check_faults(record)
    stand_ins = _StandInCheck(record)
    for index, move in enumerate(record.moves):
        decision = game.decision
        if decision is None:
            raise Difference(
                f"move {index + 1}: the game is over after {count_text(index, 'move')}"
            )
        if move.seat != decision.seat:
            raise Difference(
                f"move {index + 1}: seat {move.seat} moves, but seat {decision.seat} must decide"
            )
        stand_ins.check(index, move, decision)
        try:
            events = game.apply(move.action)
        except IllegalActionError as error:
            raise Difference(f"move {index + 1}: {error}") from error
        yield ReplayedMove(decision, move, events, game)
    if game.outcome is None:
        raise Difference(f"the game is not over after {count_text(len(record.moves), 'move')}")
    _check_result(record, game.outcome)


def check_record(record: GameRecord) -> None:
    """Replay the whole record of a stored game, and check its times and the noise of its machine. Raises Difference at the first error.

    An opening is an error too, because its moves have no times. Games with an opening are never stored.
    """
    for _ in replay_moves(record):
        pass
    _check_times(record)
    _check_noise(record)


def _check_result(record: GameRecord, outcome: Outcome) -> None:
    """Check termination, scores, ranks and forfeited seats. Raises Difference at the first error."""
    for what, recorded, replayed in (
        ("termination", record.termination, outcome.termination),
        ("scores", record.scores, outcome.scores),
        ("ranks", record.ranks, final_ranks(outcome.ranks, record.faults)),
        ("forfeited seats", record.forfeited, forfeited_seats(record.faults)),
    ):
        if recorded != replayed:
            raise Difference(f"result: the record says {what} {recorded}, the rules say {replayed}")


def _check_faults(record: GameRecord) -> None:
    """Check that `play_game` could have recorded these faults. Raises Difference at the first error.

    - The stand-in must make the move at which a seat has a fault. Faults before the first request are an exception.
    - Two faults of a seat must be at different moves. A forfeit because of strikes is an exception: it is at the move of the last strike.
    - At strike number `max_strikes` a seat must forfeit.
    - A seat must not have a fault after its forfeit.
    - The faults of all seats must be in the order of their moves.
    """
    seats = range(len(record.seating))
    first_request = _find_first_request(record.moves)
    for fault in record.faults:
        if fault.seat not in seats:
            raise Difference(f"a fault is charged to seat {fault.seat}, which does not exist")
        _check_fault(record, fault, first_request)
    for seat in seats:
        faults = [fault for fault in record.faults if fault.seat == seat]
        if any(fault.forfeit for fault in faults[:-1]):
            raise Difference(f"seat {seat} has a fault after its forfeit")
        # a forfeit because of strikes has the move of the last strike
        in_order = [fault.move for fault in faults if fault.cause is not Cause.STRIKES]
        if any(move <= previous for previous, move in pairwise(in_order)):
            raise Difference(f"seat {seat}: faults must be at different moves, in their order")
        strikes = [fault.move for fault in faults if not fault.forfeit]
        forfeits = [fault.move for fault in faults if fault.cause is Cause.STRIKES]
        right = strikes[record.max_strikes - 1 :]
        if forfeits != right:
            raise Difference(
                f"seat {seat} has {len(strikes)} strikes, and a seat forfeits at strike {record.max_strikes};"
                f" expected: {_name_forfeit(right[:1])}; recorded: {_name_forfeit(forfeits)}"
            )
    if any(later.move < earlier.move for earlier, later in pairwise(record.faults)):
        raise Difference("the faults are not in the order of their moves")


def _name_forfeit(moves: Sequence[int]) -> str:
    places = " and ".join(f"at move {index + 1}" for index in moves)
    return f"a forfeit because of strikes {places}" if places else "no such forfeit"


def _find_first_request(moves: Sequence[Move]) -> int:
    """Return the index of the first move after the opening, or the number of moves if there is none.

    The moves of an opening have no times, and the stand-in has made none of them.
    """
    later = (index for index, move in enumerate(moves) if move.stand_in or not has_no_times(move))
    return next(later, len(moves))


def _check_fault(record: GameRecord, fault: Fault, first_request: int) -> None:
    """Check one fault by itself: its cause, and its place in the game. Raises Difference at the first error."""
    what = f"seat {fault.seat}: a {'forfeit' if fault.forfeit else 'strike'} ({fault.cause.value})"
    if fault.forfeit == (fault.cause in STRIKE_CAUSES):
        right = "strike" if fault.forfeit else "forfeit"
        raise Difference(f"{what} is impossible, because this cause gives a {right}")
    if fault.move not in range(len(record.moves)):
        raise Difference(
            f"{what} belongs to move {fault.move + 1},"
            f" but the game has {count_text(len(record.moves), 'move')}"
        )
    move = record.moves[fault.move]
    is_start_fault = fault.cause in START_CAUSES
    if move.seat == fault.seat and move.stand_in and not is_start_fault:
        return
    # If a bot was not ready, its seat forfeits between the opening and the first request. The next move may belong to another seat.
    can_be_early = fault.forfeit and fault.cause not in _REQUEST_CAUSES
    if can_be_early and fault.move <= first_request:
        return
    if is_start_fault:
        raise Difference(f"{what} must come before the first request, not at move {fault.move + 1}")
    raise Difference(f"{what}: the stand-in must make move {fault.move + 1}")


class _StandInCheck:
    """Check at which moves the stand-in decided, and which actions it chose."""

    def __init__(self, record: GameRecord) -> None:
        self._forfeited_at = {fault.seat: fault.move for fault in record.faults if fault.forfeit}
        self._faults = {(fault.seat, fault.move) for fault in record.faults}

    def check(self, index: int, move: Move, decision: Decision) -> None:
        """Raise Difference if the move at `index` of the record has one of three errors.

        - The seat decided after its forfeit.
        - The stand-in decided, but the seat had no fault at this move and had not forfeited.
        - The stand-in did not choose the action that its policy gives.
        """
        forfeited_at = self._forfeited_at.get(move.seat)
        has_forfeited = forfeited_at is not None and index >= forfeited_at
        if not move.stand_in:
            if has_forfeited:
                raise Difference(f"move {index + 1}: seat {move.seat} decides after its forfeit")
            return
        if not has_forfeited and (move.seat, index) not in self._faults:
            raise Difference(f"move {index + 1}: the stand-in decides without a fault")
        if move.action != stand_in_action(decision):
            raise Difference(f"move {index + 1}: {move.action} is not the stand-in's action")


def _check_noise(record: GameRecord) -> None:
    """Raise Difference if the noise of the machine is impossible."""
    noise = None if record.machine is None else record.machine.noise
    if noise is not None and not 0 <= noise <= 1:  # NaN fails the comparison, so it is refused too
        raise Difference(f"the noise of the machine is {noise}; it must be from 0 to 1")


_NO_REQUEST = (0, 0, 1)
"""What `_times` returns for a move of a seat that got no request."""


def _check_times(record: GameRecord) -> None:
    """Check the times of all moves against the clocks of the record. Raises Difference at the first error.

    Call this function after `replay_moves`, which checks the moves of the stand-in. The record does not say how much time is
    left in a bank, but this follows from the times of the earlier moves.
    """
    clocks = [SeatClock(record.clocks) for _ in record.seating]
    faults = {
        (fault.seat, fault.move): fault
        for fault in record.faults
        if fault.cause is not Cause.STRIKES  # the last strike is at the same move and has the times
    }
    for index, move in enumerate(record.moves):
        clock, fault = clocks[move.seat], faults.get((move.seat, index))
        try:
            if move.stand_in and fault is None:  # the seat has forfeited
                _check_no_request(move)
                continue
            _check_charge(move, clock.decision_time(), fault)
            _check_batch(move)
            if fault is None:
                _check_reply(move, record.clocks)
        except Difference as difference:
            raise Difference(f"move {index + 1}: {difference}") from None
        clock.spend(move.elapsed_us)
    needed_us = sum(move.elapsed_us + move.lag_us for move in record.moves)
    if record.duration_us < needed_us:
        raise Difference(
            f"the game lasted {record.duration_us} us, but its decisions took {needed_us} us"
        )


def _times(what: Move | Evidence) -> tuple[int, int, int]:
    """Return the time that a request took, the time of its batch and the size of its batch.

    For a move, the first time is the charged time plus the lag. For evidence, it is the time until the fault.
    """
    spent_us = what.elapsed_us + (what.lag_us if isinstance(what, Move) else 0)
    return spent_us, what.wall_us, what.batch_size


def _check_batch(move: Move) -> None:
    """Check the times of a move, and the time and size of its batch (see `Move.wall_us`).

    No time is negative. A single request has no time of a batch. A batch took at least as long as this request.
    """
    spent_us, wall_us, size = _times(move)
    if min(move.elapsed_us, move.lag_us, wall_us) < 0:
        raise Difference("a time is negative")
    if size < 1:
        raise Difference(f"the batch of its request has {size} requests")
    if size == 1 and wall_us:
        raise Difference(f"a single request has the time of a batch, {wall_us} us")
    if size > 1 and wall_us < spent_us:
        raise Difference(f"the batch took {wall_us} us, but this request alone {spent_us} us")


def _check_reply(move: Move, clocks: Clocks) -> None:
    """Check the times of a decision without a fault.

    A single request or a batch takes at least 1 us. In a batch the charge is a share of the batch's time, and the share
    can be 0. See `Batch` in `bots.clock`.
    """
    spent_us, wall_us, size = _times(move)
    if max(spent_us, wall_us) == 0:
        raise Difference("the bot has replied after 0 us")
    if size == 1:
        return
    charged_us = wall_us - move.lag_us
    if charged_us > size * clocks.decision_us:
        raise Difference(
            f"the batch of {size} requests took {charged_us} us, but their limits are {size * clocks.decision_us} us"
        )
    # With a bank, the requests of a batch can have different limits, and so different shares. The other requests belong to
    # other games, and the record does not have their limits.
    if clocks.bank_us is None and move.elapsed_us != charged_us // size:
        raise Difference(
            f"{move.elapsed_us} us are charged for one of {size} requests that took {charged_us} us"
        )


def has_no_times(move: Move) -> bool:
    """Return True if a move has no times. That means that its seat got no request."""
    return _times(move) == _NO_REQUEST


def _check_no_request(move: Move) -> None:
    if not has_no_times(move):
        raise Difference(f"seat {move.seat} got no request, but the move has times")


def _check_charge(move: Move, time: DecisionTime, fault: Fault | None) -> None:
    """Compare the charged time of a move with the limit, and with the seat's fault at this move, if there is one."""
    if move.elapsed_us > time.limit_us:
        raise Difference(f"{move.elapsed_us} us are charged, but the limit was {time.limit_us} us")
    in_full = move.elapsed_us == time.limit_us
    if fault is None:
        if time.limit_us == 0:
            raise Difference(f"seat {move.seat} decides with an empty bank")
        # in a batch the charge is a share, which can be below the limit although the batch was late
        if move.lag_us > 0 and not in_full and move.batch_size == 1:
            raise Difference(
                f"the move has a lag, but the charge of {move.elapsed_us} us is below the limit"
            )
        return
    # If the bot could not start, its seat forfeited before the first request. Then this move had no request and has no times,
    # but the evidence can have a time.
    got_no_request = fault.forfeit and has_no_times(move)
    if not got_no_request and _times(move) != _times(fault.evidence):
        raise Difference("the times of the fault differ from those of the move")
    if fault.cause in (Cause.TIMEOUT, Cause.OUT_OF_TIME):
        if not in_full:
            raise Difference(
                f"a timeout after {move.elapsed_us} us, but the limit was {time.limit_us} us"
            )
        if (fault.cause is Cause.OUT_OF_TIME) != time.ends_the_bank:
            left = "empty" if time.ends_the_bank else "not empty"
            raise Difference(f"the fault is {fault.cause.value}, but the bank was {left} after it")
