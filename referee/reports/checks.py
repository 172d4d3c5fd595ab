"""Show the conformance check of a bot, and the isolation that this machine gives.

The check is shown to people step by step, and to programs as one JSON value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from referee.check import LEFT_OUT, Report, Step, StepVerdict
from referee.errors import cut_lines
from referee.reports.formats import Column, visible
from referee.sandbox import Isolation

_STYLES = {
    StepVerdict.PASS: "green",
    StepVerdict.FAIL: "bold red",
    StepVerdict.SKIP: "yellow",
    StepVerdict.INFO: "cyan",
}
_NAME_WIDTH = 24
"""Width of the column with the names of the steps, in characters."""
_NARROW = 60
"""A terminal with fewer columns is too narrow for cells side by side."""
_FIRST_LINES, _LAST_LINES = 5, 10
"""How many lines the terminal shows from the beginning and from the end of a long output. The first error of a compiler, for
example, is at the beginning."""


def step_view(step: Step) -> Group:
    """Return the lines of a step.

    The lines of a failed step say what should have happened, what happened, and what the bot printed.
    """
    finding = step.finding
    failed = finding.verdict is StepVerdict.FAIL
    head = _line(step, "" if failed else finding.happened)
    if not failed:
        return Group(head)
    parts = [("expected", finding.expected), ("happened", finding.happened)]
    if finding.output.strip():
        lines = cut_lines(finding.output.rstrip().split("\n"), _FIRST_LINES, _LAST_LINES)
        parts.append(("printed", "\n".join(lines)))
    body = [
        _Cells((Text(""), Text(label, style="dim"), Text(visible(text, lines=True))), (7, 8))
        for label, text in parts
    ]
    return Group(head, *body)


class CheckView:
    """Shows the steps of a running check, and shortens what repeats.

    Consecutive steps that are skipped for the same reason share one line. A step that fails like an earlier step gets
    only one line, which names the earlier step. The JSON value of the check has all steps in full.
    """

    def __init__(self) -> None:
        self._skipped: list[Step] = []
        """Skipped steps that are not shown yet; all have the same reason."""
        self._failed: dict[tuple[str, str], int] = {}
        """Maps the symptom of a failure and a line of the output (`_end_of`) to the number of the first step with
        both."""

    def add(self, step: Step) -> Iterator[RenderableType]:
        """Add a step, and yield what can be shown now."""
        finding = step.finding
        is_skipped = finding.verdict is StepVerdict.SKIP
        if self._skipped and (
            not is_skipped or finding.happened != self._skipped[0].finding.happened
        ):
            yield from self.finish()
        if is_skipped:
            self._skipped.append(step)
            return
        if finding.symptom:
            key = finding.symptom, _end_of(finding.output)
            first = self._failed.setdefault(key, step.number)
            if first != step.number:
                yield _line(step, f"as in step {first}: {finding.happened.partition(chr(10))[0]}")
                return
        yield step_view(step)

    def finish(self) -> Iterator[RenderableType]:
        """Yield the line of the skipped steps that are not shown yet, if any. Call this after the last step."""
        steps, self._skipped = self._skipped, []
        if len(steps) == 1:
            yield step_view(steps[0])
        elif steps:
            first, last = steps[0], steps[-1]
            what = f"{first.name} to {last.name}: {first.finding.happened}"
            yield _Cells(
                (
                    Text(f"{first.number:2}"),
                    Text("skip", style=_STYLES[StepVerdict.SKIP]),
                    Text(f"{len(steps)} steps"),
                    Text(visible(what, lines=True)),
                ),
                (2, 4, _NAME_WIDTH),
            )


def _end_of(output: str) -> str:
    """Return the line that best shows why a program failed.

    This is the last line that names a file in a Python traceback. Without a traceback, it is the last line.
    """
    lines = output.rstrip().split("\n")
    places = [line for line in lines if line.startswith('  File "')]
    return (places or lines)[-1]


def check_summary(report: Report) -> Text:
    """Return the last line: whether the check passed, or which steps failed."""
    if report.ok:
        is_whole = all(step.finding.happened != LEFT_OUT for step in report.steps)
        what = "the check has passed" if is_whole else "the chosen steps have passed"
        return Text(visible(f"{report.bot}: {what}."), style="bold green")
    numbers = ", ".join(str(step.number) for step in report.failed)
    steps = "step" if len(report.failed) == 1 else "steps"
    return Text(visible(f"{report.bot or 'This bot'}: {steps} {numbers} failed."), style="bold red")


def check_lines(data: Mapping[str, Any]) -> Table:
    """Return a summary of a passed check: the number of passed steps, then each step that was skipped or only informs.

    Args:
        data: the stored report, as `check_data` returns it.
    """
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    passed = sum(step["verdict"] == StepVerdict.PASS.value for step in data["steps"])
    grid.add_row(
        "check passed", f"{passed} of {len(data['steps'])} steps; skipped or for information only:"
    )
    for step in data["steps"]:
        if step["verdict"] != StepVerdict.PASS.value:
            grid.add_row(Text(f"  {step['name']}"), Text(visible(step["came"], lines=True)))
    return grid


def check_data(report: Report) -> dict[str, object]:
    """Return the report of a check as a JSON value. `referee/ratings/README.md` describes the keys."""
    return {
        "bot": None if report.bot is None else str(report.bot),
        "ok": report.ok,
        "steps": [
            {
                "number": step.number,
                "name": step.name,
                "verdict": step.finding.verdict.value,
                "expected": step.finding.expected,
                "came": step.finding.happened,
                "output": step.finding.output,
                "elapsed_s": step.elapsed_s,
            }
            for step in report.steps
        ],
        "measurements": {
            "latency": [asdict(each) | {"kind": each.kind.value} for each in report.latencies],
            "usage": None if report.usage is None else asdict(report.usage),
            "strength": None if report.strength is None else asdict(report.strength),
        },
    }


def _line(step: Step, text: str) -> _Cells:
    """Return the line of a step: number, verdict, name, and a text."""
    verdict = step.finding.verdict
    failed = verdict is StepVerdict.FAIL
    return _Cells(
        (
            Text(f"{step.number:2}"),
            Text(verdict.value.upper() if failed else verdict.value, style=_STYLES[verdict]),
            Text(step.name, style="bold" if failed else ""),
            Text(visible(text, lines=True)),
        ),
        (2, 4, _NAME_WIDTH),
    )


@dataclass(frozen=True, slots=True)
class _Cells:
    """Cells side by side. In a narrow terminal they are joined into one text, because a table would not show all of them."""

    cells: tuple[Text, ...]
    widths: tuple[int, ...]
    """The widths of all cells except the last one."""

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width < _NARROW:
            yield Text("  ").join(cell for cell in self.cells if cell)
            return
        grid = Table.grid(padding=(0, 2, 0, 0), expand=False)
        for width in self.widths:
            grid.add_column(width=width, no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(*self.cells)
        yield grid


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionRow:
    """A protection of the isolation, and whether it is on."""

    protection: Annotated[str, Column("protection")]
    state: Annotated[str, Column("state")]
    """`on`, `partial` or `off`."""
    reason: Annotated[str, Column("reason", wrap=True)]
    """What the probe found, or why the state needs no probe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRow:
    """A rung of isolation that this machine cannot give."""

    rung: Annotated[str, Column("rung")]
    reason: Annotated[str, Column("reason", wrap=True)]
    advice: Annotated[str, Column("advice", wrap=True)]


def protection_rows(isolation: Isolation) -> tuple[ProtectionRow, ...]:
    """Return a row for each protection."""
    return tuple(
        ProtectionRow(protection=each.protection.value, state=each.state.value, reason=each.reason)
        for each in isolation.results
    )


def refusal_rows(isolation: Isolation) -> tuple[RefusalRow, ...]:
    """Return a row for each rung that was refused, highest rung first."""
    return tuple(
        RefusalRow(rung=each.rung.value, reason=each.reason, advice=each.advice)
        for each in isolation.refusals
    )
