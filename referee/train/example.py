"""Learn to play with numpy in a minute: `python -m referee.train.example [SECONDS]`.

The agent plays against three bots that choose at random. At the beginning the agent chooses at random too. Its policy is
a softmax over the scores of the legal actions. The score of an action is linear in a few features of the action, and the
weights of these features are linear in a few features of the situation. The agent learns by policy gradients (REINFORCE;
Williams, Machine Learning 8, 1992).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from referee.rules.actions import Choice, Play
from referee.rules.ruleset import HAND_SIZE, JOKER
from referee.sdk import Action, Request
from referee.sdk.env import LISTED_ACTIONS, Array
from referee.train.single_seat import SingleSeatEnv

Floats = NDArray[np.float64]
BATCH = 10
"""The number of games before each change of the weights."""
RATE = 0.3
"""How far the weights change along the gradient."""
MEMORY = 0.8
"""The weight of the old mean reward when the rewards of a batch are added to it. The learner compares the reward of each
game with this mean."""
TEST_GAMES = 200
SECONDS = 60.0
"""How many seconds to learn if the command has no argument."""


def choose_at_random(request: Request) -> Action:
    """Return a random legal action, as an opponent."""
    return request.game.random.choice(request.legal)


def describe_action(action: Action) -> list[float]:
    """Return the features of an action: size, value and jokers if it is a play, then 0 or 1 for each `Choice`.

    All other actions have only zeros.
    """
    layer = action.layer if isinstance(action, Play) else None
    cards = [layer.size / 4, layer.value / JOKER, float(layer.jokers)] if layer else [0.0] * 3
    return cards + [float(action is choice) for choice in Choice]


ACTION_FEATURES: Floats = np.array([describe_action(action) for action in LISTED_ACTIONS])


class Learner:
    """A policy and its weights.

    Args:
        seed: the seed of all random numbers.
    """

    def __init__(self, seed: int = 1) -> None:
        self.env = SingleSeatEnv([choose_at_random] * 3, "basic")
        self.env.reset(seed=seed)
        self._random = np.random.default_rng(seed)
        self._weights: Floats = np.zeros((ACTION_FEATURES.shape[1], 4))
        """One row for each feature of an action. The weight of this feature is the row times the features of the situation."""
        self._usual_reward = 0.0

    def describe_situation(self, observation: Array) -> Floats:
        """Return the features of a situation: a constant, and three numbers that tell how close the end of the game may be.

        These numbers come from the sizes of the own hand, of the smallest other hand, and of the deck.
        """
        part = self.env.training_game.encoding.part
        hands = part(observation, "hand_sizes") / HAND_SIZE - 1
        deck = part(observation, "deck_size")[0] / 50 - 0.5
        return np.array([1.0, hands[0], hands[1:].min(), deck])

    def play(self) -> tuple[float, Floats]:
        """Play a game. Return the reward, and the gradient of the log-probability of the actions."""
        gradient = np.zeros_like(self._weights)
        observation, _ = self.env.reset()
        reward, over = 0.0, False
        while not over:
            legal = np.flatnonzero(self.env.action_masks())
            features, situation = ACTION_FEATURES[legal], self.describe_situation(observation)
            scores = features @ (self._weights @ situation)
            chances = np.exp(scores - scores.max())
            chances /= chances.sum()
            chosen = self._random.choice(len(legal), p=chances)
            gradient += np.outer(features[chosen] - chances @ features, situation)
            observation, reward, over, _, _ = self.env.step(legal[chosen])
        return reward, gradient

    def learn(self, seconds: float) -> Iterator[float]:
        """Play and change the weights for some seconds. Yield the mean reward of each batch of games."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            games = [self.play() for _ in range(BATCH)]
            steps = [(reward - self._usual_reward) * gradient for reward, gradient in games]
            self._weights += RATE * np.mean(steps, axis=0)
            mean = float(np.mean([reward for reward, _ in games]))
            self._usual_reward += (1 - MEMORY) * (mean - self._usual_reward)
            yield mean

    def measure(self, games: int = TEST_GAMES) -> tuple[float, float]:
        """Play without learning. Return the mean reward and its standard error."""
        rewards = [self.play()[0] for _ in range(games)]
        return float(np.mean(rewards)), float(np.std(rewards) / games**0.5)


def _parse_seconds(arguments: Sequence[str]) -> float:
    """Return how long to learn.

    Raises ValueError if there is more than one argument, or if the argument is not a finite number from 0 upwards.
    """
    if len(arguments) > 1:
        raise ValueError(f"{len(arguments)} arguments")
    seconds = float(arguments[0]) if arguments else SECONDS
    if not 0 <= seconds < inf:
        raise ValueError(f"{seconds} seconds")
    return seconds


def main(arguments: Sequence[str]) -> None:
    """Measure a policy before and after it has learned. The argument is the time in seconds; see the module."""
    try:
        seconds = _parse_seconds(arguments)
    except ValueError as error:
        print(f"usage: python -m referee.train.example [SECONDS] ({error})", file=sys.stderr)  # noqa: T201 - a script
        sys.exit(2)
    learner = Learner()
    print("before: {:+.2f} ± {:.2f}".format(*learner.measure()))  # noqa: T201 - the same
    games = BATCH * len(list(learner.learn(seconds)))
    print(f"after {games} games: {{:+.2f}} ± {{:.2f}}".format(*learner.measure()))  # noqa: T201 - the same


if __name__ == "__main__":
    main(sys.argv[1:])
