"""Convert the values of the rules to protobuf messages and back.

Only the dicts of this module, such as `CHOICES`, map the enums of the project to the enums of the schema. A test
checks that the dicts are complete. `messages`, `view_bytes` and `record` build messages with this module, and the SDK reads
requests with this module. Every Python bot imports this module at its start, so the import must stay fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from referee.pb import table_pb2 as pb
from referee.rules.actions import Action, Choice, DecisionKind, DrawDisplay, Play, SnatchGhost
from referee.rules.events import (
    Discarded,
    DisplayRefilled,
    Drawn,
    Event,
    GameOver,
    GhostDeclined,
    GhostRefilled,
    GhostSnatched,
    Left,
    Passed,
    Played,
    Reclaimed,
    SlotCard,
    Snatched,
    Taken,
    Termination,
)
from referee.rules.ruleset import (
    GHOST_OPTIONS,
    RULESETS,
    EndOn,
    GhostOverflow,
    GhostSnatch,
    GhostStart,
    Layer,
    Ruleset,
)

PROTOCOL_VERSION = 1
"""The version of the protocol. The referee accepts no other version in the hello of a bot."""

CHOICES: dict[Choice, pb.Choice] = {
    choice: getattr(pb, f"CHOICE_{choice.name}") for choice in Choice
}
CHOICES_BACK = {value: choice for choice, value in CHOICES.items()}
KINDS: dict[DecisionKind, pb.DecisionKind] = {
    kind: getattr(pb, f"DECISION_KIND_{kind.name}") for kind in DecisionKind
}
KINDS_BACK = {value: kind for kind, value in KINDS.items()}
TERMINATIONS: dict[Termination, pb.Termination] = {
    termination: getattr(pb, f"TERMINATION_{termination.name}") for termination in Termination
}
TERMINATIONS_BACK = {value: termination for termination, value in TERMINATIONS.items()}
OPTIONS: dict[str, dict[Enum, int]] = {
    name: {member: getattr(pb, f"{name.upper()}_{member.name}") for member in members}
    for name, members in {
        "end_on": EndOn,
        "ghost_start": GhostStart,
        "ghost_snatch": GhostSnatch,
        "ghost_overflow": GhostOverflow,
    }.items()
}
"""The options of a ruleset that are enums, by name. Each has a dict from its members to their numbers in the schema."""
OPTIONS_BACK = {
    name: {value: member for member, value in values.items()} for name, values in OPTIONS.items()
}


# Layers and actions


def layer_message(cards: Layer) -> pb.Layer:
    """Return a layer as a message."""
    return pb.Layer(value=cards.value, naturals=cards.naturals, jokers=cards.jokers)


def layer_value(message: pb.Layer) -> Layer:
    """Return a message as a layer."""
    return Layer(message.value, message.naturals, message.jokers)


def action_message(action: Action) -> pb.Action:
    """Return an action as a message."""
    if isinstance(action, Play):
        return pb.Action(play=layer_message(action.layer))
    if isinstance(action, Choice):
        return pb.Action(choice=CHOICES[action])
    if isinstance(action, DrawDisplay):
        return pb.Action(draw_display=pb.DrawDisplay(slot=action.slot, cards=action.cards))
    return pb.Action(ghost_value=action.value)


def action_value(message: pb.Action) -> Action:
    """Return a message as an action. Raises ValueError when the message names no action."""
    kind = message.WhichOneof("kind")
    if kind == "play":
        return Play(layer_value(message.play))
    if kind == "choice" and message.choice in CHOICES_BACK:
        return CHOICES_BACK[message.choice]
    if kind == "draw_display":
        return DrawDisplay(message.draw_display.slot, tuple(message.draw_display.cards))
    if kind == "ghost_value":
        return SnatchGhost(message.ghost_value)
    raise ValueError("the message names no action")


# Events


def event_message(event: Event) -> pb.Event:  # noqa: C901, PLR0911, PLR0912 - one case for each event
    """Return an event as a message. The caller must redact an event for a bot before the call."""
    kind = pb.Event
    match event:
        case Played(seat, cards):
            return kind(played=kind.Played(seat=seat, layer=layer_message(cards)))
        case Snatched(attacker, victim, cards):
            return kind(
                snatched=kind.Snatched(attacker=attacker, victim=victim, layer=layer_message(cards))
            )
        case Taken(seat, cards):
            return kind(taken=kind.Taken(seat=seat, layer=layer_message(cards)))
        case Left(seat):
            return kind(left=kind.Left(seat=seat))
        case Reclaimed(seat, cards):
            return kind(reclaimed=kind.Reclaimed(seat=seat, layer=layer_message(cards)))
        case Discarded(seat, cards):
            return kind(discarded=kind.Discarded(seat=seat, layer=layer_message(cards)))
        case Drawn(seat, slot, drawn):
            return kind(drawn=kind.Drawn(seat=seat, slot=slot, cards=drawn))
        case DisplayRefilled(turned):
            return kind(display_refilled=kind.DisplayRefilled(cards=_slot_card_messages(turned)))
        case GhostSnatched(seat, cards):
            return kind(ghost_snatched=kind.GhostSnatched(seat=seat, layer=layer_message(cards)))
        case GhostRefilled(ghost_cards, display_cards):
            refilled = kind.GhostRefilled(
                ghost_cards=ghost_cards, display_cards=_slot_card_messages(display_cards)
            )
            return kind(ghost_refilled=refilled)
        case GhostDeclined(seat):
            return kind(ghost_declined=kind.GhostDeclined(seat=seat))
        case Passed(seat):
            return kind(passed=kind.Passed(seat=seat))
        case GameOver(termination, scores, ranks):
            over = kind.GameOver(termination=TERMINATIONS[termination], scores=scores, ranks=ranks)
            return kind(game_over=over)


def event_values(messages: Iterable[pb.Event]) -> tuple[Event, ...]:
    """Return messages as events. Messages of a kind that this version does not know are left out."""
    kinds = ((message.WhichOneof("kind"), message) for message in messages)
    return tuple(EVENT_DECODERS[kind](message) for kind, message in kinds if kind is not None)


def _slot_card_messages(cards: Iterable[SlotCard]) -> list[pb.SlotCard]:
    return [pb.SlotCard(slot=slot, card=card) for slot, card in cards]


def _slot_card_values(messages: Iterable[pb.SlotCard]) -> tuple[SlotCard, ...]:
    return tuple(SlotCard(message.slot, message.card) for message in messages)


def _drawn_value(message: pb.Event.Drawn) -> Drawn:
    slot = message.slot if message.HasField("slot") else None
    return Drawn(message.seat, slot, tuple(message.cards))


def _snatched_value(message: pb.Event.Snatched) -> Snatched:
    return Snatched(message.attacker, message.victim, layer_value(message.layer))


def _ghost_refilled_value(message: pb.Event.GhostRefilled) -> GhostRefilled:
    return GhostRefilled(tuple(message.ghost_cards), _slot_card_values(message.display_cards))


def _game_over_value(message: pb.Event.GameOver) -> GameOver:
    termination = TERMINATIONS_BACK[message.termination]
    return GameOver(termination, tuple(message.scores), tuple(message.ranks))


EVENT_DECODERS: dict[str, Callable[[pb.Event], Event]] = {
    "played": lambda m: Played(m.played.seat, layer_value(m.played.layer)),
    "snatched": lambda m: _snatched_value(m.snatched),
    "taken": lambda m: Taken(m.taken.seat, layer_value(m.taken.layer)),
    "left": lambda m: Left(m.left.seat),
    "reclaimed": lambda m: Reclaimed(m.reclaimed.seat, layer_value(m.reclaimed.layer)),
    "discarded": lambda m: Discarded(m.discarded.seat, layer_value(m.discarded.layer)),
    "drawn": lambda m: _drawn_value(m.drawn),
    "display_refilled": lambda m: DisplayRefilled(_slot_card_values(m.display_refilled.cards)),
    "ghost_snatched": lambda m: GhostSnatched(
        m.ghost_snatched.seat, layer_value(m.ghost_snatched.layer)
    ),
    "ghost_refilled": lambda m: _ghost_refilled_value(m.ghost_refilled),
    "ghost_declined": lambda m: GhostDeclined(m.ghost_declined.seat),
    "passed": lambda m: Passed(m.passed.seat),
    "game_over": lambda m: _game_over_value(m.game_over),
}
"""The functions that decode events. The key is the name of the kind of event in the schema."""


# Rulesets


def ruleset_message(rules: Ruleset) -> pb.Ruleset:
    """Return a ruleset as a message."""
    return pb.Ruleset(
        name=rules.name,
        optional_draw=rules.optional_draw,
        ones_snatch_jokers=rules.ones_snatch_jokers,
        ones_snatch_thirteens=rules.ones_snatch_thirteens,
        hand_size_breaks_ties=rules.hand_size_breaks_ties,
        ghost=rules.ghost,
        max_turns=rules.max_turns,
        **_option_messages(rules),
    )


def ruleset_value(message: pb.Ruleset) -> Ruleset:
    """Return a message as a ruleset.

    Raises ValueError if this version of the referee does not know the name of the ruleset or the value of an option, if
    an option has a value that the ruleset does not allow, or if another field differs from this version's ruleset.
    """
    ruleset = RULESETS.get(message.name)
    if ruleset is None:
        raise ValueError(f"this version has no ruleset {message.name!r}")
    rules = ruleset.with_options(max_turns=message.max_turns, **option_values(message))
    if ruleset_message(rules) != message:
        raise ValueError(f"the ruleset {message.name!r} has other rules in this version")
    return rules


def option_values(message: pb.Ruleset) -> dict[str, Any]:
    """Return the options of a ruleset that are enums, by name. A value that this version does not know is left out."""
    return {
        name: members[value]
        for name, members in OPTIONS_BACK.items()
        if (value := getattr(message, name)) in members
    }


def _option_messages(rules: Ruleset) -> dict[str, Any]:
    return {
        name: values[getattr(rules, name)]
        for name, values in OPTIONS.items()
        if rules.ghost or name not in GHOST_OPTIONS
    }
