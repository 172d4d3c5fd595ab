"""Who sits at the tables of a check: the bot, watched at every answer, and chance."""

from __future__ import annotations

import random
from typing import NamedTuple

from referee.bots import BotPlayer, BotProcess
from referee.check.report import Trouble
from referee.check.words import action_words, enum_name, fault_words, kind_name, legal_words
from referee.errors import BotFault, Cause, Evidence, Forfeit
from referee.player import Answer, Ask
from referee.rules.actions import Action, DecisionKind


class Chance:
    """Does anything that is legal; the same with the same seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret

    async def decide(self, ask: Ask) -> Answer:
        """See `Player.decide`."""
        return Answer(self._random.choice(ask.decision.legal), 0, 0)


class Answered(NamedTuple):
    """A good answer of the bot."""

    kind: DecisionKind
    action: Action
    elapsed_us: int


class BotSeat:
    """The bot in one game. What is wrong with an answer is kept, told for its author.

    Args:
        process: the bot's.
        player: its seat.
        where: the game, for people.
    """

    def __init__(self, process: BotProcess, player: BotPlayer, where: str) -> None:
        self._process = process
        self._player = player
        self._where = where
        self.trouble: Trouble | None = None
        """The last thing that was wrong."""
        self.answers: list[Answered] = []

    async def decide(self, ask: Ask) -> Answer:
        """See `Player.decide`. Raises a `BotFault`, too, for an answer that is not legal."""
        dropped = self._process.session.dropped
        try:
            answer = await self._player.decide(ask)
        except BotFault as fault:
            came = fault_words(fault)
            if fault.cause is Cause.TIMEOUT and self._process.session.dropped > dropped:
                came += (
                    "; but replies came that nothing waits for: their game_id and decision_id are"
                    " not those of an open request"
                )
            self.trouble = self._trouble(ask, _expected(ask, fault), came)
            raise
        if answer.action not in ask.decision.legal:
            came = action_words(answer.action)
            self.trouble = self._trouble(ask, legal_words(ask.decision), came)
            raise Forfeit(Cause.ILLEGAL, Evidence(detail=came, elapsed_us=answer.elapsed_us))
        self.answers.append(Answered(ask.decision.kind, answer.action, answer.elapsed_us))
        return answer

    def _trouble(self, ask: Ask, expected: str, came: str) -> Trouble:
        what = f"{kind_name(ask.decision.kind)} ({enum_name(ask.decision.kind)})"
        where = f"{self._where}, seat {ask.decision.seat}, turn {ask.view.turn}"
        return Trouble(f"{what}: {expected}", f"{came}\n{where}, decision_id {ask.number}")


def _expected(ask: Ask, fault: BotFault) -> str:
    if fault.cause is Cause.MALFORMED:
        return legal_words(ask.decision)
    return f"a reply within {ask.budget.limit_us / 1e6:g} s"
