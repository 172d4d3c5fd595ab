"""Choose the bots for the places of a later stage, so that bots that have met less before meet more.

Equal stages have equal tables. If every bot kept its place in them, an extension would only repeat the tables of its stage, and bots
that have never met would never meet.
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
"""How many multiplications `choose_places` may take, about one second of CPU time. A swap takes as many as the cube of the number of
bots."""


def count_meetings(bots: int, tables: Sequence[BotTable]) -> Meetings:
    """Return how often the bots 0, 1, … meet at some tables."""
    meetings = np.zeros((bots, bots))
    for table in tables:
        meetings[np.ix_(table, table)] += 1
    np.fill_diagonal(meetings, 0)
    return meetings


def choose_places(before: Meetings, played: Sequence[int], tables: Sequence[BotTable]) -> list[int]:
    """Return the bot for each place of a stage. Its tables contain places: numbers from 0, as many as there are bots.

    Bots that have played less before get places with more matches. This leaves a choice among equal bots and among equal
    places. In the first stage it follows their numbers. In later stages it begins with a shuffle. Then two bots are swapped again and
    again, each time those whose swap reduces the sum of the squares of all numbers of meetings most, until no swap reduces it or
    `_EFFORT` is used up.

    Args:
        before: the meetings in the stages before.
        played: for each bot, its number of matches in the stages before.
        tables: the tables of the stage.
    """
    bots = len(played)
    rank = Random(0).random if before.any() else int  # noqa: S311 - no secret
    own = np.bincount(np.concatenate(tables), minlength=bots)
    most_first = sorted(range(bots), key=lambda place: (-own[place], rank()))
    least_first = sorted(range(bots), key=lambda bot: (played[bot], rank()))
    places = np.empty(bots, dtype=np.intp)
    places[least_first] = most_first
    meetings, totals = count_meetings(bots, tables), np.array(played)
    for _ in range(_EFFORT // bots**3):
        new, matches = meetings[np.ix_(places, places)], own[places]
        is_equal = (matches[:, None] == matches) | (totals[:, None] == totals)
        gains = np.where(is_equal, _gains(before, new), 0)
        first, second = divmod(int(gains.argmax()), bots)
        if gains[first, second] <= 0:
            break
        places[[first, second]] = places[[second, first]]
    names = [0] * bots
    for bot, place in enumerate(places):
        names[place] = bot
    return names


def _gains(before: Meetings, new: Meetings) -> Meetings:
    """Return, for each pair of bots, by how much their swap reduces the sum of all products of meetings before and new meetings.

    The sum of the squares falls by twice as much, because a swap leaves the squares of each part as they are.
    """
    products = before @ new
    own = products.diagonal()
    return 2 * (own[:, None] + own - products - products.T - 2 * before * new)
