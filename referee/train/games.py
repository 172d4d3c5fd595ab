"""Play games for training: deal as the referee deals, let bots decide for some seats, and compute rewards.

The environments share the class `TrainingGame`. A seed deals the same cards as `referee play --seed`, and bots get the
same requests and seeds as there. So the same actions give the same game in an environment and under the referee.
Nobody measures the time of a bot, so `last_elapsed_us` is 0 in every request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import index
from types import MappingProxyType
from typing import SupportsIndex

from referee import deals
from referee.clocks import Clocks, SeatClock
from referee.errors import did_you_mean
from referee.match.play import FREE_GAME_MAX_STRIKES, EventLog
from referee.protocol import messages
from referee.records import Request
from referee.rules.actions import Action, Decision
from referee.rules.events import Event
from referee.rules.game import Game, IllegalActionError, Outcome
from referee.rules.ruleset import RULESETS, Ruleset
from referee.sdk import Bot, Decide, Session
from referee.sdk.env import Array, Encoding, decode_action, make_mask

SdkBot = type[Bot] | Decide
"""A bot of the SDK, as `referee.sdk.run` takes it."""
SEEDS = 2**31
"""If `reset` gets no seed, the seed of the game is a random number below this one."""
RENDER_MODES = ["human", "ansi"]
"""`human` prints the table with all cards at each reset and step. `ansi` makes `render` return the table as a text."""
NO_GAME = "call `reset`, which starts a game"
"""The message of `ResetNeeded`. An environment raises it when a call needs a game in progress and there is none."""
_CLOCKS = Clocks()
"""The time limits that bots are told. Nobody enforces them, because nobody measures the time of a bot."""
_NO_BOTS: Mapping[int, SdkBot] = MappingProxyType({})


def reward_by_rank(outcome: Outcome) -> tuple[float, ...]:
    """Return the reward of each seat: 1 for the first, -1 for the last, and even steps between.

    Seats that share a rank get the mean of the rewards for their places. The sum of all rewards is 0.
    """
    ranks = outcome.ranks
    return tuple(
        (sum(other > rank for other in ranks) - sum(other < rank for other in ranks))
        / (len(ranks) - 1)
        for rank in ranks
    )


def reward_by_points(outcome: Outcome) -> tuple[float, ...]:
    """Return the points of each seat."""
    return tuple(map(float, outcome.scores))


REWARDS: dict[str, Callable[[Outcome], tuple[float, ...]]] = {
    "rank": reward_by_rank,
    "points": reward_by_points,
}
"""The kinds of rewards by name. Each function returns the reward of each seat at the end of a game."""


def find_ruleset(ruleset: str | Ruleset) -> Ruleset:
    """Return a ruleset by its name; a `Ruleset` is returned as it is.

    Raises ValueError for an unknown name, and TypeError for anything else.
    """
    if isinstance(ruleset, Ruleset):
        return ruleset
    if not isinstance(ruleset, str):
        raise TypeError(f"ruleset must be a name or a Ruleset, not {ruleset!r}")
    if ruleset not in RULESETS:
        similar, known = did_you_mean(ruleset, RULESETS), ", ".join(RULESETS)
        raise ValueError(f"unknown ruleset {ruleset!r}{similar}; choose one of {known}")
    return RULESETS[ruleset]


def check_render_mode(mode: str | None) -> str | None:
    """Return the mode. Raises ValueError when it is neither one of `RENDER_MODES` nor None."""
    if mode not in (None, *RENDER_MODES):
        raise ValueError(
            f"unknown render_mode {mode!r}; choose one of {', '.join(RENDER_MODES)} or None"
        )
    return mode


def whole_number(name: str, value: SupportsIndex) -> int:
    """Return the value of the argument `name` as an int. Raises TypeError when it is no whole number, and for a bool."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    return index(value)


class TrainingGame:
    """Play games one after another. Bots decide immediately, so `decision` is never the decision of a bot.

    If a bot raises an exception, the caller gets the exception, `decision` becomes None, and the game cannot go on. The same
    happens if KeyboardInterrupt interrupts a step.

    Args:
        ruleset: a ruleset or its name.
        players: the number of seats.
        rewards: a key of `REWARDS`.

    Raises ValueError for an unknown name, and when the ruleset does not allow this number of players. Raises TypeError when
    `ruleset` is neither a name nor a `Ruleset`, and when `players` is no whole number.
    """

    def __init__(self, ruleset: str | Ruleset, players: int, rewards: str = "rank") -> None:
        if rewards not in REWARDS:
            raise ValueError(f"unknown rewards {rewards!r}; choose one of {', '.join(REWARDS)}")
        self.encoding = Encoding(find_ruleset(ruleset), whole_number("players", players))
        self._reward = REWARDS[rewards]
        self._game: Game | None = None
        self.decision: Decision | None = None
        """The decision of a seat without a bot; None before the first game, after its end, and after an exception of a bot."""
        self.seed: object = None
        """The seed of the current game; None before the first. All cards follow from it, so a policy must not get it."""

    @property
    def players(self) -> int:
        """The number of seats."""
        return self.encoding.players

    @property
    def game(self) -> Game:
        """The current game. Raises ResetNeeded before the first `deal`."""
        if self._game is None:
            from gymnasium.error import ResetNeeded  # noqa: PLC0415 - OpenSpiel works without Gymnasium

            raise ResetNeeded(NO_GAME)
        return self._game

    def deal(self, seed: object, bots: Mapping[int, SdkBot] = _NO_BOTS) -> None:
        """Start a new game, and play it to the first decision of a seat without a bot.

        Args:
            seed: the seed as `referee play` takes it in `--seed`. Other types, such as numbers, are converted by `str`.
            bots: the bots by seat.
        """
        self.seed, ruleset, digest = seed, self.encoding.ruleset, deals.text_seed(str(seed))
        game = Game(ruleset, self.players, deals.deck(digest, deals.FREE_GAME, ruleset))
        self._game, self.decision = game, None
        self._bots = _Bots(game, digest, bots) if bots else None
        if self._bots is not None:
            self._bots.decide_all()
        self.decision = game.decision

    def step(self, number: int) -> None:
        """Apply the action with this number, and play to the next decision of a seat without a bot.

        Raises MaskedActionError and changes nothing when the action is not legal.
        """
        game, decision = self.game, self.decision
        action = decode_action(number, decision.legal if decision else ())
        self.decision = None
        events = game.apply(action)
        if self._bots is not None:
            self._bots.note(events)
            self._bots.decide_all()
        self.decision = game.decision

    def observe(self, seat: int) -> dict[str, Array]:
        """Return the observation and the mask of a seat. If the seat does not have to decide now, its mask is all 0."""
        game, decision = self.game, self.decision
        return {
            "observation": self.encoding.observe(game.view(seat), game.kind),
            "action_mask": make_mask(decision.legal if decision and decision.seat == seat else ()),
        }

    def rewards(self) -> tuple[float, ...]:
        """Return the reward of each seat: 0 until the game is over."""
        outcome = self.game.outcome
        return (0.0,) * self.players if outcome is None else self._reward(outcome)

    def render(self, mode: str | None) -> str | None:
        """Print the table if the mode is `human`, return it as a text if it is `ansi`, and do nothing if it is None.

        The table shows all cards, also those that are hidden from the seats.
        """
        if mode is None:
            return None
        from rich.console import Console  # noqa: PLC0415 - only rendering needs it

        from referee.reports.playthrough import table_view  # noqa: PLC0415 - the same

        console = Console(width=100, no_color=True)
        with console.capture() as captured:
            console.print(table_view(self.game, [f"seat_{seat}" for seat in range(self.players)]))
        if mode == "ansi":
            return captured.get()
        print(captured.get())  # noqa: T201 - the mode `human` prints
        return None


class _Bots:
    """Let bots decide for their seats in a game. They get the messages that the referee would send."""

    def __init__(self, game: Game, seed: bytes, bots: Mapping[int, SdkBot]) -> None:
        self._game = game
        self._id = deals.opaque_id(seed, deals.FREE_GAME)
        self._encoder = messages.RequestEncoder(self._id)
        self._sessions = {seat: Session(bot) for seat, bot in bots.items()}
        self._time = SeatClock(_CLOCKS).decision_time()
        self._log = EventLog(game.players)
        self._moves = 0
        """The number of decisions so far."""
        for seat, session in self._sessions.items():
            start = messages.game_start(
                self._id,
                rules=game.ruleset,
                view=game.view(seat),
                clocks=_CLOCKS,
                seed=deals.bot_seed(seed, deals.FREE_GAME, seat),
                names=(),
                max_strikes=FREE_GAME_MAX_STRIKES,
            )
            session.receive_bytes(start)

    def note(self, events: tuple[Event, ...]) -> None:
        """Count a decision of any seat, and keep its unredacted events for the messages to the bots."""
        self._moves += 1
        self._log.add(events)

    def decide_all(self) -> None:
        """Let the bots decide until a seat without a bot must decide. At the end of the game, tell them the result.

        Raises IllegalActionError if a bot returns an illegal action, and passes on exceptions of bots as `Session.receive` does.
        """
        game = self._game
        while (decision := game.decision) is not None and decision.seat in self._sessions:
            action = self._request(decision)
            try:
                events = game.apply(action)
            except IllegalActionError as error:
                raise IllegalActionError(f"the bot on seat {decision.seat}: {error}") from None
            self.note(events)
        if game.outcome is None:
            return
        for seat, session in self._sessions.items():
            events = self._log.take(seat)
            ranks = game.outcome.ranks
            session.receive_bytes(
                messages.game_end(self._id, events, ranks, reason="", forfeited=False)
            )

    def _request(self, decision: Decision) -> Action:
        """Request a decision from the bot of its seat, and return the bot's action, decoded as the referee decodes it."""
        seat, number = decision.seat, self._moves + 1
        view, events = self._game.view(seat), self._log.take(seat)
        request = Request(number, view, decision, events, self._time)
        reply = self._sessions[seat].receive_bytes(self._encoder.encode(request))
        [found] = messages.parse_bot_message(reply).replies
        return messages.parse_action(found.action.SerializeToString(), request)
