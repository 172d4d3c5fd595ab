"""The table of a game as it lies, for people who may see everything."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from referee.reports.show import NOTHING, counts_name, group_name, layer_name, visible
from referee.rules.cards import Layer
from referee.rules.game import Game
from referee.rules.view import View


def table_view(game: Game, names: Sequence[str]) -> Group:
    """Each seat's points, hand and layers, then display, deck, discard pile and ghost.

    `names` are the bots', seat 0 first. The active seat is marked; of its layers the top one, which
    alone can be snatched, comes last.
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
