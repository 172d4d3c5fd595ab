"""Choose the tables of later rounds again, when some neighbours by fit are settled and others are open.

`ratings.judge` says at a look which neighbours are settled. The stages and rounds of the matches after the look stay as
planned. Only the bots at their tables are chosen again, so that the open pairs meet more often. The next look chooses
again, so this look changes only the tables of the rounds before the next look. The choice is not random: the tables
depend only on the schedule and on the open pairs of each look. So anybody who has the results can compute the same tables.

The tables of a stage are filled pair by pair:

- The open pair that has met least since the look comes first. Among pairs that have met equally often, a pair with one
  bot already at the table comes before a pair with none. Among equal pairs, the one whose bots have played least comes
  first. A pair is skipped if the table has too few free seats for it.
- If no open pair fits any more, a free seat goes to the bot that has played least. Bots of open pairs come before others.

Then the bots get a clockwise order. For each order, `SeatOrders` counts how often each bot has already had its left neighbour
of this order in the stage. It chooses the order with the smallest sum of these counts.

A stage in which all pairs are settled plays no further match. A stage in which no pair is settled keeps its planned tables.
A gauntlet also keeps its planned tables while a pair is open. Each of its tables has one challenger, so an open pair of
two challengers could not meet anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations, groupby, pairwise, permutations

from referee.records import ScheduledGame
from referee.schedule import Match, Stage

Pair = tuple[int, int]
"""Two bots, as positions in the tournament's list of bots."""


def collect_matches(bots: Sequence[str], games: Iterable[ScheduledGame]) -> list[Match]:
    """Return the matches from which `expand_matches` has made the games.

    Args:
        bots: the names of all bots of the tournament.
        games: all games of the matches, in schedule order.
    """
    position = {bot: number for number, bot in enumerate(bots)}
    firsts = (next(group) for _, group in groupby(games, key=lambda game: game.match))
    return [
        Match(first.stage, first.round, tuple(position[bot] for bot in first.bots))
        for first in firsts
    ]


def redraw(
    stages: Sequence[Stage],
    matches: Sequence[Match],
    open_pairs: Sequence[Sequence[Pair] | None],
    *,
    rounds: int,
    next_rounds: int,
) -> list[Match]:
    """Return all matches of a tournament after a look. The matches before the look stay; later ones may change or be left out.

    Args:
        stages: the stages of the tournament.
        matches: the matches before the look, and those that would follow without it, in the order of play.
        open_pairs: for each stage, the open pairs of its ruleset. The sequence is empty if all pairs are settled; it is
            None if all pairs are open.
        rounds: number of rounds before the look.
        next_rounds: number of rounds before the next look.
    """
    result = [match for match in matches if match.round <= rounds]
    drawn: dict[int, Iterator[tuple[int, ...]]] = {
        number: _Draw(
            sorted({bot for match in result if match.stage == number for bot in match.order}),
            stage.seats,
            pairs,
            (match.order for match in result if match.stage == number),
        ).orders()
        for number, (stage, pairs) in enumerate(zip(stages, open_pairs, strict=True))
        if pairs and not stage.challengers
    }
    for match in matches[len(result) :]:
        pairs = open_pairs[match.stage]
        if match.stage in drawn and match.round <= next_rounds:
            result.append(Match(match.stage, match.round, next(drawn[match.stage])))
        elif pairs is None or pairs:
            result.append(match)
    return result


class _Draw:
    """Draws the tables of one stage, match after match.

    Args:
        bots: the bots of the stage.
        seats: the number of seats of a table.
        open_pairs: the pairs that are open after the look, at least one.
        earlier: the clockwise order of the bots in each earlier match of the stage.
    """

    def __init__(
        self,
        bots: Sequence[int],
        seats: int,
        open_pairs: Iterable[Pair],
        earlier: Iterable[Sequence[int]],
    ) -> None:
        self._bots = bots
        self._seats = seats
        self._met = {(min(pair), max(pair)): 0 for pair in open_pairs}
        """How often each open pair has met since the look."""
        self._open_bots = {bot for pair in self._met for bot in pair}
        self._played = Counter[int]()
        """How many matches of the stage each bot has so far."""
        earlier = list(earlier)
        for order in earlier:
            self._played.update(order)
        self._seat_orders = SeatOrders(earlier)

    def orders(self) -> Iterator[tuple[int, ...]]:
        """Yield the clockwise order of the bots in each further match."""
        while True:
            order = self._seat_orders.choose(sorted(self._fill_table()))
            self._played.update(order)
            for pair in combinations(sorted(order), 2):
                if pair in self._met:
                    self._met[pair] += 1
            yield order

    def _fill_table(self) -> set[int]:
        table = set[int]()
        while len(table) < self._seats:
            pair = self._choose_pair(table)
            if pair is None:
                table.add(min((bot for bot in self._bots if bot not in table), key=self._turn))
            else:
                table.update(pair)
        return table

    def _choose_pair(self, table: Collection[int]) -> Pair | None:
        """Return the open pair to add to an unfinished table; None if no open pair fits."""
        free = self._seats - len(table)
        ranked = []
        for pair, met in self._met.items():
            new = [bot for bot in pair if bot not in table]
            if 0 < len(new) <= free:
                played = sum(self._played[bot] for bot in pair)
                ranked.append(((met, len(new), played), pair))
        return min(ranked)[1] if ranked else None

    def _turn(self, bot: int) -> tuple[bool, int, int]:
        """Return the sort key of a bot. If no open pair fits, the bot with the smallest key takes a free seat."""
        return bot not in self._open_bots, self._played[bot], bot


class SeatOrders:
    """Chooses a clockwise order for the bots of a table, with the left neighbours that they have had least often so far.

    Args:
        earlier: the clockwise orders of all earlier matches.
    """

    def __init__(self, earlier: Iterable[Sequence[int]]) -> None:
        self._neighbours = Counter[Pair]()
        """How often the second bot was the left neighbour of the first bot."""
        for order in earlier:
            self._neighbours.update(_pairs(order))

    def choose(self, table: Sequence[int]) -> tuple[int, ...]:
        """Return the order of the next match, and count its neighbours for later matches. The first bot of `table` stays first."""
        first, *others = table
        choice = ((first, *each) for each in permutations(others))
        best = min(choice, key=lambda order: sum(self._neighbours[pair] for pair in _pairs(order)))
        self._neighbours.update(_pairs(best))
        return best


def _pairs(order: Sequence[int]) -> list[Pair]:
    """Return pairs of a bot and its left neighbour, one pair for each bot of a clockwise order."""
    return list(pairwise((*order, order[0])))
