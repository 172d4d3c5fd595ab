"""Play games of a bundle, with a process for each bot.

`GamePlayer` starts the bots of a game and puts them on their seats. Then it calls `match.play` for the game itself. It adds the usage of
the bot processes to the record, and their standard error to the evidence of faults. The bot processes are kept for the next games.
`play_free_game` plays one game outside of tournaments. `worker` uses a `GamePlayer` in a worker process.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from referee import deals
from referee.bots import BotSpec
from referee.bots.logs import LogSettings
from referee.bots.player import OUTPUT_DELAY_S, BotPlayer, BotPool, SeatStart
from referee.bots.process import BotProcess
from referee.clocks import UNLIMITED_US, Clocks
from referee.errors import PROCESS_CAUSES, Cause, Evidence, Forfeit, VoidGame
from referee.match.play import FREE_GAME_MAX_STRIKES, GameSetup, RecordedGame, Watcher, play_game
from referee.protocol import messages
from referee.records import BotId, GameRecord, Player, name_seats
from referee.rules.game import Game
from referee.rules.ruleset import Ruleset
from referee.sandbox import Isolation
from referee.sandbox.folders import run_folder
from referee.sandbox.ladder import make_launcher
from referee.sandbox.launcher import Launcher
from referee.tournament.assignments import GameTask, WorkerSettings

VOID_ATTEMPTS = 3
"""Number of attempts to play a game alone. If the game is void at every attempt, VoidGame stops the tournament. An attempt
together with other games does not count, because the failure of a bot in one of the other games can make this game void."""
VOID_PAUSE_S = 0.5
"""Seconds before the second attempt to play a game alone. The pause before the third attempt is twice as long."""
MAX_BOTS = 16
"""The most bots in games that are played at the same time. Each of them has a process, which takes memory."""
DEFAULT_CLOCKS = Clocks()
T = TypeVar("T")
E = TypeVar("E", bound=BaseException)


# The states of a game:
#
#     waiting ──► seating ──► playing ──► finished
#        ▲           │           │
#        │ again     ▼           │
#        └───────── void ◄───────┘
#                    │ after VOID_ATTEMPTS alone
#                    ▼
#                 given up: VoidGame is raised
#
# - waiting: the games of earlier portions are not finished yet.
# - seating: each bot is started if necessary, and gets the start of the game. A bot that fails here forfeits.
#   Exception: a process that has finished an earlier game may have ended unnoticed since then. So if it crashes here, and is ready
#   in no other game, the bot first gets one new process without a forfeit.
# - void: the referee or the machine has failed, for example because of a shortage. Or a bot has failed while it played several games.
#   Then it is charged in only one of them, and the others are void. A void attempt charges no bot. The processes that have seen the deal
#   are closed before the next attempt, which plays the game alone.
#   If the charged game becomes void too, because of another bot, the bot that has failed forfeits the next attempt of the charged game
#   and is not started for it.


class GamePlayer:
    """Plays games with bots. It starts bot processes when a game needs them, and keeps them. Use it in one event loop only.

    Args:
        settings: the settings of the worker.
        launchers: the launchers of some bots (`name@version`). For the other bots, the isolation in the settings decides the launcher.
    """

    def __init__(
        self, settings: WorkerSettings, launchers: Mapping[str, Launcher] = MappingProxyType({})
    ) -> None:
        self._launcher = make_launcher(settings.isolation)
        self._is_timed = settings.is_timed
        self._pool = BotPool(
            self._launcher,
            settings.clocks if settings.is_timed else Clocks(start_up_us=UNLIMITED_US),
            max_processes=settings.max_processes,
            folder=settings.folder,
            pondering=settings.pondering,
            cores=max(1, len(settings.cores)),
            logs=settings.logs,
            launchers=launchers,
        )
        self._max_processes = settings.max_processes
        self.small_portion: int | None = None
        """The number of games of the newest portion if its bots allow no more games; otherwise None. See `AssignmentResult`."""
        self._voids: Counter[str] = Counter()
        """How often each game was void when it was played alone."""
        self._alone: set[str] = set()
        """The games that were void, and are played alone."""
        self._failures: dict[tuple[str, str], Forfeit] = {}
        """By game and bot (`name@version`): the failure that this bot was charged with in this game, before the game became void. The bot
        forfeits the next attempt to play the game."""
        self._singles: set[str] = set()
        """The bots (`name@version`) that play one game at a time, because they did not start, or failed in a void game."""

    async def play_portion(
        self,
        lane: int,
        tasks: Sequence[GameTask],
        suspended: AbstractSet[str] = frozenset(),
        singles: AbstractSet[str] = frozenset(),
        watch: Watcher | None = None,
    ) -> list[GameRecord]:
        """Play a portion of the games, and return the records of its games that were not void.

        The games of a portion are played at the same time. The bot that can play the fewest games at once limits their number. Call this
        again for the other games and for void games. A void game is then played alone, with new processes, because the old processes
        have seen the deal.

        Args:
            lane: the lane.
            tasks: the games, at least one. The portion begins with the first game.
            suspended: bots that are not started, and forfeit their games.
            singles: bots that play one game at a time, because their process has failed before.
            watch: called after every move.

        Raises VoidGame if a game was played alone `VOID_ATTEMPTS` times and was void each time. After that, each call in
        which this game is void again raises VoidGame too.
        """
        portion = await self._choose_portion(lane, tasks, suspended, singles)
        # after a pause, the machine may have free resources again
        await asyncio.sleep(VOID_PAUSE_S * self._voids[portion[0].setup.game_id])
        is_alone = len(portion) == 1
        games = (
            self._play_task(lane, task, suspended, watch, is_alone=is_alone) for task in portion
        )
        played = await asyncio.gather(*games, return_exceptions=True)
        records, voids = _split(played, VoidGame)
        if voids:
            self._singles |= self._pool.list_failed(lane)
            await self._pool.discard(lane)
            await self._pool.close_idle()
            finished = {record.game_id for record in records}
            missing = {task.setup.game_id for task in portion} - finished
            self._alone |= missing
            if is_alone:
                self._voids.update(missing)
                (game_id,) = missing
                if (attempts := self._voids[game_id]) >= VOID_ATTEMPTS:
                    raise VoidGame(
                        f"{game_id} was played alone {attempts} times, and was void each time: {voids[0]}"
                    ) from voids[0]
        return records

    async def play_all(
        self,
        lane: int,
        tasks: Sequence[GameTask],
        suspended: AbstractSet[str] = frozenset(),
        watch: Watcher | None = None,
    ) -> list[GameRecord]:
        """Play all games, one portion after the other, and return their records. See `play_portion`."""
        records: dict[str, GameRecord] = {}
        while missing := [task for task in tasks if task.setup.game_id not in records]:
            played = await self.play_portion(lane, missing, suspended, watch=watch)
            records |= {record.game_id: record for record in played}
        return [records[task.setup.game_id] for task in tasks]

    async def play_with_person(
        self, task: GameTask, person: Player, watch: Watcher | None = None
    ) -> GameRecord:
        """Play one game in which `person` has the seat without a bot.

        Raises VoidGame if the game is void. It is not played again, because the person has seen the deal.
        """
        return await self._play_task(0, task, frozenset(), watch, person)

    async def close(self) -> None:
        """End all bot processes."""
        await self._pool.close()

    async def _choose_portion(
        self,
        lane: int,
        tasks: Sequence[GameTask],
        suspended: AbstractSet[str],
        singles: AbstractSet[str],
    ) -> Sequence[GameTask]:
        """Return the games that are played at the same time.

        If the first game must be played alone, it is the only one. Otherwise such games are skipped, and the other games become candidates
        in their order, until the next game would bring too many bots. With several candidates, all their bots are started in this lane,
        except suspended bots, because the hello of a bot says how many games it can play. Hellos from other lanes are not
        used: a resumed run may not have them, and would then choose other portions.
        """
        self.small_portion = None
        singles = singles | self._singles
        candidates: list[GameTask] = []
        bots: dict[str, BotSpec] = {}
        for task in tasks:
            playing = {
                str(spec.bot): spec
                for spec in task.bots
                if spec is not None and str(spec.bot) not in suspended
            }
            if task.setup.game_id in self._alone or not singles.isdisjoint(playing):
                if not candidates:
                    return (task,)
                continue
            if candidates and len(bots | playing) > min(MAX_BOTS, self._max_processes):
                self.small_portion = len(candidates)
                break
            candidates.append(task)
            bots |= playing
        if len(candidates) == 1:
            return candidates
        found = (self._pool.find_capacity(lane, spec) for spec in bots.values())
        capacities = dict(zip(bots, await asyncio.gather(*found), strict=True))
        if failed := {bot for bot, capacity in capacities.items() if not capacity}:
            self._singles |= failed
            return await self._choose_portion(lane, tasks, suspended, singles)
        if (games := min(capacities.values(), default=len(candidates))) < len(candidates):
            self.small_portion = games
        return candidates[:games]

    async def _play_task(
        self,
        lane: int,
        task: GameTask,
        suspended: AbstractSet[str],
        watch: Watcher | None,
        person: Player | None = None,
        *,
        is_alone: bool = True,
    ) -> GameRecord:
        setup = task.setup
        encoder = messages.RequestEncoder(task.opaque_id)
        game = Game(setup.ruleset, len(setup.seating), setup.deck)
        seated = await self._seat_all(lane, task, suspended, encoder, game)
        try:
            _split(seated, Forfeit)  # raises any other error
            players: list[Player | Forfeit] = [
                each for each in seated if isinstance(each, BotPlayer | Forfeit)
            ]
            if person is not None:
                players.insert(task.bots.index(None), person)
            # The game runs in an asyncio task of its own. So a reply resumes only the coroutines of the game, not those that wait for the game.
            played = await asyncio.create_task(
                play_game(
                    setup,
                    players,
                    now_us=lambda: time.time_ns() // 1000,
                    monotonic_ns=time.monotonic_ns,
                    game=game,
                    watch=watch,
                    add_evidence=lambda seat, evidence: _add_stderr(evidence, players[seat]),
                    on_forfeit=lambda seat: _note_forfeit(players[seat]),
                )
            )
        except BaseException:
            failures = _abandon(task, seated)
            if not is_alone:
                self._note_failures(setup.game_id, failures)
            raise
        record = _add_process_data(played.record, players)
        await _say_game_end(task.opaque_id, players, played)
        self._launcher.reap()
        return record

    async def _seat_all(
        self,
        lane: int,
        task: GameTask,
        suspended: AbstractSet[str],
        encoder: messages.RequestEncoder,
        game: Game,
    ) -> list[BotPlayer | BaseException]:
        """Make all bots of a game ready, and return the player or the error of each."""
        bots = ((seat, spec) for seat, spec in enumerate(task.bots) if spec is not None)
        return await asyncio.gather(
            *(
                _refuse_suspended()
                if str(spec.bot) in suspended
                else self._seat_bot(lane, task, seat, encoder, game)
                for seat, spec in bots
            ),
            return_exceptions=True,
        )

    async def _seat_bot(
        self, lane: int, task: GameTask, seat: int, encoder: messages.RequestEncoder, game: Game
    ) -> BotPlayer:
        """Make the bot of a seat ready for the game, and return it as a player.

        Raises Forfeit if the bot fails, or if an earlier attempt of this game was void and the bot was charged with a failure in it. Raises
        VoidGame if the machine lacks resources for the process, or if the process ends and the bot is not charged in this game.
        """
        spec = task.bots[seat]
        assert spec is not None  # noqa: S101 - the caller leaves out the seat of a person
        if (failure := self._failures.get((task.setup.game_id, str(spec.bot)))) is not None:
            raise failure
        start = messages.game_start(
            task.opaque_id,
            rules=task.setup.ruleset,
            view=game.view(seat),
            clocks=task.setup.clocks,
            seed=task.seeds[seat],
            names=task.names,
            max_strikes=task.setup.max_strikes,
        )
        seat_start = SeatStart(task.opaque_id, start, encoder, self._is_timed, task.setup.game_id)
        limit_us = task.setup.clocks.game_start_us if self._is_timed else UNLIMITED_US
        process: BotProcess = await self._pool.acquire(lane, spec)
        try:
            return await BotPlayer.join(process, seat_start, limit_us)
        except Forfeit as fault:
            if fault.cause is not Cause.CRASH or not process.has_played:
                raise
        if process.games:
            # The other games of this process are void now. From now on the bot plays one game at a time.
            self._singles.add(str(spec.bot))
        # The process may have ended unnoticed between two games. That is no fault, so another process is started.
        return await BotPlayer.join(await self._pool.acquire(lane, spec), seat_start, limit_us)

    def _note_failures(self, game_id: str, failures: Mapping[str, Forfeit]) -> None:
        """Note failures that are charged in a void game. The bots forfeit the next attempt to play it."""
        for bot, failure in failures.items():
            detail = f"{failure.evidence.detail}, in an earlier attempt to play this game"
            evidence = replace(failure.evidence, detail=detail)
            self._failures[game_id, bot] = Forfeit(failure.cause, evidence)
        # added here, because `BotPool.list_failed` leaves out a bot if the pool has already replaced its failed process
        self._singles |= failures.keys()


async def _refuse_suspended() -> BotPlayer:
    raise Forfeit(Cause.SUSPENDED, Evidence(detail="the bot is suspended for its earlier forfeits"))


def _split(results: Sequence[T | BaseException], expected: type[E]) -> tuple[list[T], list[E]]:
    """Split the results of `gather` into values and expected exceptions; raise any other exception."""
    values: list[T] = []
    errors: list[E] = []
    for result in results:
        if isinstance(result, expected):
            errors.append(result)
        elif isinstance(result, BaseException):
            raise result
        else:
            values.append(result)
    return values, errors


def _abandon(task: GameTask, seated: Iterable[BotPlayer | BaseException]) -> dict[str, Forfeit]:
    """Let the seated bots leave a void game. Return, by bot (`name@version`), the process failures that are charged in this game."""
    bots = (str(spec.bot) for spec in task.bots if spec is not None)
    faults = (player.abandon() if isinstance(player, BotPlayer) else player for player in seated)
    return {
        bot: fault
        for bot, fault in zip(bots, faults, strict=True)
        if isinstance(fault, Forfeit) and fault.cause in PROCESS_CAUSES
    }


def _note_forfeit(player: Player | Forfeit) -> None:
    if isinstance(player, BotPlayer):
        player.on_forfeit()


async def _add_stderr(evidence: Evidence, player: Player | Forfeit) -> Evidence:
    """Add the end of the process's standard error to the evidence of a fault, if the evidence has no standard error.

    First wait a moment, because output that the bot has printed before its reply may arrive after the reply.
    """
    if not isinstance(player, BotPlayer) or evidence.stderr_tail:
        return evidence
    await asyncio.sleep(OUTPUT_DELAY_S)
    return replace(evidence, stderr_tail=player.stderr_tail())


def _add_process_data(record: GameRecord, players: Sequence[Player | Forfeit]) -> GameRecord:
    """Add data about the bot processes to a record: usage, and the number of dropped messages."""
    dropped = tuple(player.dropped if isinstance(player, BotPlayer) else 0 for player in players)
    return replace(
        record,
        usage=tuple(
            player.usage() if isinstance(player, BotPlayer) else None for player in players
        ),
        dropped=dropped if any(dropped) else (),
    )


async def _say_game_end(
    game_id: str, players: Sequence[Player | Forfeit], played: RecordedGame
) -> None:
    """Send the end of the game to every bot that was seated."""
    record = played.record
    forfeits = {fault.seat: fault for fault in record.faults if fault.forfeit}
    for seat, player in enumerate(players):
        if not isinstance(player, BotPlayer):
            continue
        fault = forfeits.get(seat)
        await player.leave(
            messages.game_end(
                game_id,
                played.unseen_events[seat],
                record.ranks,
                f"{fault.cause.value}: {fault.evidence.detail}" if fault else "",
                forfeited=fault is not None,
            )
        )


def make_free_task(
    players: Sequence[BotSpec | BotId],
    rules: Ruleset,
    text: str,
    isolation: Isolation,
    clocks: Clocks = DEFAULT_CLOCKS,
) -> GameTask:
    """Return the task of a game outside of tournaments.

    Args:
        players: the bots, seat 0 first. A bot with several seats gets a process for each seat. An entry that is a `BotId` and not a
            `BotSpec` is a person.
        rules: the ruleset.
        text: any text; the deal and the seeds of the bots are derived from the text.
        isolation: the isolation of the bots.
        clocks: the time limits.
    """
    seating = tuple(each if isinstance(each, BotId) else each.bot for each in players)
    names = name_seats(seating)
    seed = deals.text_seed(text)
    game_id = f"play-{hashlib.sha256(seed).hexdigest()[:6]}-{secrets.token_hex(3)}"
    return GameTask(
        setup=GameSetup(
            game_id=game_id,
            ruleset=rules,
            seating=seating,
            deck=deals.deck(seed, deals.FREE_GAME, rules),
            clocks=clocks,
            max_strikes=FREE_GAME_MAX_STRIKES,
            isolation=isolation.summary,
        ),
        bots=tuple(
            None if isinstance(each, BotId) else replace(each, bot=replace(each.bot, name=name))
            for each, name in zip(players, names, strict=True)
        ),
        opaque_id=deals.opaque_id(seed, deals.FREE_GAME),
        seeds=tuple(deals.bot_seed(seed, deals.FREE_GAME, seat) for seat in range(len(players))),
        names=(),
    )


@asynccontextmanager
async def free_player(
    task: GameTask,
    isolation: Isolation,
    *,
    is_timed: bool = True,
    logs: LogSettings | None = None,
    launchers: Mapping[str, Launcher] = MappingProxyType({}),
) -> AsyncIterator[GamePlayer]:
    """Provide a `GamePlayer` for one game in this process, and end all its bot processes at the end.

    For `is_timed` and `logs` see `WorkerSettings`, for `launchers` see `GamePlayer`.
    """
    with run_folder() as folder:
        player = GamePlayer(
            WorkerSettings(
                cores=frozenset(),
                clocks=task.setup.clocks,
                max_processes=len(task.bots),
                isolation=isolation,
                folder=folder,
                parent_pid=os.getpid(),
                is_timed=is_timed,
                logs=logs,
            ),
            launchers,
        )
        try:
            yield player
        finally:
            await player.close()


async def play_free_game(
    task: GameTask,
    isolation: Isolation,
    watch: Watcher | None = None,
    *,
    is_timed: bool = True,
    logs: LogSettings | None = None,
    launchers: Mapping[str, Launcher] = MappingProxyType({}),
) -> GameRecord:
    """Play a game in this process, with bots that are started for this game only.

    For the last three arguments see `free_player`. Raises VoidGame if the game is void `VOID_ATTEMPTS` times.
    """
    async with free_player(
        task, isolation, is_timed=is_timed, logs=logs, launchers=launchers
    ) as player:
        (record,) = await player.play_all(0, (task,), watch=watch)
    return record
