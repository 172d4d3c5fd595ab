"""Serialise game records as the messages of `record.proto`, which any language can read."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from referee.clocks import SECOND_US, Clocks
from referee.errors import Cause, Evidence, count_text
from referee.pb import play_pb2, record_pb2
from referee.protocol.messages import clocks_message
from referee.protocol.values import (
    TERMINATIONS,
    TERMINATIONS_BACK,
    action_message,
    action_value,
    ruleset_message,
    ruleset_value,
)
from referee.records import BotId, Fault, GameRecord, Machine, Move, Usage

_FIRST_LATE_US = 253_402_300_800 * SECOND_US
"""The start of the year 10000, in microseconds since 1970. Python's dates end there."""


def dumps(record: GameRecord) -> bytes:
    """Return a record as a serialised `linko.v1.GameRecord`."""
    message = record_pb2.GameRecord(
        game_id=record.game_id,
        ruleset=ruleset_message(record.ruleset),
        seating=[
            record_pb2.Seating(name=bot.name, version=bot.version, usage=_usage_message(usage))
            for bot, usage in zip(record.seating, record.usage, strict=True)
        ],
        deck=record.deck,
        moves=[_move_message(move) for move in record.moves],
        faults=[_fault_message(fault) for fault in record.faults],
        result=record_pb2.Result(
            termination=TERMINATIONS[record.termination],
            scores=record.scores,
            ranks=record.ranks,
            forfeited=record.forfeited,
        ),
        clocks=clocks_message(record.clocks),
        max_strikes=record.max_strikes,
        dropped=record.dropped,
        isolation=record.isolation,
        started_at_us=record.started_at_us,
        duration_us=record.duration_us,
        machine=_machine_message(record.machine),
    )
    return message.SerializeToString(deterministic=True)


def loads(data: bytes) -> GameRecord:
    """Return the record that `dumps` has serialised as `data`.

    Raises ValueError in these cases:

    - `data` is not a `GameRecord` message, or protobuf writes other bytes for the same message.
    - This version of the referee does not know a field, the ruleset, the termination, an action or the cause of a fault.
    - A part of the record does not fit the number of seats (see `_check_seats`).
    - The game started after the year 9999.

    The function accepts some messages that `dumps` never writes, such as one with a `batch_size` of 1 instead of 0.
    It does not replay the game.
    """
    try:
        message = record_pb2.GameRecord.FromString(data)
    except DecodeError as error:
        raise ValueError("the bytes are no linko.v1.GameRecord") from error
    message.DiscardUnknownFields()
    if message.SerializeToString(deterministic=True) != data:
        raise ValueError(
            "the record has an unknown field, or its bytes are not those that the referee writes"
        )
    if message.result.termination not in TERMINATIONS_BACK:
        raise ValueError("the record's termination is missing or unknown")
    record = GameRecord(
        game_id=message.game_id,
        ruleset=ruleset_value(message.ruleset),
        seating=tuple(BotId(seat.name, seat.version) for seat in message.seating),
        deck=tuple(message.deck),
        moves=tuple(map(_move_value, message.moves)),
        faults=tuple(map(_fault_value, message.faults)),
        termination=TERMINATIONS_BACK[message.result.termination],
        scores=tuple(message.result.scores),
        ranks=tuple(message.result.ranks),
        forfeited=tuple(message.result.forfeited),
        usage=tuple(map(_usage_value, message.seating)),
        clocks=_clocks_value(message.clocks),
        max_strikes=message.max_strikes,
        dropped=tuple(message.dropped),
        isolation=message.isolation,
        started_at_us=message.started_at_us,
        duration_us=message.duration_us,
        machine=_machine_value(message),
    )
    _check_seats(record)
    if record.started_at_us >= _FIRST_LATE_US:
        raise ValueError("the record says that the game started after the year 9999")
    return record


def _check_seats(record: GameRecord) -> None:
    """Raise ValueError if a part of the record does not fit the number of seats.

    Each seat must have one score, one rank and one count in `dropped`, but `dropped` may be empty. Faults and forfeits must
    belong to one of the seats. The replay checks the seats of the moves, because they follow from the rules.
    """
    seats = len(record.seating)
    there = count_text(seats, "seat")
    if (len(record.scores), len(record.ranks)) != (seats, seats):
        raise ValueError(
            f"the record has {there}, but {count_text(len(record.scores), 'score')}"
            f" and {count_text(len(record.ranks), 'rank')}"
        )
    if len(record.dropped) not in (0, seats):
        raise ValueError(
            f"the record has {there}, but counts dropped messages for {len(record.dropped)}"
        )
    for what, named in (
        ("a fault", (fault.seat for fault in record.faults)),
        ("a forfeit", record.forfeited),
    ):
        if (last := max(named, default=-1)) >= seats:
            raise ValueError(f"the record has {there}, but {what} of seat {last}")


def _clocks_value(message: play_pb2.Clocks) -> Clocks:
    return Clocks(
        start_up_us=message.start_up_us,
        game_start_us=message.game_start_us,
        decision_us=message.decision_us,
        bank_us=message.bank_us or None,
        increment_us=message.increment_us,
    )


def _machine_message(machine: Machine | None) -> record_pb2.Machine | None:
    if machine is None:
        return None
    return record_pb2.Machine(
        host=machine.host, cpu=machine.cpu, speed=machine.speed, noise=machine.noise
    )


def _machine_value(message: record_pb2.GameRecord) -> Machine | None:
    if not message.HasField("machine"):
        return None
    found = message.machine
    noise = found.noise if found.HasField("noise") else None
    return Machine(host=found.host, cpu=found.cpu, speed=found.speed, noise=noise)


def _usage_message(usage: Usage | None) -> record_pb2.Usage | None:
    if usage is None:
        return None
    return record_pb2.Usage(
        cpu_us=round(usage.cpu_s * SECOND_US), peak_memory_kib=usage.peak_memory_kib
    )


def _usage_value(seating: record_pb2.Seating) -> Usage | None:
    if not seating.HasField("usage"):
        return None
    return Usage(seating.usage.cpu_us / SECOND_US, seating.usage.peak_memory_kib)


def _move_message(move: Move) -> record_pb2.Move:
    return record_pb2.Move(
        seat=move.seat,
        action=action_message(move.action),
        elapsed_us=move.elapsed_us,
        lag_us=move.lag_us,
        stand_in=move.stand_in,
        wall_us=move.wall_us,
        batch_size=_batch_size_field(move.batch_size),
    )


def _batch_size_field(size: int) -> int:
    """Return the value of the field `batch_size` in a message. A size of 1 is written as 0, because 0 takes no bytes."""
    return size if size > 1 else 0


def _move_value(message: record_pb2.Move) -> Move:
    return Move(
        message.seat,
        action_value(message.action),
        message.elapsed_us,
        message.lag_us,
        message.stand_in,
        message.wall_us,
        message.batch_size or 1,
    )


def _fault_message(fault: Fault) -> record_pb2.Fault:
    evidence = fault.evidence
    return record_pb2.Fault(
        seat=fault.seat,
        cause=fault.cause.value,
        forfeit=fault.forfeit,
        move=fault.move,
        detail=evidence.detail,
        exit_code=evidence.exit_code,
        signal=evidence.signal,
        elapsed_us=evidence.elapsed_us,
        stderr_tail=evidence.stderr_tail,
        wall_us=evidence.wall_us,
        batch_size=_batch_size_field(evidence.batch_size),
    )


def _fault_value(message: record_pb2.Fault) -> Fault:
    evidence = Evidence(
        detail=message.detail,
        exit_code=message.exit_code if message.HasField("exit_code") else None,
        signal=message.signal or None,
        elapsed_us=message.elapsed_us,
        stderr_tail=message.stderr_tail,
        wall_us=message.wall_us,
        batch_size=message.batch_size or 1,
    )
    return Fault(message.seat, Cause(message.cause), message.forfeit, message.move, evidence)
