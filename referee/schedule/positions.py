"""Say which bot has which number in the tables of a stage.

Pairs that have met rarely in the stages before should meet often in this stage. Two stages with equally many bots, seats
and matches have the same tables of numbers. If every bot kept its number, an extension would only repeat tables, and
pairs that have never met would never meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import numpy.typing as npt

from referee.schedule import BotTable

Meetings = npt.NDArray[np.float64]
"""How often each bot has met each other bot; shape (bots, bots), symmetric, with zeros on the diagonal."""
_EFFORT = 2_000_000_000
"""How many multiplications `assign_bots` may do. They take about one second of CPU time. With n bots, each swap takes n³
multiplications."""


def count_meetings(bots: int, tables: Sequence[BotTable]) -> Meetings:
    """Return how often the bots 0, 1, … meet at some tables, which all have the same number of seats."""
    meetings = np.zeros((bots, bots))
    places = np.array(tables, dtype=int, ndmin=2)  # without tables, an array of shape (1, 0)
    np.add.at(meetings, (places[:, :, None], places[:, None, :]), 1)
    np.fill_diagonal(meetings, 0)
    return meetings


def assign_bots(before: Meetings, played: Sequence[int], tables: Sequence[BotTable]) -> list[int]:
    """Return the bot for each position of a stage. A position is a number in the tables of the stage; there is one for each bot.

    A bot with fewer matches in the stages before gets a position with more matches in this stage. In the first stage,
    bots with equally many matches before, and positions with equally many matches in this stage, stay in the order of their
    numbers. In later stages, these equal bots and positions are shuffled, with the same seed each time.

    Then the function swaps the positions of two bots, again and again. The two bots must have had equally many matches
    before, or have positions with equally many matches. For each pair, the function squares the number of meetings,
    before and in this stage together. It always makes the swap that most reduces the sum of these squares. It stops when
    no swap reduces this sum, or when `_EFFORT` is used up.

    Args:
        before: how often the bots have met in the stages before.
        played: for each bot, its number of matches in the stages before.
        tables: the tables of the stage.
    """
    bots = len(played)
    rank = Random(0).random if before.any() else int  # noqa: S311 - no secret
    own = np.bincount(np.concatenate(tables), minlength=bots)
    most_first = sorted(range(bots), key=lambda position: (-own[position], rank()))
    least_first = sorted(range(bots), key=lambda bot: (played[bot], rank()))
    positions = np.empty(bots, dtype=np.intp)
    positions[least_first] = most_first
    meetings, totals = count_meetings(bots, tables), np.array(played)
    for _ in range(_EFFORT // bots**3):
        new, matches = meetings[np.ix_(positions, positions)], own[positions]
        is_equal = (matches[:, None] == matches) | (totals[:, None] == totals)
        gains = np.where(is_equal, _gains(before, new), 0)
        first, second = divmod(int(gains.argmax()), bots)
        if gains[first, second] <= 0:
            break
        positions[[first, second]] = positions[[second, first]]
    found = [0] * bots
    for bot, position in enumerate(positions):
        found[position] = bot
    return found


def _gains(before: Meetings, new: Meetings) -> Meetings:
    """Return, for each pair of bots, by how much a swap of their positions reduces the sum of `before * new`.

    The sum of `(before + new)²` falls by twice as much, because a swap does not change the sums of `before²` and `new²`.

    Args:
        before: how often the bots have met in the stages before.
        new: how often the bots meet in this stage with their present positions.
    """
    products = before @ new
    own = products.diagonal()
    return 2 * (own[:, None] + own - products - products.T - 2 * before * new)
