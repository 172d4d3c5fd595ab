"""What comes out of a check: steps with their verdicts, and what was measured. Values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from referee.records import BotId
from referee.roster import Copy
from referee.rules.actions import DecisionKind


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


class Trouble(Exception):
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
