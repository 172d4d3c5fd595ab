"""Check a bot for `referee bots check`: build it, start it, play with it, and report on every step.

This package prints nothing; `reports/checks.py` shows the report. If a step fails, the bot has broken a
rule of the guide for bot authors (`proto/README.md`). Every check uses the same deals, from a fixed seed.

`conformance` runs the steps in order. `lifecycle_steps`, `decision_steps` and `game_steps` contain the steps.
`bot_under_test` starts the bot for the steps, and `games` plays games with the bot. This module has the types of
the results, and functions that return texts for the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from referee.errors import BotFault, count_text
from referee.records import BotId
from referee.roster.workshop import Copy
from referee.rules.actions import Decision, DecisionKind, action_text


class StepVerdict(Enum):
    """The verdict on one step of a check."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIP = "skip"
    """The step was not tried, or does not apply to the bot."""
    INFO = "info"
    """The finding is information about the bot, for example the latency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The verdict on a step with its explanation."""

    verdict: StepVerdict
    happened: str
    """What happened, what was measured, or why the step was skipped; one line or several."""
    expected: str = ""
    """For a failed step, what should have happened."""
    output: str = ""
    """For a failed step, what was printed, as printable text: the end of the bot's output, or the first and the last lines
    of its fetch and build."""
    symptom: str = ""
    """For a failed step, what went wrong, such as `crash` or `play: illegal`. It does not say where in the game. Empty if it
    is not known. If two steps have the same symptom and the same end of the output, the reason is probably the same mistake."""


@dataclass(frozen=True, slots=True)
class Step:
    """A finished step."""

    number: int
    """The number of the step, from 1."""
    name: str
    finding: Finding
    elapsed_s: float
    """The duration of the step in seconds."""


@dataclass(frozen=True, slots=True)
class Latency:
    """The times from request to reply for one kind of decision."""

    kind: DecisionKind
    answers: int
    """How many replies were measured."""
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
    """The CPU time of all processes of the bot, in seconds. Processes that lived very briefly may be missing."""
    memory_bytes: int
    """The largest measured resident memory (RSS) of one bot process together with its descendants."""


@dataclass(frozen=True, slots=True)
class Strength:
    """The strength of a bot against players that choose random legal actions."""

    ruleset: str
    """The name of the ruleset of all games."""
    players: int
    """The number of players at the table, the bot included."""
    games: int
    """The number of games."""
    margin: float
    """The bot's score minus the mean score of the other players, on average over all games."""
    interval: float
    """Half the width of the 95 % confidence interval of `margin`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a check."""

    bot: BotId | None
    """The bot; None if its manifest could not be read."""
    steps: tuple[Step, ...]
    latencies: tuple[Latency, ...]
    """The latency of each kind of decision that was measured, in the order of `DecisionKind`."""
    usage: CheckUsage | None
    """The usage; None if no process of the bot was measured."""
    strength: Strength | None
    """The strength; None if it was not measured."""
    copy: Copy | None = None
    """The built copy of the bot's folder; None if the step `manifest` or `build` failed."""

    @property
    def ok(self) -> bool:
        """Whether no step has failed."""
        return not self.failed

    @property
    def failed(self) -> Sequence[Step]:
        """The failed steps."""
        return [step for step in self.steps if step.finding.verdict is StepVerdict.FAIL]


LEFT_OUT = "left out"
"""The text in `Finding.happened` if a step was skipped because the user did not choose it."""


class StepFailure(Exception):
    """The bot has made a mistake, and the current step fails. See `Finding` for the arguments."""

    def __init__(
        self, expected: str, happened: str, output: str = "", *, symptom: str = ""
    ) -> None:
        super().__init__(f"{happened}; expected: {expected}")
        self.expected = expected
        self.happened = happened
        self.output = output
        self.symptom = symptom

    @property
    def finding(self) -> Finding:
        """The finding of the failed step."""
        return Finding(
            verdict=StepVerdict.FAIL,
            happened=self.happened,
            expected=self.expected,
            output=self.output,
            symptom=self.symptom,
        )


def pass_with(happened: str) -> Finding:
    """Return the finding of a step that passed."""
    return Finding(verdict=StepVerdict.PASS, happened=happened)


def skip_because(reason: str) -> Finding:
    """Return the finding of a step that was not tried or does not apply to the bot."""
    return Finding(verdict=StepVerdict.SKIP, happened=reason)


def inform(information: str) -> Finding:
    """Return the finding of a step that informs, for example about the latency."""
    return Finding(verdict=StepVerdict.INFO, happened=information)


_MAX_LISTED = 6
"""The maximum number of legal actions in a message. The message also says how many legal actions are left out."""


def dropped_text(count: int) -> str:
    """Return a sentence, without the full stop, that says how many messages of a bot were dropped."""
    return (
        f"{count_text(count, 'message')} of the bot belonged to no pending request and had no effect:"
        " reply once to each request, with its game_id and decision_id"
    )


def kind_name(kind: DecisionKind) -> str:
    """Return the name of a kind of decision for people, such as `take or leave`."""
    return kind.value.replace("-", " ")


def enum_name(kind: DecisionKind) -> str:
    """Return the name of a kind of decision in the protocol, such as `DECISION_KIND_TAKE_OR_LEAVE`."""
    return f"DECISION_KIND_{kind.name}"


def legal_actions_text(decision: Decision) -> str:
    """Return the legal actions of a decision as text for `StepFailure.expected`."""
    legal = decision.legal
    names = ", ".join(map(action_text, legal[:_MAX_LISTED]))
    more = f", … ({len(legal) - _MAX_LISTED} more)" if len(legal) > _MAX_LISTED else ""
    return f"one of the request's legal actions: {names}{more}"


def fault_text(fault: BotFault) -> str:
    """Return a fault as text for `StepFailure.happened`, such as `the bot exited with 1 (crash)`."""
    return f"{fault.evidence.detail} ({fault.cause.value})"


def join_names(names: Iterable[str]) -> str:
    """Join at least one name to a text such as `classic, basic and duel`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
