"""Play games of the bot under test against random players, and check every reply."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import NamedTuple

from referee import deals
from referee.bots.player import BotPlayer, SeatStart
from referee.bots.process import BotProcess
from referee.check import (
    StepFailure,
    dropped_text,
    enum_name,
    fault_text,
    kind_name,
    legal_actions_text,
)
from referee.check.bot_under_test import BotUnderTest
from referee.errors import PROCESS_CAUSES, BotFault, Cause, Evidence, Forfeit, count_text
from referee.match.play import GameSetup
from referee.match.play import play_game as play_match_game
from referee.protocol import messages
from referee.records import BotId, Reply, Request
from referee.rules.actions import Action, DecisionKind, action_text
from referee.rules.game import Game
from referee.rules.ruleset import GhostOverflow, GhostSnatch, GhostStart, Ruleset, ruleset_text

SEED = bytes(32)
"""The seed of all deals of a check."""
TIME_BUDGET_S = 20.0
"""After this number of seconds, `check_decisions` leaves out requests, and `play_in_sequence` leaves out games."""


class TableSize(NamedTuple):
    """A ruleset and a number of players."""

    ruleset: Ruleset
    players: int


@dataclass(frozen=True, slots=True)
class CheckGame:
    """A game of a check. `name` and `ruleset` determine the deck, and `name` seeds the random players."""

    name: str
    ruleset: Ruleset
    players: int
    seat: int
    """The bot's seat."""

    @property
    def description(self) -> str:
        """The game as text for messages, such as `in duel with 2 players`."""
        return f"in {ruleset_text(self.ruleset)} with {self.players} players"

    @property
    def deck(self) -> tuple[int, ...]:
        """The deck in drawing order."""
        return deals.deck(SEED, self.name, self.ruleset)


def list_rulesets(ruleset: Ruleset) -> tuple[Ruleset, ...]:
    """Return a ruleset and, if it has a ghost, the same ruleset with all options of the ghost changed."""
    if not ruleset.ghost:
        return (ruleset,)
    changed = ruleset.with_options(
        ghost_start=GhostStart.AS_DEALT,
        ghost_snatch=GhostSnatch.OPTIONAL,
        ghost_overflow=GhostOverflow.LOWEST,
    )
    return ruleset, changed


class RandomPlayer:
    """Chooses legal actions at random; the same seed gives the same choices."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - must be repeatable, not secret

    async def decide(self, request: Request) -> Reply:
        """See `Player.decide`."""
        return Reply(self._random.choice(request.decision.legal), 0, 0)


class BotDecision(NamedTuple):
    """A legal decision of the bot and the time that it took."""

    kind: DecisionKind
    action: Action
    elapsed_us: int


class BotSeat:
    """Plays the bot's seat in one game, and keeps the bot's last fault as a `StepFailure`.

    Args:
        process: the bot's process.
        player: requests decisions from the process in this game.
        game_description: `CheckGame.description` of the game.
    """

    def __init__(self, process: BotProcess, player: BotPlayer, game_description: str) -> None:
        self._process = process
        self._player = player
        self._game_description = game_description
        self.failure: StepFailure | None = None
        """The failure of the last wrong or missing reply; None if all replies were right."""
        self.decisions: list[BotDecision] = []
        """All legal decisions."""

    async def decide(self, request: Request) -> Reply:
        """See `Player.decide`. An illegal action raises `Forfeit`. Before a fault is raised, `failure` is set."""
        dropped = self._process.session.dropped
        try:
            reply = await self._player.decide(request)
        except BotFault as fault:
            happened = fault_text(fault)
            newly_dropped = self._process.session.dropped - dropped
            if fault.cause is Cause.TIMEOUT and newly_dropped:
                happened += f"; but {dropped_text(newly_dropped)}"
            expected = (
                legal_actions_text(request.decision)
                if fault.cause is Cause.MALFORMED
                else _expected_text("a reply", request.time.limit_us, fault.cause)
            )
            self.failure = self._failure(request, expected, happened, fault.cause)
            raise
        if reply.action not in request.decision.legal:
            happened = action_text(reply.action)
            self.failure = self._failure(
                request, legal_actions_text(request.decision), happened, Cause.ILLEGAL
            )
            raise Forfeit(
                Cause.ILLEGAL,
                Evidence(detail=f"{happened} is not legal", elapsed_us=reply.elapsed_us),
            )
        self.decisions.append(BotDecision(request.decision.kind, reply.action, reply.elapsed_us))
        return reply

    def _failure(self, request: Request, expected: str, happened: str, cause: Cause) -> StepFailure:
        kind = f"{kind_name(request.decision.kind)} ({enum_name(request.decision.kind)})"
        position = (
            f"{self._game_description}, seat {request.decision.seat}, turn {request.view.turn}"
        )
        return StepFailure(
            f"{kind}: {expected}",
            f"{happened}\n{position}, decision_id {request.number}",
            symptom=cause.value
            if cause in PROCESS_CAUSES
            else f"{kind_name(request.decision.kind)}: {cause.value}",
        )


def _expected_text(message: str, limit_us: int, cause: Cause) -> str:
    """Return what was expected of a bot instead of a fault with this cause.

    `message` names the message that was expected. If it was late, the text adds the time limit. If the bot sent
    something forbidden instead, the text is `message` alone. After any other fault, the text also demands that the
    process continues to run and stays within its limits.
    """
    if cause in {Cause.TIMEOUT, Cause.GAME_START_TIMEOUT, Cause.OUT_OF_TIME}:
        return f"{message} within {limit_us / 1e6:g} s"
    if cause in {Cause.TOO_LARGE, Cause.FLOOD, Cause.IMPERSONATION}:
        return message
    return f"{message}, and a process that continues to run and stays within its limits"


@dataclass(frozen=True, slots=True)
class CheckedGame:
    """A game that the bot has played without a failure."""

    game: CheckGame
    decisions: tuple[BotDecision, ...]
    """The bot's decisions."""
    margin: float
    """The bot's score minus the mean score of the other players."""


def plan_games(name: str, tables: Sequence[TableSize], count: int) -> list[CheckGame]:
    """Return `count` games, or no games if `tables` is empty.

    The games use `tables` in turn, and the bot's seat varies.
    """
    turns = islice(cycle(tables), count)
    return [
        CheckGame(f"{name}-{number}", ruleset, players, number % players)
        for number, (ruleset, players) in enumerate(turns)
    ]


async def start_game(
    bot: BotUnderTest, process: BotProcess, game: CheckGame, *, previous_event: str = ""
) -> BotPlayer:
    """Start a game with the bot, and wait for the bot's ready message.

    Args:
        bot: the bot under test.
        process: a process of the bot.
        game: the game.
        previous_event: what happened just before the game. A `StepFailure` shows this text.

    Raises `StepFailure` if the bot sends no ready message in time.
    """
    game_id = deals.opaque_id(SEED, game.name)
    start = messages.game_start(
        game_id,
        rules=game.ruleset,
        view=Game(game.ruleset, game.players, game.deck).view(game.seat),
        clocks=bot.clocks,
        seed=deals.bot_seed(SEED, game.name, game.seat),
        names=(),
        max_strikes=1,
    )
    seat_start = SeatStart(game_id, start, messages.RequestEncoder(game_id), log_name=game.name)
    process.change_games(1)
    limit_us = bot.clocks.game_start_us
    try:
        return await BotPlayer.join(process, seat_start, limit_us)
    except BotFault as fault:
        raise StepFailure(
            _expected_text("a ready for the game start", limit_us, fault.cause),
            f"{fault_text(fault)}\n{previous_event or 'at the start of a game'} {game.description}",
            symptom=f"game start: {fault.cause.value}",
        ) from None


async def play_game(
    bot: BotUnderTest, process: BotProcess, game: CheckGame, *, previous_event: str = ""
) -> CheckedGame:
    """Play a game to its end, and send the game end to the bot.

    For `previous_event` see `start_game`. Raises `StepFailure` if the bot sends no ready message in time or a reply
    is wrong.
    """
    player = await start_game(bot, process, game, previous_event=previous_event)
    seat = BotSeat(process, player, game.description)
    setup = GameSetup(
        game_id=game.name,
        ruleset=game.ruleset,
        seating=(BotId("chance", "1"),) * game.players,
        deck=game.deck,
        clocks=bot.clocks,
        max_strikes=1,
        isolation=bot.launcher.isolation,
    )
    players = [
        seat if number == game.seat else RandomPlayer(f"{game.name}-{number}")
        for number in range(game.players)
    ]
    played = await play_match_game(setup, players, now_us=_now_us, monotonic_ns=time.monotonic_ns)
    bot.launcher.reap()
    if seat.failure is not None:
        raise seat.failure
    record = played.record
    end = messages.game_end(
        deals.opaque_id(SEED, game.name),
        played.unseen_events[game.seat],
        record.ranks,
        "",
        forfeited=False,
    )
    await player.leave(end)
    others = sum(record.scores) - record.scores[game.seat]
    margin = record.scores[game.seat] - others / (game.players - 1)
    return CheckedGame(game, tuple(seat.decisions), margin)


async def play_in_sequence(
    bot: BotUnderTest, process: BotProcess, games: Sequence[CheckGame]
) -> list[CheckedGame]:
    """Play games one after another, and return those that were played.

    After `TIME_BUDGET_S` no further game is played, but the first game is always played. After the last game, an
    extra game is started but not played. The extra game shows that the bot still responds after a game end.
    Raises `StepFailure` if the bot sends no ready message in time or a reply is wrong.
    """
    played: list[CheckedGame] = []
    previous_event = ""
    until_s = time.monotonic() + TIME_BUDGET_S
    for game in games:
        if played and time.monotonic() > until_s:
            break
        played.append(await play_game(bot, process, game, previous_event=previous_event))
        previous_event = (
            f"after the end of the game {game.description} (game_ends),"
            " or at the start of the next game"
        )
    last = played[-1].game
    extra = CheckGame(f"{last.name}-after", last.ruleset, last.players, last.seat)
    await start_game(bot, process, extra, previous_event="after the end of the game (game_ends)")
    return played


async def play_concurrently(
    bot: BotUnderTest, process: BotProcess, games: Sequence[CheckGame]
) -> list[CheckedGame]:
    """Play games at the same time.

    Raises `StepFailure` if a game fails. The `StepFailure` describes the first failed game in the order of `games`,
    and has the number of failed games.
    """
    results = await asyncio.gather(
        *(play_game(bot, process, game) for game in games), return_exceptions=True
    )
    failures = [result for result in results if isinstance(result, StepFailure)]
    raise_counted(failures, f"{count_text(len(games), 'game')} at once")
    raise_first(results)
    return [result for result in results if isinstance(result, CheckedGame)]


def raise_counted(failures: Sequence[StepFailure], tried: str) -> None:
    """If there are failures, raise the first one, with their number and with `tried`, such as `3 games at once`."""
    if failures:
        first = failures[0]
        happened = f"{first.happened}\n{len(failures)} of {tried} went wrong"
        raise StepFailure(first.expected, happened, symptom=first.symptom)


def raise_first(results: Sequence[object]) -> None:
    """Raise the first `StepFailure` among the results of `gather`, or else the first other exception; without both, do nothing.

    A `StepFailure` comes first because it says what went wrong. When a process with several games fails, at most one
    game gets the fault, and the others raise only `VoidGame`.
    """
    for kind in (StepFailure, BaseException):
        for result in results:
            if isinstance(result, kind):
                raise result


def _now_us() -> int:
    return time.monotonic_ns() // 1000
