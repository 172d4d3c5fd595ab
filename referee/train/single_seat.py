"""Offer one seat of the game as an environment of Gymnasium; bots of the SDK have the other seats.

    import gymnasium

    env = gymnasium.make("referee.train.single_seat:Linko-v1", opponents=[greedy, greedy, bait])
    observation, info = env.reset(seed=7)

`referee.sdk.env` has the numbers of the actions and the parts of the observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from referee.rules.ruleset import Ruleset
from referee.sdk.bot import bot_class
from referee.sdk.env import ACTIONS, Array
from referee.train.games import (
    NO_GAME,
    RENDER_MODES,
    SEEDS,
    SdkBot,
    TrainingGame,
    check_render_mode,
    whole_number,
)

MASKED = ("error", "replace")
"""What an environment can do with a masked action."""


class SingleSeatEnv(gymnasium.Env[Array, np.int64]):
    """A game in which the agent has one seat.

    `action_masks` returns the mask, as `MaskablePPO` of sb3-contrib takes it. The reward comes at the end of a game.
    `info` has the seat of the agent. `training_game.seed` is the seed of the current game. With this seed,
    `referee play --seed` deals the same cards.

    Args:
        opponents: bots of the SDK, in clockwise order from the agent's left neighbour. They decide inside `reset` and
            `step`.
        ruleset: a ruleset or its name.
        seat: the agent's seat; None for a random seat in each game.
        rewards: `rank`, which gives 1 to the first and -1 to the last, or `points`.
        masked: what `step` does with a masked action. With `error`, it raises MaskedActionError. With `replace`, it applies a
            random legal action instead, which serves algorithms that know no masks.
        render_mode: with `ansi`, `render` returns the table with all cards as a text. With `human`, each reset and step
            prints the table. With None, `render` does nothing.

    Raises ValueError or TypeError when an argument is wrong.
    """

    metadata = {"render_modes": RENDER_MODES, "render_fps": 1}  # noqa: RUF012 - Gymnasium's attribute

    def __init__(
        self,
        opponents: Sequence[SdkBot],
        ruleset: str | Ruleset = "basic",
        *,
        seat: int | None = None,
        rewards: str = "rank",
        masked: str = "error",
        render_mode: str | None = None,
    ) -> None:
        self.training_game = TrainingGame(ruleset, len(opponents) + 1, rewards)
        players = self.training_game.players
        max_turns = self.training_game.encoding.ruleset.max_turns
        if max_turns < players:
            raise ValueError(
                f"max_turns is {max_turns}, but it must be at least {players}, so that each seat has a turn"
            )
        for bot in opponents:
            bot_class(bot)
        if seat is not None and whole_number("seat", seat) not in range(players):
            raise ValueError(f"there is no seat {seat}; the seats are 0 to {players - 1}")
        if masked not in MASKED:
            raise ValueError(f"unknown masked {masked!r}; choose one of {', '.join(MASKED)}")
        self.render_mode = check_render_mode(render_mode)
        self.action_space = Discrete(ACTIONS)
        most = np.iinfo(np.int8).max
        self.observation_space = Box(0, most, (self.training_game.encoding.size,), np.int8)
        self._opponents = tuple(opponents)
        self._fixed_seat = seat
        self._replaces = masked == "replace"
        self._seat = 0
        """The seat of the agent in the current game."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start a new game.

        If `seed` is None, the game gets a random seed from `np_random`. A given seed also seeds `np_random`.
        """
        super().reset(seed=seed, options=options)
        game, chance = self.training_game, self.np_random
        if seed is None:
            seed = int(chance.integers(SEEDS))
        fixed = self._fixed_seat
        self._seat = int(chance.integers(game.players)) if fixed is None else fixed
        left_neighbour = self._seat + 1
        bots = {
            (left_neighbour + offset) % game.players: bot
            for offset, bot in enumerate(self._opponents)
        }
        game.deal(seed, bots)
        if self.render_mode == "human":
            self.render()
        return self._observe()["observation"], {"seat": self._seat}

    def step(self, action: np.int64 | int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Make the action with this number, and let the opponents decide.

        A masked action raises MaskedActionError, or is replaced if `masked` is `replace`. Raises TypeError when the action is
        no whole number.
        """
        game = self.training_game
        if game.decision is None:
            raise ResetNeeded(NO_GAME)
        number = index(action)
        if self._replaces:
            legal = np.flatnonzero(self.action_masks())
            if number not in legal:
                number = int(self.np_random.choice(legal))
        game.step(number)
        if self.render_mode == "human":
            self.render()
        over, reward = game.decision is None, game.rewards()[self._seat]
        return self._observe()["observation"], reward, over, False, {"seat": self._seat}

    def action_masks(self) -> NDArray[np.bool_]:
        """Return True for each legal action."""
        return self._observe()["action_mask"].astype(bool)

    def render(self) -> str | None:
        """Show the table with all cards, also those that are hidden from the agent."""
        return self.training_game.render(self.render_mode)

    def _observe(self) -> dict[str, Array]:
        """Return the observation of the agent, and its mask."""
        return self.training_game.observe(self._seat)


gymnasium.register("Linko-v1", entry_point=f"{__name__}:{SingleSeatEnv.__name__}")
