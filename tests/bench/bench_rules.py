"""Measure the speed of the rules in random games: `python tests/bench/bench_rules.py [--seconds S]`.

It prints the decisions a second on one core for every ruleset, by the CPU time of this process. A decision
contains everything that a game does for it: list the legal actions, choose one at random, apply it, and collect
its events.

The last line is a ratio that hardly depends on the machine: the time of a decision divided by the time of one
round of a fixed loop of plain Python, which runs before, between and after the games.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import NamedTuple

from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, Ruleset, full_deck, list_cards

WANTED = 60_000
"""Decisions a second over all rulesets together."""
ROUNDS = 20_000
"""Number of rounds of the fixed loop in one measurement."""


class Sample(NamedTuple):
    """A number of games and the CPU time that they took."""

    games: int
    decisions: int
    seconds: float


def yardstick() -> float:
    """Return the CPU seconds of one round of a fixed loop, which works on lists, tuples and integers."""
    began = time.process_time()
    counts, kept = [0] * 15, 0
    for number in range(ROUNDS):
        counts[number % 15] += 1
        kept += len(tuple(counts)) + (number in (1, 2, 3))
    return (time.process_time() - began) / ROUNDS


def play_games(ruleset: Ruleset, players: int, seconds: float) -> Sample:
    """Play random games for at least `seconds` of CPU time, with decks that are shuffled before."""
    chance = random.Random(1)
    pick = chance.random
    cards = list_cards(full_deck(ruleset))
    decks = [tuple(chance.sample(cards, len(cards))) for _ in range(50)]
    games = decisions = 0
    spent, began = 0.0, time.process_time()
    while spent < seconds:
        game = Game(ruleset, players, decks[games % len(decks)])
        while (decision := game.decision) is not None:
            legal = decision.legal
            game.apply(legal[int(pick() * len(legal))])
            decisions += 1
        games += 1
        spent = time.process_time() - began
    return Sample(games, decisions, spent)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Speed of the rules on one core.")
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU seconds for each line")
    seconds = parser.parse_args().seconds
    tables = [
        (rules, n) for rules in RULESETS.values() for n in sorted({2, min(4, rules.max_players)})
    ]
    rounds = [yardstick()]
    decisions, spent = 0, 0.0
    print(f"{'ruleset':<14} {'seats':>5} {'games':>6} {'per game':>8} {'decisions/s':>11}")
    for rules, players in tables:
        sample = play_games(rules, players, seconds)
        rounds.append(yardstick())
        decisions += sample.decisions
        spent += sample.seconds
        per_game, speed = sample.decisions / sample.games, sample.decisions / sample.seconds
        print(f"{rules.name:<14} {players:>5} {sample.games:>6} {per_game:>8.0f} {speed:>11,.0f}")
    overall = decisions / spent
    print(f"{'overall':<36} {overall:>11,.0f}   wanted: {WANTED:,}")
    print(f"one decision = {spent / decisions / min(rounds):.1f} rounds of the yardstick")


if __name__ == "__main__":
    main()
