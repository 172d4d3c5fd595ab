"""Test how a check compares games, and the interval of the strength. `test_check_bot` tests the steps with real bots."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from referee.bots.player import BotPlayer
from referee.check import StepVerdict, game_steps
from referee.check.game_steps import ConcurrencySteps, half_width
from referee.check.games import BotDecision, CheckedGame, TableSize
from referee.clocks import Clocks
from referee.pb import play_pb2
from referee.records import Reply
from referee.rules.actions import Choice, DecisionKind
from referee.rules.ruleset import RULESETS


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((-1.0, 1.0), 12.706),  # the quantiles are those of published tables of Student's t
        ((-1.0, 0.0, 1.0), 4.303 / 3**0.5),
        ((0.0, 2.0) * 50, 1.984 * (100 / 99) ** 0.5 / 10),
    ],
)
def test_few_games_give_a_wide_interval(values, expected):
    assert half_width(values) == pytest.approx(expected, rel=1e-3)


@dataclass(frozen=True)
class IdleBot:
    """A bot under test that starts no process."""

    clocks: Clocks = Clocks()  # noqa: RUF009 - cannot change

    @asynccontextmanager
    async def run(self):
        yield SimpleNamespace(session=SimpleNamespace(dropped=0), change_games=lambda _: None)


def played(games, choice=Choice.TAKE):
    """Return games in which the bot has made one decision."""
    decision = BotDecision(DecisionKind.TAKE_OR_LEAVE, choice, elapsed_us=5)
    return [CheckedGame(game, (decision,), 0.0) for game in games]


@pytest.mark.parametrize(
    ("max_games", "in_runs", "kept_apart", "deterministic"),
    [
        (2, (4, 4), "2 games alone", "in 4 games"),
        (8, (4, 4), "4 games alone", "in 4 games"),
        (8, (4, 1), "4 games alone", "in 1 game"),
        (8, (1, 4), "1 game alone", "in 1 game"),
    ],
)
async def test_steps_that_compare_runs_count_the_games_that_both_runs_have(
    monkeypatch, max_games, in_runs, kept_apart, deterministic
):
    """A run has fewer games if the bot plays fewer at once, or if its time is over."""
    counts = iter(in_runs)

    async def play_concurrently(_bot, _process, games):
        return played(games)

    async def play_in_sequence(_bot, _process, games):
        return played(games[: next(counts)])

    monkeypatch.setattr(game_steps, "play_concurrently", play_concurrently)
    monkeypatch.setattr(game_steps, "play_in_sequence", play_in_sequence)
    steps = ConcurrencySteps(IdleBot(), max_games, [TableSize(RULESETS["basic"], 3)])
    await steps.check_interleaved()
    assert (await steps.check_separation()).happened == f"{kept_apart}: the same replies"
    assert (await steps.report_determinism()).happened == (
        f"yes: a new process made the same decisions {deterministic}"
    )


@pytest.mark.parametrize(("max_games", "limit_us"), [(4, 5_000_000), (99, 937_500)])
async def test_game_start_has_the_time_limit_of_the_requests_in_one_message(
    monkeypatch, max_games, limit_us
):
    limits_us = []

    class Player(BotPlayer):
        def __init__(self, clocks):
            self.clocks = clocks

        async def decide(self, request):
            limits_us.append((self.clocks.decision_us, request.time.limit_us))
            return Reply(request.decision.legal[0], 0, 0)

    async def join(_process, seat_start, _limit_us):
        (start,) = play_pb2.RefereeMessage.FromString(seat_start.message).game_starts
        return Player(start.clocks)

    monkeypatch.setattr(BotPlayer, "join", join)
    steps = ConcurrencySteps(IdleBot(), max_games, [TableSize(RULESETS["basic"], 3)])
    assert (await steps.check_batch()).verdict is StepVerdict.PASS
    assert set(limits_us) == {(limit_us, limit_us)}


async def test_bot_that_replies_differently_beside_other_games_hears_of_the_possible_reasons(
    monkeypatch,
):
    """Two of the three reasons are allowed: a bot may learn, and sums of floats may depend on the size of a batch."""

    async def play_concurrently(_bot, _process, games):
        return played(games, Choice.LEAVE)

    async def play_in_sequence(_bot, _process, games):
        return played(games)

    monkeypatch.setattr(game_steps, "play_concurrently", play_concurrently)
    monkeypatch.setattr(game_steps, "play_in_sequence", play_in_sequence)
    steps = ConcurrencySteps(IdleBot(), 2, [TableSize(RULESETS["basic"], 3)])
    await steps.check_interleaved()
    finding = await steps.check_separation()
    assert finding.verdict is StepVerdict.INFO
    assert finding.happened.splitlines()[0] == (
        "the replies differ: reply 1 (take or leave) in basic with 3 players: played alone CHOICE_TAKE,"
        " beside 1 game CHOICE_LEAVE"
    )
    for words in ("under its game_id", "learns from finished games", "size of the batch"):
        assert words in finding.happened
