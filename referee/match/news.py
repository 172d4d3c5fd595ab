"""What has happened in a game, and how much of it each seat has been told."""

from __future__ import annotations

from collections.abc import Iterable

from referee.rules.events import Drawn, Event, is_private, seen_by


class News:
    """Keeps one list for all seats: nearly every event is the same for all, and each is told to each.

    Args:
        seats: how many.
    """

    def __init__(self, seats: int) -> None:
        self._public: list[Event] = []
        """Every event, as it looks to those whom it does not concern."""
        self._private: list[list[tuple[int, Drawn]]] = [[] for _ in range(seats)]
        """For each seat: what it alone saw and has not been told, and its place in that list."""
        self._told = [0] * seats
        """For each seat: how many of them it has been told."""

    def add(self, events: Iterable[Event]) -> None:
        """Something has happened; unredacted."""
        public = self._public
        for event in events:
            if is_private(event):
                seat = event.seat
                self._private[seat].append((len(public), event))
                public.append(seen_by(event, (seat + 1) % len(self._told)))
            else:
                public.append(event)

    def take(self, seat: int) -> tuple[Event, ...]:
        """What has happened since this seat last took its news, as it may know it."""
        public, told = self._public, self._told[seat]
        self._told[seat] = len(public)
        news = public[told:]
        private = self._private[seat]
        if private:
            for place, event in private:
                news[place - told] = event
            private.clear()
        return tuple(news)
