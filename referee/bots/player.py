"""A seat of a game with a bot process behind it."""

from __future__ import annotations

from dataclasses import dataclass

from referee.bots.process import BotProcess
from referee.errors import Cause, Evidence, Forfeit, Strike
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

    @classmethod
    async def join(cls, process: BotProcess, opening: GameOpening, limit_us: int) -> BotPlayer:
        """Start a game with a bot. Raises `Forfeit` when it does not get ready in time."""
        await process.session.start_game(opening.game_id, opening.start, limit_us)
        process.games += 1
        return cls(process, opening)

    async def decide(self, ask: Ask) -> Answer:
        """See `Player.decide`."""
        limit_us = ask.budget.limit_us
        try:
            reply, elapsed_us, lag_us = await self._process.session.ask(
                self._game_id, ask.number, self._encoder.encode(ask), limit_us
            )
        except Strike as strike:
            if strike.cause is Cause.TIMEOUT and ask.budget.ends_the_bank:
                raise Forfeit(Cause.OUT_OF_TIME, strike.evidence) from None
            raise
        try:
            action = decode.action(reply.action, ask)
        except ValueError as error:
            evidence = Evidence(detail=str(error), elapsed_us=elapsed_us)
            raise Strike(Cause.MALFORMED, evidence) from error
        return Answer(action, elapsed_us, lag_us)

    async def leave(self, end: bytes) -> None:
        """Tell the bot that the game is over."""
        self._process.games -= 1
        if self._process.usable:
            await self._process.session.send(end)

    def stderr_tail(self) -> str:
        """The end of what the process wrote to standard error."""
        return self._process.stderr_tail()
