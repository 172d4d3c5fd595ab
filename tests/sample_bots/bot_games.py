"""Play games between sample bots in one process, with the messages of the protocol."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from referee.clocks import Clocks, DecisionTime
from referee.pb import play_pb2, table_pb2
from referee.protocol import messages
from referee.protocol.values import action_message, layer_message, ruleset_message
from referee.records import Request
from referee.rules.actions import (
    RECLAIM_OR_DISCARD,
    TAKE_OR_LEAVE,
    Action,
    Choice,
    DrawDisplay,
    legal_plays,
)
from referee.rules.events import Event, redact
from referee.rules.game import Game, Outcome
from referee.rules.ruleset import (
    RULESETS,
    GhostOverflow,
    GhostSnatch,
    GhostStart,
    Layer,
    Ruleset,
    full_deck,
    list_cards,
)
from referee.sdk import Bot, Decide, Session

FOLDER = Path(__file__).resolve().parents[2] / "sample_bots"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/bot.py"))
CHANGED_DUEL = RULESETS["duel"].with_options(
    ghost_start=GhostStart.AS_DEALT,
    ghost_snatch=GhostSnatch.OPTIONAL,
    ghost_overflow=GhostOverflow.LOWEST,
)
VARIANTS = RULESETS | {"duel-with-options": CHANGED_DUEL}
TABLES = [
    (rules, players)
    for rules in VARIANTS.values()
    for players in sorted({rules.min_players, rules.max_players})
]
TABLE_NAMES = [
    f"{name}-{players}"
    for name, rules in VARIANTS.items()
    for players in sorted({rules.min_players, rules.max_players})
]
MOVES = 20
"""No game is over after fewer actions."""
_SINGLE_ONE = Layer(1, 1, 0)
_DECISION_TIME = DecisionTime(1_000_000, None, 0)

Watch = Callable[[int, Game, play_pb2.Request, play_pb2.Reply], None]
"""Called at each decision with the seat, the game before the action, the request and the reply."""


@cache
def module(name: str) -> ModuleType:
    """Return the program of a sample bot as an imported module."""
    spec = importlib.util.spec_from_file_location(f"sample_bot_{name}", FOLDER / name / "bot.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def bot(name: str) -> type[Bot] | Decide:
    """Return the class or function that the program of a sample bot runs.

    `ismcts` searches by a number of iterations here, not by the clock, so that it decides the same again.
    """
    program = module(name)
    if name == "ismcts":
        return type("Ismcts", (program.Ismcts,), {"seconds": 60, "iterations": 8})
    class_name = name.capitalize()
    return getattr(program, class_name) if hasattr(program, class_name) else program.decide


def shuffled(rules: Ruleset, seed: int) -> list[int]:
    deck = list_cards(full_deck(rules))
    random.Random(seed).shuffle(deck)
    return deck


def play(
    bots: Sequence[type[Bot] | Decide],
    rules: Ruleset,
    seed: int,
    watch: Watch = lambda *_: None,
    change: Callable[[play_pb2.Request], None] = lambda _: None,
) -> Outcome:
    """Play one game, with `change` applied to each request. Raises IllegalActionError for an illegal action."""
    game = Game(rules, len(bots), shuffled(rules, seed))
    sessions = [Session(each) for each in bots]
    for seat, session in enumerate(sessions):
        start = messages.game_start(
            "g",
            rules=rules,
            view=game.view(seat),
            clocks=Clocks(),
            seed=100 * seed + seat,
            names=(),
            max_strikes=3,
        )
        session.receive(play_pb2.RefereeMessage.FromString(start))
    encoder = messages.RequestEncoder("g")
    unseen: list[list[Event]] = [[] for _ in bots]
    number = 0
    while (decision := game.decision) is not None:
        seat, number = decision.seat, number + 1
        request = Request(number, game.view(seat), decision, tuple(unseen[seat]), _DECISION_TIME)
        unseen[seat].clear()
        message = play_pb2.RefereeMessage.FromString(encoder.encode(request))
        change(message.requests[0])
        (reply,) = sessions[seat].receive(message).replies
        watch(seat, game, message.requests[0], reply)
        for event in game.apply(messages.parse_action(reply.action.SerializeToString(), request)):
            for other, events in enumerate(unseen):
                events.append(redact(event, other))
    return game.outcome


def start_games(
    session: Session, tables: Sequence[tuple[Ruleset, int]], chance: random.Random
) -> list[bytes]:
    """Start a game at each table, and return a request of each, after some random actions."""
    requests = []
    for number, (rules, players) in enumerate(tables):
        game = Game(rules, players, shuffled(rules, number))
        for _ in range(chance.randrange(MOVES)):
            game.apply(chance.choice(game.decision.legal))
        decision = game.decision
        view = game.view(decision.seat)
        start = messages.game_start(
            str(number),
            rules=rules,
            view=view,
            clocks=Clocks(),
            seed=number,
            names=(),
            max_strikes=3,
        )
        session.receive_bytes(start)
        request = Request(1, view, decision, (), _DECISION_TIME)
        requests.append(messages.RequestEncoder(str(number)).encode(request))
    return requests


def decide(
    name: str,
    kind: table_pb2.DecisionKind,
    *,
    hand: Mapping[int, int],
    tops: Sequence[Layer] = (),
    snatched: Layer = _SINGLE_ONE,
    display: Sequence[int] = (),
    ghost_actions: Sequence[Action] = (),
    other_hand: int = 9,
    deck_size: int = 50,
) -> table_pb2.Action:
    """Return the action of seat 0 in `basic`, against two seats with these top layers.

    `ghost_actions` are the legal actions of a decision about the ghost, which is no part of the view.
    """
    counts = [hand.get(card, 0) for card in range(15)]
    view = table_pb2.View(
        hand=counts,
        hand_sizes=[sum(counts), other_hand, other_hand],
        tables=[{}, *({"layers": [layer_message(top)]} for top in tops)] if tops else [{}, {}, {}],
        display=[table_pb2.Slot(cards=[card]) for card in display],
        deck_size=deck_size,
        snatched=layer_message(snatched),
    )
    start = play_pb2.GameStart(
        game_id="g", ruleset=ruleset_message(RULESETS["basic"]), view=view, seed=1
    )
    options: dict[int, Sequence[Action]] = {
        table_pb2.DECISION_KIND_PLAY: legal_plays(counts),
        table_pb2.DECISION_KIND_TAKE_OR_LEAVE: TAKE_OR_LEAVE,
        table_pb2.DECISION_KIND_RECLAIM_OR_DISCARD: RECLAIM_OR_DISCARD,
        table_pb2.DECISION_KIND_GHOST_SET: ghost_actions,
    }
    draws = [Choice.DRAW_DECK, *(DrawDisplay(slot, (card,)) for slot, card in enumerate(display))]
    options[table_pb2.DECISION_KIND_DRAW] = draws
    options[table_pb2.DECISION_KIND_OPTIONAL_DRAW] = [Choice.PASS, *draws]
    legal = [action_message(action) for action in options[kind]]
    request = play_pb2.Request(game_id="g", kind=kind, view=view, legal=legal)
    message = play_pb2.RefereeMessage(game_starts=[start], requests=[request])
    return Session(bot(name)).receive(message).replies[0].action
