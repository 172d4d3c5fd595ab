"""Test what a check expects of a bot that fails in a game. `test_check_bot` plays the games with real bots."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from referee.check import StepFailure
from referee.check.games import BotPlayer, BotSeat, TableSize, plan_games, start_game
from referee.clocks import Clocks, DecisionTime
from referee.errors import PROCESS_CAUSES, BotFault, Cause, Evidence, Forfeit, Strike
from referee.records import Request
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS

[GAME] = plan_games("games", [TableSize(RULESETS["basic"], 3)], 1)
CLOCKS = Clocks(game_start_us=2_000_000)
PROCESS = SimpleNamespace(
    session=SimpleNamespace(dropped=0),
    change_games=lambda _: None,
)
MESSAGE_CAUSES = {Cause.TOO_LARGE, Cause.FLOOD, Cause.IMPERSONATION}
PROCESS_TEXT = "a process that continues to run and stays within its limits"


def fault_of(cause):
    kind = Strike if cause in {Cause.TIMEOUT, Cause.MALFORMED} else Forfeit
    return kind(cause, Evidence(detail="it went wrong"))


async def failure_of_decision(cause):
    """Return the failure of a bot's first decision that ends with a fault."""

    class Player:
        async def decide(self, _request):
            raise fault_of(cause)

    table = Game(GAME.ruleset, GAME.players, GAME.deck)
    seat = BotSeat(PROCESS, Player(), GAME.description)
    request = Request(1, table.view(0), table.decision, (), DecisionTime(1_500_000, None, 0))
    with pytest.raises(BotFault):
        await seat.decide(request)
    return seat.failure


async def failure_of_start(cause, monkeypatch):
    """Return the failure of a bot that has a fault at the start of a game."""

    async def join(*_):
        raise fault_of(cause)

    monkeypatch.setattr(BotPlayer, "join", join)
    with pytest.raises(StepFailure) as raised:
        await start_game(SimpleNamespace(clocks=CLOCKS), PROCESS, GAME)
    return raised.value


@pytest.mark.parametrize("cause", sorted(MESSAGE_CAUSES, key=str))
async def test_only_a_reply_is_expected_of_a_bot_that_sends_a_wrong_message(cause):
    failure = await failure_of_decision(cause)
    assert failure.expected == "play (DECISION_KIND_PLAY): a reply"


@pytest.mark.parametrize("cause", sorted(PROCESS_CAUSES - MESSAGE_CAUSES, key=str))
async def test_time_limit_is_not_expected_of_a_process_that_fails(cause, monkeypatch):
    decision = await failure_of_decision(cause)
    assert decision.expected == f"play (DECISION_KIND_PLAY): a reply, and {PROCESS_TEXT}"
    start = await failure_of_start(cause, monkeypatch)
    assert start.expected == f"a ready for the game start, and {PROCESS_TEXT}"


async def test_time_limit_is_expected_of_a_late_bot(monkeypatch):
    for cause in (Cause.TIMEOUT, Cause.OUT_OF_TIME):
        assert (await failure_of_decision(cause)).expected.endswith(": a reply within 1.5 s")
    start = await failure_of_start(Cause.GAME_START_TIMEOUT, monkeypatch)
    assert start.expected == "a ready for the game start within 2 s"


async def test_legal_actions_are_expected_of_a_malformed_reply():
    assert "legal actions" in (await failure_of_decision(Cause.MALFORMED)).expected
