"""Scripted positions: for each ruleset the beginning of a game in which a seat meets all kinds of decisions.

They come from fixed seeds and the rules alone, so nothing is stored. The script goes on whatever is
answered: that is how every bot can be asked every kind of decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from referee import deals
from referee.check.seats import Chance
from referee.clocks import Clocks
from referee.match import GameSetup, play_game
from referee.records import BotId, Reply, Request
from referee.rules.actions import DecisionKind
from referee.rules.ruleset import Ruleset

SEED = bytes(32)
"""From which everything in a check is dealt."""
TIMES = 3
"""How often each kind comes at least."""
_KINDS = (
    DecisionKind.PLAY,
    DecisionKind.TAKE_OR_LEAVE,
    DecisionKind.RECLAIM_OR_DISCARD,
    DecisionKind.DRAW,
)


@dataclass(frozen=True, slots=True)
class Script:
    """A game as one seat meets it."""

    name: str
    ruleset: Ruleset
    players: int
    seat: int
    deck: tuple[int, ...]
    requests: tuple[Request, ...]
    """Every decision of the seat, from the first one on."""


class _Recorder(Chance):
    """Chance that keeps what it was asked."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.requests: list[Request] = []

    async def decide(self, request: Request) -> Reply:
        """See `Player.decide`."""
        self.requests.append(request)
        return await super().decide(request)


def kinds_of(ruleset: Ruleset) -> tuple[DecisionKind, ...]:
    """The kinds of decisions that a ruleset has."""
    optional = (DecisionKind.OPTIONAL_DRAW,) if ruleset.optional_draw else ()
    ghost = (DecisionKind.GHOST_SET,) if ruleset.ghost else ()
    return (*_KINDS, *optional, *ghost)


async def script(ruleset: Ruleset, players: int, clocks: Clocks) -> Script:
    """The first game by chance in which some seat meets all kinds often enough, and no more of it."""
    for number in count():
        name = f"script-{ruleset.name}-{number}"
        deck = deals.deck(SEED, name, ruleset)
        seats = [_Recorder(f"{name}-{seat}") for seat in range(players)]
        setup = GameSetup(
            game_id=name,
            ruleset=ruleset,
            seating=(BotId("chance", "1"),) * players,
            deck=deck,
            clocks=clocks,
            max_strikes=1,
            isolation="none",
        )
        await play_game(setup, seats, now_us=int, monotonic_us=int)
        found = [
            (length, seat)
            for seat, recorder in enumerate(seats)
            if (length := _enough(recorder.requests, kinds_of(ruleset)))
        ]
        if found:
            length, seat = min(found)
            return Script(name, ruleset, players, seat, deck, tuple(seats[seat].requests[:length]))
    raise AssertionError  # `count` never ends


def _enough(requests: Sequence[Request], kinds: Sequence[DecisionKind]) -> int | None:
    """How many of these decisions, from the first on, hold every kind often enough; None: not all do."""
    met = Counter[DecisionKind]()
    for length, request in enumerate(requests, start=1):
        met[request.decision.kind] += 1
        if all(met[kind] >= TIMES for kind in kinds):
            return length
    return None
