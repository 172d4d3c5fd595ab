"""Commands run bots under the strongest isolation unless the user chooses less, and print which one it is."""

import json
import shutil

import pytest
from real_runs import SAMPLE_BOTS, place
from strongest_isolation import strongest

from referee.cli import isolation
from referee.sandbox import bubblewrap

pytestmark = pytest.mark.unmeasured
STRONGEST = {"REFEREE_ISOLATION": ""}
GREEDY, RANDOM = SAMPLE_BOTS / "greedy", SAMPLE_BOTS / "random"


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made
        assert made.left_alone()
        assert made.run_folders() == []


def test_doctor_lists_the_protections(here):
    done = here.referee("doctor", "--json")
    assert done.returncode == 0
    said = json.loads(done.stdout)
    assert said["rung"] == strongest().rung.value
    assert {each["protection"]: each["state"] for each in said["protections"]} == {
        each.protection.value: each.state.value for each in strongest().results
    }
    assert len(said["protections"]) == 10


def test_doctor_without_bubblewrap_advises_to_install_it(monkeypatch, capsys):
    monkeypatch.setattr(bubblewrap, "find_bubblewrap", lambda: None)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    isolation.doctor()
    said = " ".join(capsys.readouterr().out.split())
    assert "isolation: none" in said
    assert "the referee's own rights" in said
    assert "apt install bubblewrap" in said


@pytest.mark.isolation("namespaces")
def test_tournament_uses_the_strongest_isolation_also_when_extended(here):
    file = here.tournament(bots=("random", "greedy"), matches=1, more="# isolation = as it comes\n")
    done = here.referee("tournament", "run", file, "--require-isolation", strongest().rung.value)
    assert done.returncode == 0, done.stderr
    assert f"Isolation of the bots: {strongest().summary}" in done.stdout
    assert {each.isolation for each in here.records("league")} == {strongest().summary}
    done = here.referee("verify", "cup")
    assert done.returncode == 0, done.stderr
    done = here.referee("tournament", "extend", "cup", "--matches", "1")
    assert done.returncode == 0, done.stderr
    assert len(here.records("league")) == 4


@pytest.mark.isolation("namespaces")
def test_single_game_uses_the_strongest_isolation(here):
    done = here.referee("play", GREEDY, RANDOM, "--ruleset", "duel", "--json", **STRONGEST)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["isolation"] == strongest().summary


@pytest.mark.extended("plays more bots in the sandbox")
def test_weaker_isolation_must_be_chosen_and_is_recorded(here):
    done = here.referee(
        "play", GREEDY, RANDOM, "--ruleset", "duel", "--isolation", "none", "--json"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["isolation"] == "none"
    file = here.tournament(bots=("random", "greedy"), matches=1, more='isolation = "none"\n')
    done = here.referee("tournament", "run", file)
    assert "Bots run without isolation, with your rights" in done.stdout
    assert {each.isolation for each in here.records("league")} == {"none"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("play", GREEDY, RANDOM), "isolation 'none' is less than the required 'full'"),
        (("bots", "check", GREEDY), "isolation 'none' is less than the required 'full'"),
        (("bots", "submit", GREEDY), "isolation 'none' is less than the required 'full'"),
    ],
)
def test_nothing_starts_under_weaker_isolation_than_required(here, arguments, reason):
    done = here.referee(*arguments, "--require-isolation", "full")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"referee: {reason}\n"
    assert not (here.folder / "league").exists()


def test_tournament_with_weaker_isolation_than_required_is_refused(here):
    file = here.tournament(more='isolation = "none"\n')
    done = here.referee("tournament", "run", file, "--require-isolation", "namespaces")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "referee: isolation 'none' is less than the required 'namespaces'\n"
    assert not (here.folder / "league").exists()


def test_unknown_rungs_are_refused(here):
    rungs = "full, namespaces, uid, none"
    done = here.referee("play", GREEDY, RANDOM, "--isolation", "steel")
    assert done.stderr == f"referee: --isolation: unknown rung 'steel'; choose one of {rungs}\n"
    done = here.referee("play", GREEDY, RANDOM, "--require-isolation", "steel")
    assert (
        done.stderr
        == f"referee: --require-isolation: unknown rung 'steel'; choose one of {rungs}\n"
    )
    done = here.referee("tournament", "run", here.tournament(more='isolation = "steel"\n'))
    assert done.returncode == 2
    assert "cup.toml: isolation:" in done.stderr


def built_bot(here, name, *command):
    folder = here.folder / name
    shutil.copytree(RANDOM, folder)
    words = ", ".join(f"'''{word}'''" for word in command)
    manifest = folder / "bot.toml"
    text = manifest.read_text().replace('name = "random"', f'name = "{name}"')
    manifest.write_text(f"{text}\n[build]\ncommand = [{words}]\n")
    return folder


@pytest.mark.extended("plays more bots in the sandbox")
@pytest.mark.isolation("namespaces")
def test_build_has_no_network_and_the_error_says_how_to_allow_it(here):
    asks = "import urllib.request as u; u.urlopen('http://registry.example', timeout=5)"
    bot = built_bot(here, "asks", "python3", "-c", asks)
    done = here.referee("play", bot, GREEDY, "--ruleset", "duel", **STRONGEST)
    assert done.returncode == 2
    assert done.stderr.endswith(
        "referee: asks: bot.toml: build.command: exited with 1;"
        " builds have no network access unless you allow it with --allow-network\n"
    )


@pytest.mark.extended("plays more bots in the sandbox")
@pytest.mark.isolation("namespaces")
def test_build_reaches_this_machine_only_if_allowed(here):
    look = "ls /etc/resolv.conf && echo made > made"
    bot = built_bot(here, "looks", "sh", "-c", look)
    arguments = ("play", bot, GREEDY, "--ruleset", "duel")
    assert here.referee(*arguments, **STRONGEST).returncode == 2
    assert here.referee(*arguments, "--allow-network", **STRONGEST).returncode == 0


@pytest.mark.extended("plays more bots in the sandbox")
@pytest.mark.isolation("namespaces")
def test_build_sees_neither_secrets_nor_the_home_folder(here):
    look = "env; ls -A ~; cat ~/.bashrc; test -w . && ! test -e ~/.bashrc && ! env | grep hidden"
    bot = built_bot(here, "spy", "sh", "-c", look)
    done = here.referee(
        *("play", bot, GREEDY, "--ruleset", "duel", "--keep"), MY_PRIVATE="hidden", **STRONGEST
    )
    assert done.returncode == 0, done.stderr
    [log] = (here.folder / "league" / "bots" / "spy").glob("*/build.log")
    assert "MY_PRIVATE" not in log.read_text()
    assert not list((here.folder / "league" / "bots" / "spy").glob("*/home-*"))


@pytest.mark.extended("plays more bots in the sandbox")
@pytest.mark.isolation("namespaces")
def test_build_that_leaves_a_daemon_is_refused(here):
    bot = built_bot(here, "leaves", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & exit 0")
    done = here.referee("play", bot, GREEDY, "--ruleset", "duel", **STRONGEST)
    assert done.returncode == 2
    assert "has left sleep running: a build must end all that it starts" in done.stderr


@pytest.mark.extended("plays more bots in the sandbox")
@pytest.mark.isolation("namespaces")
def test_check_and_submit_use_the_isolation(here):
    done = here.referee("bots", "submit", RANDOM, **STRONGEST)
    assert done.returncode == 0, done.stdout + done.stderr
