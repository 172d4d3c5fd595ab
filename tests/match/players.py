"""Provide players that decide with a function, and games for them to play."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from referee.clocks import Clocks
from referee.errors import Forfeit
from referee.match.play import GameSetup, RecordedGame, Watcher, play_game
from referee.records import BotId, Player, Reply, Request
from referee.rules.actions import Action
from referee.rules.ruleset import RULESETS, Ruleset, full_deck, list_cards


class FunctionPlayer:
    """A player that decides with a function. Every decision takes the same time."""

    def __init__(
        self, choose: Callable[[Request], Action], elapsed_us: int = 7, lag_us: int = 0
    ) -> None:
        self._choose = choose
        self._elapsed_us, self._lag_us = elapsed_us, lag_us
        self.requests: list[Request] = []

    async def decide(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply(self._choose(request), self._elapsed_us, self._lag_us)


def first_legal(request: Request) -> Action:
    return request.decision.legal[0]


def chance(seed: int) -> Callable[[Request], Action]:
    generator = random.Random(seed)
    return lambda request: generator.choice(request.decision.legal)


def shuffled(ruleset: Ruleset, seed: int) -> tuple[int, ...]:
    cards = list_cards(full_deck(ruleset))
    random.Random(seed).shuffle(cards)
    return tuple(cards)


def setup(
    ruleset: str = "basic", seats: int = 3, *, seed: int = 1, clocks: Clocks | None = None
) -> GameSetup:
    rules = RULESETS[ruleset]
    return GameSetup(
        game_id=f"test-{seed}",
        ruleset=rules,
        seating=tuple(BotId(f"bot{seat}", "1") for seat in range(seats)),
        deck=shuffled(rules, seed),
        clocks=clocks or Clocks(),
        max_strikes=3,
        isolation="none",
    )


async def play(
    what: GameSetup, players: Sequence[Player | Forfeit], watch: Watcher | None = None
) -> RecordedGame:
    """Play a game. The time of day stands still; the monotonic clock advances by 1 at each call."""
    ticks = iter(range(10**9))
    return await play_game(
        what, players, now_us=lambda: 1_000, monotonic_ns=lambda: next(ticks), watch=watch
    )
