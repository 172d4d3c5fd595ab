"""Test the command `bots check` and its output, with a check that returns prepared findings."""

import io
import json

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from referee.check import LEFT_OUT, Finding, Report, Step, StepVerdict, skip_because
from referee.check.conformance import QUICK_STEPS, STEPS, choose_steps
from referee.cli import submit as command
from referee.errors import UserError
from referee.records import BotId
from referee.reports.checks import CheckView, check_data, check_summary, step_view

GOOD = Finding(verdict=StepVerdict.PASS, happened="12 answers")
BAD = Finding(
    verdict=StepVerdict.FAIL,
    expected="one of [CHOICE_TAKE]",
    happened="ghost_value 13\nin duel",
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
    """Return a function that makes the command with a check that has the given findings.

    The attribute `calls` has the logs and the chosen steps of each check.
    """
    calls = []

    def make(*findings):
        async def check(_folder, _workshop, *, on_begin, on_step, logs, chosen, **_):
            calls.append((logs, chosen))
            done = report(*findings)
            for step in done.steps:
                on_begin(step.number, step.name)
                on_step(step)
            return done

        monkeypatch.setattr(command, "check_bot", check)
        made = typer.Typer()
        made.command()(command.check)
        return made

    make.calls = calls
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
    printed = text.split("printed")[1]
    assert [line.strip() for line in printed.splitlines()][:7] == [
        *(f"line {number}" for number in range(5)), "… 6 lines left out …", "line 11",
    ]  # fmt: skip
    assert "line 19" in printed
    assert "\\x1b[31mred" in text


@pytest.mark.parametrize("width", [20, 30, 40, 59, 60, 80, 140])
def test_all_parts_of_a_step_are_visible_in_a_narrow_terminal(width):
    good, bad = (rendered(step_view(Step(12, "hello", each, 0.1)), width) for each in (GOOD, BAD))
    assert good.split() == ["12", "pass", "hello", "12", "answers"]
    assert bad.split()[:7] == ["12", "FAIL", "hello", "expected", "one", "of", "[CHOICE_TAKE]"]
    assert bad.split()[7:12] == ["happened", "ghost_value", "13", "in", "duel"]


def test_summary_names_the_failed_steps():
    assert check_summary(report(GOOD, GOOD)).plain == "mine@1: the check has passed."
    assert check_summary(report(GOOD, BAD)).plain == "mine@1: step 2 failed."
    assert check_summary(report(BAD, BAD)).plain == "mine@1: steps 1, 2 failed."


def test_summary_of_chosen_steps_does_not_say_that_the_check_has_passed():
    text = check_summary(report(GOOD, skip_because(LEFT_OUT))).plain
    assert text == "mine@1: the chosen steps have passed."


def crash(step, trace):
    return Finding(
        verdict=StepVerdict.FAIL,
        expected=f"a reply {step}",
        happened=f"the bot exited with 1 (crash)\nin step {step}",
        output=f"start {step}\n{trace}",
        symptom="crash",
    )


TRACE = 'Traceback\n  File "bot.py", line {}, in decide\n    x\nKeyError: {}\n'


def shown(*findings):
    view = CheckView()
    steps = report(*findings).steps
    lines = [line for step in steps for line in view.add(step)]
    return [
        text.rstrip() for line in (*lines, *view.finish()) for text in rendered(line).splitlines()
    ]


def test_same_fault_in_several_steps_is_told_once():
    lines = shown(
        crash(1, TRACE.format(7, "a")),
        crash(2, TRACE.format(7, "b")),
        crash(3, TRACE.format(9, "a")),
    )
    assert sum("expected" in line for line in lines) == 2
    (again,) = (line for line in lines if "as in step" in line)
    assert " ".join(again.split()) == "2 FAIL step 2 as in step 1: the bot exited with 1 (crash)"


def test_failures_without_a_symptom_are_all_told():
    assert sum("expected" in line for line in shown(BAD, BAD)) == 2


def test_steps_that_are_skipped_for_one_reason_are_one_line():
    one, other = skip_because("one game"), skip_because("no game")
    lines = [line.split(maxsplit=2) for line in shown(GOOD, one, one, one, other, GOOD, one, one)]
    assert [line[:2] for line in lines] == [
        ["1", "pass"], ["2", "skip"], ["5", "skip"], ["6", "pass"], ["7", "skip"],
    ]  # fmt: skip
    assert lines[1][2].split(maxsplit=2) == ["3", "steps", "step 2 to step 4: one game"]
    assert lines[2][2].split(maxsplit=2) == ["step", "5", "no game"]


def test_json_of_a_check_has_all_fields():
    first, second = check_data(report(GOOD, BAD))["steps"]
    assert first["verdict"] == "pass"
    assert second == {
        "number": 2,
        "name": "step 2",
        "verdict": "fail",
        "expected": BAD.expected,
        "came": BAD.happened,
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


def test_options_choose_the_steps(app, tmp_path):
    words = [str(tmp_path), "--isolation", "none"]
    CliRunner().invoke(app(GOOD), words)
    CliRunner().invoke(app(GOOD), [*words, "--quick", "--logs", str(tmp_path / "logs")])
    CliRunner().invoke(app(GOOD), [*words, "--only", "goodbye", "--only", "games at"])
    (no_logs, everything), (logs, quick), (_, some) = app.calls
    assert (no_logs, everything) == (None, STEPS)
    assert logs.folder == tmp_path / "logs"
    assert quick == QUICK_STEPS
    assert some == {*STEPS[:4], "goodbye", "games at once"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--quick", "--only", "hello"], "--quick, --only: choose one of them"),
        (["--only", "x"], "--only: no step begins with 'x'; choose one of manifest, build, "),
    ],
)
def test_wrong_choice_of_steps_is_bad_input(app, tmp_path, options, message):
    done = CliRunner().invoke(app(GOOD), [str(tmp_path), *options])
    assert isinstance(done.exception, UserError)
    assert str(done.exception).startswith(message)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("Decisions: d", {"decisions: duel"}),
        ("nothing", {"goodbye", "SIGTERM", "nothing left running"}),
        ("games kept", {"games at once", "games kept apart"}),
        ("latency", {"latency", *STEPS[10:14]}),
    ],
)
def test_chosen_steps_come_with_those_that_they_need(text, chosen):
    assert choose_steps([text]) == {*STEPS[:4], *chosen}


def test_missing_folder_is_bad_input(app, tmp_path):
    done = CliRunner().invoke(app(GOOD), [str(tmp_path / "none")])
    assert isinstance(done.exception, UserError)
    assert "no such folder" in str(done.exception)


def test_file_instead_of_a_folder_is_bad_input(app, tmp_path):
    (tmp_path / "bot.toml").touch()
    done = CliRunner().invoke(app(GOOD), [str(tmp_path / "bot.toml")])
    assert str(done.exception) == f"{tmp_path}/bot.toml: is a file; name its folder"
