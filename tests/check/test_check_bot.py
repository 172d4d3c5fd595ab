"""Test `check_bot` with good bots, and with one bot for each mistake."""

import os
import tempfile
from pathlib import Path

import psutil
import pytest

from referee.check import conformance, decision_steps, game_steps, games
from referee.check.conformance import check_bot
from referee.check.report import Verdict
from referee.clocks import Clocks
from referee.roster.workshop import Workshop
from referee.sandbox.process_group import ProcessGroupLauncher

HERE = Path(__file__).parent
SAMPLE_BOTS = HERE.parents[1] / "sample_bots"
MORE = pytest.mark.extended("checks more bots")
CLOCKS = Clocks(start_up_us=10_000_000, game_start_us=2_000_000, decision_us=1_500_000)
"""Long enough for a busy machine, short enough to wait for what never comes."""
STEPS = [
    "manifest",
    "build",
    "start",
    "hello",
    "decisions: classic",
    "decisions: basic",
    "decisions: advanced",
    "decisions: expert",
    "decisions: expert-jokers",
    "decisions: duel",
    "full games: 2 players",
    "full games: 3 players",
    "full games: 4 players",
    "full games: 5 players",
    "games at once",
    "games kept apart",
    "deterministic",
    "goodbye",
    "SIGTERM",
    "nothing left running",
    "latency",
    "CPU and memory",
    "strength",
]
SEEN_FROM_OUTSIDE = {"games kept apart", "nothing left running"}
"""Steps that compare what several processes have done, so that no one's output belongs to them."""
ALL_DECISIONS = STEPS[4:10]
ALL_GAMES = STEPS[10:14]


@pytest.fixture
def short(monkeypatch):
    """A bot that is asked as little as a slow one, where how much it is asked is not looked at."""
    monkeypatch.setattr(game_steps, "STRENGTH_GAMES", 8)
    monkeypatch.setattr(games, "TIME_BUDGET_S", 0.0)
    monkeypatch.setattr(decision_steps, "TIME_BUDGET_S", 0.0)


def bot_folder(folder, name, *, more=""):
    folder.mkdir(exist_ok=True)
    script = HERE / "bot.py"
    (folder / "bot.toml").write_text(
        'name = "suspect"\nversion = "1"\nauthor = "a"\nlanguage = "python"\n'
        f'{more}\n[run]\ncommand = ["python3", "{script}", "{name}"]\n'
    )
    return folder


async def checked(folder, **options):
    """The report, after it was seen that every step was told and nothing is left of it all."""
    begun, done = [], []
    with tempfile.TemporaryDirectory() as built:
        report = await check_bot(
            folder,
            Workshop(Path(built), ProcessGroupLauncher(), on_build=lambda _: None),
            on_begin=lambda number, name: begun.append((number, name)),
            on_step=done.append,
            **{"clocks": CLOCKS} | options,
        )
    assert tuple(done) == report.steps
    assert begun == list(enumerate(STEPS, start=1)) == [(s.number, s.name) for s in done]
    assert not [child for child in psutil.Process().children() if child.status() != "zombie"]
    return report


def named(report):
    return {step.name: step.finding for step in report.steps}


def failed(report):
    return [step.name for step in report.failed]


def said(report, name):
    finding = named(report)[name]
    return f"{finding.expected}\n{finding.came}\n{finding.output}"


@pytest.mark.parametrize(
    "bot",
    ["greedy", *(pytest.param(name, marks=MORE) for name in ("random", "counter"))],
)
async def test_sample_bots_pass(bot):
    report = await checked(SAMPLE_BOTS / bot, clocks=None)
    assert report.ok
    assert str(report.bot).startswith(f"{bot}@")
    assert [latency.kind.value for latency in report.latencies] == [
        "play",
        "take-or-leave",
        "reclaim-or-discard",
        "draw",
        "optional-draw",
        "ghost-set",
    ]
    assert all(0 < each.p50_us <= each.p95_us <= each.max_us for each in report.latencies)
    assert report.usage.cpu_s > 0
    assert report.usage.memory_bytes > 1 << 20
    assert report.strength.ruleset == "duel"
    in_intervals = report.strength.margin / report.strength.interval
    assert abs(in_intervals) < 3 if bot == "random" else in_intervals > 1
    assert "yes" in said(report, "deterministic")


@pytest.mark.parametrize(
    ("bot", "step", "words"),
    [
        ("exits_with_1", "start", ["exited with 1", "no model file"]),
        pytest.param("crashes_at_start", "start", ["SIGSEGV"], marks=MORE),
        ("hangs_at_start", "start", ["no hello within 3 s"]),
        pytest.param("closes_before_hello", "hello", ["closed its stream"], marks=MORE),
        ("speaks_version_2", "hello", ["protocol version 2", "protocol_version 1"]),
        pytest.param("has_wrong_token", "hello", ["wrong token", "REFEREE_TOKEN"], marks=MORE),
        pytest.param(
            "is_wrong_with_ghosts",
            "decisions: duel",
            ["GHOST_SET", "ghost_value 13", "5 of 5"],
            marks=MORE,
        ),
        pytest.param(
            "is_wrong_in_expert",
            "decisions: expert",
            ["DRAW_DECK", "ghost_value 13", "in expert"],
            marks=MORE,
        ),
        pytest.param(
            "names_the_last_game",
            "games at once",
            ["no reply", "game_id", "3 of 4 games"],
            marks=MORE,
        ),
        pytest.param(
            "mixes_its_games",
            "games kept apart",
            ["played alone", "beside 3 games", "game_id"],
            marks=MORE,
        ),
        pytest.param(
            "exits_at_goodbye",
            "goodbye",
            ["exited with 3", "exits with 0", "cannot save"],
            marks=MORE,
        ),
        pytest.param(
            "ignores_goodbye_alone",
            "goodbye",
            ["within 2 s of the goodbye", "still ran after 2."],
            marks=MORE,
        ),
        pytest.param(
            "ignores_sigterm",
            "SIGTERM",
            ["within 1 s of SIGTERM", "still ran after 1."],
            marks=MORE,
        ),
        pytest.param(
            "leaves_daemon", "nothing left running", ["after the goodbye: python3"], marks=MORE
        ),
    ],
)
@pytest.mark.usefixtures("short")
async def test_one_step_fails_and_says_why(tmp_path, bot, step, words):
    clocks = Clocks(start_up_us=3_000_000) if bot == "hangs_at_start" else CLOCKS
    report = await checked(bot_folder(tmp_path / "bot", bot), clocks=clocks)
    assert failed(report) == [step]
    for word in words:
        assert word in said(report, step)
    if step not in SEEN_FROM_OUTSIDE:
        assert f"I am {bot}" in said(report, step) or "Error: " in said(report, step)


@pytest.mark.parametrize(
    ("bot", "steps", "words"),
    [
        pytest.param("hangs", ALL_DECISIONS, "no reply within 1.5 s (timeout)", marks=MORE),
        pytest.param("never_ready", ALL_DECISIONS, "no ready within 2 s", marks=MORE),
        pytest.param("segfaults", ALL_DECISIONS, "SIGSEGV (crash)", marks=MORE),
        pytest.param("closes_stream", ALL_DECISIONS, "closed its stream", marks=MORE),
        pytest.param("says_garbage", ALL_DECISIONS, "no linko.v1.BotMessage", marks=MORE),
        ("answers_nothing", ALL_DECISIONS, "(malformed)"),
        pytest.param(
            "crashes_with_two",
            ["decisions: duel", "full games: 2 players"],
            "no third player",
            marks=MORE,
        ),
        pytest.param("crashes_at_the_end", ALL_GAMES, "after the end of the game", marks=MORE),
        pytest.param("ignores_goodbye", ["goodbye", "SIGTERM"], "it still ran", marks=MORE),
    ],
)
@pytest.mark.usefixtures("short")
async def test_all_steps_fail_that_meet_it(tmp_path, bot, steps, words):
    report = await checked(bot_folder(tmp_path / "bot", bot))
    assert failed(report) == steps
    for step in steps:
        assert words in said(report, step)
    for finding in named(report).values():
        assert finding.came
        assert (finding.verdict is Verdict.FAIL) == bool(finding.expected)


@MORE
@pytest.mark.parametrize(
    "bot",
    ["holds_four", "is_by_chance", "plain", "takes_its_time", "prints_for_ever", "is_wrapped"],
)
@pytest.mark.usefixtures("short")
async def test_odd_but_right(tmp_path, bot):
    report = await checked(bot_folder(tmp_path / "bot", bot, more='rulesets = ["basic"]'))
    assert failed(report) == []
    deterministic = named(report)["deterministic"]
    assert deterministic.verdict is Verdict.INFO
    assert ("no: " in deterministic.came) == (bot == "is_by_chance")
    interleaved = named(report)["games at once"]
    assert interleaved.verdict is (Verdict.PASS if bot == "holds_four" else Verdict.SKIP)


@MORE
@pytest.mark.usefixtures("short")
async def test_only_its_own_rulesets_are_tried(tmp_path):
    report = await checked(bot_folder(tmp_path / "bot", "plain", more='rulesets = ["duel"]'))
    verdicts = {name: finding.verdict for name, finding in named(report).items()}
    assert report.ok
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.SKIP} == {
        *ALL_DECISIONS[:-1],
        *ALL_GAMES[1:],
        "games at once",
        "games kept apart",
    }
    assert "not among the rulesets" in said(report, "decisions: basic")
    assert "none of its rulesets is for 3 players" in said(report, "full games: 3 players")


@MORE
@pytest.mark.usefixtures("short")
async def test_of_a_slow_bot_less_is_asked(tmp_path):
    report = await checked(bot_folder(tmp_path / "bot", "plain"))
    assert report.ok
    assert int(named(report)["decisions: basic"].came.split()[0]) < 24
    assert "in 1 game of 5, because it is slow" in said(report, "full games: 3 players")
    assert "yes" in said(report, "deterministic")


async def test_the_time_of_a_check_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(conformance, "_LIMIT_S", 0.0)
    report = await checked(bot_folder(tmp_path / "bot", "plain"))
    assert failed(report) == ["start"]
    assert "that time is over" in said(report, "start")


@pytest.mark.parametrize(
    ("manifest", "step", "words"),
    [
        (None, "manifest", "bot.toml"),
        ('name = "x"\nversion = 1', "manifest", "version"),
        ('[run]\ncommand = ["./none"]', "start", "none"),
        ('[run]\ncommand = ["no-such-program"]', "start", "no-such-program"),
        ('[build]\ncommand = ["false"]\n[run]\ncommand = ["x"]', "build", "exited with 1"),
        (
            '[build]\ncommand = ["sh", "-c", "echo no semicolon; exit 2"]\n[run]\ncommand = ["x"]',
            "build",
            "no semicolon",
        ),
        (
            '[build]\ncommand = ["sh", "-c", "sleep 1000 & exit 0"]\n[run]\ncommand = ["x"]',
            "build",
            "has left sleep running",
        ),
    ],
)
async def test_a_bot_that_does_not_come_to_life(tmp_path, manifest, step, words):
    head = 'name = "x"\nversion = "1"\nauthor = "a"\nlanguage = "c"\n'
    if manifest is not None:
        text = manifest if manifest.startswith("name") else head + manifest
        (tmp_path / "bot.toml").write_text(text)
    report = await checked(tmp_path)
    assert failed(report) == [step]
    assert words in said(report, step)
    after = report.steps[STEPS.index(step) + 1 :]
    number = STEPS.index(step) + 1
    assert {each.finding.verdict for each in after} == {Verdict.SKIP}
    assert {each.finding.came for each in after} == {f"not tried: step {number} ({step}) failed"}


async def test_a_link_that_leads_out_is_no_bot(tmp_path):
    folder = bot_folder(tmp_path / "bot", "plain")
    (folder / "passwords").symlink_to("/etc/passwd")
    report = await checked(folder)
    assert failed(report) == ["build"]
    assert "leads out" in said(report, "build")


@MORE
@pytest.mark.usefixtures("short")
async def test_it_is_built_in_a_copy(tmp_path):
    folder = bot_folder(
        tmp_path / "bot", "plain", more='[build]\ncommand = ["sh", "-c", "touch made; pwd"]'
    )
    report = await checked(folder)
    assert report.ok
    assert os.listdir(folder) == ["bot.toml"]  # noqa: PTH208 - names, not paths
