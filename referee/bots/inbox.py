"""Check the messages of a bot and pass each reply to the request that awaits it.

`proto/README.md` defines what a bot may send. The module `clock` decides whether a reply is late.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from referee.bots.clock import READY, PendingRequest, PendingRequests
from referee.errors import Cause, Evidence, Forfeit, Strike
from referee.pb import play_pb2
from referee.protocol import messages
from referee.protocol.values import PROTOCOL_VERSION

MESSAGE_LIMIT = 1 << 16
"""The most bytes in a message of a bot. A larger message forfeits the game."""
FLOOD_QUOTA = 200
"""How many unsolicited messages plus extra streams a bot may produce between two valid replies or readies. Each unsolicited
hello, reply or ready in a message counts as one unsolicited message."""


class Inbox:
    """The messages from one bot.

    Args:
        requests: the pending requests of the bot.
        games: the ids of the games that the bot plays now.
        token: the token that the bot's hello must contain.
        is_foreign: returns whether a token belongs to another bot.
    """

    def __init__(
        self,
        requests: PendingRequests,
        *,
        games: Container[str],
        token: str,
        is_foreign: Callable[[str], bool],
    ) -> None:
        self._requests = requests
        self._games = games
        self._token = token
        self._is_foreign = is_foreign
        self._unsolicited = 0
        self.accepted = 0
        """How many replies and readies were accepted."""
        self.dropped = 0
        """How many replies, readies and hellos were dropped, because they came late, twice or without a request. For each
        valid reply in a message, one ready without a request is ignored, and does not count."""

    def receive_sole_reply(self, data: bytes) -> bool:
        """Process a message if it contains only a reply, and this reply is for the only request of the batch.

        Return True if the message was processed. If not, the caller must pass the message to `receive`, which is slower.
        """
        batch = self._requests.batch
        if batch is None or len(batch.requests) != 1:
            return False
        (request,) = batch.requests
        number = request.number
        if number == READY or not request.is_open:
            return False
        action = messages.find_lone_action(data, request.game_id, number)
        if action is None:
            return False
        self._unsolicited = 0
        self._complete(request, action)
        self._requests.end_message()
        return True

    def parse_hello(self, data: bytes) -> play_pb2.Hello:
        """Return the hello in the first message of a stream. Raises `Forfeit` if it is not valid."""
        _check_size(data)
        try:
            message = messages.parse_bot_message(data)
        except ValueError as error:
            raise _bad_hello(f"the first message is no hello: {error}") from None
        hello = message.hello
        if not message.HasField("hello"):
            raise _bad_hello("the first message has no hello")
        if hello.protocol_version != PROTOCOL_VERSION:
            raise _bad_hello(
                f"the bot speaks protocol version {hello.protocol_version},"
                f" the referee {PROTOCOL_VERSION}"
            )
        if hello.token != self._token:
            if self._is_foreign(hello.token):
                raise _forfeit(Cause.IMPERSONATION, "the hello has another bot's token")
            raise _bad_hello("the hello has a wrong token")
        return hello

    def receive(self, data: bytes) -> None:
        """Process any message of the bot after its hello.

        Raises `Forfeit` if the message is too large, or if the bot has sent too many unsolicited messages.
        """
        _check_size(data)
        try:
            message = messages.parse_bot_message(data)
        except ValueError as error:
            self._charge_malformed(str(error))
        else:
            self._receive_replies(message)

    def count_unsolicited(self, count: int) -> None:
        """Count unsolicited messages or streams. Raises `Forfeit` if the bot exceeds `FLOOD_QUOTA`."""
        self._unsolicited += count
        if self._unsolicited > FLOOD_QUOTA:
            raise _forfeit(
                Cause.FLOOD,
                f"the bot produced more than {FLOOD_QUOTA} messages or streams that the referee did not wait for",
            )

    def _receive_replies(self, message: play_pb2.BotMessage) -> None:
        accepted = late = 0
        unsolicited = int(message.HasField("hello"))
        for reply in message.replies:
            number = reply.decision_id
            request = None if number == READY else self._find_request(reply.game_id, number)
            if request is not None:
                accepted += 1
                self._complete(request, reply.action.SerializeToString())
            elif self._requests.take_late_reply(reply.game_id, number):
                late += 1
            else:
                unsolicited += 1
        superfluous = -accepted  # one superfluous ready beside each valid reply is ignored
        for ready in message.ready:
            request = self._find_request(ready.game_id, READY)
            if request is not None:
                accepted += 1
                self._complete(request, b"")
            elif self._requests.take_late_reply(ready.game_id, READY):
                late += 1
            else:
                superfluous += 1
        unsolicited += max(superfluous, 0)
        self.dropped += late + unsolicited
        if accepted:
            self._unsolicited = 0
            self._requests.end_message()
        if unsolicited or not (accepted or late):
            self.count_unsolicited(unsolicited or 1)

    def _find_request(self, game_id: str, number: int) -> PendingRequest | None:
        """Return the open request of a reply or a ready; None if there is none.

        A request that is not written yet is not returned, because the bot can only have guessed its number.
        """
        request = self._requests.pending.get(game_id)
        if request is None or request.number != number:
            return None
        return request if request.batch is not None and request.is_open else None

    def _complete(self, request: PendingRequest, action: bytes) -> None:
        """Note the reply to a request: a serialised action, empty if the bot only says that it is ready."""
        self.accepted += 1
        if self._requests.overdue:
            self._requests.forget_overdue(request.game_id, self._games)
        self._requests.complete(request, action)

    def _charge_malformed(self, reason: str) -> None:
        """Charge a strike for every open decision, because the malformed message may be the reply to any of them.

        If no decision is open, count the message as unsolicited.
        """
        batch = self._requests.batch
        waiting = [
            request
            for request in (() if batch is None else batch.requests)
            if request.number != READY and request.is_open
        ]
        for request in waiting:
            evidence = self._requests.add_times(Evidence(detail=reason), request)
            self._requests.fail(request, Strike(Cause.MALFORMED, evidence))
        if not waiting:
            self.count_unsolicited(1)


def _check_size(data: bytes) -> None:
    if len(data) > MESSAGE_LIMIT:
        raise _forfeit(
            Cause.TOO_LARGE,
            f"the bot sent a message of {len(data)} bytes; the limit is {MESSAGE_LIMIT}",
        )


def _bad_hello(detail: str) -> Forfeit:
    return _forfeit(Cause.HANDSHAKE, detail)


def _forfeit(cause: Cause, detail: str) -> Forfeit:
    return Forfeit(cause, Evidence(detail=detail))
