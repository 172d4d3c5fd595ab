"""A policy and bots play the same game in the environments and under the referee, if the seed is the same."""

from __future__ import annotations

import json
import runpy
from unittest.mock import patch

import numpy as np
import pytest
from real_runs import SAMPLE_BOTS, place

from referee.pb import play_pb2
from referee.protocol import messages
from referee.records import BotId
from referee.reports.game_rows import action_json
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS
from referee.sandbox import NO_ISOLATION
from referee.sdk import Bot
from referee.sdk.env import policy_bot
from referee.tournament.game_player import make_free_task
from referee.train import linko_v1

POLICY = """
import numpy as np

def policy(observation):
    actions = np.flatnonzero(observation["action_mask"])
    return int(actions[int(observation["observation"].sum()) % len(actions)])
"""
PROGRAM = f"""
from referee.sdk.env import run
{POLICY}
run(policy, max_games=4)
"""


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made


def moves_of_environment(ruleset, players, bots):
    """Play with the policy on each seat without a bot. Return all moves of the game."""
    policy, moves, apply = {}, [], Game.apply
    exec(POLICY, policy)  # noqa: S102 - our own program

    def noted(game, action):
        moves.append({"seat": game.decision.seat, "action": action_json(action)})
        return apply(game, action)

    env = linko_v1.env(ruleset=ruleset, players=players, bots=bots)
    with patch.object(Game, "apply", noted):
        env.reset(seed=5)
        for _ in env.agent_iter():
            observation, _, termination, _, _ = env.last()
            env.step(None if termination else policy["policy"](observation))
    return moves


@pytest.mark.extended("plays a game with real bots")
@pytest.mark.parametrize(
    ("ruleset", "others"), [("basic", ("random", "counter")), ("duel", ("random",))]
)
def test_policy_and_bots_play_the_same_game_there_and_under_the_referee(here, ruleset, others):
    here.bot("trained", PROGRAM)
    folders = [str(SAMPLE_BOTS / name) for name in others]
    played = here.referee(
        "play", "./trained", *folders, "--ruleset", ruleset, "--seed", "5", "--json"
    )
    record = json.loads(played.stdout)
    assert record["faults"] == []
    programs = {"random": "decide", "counter": "Counter"}
    bots = {
        seat: runpy.run_path(str(SAMPLE_BOTS / name / "bot.py"))[programs[name]]
        for seat, name in enumerate(others, start=1)
    }
    moves = moves_of_environment(ruleset, len(others) + 1, bots)
    assert [{key: move[key] for key in ("seat", "action")} for move in record["moves"]] == moves


def test_policy_plays_the_same_game_as_an_agent_and_as_a_bot():
    policy = {}
    exec(POLICY, policy)  # noqa: S102 - our own program
    alone = moves_of_environment("basic", 3, {})
    among_bots = moves_of_environment(
        "basic", 3, dict.fromkeys((0, 2), policy_bot(policy["policy"]))
    )
    assert len(alone) > 30
    assert among_bots == alone


def test_bots_get_the_start_and_the_end_that_the_referee_sends():
    starts, ends = {}, {}

    class Listening(Bot):
        def start(self, game):
            starts[game.seat] = game.message

        def decide(self, request):
            return request.legal[-1]

        def end(self, result):
            ends[result.game.seat] = result.message

    env = linko_v1.env(ruleset="classic", players=4, bots=dict.fromkeys((1, 2, 3), Listening))
    env.reset(seed=5)
    dealt = Game(RULESETS["classic"], 4, env.training_game.game.table.deck)
    while env.training_game.decision:
        env.step(int(np.flatnonzero(env.last()[0]["action_mask"])[0]))
    outcome = env.training_game.game.outcome
    task = make_free_task([BotId("bot", "1")] * 4, RULESETS["classic"], "5", NO_ISOLATION)
    assert sorted(starts) == sorted(ends) == [1, 2, 3]
    for seat, start in starts.items():
        sent = messages.game_start(
            task.opaque_id,
            rules=task.setup.ruleset,
            view=dealt.view(seat),
            clocks=task.setup.clocks,
            seed=task.seeds[seat],
            names=task.names,
            max_strikes=task.setup.max_strikes,
        )
        assert [start] == list(play_pb2.RefereeMessage.FromString(sent).game_starts)
        end = ends[seat]
        assert (end.game_id, end.reason, end.forfeited) == (task.opaque_id, "", False)
        assert tuple(end.ranks) == tuple(end.events[-1].game_over.ranks) == outcome.ranks
    assert outcome.ranks != outcome.ranks[::-1]
