"""Play games while one seat observes them with the SDK, from small positions too."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from referee.clocks import Clocks, DecisionTime
from referee.pb import play_pb2
from referee.protocol import messages
from referee.records import Request as RefereeRequest
from referee.rules.actions import Action
from referee.rules.events import Event, redact
from referee.rules.game import Game
from referee.rules.ruleset import (
    FULL,
    JOKER,
    RULESETS,
    GhostOverflow,
    GhostSnatch,
    GhostStart,
    Ruleset,
    count_cards,
)
from referee.rules.table import Table
from referee.sdk import Bot, Request
from referee.sdk import Game as StartedGame
from referee.sdk.simulate import InformationSet, Observer

VARIANTS = RULESETS | {
    "duel-with-options": RULESETS["duel"].with_options(
        ghost_start=GhostStart.AS_DEALT,
        ghost_snatch=GhostSnatch.OPTIONAL,
        ghost_overflow=GhostOverflow.LOWEST,
    )
}
_DECISION_TIME = DecisionTime(1_000_000, None, 0)


class Seat:
    """A seat that gets the start and the requests of a game as a bot gets them."""

    def __init__(self, game: Game, seat: int) -> None:
        start = messages.game_start(
            "g",
            rules=game.ruleset,
            view=game.view(seat),
            clocks=Clocks(),
            seed=1,
            names=(),
            max_strikes=3,
        )
        message = play_pb2.RefereeMessage.FromString(start)
        self.number = seat
        self.started = StartedGame(message.game_starts[0])
        self.unseen: list[Event] = []
        """The events since the last request."""
        self._encoder = messages.RequestEncoder("g")

    def see(self, events: Sequence[Event]) -> None:
        self.unseen += [redact(event, self.number) for event in events]

    def request(self, game: Game) -> Request:
        """Return the request for the current decision, which must be one of this seat."""
        assert game.decision.seat == self.number
        sent = RefereeRequest(
            1, game.view(self.number), game.decision, tuple(self.unseen), _DECISION_TIME
        )
        self.unseen.clear()
        message = play_pb2.RefereeMessage.FromString(self._encoder.encode(sent))
        return Request(message.requests[0], self.started, Bot())


@dataclass
class Observed:
    """A decision of the observing seat, and the game until then."""

    game: Game
    information_set: InformationSet
    actions: list[Action] = field(default_factory=list)
    """All actions before the decision."""
    events: list[Event] = field(default_factory=list)
    """All events before the decision, as the seat sees them."""


def observe_decisions(game: Game, seat: int, chance: random.Random):
    """Play a game at random, and yield an `Observed` at every decision of the seat."""
    observing = Seat(game, seat)
    observer = Observer(observing.started)
    actions, events = [], []
    while game.decision is not None:
        if game.decision.seat == seat:
            yield Observed(game, observer.observe(observing.request(game)), actions, events)
        actions.append(chance.choice(game.decision.legal))
        new = game.apply(actions[-1])
        observing.see(new)
        events += [redact(event, seat) for event in new]


def small_table(rules: Ruleset, players: int, chance: random.Random) -> Table:
    """Return a table with few hidden cards of few values. All other cards are on the discard pile."""
    pack = [1] * 7 + [2] * 7 + [3] * 6 + [4] * 6 + [5] * 2
    chance.shuffle(pack)
    table = Table(rules, players)
    if rules.ghost:
        table.ghost = count_cards(pack.pop() for _ in range(13))
    pack.insert(chance.randrange(len(pack)), JOKER)
    for seat in range(players):
        dealt = [pack.pop() for _ in range(3 if seat == 0 or players == 2 else 2)]
        if rules.ghost:
            dealt += [JOKER, JOKER]
        table.hands[seat] = list(count_cards(dealt))
        table.hand_sizes[seat] = len(dealt)
    slots = 3 if rules.ghost else 6 - players
    table.display = (*((pack.pop(),) for _ in range(slots)), *((),) * (6 - slots))
    table.deck = tuple(pack.pop() for _ in range(6 - players))
    table.deck_size = len(table.deck)
    lying = [*map(sum, zip(*table.hands, table.ghost or [0] * 15, strict=True))]
    for group in (*table.display, table.deck):
        for card in group:
            lying[card] += 1
    table.discards = tuple(all_ - some for all_, some in zip(FULL, lying, strict=True))
    return table
