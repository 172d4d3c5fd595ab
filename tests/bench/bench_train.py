"""Measure steps/s of the PettingZoo environment beside PettingZoo's `texas_holdem_no_limit`.

`python tests/bench/bench_train.py [ROUNDS]` needs `pip install 'pettingzoo[classic]'`. All environments take turns in
each round, with random actions and the loop of PettingZoo's own `performance_benchmark`. Times are CPU times.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")  # PettingZoo warns that its environments are created in an old way

from pettingzoo.classic import texas_holdem_no_limit_v6

from referee.train import linko_v1

SECONDS = 2.0
GAMES = [("basic", 2), ("basic", 4), ("classic", 5), ("expert", 4), ("duel", 2)]


def main(rounds: int) -> None:
    poker = {
        players: texas_holdem_no_limit_v6.env(num_players=players)
        for players in {players for _, players in GAMES}
    }
    linko = {game: linko_v1.env(*game) for game in GAMES}
    ratios: dict[tuple[str, int], list[float]] = {game: [] for game in GAMES}
    rates: dict[tuple[str, int], list[float]] = {game: [] for game in GAMES}
    for _ in range(rounds):
        base = {players: steps_per_second(env) for players, env in poker.items()}
        for game, env in linko.items():
            rates[game].append(steps_per_second(env))
            ratios[game].append(rates[game][-1] / base[game[1]])
    print(f"medians of {rounds} rounds: steps/s, ratio to texas_holdem_no_limit with as many seats")
    for (ruleset, players), measured in rates.items():
        ratio = statistics.median(ratios[ruleset, players])
        print(f"{ruleset:>8} {players}: {statistics.median(measured):7,.0f}  {ratio:.1f}")


def steps_per_second(env) -> float:
    """Return how many steps an environment makes in a second of CPU time."""
    chance, steps = random.Random(1), 0
    env.reset(seed=1)
    began_s = time.process_time()
    while time.process_time() - began_s < SECONDS:
        for _ in env.agent_iter(env.num_agents):
            observation, _, termination, truncation, _ = env.last()
            done = termination or truncation
            actions = np.flatnonzero(observation["action_mask"]).tolist()
            env.step(None if done else chance.choice(actions))
            steps += 1
            if all(env.terminations.values()) or all(env.truncations.values()):
                env.reset()
    return steps / (time.process_time() - began_s)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
