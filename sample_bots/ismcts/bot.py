"""Search in many games that could be the real one: information-set Monte Carlo tree search.

Each iteration draws the cards that the seat cannot see, walks down one tree that all these games share, adds a node,
plays the game to its end by simple rules, and adds the result to all nodes on the path. This is single-observer ISMCTS:
Cowling, Powley, Whitehouse, "Information Set Monte Carlo Tree Search", IEEE TCIAIG 4 (2), 2012. The bot thinks for 0.2 s,
or `--seconds`, about a decision, but less if its clocks give less time.
"""

from __future__ import annotations

import math
import sys
import time

from referee.sdk import (
    JOKER,
    Action,
    Bot,
    Choice,
    DecisionKind,
    DrawDisplay,
    Game,
    Layer,
    Play,
    Request,
    SnatchGhost,
    run,
)
from referee.sdk.simulate import Game as Position
from referee.sdk.simulate import InformationSet, Observer

EXPLORATION = 0.5  # the weight of actions that were tried rarely
PRIOR_VISITS = 10  # visits with the mean result that each action gets in the final choice
HEAD_START = 2.0  # and the action of the simple rules a bonus, which is added to its sum of results
WIDTH = 6  # the tree considers this many of the best plays, and the choice of the simple rules
LEAD = 4.0  # a lead of so many points gives a result of 0.73; an equal score gives 0.5
SHARE_OF_LIMIT = 0.6  # the share of its time that the bot uses; the rest is for a busy machine
DECISIONS_OF_BANK = 40  # the bank is divided by this; a decision may take that, and the increment
LOW, TOO_FEW_CARDS = 6, 4  # as in `bait`


class Node:
    """An action in the tree: its results, and the actions after it."""

    def __init__(self) -> None:
        self.visits = 0
        self.available = 0  # how often the action could be chosen
        self.total = 0.0  # the sum of the results of the seat that chose the action
        self.children: dict[Action, Node] = {}

    def select(self, actions: list[Action]) -> Action:
        """Return an action that was not tried yet, else the one with the highest upper confidence bound."""
        for action in actions:
            self.children.setdefault(action, Node()).available += 1
        return max(actions, key=lambda action: self.children[action].bound())

    def choose(self) -> Action:
        """Return the action that is furthest ahead of the mean result."""
        first, mean = next(iter(self.children)), self.total / self.visits

        def lead(action: Action) -> float:
            node = self.children[action]
            ahead = node.total - node.visits * mean + HEAD_START * (action == first)
            return ahead / (node.visits + PRIOR_VISITS)

        return max(self.children, key=lead)

    def bound(self) -> float:
        """Return the upper confidence bound of the result."""
        if not self.visits:
            return math.inf
        doubt = EXPLORATION * math.sqrt(math.log(self.available) / self.visits)
        return self.total / self.visits + doubt


class Ismcts(Bot):
    """Play one game."""

    seconds = 0.2
    iterations = 1_000_000  # with few, it is not the clock that ends a search

    def start(self, game: Game) -> None:
        """Begin to observe the game."""
        self.observer = Observer(game)
        self.random = game.random

    def decide(self, request: Request) -> Action:
        """Return the action with the best results."""
        end = time.monotonic() + self.seconds_for(request)
        information_set, root = self.observer.observe(request), Node()
        for _ in range(self.iterations if len(request.legal) > 1 else 1):
            self.iterate(root, information_set)
            if time.monotonic() > end:
                break
        return root.choose()

    def seconds_for(self, request: Request) -> float:
        """Return the time for a decision."""
        limit_us = request.time_left_us or math.inf
        if bank_us := request.bank_left_us:
            limit_us = min(limit_us, bank_us / DECISIONS_OF_BANK + request.game.clocks.increment_us)
        return min(self.seconds, SHARE_OF_LIMIT * limit_us / 1e6)

    def iterate(self, root: Node, information_set: InformationSet) -> None:
        """Play one drawn game, and add its result to the nodes on its path."""
        position = information_set.draw(self.random)
        node, path = root, [(root, position.decision.seat)]
        while position.decision is not None:
            seat = position.decision.seat
            action = node.select(promising_actions(position))
            node = node.children[action]
            path.append((node, seat))
            position.apply(action)
            if not node.visits:
                break
        while position.decision is not None:
            position.apply(simple_action(position))
        results = rate(position)
        for node, seat in path:
            node.visits += 1
            node.total += results[seat]


def rate(position: Position) -> list[float]:
    """Return the result of each seat, from 0 to 1: how far it is ahead, as a mean over the other seats."""
    points = position.outcome.scores
    sums = [sum(1 / (1 + math.exp((other - own) / LEAD)) for other in points) for own in points]
    return [(each - 0.5) / (len(points) - 1) for each in sums]  # 0.5 is the seat against itself


def promising_actions(position: Position) -> list[Action]:
    """Return the actions that the tree considers: first the choice of the simple rules, then the best plays."""
    decision = position.decision
    legal = decision.legal
    if decision.kind is DecisionKind.PLAY and len(legal) > WIDTH:
        hand, tops = position.table.hands[decision.seat], top_layers(position, decision.seat)

        def promise(play: Play) -> float:
            value, naturals, jokers = play.layer
            return gain(play.layer, tops) + naturals - 1.5 * jokers - hand[value] + value / JOKER

        legal = sorted(legal, key=promise, reverse=True)[:WIDTH]
    first = simple_action(position)
    return [first, *(action for action in legal if action != first)]


def top_layers(position: Position, seat: int) -> list[tuple[int, int]]:
    """Return the sizes and values of the top layers of the other seats."""
    tables = enumerate(position.table.layers)
    return [(each[-1].size, each[-1].value) for other, each in tables if each and other != seat]


def gain(layer: Layer, tops: list[tuple[int, int]]) -> int:
    """Return how many cards a layer puts down and snatches."""
    value, naturals, jokers = layer
    size = naturals + jokers
    return size * (1 + sum([top == size and value > lower for top, lower in tops]))


def simple_action(position: Position) -> Action:
    """Choose an action for any seat as `bait` does, but play all copies of a value, with all jokers or none."""
    decision, table = position.decision, position.table
    hand = table.hands[decision.seat]
    if decision.kind is DecisionKind.PLAY:
        return Play(simple_play(position, decision.seat, hand))
    if decision.kind is DecisionKind.TAKE_OR_LEAVE:
        return Choice.TAKE if hand[table.snatched.value] else Choice.LEAVE
    if decision.kind is DecisionKind.RECLAIM_OR_DISCARD:
        return Choice.DISCARD
    return max(decision.legal, key=lambda action: worth(hand, action))


def simple_play(position: Position, seat: int, hand: list[int]) -> Layer:
    """Return a low single card as bait, or else the play with the highest gain."""
    table, jokers = position.table, hand[JOKER]
    tempting = [card for cards in table.display for card in cards if card == JOKER or hand[card]]
    is_early = table.deck_size and min(table.hand_sizes) > TOO_FEW_CARDS
    if tempting and is_early and 1 in hand[1 : LOW + 1]:
        return Layer(hand.index(1, 1), 1)
    layers = [Layer(card, hand[card]) for card in range(1, JOKER) if hand[card]]
    if jokers:
        layers += [layer._replace(jokers=jokers) for layer in layers]
        layers.append(Layer(JOKER, 0, jokers))
    tops = top_layers(position, seat)
    return max(layers, key=lambda layer: (gain(layer, tops), -layer.jokers, layer.value))


def worth(hand: list[int], action: Action) -> int:
    """Rate a draw: a joker is best, then the card of which the hand has the most copies."""
    if isinstance(action, DrawDisplay):
        return max([1000 if card == JOKER else 100 * hand[card] + card for card in action.cards])
    if isinstance(action, SnatchGhost):
        return 100 * hand[action.value] + action.value
    return 99 if action is Choice.PASS else 6


if __name__ == "__main__":
    if "--seconds" in sys.argv:
        Ismcts.seconds = float(sys.argv[sys.argv.index("--seconds") + 1])
    run(Ismcts)
