"""Play a game of LINKO! decision by decision, and score it at the end.

`Game` is the interface of the rules. It runs the generators of `turn` and checks every action.
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
    """The end of a game by the rules, without forfeits."""

    termination: Termination
    scores: tuple[int, ...]
    """The points of each seat."""
    ranks: tuple[int, ...]
    """The rank of each seat, 1-2-2-4 (ruling R15)."""


class IllegalActionError(ValueError):
    """The action is not legal. The game did not change."""


class Game:
    """A game, in progress or over.

    Args:
        ruleset: the rules.
        players: the number of seats.
        deck: the cards in drawing order (ruling R14).

    Raises ValueError when the ruleset does not allow this number of players or the deck is wrong.
    """

    def __init__(self, ruleset: Ruleset, players: int, deck: Sequence[int]) -> None:
        self._start(Table.deal(ruleset, players, deck))

    @classmethod
    def from_table(cls, table: Table) -> Game:
        """Return a game that begins with a turn of `table.active`. It uses `table`, not a copy."""
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
        """The table at the start of this turn or of an earlier one; `copy` replays from it."""
        self._since: list[Action] = []
        """The actions after `_base`."""
        self._before_turn = 0
        """The number of those actions that belong to earlier turns."""
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
        """Apply the action to the current decision and play on to the next one.

        Returns the events in order, unredacted (see `events.redact`); the last event of a game is
        `GameOver`. Raises IllegalActionError and changes nothing when the action is not legal or the
        game is over.
        """
        legal = () if self.decision is None else self.decision.legal
        try:
            listed = legal[
                legal.index(action)
            ]  # not `action`, which may be an equal value of another type
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

        Python cannot copy a generator. So the copy starts from a copy of the table at the start of the turn
        and replays the actions of the turn. The first copy in a turn also replays the turns since the last
        copy, so that a game without copies costs nothing extra.
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
    """Return a game that starts from a copy of `table`, after `actions`."""
    game = Game.from_table(table.copy())
    for action in actions:
        game.apply(action)
    return game


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
