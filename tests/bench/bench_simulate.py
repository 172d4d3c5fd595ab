"""Measure the speed of playouts on the forward model: `python tests/bench/bench_simulate.py [--seconds S]`.

One seat observes a random game, and draws games at its decisions. Each drawn game is copied twice, and the copies are played to the
end at random. It prints the decisions a second on one core, by the CPU time of this process; they contain the draws, the copies and
the lists of legal actions. The last column is the time of a decision divided by that of a decision of the bare rules,
which is measured in turn with it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parent.parent / "sdk")]

from bench_rules import play_games
from observed_games import observe_decisions

from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, Ruleset, full_deck, list_cards
from referee.sdk.simulate import InformationSet

WANTED = 40_000
"""Decisions a second over all rulesets together."""
COPIES = 2


def find_information_sets(ruleset: Ruleset, players: int) -> list[InformationSet]:
    """Return what the seats of a random game see at some of their decisions."""
    chance = random.Random(1)
    cards = list_cards(full_deck(ruleset))
    game = Game(ruleset, players, chance.sample(cards, len(cards)))
    return [each.information_set for each in observe_decisions(game, 0, chance)][::5]


def play_out(information_sets: list[InformationSet], seconds: float) -> tuple[int, float]:
    """Play out drawn games for at least `seconds` of CPU time, and return the decisions and the seconds."""
    chance = random.Random(1)
    pick = chance.random
    decisions = number = 0
    spent, began = 0.0, time.process_time()
    while spent < seconds:
        drawn = information_sets[number % len(information_sets)].draw(chance)
        number += 1
        for _ in range(COPIES):
            game = drawn.copy()
            while (decision := game.decision) is not None:
                legal = decision.legal
                game.apply(legal[int(pick() * len(legal))])
                decisions += 1
        spent = time.process_time() - began
    return decisions, spent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Speed of playouts on one core.")
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU seconds for each line")
    seconds = parser.parse_args().seconds
    tables = [
        (rules, n) for rules in RULESETS.values() for n in sorted({2, min(4, rules.max_players)})
    ]
    overall, overall_s, ratios = 0, 0.0, []
    print(f"{'ruleset':<14} {'seats':>5} {'decisions/s':>11} {'of a bare decision':>18}")
    for rules, players in tables:
        information_sets = find_information_sets(rules, players)
        decisions, spent, bare_decisions, bare_s = 0, 0.0, 0, 0.0
        for _ in range(5):
            more, more_s = play_out(information_sets, seconds / 5)
            sample = play_games(rules, players, seconds / 5)
            decisions, spent = decisions + more, spent + more_s
            bare_decisions, bare_s = bare_decisions + sample.decisions, bare_s + sample.seconds
        ratios.append(spent / decisions / (bare_s / bare_decisions))
        overall, overall_s = overall + decisions, overall_s + spent
        print(f"{rules.name:<14} {players:>5} {decisions / spent:>11,.0f} {ratios[-1]:>18.2f}")
    ratio = sum(ratios) / len(ratios)
    print(f"{'overall':<20} {overall / overall_s:>11,.0f} {ratio:>18.2f}   wanted: {WANTED:,}")


if __name__ == "__main__":
    main()
