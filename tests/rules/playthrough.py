"""Write a whole game as text: decisions, views and events, as each seat sees them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from playouts import pick, shuffled

from referee.rules.actions import Action, Choice, DrawDisplay, Play, SnatchGhost
from referee.rules.events import (
    DisplayRefilled,
    Drawn,
    Event,
    GameOver,
    GhostRefilled,
    View,
    redact,
)
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, Counts, EndOn, Group, Layer, card_name

FOLDER = Path(__file__).parent / "golden"


class Golden(NamedTuple):
    """A game that is stored as text."""

    ruleset: str
    players: int
    seed: int
    end_on: EndOn = EndOn.DECK_AND_DISPLAY
    max_turns: int = 500

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.ruleset}.txt"


GOLDEN = (
    Golden("classic", 3, 1),
    Golden("basic", 4, 2),
    Golden("advanced", 5, 3, end_on=EndOn.DECK),
    Golden("expert", 2, 4, max_turns=16),
    Golden("expert-jokers", 3, 5),
    Golden("duel", 2, 6),
)


def playthrough(golden: Golden) -> str:
    """Play a golden game at random from its seed and return its text, the same in every Python."""
    rules = RULESETS[golden.ruleset].with_options(end_on=golden.end_on, max_turns=golden.max_turns)
    deck = shuffled(rules, golden.seed)
    game, chance = Game(rules, golden.players, deck), random.Random(golden.seed)
    lines = [
        f"{rules.name}, {golden.players} seats, ends on {rules.end_on.value}, at most {rules.max_turns} turns",
        f"deck {named(deck)}",
    ]
    number = 0
    while (decision := game.decision) is not None:
        number += 1
        lines += ["", f"{number}. seat {decision.seat}: {decision.kind.value}"]
        lines += views(game)
        lines.append(f"  legal    {', '.join(map(action_text, decision.legal))}")
        action = pick(chance, decision.legal)
        lines.append(f"  does     {action_text(action)}")
        for event in game.apply(action):
            lines += event_lines(event, golden.players)
    return "\n".join([*lines, "", "over", *views(game), ""])


def views(game: Game) -> Iterable[str]:
    """Yield the views of all seats as text. The public part is written once."""
    seen = [game.view(seat) for seat in range(game.players)]
    public = [list(public_lines(view)) for view in seen]
    for seat, lines in enumerate(public):
        if seat == 0 or lines != public[0]:
            yield from lines if lines == public[0] else [f"  only {seat} sees", *lines]
    for seat, view in enumerate(seen):
        yield f"  hand {seat}   {pile(view.hand)}" + ("" if view.seat == seat else " (wrong seat)")


def public_lines(view: View) -> Iterable[str]:
    sizes = " ".join(map(str, view.hand_sizes))
    yield f"  turn {view.turn} of seat {view.active_seat}, hands {sizes}, deck {view.deck_size}"
    if view.victim is not None or view.snatched is not None or view.cards_to_draw:
        snatched = "-" if view.snatched is None else layer_text(view.snatched)
        yield f"  snatched {snatched}, victim {view.victim}, to draw {view.cards_to_draw}"
    for seat, layers in enumerate(view.tables):
        yield f"  table {seat}  {' | '.join(map(layer_text, layers))}".rstrip()
    yield f"  display  {' '.join(map(group, view.display))}"
    yield f"  discards {pile(view.discards)}".rstrip()
    if view.ghost is not None:
        yield f"  ghost    {pile(view.ghost)}"


def event_lines(event: Event, players: int) -> Iterable[str]:
    """Yield an event as text, and its redacted form for each seat that sees less."""
    yield f"  - {event_text(event)}"
    for seat in range(players):
        if redact(event, seat) != event:
            yield f"    {seat} sees {event_text(redact(event, seat))}"


def event_text(event: Event) -> str:
    match event:
        case Drawn(seat, slot, cards):
            return f"Drawn {seat} from {'the deck' if slot is None else f'slot {slot}'}: {group(cards)}"
        case DisplayRefilled(turned):
            return f"DisplayRefilled {slots(turned)}"
        case GhostRefilled(ghost_cards, display_cards):
            return f"GhostRefilled {named(ghost_cards)}; display {slots(display_cards)}"
        case GameOver(termination, scores, ranks):
            return f"GameOver {termination.value}, scores {scores}, ranks {ranks}"
    parts = [layer_text(part) if isinstance(part, Layer) else str(part) for part in event]
    return f"{type(event).__name__} {' '.join(parts)}"


def action_text(action: Action) -> str:
    match action:
        case Play(layer):
            return layer_text(layer)
        case DrawDisplay(slot, cards):
            return f"slot {slot} ({group(cards)})"
        case SnatchGhost(value):
            return f"ghost's {value}s"
        case Choice():
            return action.value


def slots(turned: Iterable[tuple[int, int]]) -> str:
    return " ".join(f"{slot}:{card_name(card)}" for slot, card in turned) or "-"


def layer_text(layer: Layer) -> str:
    return named(layer.cards)


def group(cards: Group) -> str:
    return "+".join(map(card_name, cards)) or "."


def pile(counts: Counts) -> str:
    return named(card for card, copies in enumerate(counts) for _ in range(copies))


def named(cards: Iterable[int]) -> str:
    return " ".join(map(card_name, cards))
