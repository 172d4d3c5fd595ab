"""The corpus as conversations: several games in progress, their requests in one message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from corpus import Seat

from referee.pb import play_pb2


class _Progress:
    """How far a game is."""

    def __init__(self, seat: Seat) -> None:
        self.start = seat.asked.game_starts[0]
        self.end = seat.asked.game_ends[0]
        self.ready = seat.answered.ready[0]
        self.moves = iter(zip(seat.asked.requests, seat.answered.replies, strict=True))


def conversation(
    seats: Sequence[Seat], at_once: int
) -> Iterator[tuple[play_pb2.RefereeMessage, play_pb2.BotMessage]]:
    """What the referee says, and what the bot should answer; an empty message where it should not.

    So many games as the bot can hold are always in progress. In a message there may be ends, starts, and
    a request of every game that has started before.
    """
    waiting = map(_Progress, seats)
    playing: list[_Progress] = []
    while True:
        said, wanted = play_pb2.RefereeMessage(), play_pb2.BotMessage()
        going_on = []
        for game in playing:
            if (move := next(game.moves, None)) is None:
                said.game_ends.append(game.end)
                continue
            request, reply = move
            said.requests.append(request)
            wanted.replies.append(reply)
            going_on.append(game)
        started = list(islice(waiting, at_once - len(going_on)))
        for game in started:
            said.game_starts.append(game.start)
            wanted.ready.append(game.ready)
        playing = going_on + started
        yield said, wanted
        if not playing:
            return
