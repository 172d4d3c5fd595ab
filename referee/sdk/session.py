"""The bot's side of the protocol, without any I/O: messages in, messages out.

`client` puts a stream around it; tests and tools put recorded messages into it.
"""

from __future__ import annotations

from referee.pb import play_pb2
from referee.sdk.actions import DecisionKind, message_of
from referee.sdk.bot import Bot, Decide, bot_class
from referee.sdk.game import Game, Result
from referee.sdk.request import Request

_KINDS = {kind.value for kind in DecisionKind}


class Session:
    """All games of one bot process.

    Args:
        bot: a subclass of `Bot`, or a function of a request.
    """

    def __init__(self, bot: type[Bot] | Decide) -> None:
        self._class = bot_class(bot)
        self._games: dict[str, tuple[Game, Bot]] = {}

    def receive(self, message: play_pb2.RefereeMessage) -> play_pb2.BotMessage:
        """Do what the referee's message asks; return the answer, empty where it wants none.

        What the bot raises comes through. Raises KeyError for a game that has not started,
        ValueError or TypeError for answers that are none.
        """
        answer = play_pb2.BotMessage()
        for start in message.game_starts:
            game, bot = Game(start), self._class()
            self._games[game.id] = game, bot
            bot.start(game)
            answer.ready.add(game_id=game.id)
        if message.requests:
            self._decide(message, answer)
        for end in message.game_ends:
            game, bot = self._games.pop(end.game_id)
            bot.end(Result(end, game))
        return answer

    def _decide(self, message: play_pb2.RefereeMessage, answer: play_pb2.BotMessage) -> None:
        """Have the bot answer; a kind that is newer than this kit gets the first legal action."""
        requests = [
            Request(asked, *self._games[asked.game_id])
            for asked in message.requests
            if asked.kind in _KINDS
        ]
        actions = self._class.decide_batch(requests) if requests else ()
        if len(actions) != len(requests):
            raise ValueError(f"{len(actions)} answers to {len(requests)} requests")
        decided = map(message_of, actions)
        for asked in message.requests:
            action = next(decided) if asked.kind in _KINDS else asked.legal[0]
            answer.replies.add(game_id=asked.game_id, decision_id=asked.decision_id, action=action)
