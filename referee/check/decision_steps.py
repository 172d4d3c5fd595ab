"""Put every kind of decision of a ruleset to the bot, in scripted positions.

A script is the beginning of a random game in which one seat meets every kind of decision. It follows from
fixed seeds and the rules, so nothing is stored. It continues in the same way whatever the bot replies, so
every bot gets every kind of decision.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from referee import deals
from referee.check import Finding, StepFailure, count_text, pass_with
from referee.check.bot_under_test import BotUnderTest
from referee.check.games import (
    SEED,
    TIME_BUDGET_S,
    BotSeat,
    CheckGame,
    RandomPlayer,
    start_game,
)
from referee.clocks import Clocks
from referee.errors import BotFault, Cause
from referee.match.play import GameSetup, play_game
from referee.records import BotId, Reply, Request
from referee.rules.actions import DecisionKind
from referee.rules.ruleset import Ruleset

MIN_REPEATS = 3
"""How often a script has each kind of decision, at least."""
_KINDS = (
    DecisionKind.PLAY,
    DecisionKind.TAKE_OR_LEAVE,
    DecisionKind.RECLAIM_OR_DISCARD,
    DecisionKind.DRAW,
)
_RECOVERABLE_CAUSES = {Cause.ILLEGAL, Cause.MALFORMED}
"""Faults after which the step goes on. After any other fault the bot is slow or has exited."""


@dataclass(frozen=True, slots=True)
class Script:
    """The beginning of a game from the view of one seat."""

    game: CheckGame
    """The game, with the seat."""
    requests: tuple[Request, ...]
    """All requests to the seat from the start of the game."""


class _RecordingPlayer(RandomPlayer):
    """A random player that keeps its requests."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.requests: list[Request] = []

    async def decide(self, request: Request) -> Reply:
        """See `Player.decide`."""
        self.requests.append(request)
        return await super().decide(request)


async def check_decisions(bot: BotUnderTest, ruleset: Ruleset, players: int) -> Finding:
    """Send all kinds of decisions of a ruleset to a fresh process of the bot.

    Raises `StepFailure` with the first wrong reply to each kind.
    """
    script = await find_script(ruleset, players, bot.clocks)
    kinds = decision_kinds(ruleset)
    until_s = time.monotonic() + TIME_BUDGET_S
    async with bot.run() as process:
        seat = BotSeat(
            process, await start_game(bot, process, script.game), script.game.description
        )
        requested = Counter[DecisionKind]()
        failures = defaultdict[DecisionKind, list[StepFailure]](list)
        for request in script.requests:
            if time.monotonic() > until_s and len(requested) == len(kinds):
                break
            kind = request.decision.kind
            requested[kind] += 1
            try:
                reply = await seat.decide(request)
            except BotFault as fault:
                assert seat.failure is not None  # noqa: S101 - `BotSeat.decide` has set it
                failures[kind].append(seat.failure)
                if fault.cause not in _RECOVERABLE_CAUSES:
                    break
            else:
                bot.measurements.add_decision(kind, reply.elapsed_us)
        if failures:
            raise _merge(failures, requested)
    return pass_with(
        f"{count_text(requested.total(), 'decision')}; all {len(requested)} kinds of decisions"
    )


def _merge(
    failures: dict[DecisionKind, list[StepFailure]], requested: Counter[DecisionKind]
) -> StepFailure:
    """Merge all failures into one, with the first failure of each kind of decision and the number of failures."""
    expected = "\n".join(of_kind[0].expected for of_kind in failures.values())
    came = "\n".join(
        of_kind[0].came
        + (f" ({len(of_kind)} of {requested[kind]} such decisions)" if len(of_kind) > 1 else "")
        for kind, of_kind in failures.items()
    )
    return StepFailure(expected, came)


def decision_kinds(ruleset: Ruleset) -> tuple[DecisionKind, ...]:
    """Return the kinds of decisions that a ruleset has."""
    optional = (DecisionKind.OPTIONAL_DRAW,) if ruleset.optional_draw else ()
    ghost = (DecisionKind.GHOST_SET,) if ruleset.ghost else ()
    return (*_KINDS, *optional, *ghost)


async def find_script(ruleset: Ruleset, players: int, clocks: Clocks) -> Script:
    """Return the start of the first random game in which a seat meets each kind `MIN_REPEATS` times."""
    for number in count():
        name = f"script-{ruleset.name}-{number}"
        seats = [_RecordingPlayer(f"{name}-{seat}") for seat in range(players)]
        setup = GameSetup(
            game_id=name,
            ruleset=ruleset,
            seating=(BotId("chance", "1"),) * players,
            deck=deals.deck(SEED, name, ruleset),
            clocks=clocks,
            max_strikes=1,
            isolation="none",
        )
        await play_game(setup, seats, now_us=int, monotonic_us=int)
        candidates = [
            (length, seat)
            for seat, player in enumerate(seats)
            if (length := _sufficient_length(player.requests, decision_kinds(ruleset)))
        ]
        if candidates:
            length, seat = min(candidates)
            game = CheckGame(name, ruleset, players, seat)
            return Script(game, tuple(seats[seat].requests[:length]))
    raise AssertionError  # `count` never ends


def _sufficient_length(requests: Sequence[Request], kinds: Sequence[DecisionKind]) -> int | None:
    """Return how many requests from the start have each kind often enough; None if all do not."""
    seen = Counter[DecisionKind]()
    for length, request in enumerate(requests, start=1):
        seen[request.decision.kind] += 1
        if all(seen[kind] >= MIN_REPEATS for kind in kinds):
            return length
    return None
