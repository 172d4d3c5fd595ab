"""Write the conformance corpus: `python tests/languages/record_corpus.py`.

Plays games of every ruleset at every table size, some seats by greedy's policy and some by chance, and
keeps of all requests the hard ones: so many of each sort at each table. Nothing but the code decides what
comes out, so that it can be written again.
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
from referee.protocol import encode
from referee.protocol.values import action_value, ruleset_message
from referee.records import Request
from referee.rules.events import Event, redact
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, EndOn, Ruleset

SEED = bytes(32)
TABLES = [
    (rules, seats)
    for rules in RULESETS.values()
    for seats in range(rules.min_players, rules.max_players + 1)
]
GAMES = 48
"""Of each ruleset, at all its tables."""
QUOTA = 20
"""So many positions of each sort are kept of each ruleset, if its games have them."""
END_ON_DECK_EACH = 3
"""So many games go by until there is one that ends with the deck."""
CLOCKS = Clocks()
_DECISION_TIME = DecisionTime(CLOCKS.decision_us, None, 0)


class Wanted:
    """Which positions of a table are kept."""

    def __init__(self, quota: int) -> None:
        self._quota = quota
        self._kept: Counter[tuple[int, str]] = Counter()
        """By kind of decision and sort."""

    def take(self, position: Position) -> bool:
        """Whether this one is."""
        sorts = [(position.request.kind, sign) for sign in signs(position)]
        if all(self._kept[sort] >= self._quota for sort in sorts):
            return False
        self._kept.update(sorts)
        return True


class SeatRecorder:
    """Keeps what one seat of a game is told, and the hard ones of its requests."""

    def __init__(self, name: str, game: Game, rules: Ruleset, seat: int, wanted: Wanted) -> None:
        game_id = deals.opaque_id(SEED, f"{name}-{seat}")
        self.news: list[Event] = []
        self.asked = play_pb2.RefereeMessage.FromString(
            encode.game_start(
                game_id,
                rules=rules,
                view=game.view(seat),
                clocks=CLOCKS,
                seed=deals.bot_seed(SEED, name, seat),
                names=(),
                max_strikes=3,
            )
        )
        self.answered = play_pb2.BotMessage(ready=[play_pb2.Ready(game_id=game_id)])
        self._rules = ruleset_message(rules)
        self._encoder = encode.RequestEncoder(game_id)
        self._wanted = wanted

    def answer(self, ask: Request) -> play_pb2.Reply:
        """What greedy answers; kept with the request if that is a hard one."""
        message = play_pb2.RefereeMessage.FromString(self._encoder.encode(ask))
        (request,) = message.requests
        action = choose(request, self._rules)
        reply = play_pb2.Reply(
            game_id=request.game_id, decision_id=request.decision_id, action=action
        )
        if self._wanted.take(Position(request, self._rules, action)):
            self.asked.requests.append(request)
            self.answered.replies.append(reply)
        return reply

    def take_news(self) -> tuple[Event, ...]:
        """What this seat has not been told yet."""
        news = tuple(self.news)
        self.news.clear()
        return news

    def end(self, ranks: Sequence[int]) -> corpus.Seat:
        game_id = self.asked.game_starts[0].game_id
        end = encode.game_end(game_id, self.take_news(), ranks, "", forfeited=False)
        self.asked.MergeFromString(end)
        return corpus.Seat(self.asked, self.answered)


def record_game(rules: Ruleset, seats: int, number: int, wanted: Wanted) -> Iterator[corpus.Seat]:
    """Play one game; yield those of its seats of which something is kept."""
    name = f"{rules.name}-{seats}-{number}"
    chance = random.Random(name)
    if number % END_ON_DECK_EACH == END_ON_DECK_EACH - 1:
        rules = rules.with_options(end_on=EndOn.DECK)
    game = Game(rules, seats, deals.deck(SEED, name, rules))
    recorders = [SeatRecorder(name, game, rules, seat, wanted) for seat in range(seats)]
    for decision_id in itertools.count(1):
        if (decision := game.decision) is None:
            break
        seat = decision.seat
        news = recorders[seat].take_news()
        ask = Request(decision_id, game.view(seat), decision, news, _DECISION_TIME)
        action = action_value(recorders[seat].answer(ask).action)
        if seat % 2 != number % 2:
            action = chance.choice(decision.legal)
        for event in game.apply(action):
            for other, listener in enumerate(recorders):
                listener.news.append(redact(event, other))
    for recorder in recorders:
        if recorder.asked.requests:
            yield recorder.end(game.outcome.ranks)


def record() -> list[corpus.Seat]:
    """The corpus: the first game of each table, then the second of each, and so on.

    Games that a bot plays at the same time have different rules that way.
    """
    tables = Counter(rules.name for rules, _ in TABLES)
    wanted = [Wanted(QUOTA // tables[rules.name]) for rules, _ in TABLES]
    return [
        seat
        for number in range(GAMES)
        for (rules, seats), each in zip(TABLES, wanted, strict=True)
        if number < GAMES // tables[rules.name]
        for seat in record_game(rules, seats, number, each)
    ]


if __name__ == "__main__":
    corpus.PATH.write_bytes(corpus.compress(corpus.pack(record())))
