"""What comes out of a check: steps with their verdicts, and what was measured. Values only.

How decisions, answers and faults are told to the author of a bot: in the words of the protocol.
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


class Verdict(Enum):
    """What is to be said of a step."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIP = "skip"
    """It could not be tried, or there is nothing to try."""
    INFO = "info"
    """Told, not judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a step found."""

    verdict: Verdict
    came: str
    """What happened, or why nothing was tried; one line or several."""
    expected: str = ""
    """What should have come; empty where nothing was wrong."""
    output: str = ""
    """The end of what the bot (or its build) printed, where something was wrong; printable."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step that is done."""

    number: int
    """From 1."""
    name: str
    finding: Finding
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Latency:
    """How long a bot took for decisions of one kind, in microseconds, the stream included."""

    kind: DecisionKind
    answers: int
    p50_us: int
    p95_us: int
    max_us: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What the bot's processes took of the machine."""

    cpu_s: float
    """Of all processes of the whole check; without those that lived too short to be seen."""
    memory_bytes: int
    """The most that one run of the bot held at a time, its children included (RSS)."""


@dataclass(frozen=True, slots=True)
class Strength:
    """How a bot fares against seats that do anything that is legal."""

    ruleset: str
    players: int
    games: int
    margin: float
    """Its score minus the others', on average."""
    interval: float
    """The true average is within margin ± interval with 95 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole check."""

    bot: BotId | None
    """None where there is no manifest to say."""
    steps: tuple[Step, ...]
    latencies: tuple[Latency, ...]
    """In the order of `DecisionKind`; only kinds that were answered."""
    usage: Usage | None
    """None where the bot never ran."""
    strength: Strength | None
    copy: Copy | None = None
    """What was built and played; None where it did not come to that."""

    @property
    def ok(self) -> bool:
        """Whether no step failed."""
        return not self.failed

    @property
    def failed(self) -> Sequence[Step]:
        """The steps that failed."""
        return [step for step in self.steps if step.finding.verdict is Verdict.FAIL]


class StepFailure(Exception):
    """Something is wrong with the bot; the step that met it fails."""

    def __init__(self, expected: str, came: str, output: str = "") -> None:
        super().__init__(f"{came}; expected: {expected}")
        self.expected = expected
        self.came = came
        self.output = output

    @property
    def finding(self) -> Finding:
        """The same as the finding of a step."""
        return Finding(
            verdict=Verdict.FAIL, came=self.came, expected=self.expected, output=self.output
        )


def passed(came: str) -> Finding:
    """All is well."""
    return Finding(verdict=Verdict.PASS, came=came)


def skipped(why: str) -> Finding:
    """Nothing was tried."""
    return Finding(verdict=Verdict.SKIP, came=why)


def told(what: str) -> Finding:
    """Something to know."""
    return Finding(verdict=Verdict.INFO, came=what)


_LISTED = 6
"""Legal actions that are named; of more, it is said how many."""
_OF_THE_PROCESS = {Cause.CRASH, Cause.EXITED_EARLY, Cause.HANDSHAKE}
"""Causes whose details are a sentence without its subject."""


def kind_name(kind: DecisionKind) -> str:
    """`take or leave`."""
    return kind.value.replace("-", " ")


def enum_name(kind: DecisionKind) -> str:
    """`DECISION_KIND_TAKE_OR_LEAVE`."""
    return f"DECISION_KIND_{kind.name}"


def action_words(action: Action) -> str:
    """An action as the fields of its message: `play {value 7, naturals 2, jokers 1}`."""
    match action:
        case Choice():
            return f"CHOICE_{action.name}"
        case Play(layer):
            return f"play {{value {layer.value}, naturals {layer.naturals}, jokers {layer.jokers}}}"
        case DrawDisplay(slot, cards):
            held = "+".join(map(card_name, cards)) or "empty"
            return f"draw_display {{slot {slot}}} ({held})"
        case _:
            return f"ghost_value {action.value}"


def legal_words(decision: Decision) -> str:
    """What would have been right."""
    legal = decision.legal
    names = ", ".join(map(action_words, legal[:_LISTED]))
    more = f", … ({len(legal) - _LISTED} more)" if len(legal) > _LISTED else ""
    return f"one of the request's legal actions: {names}{more}"


def fault_words(fault: BotFault) -> str:
    """What came in place of an answer."""
    detail = fault.evidence.detail
    subject = f"the bot's process {detail}" if fault.cause in _OF_THE_PROCESS else detail
    return f"{subject} ({fault.cause.value})"


def listed(names: Iterable[str]) -> str:
    """`classic, basic and duel`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def counted(number: int, noun: str) -> str:
    """`1 game`, `3 games`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
