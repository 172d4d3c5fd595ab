"""Play a game of LINKO! decision by decision, and score it at the end.

The rest of the project uses the rules through `Game`, which runs the generators of `turn` and checks
every action. The rulings R1 to R15 are in `referee/rules/README.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from referee.rules.actions import Action, Decision
from referee.rules.events import Event, GameOver, Termination, View
from referee.rules.ruleset import Ruleset
from referee.rules.table import GameEnded, Table
from referee.rules.turn import Steps, turn


class Outcome(NamedTuple):
    """The result of a game by the rules alone, before forfeits count."""

    termination: Termination
    scores: tuple[int, ...]
    """The points of each seat."""
    ranks: tuple[int, ...]
    """The rank of each seat, 1 for the best. Equal seats share a rank, as in 1-2-2-4 (ruling R15)."""


class IllegalActionError(ValueError):
    """The action is not legal. The game did not change."""


class Game:
    """A game, in progress or over.

    Args:
        ruleset: the rules.
        players: the number of seats.
        deck: the cards in drawing order (ruling R14).

    Raises ValueError when the ruleset does not allow this number of players, or when the deck does not
    have exactly the cards of the ruleset.
    """

    def __init__(self, ruleset: Ruleset, players: int, deck: Sequence[int]) -> None:
        self._start(Table.deal(ruleset, players, deck))

    @classmethod
    def from_table(cls, table: Table) -> Game:
        """Return a game that begins with a turn of `table.active`. The game makes its moves in `table` itself."""
        game = cls.__new__(cls)
        game._start(table)  # noqa: SLF001 - its own class
        return game

    def _start(self, table: Table) -> None:
        self.table = table
        self.outcome: Outcome | None = None
        """The outcome once the game is over; None until then."""
        self.decision: Decision | None = None
        """The next decision; None once the game is over."""
        self._base = self.table.copy()
        """The table at the start of the current turn or of an earlier turn. `copy` starts from `_base`."""
        self._since: list[Action] = []
        """The actions from `_base` to the current decision."""
        self._before_turn = 0
        """The number of actions in `_since` that belong to earlier turns."""
        self._begin_turn()

    @property
    def ruleset(self) -> Ruleset:
        """The rules of this game."""
        return self.table.ruleset

    @property
    def players(self) -> int:
        """The number of seats."""
        return self.table.players

    def view(self, seat: int) -> View:
        """Return everything that `seat` may know now (ruling R13)."""
        return self.table.view(seat)

    def apply(self, action: Action) -> tuple[Event, ...]:
        """Apply the action to the current decision and play on to the next decision.

        Returns the events in order, unredacted (see `events.redact`); the last event of a game is
        `GameOver`. Raises IllegalActionError and changes nothing when the action is not legal or the
        game is over.
        """
        legal = () if self.decision is None else self.decision.legal
        try:
            # `action` may be a plain tuple, which can equal a legal action. The legal action is applied.
            listed = legal[legal.index(action)]
        except ValueError:
            raise IllegalActionError(f"{action} is not legal now") from None
        self._since.append(listed)
        try:
            self.decision = self._steps.send(listed)
        except StopIteration:
            self._next_turn()
        except GameEnded as end:
            self._end(end.termination)
        events, self.table.events = self.table.events, []
        return tuple(events)

    def copy(self) -> Game:
        """Return an independent game in the same position, for search.

        Python cannot copy a generator. So the new game gets the table from the start of the turn and replays
        the actions of the turn. A game does not save its table at every turn, because most games are never
        copied. Therefore the first call of `copy` in a turn also replays the earlier turns since `_base`.
        """
        if self.outcome is not None:
            copied = Game.__new__(Game)
            copied.table, copied.outcome, copied.decision = self.table.copy(), self.outcome, None
            return copied
        if self._before_turn:
            self._base = _replay(self._base, self._since[: self._before_turn]).table
            del self._since[: self._before_turn]
            self._before_turn = 0
        return _replay(self._base, self._since)

    def _begin_turn(self) -> None:
        self._before_turn = len(self._since)
        self._steps: Steps = turn(self.table)
        self.decision = next(self._steps)

    def _next_turn(self) -> None:
        table = self.table
        if table.turn == table.ruleset.max_turns:
            self._end(Termination.TURN_LIMIT)
        else:
            table.turn += 1
            table.active = (table.active + 1) % table.players
            self._begin_turn()

    def _end(self, termination: Termination) -> None:
        self.decision = None
        self.outcome = score(self.table, termination)
        self.table.events.append(GameOver(*self.outcome))


def _replay(table: Table, actions: Iterable[Action]) -> Game:
    """Start a game from a copy of `table`, apply `actions`, and return the game."""
    game = Game.from_table(table.copy())
    for action in actions:
        game.apply(action)
    return game


def competition_ranks(keys: Sequence[tuple[float, ...]]) -> tuple[int, ...]:
    """Return the rank of each key, 1 for the largest. Equal keys share a rank: 1-2-2-4 (ruling R15)."""
    ordered = sorted(keys, reverse=True)
    return tuple(ordered.index(key) + 1 for key in keys)


def score(table: Table, termination: Termination) -> Outcome:
    """Score a table as it stands ("The end" in section 2 of `proto/README.md`).

    A seat has one point for each card on its own table, minus one for each card in its hand. A seat
    with more points ranks higher. If the ruleset has `hand_size_breaks_ties`, the smaller hand ranks higher among seats
    with equal points. Seats that are equal in this too share a rank.
    """
    played = [sum(layer.size for layer in layers) for layers in table.layers]
    scores = tuple(on_table - held for on_table, held in zip(played, table.hand_sizes, strict=True))
    if table.ruleset.hand_size_breaks_ties:
        keys = [(points, -held) for points, held in zip(scores, table.hand_sizes, strict=True)]
    else:
        keys = [(points, 0) for points in scores]
    return Outcome(termination, scores, competition_ranks(keys))
