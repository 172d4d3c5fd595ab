"""Translate between the game and the numbers of the training environments, and let a trained policy play as a bot.

The environments of `referee.train` and this module use the same numbers. So a policy that was trained in an
environment plays for the referee with `run(policy)`.

**Actions** are the numbers from 0 to 652, for all rulesets and numbers of seats:

    0 to 628     plays, in the order of `legal_plays`: for each value 1 to 13, with 1 to 8 naturals and 0 to 5 jokers
                 (13 * 8 * 6 = 624), then 1 to 5 jokers alone
    629 to 634   take, leave, reclaim, discard, draw from the deck, pass
    635 to 640   draw the cards in slot 0 to 5 of the display
    641 to 652   snatch the set of 1s to 12s from the ghost

**Observations** are flat arrays of small numbers (int8), made from the view of one seat and the kind of the
decision. Seats are relative: the observing seat comes first, the others follow clockwise. Cards are 14 counts: of
the 1s, the 2s, …, the 13s, and the jokers. A layer is 14 counts too, and has no number for its value, because the
value follows from the counts. `Encoding` lists the parts. An observation has 135 + 59 * seats numbers: 253 for 2
seats, 312 for 3, 371 for 4 and 430 for 5. In a duel it has 20 more, which makes 273.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from math import prod
from operator import index
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from referee import sdk
from referee.rules.actions import (
    Action,
    Choice,
    DecisionKind,
    DrawDisplay,
    Play,
    SnatchGhost,
    legal_plays,
)
from referee.rules.events import View
from referee.rules.ruleset import (
    DISPLAY_SLOTS,
    FULL,
    JOKER,
    NUMBERS,
    Group,
    Layer,
    Ruleset,
    layer_name,
)

LAYERS = 3
"""How many of a seat's newest layers an observation shows one by one. It counts the cards of the older layers together."""
_CARDS = JOKER
"""The number of different cards."""
_MOST = np.iinfo(np.int8).max
_SLOT_0 = len(legal_plays(FULL)) + len(Choice)
"""The number of the action that draws from slot 0."""
LISTED_ACTIONS: tuple[Action, ...] = (
    *legal_plays(FULL),
    *Choice,
    *(DrawDisplay(slot) for slot in range(DISPLAY_SLOTS)),
    *(SnatchGhost(value) for value in NUMBERS[:-1]),  # a 13 never joins the ghost
)
"""All actions. The number of an action is its index. Draws from the display are listed without their cards."""
ACTIONS = len(LISTED_ACTIONS)
"""The number of actions: 653."""
_NO_ACTION = f"not an action; actions are 0 to {ACTIONS - 1}"

Array = NDArray[np.int8]
Number = TypeVar("Number", bound=np.generic)
Policy = Callable[[Mapping[str, Array]], int]
"""A function that chooses an action and returns its number.

It gets a dict with `observation` and `action_mask`, like the observations of the PettingZoo environment."""


class MaskedActionError(ValueError):
    """The number is no action, or its action is not legal now."""


class _Numbers(dict[Action, int]):
    """The number of each action.

    A draw from the display is listed without its cards. A draw with cards has the number of the listed draw from its slot.
    """

    def __missing__(self, action: Action) -> int:
        if isinstance(action, DrawDisplay) and 0 <= action.slot < DISPLAY_SLOTS:
            return _SLOT_0 + action.slot
        raise ValueError(f"{action} is no action of the game")


_NUMBERS = _Numbers((action, number) for number, action in enumerate(LISTED_ACTIONS))


def encode_action(action: Action) -> int:
    """Return the number of an action. Raises ValueError if the action has no number."""
    return _NUMBERS[action]


def decode_action(number: int, legal: Sequence[Action]) -> Action:
    """Return the legal action with a number.

    Raises MaskedActionError if no action in `legal` has the number. The message names the action and the mask.
    """
    wanted = index(number)
    for action in legal:
        if _NUMBERS[action] == wanted:
            return action
    name = action_name(wanted) if 0 <= wanted < ACTIONS else _NO_ACTION
    unmasked = [f"{each} ({action_name(each)})" for each in sorted(map(encode_action, legal))]
    raise MaskedActionError(
        f"action {wanted} ({name}) is masked; the mask allows {', '.join(unmasked) or 'nothing'}"
    )


@cache
def action_name(number: int) -> str:
    """Return a text for an action, such as `play 2×7+J`, `take` or `draw slot 3`.

    Different actions have different texts. Raises ValueError if no action has the number.
    """
    if not 0 <= number < ACTIONS:
        raise ValueError(f"{number} is {_NO_ACTION}")
    match LISTED_ACTIONS[number]:
        case Play(layer):
            return f"play {layer_name(layer)}"
        case DrawDisplay(slot):
            return f"draw slot {slot}"
        case SnatchGhost(value):
            return f"snatch {value}s"
        case choice:
            return choice.value


def make_mask(legal: Iterable[Action]) -> Array:
    """Return the mask of the legal actions: `ACTIONS` numbers, 1 for a legal action and 0 for any other."""
    mask = bytearray(ACTIONS)
    for number in map(_NUMBERS.__getitem__, legal):
        mask[number] = 1
    return np.frombuffer(mask, np.int8)


class Encoding:
    """Make the observations of a ruleset and a number of seats.

    Args:
        ruleset: the rules.
        players: the number of seats.

    Raises ValueError when the ruleset does not allow this number of players.
    """

    def __init__(self, ruleset: Ruleset, players: int) -> None:
        players = index(players)  # products of small types of numpy, such as `np.int8`, overflow
        ruleset.check_players(players)
        self.ruleset = ruleset
        self.players = players
        self.shapes: dict[str, tuple[int, ...]] = {
            "kind": (len(DecisionKind),),  # what is decided, one-hot; all 0 when the game is over
            "active": (players,),  # whose turn it is, one-hot
            "victim": (players,),  # who has just lost a layer, one-hot or all 0
            "cards_to_draw": (1,),  # draws left, the current one included
            "deck_size": (1,),
            "turns_left": (1,),  # turns after the current one until `max_turns`; 127 if more
            "hand_sizes": (players,),
            "hand": (_CARDS,),
            "snatched": (_CARDS,),  # the layer that a seat decides about
            "discards": (_CARDS,),
            "display": (DISPLAY_SLOTS, _CARDS),
            # the newest layers of each seat, the top layer first, then the cards of its older layers together
            "tables": (players, LAYERS + 1, _CARDS),
        }
        """The shape of each part, in the order of the parts in an observation."""
        if ruleset.ghost:
            self.shapes |= {
                "ghost": (_CARDS,),
                "bottoms": (DISPLAY_SLOTS,),  # the bottom card of each slot, 0 for an empty slot
            }
        ends = accumulate(map(prod, self.shapes.values()), initial=0)
        self._slices = {
            name: slice(*span) for name, span in zip(self.shapes, pairwise(ends), strict=True)
        }
        self._seats = [_one_hot(seat, players) for seat in range(players)]
        """The one-hot bytes of each relative seat. A negative relative seat works too, because a negative index counts from
        the end."""
        self.size = sum(map(prod, self.shapes.values()))
        """How many numbers an observation has."""

    def part(self, observations: NDArray[Number], name: str) -> NDArray[Number]:
        """Return one part of an observation, in its shape and without a copy.

        `observations` has any number of axes before the last one, for example `(batch, size)`.
        """
        found = observations[..., self._slices[name]]
        return found.reshape(*found.shape[:-1], *self.shapes[name])

    def observe(self, view: View | sdk.View, kind: DecisionKind | None) -> Array:
        """Return the observation of `view.seat`: an array of `size` numbers from 0 to 127.

        `kind` is the kind of the decision that some seat has to take now; None when the game is over.
        """
        players, seat = self.players, view.seat
        victim, snatched, sizes = view.victim, view.snatched, bytes(view.hand_sizes)
        turns_left = self.ruleset.max_turns - view.turn
        parts = [
            _KINDS[kind],
            self._seats[view.active_seat - seat],
            bytes(players) if victim is None else self._seats[victim - seat],
            bytes((view.cards_to_draw, view.deck_size, min(turns_left, _MOST))),
            sizes[seat:],
            sizes[:seat],
            bytes(view.hand[1:]),
            bytes(_CARDS) if snatched is None else _count(snatched.cards),
            bytes(view.discards[1:]),
            _display(view.display),
            *map(_table, view.tables[seat:]),
            *map(_table, view.tables[:seat]),
        ]
        if view.ghost is not None:
            parts += bytes(view.ghost[1:]), _bottoms(view.display)
        return np.frombuffer(bytearray().join(parts), np.int8)


# One observation differs from the next in only a few places. So the functions below cache the bytes of the parts that
# take long to compute. These parts are bytes, because joining bytes is faster than filling an array.


def _one_hot(position: int, length: int) -> bytes:
    return bytes(position) + b"\1" + bytes(length - position - 1)


_KINDS: dict[DecisionKind | None, bytes] = {
    kind: _one_hot(position, len(DecisionKind)) for position, kind in enumerate(DecisionKind)
} | {None: bytes(len(DecisionKind))}


@lru_cache(1 << 10)
def _count(cards: tuple[int, ...]) -> bytes:
    return bytes(map(cards.count, range(1, _CARDS + 1)))


@lru_cache(1 << 12)
def _table(layers: tuple[Layer, ...]) -> bytes:
    newest = [_count(layer.cards) for layer in reversed(layers[-LAYERS:])]
    newest += [bytes(_CARDS)] * (LAYERS - len(newest))
    older = tuple(card for layer in layers[:-LAYERS] for card in layer.cards)
    return b"".join((*newest, bytes(map(older.count, range(1, _CARDS + 1)))))


@lru_cache(1 << 12)
def _display(display: tuple[Group, ...]) -> bytes:
    return b"".join(map(_count, display))


@lru_cache(1 << 12)
def _bottoms(display: tuple[Group, ...]) -> bytes:
    return bytes(cards[0] if cards else 0 for cards in display)


def policy_bot(policy: Policy) -> type[sdk.Bot]:
    """Return a bot that decides with a policy.

    The bot raises MaskedActionError if the policy returns a masked action.
    """

    class PolicyBot(sdk.Bot):
        def start(self, game: sdk.Game) -> None:
            self._encoding = Encoding(game.ruleset, game.players)

        def decide(self, request: sdk.Request) -> Action:
            legal = tuple(request.legal)
            observation = self._encoding.observe(request.view, request.kind)
            number = policy({"observation": observation, "action_mask": make_mask(legal)})
            return decode_action(number, legal)

    return PolicyBot


def run(policy: Policy, *, max_games: int = 1, name: str = "") -> NoReturn:
    """Play with a policy for the referee that started this program, then exit; see `referee.sdk.run`."""
    sdk.run(policy_bot(policy), max_games=max_games, name=name)
