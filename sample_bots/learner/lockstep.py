"""Play many games at the same time, so that the network rates the actions of all of them in one pass.

The games follow the rules without the environments of `referee.train`, which play one game each. The actions have the same
numbers as there, and the observations are the same.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from bot import Floats, Ints, Network, Situation, describe_hand
from numpy.typing import NDArray

from referee.rules.actions import Decision, DecisionKind
from referee.rules.game import Game, Outcome
from referee.rules.ruleset import RULESETS
from referee.sdk.env import Encoding, encode_action
from referee.train.games import reward_by_rank

RULES = RULESETS["basic"]
SEATS = 4
ENCODING = Encoding(RULES, SEATS)
LEARNER = "learner"
OPPONENTS = ("bait", "greedy", "final_sprint")

Deck = NDArray[np.int64]
"""Cards in drawing order."""
Decide = Callable[[Any], Any]
Lineup = Sequence[str]
"""The bot on each seat: `LEARNER` or one of `OPPONENTS`."""


def load_opponent(name: str) -> Decide:
    """Return the function of a sample bot without memory."""
    program = Path(__file__).parents[1] / name / "bot.py"
    decide: Decide = runpy.run_path(str(program))["decide"]
    return decide


def describe_request(game: Game, decision: Decision) -> SimpleNamespace:
    """Return what the opponents read of a request, without the messages of the protocol."""
    layers = game.table.layers
    others = [(decision.seat + offset) % game.players for offset in range(1, game.players)]
    return SimpleNamespace(
        kind=decision.kind,
        view=game.view(decision.seat),
        legal=decision.legal,
        plays=decision.legal if decision.kind is DecisionKind.PLAY else (),
        victims=lambda layer: [
            seat for seat in others if layers[seat] and RULES.snatches(layer, layers[seat][-1])
        ],
    )


def segment(lengths: Ints) -> tuple[Ints, Ints]:
    """Return where the actions of each decision begin, and the decision of each action."""
    return np.cumsum(lengths) - lengths, np.repeat(np.arange(len(lengths)), lengths)


@dataclass
class Step:
    """Decisions in different games at the same time."""

    games: list[int]
    """The numbers of the games."""
    decisions: list[Decision]
    situation: Situation
    features: Floats
    """A row for each legal action of each decision."""
    lengths: Ints
    """The number of legal actions of each decision."""


@dataclass
class Experience:
    """Decisions in the order of time, and what was chosen."""

    features: Floats
    """A row for each legal action of each decision."""
    lengths: Ints
    """The number of legal actions of each decision."""
    chosen: Ints
    """The position of the chosen action among the legal actions of each decision."""
    situations: Floats
    """The inputs of the critic, the network that estimates rewards."""
    owners: list[tuple[int, int]]
    """The game and the seat of each decision."""

    @classmethod
    def join(cls, steps: Sequence[Step], chosen: Sequence[Ints]) -> Experience:
        """Return the decisions of all steps."""
        return cls(
            features=np.concatenate([step.features for step in steps]),
            lengths=np.concatenate([step.lengths for step in steps]),
            chosen=np.concatenate(chosen),
            situations=np.concatenate([describe_situation(step.situation) for step in steps]),
            owners=[
                (game, decision.seat)
                for step in steps
                for game, decision in zip(step.games, step.decisions, strict=True)
            ],
        )


def describe_situation(situation: Situation) -> Floats:
    """Return features of situations, whatever the action."""
    hand = situation.hand
    return np.concatenate((situation.context, hand / 3, describe_hand(hand)), axis=1)


class Tables:
    """Play games in `basic` with four seats.

    Args:
        lineups: who plays each game.
        decks: the cards of each game.
        opponents: the functions of `OPPONENTS`.
    """

    def __init__(
        self,
        lineups: Sequence[Lineup],
        decks: Sequence[Deck],
        opponents: Mapping[str, Decide],
    ) -> None:
        self.lineups = lineups
        self.games = [Game(RULES, SEATS, deck.tolist()) for deck in decks]
        self._opponents = opponents

    def step(self) -> Step | None:
        """Let opponents decide until it is the turn of the network in every game; None if all games are over."""
        waiting = {
            number: decision
            for number in range(len(self.games))
            if (decision := self._advance(number)) is not None
        }
        if not waiting:
            return None
        observations, actions = [], []
        for number, decision in waiting.items():
            view = self.games[number].view(decision.seat)
            observations.append(ENCODING.observe(view, decision.kind))
            actions.append([encode_action(action) for action in decision.legal])
        lengths = np.array([len(each) for each in actions])
        situation = Situation(ENCODING, np.stack(observations))
        features = situation.describe(segment(lengths)[1], np.concatenate(actions))
        return Step(list(waiting), list(waiting.values()), situation, features, lengths)

    def play(self, network: Network) -> None:
        """Play all games to the end with the best actions."""
        while (step := self.step()) is not None:
            self._apply(step, choose_best(network.rate(step.features), step.lengths))

    def explore(self, network: Network, chance: np.random.Generator) -> Experience:
        """Play all games to the end; draw each action from the softmax of the ratings."""
        steps, chosen = [], []
        while (step := self.step()) is not None:
            ratings = network.rate(step.features)
            # The largest of ratings with Gumbel noise is a draw from their softmax.
            ratings = ratings + chance.gumbel(size=len(ratings)).astype(np.float32)
            chosen.append(choose_best(ratings, step.lengths))
            steps.append(step)
            self._apply(step, chosen[-1])
        return Experience.join(steps, chosen)

    def watch(self, teacher: str) -> Experience:
        """Play all games to the end, with the choices of an opponent on the seats of the network."""
        steps, chosen = [], []
        while (step := self.step()) is not None:
            positions = [
                decision.legal.index(
                    self._opponents[teacher](describe_request(self.games[game], decision))
                )
                for game, decision in zip(step.games, step.decisions, strict=True)
            ]
            chosen.append(np.array(positions))
            steps.append(step)
            self._apply(step, chosen[-1])
        return Experience.join(steps, chosen)

    def outcomes(self) -> list[Outcome]:
        """Return the outcome of each game that is over."""
        return [game.outcome for game in self.games if game.outcome is not None]

    def rewards(self) -> Floats:
        """Return the reward of each seat of each game by its rank, from -1 to 1."""
        return np.array([reward_by_rank(outcome) for outcome in self.outcomes()], np.float32)

    def points(self) -> Floats:
        """Return the points of each seat of each game."""
        return np.array([outcome.scores for outcome in self.outcomes()], np.float32)

    def _advance(self, number: int) -> Decision | None:
        """Let opponents decide until the network has to; return its decision, None if the game is over."""
        game, lineup = self.games[number], self.lineups[number]
        while (decision := game.decision) is not None and lineup[decision.seat] != LEARNER:
            game.apply(self._opponents[lineup[decision.seat]](describe_request(game, decision)))
        return decision

    def _apply(self, step: Step, chosen: Ints) -> None:
        for game, decision, position in zip(step.games, step.decisions, chosen, strict=True):
            self.games[game].apply(decision.legal[position])


def choose_best(ratings: Floats, lengths: Ints) -> Ints:
    """Return the position of the best action of each decision; of equal ones, the first."""
    begins, rows = segment(lengths)
    best = np.maximum.reduceat(ratings, begins)[rows]
    positions = np.where(ratings == best, np.arange(len(rows)), len(rows))
    return np.minimum.reduceat(positions, begins) - begins
