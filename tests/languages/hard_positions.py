"""Recognise positions in which a program that almost follows the policy of `greedy` goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from policy import is_snatched, size

from referee.pb import play_pb2, table_pb2

JOKER = 14
MANY = 3
PLAY = table_pb2.DECISION_KIND_PLAY
TAKE_OR_LEAVE = table_pb2.DECISION_KIND_TAKE_OR_LEAVE
RECLAIM_OR_DISCARD = table_pb2.DECISION_KIND_RECLAIM_OR_DISCARD
DRAW = table_pb2.DECISION_KIND_DRAW
OPTIONAL_DRAW = table_pb2.DECISION_KIND_OPTIONAL_DRAW
GHOST_SET = table_pb2.DECISION_KIND_GHOST_SET
ALL_RULES = table_pb2.Ruleset(ones_snatch_jokers=True, ones_snatch_thirteens=True)


class Position(NamedTuple):
    """A request with its ruleset and the right action."""

    request: play_pb2.Request
    rules: table_pb2.Ruleset
    action: table_pb2.Action

    @property
    def view(self) -> table_pb2.View:
        return self.request.view

    @property
    def plays(self) -> list[table_pb2.Layer]:
        return [action.play for action in self.request.legal]

    @property
    def tops(self) -> list[table_pb2.Layer]:
        """The top layers of the other seats."""
        return [
            table.layers[-1]
            for seat, table in enumerate(self.view.tables)
            if seat != self.view.seat and table.layers
        ]

    def victims(self, play: table_pb2.Layer, rules: table_pb2.Ruleset | None = None) -> list:
        return [top for top in self.tops if is_snatched(rules or self.rules, play, top)]

    def gain(self, play: table_pb2.Layer) -> int:
        return size(play) * (1 + len(self.victims(play)))

    @property
    def best_plays(self) -> list[table_pb2.Layer]:
        """The plays with the highest gain."""
        highest = max(map(self.gain, self.plays))
        return [play for play in self.plays if self.gain(play) == highest]

    @property
    def many(self) -> bool:
        return size(self.view.snatched) >= MANY

    @property
    def held(self) -> int:
        """The number of cards in the hand with the value of the snatched layer."""
        return self.view.hand[self.view.snatched.value]

    @property
    def slots(self) -> list[table_pb2.DrawDisplay]:
        """The slots that may be drawn from."""
        return [
            action.draw_display
            for action in self.request.legal
            if action.WhichOneof("kind") == "draw_display"
        ]

    @property
    def cards(self) -> list[int]:
        return [card for slot in self.slots for card in slot.cards]

    @property
    def drawn(self) -> list[int]:
        """The cards that the right action draws from the display."""
        return list(self.action.draw_display.cards)

    def worth(self, card: int) -> int:
        return 1000 if card == JOKER else 100 * self.view.hand[card] + card


# Plays


def gains_tie(at: Position) -> bool:
    return len(at.best_plays) > 1


def value_decides(at: Position) -> bool:
    fewest = min(play.jokers for play in at.best_plays)
    return [play.jokers for play in at.best_plays].count(fewest) > 1


def jokers_are_spared(at: Position) -> bool:
    return len({play.jokers for play in at.best_plays}) > 1


def jokers_alone_are_best(at: Position) -> bool:
    return at.action.play.value == JOKER


def more_snatch_with_fewer_cards(at: Position) -> bool:
    return size(at.action.play) < max(map(size, at.plays))


def several_victims(at: Position) -> bool:
    return len(at.victims(at.action.play)) > 1


def equal_is_no_victim(at: Position) -> bool:
    return any(
        (play.value, size(play)) == (top.value, size(top)) for play in at.plays for top in at.tops
    )


def ones_snatch(at: Position, value: int) -> bool:
    return any(
        top.value == value for play in at.plays if play.value == 1 for top in at.victims(play)
    )


def ones_may_not_snatch(at: Position, value: int) -> bool:
    """By other rules they would."""
    return any(
        top.value == value and not is_snatched(at.rules, play, top)
        for play in at.plays
        if play.value == 1
        for top in at.victims(play, ALL_RULES)
    )


def own_layer_is_lower(at: Position) -> bool:
    layers = at.view.tables[at.view.seat].layers
    return bool(layers) and any(is_snatched(at.rules, play, layers[-1]) for play in at.plays)


def layer_below_is_no_victim(at: Position) -> bool:
    """A layer below a top layer could be snatched if it were on top."""
    return any(
        is_snatched(at.rules, play, layer)
        for play in at.plays
        for seat, table in enumerate(at.view.tables)
        if seat != at.view.seat
        for layer in table.layers[:-1]
    )


def ghost_is_no_victim(at: Position) -> bool:
    return any(
        size(play) == count and value < play.value
        for play in at.plays
        for value, count in enumerate(at.view.ghost)
        if count
    )


# Snatched layers


def size_decides(at: Position) -> bool:
    return at.many and not at.held


def hand_decides(at: Position) -> bool:
    return not at.many and bool(at.held)


def neither(at: Position) -> bool:
    return not at.many and not at.held


def jokers_count(at: Position) -> bool:
    return at.many and at.view.snatched.naturals < MANY


def jokers_snatched(at: Position) -> bool:
    return at.view.snatched.value == JOKER


# Draws


def slot_0_is_best(at: Position) -> bool:
    """In protobuf, slot 0 has no bytes."""
    return bool(at.drawn) and at.action.draw_display.slot == 0


def joker_is_best(at: Position) -> bool:
    return JOKER in at.drawn


def card_in_hand_is_best(at: Position) -> bool:
    return any(at.view.hand[card] for card in at.drawn)


def more_beat_higher(at: Position) -> bool:
    return bool(at.drawn) and max(at.drawn) < max(at.cards)


def deck_is_best(at: Position) -> bool:
    return at.action.choice == table_pb2.CHOICE_DRAW_DECK


def deck_ties_with_a_6(at: Position) -> bool:
    return deck_is_best(at) and 6 in at.cards


def deck_loses_to_a_7(at: Position) -> bool:
    return max(map(at.worth, at.cards)) == 7


def deck_is_empty(at: Position) -> bool:
    return at.view.deck_size == 0


def slot_is_empty(at: Position) -> bool:
    return any(not slot.cards for slot in at.view.display)


def cards_repeat(at: Position) -> bool:
    """Only the leftmost of equal slots is legal."""
    return len(at.slots) < sum(bool(slot.cards) for slot in at.view.display)


def group_is_best(at: Position) -> bool:
    return len(at.drawn) > 1


def group_is_not_best(at: Position) -> bool:
    return not group_is_best(at) and any(len(slot.cards) > 1 for slot in at.slots)


def group_hides_its_best(at: Position) -> bool:
    return any(at.worth(slot.cards[0]) < max(map(at.worth, slot.cards)) for slot in at.slots)


def slots_tie(at: Position) -> bool:
    worths = [max(map(at.worth, slot.cards)) for slot in at.slots]
    return worths.count(max(worths)) > 1


def pass_is_best(at: Position) -> bool:
    return at.action.choice == table_pb2.CHOICE_PASS


def held_card_is_drawn(at: Position) -> bool:
    """The drawn card is worth little more than a pass."""
    return bool(at.drawn) and max(map(at.worth, at.drawn)) < 200


# The ghost


def held_set_is_best(at: Position) -> bool:
    return bool(at.view.hand[at.action.ghost_value])


def lower_set_is_best(at: Position) -> bool:
    highest = max(action.ghost_value for action in at.request.legal)
    return at.action.HasField("ghost_value") and at.action.ghost_value < highest


def set_is_better_than_a_pass(at: Position) -> bool:
    return at.action.HasField("ghost_value") and at.request.legal[-1].HasField("choice")


def single_set_is_declined(at: Position) -> bool:
    return pass_is_best(at) and len(at.request.legal) == 2


_DRAWS = {
    "slot 0 is best": slot_0_is_best,
    "a joker is best": joker_is_best,
    "more of it beat a higher card": more_beat_higher,
    "the deck is empty": deck_is_empty,
    "a slot is empty": slot_is_empty,
    "cards repeat": cards_repeat,
}
_GROUPS = {
    "a group is best": group_is_best,
    "a group is not best": group_is_not_best,
    "a group begins with a lesser card": group_hides_its_best,
    "slots tie": slots_tie,
}
_SNATCHED = {
    "size decides": size_decides,
    "the hand decides": hand_decides,
    "neither": neither,
    "jokers count for the size": jokers_count,
    "jokers alone": jokers_snatched,
}
Sign = Callable[[Position], bool]
SIGNS: dict[table_pb2.DecisionKind, dict[str, Sign]] = {
    PLAY: {
        "gains tie": gains_tie,
        "value decides": value_decides,
        "jokers are spared": jokers_are_spared,
        "jokers alone are best": jokers_alone_are_best,
        "fewer cards snatch more": more_snatch_with_fewer_cards,
        "several victims": several_victims,
        "equal is no victim": equal_is_no_victim,
        "1s snatch jokers": lambda at: ones_snatch(at, JOKER),
        "1s snatch 13s": lambda at: ones_snatch(at, 13),
        "1s may not snatch jokers": lambda at: ones_may_not_snatch(at, JOKER),
        "1s may not snatch 13s": lambda at: ones_may_not_snatch(at, 13),
        "the own layer is lower": own_layer_is_lower,
        "a layer below is lower": layer_below_is_no_victim,
        "the ghost is lower": ghost_is_no_victim,
    },
    TAKE_OR_LEAVE: _SNATCHED,
    RECLAIM_OR_DISCARD: _SNATCHED,
    DRAW: _DRAWS
    | _GROUPS
    | {
        "the deck is best": deck_is_best,
        "the deck ties": deck_ties_with_a_6,
        "the deck just loses": deck_loses_to_a_7,
    },
    OPTIONAL_DRAW: _DRAWS
    | _GROUPS
    | {"pass is best": pass_is_best, "a single held card is drawn": held_card_is_drawn},
    GHOST_SET: {
        "a held set is best": held_set_is_best,
        "a lower set is best": lower_set_is_best,
        "a set is better than a pass": set_is_better_than_a_pass,
        "a pass is best": pass_is_best,
        "a single set is declined": single_set_is_declined,
    },
}
"""The tests of what makes a position hard, by kind of decision and name."""


def signs(position: Position) -> Iterator[str]:
    """Yield the names of what makes this position hard."""
    for name, holds in SIGNS[position.request.kind].items():
        if holds(position):
            yield name
