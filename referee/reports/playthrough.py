"""Show a game to people: a line for each event, and the table with all cards.

`PHRASES` and `PARTS` have the texts of the lines. The replay in the web pages uses the same texts.
`Narrator` writes the lines while a game is played. `playthrough` writes the same lines from the record of a game.
The lines and `table_view` show hidden cards. Never send them to a bot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from referee.match.replay import make_game, replay_moves
from referee.records import Fault, GameRecord, Move
from referee.reports.formats import NOTHING, counts_name, group_name, spaced, visible
from referee.rules.actions import DecisionKind
from referee.rules.events import (
    Discarded,
    DisplayRefilled,
    Drawn,
    Event,
    GameOver,
    GhostDeclined,
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
from referee.rules.ruleset import Counts, Layer, card_name, layer_name


def table_view(game: Game, names: Sequence[str]) -> Group:
    """Return points, hand and layers of each seat, then the display, the size of the deck, the discard pile and the ghost.

    The active seat is marked with `>`. The layers of a seat are listed from the oldest to the top layer.

    Args:
        game: the game to show.
        names: the names of the bots, seat 0 first.
    """
    hands = [game.view(seat).hand for seat in range(game.players)]
    return _table(game.view(0), names, hands)


def seat_view(view: View, names: Sequence[str]) -> Group:
    """Return the same as `table_view`, but only with what the seat of the view may know."""
    hands = [view.hand if seat == view.seat else None for seat in range(len(names))]
    return _table(view, names, hands)


def _table(view: View, names: Sequence[str], hands: Sequence[Counts | None]) -> Group:
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
    for seat, (name, hand) in enumerate(zip(names, hands, strict=True)):
        seats.add_row(*_seat(view, seat, name, hand))
    return Group(seats, _middle(view))


def _seat(view: View, seat: int, name: str, hand: Counts | None) -> tuple[Text, ...]:
    layers, held = view.tables[seat], view.hand_sizes[seat]
    points = sum(layer.size for layer in layers) - held
    return (
        Text(">" if seat == view.active_seat else ""),
        Text(str(seat)),
        Text(visible(name)),
        Text(str(points)),
        Text(str(held)),
        Text("?" if hand is None else counts_name(hand)),
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


PHRASES: dict[type[Event], str] = {
    Played: "{seat} plays {layer}",
    Snatched: "{attacker} snatches {layer} from {victim}",
    Taken: "{seat} takes {layer}",
    Left: "{seat} leaves it",
    Reclaimed: "{seat} reclaims {layer}",
    Discarded: "{seat} discards {layer}",
    Drawn: "{seat} draws {cards} from {source}",
    DisplayRefilled: "display refilled: {slots}",
    GhostSnatched: "{seat} snatches {layer} from the ghost",
    GhostRefilled: "ghost refilled: {cards}{display}",
    GhostDeclined: "{seat} snatches nothing from the ghost",
    Passed: "{seat} passes",
    GameOver: "game over ({termination}): {result}",
}
"""The format string of each kind of event. `PARTS` and the names of cards fill its placeholders."""
PARTS = {
    "bot": "{name} (seat {seat})",
    "turn": "turn {turn}",
    "deck": "the deck",
    "slot": "slot {slot}",
    "into_slot": "{card} into slot {slot}",
    "display": "; display: {slots}",
    "place": "{rank}. {bot} {score}",
    "charge": "{bot}: {cost}, {cause}: {detail}",
    "strike": "strike",
    "forfeit": "forfeits the game",
    "stand_in": " (stand-in)",
    "forfeited": "forfeited: {bots}; final ranks {ranks}",
}
"""The parts of sentences, and the sentences that belong to no event."""

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
        """Return the line of an event. Call this method once for each event, in the order of the game, because it counts the turns."""
        if isinstance(event, Played):
            self._turn += 1
            start = PARTS["turn"].format(turn=self._turn).ljust(len(_INDENT))
            return Line(Text(start + self._describe(event), style="bold"))
        if isinstance(event, GameOver):
            return Line(Text(self._describe(event), style="bold"))
        return Line(Text(_INDENT + self._describe(event)))

    def move(self, move: Move, events: Iterable[Event], faults: Iterable[Fault]) -> Iterator[Line]:
        """Yield the lines of a move: the faults that were charged before it, then its events.

        The line of the first event says if the stand-in has made the move.
        """
        yield from map(self.charge, faults)
        for place, event in enumerate(events):
            line = self.line(event)
            if move.stand_in and not place:
                line.text.append(PARTS["stand_in"])
            yield line

    def charge(self, fault: Fault) -> Line:
        """Return the line of a fault: strike or forfeit, and what the bot did wrong."""
        text = PARTS["charge"].format(
            bot=self.who(fault.seat),
            cost=PARTS["forfeit" if fault.forfeit else "strike"],
            cause=fault.cause.value,
            detail=visible(fault.evidence.detail),
        )
        return Line(Text(_INDENT + text, "red"))

    def who(self, seat: int) -> str:
        """Return the name of the bot and the number of the seat, such as `greedy (seat 1)`."""
        return PARTS["bot"].format(name=self._names[seat], seat=seat)

    def _describe(self, event: Event) -> str:
        return PHRASES[type(event)].format_map(self._places(event))

    def _places(self, event: Event) -> dict[str, str]:
        """Return the text of each placeholder in the phrase of `event`."""
        match event:
            case Drawn(seat, slot, cards):
                source = PARTS["deck"] if slot is None else PARTS["slot"].format(slot=slot)
                return {"seat": self.who(seat), "cards": group_name(cards), "source": source}
            case DisplayRefilled(cards):
                return {"slots": _into_slots(cards)}
            case GhostRefilled(ghost_cards, display_cards):
                slots = _into_slots(display_cards)
                display = PARTS["display"].format(slots=slots) if slots else ""
                return {"cards": spaced(map(card_name, ghost_cards)), "display": display}
            case GameOver(termination, scores, ranks):
                return {"termination": termination.value, "result": self._result(scores, ranks)}
        return {
            place: layer_name(value) if isinstance(value, Layer) else self.who(value)
            for place, value in event._asdict().items()
        }

    def _result(self, scores: Sequence[int], ranks: Sequence[int]) -> str:
        seats = sorted(range(len(ranks)), key=lambda seat: (ranks[seat], seat))
        return ", ".join(
            PARTS["place"].format(rank=ranks[seat], bot=self.who(seat), score=scores[seat])
            for seat in seats
        )


def playthrough(record: GameRecord, *, tables: bool = False) -> Iterator[RenderableType]:
    """Yield the lines of a recorded game: its events and its faults.

    Args:
        record: the game.
        tables: True to yield the table before each turn too.

    Raises `referee.match.replay.Difference` at the first error that `replay_moves` finds, such as an illegal move.
    """
    names = record.names
    narrator = Narrator(names)
    if tables:
        yield table_view(make_game(record), names)
    for number, step in enumerate(replay_moves(record)):
        faults = (fault for fault in record.faults if fault.move == number)
        yield from narrator.move(step.move, step.events, faults)
        decision = step.game.decision
        if tables and decision is not None and decision.kind is DecisionKind.PLAY:
            yield table_view(step.game, names)
    if record.forfeited:
        bots = ", ".join(map(narrator.who, record.forfeited))
        yield Text(PARTS["forfeited"].format(bots=bots, ranks=spaced(record.ranks)), "bold")


def log_lines(record: GameRecord) -> list[str]:
    """Return the lines of `playthrough` without tables, as plain texts.

    Raises `referee.match.replay.Difference` at the first error that `replay_moves` finds, such as an illegal move.
    """
    return [
        (part.text if isinstance(part, Line) else part).plain
        for part in playthrough(record)
        if isinstance(part, (Line, Text))
    ]


def _into_slots(cards: Sequence[SlotCard]) -> str:
    return ", ".join(
        PARTS["into_slot"].format(card=card_name(card), slot=slot) for slot, card in cards
    )
