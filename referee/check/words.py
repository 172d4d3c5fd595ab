"""How decisions, answers and faults are told to the author of a bot: in the words of the protocol."""

from __future__ import annotations

from collections.abc import Iterable

from referee.errors import BotFault, Cause
from referee.rules.actions import Action, Choice, Decision, DecisionKind, DrawDisplay, Play
from referee.rules.cards import card_name

_LISTED = 6
"""Legal actions that are named; of more, it is said how many."""
_OF_THE_PROCESS = {Cause.CRASH, Cause.EXITED_EARLY, Cause.HANDSHAKE}
"""Causes whose details are a sentence without its subject."""


def kind_name(kind: DecisionKind) -> str:
    """`take or leave`."""
    return kind.value.replace("-", " ")


def enum_name(kind: DecisionKind) -> str:
    """`DECISION_KIND_TAKE_OR_LEAVE`."""
    return f"DECISION_KIND_{kind.name}"


def action_words(action: Action) -> str:
    """An action as the fields of its message: `play {value 7, naturals 2, jokers 1}`."""
    match action:
        case Choice():
            return f"CHOICE_{action.name}"
        case Play(layer):
            return f"play {{value {layer.value}, naturals {layer.naturals}, jokers {layer.jokers}}}"
        case DrawDisplay(slot, cards):
            held = "+".join(map(card_name, cards)) or "empty"
            return f"draw_display {{slot {slot}}} ({held})"
        case _:
            return f"ghost_value {action.value}"


def legal_words(decision: Decision) -> str:
    """What would have been right."""
    legal = decision.legal
    names = ", ".join(map(action_words, legal[:_LISTED]))
    more = f", … ({len(legal) - _LISTED} more)" if len(legal) > _LISTED else ""
    return f"one of the request's legal actions: {names}{more}"


def fault_words(fault: BotFault) -> str:
    """What came in place of an answer."""
    detail = fault.evidence.detail
    subject = f"the bot's process {detail}" if fault.cause in _OF_THE_PROCESS else detail
    return f"{subject} ({fault.cause.value})"


def listed(names: Iterable[str]) -> str:
    """`classic, basic and duel`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def counted(number: int, noun: str) -> str:
    """`1 game`, `3 games`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
