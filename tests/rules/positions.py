"""Build positions from text. Cards are written as `"4 4 4 J"`, empty slots as `"-"`.

    position("basic", ["12 12 1", "1"], [[], ["7 7"]], display="1 - 3+13 4 5 6", deck="9")

A table is a list of layers, oldest first. `display` has six slots; a group is written with plus signs,
bottom card first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from oracle import Oracle

from referee.rules.actions import Action, Choice, DecisionKind, DrawDisplay, Play
from referee.rules.events import Event
from referee.rules.game import Game
from referee.rules.ruleset import JOKER, RULESETS, Layer, Ruleset, count_cards
from referee.rules.table import Table

TAKE, LEAVE = Choice.TAKE, Choice.LEAVE
RECLAIM, DISCARD = Choice.RECLAIM, Choice.DISCARD
DECK, PASS = Choice.DRAW_DECK, Choice.PASS


def cards(text: str) -> tuple[int, ...]:
    """Return the card numbers of a text such as `"4 4 J"`."""
    return tuple(JOKER if name == "J" else int(name) for name in text.replace("+", " ").split())


def layer(text: str) -> Layer:
    """Return the layer of a text such as `"4 4 J"`."""
    played = cards(text)
    numbers = [card for card in played if card != JOKER]
    assert len(set(numbers)) <= 1
    return Layer(numbers[0] if numbers else JOKER, len(numbers), len(played) - len(numbers))


def play(text: str) -> Play:
    """Return the play of a text such as `"4 4 J"`."""
    return Play(layer(text))


@dataclass(frozen=True, kw_only=True)
class Position:
    """A position at the beginning of a turn."""

    ruleset: Ruleset
    hands: list[tuple[int, ...]]
    tables: list[list[Layer]]
    display: list[tuple[int, ...]]
    deck: tuple[int, ...] = ()
    ghost: tuple[int, ...] = ()
    discards: tuple[int, ...] = ()
    active: int = 0
    turn: int = 1

    def table(self) -> Table:
        """Return the position as a table of the engine."""
        table = Table(self.ruleset, len(self.hands), self.deck)
        table.hands = [list(count_cards(hand)) for hand in self.hands]
        table.hand_sizes = [len(hand) for hand in self.hands]
        table.layers = [tuple(layers) for layers in self.tables]
        table.display = tuple(self.display)
        table.discards = count_cards(self.discards)
        if self.ruleset.ghost:
            table.ghost = count_cards(self.ghost)
        table.active, table.turn = self.active, self.turn
        return table

    def game(self) -> Game:
        """Return a game of the engine in this position."""
        return Game.from_table(self.table())

    def oracle(self) -> Oracle:
        """Return a game of the oracle in this position."""
        oracle = Oracle(self.ruleset, len(self.hands))
        oracle.hands = [list(hand) for hand in self.hands]
        oracle.tables = [[list(layer.cards) for layer in layers] for layers in self.tables]
        oracle.display = [list(slot) for slot in self.display]
        oracle.deck = list(self.deck)
        oracle.discards = list(self.discards)
        oracle.ghost = list(self.ghost) if self.ruleset.ghost else None
        oracle.active, oracle.turn = self.active, self.turn
        return oracle


def position(
    ruleset: str,
    hands: Sequence[str],
    tables: Sequence[Sequence[str]] = (),
    *,
    display: str = "1 2 3 4 5 6",
    deck: str = "7 8 9 10 11 12 7 8 9 10 11 12",
    ghost: str = "",
    discards: str = "",
    active: int = 0,
    turn: int = 1,
    **options: Any,
) -> Position:
    """Return the position that the texts describe; `options` are those of the ruleset."""
    return Position(
        ruleset=RULESETS[ruleset].with_options(**options),
        hands=[cards(hand) for hand in hands],
        tables=[[layer(text) for text in layers] for layers in tables or [()] * len(hands)],
        display=[() if slot == "-" else cards(slot) for slot in display.split()],
        deck=cards(deck),
        ghost=cards(ghost),
        discards=cards(discards),
        active=active,
        turn=turn,
    )


def game(
    ruleset: str, hands: Sequence[str], tables: Sequence[Sequence[str]] = (), **more: Any
) -> Game:
    """Return a game of the engine that begins in a position."""
    return position(ruleset, hands, tables, **more).game()


def follow(run: Game, *actions: tuple[int, Action]) -> list[Event]:
    """Apply actions, each of the seat that must decide; return all events."""
    events: list[Event] = []
    for seat, action in actions:
        assert run.decision is not None
        assert run.decision.seat == seat, run.decision
        events += run.apply(action)
    return events


def draw(run: Game, text: str) -> DrawDisplay:
    """Return the legal draw of a card or a group of the display."""
    assert run.decision is not None
    wanted = cards(text)
    return next(
        action
        for action in run.decision.legal
        if isinstance(action, DrawDisplay) and action.cards == wanted
    )


def next_decision(run: Game) -> tuple[int, DecisionKind] | None:
    """Return the seat and the kind of the next decision; None when the game is over."""
    return run.decision and (run.decision.seat, run.decision.kind)


def hand(run: Game, seat: int) -> list[int]:
    """Return the cards of a seat, ascending."""
    return [card for card, copies in enumerate(run.view(seat).hand) for _ in range(copies)]


def tops(run: Game) -> list[Layer | None]:
    """Return the top layer of every seat."""
    return [table[-1] if table else None for table in run.view(0).tables]


def of_kind(events: Iterable[Event], kind: type[Event]) -> list[Event]:
    """Return the events of one type."""
    return [event for event in events if isinstance(event, kind)]
