"""Train the network of `learner`: `python sample_bots/learner/train.py [--batches N] [--seed S] [--folder DIR]`.

1. The network learns to choose as `bait` does, from games of four of them.
2. It plays batches of games. In half of them it has all four seats. In the others it has two seats, and the other two
   have `bait` twice, or two random draws from the opponents. After each
   batch it changes its weights by proximal policy optimization (PPO; Schulman et al., arXiv 1707.06347, 2017). A second
   network estimates the rewards. The reward is that of `rewards="rank"` in `referee.train`, and a little for each
   point above the mean of the table.

After every tenth batch, two of it play against two `bait`. The weights with the best result are written to `weights.npy`, and all
results to `curve.csv`. The same seed gives the same weights, on the same kind of machine with the same version of numpy.
Training uses one core.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

# With several threads, sums have another order and the weights would differ. numpy reads this when it is imported.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
from bot import HIDDEN_UNITS, Floats, Ints, Network
from lockstep import (
    LEARNER,
    OPPONENTS,
    RULES,
    SEATS,
    Deck,
    Experience,
    Lineup,
    Tables,
    describe_situation,
    load_opponent,
    segment,
)

from referee.rules.ruleset import full_deck, list_cards

CARDS = np.array(list_cards(full_deck(RULES)))
FOLDER = Path(__file__).parent
BATCHES = 400

TEACHER_GAMES = 200
TEACHER_ROUNDS = 8
TEACHER_MINIBATCH = 128
TEACHER_RATE = 2e-3

GAMES = 128
"""The number of games in a batch."""
ROUNDS = 4
"""How often each decision of a batch is used."""
MINIBATCH = 1024
RATE = 5e-4
CRITIC_RATE = 1e-3
CLIP = 0.2
ENTROPY = 0.003
TRACE = 0.95
"""The lambda of generalized advantage estimation (Schulman et al., arXiv 1506.02438, 2015)."""
POINT = 0.02
"""The reward for each point more than the mean of the table."""

TEST_DEALS = 100
TEST_EVERY = 10


def softmax(ratings: Floats, begins: Ints, rows: Ints) -> Floats:
    """Return the chance of each action among those of its decision."""
    powers: Floats = np.exp(ratings - np.maximum.reduceat(ratings, begins)[rows])
    return powers / np.add.reduceat(powers, begins)[rows]


def make_weights(features: int, chance: np.random.Generator) -> Floats:
    """Return random weights of a network with this number of inputs."""
    weights = chance.normal(size=(HIDDEN_UNITS, features + 2)) * (2 / features) ** 0.5
    weights[:, -2] = 0
    weights[:, -1] = chance.normal(size=HIDDEN_UNITS) * 0.1
    return weights.astype(np.float32)


def find_gradient(weights: Floats, features: Floats, errors: Floats) -> Floats:
    """Return the gradient of the sum of `errors` × outputs for the weights of a network."""
    hidden = np.maximum(features @ weights[:, :-2].T + weights[:, -2], 0)
    back = (errors[:, None] * weights[:, -1]) * (hidden > 0)
    return np.concatenate(
        (back.T @ features, back.sum(0)[:, None], (errors @ hidden)[:, None]), axis=1
    )


def estimate_advantages(
    owners: Sequence[tuple[int, int]], values: Floats, rewards: Floats
) -> Floats:
    """Return how much better each decision went than its situation promised.

    Args:
        owners: the game and the seat of each decision, in the order of time.
        values: the estimated reward of each situation.
        rewards: the reward of each seat of each game.
    """
    advantages = np.zeros_like(values)
    following: dict[tuple[int, int], tuple[float, float]] = {}
    for position in range(len(owners) - 1, -1, -1):
        owner, value = owners[position], float(values[position])
        if owner in following:
            next_value, next_advantage = following[owner]
            advantage = next_value - value + TRACE * next_advantage
        else:
            advantage = float(rewards[owner]) - value
        advantages[position] = advantage
        following[owner] = value, advantage
    return advantages


class Adam:
    """Change weights along gradients (Kingma and Ba, arXiv 1412.6980, 2014)."""

    def __init__(self, weights: Floats) -> None:
        self._weights = weights
        self._mean = np.zeros_like(weights)
        self._square = np.zeros_like(weights)
        self._steps = 0

    def step(self, gradient: Floats, rate: float) -> None:
        """Change the weights in place, against the gradient."""
        self._steps += 1
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.001 * (gradient**2 - self._square)
        mean = self._mean / (1 - 0.9**self._steps)
        square = self._square / (1 - 0.999**self._steps)
        self._weights -= (rate * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)


class Minibatch(NamedTuple):
    """Some decisions of an experience."""

    numbers: Ints
    """Which decisions."""
    features: Floats
    """A row for each of their actions."""
    begins: Ints
    """Where the actions of each decision begin."""
    rows: Ints
    """The decision of each action."""
    chosen: Ints
    """The row of the chosen action of each decision."""


class Strength(NamedTuple):
    """How two of the network do against two opponents."""

    reward: float
    """By how much its mean reward by rank is higher."""
    error: float
    """The standard error of `reward`."""
    points: float
    """By how much its mean points are higher."""


class Trainer:
    """The networks and how they learn.

    Args:
        seed: the seed of all random numbers.
    """

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._opponents = {name: load_opponent(name) for name in OPPONENTS}
        step = Tables([[LEARNER] * SEATS], self._deal(1), self._opponents).step()
        assert step is not None  # noqa: S101 - a game begins with a decision
        self.weights = make_weights(step.features.shape[1], self._chance)
        """The weights of the network that plays."""
        self._critic = make_weights(describe_situation(step.situation).shape[1], self._chance)
        """The weights of the network that estimates rewards."""
        self._adam, self._critic_adam = Adam(self.weights), Adam(self._critic)
        tests = np.random.default_rng(seed + 1)
        self._test_decks = [tests.permutation(CARDS) for _ in range(TEST_DEALS)]

    def imitate(self, games: int = TEACHER_GAMES) -> None:
        """Learn to choose as `bait` does."""
        tables = Tables([[LEARNER] * SEATS] * games, self._deal(games), self._opponents)
        experience = tables.watch("bait")
        for _ in range(TEACHER_ROUNDS):
            for part in self._minibatches(experience, TEACHER_MINIBATCH):
                errors = softmax(Network(self.weights).rate(part.features), part.begins, part.rows)
                errors[part.chosen] -= 1
                gradient = find_gradient(self.weights, part.features, errors / len(part.numbers))
                self._adam.step(gradient, TEACHER_RATE)

    def improve(self, games: int = GAMES) -> None:
        """Play a batch of games and learn from it."""
        decks = self._deal(games)
        tables = Tables(self._choose_lineups(games), decks, self._opponents)
        experience = tables.explore(Network(self.weights), self._chance)
        points = tables.points()
        rewards = tables.rewards() + POINT * (points - points.mean(1, keepdims=True))
        values = Network(self._critic).rate(experience.situations)
        advantages = estimate_advantages(experience.owners, values, rewards)
        targets = advantages + values
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
        begins, rows = segment(experience.lengths)
        chances = softmax(Network(self.weights).rate(experience.features), begins, rows)
        before = chances[begins + experience.chosen]
        for _ in range(ROUNDS):
            for part in self._minibatches(experience, MINIBATCH):
                self._follow(part, before[part.numbers], advantages[part.numbers])
                inputs = experience.situations[part.numbers]
                errors = Network(self._critic).rate(inputs) - targets[part.numbers]
                gradient = find_gradient(self._critic, inputs, errors / len(inputs))
                self._critic_adam.step(gradient, CRITIC_RATE)

    def measure(self, opponent: str = "bait") -> Strength:
        """Play two against two of `OPPONENTS`, each deal twice with exchanged seats."""
        lineups = [[LEARNER, opponent] * 2, [opponent, LEARNER] * 2] * TEST_DEALS
        decks = [deck for deck in self._test_decks for _ in range(2)]
        tables = Tables(lineups, decks, self._opponents)
        tables.play(Network(self.weights))
        own = np.array([[name == LEARNER for name in lineup] for lineup in lineups])
        signs = np.where(own, 0.5, -0.5)
        rewards = (tables.rewards() * signs).sum(1).reshape(-1, 2).mean(1)
        points = (tables.points() * signs).sum(1)
        error = rewards.std() / len(rewards) ** 0.5
        return Strength(float(rewards.mean()), float(error), float(points.mean()))

    def _deal(self, games: int) -> list[Deck]:
        return [self._chance.permutation(CARDS) for _ in range(games)]

    def _choose_lineups(self, games: int) -> list[Lineup]:
        """Return who plays in a batch."""
        lineups: list[Lineup] = [[LEARNER] * SEATS for _ in range(games // 2)]
        for number in range(games - len(lineups)):
            names = ["bait"] * 2 if number % 2 else list(self._chance.choice(OPPONENTS, 2))
            lineups.append(list(self._chance.permutation([LEARNER, LEARNER, *names])))
        return lineups

    def _follow(self, part: Minibatch, before: Floats, advantages: Floats) -> None:
        """Change the weights towards choices that went well, but not far from the chances that they had before."""
        chances = softmax(Network(self.weights).rate(part.features), part.begins, part.rows)
        ratio = chances[part.chosen] / before
        far = np.where(advantages > 0, ratio > 1 + CLIP, ratio < 1 - CLIP)
        push = np.where(far, 0, advantages * ratio)
        errors = chances * push[part.rows]
        errors[part.chosen] -= push
        logs = np.log(chances + 1e-9)
        entropy = -np.add.reduceat(chances * logs, part.begins)
        errors += ENTROPY * chances * (logs + entropy[part.rows])
        errors = (errors / len(part.numbers)).astype(np.float32)
        self._adam.step(find_gradient(self.weights, part.features, errors), RATE)

    def _minibatches(self, experience: Experience, size: int) -> Iterator[Minibatch]:
        """Yield all decisions in a random order."""
        begins, _ = segment(experience.lengths)
        order = self._chance.permutation(len(begins))
        for begin in range(0, len(order), size):
            numbers = order[begin : begin + size]
            own_begins, rows = segment(experience.lengths[numbers])
            actions = np.arange(len(rows)) + (begins[numbers] - own_begins)[rows]
            chosen = own_begins + experience.chosen[numbers]
            yield Minibatch(numbers, experience.features[actions], own_begins, rows, chosen)


def train(seed: int, batches: int, folder: Path) -> None:
    """Train, and write the weights and the curve."""
    began_s = time.monotonic()
    trainer = Trainer(seed)
    trainer.imitate()
    lines, best = ["batches,games,reward,error,points"], -2.0
    for batch in range(batches + 1):
        if batch:
            trainer.improve()
        if batch % TEST_EVERY == 0 or batch == batches:
            reward, error, points = trainer.measure()
            lines.append(f"{batch},{batch * GAMES},{reward:.3f},{error:.3f},{points:.2f}")
            sys.stdout.write(f"{lines[-1]} after {time.monotonic() - began_s:.0f} s\n")
            sys.stdout.flush()
            (folder / "curve.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
            if reward > best:
                best = reward
                np.save(folder / "weights.npy", trainer.weights)


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description="Train the network of the sample bot `learner`.")
    parser.add_argument("--batches", type=int, default=BATCHES, help="batches of 128 games")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="the folder of weights.npy and curve.csv"
    )
    options = parser.parse_args()
    train(options.seed, options.batches, options.folder)


if __name__ == "__main__":
    main()
