"""A turn, as the rulebooks tell it: who decides what, in which order.

Generators: they yield a decision and receive the action, already checked to be legal. No card lives
in a local across a yield, so that a table and the actions since the turn began say everything.
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


def turn(table: Table) -> Steps:
    """One turn of the active player, steps 1 to 4. Raises `GameEnded` where the game ends."""
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
    """Snatch one of the ghost's sets, where one matches; returns whether one did (the duel)."""
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
    """An attacker who snatched from nobody may draw a card (turn, step 4; rulings R3, R4)."""
    table.cards_to_draw = 1
    options = (Choice.PASS, *table.draw_options())
    source = yield Decision(table.active, DecisionKind.OPTIONAL_DRAW, options)
    if source is Choice.PASS:
        table.cards_to_draw = 0
        table.events.append(Passed(table.active))
        return
    table.draw(table.active, source)
    table.refill_display()
