"""Offer the game as an AEC environment of PettingZoo.

    from referee.train import linko_v1

    env = linko_v1.env(ruleset="basic", players=4)
    env.reset(seed=7)
    for agent in env.agent_iter():
        observation, reward, termination, truncation, info = env.last()
        done = termination or truncation
        env.step(None if done else env.action_space(agent).sample(observation["action_mask"]))

`referee.sdk.env` has the numbers of the actions and the parts of the observations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.utils import seeding
from pettingzoo import AECEnv
from pettingzoo.utils.env import AECIterable

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


def observation_space(size: int) -> Dict:
    """Return the space of the dicts that `observe` returns: an observation of `size` numbers, and a mask."""
    most = np.iinfo(np.int8).max
    return Dict(
        {
            "observation": Box(0, most, (size,), np.int8),
            "action_mask": Box(0, 1, (ACTIONS,), np.int8),
        }
    )


class LinkoEnv(AECEnv[str, dict[str, Array], int | None]):
    """A game in which each seat without a bot has an agent.

    An agent has the name of its seat. `seat_0` starts, and `seat_1`, `seat_2` and so on follow clockwise. All rewards
    come at the end of a game. `training_game.seed` is the seed of the current game. With this seed, `referee play --seed`
    deals the same cards.

    Args:
        ruleset: a ruleset or its name.
        players: the number of seats.
        rewards: `rank`, which gives 1 to the first and -1 to the last, or `points`.
        bots: bots of the SDK by the number of their seat. They decide at once and are no agents.
        render_mode: with `ansi`, `render` returns the table with all cards as a text. With `human`, each reset and step
            prints the table. With None, `render` does nothing.

    Raises ValueError or TypeError when an argument is wrong.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "linko_v1",
        "render_modes": RENDER_MODES,
        "is_parallelizable": False,
        "render_fps": 1,
    }

    def __init__(
        self,
        ruleset: str | Ruleset = "basic",
        players: int = 4,
        *,
        rewards: str = "rank",
        bots: Mapping[int, SdkBot] | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        self.training_game = TrainingGame(ruleset, players, rewards)
        players = self.training_game.players
        self._bots = _check_bots(bots or {}, players)
        self.render_mode = check_render_mode(render_mode)
        self._seats = {f"seat_{seat}": seat for seat in range(players) if seat not in self._bots}
        self._names = {seat: agent for agent, seat in self._seats.items()}
        self.possible_agents = list(self._seats)
        size = self.training_game.encoding.size
        self.observation_spaces = {agent: observation_space(size) for agent in self._seats}
        self.action_spaces = {agent: Discrete(ACTIONS) for agent in self._seats}
        self._random, _ = seeding.np_random()
        self.agents: list[str] = []
        self.agent_selection = self.possible_agents[0]

    def observation_space(self, agent: str) -> Dict:
        """Return the space of the agent's observations; it is the same for all agents."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Return the space of the agent's actions; it is the same in all games."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a new game.

        If `seed` is None, the game gets a random seed. A given seed also seeds the generator of these random seeds.
        """
        del options  # there are none
        if seed is None:
            seed = int(self._random.integers(SEEDS))
        else:
            self._random, _ = seeding.np_random(seed)
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.training_game.deal(seed, self._bots)
        self._select_agent()
        if self.render_mode == "human":
            self.render()

    def agent_iter(self, max_iter: int = 2**63) -> AECIterable[str, dict[str, Array], int | None]:
        """Yield the selected agent before each step. Raises ResetNeeded before the first game."""
        if self.training_game.seed is None:
            raise ResetNeeded(NO_GAME)
        return super().agent_iter(max_iter)

    def step(self, action: int | None) -> None:
        """Apply the action of the selected agent.

        After the end of the game, the action must be None, and the step only removes the agent. Raises MaskedActionError and
        changes nothing when the action is masked.
        """
        if self.agents and self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        if self.training_game.decision is None:
            raise ResetNeeded(NO_GAME)
        if action is None:
            raise ValueError(f"{self.agent_selection} must decide, but the action is None")
        self.training_game.step(action)
        self._select_agent()
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> dict[str, Array]:
        """Return the observation and the mask of an agent. If the agent does not have to decide now, its mask is all 0."""
        return self.training_game.observe(self._seats[agent])

    def render(self) -> str | None:
        """Show the table with all cards, also those that are hidden from the agents."""
        return self.training_game.render(self.render_mode)

    def close(self) -> None:
        """Do nothing, because the environment holds no resources."""

    def _select_agent(self) -> None:
        """Select the agent that must decide. At the end of the game, reward all agents."""
        decision = self.training_game.decision
        if decision is not None:
            self.agent_selection = self._names[decision.seat]
            return
        rewards = self.training_game.rewards()
        self.rewards = {agent: rewards[seat] for agent, seat in self._seats.items()}
        self._accumulate_rewards()  # only needed here, because all earlier rewards were 0
        self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = self.agents[0]


def _check_bots(bots: Mapping[int, SdkBot], players: int) -> dict[int, SdkBot]:
    """Return a copy of the bots by seat.

    Raises ValueError when a seat does not exist, or when all seats have a bot. Raises TypeError when a seat is no whole
    number, or when a bot is no bot of the SDK.
    """
    checked = {whole_number("bots: a seat", seat): bots[seat] for seat in bots}
    for seat, bot in checked.items():
        bot_class(bot)
        if seat not in range(players):
            raise ValueError(f"bots: there is no seat {seat}; the seats are 0 to {players - 1}")
    if len(checked) == players:
        raise ValueError("bots: all seats have a bot; leave at least one seat to an agent")
    return checked


env = LinkoEnv
"""PettingZoo expects this name for a function that creates an environment. No wrapper is needed, because `LinkoEnv` checks
actions itself."""
