"""All commands work with a league in a PostgreSQL database and never print its password."""

from __future__ import annotations

import json
import re
import shlex
import signal
from pathlib import Path

import pytest
from real_runs import place, read_until

from referee.cli.options import DB_VARIABLE
from referee.cli.playing import league_options
from referee.store.league import League

pytestmark = pytest.mark.unmeasured
MATCHES = 12
GAMES = 2 * MATCHES
READING = [
    ("tournament", "status"),
    ("tournament", "status", "cup", "--json"),
    ("tournament", "standings", "cup", "--csv"),
    ("tournament", "export", "cup", "--output", "cup.zip"),
    ("ratings",),
    ("game", "list"),
    ("game", "show", "cup-1"),
    ("game", "replay", "cup-1"),
    ("bots", "list"),
    ("bots", "show", "greedy"),
    ("bots", "log", "greedy"),
]


@pytest.fixture
def here(tmp_path):
    with place(tmp_path, apart=True) as made:
        yield made


@pytest.fixture
def url(postgres_url):
    """The URL of the database. The server accepts any password."""
    return postgres_url.replace("postgres@", "postgres:secret@")


def test_tournament_can_be_killed_interrupted_resumed_and_verified(here, url):
    file = here.tournament(matches=MATCHES)
    with here.started("tournament", "run", file, "--db", url) as process:
        read_until(process, 3)
        process.kill()
        process.wait()
        assert here.left_alone()
    with here.started("tournament", "resume", "--db", url) as process:
        assert int(re.search(r"of which (\d+) are played", process.stdout.readline())[1]) >= 3
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        assert process.wait() == 130, said
    (again,) = re.findall(r"To resume: (.*)", said)
    assert shlex.split(again)[:5] == ["referee", "tournament", "resume", "cup", "--league"]
    assert shlex.split(again)[6:] == ["--db", url.replace("secret", "***")]
    done = here.referee("tournament", "resume", REFEREE_DB=url)
    assert done.returncode == 0, done.stderr
    assert "secret" not in said + done.stdout + done.stderr
    checked = here.referee("verify", "--db", url)
    assert checked.stdout == f"cup: {GAMES} games verified.\n"
    for command in READING:
        done = here.referee(*command, "--db", url)
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout.strip(), command
    assert here.referee("verify", "cup.zip").returncode == 0
    assert here.referee("tournament", "run", file, "--league", "file").returncode == 0
    assert here.records("league", db=url) == here.records("file")
    assert not (here.folder / "league" / "league.db").exists()


def test_game_bot_and_plan_use_the_database(here, url):
    here.bot("mine", "from referee.sdk import run\nrun(lambda request: request.legal[0])\n")
    done = here.referee("bots", "submit", "mine", "--db", url)
    assert done.returncode == 0, done.stderr
    assert re.search(r"mine@1 is in the league postgresql\+psycopg://postgres:\*\*\*@", done.stdout)
    kept = here.referee("play", "mine", "mine2", "--keep", "--db", url)
    assert kept.returncode == 2
    assert "postgres:***@" in kept.stderr
    here.bot("other", "from referee.sdk import run\nrun(lambda request: request.legal[0])\n")
    kept = here.referee("play", "mine", "./other", "--keep", "--json", "--db", url)
    assert kept.returncode == 0, kept.stderr
    (row,) = json.loads(here.referee("game", "list", "--json", "--db", url).stdout)
    assert row["game_id"] == json.loads(kept.stdout)["game_id"]
    assert here.referee("bots", "retire", "mine", "--db", url).returncode == 0
    plan = here.referee("tournament", "plan", here.tournament(), "--db", url)
    assert plan.returncode == 0, plan.stderr


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("secret", "the database must be given by a URL: sqlite:///FILE or postgresql"),
        pytest.param(
            "postgresql://ann:secret@h/cup",
            "postgresql://ann:***@h/cup: postgresql is not supported",
            marks=pytest.mark.extended("starts more commands"),
        ),
        pytest.param(
            "postgresql+psycopg://ann:secret@localhost:1/cup",
            "refused",
            marks=pytest.mark.extended("starts more commands"),
        ),
    ],
)
def test_unusable_database_is_refused(here, url, says):
    file = here.tournament()
    for command in (("tournament", "run", file), ("tournament", "plan", file), ("ratings",)):
        done = here.referee(*command, "--db", url)
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
        assert "secret" not in done.stderr
    assert [path.name for path in here.folder.iterdir()] == [file.name]


def test_database_without_a_league_is_refused(here, postgres_url):
    done = here.referee("tournament", "status", "--db", postgres_url)
    assert done.returncode == 2
    says = "there is no league here; `referee tournament run FILE` makes one, or choose another with --db"
    assert says in done.stderr
    assert list(here.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("variable", "is_same"),
    [("sqlite:///{}", True), ("sqlite:////other.db", False), ("postgresql://h/cup", False)],
)
def test_next_command_has_the_option_unless_the_variable_means_the_same(
    tmp_path, monkeypatch, variable, is_same
):
    """The option overrides the variable, so the variable may be wrong: the third one names no driver."""
    file = tmp_path / "other.db"
    monkeypatch.setenv(DB_VARIABLE, variable.format(file))
    with League.open(tmp_path / "league", create=True, db=f"sqlite:///{file}") as league:
        expected = [] if is_same else ["--db", f"sqlite:///{file}"]
        options = league_options(league.folder, league.db)
        assert options == ["--league", str(tmp_path / "league"), *expected]


def test_next_command_has_no_password():
    options = league_options(Path("league"), "postgresql+psycopg://ann:secret@host/cup")
    assert options == ["--league", "league", "--db", "postgresql+psycopg://ann:***@host/cup"]
