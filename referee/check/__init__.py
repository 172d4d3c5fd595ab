"""Check a bot for `referee bots check`: build it, start it, play with it, and report on every step.

Nothing here prints. A step fails only where the bot breaks the guide for bot authors (`proto/README.md`).
All deals and positions come from fixed seeds, so the same bot always gets the same requests.

`conformance` has the list of steps and runs them. `lifecycle_steps`, `decision_steps` and `game_steps` have the
steps themselves. `bot_under_test` starts the bot for them, and `games` plays with it. This module has the results:
the steps with their verdicts, and the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from referee.errors import BotFault, Cause
from referee.records import BotId
from referee.roster.workshop import Copy
from referee.rules.actions import Action, Choice, Decision, DecisionKind, DrawDisplay, Play
from referee.rules.cards import card_name


class StepVerdict(Enum):
    """The outcome of a step."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIP = "skip"
    """The step was not tried, or does not apply to the bot."""
    INFO = "info"
    """Information only; the bot is not judged by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of a step with its explanation."""

    verdict: StepVerdict
    came: str
    """What happened, or why the step was skipped; one line or several."""
    expected: str = ""
    """What should have happened; empty unless the step failed."""
    output: str = ""
    """The end of the output of the bot or of its build, printable; empty unless the step failed."""


@dataclass(frozen=True, slots=True)
class Step:
    """A finished step."""

    number: int
    """The number of the step, from 1."""
    name: str
    finding: Finding
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Latency:
    """The response times of a bot for one kind of decision, from writing the request to reading the reply."""

    kind: DecisionKind
    answers: int
    """The number of decisions."""
    p50_us: int
    """The median, in microseconds."""
    p95_us: int
    """The 95th percentile, in microseconds."""
    max_us: int
    """The maximum, in microseconds."""


@dataclass(frozen=True, slots=True)
class CheckUsage:
    """The CPU time and memory of the bot's processes."""

    cpu_s: float
    """The CPU time of all processes of the check, except those too short-lived to be measured."""
    memory_bytes: int
    """The highest resident memory (RSS) of one run of the bot with its child processes."""


@dataclass(frozen=True, slots=True)
class Strength:
    """The strength of a bot against players that choose random legal actions."""

    ruleset: str
    """The name of the ruleset of all games."""
    players: int
    """The number of players at the table, with the bot."""
    games: int
    """The number of games."""
    margin: float
    """The mean over the games of the bot's score minus the mean score of the others."""
    interval: float
    """Half the width of the 95 % confidence interval of the margin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a check."""

    bot: BotId | None
    """The bot; None if its manifest could not be read."""
    steps: tuple[Step, ...]
    latencies: tuple[Latency, ...]
    """The latencies in the order of `DecisionKind`, without kinds that the bot never decided."""
    usage: CheckUsage | None
    """The usage; None if the bot never ran."""
    strength: Strength | None
    """The strength; None if it was not measured."""
    copy: Copy | None = None
    """The built copy of the bot's folder; None if there is none, because an earlier step failed."""

    @property
    def ok(self) -> bool:
        """Whether no step has failed."""
        return not self.failed

    @property
    def failed(self) -> Sequence[Step]:
        """The failed steps."""
        return [step for step in self.steps if step.finding.verdict is StepVerdict.FAIL]


class StepFailure(Exception):
    """A mistake of the bot, which fails the current step."""

    def __init__(self, expected: str, came: str, output: str = "") -> None:
        super().__init__(f"{came}; expected: {expected}")
        self.expected = expected
        self.came = came
        self.output = output

    @property
    def finding(self) -> Finding:
        """The finding of the failed step."""
        return Finding(
            verdict=StepVerdict.FAIL, came=self.came, expected=self.expected, output=self.output
        )


def pass_with(came: str) -> Finding:
    """Return the finding of a step that passed."""
    return Finding(verdict=StepVerdict.PASS, came=came)


def skip_because(reason: str) -> Finding:
    """Return the finding of a step that was not tried."""
    return Finding(verdict=StepVerdict.SKIP, came=reason)


def inform(information: str) -> Finding:
    """Return the finding of a step that only informs."""
    return Finding(verdict=StepVerdict.INFO, came=information)


_MAX_LISTED = 6
"""How many legal actions a text lists; it gives only the number of the others."""
_PROCESS_CAUSES = {Cause.CRASH, Cause.EXITED_EARLY, Cause.HANDSHAKE}
"""Causes whose detail is a sentence without its subject, the bot's process."""


def kind_name(kind: DecisionKind) -> str:
    """Return the kind for people: `take or leave`."""
    return kind.value.replace("-", " ")


def enum_name(kind: DecisionKind) -> str:
    """Return the kind's name in the protocol: `DECISION_KIND_TAKE_OR_LEAVE`."""
    return f"DECISION_KIND_{kind.name}"


def action_text(action: Action) -> str:
    """Return an action as the fields of its message: `play {value 7, naturals 2, jokers 1}`."""
    match action:
        case Choice():
            return f"CHOICE_{action.name}"
        case Play(layer):
            return f"play {{value {layer.value}, naturals {layer.naturals}, jokers {layer.jokers}}}"
        case DrawDisplay(slot, cards):
            cards_text = "+".join(map(card_name, cards)) or "empty"
            return f"draw_display {{slot {slot}}} ({cards_text})"
        case _:
            return f"ghost_value {action.value}"


def legal_actions_text(decision: Decision) -> str:
    """Return the legal actions of a decision, as the expectation of a step."""
    legal = decision.legal
    names = ", ".join(map(action_text, legal[:_MAX_LISTED]))
    more = f", … ({len(legal) - _MAX_LISTED} more)" if len(legal) > _MAX_LISTED else ""
    return f"one of the request's legal actions: {names}{more}"


def fault_text(fault: BotFault) -> str:
    """Return a fault as what the bot did instead of replying."""
    detail = fault.evidence.detail
    subject = f"the bot's process {detail}" if fault.cause in _PROCESS_CAUSES else detail
    return f"{subject} ({fault.cause.value})"


def join_names(names: Iterable[str]) -> str:
    """Join names: `classic, basic and duel`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun: `1 game`, `3 games`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
