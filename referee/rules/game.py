"""A game of LINKO!, as the rest of the project uses it: a plain surface over the turn generators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from referee.rules.actions import Action, Decision
from referee.rules.events import Event, GameOver, Termination
from referee.rules.ruleset import Ruleset
from referee.rules.scoring import Outcome, score
from referee.rules.table import GameEnded, Table
from referee.rules.turn import Steps, turn
from referee.rules.view import View


class IllegalActionError(ValueError):
    """The action is not among the legal ones. Nothing happened."""


class Game:
    """A game in progress or over.

    Args:
        ruleset: the rules.
        players: how many seats.
        deck: the cards in drawing order (ruling R14).

    Raises ValueError when the ruleset does not allow so many players or the deck is wrong.
    """

    def __init__(self, ruleset: Ruleset, players: int, deck: Sequence[int]) -> None:
        self._start(Table.deal(ruleset, players, deck))

    @classmethod
    def from_table(cls, table: Table) -> Game:
        """A game at the beginning of the turn of `table.active`. The table is not copied."""
        game = cls.__new__(cls)
        game._start(table)  # noqa: SLF001 - its own class
        return game

    def _start(self, table: Table) -> None:
        self.table = table
        self.outcome: Outcome | None = None
        """Set when the game is over."""
        self.decision: Decision | None = None
        """What is to be decided; None when the game is over."""
        self._base = self.table.copy()
        """The table as it was when this turn began, or an earlier one; for copies."""
        self._since: list[Action] = []
        """All that was decided since then."""
        self._before_turn = 0
        """How much of it before this turn."""
        self._begin_turn()

    @property
    def ruleset(self) -> Ruleset:
        """The rules of this game."""
        return self.table.ruleset

    @property
    def players(self) -> int:
        """How many sit at the table."""
        return self.table.players

    def view(self, seat: int) -> View:
        """What a seat may know now (ruling R13)."""
        return self.table.view(seat)

    def apply(self, action: Action) -> tuple[Event, ...]:
        """Answer the decision and play on to the next one.

        Returns what happened, in order, unredacted (see `events.redact`); the last event of a game
        is `GameOver`. Raises IllegalActionError, and nothing has changed, when the action is not
        legal or the game is over.
        """
        legal = () if self.decision is None else self.decision.legal
        try:
            listed = legal[legal.index(action)]  # an equal value of another type stays outside
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
        """An independent game in the same position (for search).

        A turn cannot be copied in its middle: what was decided in it is played again, and by the first
        copy in a turn all turns since the last one that was copied. Who never copies pays nothing.
        """
        if self.outcome is not None:
            twin = Game.__new__(Game)
            twin.table, twin.outcome, twin.decision = self.table.copy(), self.outcome, None
            return twin
        if self._before_turn:
            self._base = _played(self._base, self._since[: self._before_turn]).table
            del self._since[: self._before_turn]
            self._before_turn = 0
        return _played(self._base, self._since)

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


def _played(table: Table, actions: Iterable[Action]) -> Game:
    """A game from the beginning of a turn on; the table is copied."""
    game = Game.from_table(table.copy())
    for action in actions:
        game.apply(action)
    return game
