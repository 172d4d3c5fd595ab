"""Calculate the points and ranks at the end of a game."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from referee.rules.events import Termination
from referee.rules.table import Table


class Outcome(NamedTuple):
    """The end of a game by the rules, without forfeits."""

    termination: Termination
    scores: tuple[int, ...]
    """The points of each seat."""
    ranks: tuple[int, ...]
    """The rank of each seat, 1-2-2-4 (ruling R15)."""


def competition_ranks(keys: Sequence[tuple[float, ...]]) -> tuple[int, ...]:
    """Rank keys, the largest first; equal keys share a rank, as in 1-2-2-4 (ruling R15)."""
    ordered = sorted(keys, reverse=True)
    return tuple(ordered.index(key) + 1 for key in keys)


def score(table: Table, termination: Termination) -> Outcome:
    """Score a table as it stands (rulebooks, section "End").

    A seat has one point for each card on its own table, minus one for each card in its hand. With
    `hand_size_breaks_ties`, equal points rank by the smaller hand; otherwise they share a rank.
    """
    played = [sum(layer.size for layer in layers) for layers in table.layers]
    scores = tuple(on_table - held for on_table, held in zip(played, table.hand_sizes, strict=True))
    if table.ruleset.hand_size_breaks_ties:
        keys = [(points, -held) for points, held in zip(scores, table.hand_sizes, strict=True)]
    else:
        keys = [(points, 0) for points in scores]
    return Outcome(termination, scores, competition_ranks(keys))
