"""Provide shuffled decks and policies for random games."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product

from referee.rules.actions import Action, Choice, Decision, Play
from referee.rules.ruleset import (
    GHOST_OPTIONS,
    RULESETS,
    GhostOverflow,
    GhostSnatch,
    GhostStart,
    Ruleset,
)

DUELS = {
    "-".join(["duel", *(each.value for each in options if each not in GHOST_OPTIONS.values())]): (
        RULESETS["duel"].with_options(**dict(zip(GHOST_OPTIONS, options, strict=True)))
    )
    for options in product(GhostStart, GhostSnatch, GhostOverflow)
}
"""The duel with all combinations of its own options. A name has the values that are not the default."""
VARIANTS = RULESETS | DUELS
"""All rulesets and duels by name."""
TABLES = [
    (ruleset, players)
    for ruleset in VARIANTS.values()
    for players in range(ruleset.min_players, ruleset.max_players + 1)
]
"""Every ruleset at every table size."""
TABLE_NAMES = [
    f"{name}-{players}"
    for name, ruleset in VARIANTS.items()
    for players in range(ruleset.min_players, ruleset.max_players + 1)
]


def shuffled(ruleset: Ruleset, seed: int) -> tuple[int, ...]:
    """Return a shuffled deck of a ruleset. Every version of Python makes the same deck for a seed."""
    jokers = 1 if ruleset.ghost else 5
    deck = [value for value in range(1, 14) for _ in range(8)] + [14] * jokers
    chance = random.Random(seed)
    keys = [chance.random() for _ in deck]
    return tuple(card for _, card in sorted(zip(keys, deck, strict=True)))


Policy = Callable[[Decision, random.Random], Action]


def pick(chance: random.Random, options: Sequence[Action]) -> Action:
    """Return a random option. Every version of Python returns the same one for a seed."""
    return options[int(chance.random() * len(options))]


def anything(decision: Decision, chance: random.Random) -> Action:
    """Choose any legal action. This gives games of all lengths."""
    return pick(chance, decision.legal)


def hurry(decision: Decision, chance: random.Random) -> Action:
    """Play as many cards as possible and take nothing, so that a hand is soon empty."""
    if isinstance(decision.legal[0], Play):
        return max(decision.legal, key=lambda play: (play.layer.size, play.layer.value))
    if Choice.LEAVE in decision.legal:
        return Choice.LEAVE
    return pick(chance, decision.legal)


def dawdle(decision: Decision, chance: random.Random) -> Action:
    """Play few cards and draw many, so that the deck runs out."""
    if isinstance(decision.legal[0], Play):
        smallest = min(play.layer.size for play in decision.legal)
        return pick(chance, [play for play in decision.legal if play.layer.size == smallest])
    options = [action for action in decision.legal if action not in (Choice.PASS, Choice.RECLAIM)]
    return pick(chance, options)


def circle(decision: Decision, chance: random.Random) -> Action:
    """Leave and reclaim layers, so that nobody draws and an expert game may never end."""
    for wish in (Choice.LEAVE, Choice.RECLAIM, Choice.PASS):
        if wish in decision.legal:
            return wish
    return pick(chance, decision.legal)


POLICIES: tuple[Policy, ...] = (anything, hurry, dawdle, circle)
