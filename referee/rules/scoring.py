"""Points and ranks at the end of a game."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from referee.rules.events import Termination
from referee.rules.table import Table


class Outcome(NamedTuple):
    """How a game ended by the rules."""

    termination: Termination
    scores: tuple[int, ...]
    """Points of each seat."""
    ranks: tuple[int, ...]
    """Rank of each seat, 1-2-2-4 (ruling R15)."""


def competition_ranks(keys: Sequence[tuple[float, ...]]) -> tuple[int, ...]:
    """Ranks 1-2-2-4 of some keys, the largest first (ruling R15)."""
    ordered = sorted(keys, reverse=True)
    return tuple(ordered.index(key) + 1 for key in keys)


def score(table: Table, termination: Termination) -> Outcome:
    """Score a table as it stands (section "End").

    One point for each card on one's own table, minus one for each in hand. Ties go to the smaller
    hand where the ruleset says so, and are shared otherwise.
    """
    played = [sum(layer.size for layer in layers) for layers in table.layers]
    scores = tuple(on_table - held for on_table, held in zip(played, table.hand_sizes, strict=True))
    if table.ruleset.hand_size_breaks_ties:
        keys = [(points, -held) for points, held in zip(scores, table.hand_sizes, strict=True)]
    else:
        keys = [(points, 0) for points in scores]
    return Outcome(termination, scores, competition_ranks(keys))
