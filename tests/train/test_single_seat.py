"""The environment with one seat passes the check of Gymnasium, and plays against bots of the SDK."""

from __future__ import annotations

import random
import runpy
from copy import deepcopy
from pathlib import Path
from unittest.mock import patch

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from referee.rules.actions import Choice
from referee.rules.ruleset import RULESETS
from referee.sdk.env import ACTIONS, MaskedActionError, encode_action
from referee.train.games import reward_by_rank
from referee.train.single_seat import SingleSeatEnv

NAME = "referee.train.single_seat:Linko-v1"
SAMPLE_BOTS = Path(__file__).parents[2] / "sample_bots"


def first_legal(request):
    return request.legal[0]


def play(env, chance, **reset):
    """Play a game with random legal actions. Return all observations, the last reward and the last info."""
    observation, _ = env.reset(**reset)
    seen, over = [observation], False
    while not over:
        action = chance.choice(np.flatnonzero(env.unwrapped.action_masks()))
        observation, reward, over, truncated, info = env.step(action)
        assert (reward == 0 or over, truncated) == (True, False)
        seen.append(observation)
    return seen, reward, info


@pytest.mark.parametrize(
    ("ruleset", "opponents"), [("basic", 3), ("duel", 1), ("classic", 4), ("expert", 2)]
)
@pytest.mark.filterwarnings("ignore:.*Box observation space.*")  # counts are no picture
def test_check_env_passes(ruleset, opponents):
    """The check knows no masks, so its actions must be replaced if they are masked."""
    options = {"opponents": [first_legal] * opponents, "ruleset": ruleset}
    env = gymnasium.make(NAME, **options, masked="replace", render_mode="ansi")
    check_env(env.unwrapped)


@pytest.mark.parametrize("bot", ["bait", "greedy", "random"])
def test_game_against_sample_bots_ends_with_the_reward_of_the_seat(bot):
    decide = runpy.run_path(str(SAMPLE_BOTS / bot / "bot.py"))["decide"]
    env = gymnasium.make(NAME, opponents=[decide] * 3)
    _, reward, info = play(env, random.Random(1), seed=2)
    outcome = env.unwrapped.training_game.game.outcome
    assert reward == reward_by_rank(outcome)[info["seat"]]


def test_seed_and_actions_decide_about_everything():
    def game():
        env = SingleSeatEnv([first_legal] * 2)
        seen, reward, info = play(env, random.Random(1), seed=4)
        again, *_ = play(env, random.Random(1))
        return [each.tolist() for each in (*seen, *again)], reward, info

    assert game() == game()


def test_copy_goes_on_as_the_environment():
    env = SingleSeatEnv([lambda request: request.game.random.choice(request.legal)] * 2)
    env.reset(seed=4)
    env.step(np.flatnonzero(env.action_masks())[0])
    copy = deepcopy(env)

    def play_on(env):
        over = False
        while not over:
            observation, reward, over, _, _ = env.step(np.flatnonzero(env.action_masks())[0])
        return observation.tolist(), reward, env.reset()[1]

    assert play_on(copy) == play_on(env)


def test_seat_is_random_unless_it_is_given():
    def seats(env):
        return {env.reset(seed=seed)[1]["seat"] for seed in range(20)}

    assert seats(SingleSeatEnv([first_legal] * 2)) == {0, 1, 2}
    assert seats(SingleSeatEnv([first_legal] * 2, seat=1)) == {1}


def test_opponents_sit_clockwise_from_the_left_neighbour():
    seats = {}

    def opponent(name):
        def decide(request):
            seats[name] = request.view.seat
            return request.legal[0]

        return decide

    play(SingleSeatEnv(list(map(opponent, "abc")), seat=2), random.Random(1), seed=1)
    assert seats == {"a": 3, "b": 0, "c": 1}


def test_action_masks_are_what_maskable_ppo_takes():
    """`get_action_masks` of sb3-contrib calls the method of the unwrapped environment; PPO reshapes the masks to booleans."""
    env = gymnasium.make(NAME, opponents=[first_legal])
    env.reset(seed=1)
    masks = env.get_wrapper_attr("action_masks")()
    assert (masks.dtype, masks.shape) == (np.bool_, (ACTIONS,))
    assert isinstance(env.action_space, gymnasium.spaces.Discrete)
    assert isinstance(env.observation_space, gymnasium.spaces.Box)
    stacked = np.stack([masks, masks]).reshape(-1, int(env.action_space.n))
    assert stacked.any(axis=1).all()


def test_points_can_be_the_reward():
    env = SingleSeatEnv([first_legal], rewards="points", seat=0)
    _, reward, _ = play(env, random.Random(1), seed=2)
    assert reward == env.training_game.game.outcome.scores[0]


@pytest.mark.parametrize("masked", ["error", "replace"])
def test_agent_does_not_decide_for_an_opponent_that_has_raised_an_exception(masked):
    failures = iter([ZeroDivisionError("the bot")])

    def fail_once(request):
        for failure in failures:
            raise failure
        return request.legal[0]

    env = SingleSeatEnv([fail_once], seat=0, masked=masked)
    with pytest.raises(ZeroDivisionError, match="the bot"):
        play(env, random.Random(1), seed=1)
    assert not env.action_masks().any()
    with pytest.raises(gymnasium.error.ResetNeeded, match="call `reset`"):
        env.step(0)
    play(env, random.Random(1), seed=1)


def test_render_mode_human_prints_the_table_at_reset_and_at_each_step(capsys):
    env = gymnasium.make(NAME, opponents=[first_legal], seat=0, render_mode="human")
    env.reset(seed=1)
    start = capsys.readouterr().out
    env.step(np.flatnonzero(env.unwrapped.action_masks())[0])
    assert "seat_0" in start
    assert "seat_0" in capsys.readouterr().out != start


# Wrong input


def test_masked_action_is_refused():
    env = SingleSeatEnv([first_legal])
    env.reset(seed=1)
    with pytest.raises(MaskedActionError, match=r"action 634 \(pass\) is masked; the mask allows"):
        env.step(encode_action(Choice.PASS))


@pytest.mark.parametrize("action", [encode_action(Choice.PASS), -1, -ACTIONS, ACTIONS, 10**9])
def test_masked_action_can_be_replaced(action):
    """An action that does not exist counts as masked."""
    env = SingleSeatEnv([first_legal], masked="replace", seat=0)
    env.reset(seed=1)
    env.step(action)
    assert env.training_game.game.table.layers[0]


def test_replaced_action_is_random():
    def replace(seed):
        """Return the actions that replace a masked one, 30 times at the first decision."""
        env = SingleSeatEnv([first_legal], masked="replace", seat=0)
        env.reset(seed=7)
        env.np_random = np.random.default_rng(seed)
        with patch.object(env.training_game, "step") as step:
            for _ in range(30):
                env.step(encode_action(Choice.PASS))
        numbers = [call.args[0] for call in step.call_args_list]
        assert env.action_masks()[numbers].all()
        return numbers

    assert replace(1) == replace(1) != replace(2)
    assert len(set(replace(1))) > 5


@pytest.mark.parametrize("masked", ["error", "replace"])
def test_action_that_is_no_whole_number_is_refused(masked):
    env = SingleSeatEnv([first_legal], seat=0, masked=masked)
    env.reset(seed=1)
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        env.step(np.flatnonzero(env.action_masks())[0] + 0.9)


@pytest.mark.parametrize("number", [np.int64, np.array])
def test_action_may_be_a_number_or_an_array_of_numpy(number):
    env = SingleSeatEnv([first_legal], seat=0)
    env.reset(seed=1)
    env.step(number(np.flatnonzero(env.action_masks())[0]))
    assert env.training_game.game.table.layers[0]


@pytest.mark.parametrize(
    "call", [lambda env: env.step(0), SingleSeatEnv.action_masks, SingleSeatEnv.render]
)
def test_call_before_reset_is_refused(call):
    env = SingleSeatEnv([first_legal], render_mode="ansi")
    with pytest.raises(gymnasium.error.ResetNeeded, match="call `reset`, which starts a game"):
        call(env)


def test_step_after_the_end_of_a_game_is_refused():
    env = SingleSeatEnv([first_legal])
    play(env, random.Random(1), seed=1)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call `reset`, which starts a game"):
        env.step(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opponents": []}, "basic is for 2 to 5 players, not 1"),
        ({"opponents": [min] * 2, "ruleset": "duel"}, "duel is for 2 players, not 3"),
        ({"opponents": [min], "ruleset": "poker"}, "unknown ruleset 'poker'; choose one of"),
        (
            {"opponents": [min] * 2, "ruleset": RULESETS["basic"].with_options(max_turns=2)},
            "max_turns is 2, but it must be at least 3, so that each seat has a turn",
        ),
        ({"opponents": [min], "seat": 2}, "there is no seat 2; the seats are 0 to 1"),
        ({"opponents": [min], "masked": "skip"}, "unknown masked 'skip'; choose one of error, re"),
        ({"opponents": [min], "rewards": "fame"}, "unknown rewards 'fame'"),
        ({"opponents": [min], "render_mode": "film"}, "unknown render_mode 'film'"),
    ],
)
def test_option_that_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SingleSeatEnv(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opponents": [first_legal, 42]}, "42 is neither a subclass of referee.sdk.Bot nor a f"),
        ({"opponents": "abc"}, "'a' is neither a subclass of referee.sdk.Bot nor a function"),
        ({"opponents": {1: first_legal}}, "1 is neither a subclass of referee.sdk.Bot nor a f"),
        ({"opponents": [min], "seat": 1.0}, "seat must be a whole number, not 1.0"),
        ({"opponents": [min], "seat": True}, "seat must be a whole number, not True"),
    ],
)
def test_option_of_a_wrong_type_is_refused(options, message):
    with pytest.raises(TypeError, match=message):
        SingleSeatEnv(**options)
