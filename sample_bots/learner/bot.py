"""Rate every legal action with a small network, and choose the best.

The network has one hidden layer. Its inputs are features of a situation and of one action in it: what the action leaves
in the hand, what it moves, what it snatches, and how likely the layer is to be snatched. `train.py` trained the
weights in `weights.npy`. The features of all requests in a message are computed together, and so are their ratings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from referee.sdk import (
    Action,
    Bot,
    Choice,
    DrawDisplay,
    Game,
    Play,
    Request,
    Ruleset,
    SnatchGhost,
    run,
)
from referee.sdk.env import LISTED_ACTIONS, Encoding, encode_action

Floats = NDArray[np.float32]
Ints = NDArray[np.intp]

WEIGHTS = Path(__file__).with_name("weights.npy")
HIDDEN_UNITS = 48
NUMBERS = 13
CARDS = 14
"""The 1s to the 13s, then the jokers. The count of a card is at its number minus 1."""
JOKER_INDEX = CARDS - 1
"""Where the count of the jokers is."""
COPIES = np.array([8] * NUMBERS + [5], np.float32)
VALUES = np.arange(1, CARDS + 1, dtype=np.float32)
PAIR = 2
LOW = 5
SIZES = 6
"""Larger layers count as layers of this size."""
SLOTS = 6
SLOT_0 = encode_action(DrawDisplay(0))
CHOICES = {choice: encode_action(choice) for choice in Choice}


def list_numbers(field: str) -> Ints:
    """Return a number for each action: a field of its layer, or 0 if it is no play."""
    plays = (action.layer if isinstance(action, Play) else None for action in LISTED_ACTIONS)
    return np.array([getattr(layer, field) if layer else 0 for layer in plays])


VALUE, NATURALS, JOKERS, SIZE = map(list_numbers, ("value", "naturals", "jokers", "size"))
GHOST_VALUE = np.array(
    [action.value if isinstance(action, SnatchGhost) else 0 for action in LISTED_ACTIONS]
)
PLAYED = np.zeros((len(LISTED_ACTIONS), CARDS), np.float32)
"""The change of the hand by each play: negative counts."""
PLAYED[np.arange(len(LISTED_ACTIONS)), VALUE - 1] -= NATURALS
PLAYED[:, JOKER_INDEX] -= JOKERS


class Situation:
    """A batch of observations, and the features of the actions in them.

    Args:
        encoding: the encoding of the observations, the same for all.
        observations: an array of shape (batch, size).
    """

    def __init__(self, encoding: Encoding, observations: NDArray[np.int8]) -> None:
        seen = observations.astype(np.float32)
        self.rules = encoding.ruleset
        self.seen = {name: encoding.part(seen, name) for name in encoding.shapes}
        self.hand, self.snatched = self.seen["hand"], self.seen["snatched"]
        self.display, self.sizes = self.seen["display"], self.seen["hand_sizes"]
        tops = self.seen["tables"][:, :, 0]
        self.top_sizes = tops.sum(-1)
        self.top_values = ((tops[..., :NUMBERS] > 0) * VALUES[:NUMBERS]).max(-1)
        self.top_values[(self.top_sizes > 0) & (self.top_values == 0)] = CARDS
        self.on_tables = self.seen["tables"].sum(2)
        self.points = self.on_tables.sum(-1) - self.sizes
        self.leads = self.points[:, :1] - self.points[:, 1:]
        """The points by which this seat leads each other one."""
        self.unseen = self._unseen()
        self.risks, self.next_risks = self._risks()
        self.context = self._context()
        """The features of each situation, whatever the action: shape (batch, features)."""

    def _unseen(self) -> Floats:
        visible = self.hand + self.seen["discards"] + self.snatched
        visible = visible + self.display.sum(1) + self.on_tables.sum(1)
        if "ghost" in self.seen:
            visible = visible + self.seen["ghost"]
        return np.maximum(COPIES - visible, 0)

    def _risks(self) -> tuple[Floats, Floats]:
        """Estimate how likely each layer would be snatched by any opponent, and by the next one.

        The opponents' hands are taken as random unseen cards. Both arrays have the shape (batch, value, size).
        """
        share = np.minimum(self.sizes[:, 1:] / np.maximum(self.unseen.sum(-1), 1)[:, None], 1)
        means = share[:, :, None] * self.unseen[:, None]  # (batch, opponent, card)
        means = np.broadcast_to(means[..., None], (*means.shape, SIZES)).copy()
        means[:, :, :NUMBERS, 1:] += means[
            :, :, JOKER_INDEX:, 1:
        ]  # jokers complete pairs and larger layers
        # An opponent cannot snatch with a value if it has fewer such cards. The numbers are taken as Poisson numbers.
        fewer = np.empty_like(means)
        fewer[..., 0] = np.exp(-means[..., 0])
        term = total = np.exp(-means[..., 1])
        for size in range(1, SIZES):
            term = term * means[..., 1] / size
            total = total + term
            fewer[..., size] = total
        fewer = np.maximum(fewer, 1e-6)
        # A layer is safe if the opponent has no layer of the same size and any higher value. Snatches by 1s are left out.
        safe = np.ones_like(fewer)
        safe[:, :, :-1] = np.cumprod(fewer[:, :, :0:-1], axis=2)[:, :, ::-1]
        return (1 - safe.prod(1)).astype(np.float32), (1 - safe[:, 0]).astype(np.float32)

    def _context(self) -> Floats:
        seen, hand, sizes = self.seen, self.hand, self.sizes
        others = sizes[:, 1:]
        victims = seen["victim"]
        own_size = np.minimum(self.top_sizes[:, 0], SIZES).astype(np.intp)
        own_value = self.top_values[:, 0].astype(np.intp)
        rows = np.arange(len(hand))
        own_risk = self.risks[rows, own_value - 1, own_size - 1] * (own_size > 0)
        matching = (self.display * hand[:, None]).max(-1)
        columns = [
            seen["cards_to_draw"][:, 0] / 4,
            seen["deck_size"][:, 0] / 50,
            self.display.sum((1, 2)) / 6,
            sizes[:, 0] / 13,
            others.min(1) / 13,
            others.mean(1) / 13,
            others[:, 0] / 13,
            others.shape[1] / np.full(len(hand), 4, np.float32),
            self.leads.min(1) / 20,
            self.leads.mean(1) / 20,
            self.display[..., JOKER_INDEX].sum(1),
            matching.max(1) / 4,
            np.minimum(matching, 1).sum(1) / 4,
            own_risk,
            own_risk * own_size / 4,
            seen["active"][:, 0],
            victims[:, 0],
            (victims * sizes).sum(1) / 13,
            (victims[:, 1:] * self.leads).sum(1) / 20,
            victims[:, 1:2].sum(1),
        ]
        return np.concatenate((seen["kind"], np.stack(columns, 1)), axis=1, dtype=np.float32)

    def describe(self, rows: Ints, actions: Ints) -> Floats:
        """Return the features of actions, one row for each.

        Args:
            rows: the situation of each action.
            actions: the number of each action.
        """
        moved = self._moved(rows, actions)
        hand = self.hand[rows]
        after = np.maximum(hand + moved, 0)
        return np.concatenate(
            (
                self.context[rows],
                moved / 3,
                after / 3,
                describe_hand(after),
                self._describe_play(rows, actions, after),
                self._describe_choice(rows, actions, hand, moved),
            ),
            axis=1,
            dtype=np.float32,
        )

    def _moved(self, rows: Ints, actions: Ints) -> Floats:
        """Return the change of the hand by each action: positive counts for cards that it gains."""
        moved = PLAYED[actions]
        gains = (actions == CHOICES[Choice.TAKE]) | (actions == CHOICES[Choice.RECLAIM])
        moved[gains] = self.snatched[rows[gains]]
        slots = is_slot(actions)
        moved[slots] = self.display[rows[slots], actions[slots] - SLOT_0]
        sets = GHOST_VALUE[actions] > 0
        if sets.any():
            cards = GHOST_VALUE[actions[sets]] - 1
            moved[sets, cards] = self.seen["ghost"][rows[sets], cards]
        return moved

    def _describe_play(self, rows: Ints, actions: Ints, after: Floats) -> Floats:
        """Return the features of plays; 0 for all other actions."""
        value, size = VALUE[actions], SIZE[actions]
        is_play = (size > 0).astype(np.float32)
        loses = self._find_victims(rows, value, size)
        victims = loses.sum(1)
        leads = (loses * self.leads[rows]).sum(1)
        capped = np.minimum(size, SIZES)
        risk = self.risks[rows, value - 1, capped - 1] * is_play
        next_risk = self.next_risks[rows, value - 1, capped - 1] * is_play
        left = after[np.arange(len(rows)), value - 1] * is_play
        out = is_play * (after.sum(1) == 0)
        lead_after = self.leads[rows].min(1) / 20 + size / 10
        sizes = (capped[:, None] == np.arange(1, SIZES + 1)).astype(np.float32)
        columns = [
            size / 4,
            value / CARDS,
            JOKERS[actions] / 2,
            value == CARDS,
            victims,
            victims * size / 4,
            loses[:, 0],
            leads / 20,
            risk,
            risk * size / 4,
            next_risk,
            next_risk * size / 4,
            left / 3,
            (left > 0) * is_play,
            out,
            out * lead_after,
            out * (lead_after > 0),
        ]
        return np.concatenate((sizes, np.stack(columns, 1)), axis=1, dtype=np.float32)

    def _find_victims(self, rows: Ints, value: Ints, size: Ints) -> Floats:
        """Return an array (actions, opponents), with 1 where the play snatches the top layer of the opponent."""
        tops, rules = self.top_values[rows, 1:], self.rules
        value = value[:, None]
        lower = tops < value
        if rules.ones_snatch_jokers:
            lower |= (value == 1) & (tops == CARDS)
        if rules.ones_snatch_thirteens:
            lower |= (value == 1) & (tops == NUMBERS)
        same_size = self.top_sizes[rows, 1:] == size[:, None]
        return (lower & same_size & (size[:, None] > 0)).astype(np.float32)

    def _describe_choice(self, rows: Ints, actions: Ints, hand: Floats, moved: Floats) -> Floats:
        """Return the features of the actions that are no plays."""
        snatched, numbers = self.snatched[rows], hand[:, :NUMBERS]
        gained = np.maximum(moved, 0)
        count = gained.sum(1)
        matching = (gained[:, :NUMBERS] * numbers).sum(1)
        lost_matching = (snatched[:, :NUMBERS] * numbers).sum(1)
        draws_slot = is_slot(actions)
        leaves, discards = (actions == CHOICES[each] for each in (Choice.LEAVE, Choice.DISCARD))
        columns = [
            *(actions == number for number in CHOICES.values()),
            draws_slot,
            draws_slot * gained[:, JOKER_INDEX],
            matching / 4,
            (gained[:, :NUMBERS] > 0).any(1) & (matching == 0),
            (gained * VALUES).sum(1) / np.maximum(count, 1) / CARDS,
            count / 4,
            leaves * snatched.sum(1) / 4,
            leaves * snatched[:, JOKER_INDEX],
            discards * snatched.sum(1) / 4,
            leaves * lost_matching / 4,
            discards * lost_matching / 4,
        ]
        return np.stack(columns, 1, dtype=np.float32)


def is_slot(actions: Ints) -> NDArray[np.bool_]:
    """Return True for each action that draws from the display."""
    return (actions >= SLOT_0) & (actions < SLOT_0 + SLOTS)


def describe_hand(hand: Floats) -> Floats:
    """Return features of hands: how many turns they may need, and how their cards go together."""
    numbers = hand[:, :NUMBERS]
    held = numbers > 0
    columns = [
        hand.sum(1) / 13,
        held.sum(1) / 8,
        (numbers == 1).sum(1) / 6,
        (numbers == PAIR).sum(1) / 3,
        (numbers > PAIR).sum(1) / 2,
        numbers.max(1) / 4,
        (numbers * numbers).sum(1) / 30,
        hand[:, JOKER_INDEX] / 2,
        (numbers[:, :LOW] == 1).sum(1) / 3,
        (numbers * VALUES[:NUMBERS]).sum(1) / 100,
    ]
    return np.stack(columns, 1, dtype=np.float32)


class Network:
    """One hidden layer of rectified units, and one output.

    Args:
        weights: an array with a row for each hidden unit: its weights of the features, its bias, its weight in the output.
    """

    def __init__(self, weights: Floats) -> None:
        self.weights = weights

    def rate(self, features: Floats) -> Floats:
        """Return the rating of each action."""
        hidden = np.maximum(features @ self.weights[:, :-2].T + self.weights[:, -2], 0)
        ratings: Floats = hidden @ self.weights[:, -1]
        return ratings


@cache
def load_network() -> Network:
    """Return the trained network."""
    return Network(np.load(WEIGHTS, allow_pickle=False).astype(np.float32))


@cache
def find_encoding(ruleset: Ruleset, players: int) -> Encoding:
    """Return the encoding, which games of the same kind share."""
    return Encoding(ruleset, players)


def choose(
    encoding: Encoding, observations: Sequence[NDArray[np.int8]], legal: Sequence[Sequence[int]]
) -> list[int]:
    """Return the position of the best action in each list of legal actions."""
    lengths = np.array([len(actions) for actions in legal])
    rows = np.repeat(np.arange(len(legal)), lengths)
    actions = np.concatenate([np.asarray(each, dtype=np.intp) for each in legal])
    situation = Situation(encoding, np.stack(observations))
    # Rounding hides that sums of many products depend a little on the size of the batch.
    ratings = np.round(load_network().rate(situation.describe(rows, actions)), 4)
    ends = np.cumsum(lengths)
    return [
        int(ratings[begin:end].argmax()) for begin, end in zip(ends - lengths, ends, strict=True)
    ]


class Learner(Bot):
    """Play one game."""

    encoding: Encoding

    def start(self, game: Game) -> None:
        """Find the encoding of the game."""
        self.encoding = find_encoding(game.ruleset, game.players)

    @classmethod
    def decide_batch(cls, requests: Sequence[Request]) -> list[Action]:
        """Choose all actions with one pass of the network for each kind of game."""
        chosen: dict[int, Action] = {}
        waiting: dict[Encoding, list[int]] = {}
        for position, request in enumerate(requests):
            waiting.setdefault(request.bot.encoding, []).append(position)  # type: ignore[attr-defined]
        for encoding, positions in waiting.items():
            together = [requests[position] for position in positions]
            legal = [tuple(request.legal) for request in together]
            numbers = [[encode_action(action) for action in each] for each in legal]
            observations = [encoding.observe(each.view, each.kind) for each in together]
            best = choose(encoding, observations, numbers)
            for position, actions, number in zip(positions, legal, best, strict=True):
                chosen[position] = actions[number]
        return [chosen[position] for position in range(len(requests))]


if __name__ == "__main__":
    run(Learner, max_games=64)
