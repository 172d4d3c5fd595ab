"""Play a game of LINKO! decision by decision, and score it at the end.

The rest of the project uses the rules through `Game`, which checks every action. Section 2 of `proto/README.md` describes
steps 1 to 4 of a turn, and `referee/rules/README.md` has the rulings R1 to R19.

`Game` runs each turn as a generator. The code of the generator follows the rulebooks, which say in what order the players
decide. The generator yields a decision and receives an action, which `Game` has checked.

At every `yield`, the `Table` and the kind of the decision say everything about the position. Code after a `yield`
may use an earlier local variable only if the value of the variable follows from the `Table` and the kind. In `turn`, for
example, such variables say which opponent is next and whether a layer was snatched. So `turn` can begin at any decision. This
has two uses: a game can be copied during a turn, although Python cannot copy a generator, and a bot can search although it
knows only its view of the position (`referee/sdk/simulate.py`). Views are made from the `Table` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

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
from referee.rules.events import Event, GameOver, GhostDeclined, Passed, Termination, View
from referee.rules.ruleset import GhostSnatch, Ruleset
from referee.rules.table import GHOST_LIMIT, GameEnded, Table

Steps = Generator[Decision, Action, None]


class Outcome(NamedTuple):
    """The result of a game by the rules alone, before forfeits count."""

    termination: Termination
    scores: tuple[int, ...]
    """The points of each seat. Each must fit into a signed 16-bit integer, because `store/columns.py` packs it."""
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
    def from_table(cls, table: Table, kind: DecisionKind = DecisionKind.PLAY) -> Game:
        """Return a game that begins with a decision of the kind `kind` in the turn of `table.active`.

        The game changes `table` itself, not a copy. If `kind` is not `PLAY`, the table must be in a position in
        which `turn` yields a decision of this kind. Raises ValueError if the next decision of the turn has another kind,
        or if the turn has no further decision.
        """
        game = cls.__new__(cls)
        try:
            game._start(table, kind)  # noqa: SLF001 - its own class
        except (StopIteration, GameEnded):
            found = None
        else:
            found = game.kind
        if found is not kind:
            raise ValueError(f"the turn has no decision {kind.value} now")
        return game

    @classmethod
    def restore(cls, table: Table, kind: DecisionKind | None, outcome: Outcome | None) -> Game:
        """Return a game in the same position as another game.

        `table` must be a copy of the other game's table. `kind` and `outcome` are those of the other game.
        """
        if kind is not None:
            return cls.from_table(table, kind)
        game = cls.__new__(cls)
        game.table, game.outcome, game.decision = table, outcome, None
        return game

    def _start(self, table: Table, kind: DecisionKind = DecisionKind.PLAY) -> None:
        self.table = table
        self.outcome: Outcome | None = None
        """The outcome once the game is over; None until then."""
        self.decision: Decision | None = None
        """The next decision; None once the game is over, or when an exception has interrupted `apply`."""
        self._begin_turn(kind)

    @property
    def ruleset(self) -> Ruleset:
        """The rules of this game."""
        return self.table.ruleset

    @property
    def players(self) -> int:
        """The number of seats."""
        return self.table.players

    @property
    def kind(self) -> DecisionKind | None:
        """The kind of the next decision; None once the game is over."""
        return None if self.decision is None else self.decision.kind

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
            # `action` may be a plain tuple that equals a legal action. `turn` needs the type of the legal action.
            listed = legal[legal.index(action)]
        except ValueError:
            raise IllegalActionError(f"{action} is not legal now") from None
        self.decision = None  # if KeyboardInterrupt interrupts the turn, its generator is finished
        try:
            self.decision = self._steps.send(listed)
        except StopIteration:
            self._next_turn()
        except GameEnded as end:
            self._end(end.termination)
        events, self.table.events = self.table.events, []
        return tuple(events)

    def copy(self) -> Game:
        """Return an independent game in the same position, for search."""
        return Game.restore(self.table.copy(), self.kind, self.outcome)

    def __reduce__(
        self,
    ) -> tuple[Callable[..., Game], tuple[Table, DecisionKind | None, Outcome | None]]:
        """Tell `deepcopy` and pickle how to make the game again, because they cannot copy its generator."""
        return Game.restore, (self.table, self.kind, self.outcome)

    def _begin_turn(self, kind: DecisionKind = DecisionKind.PLAY) -> None:
        self._steps: Steps = turn(self.table, kind)
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
        self.outcome = score(self.table, termination)
        self.table.events.append(GameOver(*self.outcome))


# The decisions of a turn. A is the active player (the attacker), V the owner of the snatched layer.
# The game can also end at any draw or refill (`GameEnded`). A set is all the ghost's cards of one value.
#
#   A: PLAY --its last card--> game over
#     |
#     v
#   A: GHOST_SET   (only in a duel, if A can snatch several sets, or can snatch one and may pass)
#     |
#     v
#   next opponent clockwise whose top layer is snatched <---------------------------+
#     |                    |                                                        |
#     | none left          +--> A: TAKE_OR_LEAVE --take--> V: DRAW, once per card --+
#     |                                     |                   ^                   |
#     |                                   leave                 | discard           |
#     |                                     v                   |                   |
#     |                         V: RECLAIM_OR_DISCARD ----------+                   |
#     |                                     |                                       |
#     |                                     +--reclaim------------------------------+
#     v
#   A: OPTIONAL_DRAW   (only with `optional_draw`, and only if nothing was snatched)
#     |
#     v
#   the next turn


def turn(table: Table, kind: DecisionKind = DecisionKind.PLAY) -> Steps:
    """Run a turn of the active player, steps 1 to 4, from a decision of this kind to the end of the turn.

    Raises GameEnded if a move of cards ends the game.
    """
    seat = table.active
    players = table.players
    next_opponent = 1  # counted from `seat`, clockwise
    snatched = False
    if kind is DecisionKind.PLAY or kind is DecisionKind.GHOST_SET:
        if kind is DecisionKind.PLAY:
            play = yield Decision(seat, DecisionKind.PLAY, legal_plays(table.hands[seat]))
            assert isinstance(play, Play)  # noqa: S101 - `Game` checked it against the legal actions
            table.play(play.layer)
        snatched = yield from resolve_ghost_snatch(table)
    elif kind is DecisionKind.OPTIONAL_DRAW:
        next_opponent = players
    elif table.victim is None:
        raise ValueError(f"nobody has lost a layer, so there is no decision {kind.value}")
    else:
        next_opponent = (table.victim - seat) % players + 1
        yield from resolve_snatch(table, table.victim, kind)
        snatched = True
    for offset in range(next_opponent, players):
        victim = (seat + offset) % players
        layers = table.layers[victim]
        if layers and table.ruleset.snatches(table.top(seat), layers[-1]):
            snatched = True
            yield from resolve_snatch(table, victim)
    if table.ruleset.optional_draw and not snatched:
        yield from optional_draw(table)


def resolve_snatch(
    table: Table, victim: int, kind: DecisionKind = DecisionKind.TAKE_OR_LEAVE
) -> Steps:
    """Snatch the victim's top layer, and let attacker and victim decide about it (in step 3 of a turn).

    If `table.victim` is set, the layer has been snatched already. The first decision then has the kind `kind`.
    """
    if table.victim is None:
        table.snatch(victim)
    if kind is DecisionKind.TAKE_OR_LEAVE:
        choice = yield Decision(table.active, DecisionKind.TAKE_OR_LEAVE, TAKE_OR_LEAVE)
        if choice is Choice.TAKE:
            table.take()
            kind = DecisionKind.DRAW
        else:
            table.leave()
            kind = DecisionKind.RECLAIM_OR_DISCARD
    if kind is DecisionKind.RECLAIM_OR_DISCARD:
        choice = yield Decision(victim, DecisionKind.RECLAIM_OR_DISCARD, RECLAIM_OR_DISCARD)
        if choice is Choice.RECLAIM:
            table.reclaim()
            return
        table.discard()
    while table.cards_to_draw:
        options = table.draw_options()
        source = options[0]
        if len(options) > 1:  # one option needs no request (ruling R7)
            source = yield Decision(victim, DecisionKind.DRAW, options)
        table.draw(victim, source)
    table.victim = None
    table.refill_display()


def resolve_ghost_snatch(table: Table) -> Generator[Decision, Action, bool]:
    """In a duel, snatch a set from the ghost if the layer just played can snatch one.

    Returns True if a set was snatched. Returns False if no set can be snatched, the player passed or the game
    has no ghost.
    """
    if table.ghost is None:
        return False
    layer = table.top(table.active)
    options: tuple[Action, ...] = tuple(
        SnatchGhost(value)
        for value in range(1, min(layer.value, GHOST_LIMIT))
        if table.ghost[value] == layer.size
    )
    if not options:
        return False
    if table.ruleset.ghost_snatch is GhostSnatch.OPTIONAL:  # ruling R17
        options += (Choice.PASS,)
    chosen = options[0]
    if len(options) > 1:  # one option needs no request (ruling R7)
        chosen = yield Decision(table.active, DecisionKind.GHOST_SET, options)
    if chosen is Choice.PASS:
        table.events.append(GhostDeclined(table.active))
        return False
    assert isinstance(chosen, SnatchGhost)  # noqa: S101 - `Game` checked it against the legal actions
    table.snatch_ghost(chosen.value)
    return True


def optional_draw(table: Table) -> Steps:
    """Let the active player draw a card or pass (step 4 of a turn; rulings R3 and R4)."""
    table.cards_to_draw = 1
    options = (Choice.PASS, *table.draw_options())
    source = yield Decision(table.active, DecisionKind.OPTIONAL_DRAW, options)
    if source is Choice.PASS:
        table.cards_to_draw = 0
        table.events.append(Passed(table.active))
        return
    table.draw(table.active, source)
    table.refill_display()


def competition_ranks(keys: Sequence[tuple[float, ...]]) -> tuple[int, ...]:
    """Return the rank of each key, 1 for the largest. Equal keys share a rank: 1-2-2-4 (ruling R15)."""
    ordered = sorted(keys, reverse=True)
    return tuple(ordered.index(key) + 1 for key in keys)


def score(table: Table, termination: Termination) -> Outcome:
    """Score a table as it stands ("The end" in section 2 of `proto/README.md`).

    A seat has one point for each card on its own table, minus one for each card in its hand. A seat
    with more points ranks higher. Of seats with equal points, the seat with fewer cards in its hand ranks higher, if the
    ruleset has `hand_size_breaks_ties`. Seats that are still equal share a rank.

    This rule for points also stands in `View.scores` of `sdk/request.py`, in `_seat` of `reports/playthrough.py`, in
    `pointsOf` of `web/static/board.js`, in the sample bot `learner` and in `tests/rules/oracle.py`.
    """
    played = [sum(layer.size for layer in layers) for layers in table.layers]
    scores = tuple(on_table - held for on_table, held in zip(played, table.hand_sizes, strict=True))
    if table.ruleset.hand_size_breaks_ties:
        keys = [(points, -held) for points, held in zip(scores, table.hand_sizes, strict=True)]
    else:
        keys = [(points, 0) for points in scores]
    return Outcome(termination, scores, competition_ranks(keys))
