"""Offer the game to OpenSpiel. Importing this module registers the game `linko`.

    import pyspiel
    import referee.train.openspiel

    game = pyspiel.load_game("linko(ruleset=duel,players=2)")

Chance decides each card when it is drawn, so the deck is no part of a state. The rules take a whole deck. Therefore a
`LazyGame` has a deck whose first cards are decided. It tries a move in a copy of the game: if the move draws a card that is
not decided, the copy is dropped, and the next node is one of chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, Self, cast

import numpy as np
import pyspiel
from numpy.typing import NDArray

from referee.rules.actions import Action, DecisionKind
from referee.rules.events import Event, View, redact
from referee.rules.game import Game
from referee.rules.ruleset import (
    DEFAULT_MAX_TURNS,
    JOKER,
    RULESETS,
    Ruleset,
    card_name,
    full_deck,
    layer_name,
    list_cards,
)
from referee.sdk import Game as StartedGame
from referee.sdk import Request
from referee.sdk.env import ACTIONS, Encoding, action_name, decode_action, encode_action
from referee.sdk.simulate import InformationSet, Observer
from referee.train.games import find_ruleset, reward_by_rank

GAME_TYPE = pyspiel.GameType(
    short_name="linko",
    long_name="LINKO!",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=max(ruleset.max_players for ruleset in RULESETS.values()),
    min_num_players=min(ruleset.min_players for ruleset in RULESETS.values()),
    provides_information_state_string=True,
    provides_information_state_tensor=False,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification={"ruleset": "basic", "players": 4, "max_turns": DEFAULT_MAX_TURNS},
)


def bound_game_length(ruleset: Ruleset, players: int) -> int:
    """Return a number of decisions that no game exceeds.

    A turn has a play, at most two decisions about the layer of each opponent, one about the ghost and one about the optional
    draw. All draws of a game together take at most the cards of the deck, because no card returns to it.
    """
    in_a_turn = 1 + 2 * (players - 1) + ruleset.ghost + ruleset.optional_draw
    return ruleset.max_turns * in_a_turn + sum(full_deck(ruleset))


class LinkoGame(pyspiel.Game):
    """The game `linko`. Utilities are the rewards by rank of the other environments.

    Args:
        params: `ruleset`, `players` and `max_turns`.

    Raises ValueError when a parameter does not fit.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        given = GAME_TYPE.parameter_specification | (params or {})
        ruleset = find_ruleset(given["ruleset"]).with_options(max_turns=given["max_turns"])
        self.encoding = Encoding(ruleset, given["players"])
        info = pyspiel.GameInfo(
            num_distinct_actions=ACTIONS,
            max_chance_outcomes=JOKER + 1,
            num_players=given["players"],
            min_utility=-1.0,
            max_utility=1.0,
            utility_sum=0.0,
            max_game_length=bound_game_length(ruleset, given["players"]),
        )
        super().__init__(GAME_TYPE, info, params or {})

    def new_initial_state(self) -> LinkoState:
        """Return the state before the deal."""
        return LinkoState(self)

    def max_chance_nodes_in_history(self) -> int:
        """Return the number of cards, each of which is drawn at most once."""
        return sum(full_deck(self.encoding.ruleset))

    def make_py_observer(
        self, iig_obs_type: Any = None, params: dict[str, Any] | None = None
    ) -> LinkoObserver | None:
        """Return what makes observations or, with perfect recall, information states.

        As OpenSpiel wants it, the method returns None unless all that one player knows is wanted. Raises ValueError for
        parameters, because there are none.
        """
        if params:
            raise ValueError(f"observations of linko have no parameters, but got {params}")
        wanted = iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
        single = pyspiel.PrivateInfoType.SINGLE_PLAYER
        if not wanted.public_info or wanted.private_info != single:
            return None
        return LinkoObserver(self.encoding, perfect_recall=wanted.perfect_recall)


@cache  # OpenSpiel makes a new state for each copy
def _sorted_deck(ruleset: Ruleset, players: int) -> tuple[tuple[int, ...], int]:
    """Return all cards, the lowest first, and the fewest cards that a deal draws: the ghost refuses no low card."""
    deck = tuple(list_cards(full_deck(ruleset)))
    return deck, len(deck) - Game(ruleset, players, deck).table.deck_size


class LazyGame:
    """A game whose cards are decided one by one, when a move draws them.

    Args:
        ruleset: the rules.
        players: the number of seats.
    """

    #   undealt --the last card of the deal--> a seat decides --its move--> a seat decides, or the game is over
    #                                               |                              ^
    #                                               +--a move that draws--> chance-+ once for each card

    def __init__(self, ruleset: Ruleset, players: int) -> None:
        self._ruleset, self._players = ruleset, players
        self._deck, self._least = _sorted_deck(ruleset, players)
        self._decided = 0
        """The number of cards at the beginning of the deck that chance has decided. The others have any order."""
        self._move: Action | None = None
        """The move that waits for a card."""
        self.game: Game | None = None
        """The game before the move that waits; None before the deal."""
        self.events: tuple[Event, ...] = ()
        self._first_views: tuple[View, ...] = ()
        self._sets: dict[int, InformationSet] = {}
        """The information sets of the next decision, by seat."""
        self._drawn_for: int | None = None
        """The seat that cannot tell this game from another one, from which it was drawn; None if it was not drawn."""

    def __deepcopy__(self, _memo: object) -> Self:
        """Return an independent game in the same position; OpenSpiel copies states in this way."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._sets = {}
        if self.game is not None:
            other.game = self.game.copy()
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Return what pickle can write; OpenSpiel serialises states with pickle. A game itself has a generator."""
        game = self.game
        packed = game and (game.table, game.kind, game.outcome)
        return self.__dict__ | {"game": packed, "_sets": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if state["game"] is not None:
            self.game = Game.restore(*state["game"])

    @property
    def needs_card(self) -> bool:
        """True if chance must decide a card."""
        return self.game is None or self._move is not None

    @property
    def undecided(self) -> Counter[int]:
        """The cards among which chance decides, each with its number of copies."""
        return Counter(self._deck[self._decided :])

    def move(self, action: Action) -> None:
        """Make a move of the seat that must decide."""
        self._sets = {}
        self._move = action
        self._try_move()

    def decide_card(self, card: int) -> None:
        """Let chance decide the next card. Raises ValueError if no copy of the card is left."""
        at = self._deck.index(card, self._decided)
        rest = (*self._deck[self._decided : at], *self._deck[at + 1 :])
        self._deck = (*self._deck[: self._decided], card, *rest)
        self._decided += 1
        if self.game is not None:
            self._try_move()
        elif self._decided >= self._least:
            self._try_deal()

    def draw(self, seat: int, chance: Random) -> LazyGame:
        """Return a game that `seat`, which must decide now, cannot tell apart from this one.

        The other seats of that game have no past, so it can be drawn again for `seat` only. Raises ValueError for a seat
        that does not decide now, and for another seat of a game that was drawn.
        """
        if seat not in self._sets:
            self._sets[seat] = self._make_information_set(seat)
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.game = self._sets[seat].draw(chance)
        other._deck, other._decided = other.game.table.deck, 0
        other.events = tuple(redact(event, seat) for event in self.events)
        other._sets = {}
        other._drawn_for = seat
        return other

    def _count_drawn(self, game: Game) -> int:
        return len(self._deck) - game.table.deck_size

    def _try_deal(self) -> None:
        game = Game(self._ruleset, self._players, self._deck)
        if self._count_drawn(game) <= self._decided:
            self.game = game
            self._first_views = tuple(map(game.view, range(self._players)))

    def _try_move(self) -> None:
        assert self.game is not None  # noqa: S101 - there are no moves before the deal
        assert self._move is not None  # noqa: S101 - the callers have set it
        tried = self.game.copy()
        tried.table.deck = self._deck
        events = tried.apply(self._move)
        if self._count_drawn(tried) <= self._decided:
            self.game, self._move = tried, None
            self.events += events

    def _make_information_set(self, seat: int) -> InformationSet:
        game = self.game
        if game is None or game.decision is None or game.decision.seat != seat or self.needs_card:
            raise ValueError(
                f"only the player who decides now can resample; player {seat} does not decide now"
            )
        if self._drawn_for not in (None, seat):
            raise ValueError(
                f"this state was resampled for player {self._drawn_for}, so player {seat} has no past in it"
            )
        events = tuple(redact(event, seat) for event in self.events)
        start = _Start(self._ruleset, seat, self._first_views[seat])
        seen = _Seen(game.view(seat), game.decision.kind, game.decision.legal, events)
        return Observer(cast("StartedGame", start)).observe(cast("Request", seen))


@dataclass
class _Start:
    """What an `Observer` needs of a started game."""

    ruleset: Ruleset
    seat: int
    view: View


@dataclass
class _Seen:
    """What an `Observer` needs of a request."""

    view: View
    kind: DecisionKind
    legal: tuple[Action, ...]
    events: tuple[Event, ...]


class LinkoState(pyspiel.State):
    """A state of `linko`. The outcomes of chance are cards: 1 to 13, and 14 for a joker."""

    def __init__(self, game: LinkoGame) -> None:
        super().__init__(game)
        self.lazy_game = LazyGame(game.encoding.ruleset, game.encoding.players)

    def current_player(self) -> int:
        """Return the seat that must decide, or the mark for chance or for the end."""
        if self.lazy_game.needs_card:
            return int(pyspiel.PlayerId.CHANCE)
        game = self.lazy_game.game
        decision = game.decision if game else None
        return int(pyspiel.PlayerId.TERMINAL) if decision is None else decision.seat

    def _legal_actions(self, _player: int) -> list[int]:
        return sorted(map(encode_action, self._legal()))

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return each card that can be drawn now, with its probability."""
        undecided = self.lazy_game.undecided
        total = undecided.total()
        return [(card, copies / total) for card, copies in sorted(undecided.items())]

    def _apply_action(self, action: int) -> None:
        if self.lazy_game.needs_card:
            self.lazy_game.decide_card(action)
        else:
            self.lazy_game.move(decode_action(action, self._legal()))

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE:
            return f"card {card_name(action)}"
        return action_name(action)

    def is_terminal(self) -> bool:
        """Return True when the game is over."""
        return self.current_player() == int(pyspiel.PlayerId.TERMINAL)

    def returns(self) -> list[float]:
        """Return the rewards by rank; 0 until the game is over."""
        game = self.lazy_game.game
        if game is None or game.outcome is None:
            return [0.0] * self.num_players()
        return list(reward_by_rank(game.outcome))

    def resample_from_infostate(self, player: int, sampler: Callable[[], float]) -> LinkoState:
        """Return a random state that the player, which must decide now, cannot tell apart from this one.

        Raises ValueError for any other player.
        """
        chance = Random(sampler())  # noqa: S311 - games need no cryptographic randomness
        other = self.clone()
        other.lazy_game = self.lazy_game.draw(player, chance)
        return cast("LinkoState", other)

    def __str__(self) -> str:
        game = self.lazy_game.game
        if game is None:
            return f"the deal, {self.lazy_game.undecided.total()} cards are left"
        text = [describe(game.view(seat), game.kind) for seat in range(game.players)]
        return "\n".join(text) + ("\na card is drawn" if self.lazy_game.needs_card else "")

    def _legal(self) -> Sequence[Action]:
        game = self.lazy_game.game
        return game.decision.legal if game and game.decision else ()


def describe(view: View, kind: DecisionKind | None) -> str:
    """Return everything that a seat may know now as a text. Different views have different texts."""
    fields = view._asdict() | {
        "tables": [" ".join(map(layer_name, layers)) for layers in view.tables],
        "snatched": view.snatched and layer_name(view.snatched),
        "decision": kind and kind.value,
    }
    return "; ".join(f"{name} {value}" for name, value in fields.items())


class LinkoObserver:
    """Make observations of states: the tensor has what `Encoding.observe` returns, and `dict` its parts.

    With perfect recall there is no tensor, and the text has all events too.

    Args:
        encoding: makes the tensor.
        perfect_recall: whether to make information states.
    """

    def __init__(self, encoding: Encoding, *, perfect_recall: bool) -> None:
        self._encoding = encoding
        self._perfect_recall = perfect_recall
        self.tensor: NDArray[np.float32] | None = None
        self.dict: dict[str, NDArray[np.float32]] = {}
        if not self._perfect_recall:
            self.tensor = np.zeros(encoding.size, np.float32)
            self.dict = {name: encoding.part(self.tensor, name) for name in encoding.shapes}

    def set_from(self, state: LinkoState, player: int) -> None:
        """Write the observation of a player into the tensor; all numbers are 0 during the deal."""
        if self.tensor is None:
            return
        game = state.lazy_game.game
        if game is None:
            self.tensor.fill(0)
        else:
            self.tensor[:] = self._encoding.observe(game.view(player), game.kind)

    def string_from(self, state: LinkoState, player: int) -> str:
        """Return the observation or the information state of a player as a text."""
        game = state.lazy_game.game
        if game is None:
            return "the deal"
        text = describe(game.view(player), game.kind)
        if not self._perfect_recall:
            return text
        events = (str(redact(event, player)) for event in state.lazy_game.events)
        return "\n".join((*events, text))


pyspiel.register_game(GAME_TYPE, LinkoGame)
