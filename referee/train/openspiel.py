"""Offer the game to OpenSpiel. Importing this module registers the game `linko`.

    import pyspiel
    import referee.train.openspiel

    game = pyspiel.load_game("linko(ruleset=duel,players=2,ghost_snatch=optional)")

A state has no deck with a fixed order, because chance decides each card when it is drawn (`lazy_game.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from random import Random
from typing import Any, cast

import numpy as np
import pyspiel
from numpy.typing import NDArray

from referee.rules.actions import Action, DecisionKind
from referee.rules.events import View, redact
from referee.rules.ruleset import (
    DEFAULT_MAX_TURNS,
    GHOST_OPTIONS,
    JOKER,
    RULESETS,
    EndOn,
    Ruleset,
    card_name,
    full_deck,
    layer_name,
)
from referee.sdk.env import ACTIONS, Encoding, action_name, decode_action, encode_action
from referee.train.games import find_ruleset, reward_by_rank
from referee.train.lazy_game import LazyGame

OPTIONS: dict[str, Enum] = {"end_on": EndOn.DECK_AND_DISPLAY, **GHOST_OPTIONS}
"""The parameters that set options of a ruleset, without `max_turns`. Their default values are the same for all rulesets."""
_MAX_LENGTH = (1 << 31) - 1
"""The largest length of a game that OpenSpiel can store."""
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
    parameter_specification={
        "ruleset": "basic",
        "players": 4,
        "max_turns": DEFAULT_MAX_TURNS,
        **{option: default.value for option, default in OPTIONS.items()},
    },
)


def read_ruleset(params: Mapping[str, Any]) -> Ruleset:
    """Return the ruleset that the parameters describe. Raises ValueError if a parameter has a wrong value."""
    options: dict[str, Any] = {}
    for option, default in OPTIONS.items():
        values = {each.value: each for each in type(default)}
        if params[option] not in values:
            raise ValueError(
                f"unknown {option} {params[option]!r}; choose one of {', '.join(values)}"
            )
        options[option] = values[params[option]]
    ruleset = find_ruleset(params["ruleset"])
    return ruleset.with_options(max_turns=params["max_turns"], **options)


def bound_game_length(ruleset: Ruleset, players: int) -> int:
    """Return an upper bound for the number of decisions in a game.

    A turn has one decision about the play, at most two about the layer of each opponent, one about the ghost and one about
    the optional draw. The draws of all victims in a game are together at most as many as the cards of the deck, because each
    draw takes at least one card that came from the deck, and no card returns to it.
    """
    in_a_turn = 1 + 2 * (players - 1) + ruleset.ghost + ruleset.optional_draw
    return ruleset.max_turns * in_a_turn + sum(full_deck(ruleset))


class LinkoGame(pyspiel.Game):
    """The game `linko`. Utilities are the rewards by rank of the other environments.

    Args:
        params: `players`, and what `read_ruleset` reads.

    Raises ValueError if a parameter has a wrong value. `pyspiel.load_game` checks the names and types of parameters before.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        given = GAME_TYPE.parameter_specification | (params or {})
        ruleset = read_ruleset(given)
        self.encoding = Encoding(ruleset, given["players"])
        length = bound_game_length(ruleset, given["players"])
        if length > _MAX_LENGTH:
            raise ValueError(
                f"max_turns is {ruleset.max_turns}; choose a smaller number: with this one a game can have"
                f" {length:,} decisions, and OpenSpiel allows at most {_MAX_LENGTH:,}"
            )
        info = pyspiel.GameInfo(
            num_distinct_actions=ACTIONS,
            max_chance_outcomes=JOKER + 1,
            num_players=given["players"],
            min_utility=-1.0,
            max_utility=1.0,
            utility_sum=0.0,
            max_game_length=length,
        )
        super().__init__(GAME_TYPE, info, params or {})

    def new_initial_state(self) -> LinkoState:
        """Return the state before the deal."""
        return LinkoState(self)

    def max_chance_nodes_in_history(self) -> int:
        """Return the number of cards in the deck, because chance decides each card at most once."""
        return sum(full_deck(self.encoding.ruleset))

    def make_py_observer(
        self, iig_obs_type: Any = None, params: dict[str, Any] | None = None
    ) -> LinkoObserver | None:
        """Return an observer for observations or, with perfect recall, information states.

        Returns None unless the observation has the public information and the private information of one player. Raises
        ValueError if `params` is not empty, because observations have no parameters.
        """
        if params:
            raise ValueError(f"observations of linko have no parameters, but got {params}")
        wanted = iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
        single = pyspiel.PrivateInfoType.SINGLE_PLAYER
        if not wanted.public_info or wanted.private_info != single:
            return None
        return LinkoObserver(self.encoding, perfect_recall=wanted.perfect_recall)


class LinkoState(pyspiel.State):
    """A state of `linko`. The outcomes of chance are cards: 1 to 13, and 14 for a joker."""

    def __init__(self, game: LinkoGame) -> None:
        super().__init__(game)
        self.lazy_game = LazyGame(game.encoding.ruleset, game.encoding.players)

    def current_player(self) -> int:
        """Return the seat that must decide, `PlayerId.CHANCE` if chance must, or `PlayerId.TERMINAL` after the game."""
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
        """Return a random state that the deciding player cannot tell apart from this one.

        The `history()` of the returned state does not fit it, because it is the history of this state, with the true hidden
        cards. Do not show it to a player, and do not replay it.

        Raises ValueError as `LazyGame.draw` does.
        """
        chance = Random(sampler())  # noqa: S311 - games need no cryptographic randomness
        other = self.clone()
        other.lazy_game = self.lazy_game.draw(player, chance)
        return cast("LinkoState", other)

    def __str__(self) -> str:
        game, move = self.lazy_game.game, self.lazy_game.waiting_move
        drawn = " ".join(map(card_name, self.lazy_game.drawn)) or "none"
        if game is None:
            return f"the deal, so far: {drawn}; {self.lazy_game.undecided.total()} cards are left"
        text = [describe(game.view(seat), game.kind) for seat in range(game.players)]
        if move is not None:
            text.append(f"the move {action_name(encode_action(move))} draws cards, so far: {drawn}")
        return "\n".join(text)

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
    """Make observations of states, as tensors and as texts.

    `tensor` has the numbers that `Encoding.observe` returns, and `dict` has the parts of `tensor`. An observer with perfect
    recall makes information states instead. These are texts that also have all events; there is no tensor.

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
        """Write the observation of a player into the tensor, or zeros during the deal. Without a tensor, do nothing."""
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
