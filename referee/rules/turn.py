"""Run a turn in the order of the rulebooks: who decides what, and when.

The functions are generators. They yield a decision and receive the action, which `Game` has checked.
No local variable may hold a card across a `yield`: the table and the actions since the start of the
turn must be the whole state, so that a game can be copied.
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
# The game can also end at any draw or refill (`GameEnded`).
#
#   A: PLAY --its last card--> game over
#     |
#     v
#   A: GHOST_SET   (duel; only if several of the ghost's sets match)
#     |
#     v
#   next opponent clockwise whose top layer is snatched <---------------------------+
#     |                    |                                                        |
#     | none left          +--> A: TAKE_OR_LEAVE --take--> V: DRAW, once a card ----+
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
    """Run one turn of the active player, steps 1 to 4. Raises `GameEnded` when the game ends."""
    seat = table.active
    play = yield Decision(seat, DecisionKind.PLAY, legal_plays(table.hands[seat]))
    assert isinstance(play, Play)  # noqa: S101 - checked against the legal actions
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
    """Snatch a victim's top layer and resolve it completely (turn, step 3)."""
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
        if len(options) > 1:  # ruling R7
            source = yield Decision(victim, DecisionKind.DRAW, options)
        table.draw(victim, source)
    table.victim = None
    table.refill_display()


def resolve_ghost_snatch(table: Table) -> Generator[Decision, Action, bool]:
    """Snatch one of the ghost's sets if one matches; return True if so (the duel)."""
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
    if len(options) > 1:  # ruling R7
        chosen = yield Decision(table.active, DecisionKind.GHOST_SET, options)
    assert isinstance(chosen, SnatchGhost)  # noqa: S101 - checked against the legal actions
    table.snatch_ghost(chosen.value)
    return True


def optional_draw(table: Table) -> Steps:
    """Let an attacker who snatched nothing draw a card (turn, step 4; rulings R3, R4)."""
    table.cards_to_draw = 1
    options = (Choice.PASS, *table.draw_options())
    source = yield Decision(table.active, DecisionKind.OPTIONAL_DRAW, options)
    if source is Choice.PASS:
        table.cards_to_draw = 0
        table.events.append(Passed(table.active))
        return
    table.draw(table.active, source)
    table.refill_display()
