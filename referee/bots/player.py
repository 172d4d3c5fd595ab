"""A seat of a game with a bot process behind it."""

from __future__ import annotations

from dataclasses import dataclass

from referee.bots.limits import Usage
from referee.bots.process import BotProcess
from referee.errors import BotFault, Cause, Evidence, Forfeit, Strike
from referee.player import Answer, Ask
from referee.protocol import decode
from referee.protocol.encode import RequestEncoder


@dataclass(frozen=True, slots=True)
class GameOpening:
    """What a bot is told at the start of a game."""

    game_id: str
    """As the bots know it."""
    start: bytes
    """The game start for this seat."""
    encoder: RequestEncoder
    """Shared by all seats of the game."""


class BotPlayer:
    """Plays one seat of one game through a bot's stream."""

    def __init__(self, process: BotProcess, opening: GameOpening) -> None:
        self._process = process
        self._game_id = opening.game_id
        self._encoder = opening.encoder
        self._cpu_before_s = process.usage().cpu_s
        self._dropped_before = process.session.dropped

    @classmethod
    async def join(cls, process: BotProcess, opening: GameOpening, limit_us: int) -> BotPlayer:
        """Start a game with a bot that `BotPool.seat` gave for it.

        Raises `Forfeit` when it does not get ready in time.
        """
        player = cls(process, opening)
        try:
            await process.session.start_game(opening.game_id, opening.start, limit_us)
        except BotFault as fault:
            process.games -= 1
            if process.session.silent and not process.games:
                process.end_soon()
            raise process.testify(fault) from None
        return player

    async def decide(self, ask: Ask) -> Answer:
        """See `Player.decide`."""
        try:
            written, elapsed_us, lag_us = await self._process.session.ask(
                self._game_id, ask.number, self._encoder.encode(ask), ask.budget.limit_us
            )
        except BotFault as fault:
            if fault.cause is Cause.TIMEOUT and ask.budget.ends_the_bank:
                fault = Forfeit(Cause.OUT_OF_TIME, fault.evidence)
            raise self._process.testify(fault) from None
        try:
            action = decode.action(written, ask)
        except ValueError as error:
            evidence = Evidence(detail=str(error), elapsed_us=elapsed_us)
            raise self._process.testify(Strike(Cause.MALFORMED, evidence)) from error
        return Answer(action, elapsed_us, lag_us)

    async def leave(self, end: bytes) -> None:
        """Tell the bot that the game is over."""
        self._process.games -= 1
        self._process.played = True
        if not self._process.dead:
            self._process.session.end_game(self._game_id, end)

    def forfeited(self) -> None:
        """The seat is lost: a bot that owes an answer and plays no other game is ended.

        It would burn the core of the others.
        """
        if self._process.session.silent and self._process.games == 1:
            self._process.end_soon()

    def usage(self) -> Usage:
        """What the process has taken since it joined the game, for other games as well."""
        usage = self._process.usage()
        return Usage(round(usage.cpu_s - self._cpu_before_s, 6), usage.peak_memory_kib)

    @property
    def dropped(self) -> int:
        """How many messages of the bot nobody had asked for since it joined the game."""
        return self._process.session.dropped - self._dropped_before

    def stderr_tail(self) -> str:
        """The end of what the process wrote to standard error, printable."""
        return self._process.stderr_tail()
