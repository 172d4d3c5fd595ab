"""Make the data of a replay: one file for each game, and one file with the texts of all games.

The files are classic scripts, because a page that was opened from a folder may load nothing else. `static/replay.js` reads
them. The data say which cards each event moved, so the script does not need to know which moves are legal.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, get_args

from referee.match.replay import ReplayedMove, replay_moves
from referee.records import GameRecord
from referee.reports.formats import visible
from referee.reports.playthrough import PARTS, PHRASES
from referee.rules.actions import DecisionKind
from referee.rules.events import Event
from referee.rules.game import Game
from referee.rules.ruleset import HIDDEN, JOKER, card_name

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
_CODES = {kind: code for code, kind in enumerate(_KINDS)}
_DECISION_CODES = {kind: code for code, kind in enumerate(_DECISIONS)}
_UNSAFE = str.maketrans({"<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Characters that could end a script or a line in it."""


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
    moves = [_move(step) for step in replay_moves(record)]
    view = Game(record.ruleset, len(record.seating), record.deck)
    views = [view.view(seat) for seat in range(view.players)]
    return {
        "ruleset": record.ruleset.name,
        "bots": [visible(bot.name) for bot in record.seating],
        "start": {
            "hands": [list(each.hand) for each in views],
            "display": list(map(list, views[0].display)),
            "deck": views[0].deck_size,
            "ghost": None if views[0].ghost is None else list(views[0].ghost),
        },
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
        "result": {
            "termination": record.termination.value,
            "scores": list(record.scores),
            "ranks": list(record.ranks),
            "forfeited": list(record.forfeited),
        },
    }


def _move(step: ReplayedMove) -> list[Any]:
    move, decision = step.move, step.decision
    events = ([_CODES[type(event)], *map(_plain, event)] for event in step.events)
    return [move.seat, _DECISION_CODES[decision.kind], move.elapsed_us, *events]


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
    """Return the file with the texts of all games: the script `linkoPhrases({...});`.

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
    return f"{function}({text.translate(_UNSAFE)});\n"
