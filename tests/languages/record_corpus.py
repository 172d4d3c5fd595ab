"""Write the conformance corpus: `.venv/bin/python tests/languages/record_corpus.py`.

The script plays games of every ruleset at every table size. Some seats follow the policy of `greedy`,
others play at random. It stores a number of hard requests of each sort at each table. Every run writes
the same corpus.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence

import corpus
from hard_positions import Position, signs
from policy import choose

from referee import deals
from referee.clocks import Clocks, DecisionTime
from referee.pb import play_pb2
from referee.protocol import messages
from referee.protocol.values import action_value, ruleset_message
from referee.records import Request
from referee.rules.events import Event, redact
from referee.rules.game import Game
from referee.rules.ruleset import (
    RULESETS,
    EndOn,
    GhostOverflow,
    GhostSnatch,
    GhostStart,
    Ruleset,
)

SEED = bytes(32)
TABLES = [
    (rules, seats)
    for rules in RULESETS.values()
    for seats in range(rules.min_players, rules.max_players + 1)
]
GAMES = 48
"""The number of games of each ruleset, at all its tables together."""
QUOTA = 20
"""The number of positions of each sort that are stored of each ruleset, if its games have them."""
END_ON_DECK_EACH = 3
"""One of this many games ends with the deck."""
CHANGED_DUEL_EACH = 2
"""One of this many duels has all its options changed."""
CLOCKS = Clocks()
_DECISION_TIME = DecisionTime(CLOCKS.decision_us, None, 0)


class Quota:
    """Count the stored positions of a table, and say which others are still needed."""

    def __init__(self, quota: int) -> None:
        self._quota = quota
        self._kept: Counter[tuple[int, str]] = Counter()
        """The number of stored positions by kind of decision and sort."""

    def take(self, position: Position) -> bool:
        """Return True if this position is still needed, and count it."""
        sorts = [(position.request.kind, sign) for sign in signs(position)]
        if all(self._kept[sort] >= self._quota for sort in sorts):
            return False
        self._kept.update(sorts)
        return True


class SeatRecorder:
    """Record the messages of one seat of a game, with its hard requests only."""

    def __init__(self, name: str, game: Game, rules: Ruleset, seat: int, quota: Quota) -> None:
        game_id = deals.opaque_id(SEED, f"{name}-{seat}")
        self.unseen: list[Event] = []
        self.sent = play_pb2.RefereeMessage.FromString(
            messages.game_start(
                game_id,
                rules=rules,
                view=game.view(seat),
                clocks=CLOCKS,
                seed=deals.bot_seed(SEED, name, seat),
                names=(),
                max_strikes=3,
            )
        )
        self.expected = play_pb2.BotMessage(ready=[play_pb2.Ready(game_id=game_id)])
        self._rules = ruleset_message(rules)
        self._encoder = messages.RequestEncoder(game_id)
        self._quota = quota

    def reply(self, request: Request) -> play_pb2.Reply:
        """Return the reply of `greedy`. A hard request is stored with it."""
        message = play_pb2.RefereeMessage.FromString(self._encoder.encode(request))
        (encoded,) = message.requests
        action = choose(encoded, self._rules)
        reply = play_pb2.Reply(
            game_id=encoded.game_id, decision_id=encoded.decision_id, action=action
        )
        if self._quota.take(Position(encoded, self._rules, action)):
            self.sent.requests.append(encoded)
            self.expected.replies.append(reply)
        return reply

    def take_events(self) -> tuple[Event, ...]:
        """Return the events that this seat has not seen yet."""
        events = tuple(self.unseen)
        self.unseen.clear()
        return events

    def end(self, ranks: Sequence[int]) -> corpus.Seat:
        game_id = self.sent.game_starts[0].game_id
        end = messages.game_end(game_id, self.take_events(), ranks, "", forfeited=False)
        self.sent.MergeFromString(end)
        return corpus.Seat(self.sent, self.expected)


def record_game(rules: Ruleset, seats: int, number: int, quota: Quota) -> Iterator[corpus.Seat]:
    """Play one game; yield the seats that have stored requests."""
    name = f"{rules.name}-{seats}-{number}"
    chance = random.Random(name)
    if number % END_ON_DECK_EACH == END_ON_DECK_EACH - 1:
        rules = rules.with_options(end_on=EndOn.DECK)
    if rules.ghost and number % CHANGED_DUEL_EACH == CHANGED_DUEL_EACH - 1:
        rules = rules.with_options(
            ghost_start=GhostStart.AS_DEALT,
            ghost_snatch=GhostSnatch.OPTIONAL,
            ghost_overflow=GhostOverflow.LOWEST,
        )
    game = Game(rules, seats, deals.deck(SEED, name, rules))
    recorders = [SeatRecorder(name, game, rules, seat, quota) for seat in range(seats)]
    for decision_id in itertools.count(1):
        if (decision := game.decision) is None:
            break
        seat = decision.seat
        events = recorders[seat].take_events()
        request = Request(decision_id, game.view(seat), decision, events, _DECISION_TIME)
        action = action_value(recorders[seat].reply(request).action)
        if seat % 2 != number % 2:
            action = chance.choice(decision.legal)
        for event in game.apply(action):
            for other, listener in enumerate(recorders):
                listener.unseen.append(redact(event, other))
    for recorder in recorders:
        if recorder.sent.requests:
            yield recorder.end(game.outcome.ranks)


def record() -> list[corpus.Seat]:
    """Return the corpus: the first game of each table, then the second of each, and so on.

    With this order, games that a bot plays at the same time have different rules.
    """
    tables = Counter(rules.name for rules, _ in TABLES)
    quotas = [Quota(QUOTA // tables[rules.name]) for rules, _ in TABLES]
    return [
        seat
        for number in range(GAMES)
        for (rules, seats), quota in zip(TABLES, quotas, strict=True)
        if number < GAMES // tables[rules.name]
        for seat in record_game(rules, seats, number, quota)
    ]


if __name__ == "__main__":
    corpus.PATH.write_bytes(corpus.compress(corpus.pack(record())))
