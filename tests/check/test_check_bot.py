"""Test `check_bot` with good bots, and with one bot for each mistake."""

import os
import tempfile
from pathlib import Path

import psutil
import pytest

from referee.check import StepVerdict, conformance, decision_steps, game_steps, games
from referee.check.bot_under_test import BotUnderTest
from referee.check.conformance import check_bot
from referee.clocks import Clocks
from referee.errors import Cause, Evidence, Forfeit, UserError
from referee.roster.workshop import Workshop
from referee.sandbox.process_group import ProcessGroupLauncher

HERE = Path(__file__).parent
SAMPLE_BOTS = HERE.parents[1] / "sample_bots"
MORE = pytest.mark.extended("checks more bots")
CLOCKS = Clocks(start_up_us=10_000_000, game_start_us=2_000_000, decision_us=1_500_000)
"""Limits that a correct bot keeps on a busy machine, and that are short enough to wait for their end."""
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
    "one large message",
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
LIMITS = "[limits]\nmemory_mib = 250\nscratch_mib = 1"
"""Limits that bots keep, if it is not their mistake to take too much."""
ALL_DECISIONS = STEPS[4:10]
ALL_GAMES = STEPS[10:14]


@pytest.fixture
def short_check(monkeypatch):
    """Send few requests to every bot, as to a slow one. For tests that do not depend on their number."""
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


async def check_and_assert_clean(folder, **options):
    """Check a bot and return the report. Assert that both callbacks got every step, and that no process is left."""
    started, done = [], []
    with tempfile.TemporaryDirectory() as built:
        report = await check_bot(
            folder,
            Workshop(Path(built), ProcessGroupLauncher(), on_build=lambda _: None),
            on_begin=lambda number, name: started.append((number, name)),
            on_step=done.append,
            **{"clocks": CLOCKS} | options,
        )
    assert tuple(done) == report.steps
    assert started == list(enumerate(STEPS, start=1)) == [(s.number, s.name) for s in done]
    assert not [child for child in psutil.Process().children() if child.status() != "zombie"]
    return report


def findings_by_name(report):
    return {step.name: step.finding for step in report.steps}


def failed_steps(report):
    return [step.name for step in report.failed]


def text_of(report, name):
    finding = findings_by_name(report)[name]
    return f"{finding.expected}\n{finding.happened}\n{finding.output}"


async def test_interrupted_check_gives_its_copy_to_discard(tmp_path):
    workshop = Workshop(tmp_path / "league", ProcessGroupLauncher(), on_build=print)
    folder = bot_folder(tmp_path / "suspect", "good")

    def interrupt(_number, name):
        if name == "start":
            raise KeyboardInterrupt

    discarded = []
    with pytest.raises(KeyboardInterrupt):
        await check_bot(
            folder,
            workshop,
            on_begin=interrupt,
            on_step=lambda _: None,
            discard=discarded.append,
        )
    assert [copy.manifest.name for copy in discarded] == ["suspect"]
    assert (discarded[0].spec.folder.parent / "passing").exists()


@MORE
@pytest.mark.parametrize("bot", ["greedy", "random", "counter"])
async def test_sample_bots_pass(bot, monkeypatch):
    # a slow machine must not leave out the duel, which is the last of the full games
    monkeypatch.setattr(games, "TIME_BUDGET_S", 200.0)
    report = await check_and_assert_clean(SAMPLE_BOTS / bot, clocks=None)
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
    assert "yes" in text_of(report, "deterministic")


@pytest.mark.parametrize(
    ("bot", "step", "words"),
    [
        (
            "exits_with_1",
            "start",
            ["\nthe bot exited with 1 before its hello (exited_early)\n", "no model file"],
        ),
        pytest.param("crashes_at_start", "start", ["SIGSEGV"], marks=MORE),
        pytest.param("hangs_at_start", "start", ["the bot sent no hello within 3 s"], marks=MORE),
        pytest.param("closes_before_hello", "hello", ["the bot closed its stream"], marks=MORE),
        pytest.param(
            "speaks_version_2",
            "hello",
            [
                "\nthe bot speaks protocol version 2, the referee 1 (handshake)\n",
                "protocol_version 1",
            ],
            marks=MORE,
        ),
        pytest.param(
            "has_wrong_token",
            "hello",
            ["\nthe hello has a wrong token (handshake)\n", "REFEREE_TOKEN"],
            marks=MORE,
        ),
        pytest.param(
            "takes_much_memory_at_start",
            "start",
            ["\nthe program takes ", " MiB of memory; its limit is 250 MiB (oom)\n"],
            marks=MORE,
        ),
        pytest.param(
            "is_wrong_with_ghosts",
            "decisions: duel",
            ["GHOST_SET", "ghost_value 13", "5 of 5"],
            marks=MORE,
        ),
        pytest.param(
            "never_passes",
            "decisions: duel",
            ["GHOST_SET", "ghost_value 0", 'ghost_snatch = "optional"', "CHOICE_PASS"],
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
@pytest.mark.usefixtures("short_check")
async def test_bot_with_one_mistake_fails_one_step_that_names_it(tmp_path, bot, step, words):
    clocks = Clocks(start_up_us=3_000_000) if bot == "hangs_at_start" else CLOCKS
    folder = bot_folder(tmp_path / "bot", bot, more=LIMITS)
    report = await check_and_assert_clean(folder, clocks=clocks)
    assert failed_steps(report) == [step]
    for word in words:
        assert word in text_of(report, step)
    if step != "nothing left running":  # this step has no output of a single process
        assert f"I am {bot}" in text_of(report, step) or "Error: " in text_of(report, step)


@MORE
@pytest.mark.parametrize(
    ("bot", "steps", "words"),
    [
        ("hangs", ALL_DECISIONS, "the bot sent no reply within 1.5 s (timeout)"),
        ("never_ready", ALL_DECISIONS, "the bot sent no ready within 2 s"),
        ("segfaults", ALL_DECISIONS, "SIGSEGV (crash)"),
        ("closes_stream", ALL_DECISIONS, "16 MiB (crash)"),
        (
            "fills_scratch",
            ALL_DECISIONS,
            "\nthe program has more than its limit of 1 MiB in its scratch folder (scratch_full)\n",
        ),
        ("says_garbage", ALL_DECISIONS, "no linko.v1.BotMessage"),
        ("answers_nothing", ALL_DECISIONS, "(malformed)"),
        ("crashes_with_two", ["decisions: duel", "full games: 2 players"], "no third player"),
        ("crashes_at_the_end", ALL_GAMES, "after the end of the game"),
        ("ignores_goodbye", ["goodbye", "SIGTERM"], "it still ran"),
    ],
)
@pytest.mark.usefixtures("short_check")
async def test_mistake_in_several_steps_fails_each_of_them(tmp_path, bot, steps, words):
    report = await check_and_assert_clean(bot_folder(tmp_path / "bot", bot, more=LIMITS))
    assert failed_steps(report) == steps
    for step in steps:
        assert words in text_of(report, step)
    for finding in findings_by_name(report).values():
        assert finding.happened
        assert (finding.verdict is StepVerdict.FAIL) == bool(finding.expected)


@MORE
@pytest.mark.parametrize(
    "bot",
    ["holds_four", "is_by_chance", "plain", "takes_its_time", "prints_for_ever", "is_wrapped"],
)
@pytest.mark.usefixtures("short_check")
async def test_unusual_but_correct_bot_passes(tmp_path, bot):
    report = await check_and_assert_clean(
        bot_folder(tmp_path / "bot", bot, more='rulesets = ["basic"]')
    )
    assert failed_steps(report) == []
    deterministic = findings_by_name(report)["deterministic"]
    assert deterministic.verdict is StepVerdict.INFO
    assert ("no: " in deterministic.happened) == (bot == "is_by_chance")
    batch = findings_by_name(report)["one large message"]
    assert ("4 requests in one message, all answered" in batch.happened) == (bot == "holds_four")
    interleaved = findings_by_name(report)["games at once"]
    assert interleaved.verdict is (StepVerdict.PASS if bot == "holds_four" else StepVerdict.SKIP)


@MORE
@pytest.mark.usefixtures("short_check")
async def test_bot_that_mixes_its_games_passes_and_hears_of_it(tmp_path):
    """The check cannot tell this bot from a bot that learns from its finished games."""
    report = await check_and_assert_clean(
        bot_folder(tmp_path / "bot", "mixes_its_games", more='rulesets = ["basic"]')
    )
    assert failed_steps(report) == []
    separation = findings_by_name(report)["games kept apart"]
    assert separation.verdict is StepVerdict.INFO
    for word in ("played alone", "beside 3 games", "under its game_id"):
        assert word in separation.happened


@MORE
@pytest.mark.parametrize(
    ("bot", "words"),
    [
        ("answers_one_request", ["the bot sent no reply within", "3 of 4 "]),
        ("exits_with_many_requests", ["exited with 3 (crash)", "1 of 4 "]),
    ],
)
@pytest.mark.usefixtures("short_check")
async def test_bot_that_fails_with_many_requests_fails_two_steps(tmp_path, bot, words):
    report = await check_and_assert_clean(
        bot_folder(tmp_path / "bot", bot, more='rulesets = ["basic"]')
    )
    assert failed_steps(report) == ["one large message", "games at once"]
    for word in words:
        assert word in text_of(report, "one large message")


@MORE
@pytest.mark.usefixtures("short_check")
async def test_only_the_rulesets_of_the_manifest_are_checked(tmp_path):
    report = await check_and_assert_clean(
        bot_folder(tmp_path / "bot", "plain", more='rulesets = ["duel"]')
    )
    verdicts = {name: finding.verdict for name, finding in findings_by_name(report).items()}
    assert report.ok
    assert {name for name, verdict in verdicts.items() if verdict is StepVerdict.SKIP} == {
        *ALL_DECISIONS[:-1],
        *ALL_GAMES[1:],
        "one large message",
        "games at once",
        "games kept apart",
    }
    assert "does not list this ruleset" in text_of(report, "decisions: basic")
    assert "no ruleset of bot.toml is for 3 players" in text_of(report, "full games: 3 players")


@pytest.mark.extended("checks more bots")
@pytest.mark.usefixtures("short_check")
async def test_bot_that_plays_one_game_at_a_time_gets_no_second_one(tmp_path):
    """The duel has two scripts. Each leaves its game open, so it needs a process of its own."""
    folder = bot_folder(tmp_path / "bot", "plays_one_game", more='rulesets = ["duel"]')
    report = await check_and_assert_clean(folder)
    assert failed_steps(report) == []


@pytest.mark.extended("checks more bots")
@pytest.mark.usefixtures("short_check")
async def test_bot_that_replies_twice_passes_and_hears_of_it(tmp_path):
    folder = bot_folder(tmp_path / "bot", "repeats_itself", more='rulesets = ["duel"]')
    report = await check_and_assert_clean(folder)
    assert failed_steps(report) == []
    assert "messages of the bot belonged to no pending request" in text_of(
        report, "full games: 2 players"
    )


@pytest.mark.parametrize("cause", [Cause.OOM, Cause.TOO_MANY_PROCESSES, Cause.SCRATCH_FULL])
async def test_limit_that_is_broken_before_the_hello_fails_the_start(tmp_path, monkeypatch, cause):
    async def start(_bot):
        raise Forfeit(cause, Evidence(detail="the program takes 900 MiB"))

    monkeypatch.setattr(BotUnderTest, "start", start)
    report = await check_and_assert_clean(bot_folder(tmp_path / "bot", "plain"))
    assert failed_steps(report) == ["start"]
    assert "the program takes 900 MiB" in text_of(report, "start")


@MORE
@pytest.mark.usefixtures("short_check")
async def test_slow_bot_gets_fewer_requests(tmp_path):
    report = await check_and_assert_clean(bot_folder(tmp_path / "bot", "plain"))
    assert report.ok
    assert int(findings_by_name(report)["decisions: basic"].happened.split()[0]) < 24
    assert "in 1 game of 5, because it is slow" in text_of(report, "full games: 3 players")
    assert "yes" in text_of(report, "deterministic")


async def test_steps_after_the_time_limit_of_a_check_fail(tmp_path, monkeypatch):
    monkeypatch.setattr(conformance, "_LIMIT_S", 0.0)
    report = await check_and_assert_clean(bot_folder(tmp_path / "bot", "plain"))
    assert failed_steps(report) == ["start"]
    assert "not tried: the time for the check is over" in text_of(report, "start")


def limit_check(monkeypatch, seconds):
    """Let a check stop its steps this number of seconds after the build."""
    monkeypatch.setattr(conformance, "_LIMIT_S", seconds)
    monkeypatch.setattr(conformance, "_GRACE_S", 0.0)


async def test_step_that_runs_after_the_time_limit_of_a_check_is_stopped(tmp_path, monkeypatch):
    limit_check(monkeypatch, 0.5)
    clocks = Clocks(start_up_us=20_000_000)
    report = await check_and_assert_clean(
        bot_folder(tmp_path / "bot", "hangs_at_start"), clocks=clocks
    )
    assert failed_steps(report) == ["start"]
    assert "stopped: the time for the check is over" in text_of(report, "start")


@MORE
async def test_games_at_once_are_stopped_at_the_time_limit_of_a_check(tmp_path, monkeypatch):
    limit_check(monkeypatch, 10.0)
    report = await check_and_assert_clean(
        bot_folder(tmp_path / "bot", "names_the_last_game"),
        clocks=Clocks(decision_us=40_000_000),
        chosen=conformance.choose_steps(["games at once"]),
    )
    assert failed_steps(report) == ["games at once"]
    assert "stopped: the time for the check is over" in text_of(report, "games at once")


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
        pytest.param(
            '[build]\ncommand = ["sh", "-c", "sleep 1000 & exit 0"]\n[run]\ncommand = ["x"]',
            "build",
            "has left sleep running",
            marks=MORE,
        ),
    ],
)
async def test_bot_that_does_not_start_skips_all_later_steps(tmp_path, manifest, step, words):
    head = 'name = "x"\nversion = "1"\nauthor = "a"\nlanguage = "c"\n'
    if manifest is not None:
        text = manifest if manifest.startswith("name") else head + manifest
        (tmp_path / "bot.toml").write_text(text)
    report = await check_and_assert_clean(tmp_path)
    assert failed_steps(report) == [step]
    assert words in text_of(report, step)
    after = report.steps[STEPS.index(step) + 1 :]
    number = STEPS.index(step) + 1
    assert {each.finding.verdict for each in after} == {StepVerdict.SKIP}
    assert {each.finding.happened for each in after} == {
        f"not tried: step {number} ({step}) failed"
    }


def test_steps_can_be_chosen_by_their_names():
    assert list(conformance.STEPS) == STEPS


@MORE
@pytest.mark.usefixtures("short_check")
async def test_only_chosen_steps_are_run_and_the_others_are_taken_for_passed():
    chosen = conformance.choose_steps(["deterministic", "goodbye"])
    report = await check_and_assert_clean(SAMPLE_BOTS / "greedy", chosen=chosen)
    assert report.ok
    for step in report.steps:
        is_left_out = step.finding.verdict is StepVerdict.SKIP
        assert is_left_out == (step.name not in chosen), step


async def test_user_without_a_home_folder_ends_the_check_and_fails_no_step(tmp_path, monkeypatch):
    def fail():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", fail)
    folder = bot_folder(tmp_path / "bot", "plain", more='[build]\ncommand = ["true"]')
    with pytest.raises(UserError, match="has no account and no home folder: set HOME"):
        await check_and_assert_clean(folder)


async def test_link_out_of_the_folder_fails_the_build(tmp_path):
    folder = bot_folder(tmp_path / "bot", "plain")
    (folder / "passwords").symlink_to("/etc/passwd")
    report = await check_and_assert_clean(folder)
    assert failed_steps(report) == ["build"]
    assert "leads out" in text_of(report, "build")


@MORE
@pytest.mark.usefixtures("short_check")
async def test_bot_is_built_in_a_copy(tmp_path):
    folder = bot_folder(
        tmp_path / "bot", "plain", more='[build]\ncommand = ["sh", "-c", "touch made; pwd"]'
    )
    report = await check_and_assert_clean(folder)
    assert report.ok
    assert os.listdir(folder) == ["bot.toml"]  # noqa: PTH208 - names, not paths
