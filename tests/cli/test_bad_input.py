"""Bad input ends with exit code 2 and one line that names file, key and reason. It changes nothing."""

from __future__ import annotations

import hashlib
import shutil
import signal

import pytest
from real_runs import SAMPLE_BOTS, SEED, place

from referee.store.league import League

GOOD = {
    "name": '"cup"',
    "ruleset": '"classic"',
    "seats": "2",
    "matches": "1",
    "seed": f'"{SEED}"',
    "bots": '["./ann", "./bob", "./cy"]',
}
MANIFEST = 'name = "{0}"\nversion = "1"\nauthor = "x"\nlanguage = "python"\n'
RUN = '[run]\ncommand = ["python3", "bot.py"]\n'


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        for name in ("ann", "bob", "cy"):
            shutil.copytree(SAMPLE_BOTS / "random", tmp_path / name)
            (tmp_path / name / "bot.toml").write_text(MANIFEST.format(name) + RUN)
        write(made)
        yield made


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A league with a small tournament. No test changes it."""
    with place(tmp_path_factory.mktemp("played")) as made:
        done = made.referee("tournament", "run", made.tournament(matches=1))
        assert done.returncode == 0, done.stderr
        yield made


def write(here, **changed):
    """Write a correct tournament file with some keys changed; None removes a key."""
    lines = [f"{key} = {value}" for key, value in (GOOD | changed).items() if value is not None]
    (here.folder / "cup.toml").write_text("\n".join(lines))


def tree(folder):
    """Return every file below a folder with its content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


def assert_refused(here, *arguments, says):
    """Assert that a command fails with one line and changes no file."""
    before = tree(here.folder)
    done = here.referee(*arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr == f"referee: {says}\n" or says in done.stderr
    assert tree(here.folder) == before
    assert here.processes() == []
    assert here.run_folders() == []


FILES = {
    "unknown key": ({"seeds": "1"}, "cup.toml: seeds: unknown key"),
    "unknown ruleset": (
        {"ruleset": '"linko"'},
        "cup.toml: ruleset: unknown ruleset 'linko'; choose one of classic, basic",
    ),
    "2 bots for 4 seats": (
        {"seats": "4", "bots": '["./ann", "./bob"]'},
        "cup.toml: bots: 2 cannot fill the 4 seats of a table",
    ),
    "table size": (
        {"ruleset": '"duel"', "seats": "3"},
        "cup.toml: seats: duel has 2 players, not 3",
    ),
    "duplicate bot": (
        {"bots": '["./ann", "./bob", "./ann"]'},
        "cup.toml: bots[2]: the same bot as bots[0]",
    ),
    "missing path": (
        {"bots": '["./ann", "./eve"]'},
        "cup.toml: bots[1]: './eve': no such folder",
    ),
    "bot that the league does not know": (
        {"bots": '["./ann", "eve"]'},
        "cup.toml: bots[1]: the league has no bot 'eve'",
    ),
    "5,000 digits": (
        {"matches": "9" * 5_000},
        "cup.toml: line 4: a number has too many digits",
    ),
    "20,000 hexadecimal digits": (
        {"seats": "0x" + "F" * 20_000},
        "cup.toml: seats: the number is too large",
    ),
    "10,000 stages": (
        {"stage": f"[{'{seats = 2},' * 10_000}]"},
        "cup.toml: stage: must have at most 50 entries",
    ),
    "50,000 stages": (
        {"stage": f"[{'{seats = 2},' * 50_000}]"},
        "cup.toml: more than 128 KiB",
    ),
    "key of 20,000 parts": (
        {".".join("a" * 20_000): "1"},
        "cup.toml: line 7: a key has at most 32 parts",
    ),
    "2,000 bots": (
        {"bots": str(["./ann"] * 2_000)},
        "cup.toml: bots: must have at most 1000 entries",
    ),
    "20,000 table sizes": (
        {"seats": None, "tables": str(list(range(2, 20_000)))},
        "cup.toml: tables: must have at most 16 entries",
    ),
    "nothing but a name": (
        {"ruleset": None, "seats": None, "matches": None, "bots": None},
        "cup.toml: bots: missing",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_wrong_tournament_file_is_refused(here, case):
    changed, says = FILES[case]
    write(here, **changed)
    assert_refused(here, "tournament", "run", "cup.toml", says=says)


def test_all_mistakes_of_a_file_are_printed_one_in_a_line(here):
    write(here, seats=None, matchs="1", seeds="1", matches='"1"')
    done = here.referee("tournament", "run", "cup.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "referee: cup.toml: matchs: unknown key (did you mean 'matches'?)",
        "referee: cup.toml: seeds: unknown key (did you mean 'seed'?)",
        "referee: cup.toml: matches: must be a whole number",
    ]
    write(here, bots='["./an", "./bob", "./cx"]')
    done = here.referee("tournament", "plan", "cup.toml")
    assert done.stderr.splitlines() == [
        "referee: cup.toml: bots[0]: './an': no such folder",
        "referee: cup.toml: bots[2]: './cx': no such folder",
    ]
    write(here, bots='["./ann", "bob", "./ann"]')
    assert len(here.referee("tournament", "plan", "cup.toml").stderr.splitlines()) == 2


def test_message_about_100_mistakes_is_cut(here):
    write(here, **{f"wrong{number}": "1" for number in range(100)})
    lines = here.referee("tournament", "plan", "cup.toml").stderr.splitlines()
    assert len(lines) == 20
    assert lines[-1] == "referee: 81 more lines"


SUGGESTIONS = [
    (("tournament", "status", "cub"), "no tournament 'cub' (did you mean 'cup'?); there are cup"),
    (("bots", "show", "gredy"), "the league has no bot 'gredy' (did you mean 'greedy'?)"),
    (("game", "list", "--bot", "rndom"), "no bot 'rndom' in the league league (did you mean"),
    (("ratings", "--history", "gredy"), "no bot 'gredy' has played here (did you mean 'greedy'?)"),
    (
        ("ratings", "--league", "league", "compare", "random", "greedy"),
        "--league: belongs to `referee ratings`; write the options of compare after compare",
    ),
    (("ratings", "--ruleset", "Basc"), "unknown ruleset 'Basc' (did you mean 'basic'?); choose"),
    (("play", "random", "greedy", "--ruleset", "dual"), "'dual' (did you mean 'duel'?); choose"),
]


@pytest.mark.parametrize(("command", "says"), SUGGESTIONS)
def test_mistyped_name_is_refused_with_the_most_similar_one(played, command, says):
    assert_refused(played, *command, says=says)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            ("ratings", "compare", "random", "greedy", "--ruleset", "duel"),
            "league: no bot 'random' has played a game with --ruleset duel; there are no such games",
        ),
        (
            ("ratings", "compare", "bait", "greedy", "--tournament", "cup", "--seats", "4"),
            "league: no bot 'bait' has played a game with --tournament cup --seats 4; there are",
        ),
        (
            ("ratings", "--history", "random", "--seats", "5"),
            "league: no bot 'random' has played a game with --seats 5; there are no such games",
        ),
    ],
)
def test_error_about_a_bot_without_selected_games_names_the_options(played, command, says):
    assert_refused(played, *command, says=says)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            ("play", "./ann", "./bob", "--logs", ""),
            "Invalid value for '--logs': the path is missing",
        ),
        (("tournament", "plan", ""), "Invalid value for 'FILE': the path is missing"),
        (("tournament", "run", ""), "referee: FILE|BOT: the path is missing"),
        (
            ("play", "./ann", ""),
            "referee: BOTS: '' is no folder, and league: there is no league here",
        ),
    ],
)
def test_empty_path_is_refused(here, command, says):
    before = tree(here.folder)
    done = here.referee(*command)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert tree(here.folder) == before


def test_missing_tournament_file_is_refused(here):
    assert_refused(here, "tournament", "run", "cap.toml", says="cap.toml: no such file")


def test_tournament_file_that_is_not_toml_is_refused(here):
    (here.folder / "cup.toml").write_text("name = \n")
    assert_refused(here, "tournament", "run", "cup.toml", says="cup.toml: line 1: Invalid value")


@pytest.mark.parametrize("case", ["5,000 digits", "50,000 stages", "key of 20,000 parts"])
def test_size_of_a_manifest_is_limited_too(here, case):
    [(key, value)] = FILES[case][0].items()
    manifest = here.folder / "bob" / "bot.toml"
    manifest.write_text(f"{key} = {value}\n{manifest.read_text()}")
    says = FILES[case][1].partition(": ")[2].replace("line 4", "line 1").replace("line 7", "line 1")
    for command in (("tournament", "run", "cup.toml"), ("play", "./ann", "./bob", "--keep")):
        assert_refused(here, *command, says=f"bob/bot.toml: {says}")


def test_bot_without_a_run_command_is_refused(here):
    (here.folder / "bob" / "bot.toml").write_text(MANIFEST.format("bob"))
    assert_refused(here, "tournament", "run", "cup.toml", says="bob/bot.toml: run: missing")
    assert_refused(here, "play", "./ann", "./bob", "--keep", says="bob/bot.toml: run: missing")


@pytest.mark.parametrize(
    ("league", "says"),
    [
        ("cup.toml/league", "the league folder cannot be created: Not a directory"),
        ("cup.toml", "the league folder cannot be created"),
        (
            "/proc/league",
            "/proc/league: the league folder cannot be created: No such file or directory",
        ),
        ("/sys/league", "/sys/league: the league folder cannot be created"),
    ],
)
def test_read_only_league_folder_is_refused(here, league, says):
    assert_refused(here, "tournament", "run", "cup.toml", "--league", league, says=says)
    assert_refused(here, "play", "./ann", "./bob", "--keep", "--league", league, says=says)


ASKING = [
    ("tournament", "resume"),
    ("tournament", "status"),
    ("tournament", "standings", "cup"),
    ("ratings",),
    ("game", "list"),
    ("game", "show", "cup-1"),
    ("game", "replay", "cup-1"),
    ("verify",),
]


@pytest.mark.parametrize("command", ASKING, ids=" ".join)
def test_missing_league_is_refused(here, command):
    assert_refused(
        here,
        *command,
        says="league: there is no league here; `referee tournament run FILE` makes one, or choose another with --league",
    )


def test_resume_in_a_league_without_tournaments_is_refused(here):
    League.open(here.folder / "league", create=True).close()
    done = here.referee("tournament", "resume")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "referee: league: the league has no tournaments; there is none to resume\n"
    )


@pytest.mark.parametrize("command", [("tournament", "run", "cup.toml"), *ASKING[:2]], ids=" ".join)
def test_league_of_a_newer_version_is_refused(here, played, command):
    league = here.folder / "league"
    shutil.copytree(played.folder / "league", league)
    with here.database() as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    assert_refused(
        here,
        *command,
        says="league/league.db: its database has schema 9999, which this version of the referee does not know",
    )


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("game", "show", "cup-99"), "league: no game 'cup-99' is stored"),
        (("game", "show", "cup-99", "--json"), "league: no game 'cup-99' is stored"),
        (("game", "replay", "cup-99"), "league: no game 'cup-99' is stored"),
        (
            ("game", "list", "--tournament", "cap"),
            "league: no tournament 'cap' (did you mean 'cup'?); there are cup",
        ),
        (("game", "list", "--bot", "eve"), "no bot 'eve' in the league league; there are "),
        (
            ("game", "list", "--bot", "random@7"),
            "no bot 'random@7' in the league league (did you mean 'random'?); there are random@1.0",
        ),
        (
            ("game", "list", "--fault", "tilt"),
            "--fault: unknown fault 'tilt'; choose one of no_start",
        ),
        (("game", "list", "--json", "--csv"), "--json, --csv: choose one of them"),
        (
            ("tournament", "status", "cap"),
            "league: no tournament 'cap' (did you mean 'cup'?); there are cup",
        ),
        (("tournament", "status", "cup", "--json", "--csv"), "--json, --csv: choose one of them"),
        (
            ("tournament", "standings", "cap"),
            "league: no tournament 'cap' (did you mean 'cup'?); there are cup",
        ),
        (
            ("tournament", "standings", "cup", "--by", "name"),
            "--by: unknown order 'name'; choose one of rating, points",
        ),
        (
            ("tournament", "resume", "cap"),
            "league: no tournament 'cap' (did you mean 'cup'?); there are cup",
        ),
        (("tournament", "resume"), "league: every tournament is finished; there is none to resume"),
        *(
            (command, "league: no tournament ''; there are cup")
            for command in (
                ("tournament", "resume", ""),
                ("tournament", "status", ""),
                ("tournament", "standings", ""),
                ("verify", ""),
                ("game", "list", "--tournament", ""),
                ("ratings", "compare", "greedy", "random", "--tournament", ""),
                ("stats", "pairs", "--tournament", ""),
                ("stats", "settled", "--tournament", ""),
            )
        ),
        (
            ("tournament", "status", "cup", "--json", "--columns", "round"),
            "--columns: not allowed with NAME and --json",
        ),
        (("bots", "log", "greedy", "--build", "--json"), "--build, --json: choose one of them"),
        (("bots", "log", "greedy", "--build", "--csv"), "--build, --csv: choose one of them"),
        (("bots", "log", "greedy", "--build", "--limit", "5"), "--build, --limit: choose one"),
        (("verify", "cap"), "league: no tournament 'cap' (did you mean 'cup'?); there are cup"),
        (("ratings", "--ruleset", "linko"), "--ruleset: unknown ruleset 'linko'; choose one of"),
        (
            ("play", "random", "eve"),
            "BOTS: 'eve' is no folder, and league: the league has no bot 'eve'",
        ),
        (("play", "random", "greedy", "--ruleset", "linko"), "--ruleset: unknown ruleset 'linko'"),
        (("play", "random", "greedy", "--ruleset", ""), "--ruleset: unknown ruleset ''"),
        (("play", "random", "--ruleset", "duel"), "BOTS: duel is for 2 players, not 1"),
        (("play", "random", "greedy", "--watch", "--json"), "--watch, --json: choose one of them"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_unknown_names_and_choices_are_refused(played, command, says):
    assert_refused(played, *command, says=says)


def test_text_of_100_000_characters_is_cut_in_the_message(played):
    done = played.referee("ratings", "--ruleset", "x" * 100_000)
    assert done.returncode == 2
    assert done.stderr.startswith("referee: --ruleset: unknown ruleset 'xxx")
    assert "x…x" in done.stderr
    assert done.stderr.endswith(
        "choose one of classic, basic, advanced, expert, expert-jokers, duel\n"
    )
    assert len(done.stderr) < 4_100


def test_wrong_usage_is_explained(played):
    for wrong in (("tournament", "run"), ("game", "list", "--limit", "0"), ("linko",), ("play",)):
        done = played.referee(*wrong)
        assert done.returncode == 2
        assert "Usage: referee" in done.stderr
        assert done.stdout == ""


def kill_tournament(here, bot):
    """Start a tournament and kill it after its first line of output."""
    file = here.tournament(bots=(bot, "greedy"), matches=3)
    with here.started("tournament", "run", file) as process:
        process.stdout.readline()
        process.kill()
        process.wait()
        assert here.left_alone()


@pytest.mark.extended("plays further tournaments")
def test_killed_tournament_resumes_without_the_source_folder_of_its_bot(here):
    slow = here.bot("slow", SLOW)
    kill_tournament(here, slow)
    shutil.rmtree(slow)
    done = here.referee("tournament", "resume")
    assert done.returncode == 0, done.stderr
    assert [record.faults for record in here.records("league")] == [()] * 6


def test_league_without_its_copy_of_a_bot_is_refused(here):
    kill_tournament(here, here.bot("slow", SLOW))
    shutil.rmtree(here.folder / "league" / "bots" / "slow")
    done = here.referee("tournament", "resume")
    assert done.returncode == 2
    assert "the league's copy of slow is gone; submit it again" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.extended("plays further tournaments")
def test_tournament_with_a_changed_copy_resumes_after_the_folder_is_submitted_again(here):
    slow = here.bot("slow", SLOW.replace("0.1", "0.01"))
    kill_tournament(here, slow)
    [copied] = here.folder.glob("league/bots/slow/*/bot/bot.py")
    copied.chmod(0o644)
    copied.write_text("raise SystemExit\n")
    new = ("run", "slow", "greedy", "--ruleset", "duel", "--seats", "2", "--matches", "1")
    for words in (("resume",), new):
        done = here.referee("tournament", *words)
        assert done.returncode == 2, done.stdout
        assert done.stderr == (
            f"referee: {copied.parents[1].relative_to(here.folder)}: the league's copy of slow was changed;"
            " submit the original folder again\n"
        )
    assert here.referee("play", slow, "greedy", "--ruleset", "duel", "--keep").returncode == 0
    done = here.referee("tournament", "resume")
    assert done.returncode == 0, done.stderr
    assert [record.faults for record in here.records("league")][:6] == [()] * 6


@pytest.mark.extended("plays further tournaments")
def test_second_referee_in_the_same_league_is_refused(here):
    slow = here.bot("slow", SLOW)
    file = here.tournament(bots=(slow, "greedy"), matches=100)
    with here.started("tournament", "run", file) as process:
        process.stdout.readline()
        for command in (("run", file), ("resume",), ("resume", "cup")):
            done = here.referee("tournament", *command)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr == (
                f"referee: league: another referee is playing in this league"
                f" (process {process.pid})\n"
            )
        assert "cup" in here.referee("tournament", "status").stdout
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate()
    assert process.returncode == 130, said
    assert "To resume: referee tournament resume cup" in said
    assert [record.faults for record in here.records("league")] == [()] * len(
        here.records("league")
    )


SLOW = """
import time
from referee.sdk import run

def decide(request):
    time.sleep(0.1)
    return request.legal[0]

run(decide)
"""
