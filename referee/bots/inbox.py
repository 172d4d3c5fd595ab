"""What a bot says on its stream: its hello, answers, and what it must not send.

Everything is looked at here and believed only when somebody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from referee.bots.clock import READY, PendingRequest, PendingRequests, resolve
from referee.bots.server import MESSAGE_LIMIT
from referee.errors import Cause, Evidence, Forfeit, Strike
from referee.pb import play_pb2
from referee.protocol import decode
from referee.protocol.encode import PROTOCOL_VERSION

FLOOD_QUOTA = 200
"""Unasked messages that a bot may send, and streams it may open, between two answers."""


class Inbox:
    """What came from one bot.

    Args:
        hello: the question that its first message answers.
        questions: what it has been asked; each answer is handed to who waits for it.
        games: those that have started and not ended.
        token: what the bot has to show.
        is_foreign: whether a token is another bot's.
    """

    def __init__(
        self,
        hello: PendingRequest,
        questions: PendingRequests,
        *,
        games: Container[str],
        token: str,
        is_foreign: Callable[[str], bool],
    ) -> None:
        self._hello = hello
        self._questions = questions
        self._games = games
        self._token = token
        self._is_foreign = is_foreign
        self._unasked = 0
        self.dropped = 0
        """What came too late, twice, or for something else: replies, and hellos after the first."""

    def answers(self, data: bytes) -> bool:
        """Whether a message was the reply to the only open decision and nothing else, as nearly all are.

        Such a one is done with; any other is for `take`.
        """
        open_questions = self._questions.open
        if len(open_questions) != 1:
            return False
        (question,) = open_questions.values()
        number = question.number
        if number == READY or question.answer.done():
            return False
        action = decode.lone_action(data, question.game_id, number)
        if action is None:
            return False
        self._unasked = 0
        self._resolve(question, action)
        return True

    def take(self, data: bytes) -> None:
        """Look at any message. Raises `Forfeit` when the bot must not go on."""
        if len(data) > MESSAGE_LIMIT:
            raise _forfeit(Cause.TOO_LARGE, f"a message of {len(data)} bytes")
        first = not self._hello.answer.done()
        try:
            message = decode.bot_message(data)
        except ValueError as error:
            if first:
                raise _no_hello(f"the first message is no hello: {error}") from None
            self._malformed(str(error))
        else:
            if first:
                self._receive_hello(message)
            else:
                self._receive(message)

    def count_unasked(self, count: int) -> None:
        """Nobody has asked for so many messages or streams. Raises `Forfeit` when they are too many."""
        self._unasked += count
        if self._unasked > FLOOD_QUOTA:
            raise _forfeit(
                Cause.FLOOD, f"more than {FLOOD_QUOTA} messages or streams that nobody asked for"
            )

    def _receive_hello(self, message: play_pb2.BotMessage) -> None:
        hello = message.hello
        if not message.HasField("hello"):
            raise _no_hello("the first message has no hello")
        if hello.protocol_version != PROTOCOL_VERSION:
            raise _no_hello(
                f"the bot speaks protocol version {hello.protocol_version},"
                f" the referee {PROTOCOL_VERSION}"
            )
        if hello.token != self._token:
            if self._is_foreign(hello.token):
                raise _forfeit(Cause.IMPERSONATION, "the hello has another bot's token")
            raise _no_hello("the hello has a wrong token")
        self._hello.answer.set_result(hello)

    def _receive(self, message: play_pb2.BotMessage) -> None:
        accepted = 0
        unasked = int(message.HasField("hello"))
        self.dropped += unasked
        for reply in message.replies:
            number = reply.decision_id
            question = None if number == READY else self._asked(reply.game_id, number)
            if question is None:
                unasked += 1
            else:
                accepted += 1
                self._resolve(question, reply.action.SerializeToString())
        if not accepted or self._starting():  # else nobody waits for a ready
            for ready in message.ready:
                question = self._asked(ready.game_id, READY)
                if question is None:
                    unasked += 1
                else:
                    accepted += 1
                    self._resolve(question, b"")
        if accepted:
            self._unasked = 0
        if unasked or not accepted:
            self.count_unasked(unasked or 1)

    def _starting(self) -> bool:
        return any(each.number == READY for each in self._questions.open.values())

    def _asked(self, game_id: str, number: int) -> PendingRequest | None:
        """What a reply, or a ready, answers; None when nobody waits for it."""
        question = self._questions.open.get(game_id)
        if question is None or question.number != number or question.answer.done():
            self.dropped += 1
            self._questions.unanswered.discard((game_id, number))
            return None
        return question

    def _resolve(self, question: PendingRequest, action: bytes) -> None:
        """Hand an action to who waits for it; a ready has none."""
        questions, limit_us = self._questions, question.limit_us
        if questions.unanswered:
            questions.excuse(question.game_id, self._games)
        elapsed_us = questions.elapsed_us(question)
        if elapsed_us <= limit_us:
            question.answer.set_result((action, elapsed_us, 0))
        else:
            question.answer.set_result((action, limit_us, elapsed_us - limit_us))

    def _malformed(self, why: str) -> None:
        waiting = [
            each
            for each in self._questions.open.values()
            if each.number != READY and not each.answer.done()
        ]
        for question in waiting:
            elapsed_us = self._questions.elapsed_us(question)
            resolve(question, Strike(Cause.MALFORMED, Evidence(detail=why, elapsed_us=elapsed_us)))
        if not waiting:
            self.count_unasked(1)


def _no_hello(detail: str) -> Forfeit:
    return _forfeit(Cause.HANDSHAKE, detail)


def _forfeit(cause: Cause, detail: str) -> Forfeit:
    return Forfeit(cause, Evidence(detail=detail))
