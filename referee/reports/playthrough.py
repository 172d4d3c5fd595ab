"""A game told to people, a line an event: as it is played, or again from its record.

Events are told as they happened, hidden cards included: this is for who may see everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from referee.match import steps
from referee.records import Fault, GameRecord
from referee.reports.show import group_name, layer_name, spaced, visible
from referee.reports.table_view import table_view
from referee.rules.actions import DecisionKind
from referee.rules.cards import card_name
from referee.rules.events import (
    Discarded,
    DisplayRefilled,
    Drawn,
    Event,
    GameOver,
    GhostRefilled,
    GhostSnatched,
    Left,
    Passed,
    Played,
    Reclaimed,
    SlotCard,
    Snatched,
    Taken,
)
from referee.rules.game import Game

_INDENT = " " * 10


class Narrator:
    """Tells the events of one game, each as one line.

    Args:
        names: of the bots, seat 0 first; anything may be in them.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(map(visible, names))
        self._turn = 0

    def line(self, event: Event) -> Text:
        """What happened. Events are to be told in order, from the first, each once."""
        if isinstance(event, Played):
            self._turn += 1
            told = f"turn {self._turn}".ljust(len(_INDENT)) + self._told(event)
            return Text(told, style="bold")
        if isinstance(event, GameOver):
            return Text(self._told(event), style="bold")
        return Text(_INDENT + self._told(event))

    def charge(self, fault: Fault) -> Text:
        """What a bot did wrong and what it cost."""
        cost = "forfeits the game" if fault.forfeit else "strike"
        detail = visible(fault.evidence.detail)
        return Text(
            f"{_INDENT}{self.who(fault.seat)}: {cost}, {fault.cause.value}: {detail}", "red"
        )

    def who(self, seat: int) -> str:
        """A seat as `greedy (seat 1)`."""
        return f"{self._names[seat]} (seat {seat})"

    def _told(self, event: Event) -> str:  # noqa: C901, PLR0911 - one line a kind of event
        match event:
            case Played(seat, layer):
                return f"{self.who(seat)} plays {layer_name(layer)}"
            case Snatched(attacker, victim, layer):
                return f"{self.who(attacker)} snatches {layer_name(layer)} from {self.who(victim)}"
            case Taken(seat, layer):
                return f"{self.who(seat)} takes {layer_name(layer)}"
            case Left(seat):
                return f"{self.who(seat)} leaves it"
            case Reclaimed(seat, layer):
                return f"{self.who(seat)} reclaims {layer_name(layer)}"
            case Discarded(seat, layer):
                return f"{self.who(seat)} discards {layer_name(layer)}"
            case Drawn(seat, slot, cards):
                source = "the deck" if slot is None else f"slot {slot}"
                return f"{self.who(seat)} draws {group_name(cards)} from {source}"
            case DisplayRefilled(cards):
                return f"display refilled: {_into_slots(cards)}"
            case GhostSnatched(seat, layer):
                return f"{self.who(seat)} snatches {layer_name(layer)} from the ghost"
            case GhostRefilled(ghost_cards, display_cards):
                told = f"ghost refilled: {spaced(map(card_name, ghost_cards))}"
                return told + (f"; display: {_into_slots(display_cards)}" if display_cards else "")
            case Passed(seat):
                return f"{self.who(seat)} passes"
            case GameOver(termination, scores, ranks):
                return f"game over ({termination.value}): {self._result(scores, ranks)}"

    def _result(self, scores: Sequence[int], ranks: Sequence[int]) -> str:
        seats = sorted(range(len(ranks)), key=lambda seat: (ranks[seat], seat))
        return ", ".join(f"{ranks[seat]}. {self.who(seat)} {scores[seat]}" for seat in seats)


def playthrough(record: GameRecord, *, tables: bool = False) -> Iterator[RenderableType]:
    """A game told again from its record: events, faults, and with `tables` the table at each turn.

    Raises `referee.match.Difference`, after what could be told, where the record does not play out.
    """
    names = [bot.name for bot in record.seating]
    narrator = Narrator(names)
    if tables:
        yield table_view(Game(record.ruleset, len(names), record.deck), names)
    for number, step in enumerate(steps(record)):
        yield from (narrator.charge(fault) for fault in record.faults if fault.move == number)
        for place, event in enumerate(step.events):
            line = narrator.line(event)
            yield line.append(" (stand-in)") if step.move.stand_in and not place else line
        decision = step.game.decision
        if tables and decision is not None and decision.kind is DecisionKind.PLAY:
            yield table_view(step.game, names)
    if record.result.forfeited:
        forfeited = ", ".join(map(narrator.who, record.result.forfeited))
        yield Text(f"forfeited: {forfeited}; final ranks {spaced(record.result.ranks)}", "bold")


def _into_slots(cards: Sequence[SlotCard]) -> str:
    return ", ".join(f"{card_name(card)} into slot {slot}" for slot, card in cards)
