"""Make the data of the board: one file for each finished game, and one file with the sentence patterns of all games.

The files are classic scripts, because a browser refuses `fetch` and module scripts in a page that was opened from a folder.
`static/board.js` reads them. The data say which cards each event moved, so the script does not need to know which moves are legal.

For a game that a person plays, the page gets the data move by move. These data hide the cards that the person may not see.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any, get_args

from referee.match.replay import replay_moves
from referee.records import GameRecord, Move
from referee.reports.formats import group_name, visible
from referee.reports.playthrough import PARTS, PHRASES
from referee.rules.actions import (
    Action,
    Choice,
    Decision,
    DecisionKind,
    DrawDisplay,
    Play,
    SnatchGhost,
)
from referee.rules.events import Event, View
from referee.rules.game import Game
from referee.rules.ruleset import EMPTY, HIDDEN, JOKER, Layer, card_name, layer_name

_KINDS: tuple[type[Event], ...] = get_args(Event)
"""The kinds of events. In the data, the index in this tuple is the code of a kind."""
_DECISIONS = {
    DecisionKind.PLAY: "to play",
    DecisionKind.TAKE_OR_LEAVE: "to take or leave",
    DecisionKind.RECLAIM_OR_DISCARD: "to reclaim or discard",
    DecisionKind.DRAW: "to draw",
    DecisionKind.OPTIONAL_DRAW: "to draw or pass",
    DecisionKind.GHOST_SET: "to choose a set of the ghost",
}
"""What the board writes at the seat that decides. In the data, the index in this dict is the code of a decision."""
_CHOICES = {
    Choice.TAKE: "take the layer",
    Choice.LEAVE: "leave the layer to its owner",
    Choice.RECLAIM: "take your layer back",
    Choice.DISCARD: "discard your layer, and draw a card for each of its cards",
}
"""What a person reads on the button of an action."""
_PASSES = {
    DecisionKind.OPTIONAL_DRAW: "draw nothing",
    DecisionKind.GHOST_SET: "snatch nothing from the ghost",
}
"""What a person reads on the button of a pass, by the kind of the decision."""
_CODES = {kind: code for code, kind in enumerate(_KINDS)}
_DECISION_CODES = {kind: code for code, kind in enumerate(_DECISIONS)}


def board_data(record: GameRecord) -> dict[str, Any]:
    """Return everything that the replay of a game shows, as a JSON value.

    A count list has 15 counts, indexed by card. A layer is `[value, naturals, jokers]`. The keys are:

    - `ruleset`: its name.
    - `bots`: the name of the bot of each seat. Control characters are escaped, as in all texts.
    - `start`: the table before the first move: `hands` (a count list for each seat), `display` (the cards of each slot),
      `deck` (the number of cards) and `ghost` (a count list, or null).
    - `moves`: for each move `[seat, decision, elapsed_us, event, ...]`. `decision` is an index in `decisions` of
      `phrases_script`. An event is `[kind, field, ...]`: `kind` is an index in `events` of `phrases_script`, and the fields
      are those of the class in `referee/rules/events.py`.
    - `stand_ins`: the indexes of the moves that the stand-in made.
    - `faults`: `[move, seat, cause, forfeit, detail]` for each fault. `move` is the number of moves before the fault, and
      `forfeit` is 1 for a forfeit and 0 for a strike.
    - `result`: `termination`, `scores`, `ranks` and `forfeited` of the record.

    Raises `referee.match.replay.Difference` if the record cannot be replayed.
    """
    moves = [move_data(step.decision, step.move, step.events) for step in replay_moves(record)]
    view = Game(record.ruleset, len(record.seating), record.deck)
    views = [view.view(seat) for seat in range(view.players)]
    return {
        "ruleset": record.ruleset.name,
        "bots": list(map(visible, record.names)),
        "start": _start(views[0], [list(each.hand) for each in views]),
        "moves": moves,
        "stand_ins": [index for index, move in enumerate(record.moves) if move.stand_in],
        "faults": [
            [
                fault.move,
                fault.seat,
                fault.cause.value,
                int(fault.forfeit),
                visible(fault.evidence.detail),
            ]
            for fault in record.faults
        ],
        "result": result_data(record),
    }


def result_data(record: GameRecord) -> dict[str, Any]:
    """Return the value of the key `result` of `board_data`."""
    return {
        "termination": record.termination.value,
        "scores": list(record.scores),
        "ranks": list(record.ranks),
        "forfeited": list(record.forfeited),
    }


def move_data(decision: Decision, move: Move, events: tuple[Event, ...]) -> list[Any]:
    """Return a move as an item of `moves` in `board_data`."""
    shown = ([_CODES[type(event)], *map(_plain, event)] for event in events)
    return [move.seat, _DECISION_CODES[decision.kind], move.elapsed_us, *shown]


def seat_data(view: View, ruleset: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the start of a game as one seat sees it, as a JSON value.

    The keys are `seat`, and `ruleset`, `bots` and `start` as in `board_data`. In the hands of other seats, all cards are hidden.

    Args:
        view: the view of the seat before the first move.
        ruleset: the name of the ruleset.
        names: the name of each seat.
    """
    hands = [[size, *EMPTY[1:]] for size in view.hand_sizes]
    hands[view.seat] = list(view.hand)
    return {
        "ruleset": ruleset,
        "bots": list(map(visible, names)),
        "start": _start(view, hands),
        "seat": view.seat,
    }


def decision_data(number: int, decision: Decision, view: View) -> dict[str, Any]:
    """Return a decision with its legal actions, as a JSON value.

    The keys are `number`, `kind` (an index in `decisions` of `phrases_script`) and `choices`. Each choice has a `text`. A
    choice that plays a layer, or snatches one from the ghost, also has `layer`. A draw from the display has `slot`, and a draw
    from the deck has `deck`.

    Args:
        number: the number of the decision in the game, from 1.
        decision: the decision.
        view: what its seat sees.
    """
    return {
        "number": number,
        "kind": _DECISION_CODES[decision.kind],
        "choices": [_choice(action, decision.kind, view) for action in decision.legal],
    }


def _choice(action: Action, kind: DecisionKind, view: View) -> dict[str, Any]:
    match action:
        case Play(layer):
            return {"text": f"play {layer_name(layer)}", "layer": list(layer)}
        case SnatchGhost(value):
            assert view.ghost is not None  # noqa: S101 - only a duel has this action
            layer = Layer(value, view.ghost[value])
            return {"text": f"snatch {layer_name(layer)} from the ghost", "layer": list(layer)}
        case DrawDisplay(slot, _):
            cards = group_name(view.display[slot])
            return {"text": f"draw {cards} from slot {slot}", "slot": slot}
        case Choice.DRAW_DECK:
            return {"text": "draw from the deck", "deck": True}
        case Choice.PASS:
            return {"text": _PASSES[kind]}
        case _:
            return {"text": _CHOICES[action]}


def _start(view: View, hands: list[list[int]]) -> dict[str, Any]:
    return {
        "hands": hands,
        "display": list(map(list, view.display)),
        "deck": view.deck_size,
        "ghost": None if view.ghost is None else list(view.ghost),
    }


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    return list(map(_plain, value)) if isinstance(value, tuple) else value


def board_script(game_id: str, data: dict[str, Any]) -> str:
    """Return the data file of a game: the script `linkoGame({...});`.

    Args:
        game_id: the id of the game; the script gets it as the key `game`.
        data: the return value of `board_data`.
    """
    return _script("linkoGame", {"game": visible(game_id), **data})


def phrases_script() -> str:
    """Return the file with the sentence patterns of all games: the script `linkoPhrases({...});`.

    The keys are `events` (`kind`, `fields` and `text` of each kind of event), `decisions`, `parts` (the `PARTS` of
    `referee/reports/playthrough.py`) and `cards` (the name of each card).
    """
    events = [
        {"kind": kind.__name__, "fields": list(kind._fields), "text": PHRASES[kind]}
        for kind in _KINDS
    ]
    return _script(
        "linkoPhrases",
        {
            "events": events,
            "decisions": list(_DECISIONS.values()),
            "parts": PARTS,
            "cards": [card_name(card) for card in range(HIDDEN, JOKER + 1)],
        },
    )


def _script(function: str, value: dict[str, Any]) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    # if a page contained this script, `</script>` in a text would end it
    text = text.replace("<", "\\u003c")
    return f"{function}({text});\n"
