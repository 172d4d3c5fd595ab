"""Records of games as JSON values, for programs that know nothing of this one.

The keys are described in the README beside this file. They are stable: further ones may come, none
goes or changes its meaning while `format` stays what it is.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from referee.clocks import SECOND_US
from referee.records import Fault, GameRecord, Move, Result, Usage
from referee.rules.actions import Action, Choice, DrawDisplay, Play
from referee.rules.ruleset import Ruleset

FORMAT = "linko-game-1"


def record_json(record: GameRecord) -> dict[str, Any]:
    """The whole record: what `json.dumps` takes. An engine can replay the game from it."""
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
        "result": _result(record.result),
        "usage": [None if usage is None else _usage(usage) for usage in record.usage],
        "clocks": asdict(record.clocks),
        "max_strikes": record.max_strikes,
        "dropped": list(record.dropped),
        "isolation": record.isolation,
        "started_at_us": record.started_at_us,
        "duration_us": record.duration_us,
    }


def action_json(action: Action) -> dict[str, Any]:
    """An action: its kind, and what that kind needs to be told."""
    if isinstance(action, Choice):
        return {"kind": action.value}
    if isinstance(action, Play):
        return {"kind": "play", **action.layer._asdict()}
    if isinstance(action, DrawDisplay):
        return {"kind": "draw-display", "slot": action.slot, "cards": list(action.cards)}
    return {"kind": "snatch-ghost", "value": action.value}


def _ruleset(ruleset: Ruleset) -> dict[str, Any]:
    return {**asdict(ruleset), "end_on": ruleset.end_on.value}


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
    }


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "seat": fault.seat,
        "cause": fault.cause.value,
        "forfeit": fault.forfeit,
        "move": fault.move,
        **asdict(fault.evidence),
    }


def _result(result: Result) -> dict[str, Any]:
    return {
        "termination": result.termination.value,
        "scores": list(result.scores),
        "ranks": list(result.ranks),
        "forfeited": list(result.forfeited),
        "winners": list(result.winners),
    }
