"""Plays the games of a schedule that are still missing: feeds the workers, keeps what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from referee import deals
from referee.bots.manifest import BotSpec
from referee.clocks import Clocks
from referee.errors import RefereeError
from referee.match import Fixture
from referee.records import GameRecord
from referee.schedule import ScheduledGame
from referee.tournament.lanes import Bundle, Lanes
from referee.tournament.orders import Assignment, GameOrder
from referee.tournament.parts import Part, part_of
from referee.tournament.workers import WorkerLostError, Workers

FEEDERS = 2
"""Assignments that a worker has at hand at once, so that it never waits for the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that settles a tournament's games."""

    parts: Sequence[Part]
    """With their seeds."""
    bots: Mapping[str, BotSpec]
    """By `name@version`."""
    clocks: Clocks
    max_strikes: int
    show_names: bool
    isolation: str

    def order(self, game: ScheduledGame, suspended: frozenset[str]) -> GameOrder:
        """What a worker needs to play a game."""
        seed = part_of(self.parts, game.index).seed
        assert seed is not None  # noqa: S101 - a league has all seeds
        specs = tuple(self.bots[name] for name in game.bots)
        return GameOrder(
            fixture=Fixture(
                game_id=game.game_id,
                ruleset=game.ruleset,
                seating=tuple(spec.bot for spec in specs),
                deck=deals.deck(seed, game.deal_id, game.ruleset),
                clocks=self.clocks,
                max_strikes=self.max_strikes,
                isolation=self.isolation,
            ),
            bots=specs,
            opaque_id=deals.opaque_id(seed, game.game_id),
            seeds=tuple(deals.bot_seed(seed, game.game_id, seat) for seat in range(len(specs))),
            names=tuple(spec.bot.name for spec in specs) if self.show_names else (),
            suspended=suspended,
        )


class Run:
    """One run of a tournament: from the games that are missing to none, or to the next Ctrl-C.

    Args:
        plan: what settles the games.
        lanes: the games to be played.
        workers: who plays them.
        keep: is given the games of every bundle as they are finished, and stores them, all or none.
    """

    def __init__(
        self,
        plan: Plan,
        lanes: Lanes,
        workers: Workers,
        *,
        keep: Callable[[Sequence[ScheduledGame], Sequence[GameRecord]], None],
    ) -> None:
        self._plan = plan
        self._lanes = lanes
        self._workers = workers
        self._keep = keep
        self._draining = False

    def drain(self) -> None:
        """Begin no further game; those in play are finished and kept."""
        self._draining = True

    async def play(self) -> None:
        """Play until nothing is missing, or until drained.

        Raises `VoidGame` when a game cannot be finished, RefereeError when a worker dies over and
        over, and what `keep` raises; what was finished before is kept.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(len(self._workers)):
                    for _ in range(FEEDERS):
                        group.create_task(self._feed(number))
        except ExceptionGroup as errors:
            known, bugs = errors.split(RefereeError)
            if known is None or bugs is not None:
                raise
            raise known.exceptions[0] from errors

    async def _feed(self, number: int) -> None:
        while not self._draining and (bundle := self._lanes.take(number)) is not None:
            try:
                records = await self._workers.play(number, self._assignment(bundle))
            except WorkerLostError:
                if not self._draining:
                    self._lanes.lost(bundle)
                continue
            self._keep(bundle.games, records)
            for game, record in zip(bundle.games, records, strict=True):
                self._lanes.played(game, record.result.forfeited)
            self._lanes.finished(bundle.lane)

    def _assignment(self, bundle: Bundle) -> Assignment:
        orders = tuple(self._plan.order(game, bundle.suspended) for game in bundle.games)
        return Assignment(bundle.lane, orders)
