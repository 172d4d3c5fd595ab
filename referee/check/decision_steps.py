"""Request every kind of decision of a ruleset from the bot, in the positions of a script.

A script is the beginning of a random game in which one seat has every kind of decision. The bot gets the requests
to that seat. The replies of the bot do not change the game, and the seeds are fixed. So a script is the same for
every bot. The duel has two scripts: one with its usual rules, and one with all options of its ghost changed.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from referee import deals
from referee.check import Finding, StepFailure, pass_with
from referee.check.bot_under_test import BotUnderTest
from referee.check.games import (
    SEED,
    TIME_BUDGET_S,
    BotSeat,
    CheckGame,
    RandomPlayer,
    list_rulesets,
    start_game,
)
from referee.clocks import Clocks
from referee.errors import BotFault, Cause, count_text
from referee.match.play import GameSetup, play_game
from referee.records import BotId, Reply, Request
from referee.rules.actions import DecisionKind
from referee.rules.ruleset import Ruleset, ruleset_text

MIN_REPEATS = 3
"""The minimum number of decisions of each kind in a script."""
_KINDS = (
    DecisionKind.PLAY,
    DecisionKind.TAKE_OR_LEAVE,
    DecisionKind.RECLAIM_OR_DISCARD,
    DecisionKind.DRAW,
)
"""The kinds of decisions that every ruleset has."""
_RECOVERABLE_CAUSES = {Cause.ILLEGAL, Cause.MALFORMED}
"""After a fault with one of these causes, the script continues. All other faults end it."""


@dataclass(frozen=True, slots=True)
class Script:
    """The beginning of a game as one seat sees it."""

    game: CheckGame
    """The game and the seat of the bot."""
    requests: tuple[Request, ...]
    """The requests to the seat of the bot, in the order of the game."""


class _RecordingPlayer(RandomPlayer):
    """A random player that keeps the requests that it gets."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.requests: list[Request] = []

    async def decide(self, request: Request) -> Reply:
        """See `Player.decide`."""
        self.requests.append(request)
        return await super().decide(request)


async def check_decisions(bot: BotUnderTest, ruleset: Ruleset, players: int) -> Finding:
    """Send the requests of each script of a ruleset to a new process of the bot.

    Each script needs a new process, because a script ends before its game is over, and some bots play only one game at
    a time. The scripts share `TIME_BUDGET_S` equally. When the time of a script is over and the bot has got each kind of
    decision once, the rest of the script is left out.

    Raises `StepFailure` if the bot does not start or its ready is wrong or missing. Also raises `StepFailure` after the
    first script in which a reply is wrong or missing. This failure shows the first fault for each kind of decision.
    """
    scripts = [await find_script(each, players, bot.clocks) for each in list_rulesets(ruleset)]
    results = _StepResults()
    for script in scripts:
        async with bot.run() as process:
            player = await start_game(bot, process, script.game)
            seat = BotSeat(process, player, script.game.description)
            await _request_script(bot, seat, script, TIME_BUDGET_S / len(scripts), results)
            if results.failures:
                raise _merge(results)
    return pass_with(
        f"{count_text(results.requested.total(), 'decision')}; all {len(results.requested)} kinds of decisions"
    )


class _StepResults:
    """The requests and the failures of one step."""

    def __init__(self) -> None:
        self.requested = Counter[DecisionKind]()
        """The number of requests of each kind."""
        self.failures = defaultdict[DecisionKind, list[StepFailure]](list)
        """The failures of each kind."""


async def _request_script(
    bot: BotUnderTest, seat: BotSeat, script: Script, budget_s: float, results: _StepResults
) -> None:
    """Send the requests of a script to the bot, and add the requests and the failures to `results`."""
    kinds = decision_kinds(script.game.ruleset)
    until_s = time.monotonic() + budget_s
    requested = set[DecisionKind]()
    for request in script.requests:
        if time.monotonic() > until_s and len(requested) == len(kinds):
            return
        kind = request.decision.kind
        requested.add(kind)
        results.requested[kind] += 1
        try:
            reply = await seat.decide(request)
        except BotFault as fault:
            assert seat.failure is not None  # noqa: S101 - `BotSeat.decide` has set it
            results.failures[kind].append(seat.failure)
            if fault.cause not in _RECOVERABLE_CAUSES:
                return
        else:
            bot.measurements.add_decision(kind, reply.elapsed_us)


def _merge(results: _StepResults) -> StepFailure:
    """Return one failure that shows the first failure of each kind of decision.

    If a kind has several failures, their number is shown too.
    """
    failures, requested = results.failures, results.requested
    expected = "\n".join(of_kind[0].expected for of_kind in failures.values())
    happened = "\n".join(
        of_kind[0].happened
        + (f" ({len(of_kind)} of {requested[kind]} such decisions)" if len(of_kind) > 1 else "")
        for kind, of_kind in failures.items()
    )
    symptom = ", ".join(of_kind[0].symptom for of_kind in failures.values())
    return StepFailure(expected, happened, symptom=symptom)


def decision_kinds(ruleset: Ruleset) -> tuple[DecisionKind, ...]:
    """Return the kinds of decisions that a ruleset has."""
    optional = (DecisionKind.OPTIONAL_DRAW,) if ruleset.optional_draw else ()
    ghost = (DecisionKind.GHOST_SET,) if ruleset.ghost else ()
    return (*_KINDS, *optional, *ghost)


async def find_script(ruleset: Ruleset, players: int, clocks: Clocks) -> Script:
    """Return the script of a ruleset.

    The function plays random games until a seat has had each kind of decision `MIN_REPEATS` times in one game.
    The script ends there. If a game gives a script for several seats, the shortest script is returned.
    """
    for number in count():
        name = f"script-{ruleset_text(ruleset)}-{number}"
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
        await play_game(setup, seats, now_us=int, monotonic_ns=int)
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
    """Return the length of the shortest beginning of `requests` that has each of `kinds` at least `MIN_REPEATS` times.

    Returns None if there is no such beginning.
    """
    seen = Counter[DecisionKind]()
    for length, request in enumerate(requests, start=1):
        seen[request.decision.kind] += 1
        if all(seen[kind] >= MIN_REPEATS for kind in kinds):
            return length
    return None
