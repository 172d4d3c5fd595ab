"""Test the command `bots check` and its output, with a check that returns prepared findings."""

import io
import json

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from referee.check import Finding, Report, Step, StepVerdict
from referee.cli import submit as command
from referee.errors import UserError
from referee.records import BotId
from referee.reports.checks import check_data, check_summary, step_view

GOOD = Finding(verdict=StepVerdict.PASS, came="12 answers")
BAD = Finding(
    verdict=StepVerdict.FAIL,
    expected="one of [CHOICE_TAKE]",
    came="ghost_value 13\nin duel",
    output="".join(f"line {number}\n" for number in range(20)) + "\x1b[31mred",
)


def report(*findings):
    steps = (Step(n, f"step {n}", finding, 0.5) for n, finding in enumerate(findings, start=1))
    return Report(
        bot=BotId("mine", "1"), steps=tuple(steps), latencies=(), usage=None, strength=None
    )


def rendered(renderable, width=80):
    console = Console(width=width, file=io.StringIO())
    console.print(renderable)
    return console.file.getvalue()


@pytest.fixture
def app(monkeypatch):
    """Return a function that makes the command with a check that has the given findings."""

    def make(*findings):
        async def check(_folder, _workshop, *, on_begin, on_step):
            done = report(*findings)
            for step in done.steps:
                on_begin(step.number, step.name)
                on_step(step)
            return done

        monkeypatch.setattr(command, "check_bot", check)
        made = typer.Typer()
        made.command()(command.check)
        return made

    return make


@pytest.mark.parametrize("width", [80, 120])
def test_passed_step_is_one_line(width):
    assert rendered(step_view(Step(7, "hello", GOOD, 0.1)), width).split() == [
        "7", "pass", "hello", "12", "answers",
    ]  # fmt: skip


def test_failed_step_has_expectation_result_and_output():
    text = rendered(step_view(Step(7, "hello", BAD, 0.1)))
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines[0].split() == ["7", "FAIL", "hello"]
    assert lines[1].split("expected")[1].strip() == "one of [CHOICE_TAKE]"
    assert lines[2].split("happened")[1].strip() == "ghost_value 13"
    assert "line 10" not in text
    assert "line 19" in text
    assert "\\x1b[31mred" in text


def test_summary_names_the_failed_steps():
    assert check_summary(report(GOOD, GOOD)).plain == "mine@1: the check has passed."
    assert check_summary(report(GOOD, BAD)).plain == "mine@1: step 2 failed."
    assert check_summary(report(BAD, BAD)).plain == "mine@1: steps 1, 2 failed."


def test_json_of_a_check_has_all_fields():
    first, second = check_data(report(GOOD, BAD))["steps"]
    assert first["verdict"] == "pass"
    assert second == {
        "number": 2,
        "name": "step 2",
        "verdict": "fail",
        "expected": BAD.expected,
        "came": BAD.came,
        "output": BAD.output,
        "elapsed_s": 0.5,
    }


@pytest.mark.parametrize(("findings", "code"), [((GOOD,), 0), ((GOOD, BAD), 1)])
def test_exit_code_is_1_if_a_step_failed(app, tmp_path, findings, code):
    words = [str(tmp_path), "--isolation", "none"]
    done = CliRunner().invoke(app(*findings), words)
    assert done.exit_code == code
    assert "step 1" in done.stdout
    done = CliRunner().invoke(app(*findings), [*words, "--json"])
    assert done.exit_code == code
    assert json.loads(done.stdout)["ok"] == (code == 0)


def test_missing_folder_is_bad_input(app, tmp_path):
    done = CliRunner().invoke(app(GOOD), [str(tmp_path / "none")])
    assert isinstance(done.exception, UserError)
    assert "no such folder" in str(done.exception)
