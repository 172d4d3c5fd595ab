"""Show a game to people: a line for each event, and the table with all cards.

`Narrator` writes the lines while a game is played. `playthrough` writes the same lines from the record of a game.
The lines and the table show hidden cards. Never send them to a bot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from referee.match.replay import replay_moves
from referee.records import Fault, GameRecord
from referee.reports.formats import NOTHING, counts_name, group_name, layer_name, spaced, visible
from referee.rules.actions import DecisionKind
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
    View,
)
from referee.rules.game import Game
from referee.rules.ruleset import Layer, card_name


def table_view(game: Game, names: Sequence[str]) -> Group:
    """Return points, hand and layers of each seat, then display, deck, discard pile and ghost.

    The active seat is marked with `>`. The layers of a seat are listed from the oldest to the top layer.

    Args:
        game: the game to show.
        names: the names of the bots, seat 0 first.
    """
    views = [game.view(seat) for seat in range(game.players)]
    seats = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for title in ("", "seat", "bot", "points", "cards", "hand", "layers, top last"):
        right = title in {"seat", "points", "cards"}
        wrap = title in {"bot", "hand", "layers, top last"}
        seats.add_column(
            title,
            justify="right" if right else "left",
            overflow="fold",
            no_wrap=not wrap,
            min_width=8 if wrap else None,
        )
    for view, name in zip(views, names, strict=True):
        seats.add_row(*_seat(view, name))
    return Group(seats, _middle(views[0]))


def _seat(view: View, name: str) -> tuple[Text, ...]:
    layers, held = view.tables[view.seat], view.hand_sizes[view.seat]
    points = sum(layer.size for layer in layers) - held
    return (
        Text(">" if view.seat == view.active_seat else ""),
        Text(str(view.seat)),
        Text(visible(name)),
        Text(str(points)),
        Text(str(held)),
        Text(counts_name(view.hand)),
        _layers(layers),
    )


def _layers(layers: Sequence[Layer]) -> Text:
    if not layers:
        return Text(NOTHING)
    covered = "".join(f"{layer_name(layer)} | " for layer in layers[:-1])
    return Text(covered).append(layer_name(layers[-1]), style="bold")


def _middle(view: View) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    slots = "  ".join(f"{slot}: {group_name(cards)}" for slot, cards in enumerate(view.display))
    grid.add_row("display", Text(slots))
    grid.add_row("deck", Text(str(view.deck_size)))
    grid.add_row("discards", Text(counts_name(view.discards)))
    if view.ghost is not None:
        grid.add_row("ghost", Text(counts_name(view.ghost)))
    return grid


_INDENT = " " * 10


@dataclass(frozen=True, slots=True)
class Line:
    """A line about a game. If it is too long for the terminal, it wraps, and all lines after the first are indented."""

    text: Text
    """The whole line. The first `len(_INDENT)` characters are `turn` and a number, `game over`, or only spaces."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        start, text = self.text.divide([len(_INDENT)])
        for line in text.wrap(console, max(len(_INDENT), options.max_width - len(_INDENT))):
            line.rstrip()
            yield start + line
            start = Text(_INDENT)


class Narrator:
    """Writes a line for each event of one game.

    Args:
        names: the names of the bots, seat 0 first. They may contain any characters.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(map(visible, names))
        self._turn = 0

    def line(self, event: Event) -> Line:
        """Return the line of an event. Call this method once for each event, in the order of the game."""
        if isinstance(event, Played):
            self._turn += 1
            start = f"turn {self._turn}".ljust(len(_INDENT))
            return Line(Text(start + self._describe(event), style="bold"))
        if isinstance(event, GameOver):
            return Line(Text(self._describe(event), style="bold"))
        return Line(Text(_INDENT + self._describe(event)))

    def charge(self, fault: Fault) -> Line:
        """Return the line of a fault: strike or forfeit, and what the bot did wrong."""
        cost = "forfeits the game" if fault.forfeit else "strike"
        detail = visible(fault.evidence.detail)
        return Line(
            Text(f"{_INDENT}{self.who(fault.seat)}: {cost}, {fault.cause.value}: {detail}", "red")
        )

    def who(self, seat: int) -> str:
        """Return the name of the bot and the number of the seat, such as `greedy (seat 1)`."""
        return f"{self._names[seat]} (seat {seat})"

    def _describe(self, event: Event) -> str:  # noqa: C901, PLR0911 - one line a kind of event
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
                ghost = f"ghost refilled: {spaced(map(card_name, ghost_cards))}"
                return ghost + (f"; display: {_into_slots(display_cards)}" if display_cards else "")
            case Passed(seat):
                return f"{self.who(seat)} passes"
            case GameOver(termination, scores, ranks):
                return f"game over ({termination.value}): {self._result(scores, ranks)}"

    def _result(self, scores: Sequence[int], ranks: Sequence[int]) -> str:
        seats = sorted(range(len(ranks)), key=lambda seat: (ranks[seat], seat))
        return ", ".join(f"{ranks[seat]}. {self.who(seat)} {scores[seat]}" for seat in seats)


def playthrough(record: GameRecord, *, tables: bool = False) -> Iterator[RenderableType]:
    """Yield the lines of a recorded game: its events and its faults.

    Args:
        record: the game.
        tables: True to yield the table before each turn too.

    Raises `referee.match.replay.Difference` at the first move that the rules do not allow.
    """
    names = [bot.name for bot in record.seating]
    narrator = Narrator(names)
    if tables:
        yield table_view(Game(record.ruleset, len(names), record.deck), names)
    for number, step in enumerate(replay_moves(record)):
        yield from (narrator.charge(fault) for fault in record.faults if fault.move == number)
        for place, event in enumerate(step.events):
            line = narrator.line(event)
            if step.move.stand_in and not place:
                line.text.append(" (stand-in)")
            yield line
        decision = step.game.decision
        if tables and decision is not None and decision.kind is DecisionKind.PLAY:
            yield table_view(step.game, names)
    if record.forfeited:
        forfeited = ", ".join(map(narrator.who, record.forfeited))
        yield Text(f"forfeited: {forfeited}; final ranks {spaced(record.ranks)}", "bold")


def _into_slots(cards: Sequence[SlotCard]) -> str:
    return ", ".join(f"{card_name(card)} into slot {slot}" for slot, card in cards)
