"""The AEC environment passes the tests of PettingZoo, hides what the protocol hides, and refuses wrong input."""

from __future__ import annotations

import pickle
import random
import runpy
import sys
import time
import warnings
from copy import deepcopy
from pathlib import Path
from unittest.mock import patch

import gymnasium
import numpy as np
import pytest
from extended import extend_cases_but
from hypothesis import given, settings
from hypothesis import strategies as st

from referee import deals
from referee.reports.formats import counts_name
from referee.rules.actions import Choice
from referee.rules.game import IllegalActionError, Outcome
from referee.rules.ruleset import RULESETS
from referee.rules.table import Table
from referee.sdk import Bot
from referee.sdk.env import MaskedActionError, encode_action, policy_bot
from referee.train import linko_v1
from referee.train.games import reward_by_points, reward_by_rank

with warnings.catch_warnings(
    action="ignore"
):  # the tests import an environment of PettingZoo in an old way
    from pettingzoo.test import api_test, performance_benchmark, render_test, seed_test

sys.path.insert(0, str(Path(__file__).parents[1] / "rules"))
from few_tables import few_tables
from playouts import POLICIES, TABLE_NAMES, TABLES, shuffled
from redeal import find_seat_that_tells_apart, play_log

SAMPLE_BOTS = Path(__file__).parents[2] / "sample_bots"
library_tests = pytest.mark.parametrize(
    ("ruleset", "players"),
    extend_cases_but(
        ("basic-4", "duel-2"),
        dict(zip(TABLE_NAMES, TABLES, strict=True)),
        "plays games at every table",
    ),
)


def sample_bot(name):
    return runpy.run_path(str(SAMPLE_BOTS / name / "bot.py"))


def choose_at_random(observation, chance):
    return int(chance.choice(np.flatnonzero(observation["action_mask"])))


def play(env, seed, choose=choose_at_random):
    """Play a game and return the reward of each agent."""
    chance, rewards = random.Random(seed), {}
    env.reset(seed=seed)
    for agent in env.agent_iter():
        observation, rewards[agent], termination, _, _ = env.last()
        env.step(None if termination else choose(observation, chance))
    return rewards


# The tests of PettingZoo


@pytest.mark.filterwarnings(
    "ignore:Observation"
)  # PettingZoo warns of all observations with a mask
@library_tests
def test_api_test_passes(ruleset, players):
    api_test(linko_v1.env(ruleset=ruleset, players=players), num_cycles=100)


@library_tests
def test_seed_test_passes(ruleset, players):
    seed_test(lambda: linko_v1.env(ruleset=ruleset, players=players), num_cycles=100)


@library_tests
def test_render_test_passes(ruleset, players, capsys):
    render_test(lambda **mode: linko_v1.env(ruleset=ruleset, players=players, **mode))
    assert "seat_0" in capsys.readouterr().out


@library_tests
def test_performance_benchmark_passes(ruleset, players, capsys, monkeypatch):
    seconds = time.time
    monkeypatch.setattr(time, "time", lambda: 20 * seconds())  # it measures for five seconds
    performance_benchmark(linko_v1.env(ruleset=ruleset, players=players))
    assert "turns per second" in capsys.readouterr().out


# Games


@pytest.mark.parametrize("name", RULESETS)
def test_game_has_the_cards_and_the_end_of_the_rules(name):
    """The cards are those of `referee play --seed 5`."""
    env = linko_v1.env(ruleset=name, players=2)
    rewards = play(env, 5)
    game = env.training_game.game
    assert game.table.deck == deals.deck(deals.text_seed("5"), "play", RULESETS[name])
    assert rewards == dict(zip(["seat_0", "seat_1"], reward_by_rank(game.outcome), strict=True))
    assert env.agents == []


def test_reset_without_a_seed_goes_on_from_the_last_seed():
    def seeds(env):
        env.reset(seed=3)
        for _ in range(3):
            yield env.training_game.seed
            env.reset()

    first, second = linko_v1.env(), linko_v1.env()
    assert list(seeds(first)) == list(seeds(second))
    assert len(set(seeds(first))) == 3


@pytest.mark.parametrize(
    ("ranks", "rewards"),
    [
        ((1, 2, 3), (1, 0, -1)),
        ((2, 1), (-1, 1)),
        ((1, 2, 2, 4), (1, 0, 0, -1)),
        ((1, 1, 3, 3, 5), (0.75, 0.75, -0.25, -0.25, -1)),
        ((1, 1), (0, 0)),
    ],
)
def test_rewards_by_rank_share_equal_ranks_and_add_up_to_zero(ranks, rewards):
    assert reward_by_rank(Outcome(None, (), ranks)) == rewards
    assert sum(rewards) == 0


def test_rewards_by_points_are_the_points():
    env = linko_v1.env(ruleset="classic", players=3, rewards="points")
    rewards = play(env, 1)
    assert tuple(rewards.values()) == reward_by_points(env.training_game.game.outcome)
    assert all(isinstance(reward, float) for reward in rewards.values())


def test_copy_goes_on_as_the_environment():
    """The copies have the game, what the bot remembers, and the seed of the next game."""

    class Counting(Bot):
        decisions = 0

        def decide(self, request):
            self.decisions += 1
            return request.legal[
                self.decisions * request.game.random.randrange(9) % len(request.legal)
            ]

    def play_two_games(env):
        chance = random.Random(2)
        for _ in range(2):
            for agent in env.agent_iter():
                observation, reward, termination, _, _ = env.last()
                yield agent, observation["observation"].tobytes(), reward
                env.step(None if termination else choose_at_random(observation, chance))
            env.reset()

    env = linko_v1.env(players=3, bots={1: Counting})
    env.reset(seed=3)
    for _ in range(20):
        env.step(choose_at_random(env.last()[0], random.Random(1)))
    copies = [deepcopy(env), deepcopy(env)]
    played = list(play_two_games(env))
    assert len(played) > 50
    assert [list(play_two_games(each)) for each in copies] == [played, played]


def test_environment_can_be_pickled():
    env = linko_v1.env(players=2, render_mode="ansi")
    env.reset(seed=3)
    env.step(choose_at_random(env.last()[0], random.Random(1)))
    assert pickle.loads(pickle.dumps(env)).render() == env.render()  # noqa: S301 - our own


def test_only_the_agent_that_must_decide_has_actions():
    env = linko_v1.env(ruleset="basic", players=3)
    env.reset(seed=1)
    for agent in env.agent_iter(50):
        observations = {each: env.observe(each) for each in env.agents}
        assert [each for each in env.agents if observations[each]["action_mask"].any()] == [agent]
        env.step(choose_at_random(observations[agent], random.Random(1)))


def test_rendered_table_has_all_hands():
    env = linko_v1.env(ruleset="duel", players=2, render_mode="ansi")
    env.reset(seed=1)
    text, game = " ".join(env.render().split()), env.training_game.game
    for seat in range(2):
        cards = game.view(seat).hand
        assert counts_name(cards) in text
        assert sum(cards) > 0


def test_render_mode_human_prints_the_table_at_reset_and_at_each_step(capsys):
    env = linko_v1.env(ruleset="duel", players=2, render_mode="human")
    env.reset(seed=1)
    start = capsys.readouterr().out
    env.step(choose_at_random(env.observe("seat_0"), random.Random(1)))
    assert "seat_0" in start
    assert "seat_0" in capsys.readouterr().out != start


# Bots of the SDK


def test_bots_play_their_seats_and_are_no_agents():
    env = linko_v1.env(
        players=4, bots={0: sample_bot("bait")["decide"], 2: sample_bot("counter")["Counter"]}
    )
    assert env.possible_agents == ["seat_1", "seat_3"]
    rewards = play(env, 2)
    assert list(rewards) == ["seat_1", "seat_3"]
    assert all(env.training_game.game.table.layers)


def test_policy_is_a_bot_of_the_environment():
    seen = []

    def policy(observation):
        seen.append(observation["action_mask"])
        return int(np.flatnonzero(observation["action_mask"])[0])

    play(linko_v1.env(players=2, bots={0: policy_bot(policy)}), 2)
    assert len(seen) > 5
    assert all(mask.any() for mask in seen)


def test_bot_gets_start_and_result_of_each_game():
    results = []

    class Diary(Bot):
        def start(self, game):
            self.first = game.random.random()

        def decide(self, request):
            return request.legal[0]

        def end(self, result):
            results.append((result.game.seat, self.first, result.events[-1].ranks))

    env = linko_v1.env(players=3, bots={1: Diary})
    for seed in (1, 2, 1):
        play(env, seed)
    assert [seat for seat, _, _ in results] == [1, 1, 1]
    assert results[0] == results[2] != results[1]
    assert results[0][1] == random.Random(deals.bot_seed(deals.text_seed("1"), "play", 1)).random()


def test_illegal_action_of_a_bot_names_its_seat():
    env = linko_v1.env(players=2, bots={0: lambda _: Choice.RECLAIM})
    with pytest.raises(
        IllegalActionError, match=r"the bot on seat 0: Choice\.RECLAIM is not legal"
    ):
        env.reset(seed=1)


@pytest.mark.parametrize("method", ["start", "decide", "end"])
def test_game_ends_with_an_exception_of_a_bot(method):
    """The agent does not decide for the bot, and the next game is a whole one."""
    failures = iter([ZeroDivisionError("the bot")])

    def fail(*_):
        for failure in failures:
            raise failure

    class Failing(Bot):
        def decide(self, request):
            if method == "decide":
                fail()
            return request.legal[0]

    if method != "decide":
        setattr(Failing, method, fail)
    env = linko_v1.env(players=2, bots={1: Failing})
    with pytest.raises(ZeroDivisionError, match="the bot"):
        play(env, 1)
    assert not env.observe("seat_0")["action_mask"].any()
    with pytest.raises(gymnasium.error.ResetNeeded, match="call `reset`"):
        env.step(0)
    play(env, 1)
    assert env.training_game.game.outcome


def test_game_ends_with_an_interrupted_step():
    env = linko_v1.env(players=2)
    env.reset(seed=1)
    action = choose_at_random(env.observe("seat_0"), random.Random(1))
    with (
        patch.object(Table, "play", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        env.step(action)
    assert not env.observe("seat_0")["action_mask"].any()
    with pytest.raises(gymnasium.error.ResetNeeded, match="call `reset`"):
        env.step(action)


# Wrong input


def test_masked_action_is_refused_and_changes_nothing():
    env = linko_v1.env(ruleset="basic", players=3)
    env.reset(seed=1)
    before = env.observe("seat_0")
    with pytest.raises(
        MaskedActionError, match=r"action 634 \(pass\) is masked; the mask allows \d"
    ):
        env.step(encode_action(Choice.PASS))
    assert env.agent_selection == "seat_0"
    assert all((env.observe("seat_0")[key] == before[key]).all() for key in before)


def test_agent_that_must_decide_cannot_step_with_none():
    env = linko_v1.env()
    env.reset(seed=1)
    with pytest.raises(ValueError, match="seat_0 must decide, but the action is None"):
        env.step(None)


@pytest.mark.parametrize(
    "call",
    [
        lambda env: env.step(0),
        lambda env: env.observe("seat_0"),
        lambda env: env.last(),
        lambda env: env.agent_iter(),
        lambda env: env.render(),
    ],
)
def test_call_before_reset_is_refused(call):
    with pytest.raises(gymnasium.error.ResetNeeded, match="call `reset`, which starts a game"):
        call(linko_v1.env(render_mode="ansi"))


@pytest.mark.parametrize("number", [np.int8, np.uint8, np.int64, np.array])
def test_number_of_players_may_be_a_number_of_numpy(number):
    env = linko_v1.env(ruleset="classic", players=number(5))
    play(env, 1)
    assert env.possible_agents == [f"seat_{seat}" for seat in range(5)]
    assert env.observation_space("seat_4").contains(env.observe("seat_4"))


def test_number_of_turns_may_be_a_number_of_numpy():
    ruleset = RULESETS["basic"].with_options(max_turns=np.int64(3))
    env = linko_v1.env(ruleset, 3)
    play(env, 1)
    assert all(env.terminations.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"ruleset": "basik"},
            r"unknown ruleset 'basik' \(did you mean 'basic'\?\); choose one of",
        ),
        ({"ruleset": "duel", "players": 3}, "duel is for 2 players, not 3"),
        ({"players": 6}, "basic is for 2 to 5 players, not 6"),
        ({"rewards": "fame"}, "unknown rewards 'fame'; choose one of rank, points"),
        ({"render_mode": "film"}, "unknown render_mode 'film'"),
        ({"bots": {4: min}}, "bots: there is no seat 4; the seats are 0 to 3"),
        ({"bots": dict.fromkeys(range(4), min)}, "all seats have a bot; leave at least one"),
    ],
)
def test_option_that_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        linko_v1.env(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ruleset": 5}, "ruleset must be a name or a Ruleset, not 5"),
        ({"ruleset": ["duel"]}, r"ruleset must be a name or a Ruleset, not \['duel'\]"),
        ({"players": "2"}, "players must be a whole number, not '2'"),
        ({"players": 2.0}, "players must be a whole number, not 2.0"),
        ({"bots": {1: 42}}, "42 is neither a subclass of referee.sdk.Bot nor a function"),
        ({"bots": {1.0: min}}, "bots: a seat must be a whole number, not 1.0"),
        ({"bots": {True: min}}, "bots: a seat must be a whole number, not True"),
        ({"bots": [min]}, "bots: a seat must be a whole number, not <built-in function min>"),
    ],
)
def test_option_of_a_wrong_type_is_refused(options, message):
    with pytest.raises(TypeError, match=message):
        linko_v1.env(**options)


# Leaks: see tests/rules/test_leaks.py


def list_observations(rules, players, deck, actions, seat):
    """Return all that the agent of a seat gets from the environment."""
    env, agent = linko_v1.env(ruleset=rules, players=players), f"seat_{seat}"
    with patch.object(deals, "deck", lambda *_: tuple(deck)):
        env.reset(seed=1)
    seen = []
    for action in (*actions, None):
        seen += [array.tobytes() for array in env.observe(agent).values()]
        seen += [env.rewards[agent], env.terminations[agent], env.infos[agent], env.agent_selection]
        if action is not None:
            env.step(encode_action(action))
    return seen


@pytest.mark.unmeasured
@few_tables
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32), policy=st.sampled_from(POLICIES))
def test_agent_gets_nothing_that_depends_on_hidden_cards(ruleset, players, seed, policy):
    rules, chance = ruleset.with_options(max_turns=60), random.Random(seed)
    deck = shuffled(rules, seed)
    log = play_log(rules, players, deck, lambda game: policy(game.decision, chance))
    assert (
        find_seat_that_tells_apart(
            rules, deck, log, players=players, chance=chance, testimony=list_observations
        )
        is None
    )
