"""Make conversations of the corpus: several games in progress, with their requests in one message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from corpus import Seat

from referee.pb import play_pb2


class _Progress:
    """The rest of a game in progress."""

    def __init__(self, seat: Seat) -> None:
        self.start = seat.sent.game_starts[0]
        self.end = seat.sent.game_ends[0]
        self.ready = seat.expected.ready[0]
        self.moves = iter(zip(seat.sent.requests, seat.expected.replies, strict=True))


def conversation(
    seats: Sequence[Seat], at_once: int
) -> Iterator[tuple[play_pb2.RefereeMessage, play_pb2.BotMessage]]:
    """Yield the referee's messages, each with the expected answer, which may be empty.

    `at_once` games are in progress as long as the corpus lasts. A message may have game ends, game starts,
    and a request of every game that started before.
    """
    waiting = map(_Progress, seats)
    playing: list[_Progress] = []
    while True:
        message, expected = play_pb2.RefereeMessage(), play_pb2.BotMessage()
        unfinished = []
        for game in playing:
            if (move := next(game.moves, None)) is None:
                message.game_ends.append(game.end)
                continue
            request, reply = move
            message.requests.append(request)
            expected.replies.append(reply)
            unfinished.append(game)
        started = list(islice(waiting, at_once - len(unfinished)))
        for game in started:
            message.game_starts.append(game.start)
            expected.ready.append(game.ready)
        playing = unfinished + started
        yield message, expected
        if not playing:
            return
