"""Plays the games of assignments with bots as processes; what it keeps from game to game is these processes.

One game without a tournament.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import time
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from referee import deals
from referee.bots import BotPlayer, BotPool, BotProcess, GameOpening
from referee.bots.manifest import BotSpec
from referee.clocks import Clocks
from referee.errors import Cause, Evidence, Forfeit, VoidGame
from referee.match import GameSetup, RecordedGame, play_game
from referee.match.play import Watcher
from referee.protocol import encode
from referee.records import Fault, GameRecord
from referee.rules.game import Game
from referee.rules.ruleset import Ruleset
from referee.sandbox.folders import run_folder
from referee.sandbox.ladder import make_launcher
from referee.sandbox.rungs import Isolation
from referee.tournament.assignments import Assignment, GameTask, WorkerSettings

VOID_ATTEMPTS = 3
"""How often a void game is played again before the tournament is told."""
VOID_PAUSE_S = 0.5
"""After how long that is first; the next time after twice as long."""
T = TypeVar("T")
E = TypeVar("E", bound=BaseException)


class GamePlayer:
    """Seats bots and plays games with them; to be used within one event loop."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._launcher = make_launcher(settings.isolation)
        self._pool = BotPool(
            self._launcher,
            settings.clocks,
            max_processes=settings.max_processes,
            folder=settings.folder,
        )

    async def play(self, assignment: Assignment, watch: Watcher | None = None) -> list[GameRecord]:
        """Play the games of an assignment, as many at once as every bot can hold."""
        records: list[GameRecord] = []
        at_once = await self._at_once(assignment)
        for first in range(0, len(assignment.orders), at_once):
            batch = assignment.orders[first : first + at_once]
            records += await self._play_batch(assignment.lane, batch, watch)
        return records

    async def close(self) -> None:
        """End all bot processes."""
        await self._pool.close()

    async def _at_once(self, assignment: Assignment) -> int:
        """How many of the games every bot of theirs can hold.

        Asked of the bots before the first game: what a worker knows of them from other lanes, or from
        before it was interrupted, must not make a difference.
        """
        if len(assignment.orders) == 1:
            return 1
        specs = {
            spec.bot: spec
            for order in assignment.orders
            for spec in order.bots
            if str(spec.bot) not in order.suspended
        }
        held = (self._pool.find_capacity(assignment.lane, spec) for spec in specs.values())
        return min([len(assignment.orders), *await asyncio.gather(*held)])

    async def _play_batch(
        self, lane: int, orders: Sequence[GameTask], watch: Watcher | None
    ) -> list[GameRecord]:
        """Play games at once; the void ones again, with new processes, since these have seen the deal.

        Not before the others are over: they may be played by the same processes.
        """
        records: dict[str, GameRecord] = {}
        for attempt in range(VOID_ATTEMPTS):
            await asyncio.sleep(attempt * VOID_PAUSE_S)  # what ran short may be there again
            missing = [order for order in orders if order.setup.game_id not in records]
            played = await _all(
                (self._play_once(lane, order, watch) for order in missing), VoidGame
            )
            records |= {each.game_id: each for each in played if isinstance(each, GameRecord)}
            voids = [each for each in played if isinstance(each, VoidGame)]
            if not voids:
                return [records[order.setup.game_id] for order in orders]
            await self._pool.discard(lane)
            await self._pool.close_idle()
        game_id = next(each.setup.game_id for each in orders if each.setup.game_id not in records)
        raise VoidGame(f"{game_id} was void {VOID_ATTEMPTS} times: {voids[0]}") from voids[0]

    async def _play_once(self, lane: int, order: GameTask, watch: Watcher | None) -> GameRecord:
        setup = order.setup
        encoder = encode.RequestEncoder(order.opaque_id)
        game = Game(setup.ruleset, len(setup.seating), setup.deck)
        players = await _all(
            (self._open(lane, order, seat, encoder, game) for seat in range(len(order.bots))),
            Forfeit,
        )
        played = await play_game(
            setup,
            players,
            now_us=lambda: time.time_ns() // 1000,
            monotonic_us=lambda: time.monotonic_ns() // 1000,
            game=game,
            watch=watch,
            on_forfeit=lambda seat: _forfeited(players[seat]),
        )
        record = _measured(_with_last_words(played.record, players), players)
        await _close(order.opaque_id, players, played)
        self._launcher.tidy()
        return record

    async def _open(
        self, lane: int, order: GameTask, seat: int, encoder: encode.RequestEncoder, game: Game
    ) -> BotPlayer:
        """Have a bot ready for the game. Raises its `Forfeit`, and `VoidGame`."""
        spec = order.bots[seat]
        if str(spec.bot) in order.suspended:
            raise Forfeit(Cause.SUSPENDED, Evidence(detail="suspended for its earlier forfeits"))
        start = encode.game_start(
            order.opaque_id,
            rules=order.setup.ruleset,
            view=game.view(seat),
            clocks=order.setup.clocks,
            seed=order.seeds[seat],
            names=order.names,
            max_strikes=order.setup.max_strikes,
        )
        opening = GameOpening(order.opaque_id, start, encoder)
        limit_us = order.setup.clocks.game_start_us
        process: BotProcess = await self._pool.acquire(lane, spec)
        try:
            return await BotPlayer.join(process, opening, limit_us)
        except Forfeit as fault:
            if fault.cause is not Cause.CRASH or not process.has_played:
                raise
        # It may have ended after an earlier game, unseen while no game was played: that is no fault.
        return await BotPlayer.join(await self._pool.acquire(lane, spec), opening, limit_us)


async def _all(work: Iterable[Awaitable[T]], expected: type[E]) -> list[T | E]:
    """Await all of it to its end; expected exceptions come as results, the first other one is raised."""
    results: list[T | E] = []
    for each in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(each, BaseException) and not isinstance(each, expected):
            raise each
        results.append(each)
    return results


def _forfeited(player: BotPlayer | Forfeit) -> None:
    if isinstance(player, BotPlayer):
        player.on_forfeit()


def _with_last_words(record: GameRecord, players: Sequence[BotPlayer | Forfeit]) -> GameRecord:
    """The record, every fault with the end of the bot's standard error where its process said any."""
    return replace(
        record, faults=tuple(_told(fault, players[fault.seat]) for fault in record.faults)
    )


def _dropped(players: Sequence[BotPlayer | Forfeit]) -> tuple[int, ...]:
    counts = tuple(each.dropped if isinstance(each, BotPlayer) else 0 for each in players)
    return counts if any(counts) else ()


def _told(fault: Fault, player: BotPlayer | Forfeit) -> Fault:
    if isinstance(player, Forfeit) or fault.evidence.stderr_tail:
        return fault
    return replace(fault, evidence=replace(fault.evidence, stderr_tail=player.stderr_tail()))


def _measured(record: GameRecord, players: Sequence[BotPlayer | Forfeit]) -> GameRecord:
    """The record, with what the bots' processes took of the machine and said in vain."""
    return replace(
        record,
        usage=tuple(None if isinstance(each, Forfeit) else each.usage() for each in players),
        dropped=_dropped(players),
    )


async def _close(
    game_id: str, players: Sequence[BotPlayer | Forfeit], played: RecordedGame
) -> None:
    """Tell every bot that is still there how the game ended."""
    record = played.record
    reasons = {fault.seat: fault for fault in record.faults if fault.forfeit}
    for seat, player in enumerate(players):
        if isinstance(player, Forfeit):
            continue
        fault = reasons.get(seat)
        await player.leave(
            encode.game_end(
                game_id,
                played.unseen_events[seat],
                record.result.ranks,
                f"{fault.cause.value}: {fault.evidence.detail}" if fault else "",
                forfeited=fault is not None,
            )
        )


MAX_STRIKES = 3


def free_game(
    specs: Sequence[BotSpec], rules: Ruleset, text: str, isolation: Isolation
) -> GameTask:
    """A game of its own, by default clocks.

    Args:
        specs: the bots, seat 0 first; none of them twice.
        rules: what is played.
        text: any text; the same one deals the same cards and seeds the bots the same.
        isolation: what the bots run under.
    """
    seed = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    game_id = f"play-{hashlib.sha256(seed).hexdigest()[:6]}-{secrets.token_hex(3)}"
    return GameTask(
        setup=GameSetup(
            game_id=game_id,
            ruleset=rules,
            seating=tuple(spec.bot for spec in specs),
            deck=deals.deck(seed, "play", rules),
            clocks=Clocks(),
            max_strikes=MAX_STRIKES,
            isolation=isolation.words,
        ),
        bots=tuple(specs),
        opaque_id=deals.opaque_id(seed, "play"),
        seeds=tuple(deals.bot_seed(seed, "play", seat) for seat in range(len(specs))),
        names=(),
        suspended=frozenset(),
    )


async def play_single(
    order: GameTask, isolation: Isolation, watch: Watcher | None = None
) -> GameRecord:
    """Play a game in this process, with bots that are started for it alone.

    Raises `VoidGame` when it cannot be finished.
    """
    with run_folder() as folder:
        player = GamePlayer(
            WorkerSettings(
                cores=frozenset(),
                clocks=order.setup.clocks,
                max_processes=len(order.bots),
                isolation=isolation,
                folder=folder,
                parent_pid=os.getpid(),
            )
        )
        try:
            (record,) = await player.play(Assignment(0, (order,)), watch)
        finally:
            await player.close()
    return record
