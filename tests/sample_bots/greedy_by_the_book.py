"""Implement the policy `greedy` a second time, from the steps in the README alone.

It differs from the bot as much as possible: no SDK, no `max`, only plain comparisons of messages.
"""

from __future__ import annotations

from referee.pb import play_pb2, table_pb2

JOKER = 14


def size(layer):
    return layer.naturals + layer.jokers


def best(options, is_better):
    """Return the first of the best options."""
    chosen = options[0]
    for option in options[1:]:
        if is_better(option, chosen):
            chosen = option
    return chosen


def is_snatched(rules: table_pb2.Ruleset, attacker, victim):
    if size(attacker) != size(victim):
        return False
    if victim.value == 13 and attacker.value == 1 and rules.ones_snatch_thirteens:
        return True
    if victim.value == JOKER and attacker.value == 1 and rules.ones_snatch_jokers:
        return True
    return victim.value < attacker.value


def choose_play(request: play_pb2.Request, rules):
    tops = [
        table.layers[-1]
        for seat, table in enumerate(request.view.tables)
        if seat != request.view.seat and table.layers
    ]

    def gain(action):
        victims = [top for top in tops if is_snatched(rules, action.play, top)]
        return size(action.play) * (1 + len(victims))

    def is_better(one, other):
        if gain(one) != gain(other):
            return gain(one) > gain(other)
        if one.play.jokers != other.play.jokers:
            return one.play.jokers < other.play.jokers
        return one.play.value > other.play.value

    return best(request.legal, is_better)


def choose_draw(request: play_pb2.Request):
    hand = request.view.hand

    def card_worth(card):
        return 1000 if card == JOKER else 100 * hand[card] + card

    def is_worthier(one, other):
        return card_worth(one) > card_worth(other)

    def worth(action):
        kind = action.WhichOneof("kind")
        if kind == "draw_display":
            return card_worth(best(action.draw_display.cards, is_worthier))
        if kind == "ghost_value":
            return card_worth(action.ghost_value)
        return {table_pb2.CHOICE_PASS: 99, table_pb2.CHOICE_DRAW_DECK: 6}[action.choice]

    return best(request.legal, lambda one, other: worth(one) > worth(other))


def choose(request: play_pb2.Request, rules: table_pb2.Ruleset) -> table_pb2.Action:
    layer = request.view.snatched
    worth_having = size(layer) >= 3 or request.view.hand[layer.value] >= 1
    if request.kind == table_pb2.DECISION_KIND_PLAY:
        return choose_play(request, rules)
    if request.kind == table_pb2.DECISION_KIND_TAKE_OR_LEAVE:
        choice = table_pb2.CHOICE_TAKE if worth_having else table_pb2.CHOICE_LEAVE
        return table_pb2.Action(choice=choice)
    if request.kind == table_pb2.DECISION_KIND_RECLAIM_OR_DISCARD:
        choice = table_pb2.CHOICE_RECLAIM if worth_having else table_pb2.CHOICE_DISCARD
        return table_pb2.Action(choice=choice)
    return choose_draw(request)
