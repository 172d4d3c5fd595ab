"""Every command with every option: output and exit code."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from real_runs import BIN, PATIENCE_S, SAMPLE_BOTS, SEED, place

from referee.cli import isolation, playing
from referee.cli.app import all_commands, app
from referee.cli.options import Output, console, notes
from referee.cli.ratings import _show_diagrams
from referee.errors import StoreError
from referee.reports.bot_rows import BotRow
from referee.reports.formats import keys_of
from referee.reports.game_rows import GameRow
from referee.reports.rating_rows import HistoryRow, RatingRow
from referee.reports.statistics import (
    CollusionRow,
    LuckRow,
    MachineRow,
    NeighbourRow,
    PairRow,
    PointsRow,
    SeatWorthRow,
)
from referee.reports.tournament_rows import StatusRow, TournamentRow
from referee.reports.verdicts import TransitivityRow
from referee.roster.roster import Roster
from referee.store.league import League

GAMES = 12
MORE_COMMANDS = pytest.mark.extended("starts more commands")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with place(tmp_path_factory.mktemp("commands")) as made:
        crashes = made.bot("crashes", "import os\nos._exit(3)\n")
        file = made.tournament(bots=("random", "greedy", crashes), matches=2)
        made.said = made.referee("tournament", "run", file)
        assert made.said.returncode == 0, made.said.stderr
        yield made


def checked_output(here, *arguments, **environment):
    done = here.referee(*arguments, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("closed", "code"),
    [
        pytest.param(">&-", 0, marks=MORE_COMMANDS),
        pytest.param("2>&-", 0, marks=MORE_COMMANDS),
        ("--seats 9 <&- >&- 2>&-", 2),
    ],
)
def test_closed_standard_stream_is_taken_for_the_null_device(here, closed, code):
    done = here.shell(f"referee ratings {closed}")
    assert (done.returncode, done.stderr) == (code, "")
    assert ("greedy" in done.stdout) == (">" not in closed.replace("2>", ""))


@pytest.mark.parametrize(
    ("form", "unbuffered"),
    [
        ("--json", ""),
        pytest.param("", "", marks=MORE_COMMANDS),
        pytest.param("--json", "1", marks=MORE_COMMANDS),
    ],
)
def test_full_disk_is_reported_in_one_line(here, form, unbuffered):
    done = here.shell(f"PYTHONUNBUFFERED={unbuffered} referee ratings {form} > /dev/full")
    assert (done.returncode, done.stderr) == (1, "referee: No space left on device\n")


@MORE_COMMANDS
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_exit_code_of_an_error_that_cannot_be_printed_is_the_same(here, unbuffered):
    done = here.shell(f"PYTHONUNBUFFERED={unbuffered} referee verify nothing 2> /dev/full")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.unmeasured  # coverage could not write its data either
@MORE_COMMANDS
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_disk_that_gets_full_within_a_text_is_reported_in_one_line(here, unbuffered):
    """The limit of a file's size has the same effect as the end of a disk."""
    settings = f"PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED={unbuffered}"
    done = here.shell(f"ulimit -f 1; {settings} referee tournament schema > cut.json")
    assert (done.returncode, done.stderr) == (1, "referee: File too large\n")
    assert (here.folder / "cut.json").stat().st_size > 0


def test_process_that_is_started_inherits_the_null_device():
    program = """
import os, sys, referee.cli
referee.cli._open_closed_streams()
show = "import os, sys; print(os.readlink('/proc/self/fd/1'), file=sys.stderr)"
os.execv(sys.executable, [sys.executable, "-c", show])
"""
    command = ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "/dev/null\n"


def test_run_without_a_terminal_prints_plain_lines(here):
    assert here.said.stderr == ""
    assert "\x1b" not in here.said.stdout
    assert "\r" not in here.said.stdout
    first, *rest = here.said.stdout.splitlines()
    assert first.startswith("cup: 12 games, 3 bots. Commitment: ")
    assert any(line.startswith("cup: 6 of 12 games, ") and " s left, " in line for line in rest)
    assert sum(line.startswith("cup: 12 of 12 games, ") for line in rest) == 1
    assert (
        sum(
            "forfeit, exited_early: the bot exited with 3 before its hello" in line for line in rest
        )
        == 8
    )
    assert "cup, classic" in here.said.stdout
    assert rest[-1] == f"All games are played. Seed: {SEED}"


def test_end_of_a_run_is_printed_as_json(here):
    done = here.referee("tournament", "resume", "cup", "--json")
    value = json.loads(done.stdout)
    status = json.loads(checked_output(here, "tournament", "status", "cup", "--json"))
    assert value == {
        "tournament": "cup",
        "finished": True,
        "ratings": json.loads(checked_output(here, "tournament", "standings", "cup", "--json")),
        "faults": status["faults"],
        "neighbours": [],
    }
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("cup: 12 games, of which 12 are played, 3 bots.")
    assert last == f"All games are played. Seed: {SEED}"


def test_interrupted_run_prints_json_too(here, monkeypatch):
    monkeypatch.setattr(playing, "conduct", lambda *_: False)
    done = here.referee("tournament", "resume", "cup", "--json")
    assert done.returncode == 130
    assert json.loads(done.stdout)["finished"] is False
    assert done.stderr.splitlines()[-1].startswith("Interrupted. To resume: referee tournament res")


@pytest.mark.parametrize(
    ("where", "name"), [(Roster, "refresh"), (isolation, "select_isolation")], ids=["build", "test"]
)
def test_interrupt_before_the_first_game_is_reported(here, monkeypatch, where, name):
    async def be_interrupted(*_):
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(PATIENCE_S)

    monkeypatch.setattr(where, name, be_interrupted)
    done = here.referee("tournament", "extend", "cup", "--matches", "1")
    assert (done.returncode, done.stderr) == (130, "")
    assert done.stdout == (
        "Interrupted before all bots were checked and built. To go on, run this command again.\n"
    )
    assert json.loads(checked_output(here, "tournament", "status", "cup", "--json"))["finished"]


@pytest.mark.parametrize(
    ("reader", "is_finished", "hint"),
    [
        ("current_ratings", True, "The tournament is finished. To see its tables"),
        ("announce_verdict", True, "The tournament is finished. To see its tables"),
        ("current_ratings", False, "Interrupted. To resume"),
    ],
)
def test_command_is_printed_if_the_database_fails_at_the_end_of_a_run(
    here, monkeypatch, reader, is_finished, hint
):
    def fail(*_):
        raise StoreError("league.db: database is locked")

    monkeypatch.setattr(playing, "conduct", lambda *_: is_finished)
    monkeypatch.setattr(playing, reader, fail)
    done = here.referee("tournament", "resume", "cup")
    assert (done.returncode, done.stderr) == (1, "referee: league.db: database is locked\n")
    said = f"{hint}: referee tournament resume cup --league "
    assert done.stdout.splitlines()[-1].startswith(said)


def test_brackets_and_colons_in_a_text_are_no_markup(capsys):
    for output in (console, notes):
        output.print("To resume: --league [bold]/x --seed [/a] :smile:")
    said = capsys.readouterr()
    assert said.out == said.err == "To resume: --league [bold]/x --seed [/a] :smile:\n"


def test_closed_standard_error_leaves_standard_output_open(tmp_path, monkeypatch):
    with (tmp_path / "out").open("w") as out, (tmp_path / "error").open("w") as error:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", error)
        Output(stderr=True).on_broken_pipe()
        for stream in (out, error):
            stream.write("more")
    assert [(tmp_path / name).read_text() for name in ("out", "error")] == ["more", ""]


ROWS = [
    (("ratings",), RatingRow, 3),
    (("ratings", "--ruleset", "classic"), RatingRow, 3),
    (("ratings", "--ruleset", "basic"), RatingRow, 0),
    (("tournament", "standings", "cup"), RatingRow, 3),
    (("tournament", "standings", "cup", "--by", "points"), PointsRow, 3),
    (("ratings", "--seats", "2"), RatingRow, 3),
    (("ratings", "--seats", "3"), RatingRow, 0),
    (("ratings", "--history", "greedy"), HistoryRow, 2),
    (("stats", "pairs"), PairRow, 3),
    (("stats", "pairs", "--tournament", "cup"), PairRow, 3),
    (("stats", "settled", "--confidence", "0.9", "--margin", "0.5"), NeighbourRow, 2),
    (("stats", "transitivity"), TransitivityRow, 1),
    (("stats", "seats"), SeatWorthRow, 2),
    (("stats", "luck"), LuckRow, 1),
    (("stats", "machines", "--tournament", "cup"), MachineRow, 3),
    (("stats", "collusion", "--ruleset", "classic"), CollusionRow, 6),
    (("tournament", "status"), TournamentRow, 1),
    (("bots", "list"), BotRow, 3),
    (("game", "list"), GameRow, GAMES),
    (("game", "list", "--tournament", "cup", "--limit", "5"), GameRow, 5),
    (("game", "list", "--bot", "random"), GameRow, 8),
    (("game", "list", "--bot", "random@1.0"), GameRow, 8),
    (("game", "list", "--fault", "exited_early"), GameRow, 8),
    (("game", "list", "--fault", "timeout"), GameRow, 0),
]


def test_every_command_with_csv_is_in_rows():
    # These commands have no `--columns`. Other files test them.
    elsewhere = {"referee tournament plan", "referee bots log"}
    with_csv = {
        words
        for words, command in all_commands().items()
        if any("--csv" in param.opts for param in command.params)
    }
    listed = [" ".join(("referee", *command, "")) for command, *_ in ROWS]
    missing = {each for each in with_csv if not any(line.startswith(f"{each} ") for line in listed)}
    assert missing == elsewhere, f"add {sorted(missing - elsewhere)} to ROWS"


def test_list_of_games_has_the_last_ones_and_counts_all(here):
    everything = json.loads(checked_output(here, "game", "list", "--json"))
    last = checked_output(here, "game", "list", "--limit", "5", "--json")
    assert json.loads(last) == everything[-5:]
    table = checked_output(here, "game", "list", "--limit", "5")
    assert f"the last 5 of {GAMES} games" in table
    assert everything[-1]["game_id"] in table
    assert " of " not in checked_output(here, "game", "list", "--limit", str(GAMES + 1))


@pytest.mark.parametrize(
    ("command", "row_type", "count"),
    ROWS,
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_rows_can_be_printed_as_table_json_and_csv(here, command, row_type, count):
    rows = json.loads(checked_output(here, *command, "--json"))
    assert len(rows) == count
    assert all(list(row) == keys_of(row_type) for row in rows)
    header, *lines = csv.reader(io.StringIO(checked_output(here, *command, "--csv")))
    assert header == keys_of(row_type)
    assert len(lines) == count
    table = checked_output(here, *command)
    assert table.strip()
    assert max(map(len, table.splitlines())) <= 80


@MORE_COMMANDS
def test_pipe_and_wide_show_all_columns(here):
    assert "hidden here: " in checked_output(here, "ratings")
    assert "--wide shows them" in checked_output(here, "ratings")
    wide = checked_output(here, "ratings", "--wide")
    assert "hidden" not in wide
    assert "strikes" in wide
    assert here.shell("unset COLUMNS; referee ratings | cat").stdout == wide


@pytest.mark.parametrize("command", [command for command, *_ in ROWS])
def test_wrong_column_is_refused_before_the_league_is_read(here, monkeypatch, command):
    monkeypatch.setattr(League, "open", None)
    done = here.referee(*command, "--columns", "typo")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("referee: --columns: no column 'typo'; there are ")


def test_chosen_columns_are_printed_as_table_json_and_csv(here):
    columns = ("--columns", "bot,score,mu,wins")
    table = checked_output(here, "ratings", *columns)
    assert table.splitlines()[2].split() == ["bot", "score", "[95", "%]", "mu", "wins"]
    keys = ["bot", "score", "score_low", "score_high", "mu", "wins"]
    rows = json.loads(checked_output(here, "ratings", *columns, "--json"))
    assert [list(row) for row in rows] == [keys] * 3
    header, *lines = csv.reader(io.StringIO(checked_output(here, "ratings", *columns, "--csv")))
    assert (header, len(lines)) == (keys, 3)


@MORE_COMMANDS
@pytest.mark.parametrize(
    ("command", "figure"),
    [
        (("ratings",), r"1  greedy.* \d\d\.\d\d  +\d\.\d\d  +\d+\.\d\d "),
        (("stats", "pairs"), r"greedy.* \[-?\d+\.\d, -?\d+\.\d\]"),
    ],
)
def test_narrow_terminal_breaks_lines_instead_of_numbers(here, command, figure):
    assert re.search(figure, checked_output(here, *command, COLUMNS="30"))


@MORE_COMMANDS
@pytest.mark.parametrize(
    "command", [("ratings", "--history", "greedy"), ("bots", "show", "greedy"), ("stats", "luck")]
)
def test_locale_without_utf_8_prints_ascii(here, command):
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    said = checked_output(here, *command, **plain)
    assert said.isascii()
    assert len(said.splitlines()) > 5


def test_crosstable_is_printed_as_json(here):
    rows = json.loads(checked_output(here, "stats", "crosstable", "--json"))
    assert [row["rank"] for row in rows] == [1, 2, 3]
    bots = [row["bot"] for row in rows]
    assert all([*row["ahead_in"]] == [bot for bot in bots if bot != row["bot"]] for row in rows)
    assert rows[0]["ahead_in"][bots[2]] + rows[2]["ahead_in"][bots[0]] == pytest.approx(1)


def test_status_has_rounds_faults_and_seed(here):
    value = json.loads(checked_output(here, "tournament", "status", "cup", "--json"))
    assert list(value) == [
        "tournament",
        "finished",
        "stopped_after",
        "commitment",
        "terms",
        "seed",
        "extensions",
        "rounds",
        "machines",
        "hosts",
        "faults",
    ]
    assert (value["tournament"], value["finished"], value["seed"]) == ("cup", True, SEED)
    assert [list(row) for row in value["rounds"]] == [keys_of(StatusRow)] * 3
    assert [row["done"] for row in value["rounds"]] == [6, 6, 12]
    assert value["hosts"] == []  # it was not played on a cluster
    [machine] = value["machines"]
    assert machine["host"] == os.uname().nodename
    assert machine["games"] == 12
    assert machine["games_per_s"] > 12 / 60  # the tournament takes less than a minute
    (fault,) = value["faults"]
    assert (fault["bot"], fault["cause"], fault["games"]) == ("crashes@1", "exited_early", 8)
    header, *lines = csv.reader(
        io.StringIO(checked_output(here, "tournament", "status", "cup", "--csv"))
    )
    assert header == keys_of(StatusRow)
    assert len(lines) == 3
    said = checked_output(here, "tournament", "status", "cup")
    assert value["commitment"] in said
    assert value["terms"] in said
    assert f"seed {SEED}" in said


@pytest.mark.extended("plays further tournaments")
def test_seed_is_secret_until_the_end(here):
    file = here.tournament("open", matches=10)
    with here.started("tournament", "run", file, "--league", "open") as process:
        process.stdout.readline()
        process.kill()
        process.wait()
        assert here.left_alone()
    value = json.loads(
        checked_output(here, "tournament", "status", "open", "--json", "--league", "open")
    )
    assert (value["finished"], value["seed"]) == (False, None)
    said = checked_output(here, "tournament", "status", "open", "--league", "open")
    assert SEED not in said
    assert "The seed is published when all games are played." in said
    checked_output(here, "tournament", "standings", "open", "--league", "open")
    said = checked_output(
        here, "tournament", "standings", "open", "--by", "points", "--league", "open"
    )
    assert "There is no winner yet: " in said
    checked_output(here, "verify", "--league", "open")


@pytest.mark.parametrize("rounds", [1, 2])
def test_rating_is_drawn_from_the_second_round_on(capsys, rounds):
    rows = [
        HistoryRow(ruleset="basic", tournament="cup", round=n, games=n, mu=25, sigma=8, rating=1)
        for n in range(1, rounds + 1)
    ]
    _show_diagrams("a@1", rows)
    assert ("a@1, basic" in capsys.readouterr().out) == (rounds == 2)


def test_stored_game_can_be_shown_and_replayed(here):
    value = json.loads(checked_output(here, "game", "show", "cup-1", "--json"))
    assert value["format"] == "linko-game-1"
    assert value["game_id"] == "cup-1"
    assert len(value["deck"]) == 109
    assert list(value["moves"][0]) == [
        "seat",
        "action",
        "elapsed_us",
        "lag_us",
        "stand_in",
        "wall_us",
        "batch_size",
    ]
    assert value["result"]["termination"] in {"out", "exhausted", "turn-limit"}
    said = checked_output(here, "game", "show", "cup-1")
    assert "cup-1" in said
    assert "random" in said
    told = checked_output(here, "game", "replay", "cup-1")
    with_tables = checked_output(here, "game", "replay", "cup-1", "--tables")
    assert len(with_tables) > len(told) > len(value["moves"])


def test_single_game_is_played_watched_and_kept(here):
    bots = (SAMPLE_BOTS / "random", SAMPLE_BOTS / "greedy")
    options = ("--ruleset", "duel", "--seed", "7")
    said = checked_output(here, "play", *bots, *options)
    assert said.endswith("To deal the same cards: --seed 7\n")
    assert len(checked_output(here, "play", *bots, *options, "--watch")) > len(said)
    one, two = (
        json.loads(checked_output(here, "play", *bots, *options, "--json")) for _ in range(2)
    )
    assert one["deck"] == two["deck"]
    assert [move["action"] for move in one["moves"]] == [move["action"] for move in two["moves"]]
    by_name = json.loads(
        checked_output(here, "play", "random", "greedy", "--keep", "--json", "--league", "league")
    )
    assert by_name["game_id"] in checked_output(here, "game", "list", "--json")
    assert json.loads(checked_output(here, "game", "show", by_name["game_id"], "--json")) == by_name
    assert by_name["game_id"] not in checked_output(
        here, "game", "list", "--tournament", "cup", "--json"
    )


@pytest.mark.extended("plays a further game")
def test_copies_of_a_bot_are_numbered_stored_and_not_rated(here):
    options = ("--keep", "--ruleset", "basic")
    rated = checked_output(here, "ratings", "--json")
    said = checked_output(here, "play", "random", "greedy", "random", "random", *options)
    assert re.findall(r"^ +\d  (\S+) ", said, re.MULTILINE) == [
        *("random", "greedy", "random#2", "random#3")
    ]
    (game_id,) = re.findall(r"^Stored as (\S+)\. It is not rated: ", said, re.MULTILINE)
    assert "random#3 (seat 3) " in checked_output(here, "game", "replay", game_id)
    seats = json.loads(checked_output(here, "game", "show", game_id, "--json"))["seating"]
    assert [seat["bot"] for seat in seats] == ["random", "greedy", "random", "random"]
    assert checked_output(here, "ratings", "--json") == rated
    assert here.referee("verify").returncode == 0


@pytest.mark.extended("plays further games")
def test_game_is_played_on_from_a_position(here):
    bots, start = ("greedy", "random"), ("--from", "cup-1:9")
    old = json.loads(checked_output(here, "game", "show", "cup-1", "--json"))
    new = json.loads(checked_output(here, "play", *bots, *start, "--json"))
    assert (new["deck"], new["ruleset"]) == (old["deck"], old["ruleset"])
    assert [m["action"] for m in new["moves"][:9]] == [m["action"] for m in old["moves"][:9]]
    told = checked_output(here, "play", *bots, *start, "--watch")
    (made,) = re.findall(r"^decisions +(\d+)", told, re.MULTILINE)
    assert int(made) >= 1
    first_turn = int(re.findall(r"^turn (\d+)", told, re.MULTILINE)[0])
    assert 1 < first_turn <= 10
    assert "To deal the same cards" not in told


@pytest.mark.parametrize(
    ("start", "options", "says"),
    [
        ("cup-1", (), "--from: 'cup-1': write GAME:MOVE, such as demo-17:42"),
        ("cup-1:9999999999", (), "--from: 'cup-1:9999999999': write GAME:MOVE, such as demo-17:42"),
        ("cup-1:²", (), "--from: 'cup-1:²': write GAME:MOVE, such as demo-17:42"),
        ("cup-1:9999", (), "--from: cup-1 ends with move "),
        ("cup-99:1", (), "no game 'cup-99'"),
        ("cup-1:1", ("--keep",), "--from, --keep: choose one of them"),
        ("cup-1:1", ("--ruleset", "duel"), "--from, --ruleset: choose one of them"),
        ("cup-1:1", ("greedy",), "BOTS: cup-1 has 2 seats, not 3"),
    ],
)
def test_wrong_position_is_refused(here, start, options, says):
    done = here.referee("play", "greedy", "random", *options, "--from", start)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


@MORE_COMMANDS
def test_environment_variable_names_the_league(here):
    elsewhere = here.folder / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [BIN / "referee", "tournament", "status", "--json"],
        cwd=elsewhere,
        env=here.environment(REFEREE_LEAGUE=str(here.folder / "league")),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)[0]["tournament"] == "cup"


@pytest.mark.extended("plays further tournaments")
def test_tournament_of_the_same_name_gets_a_number(here):
    file = here.tournament("open", matches=1)
    first = checked_output(here, "tournament", "run", file, "--league", "twice")
    assert "already" not in first
    assert "seed:" not in first
    second = checked_output(here, "tournament", "run", file, "--league", "twice")
    assert "The league has a tournament open already; the new one is called open-2.\n" in second
    assert "missing games" not in second
    assert (
        "seed: open has the same seed. After the last game of open the seed is public, and whoever knows it can compute all decks.\n"
    ) in second
    rows = json.loads(checked_output(here, "tournament", "status", "--json", "--league", "twice"))
    assert [(row["tournament"], row["done"]) for row in rows] == [("open", 2), ("open-2", 2)]


@pytest.mark.parametrize(
    "command",
    [
        ("game", "list"),
        ("game", "list", "--json"),
        ("--version",),
        *(
            pytest.param(each, marks=MORE_COMMANDS)
            for each in (
                ("game", "show", "cup-1", "--json"),
                ("stats", "pairs", "--csv"),
                ("ratings", "--history", "greedy"),
            )
        ),
    ],
    ids=" ".join,
)
def test_closed_pipe_is_no_error(here, command):
    done = here.shell(f"(referee {' '.join(command)}; echo $? > code) | true")
    assert done.stderr == ""
    assert (here.folder / "code").read_text() == "0\n"


@pytest.mark.extended("plays further tournaments")
def test_run_with_a_closed_pipe_stops_as_after_ctrl_c(here):
    here.tournament("unread", matches=60, more="games_in_flight = 1\n")
    line = "(referee tournament run unread.toml --league unread; echo $? > code) | head -n 1"
    done = here.shell(line)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert (here.folder / "code").read_text() == "130\n"
    assert here.processes() == []
    (row,) = json.loads(
        checked_output(here, "tournament", "status", "--json", "--league", "unread")
    )
    assert row["done"] < row["games"]


def options_of(command, path=()):
    """Yield every option of every command except --help."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from options_of(inner, (*path, name))
    if not getattr(command, "commands", None):
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--") and option != "--help":
                    yield " ".join(path), option


def test_every_option_is_used_in_these_tests():
    here = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    command = typer.main.get_command(app)
    assert [
        (path, option) for path, option in options_of(command) if f'"{option}"' not in here
    ] == []
