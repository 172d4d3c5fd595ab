"""Run a turn in the order of the rulebooks: who decides what, and when.

Section 2 of `proto/README.md` describes steps 1 to 4 of a turn, and `referee/rules/README.md` has the
rulings. The functions here are generators. They yield a decision and receive an action, which `Game` has
checked. At every `yield`, all cards must be in the `Table`, because views are made from the `Table`. So no
card may be in a local variable only.
"""

from __future__ import annotations

from collections.abc import Generator

from referee.rules.actions import (
    RECLAIM_OR_DISCARD,
    TAKE_OR_LEAVE,
    Action,
    Choice,
    Decision,
    DecisionKind,
    Play,
    SnatchGhost,
    legal_plays,
)
from referee.rules.events import Passed
from referee.rules.table import GHOST_LIMIT, Table

Steps = Generator[Decision, Action, None]

# The decisions of a turn. A is the active player (the attacker), V the owner of the snatched layer.
# The game can also end at any draw or refill (`GameEnded`). A set is all the ghost's cards of one value.
#
#   A: PLAY --its last card--> game over
#     |
#     v
#   A: GHOST_SET   (only in a duel, and only if A can snatch one of several sets)
#     |
#     v
#   next opponent clockwise whose top layer is snatched <---------------------------+
#     |                    |                                                        |
#     | none left          +--> A: TAKE_OR_LEAVE --take--> V: DRAW, once per card --+
#     |                                     |                   ^                   |
#     |                                   leave                 | discard           |
#     |                                     v                   |                   |
#     |                         V: RECLAIM_OR_DISCARD ----------+                   |
#     |                                     |                                       |
#     |                                     +--reclaim------------------------------+
#     v
#   A: OPTIONAL_DRAW   (only with `optional_draw`, and if nothing was snatched)
#     |
#     v
#   the next turn


def turn(table: Table) -> Steps:
    """Run one turn of the active player, steps 1 to 4. Raises GameEnded if a move of cards ends the game."""
    seat = table.active
    play = yield Decision(seat, DecisionKind.PLAY, legal_plays(table.hands[seat]))
    assert isinstance(play, Play)  # noqa: S101 - `Game` checked it against the legal actions
    table.play(play.layer)
    snatched_ghost = yield from resolve_ghost_snatch(table)
    victims = 0
    players = table.players
    for offset in range(1, players):
        victim = (seat + offset) % players
        layers = table.layers[victim]
        if layers and table.ruleset.snatches(table.top(seat), layers[-1]):
            victims += 1
            yield from resolve_snatch(table, victim)
    if table.ruleset.optional_draw and not victims and not snatched_ghost:
        yield from optional_draw(table)


def resolve_snatch(table: Table, victim: int) -> Steps:
    """Snatch the victim's top layer and request all decisions about it (step 3 of a turn)."""
    table.snatch(victim)
    if (yield Decision(table.active, DecisionKind.TAKE_OR_LEAVE, TAKE_OR_LEAVE)) is Choice.TAKE:
        table.take()
    else:
        table.leave()
        choice = yield Decision(victim, DecisionKind.RECLAIM_OR_DISCARD, RECLAIM_OR_DISCARD)
        if choice is Choice.RECLAIM:
            table.reclaim()
            return
        table.discard()
    while table.cards_to_draw:
        options = table.draw_options()
        source = options[0]
        if len(options) > 1:  # one option needs no request (ruling R7)
            source = yield Decision(victim, DecisionKind.DRAW, options)
        table.draw(victim, source)
    table.victim = None
    table.refill_display()


def resolve_ghost_snatch(table: Table) -> Generator[Decision, Action, bool]:
    """In a duel, snatch a set from the ghost if the layer just played can snatch one.

    Returns True if a set was snatched, and False if no set can be snatched or the game has no ghost.
    """
    if table.ghost is None:
        return False
    layer = table.top(table.active)
    options = tuple(
        SnatchGhost(value)
        for value in range(1, min(layer.value, GHOST_LIMIT))
        if table.ghost[value] == layer.size
    )
    if not options:
        return False
    chosen: Action = options[0]
    if len(options) > 1:  # one option needs no request (ruling R7)
        chosen = yield Decision(table.active, DecisionKind.GHOST_SET, options)
    assert isinstance(chosen, SnatchGhost)  # noqa: S101 - `Game` checked it against the legal actions
    table.snatch_ghost(chosen.value)
    return True


def optional_draw(table: Table) -> Steps:
    """Let the active player draw a card or pass (step 4 of a turn; rulings R3 and R4)."""
    table.cards_to_draw = 1
    options = (Choice.PASS, *table.draw_options())
    source = yield Decision(table.active, DecisionKind.OPTIONAL_DRAW, options)
    if source is Choice.PASS:
        table.cards_to_draw = 0
        table.events.append(Passed(table.active))
        return
    table.draw(table.active, source)
    table.refill_display()
