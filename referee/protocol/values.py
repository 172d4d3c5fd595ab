"""Which enum value of the schema stands for which of the project's. Complete; a test says so.

Values as messages and back: the parts that requests and records share.
"""

from __future__ import annotations

from collections.abc import Iterable

from referee.clocks import Clocks
from referee.pb import play_pb2, table_pb2
from referee.pb import table_pb2 as pb
from referee.rules.actions import Action, Choice, DecisionKind, DrawDisplay, Play, SnatchGhost
from referee.rules.cards import Layer
from referee.rules.events import (
    Discarded,
    DisplayRefilled,
    Drawn,
    Event,
    GameOver,
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
from referee.rules.ruleset import RULESETS, EndOn, Ruleset

CHOICES: dict[Choice, pb.Choice] = {
    choice: getattr(pb, f"CHOICE_{choice.name}") for choice in Choice
}
CHOICES_BACK = {value: choice for choice, value in CHOICES.items()}
KINDS: dict[DecisionKind, pb.DecisionKind] = {
    kind: getattr(pb, f"DECISION_KIND_{kind.name}") for kind in DecisionKind
}
TERMINATIONS: dict[Termination, pb.Termination] = {
    termination: getattr(pb, f"TERMINATION_{termination.name}") for termination in Termination
}
TERMINATIONS_BACK = {value: termination for termination, value in TERMINATIONS.items()}
END_ON: dict[EndOn, pb.EndOn] = {end_on: getattr(pb, f"END_ON_{end_on.name}") for end_on in EndOn}
END_ON_BACK = {value: end_on for end_on, value in END_ON.items()}


def ruleset_message(rules: Ruleset) -> table_pb2.Ruleset:
    """The rules as a message."""
    return table_pb2.Ruleset(
        name=rules.name,
        optional_draw=rules.optional_draw,
        ones_snatch_jokers=rules.ones_snatch_jokers,
        ones_snatch_thirteens=rules.ones_snatch_thirteens,
        hand_size_breaks_ties=rules.hand_size_breaks_ties,
        ghost=rules.ghost,
        end_on=END_ON[rules.end_on],
        max_turns=rules.max_turns,
    )


def clocks_message(clocks: Clocks) -> play_pb2.Clocks:
    """The clocks as a message."""
    return play_pb2.Clocks(
        start_up_us=clocks.start_up_us,
        game_start_us=clocks.game_start_us,
        decision_us=clocks.decision_us,
        bank_us=clocks.bank_us or 0,
        increment_us=clocks.increment_us,
    )


def layer_message(cards: Layer) -> table_pb2.Layer:
    """A layer as a message."""
    return table_pb2.Layer(value=cards.value, naturals=cards.naturals, jokers=cards.jokers)


def action_message(chosen: Action) -> table_pb2.Action:
    """An action as a message."""
    if isinstance(chosen, Play):
        return table_pb2.Action(play=layer_message(chosen.layer))
    if isinstance(chosen, Choice):
        return table_pb2.Action(choice=CHOICES[chosen])
    if isinstance(chosen, DrawDisplay):
        return table_pb2.Action(
            draw_display=table_pb2.DrawDisplay(slot=chosen.slot, cards=chosen.cards)
        )
    return table_pb2.Action(ghost_value=chosen.value)


def event_message(event: Event) -> table_pb2.Event:  # noqa: C901, PLR0911 - one line a kind
    """An event as a message; it must be redacted already (`events.seen_by`)."""
    kind = table_pb2.Event
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
            return kind(display_refilled=kind.DisplayRefilled(cards=_slot_cards(turned)))
        case GhostSnatched(seat, cards):
            return kind(ghost_snatched=kind.GhostSnatched(seat=seat, layer=layer_message(cards)))
        case GhostRefilled(ghost_cards, display_cards):
            refilled = kind.GhostRefilled(
                ghost_cards=ghost_cards, display_cards=_slot_cards(display_cards)
            )
            return kind(ghost_refilled=refilled)
        case Passed(seat):
            return kind(passed=kind.Passed(seat=seat))
        case GameOver(termination, scores, ranks):
            over = kind.GameOver(termination=TERMINATIONS[termination], scores=scores, ranks=ranks)
            return kind(game_over=over)


def _slot_cards(cards: Iterable[SlotCard]) -> list[table_pb2.SlotCard]:
    return [table_pb2.SlotCard(slot=slot, card=card) for slot, card in cards]


def action_value(message: table_pb2.Action) -> Action:
    """A message as an action. Raises ValueError when it names none."""
    kind = message.WhichOneof("kind")
    if kind == "play":
        return Play(Layer(message.play.value, message.play.naturals, message.play.jokers))
    if kind == "choice" and message.choice in CHOICES_BACK:
        return CHOICES_BACK[message.choice]
    if kind == "draw_display":
        return DrawDisplay(message.draw_display.slot, tuple(message.draw_display.cards))
    if kind == "ghost_value":
        return SnatchGhost(message.ghost_value)
    raise ValueError("the message names no action")


def clocks_value(message: play_pb2.Clocks) -> Clocks:
    """A message as clocks."""
    return Clocks(
        start_up_us=message.start_up_us,
        game_start_us=message.game_start_us,
        decision_us=message.decision_us,
        bank_us=message.bank_us or None,
        increment_us=message.increment_us,
    )


def ruleset_value(message: table_pb2.Ruleset) -> Ruleset:
    """A message as a ruleset. Raises ValueError when it is none that this referee knows."""
    preset = RULESETS.get(message.name)
    if preset is None or message.end_on not in END_ON_BACK:
        raise ValueError(f"no ruleset {message.name!r} is known")
    rules = preset.with_options(end_on=END_ON_BACK[message.end_on], max_turns=message.max_turns)
    if ruleset_message(rules) != message:
        raise ValueError(f"the ruleset {message.name!r} has other rules here")
    return rules
