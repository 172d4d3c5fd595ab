"""Commands run bots under the strongest isolation unless the user chooses less, and print which one it is.

On a machine without isolation they run only the sample bots, unless the user chooses `none`.
"""

import json
import shutil
from dataclasses import replace

import pytest
from real_runs import SAMPLE_BOTS, place, run_here
from strongest_isolation import strongest

from referee.bots.manifest import Build, load_manifest
from referee.cli import isolation, playing
from referee.errors import UserError
from referee.sandbox import NO_ISOLATION, Protection, Refusal, Rung, ladder

pytestmark = pytest.mark.unmeasured
STRONGEST = {"REFEREE_ISOLATION": ""}
GREEDY, RANDOM = SAMPLE_BOTS / "greedy", SAMPLE_BOTS / "random"
DUEL = ("--ruleset", "duel", "--seats", "2", "--matches", "1")


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
    assert len(said["protections"]) == len(Protection)


def test_doctor_without_bubblewrap_advises_to_install_it(monkeypatch, capsys):
    monkeypatch.setattr(ladder, "find_bubblewraps", list)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    isolation.doctor()
    said = " ".join(capsys.readouterr().out.split())
    assert "isolation: none" in said
    assert "the referee's own rights" in said
    assert "apt install bubblewrap" in said


@pytest.mark.extended("plays more bots in the sandbox")
@pytest.mark.isolation("namespaces")
def test_tournament_uses_the_strongest_isolation_also_when_extended(here):
    file = here.tournament(bots=("random", "greedy"), matches=1, more="# isolation = as it comes\n")
    rung = strongest().rung.value
    done = here.referee("tournament", "run", file, "--require-isolation", rung, **STRONGEST)
    assert done.returncode == 0, done.stderr
    assert f"Isolation of the bots: {strongest().summary}" in done.stdout
    assert {each.isolation for each in here.records("league")} == {strongest().summary}
    done = here.referee("verify", "cup")
    assert done.returncode == 0, done.stderr
    done = here.referee("tournament", "extend", "cup", "--matches", "1", **STRONGEST)
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
def test_build_has_no_network_and_the_error_says_where_packages_come_from(here):
    asks = "import urllib.request as u; u.urlopen('http://registry.example', timeout=5)"
    bot = built_bot(here, "asks", "python3", "-c", asks)
    done = here.referee("play", bot, GREEDY, "--ruleset", "duel", **STRONGEST)
    assert done.returncode == 2
    assert done.stderr.endswith(
        "referee: asks: bot.toml: build.command: exited with 1; a build has no network: name the packages in a file"
        " that a package manager reads, or set build.fetch (proto/README.md, section 3)\n"
    )


@pytest.mark.extended("plays more bots in the sandbox")
def test_refused_package_is_named_and_the_league_stays_as_it_was(here):
    bot = here.folder / "git"
    shutil.copytree(RANDOM, bot)
    (bot / "requirements.txt").write_text("six @ git+https://evil.example/six\n")
    done = here.referee("bots", "submit", bot, **STRONGEST)
    assert done.returncode == 1
    shown = " ".join(done.stdout.split())
    assert "requirements.txt: six @ git+https://evil.example/six: only packages" in shown
    assert "The bot was not submitted." in done.stdout


@pytest.mark.extended("fetches a package from a registry")
def test_bot_in_python_imports_the_packages_of_its_requirements(here):
    bot = here.folder / "importer"
    shutil.copytree(RANDOM, bot)
    (bot / "requirements.txt").write_text("six==1.16.0\n")
    program = bot / "bot.py"
    program.write_text(f"import six\n{program.read_text()}assert 'site-packages' in six.__file__\n")
    manifest = bot / "bot.toml"
    manifest.write_text(manifest.read_text().replace('"random"', '"importer"'))
    done = here.referee("play", bot, GREEDY, "--ruleset", "duel", **STRONGEST)
    assert done.returncode == 0, done.stderr
    assert "Fetching the packages of importer\n" in done.stderr


@pytest.mark.extended("plays more bots in the sandbox")
def test_fetch_of_a_manifest_is_shown_to_whoever_plays_or_checks_the_bot(here):
    bot = built_bot(here, "fetches", "test", "-e", "got")
    with (bot / "bot.toml").open("a") as manifest:
        manifest.write('fetch = ["touch", "got"]\n')
    for command in (("play", bot, GREEDY, "--ruleset", "duel"), ("bots", "check", bot, "--quick")):
        done = here.referee(*command, **STRONGEST)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Fetching the packages of fetches: touch got\n" in done.stderr


def test_command_of_a_fetch_is_shown_without_markup_and_control_characters(capsys):
    build = Build(command=("true",), fetch=("sh", "-c", "[conceal]x[/b]\x1b[8m"))
    manifest = load_manifest(GREEDY).model_copy(update={"build": build})
    isolation.announce_fetch(manifest)
    shown = capsys.readouterr().err
    assert shown == "Fetching the packages of greedy: sh -c [conceal]x[/b]\\x1b[8m\n"


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
    assert "has left sleep running: it must end every process that it starts" in done.stderr


@pytest.mark.extended("plays more bots in the sandbox")
@pytest.mark.isolation("namespaces")
def test_check_and_submit_use_the_isolation(here):
    done = here.referee("bots", "submit", RANDOM, **STRONGEST)
    assert done.returncode == 0, done.stdout + done.stderr


# A machine without isolation


REFUSED = "this machine cannot isolate bots (there is no bubblewrap), and only the sample bots play"


@pytest.fixture
def bare(here, monkeypatch):
    """Return a function that runs a command on a machine that gives no isolation."""

    async def find_nothing():
        refusal = Refusal(Rung.FULL, "there is no bubblewrap", "make some")
        return replace(NO_ISOLATION, refusals=(refusal,))

    monkeypatch.setattr(ladder, "_find_strongest", find_nothing)

    def run(*words, **environment):
        environment = {"REFEREE_ISOLATION": ""} | environment
        return run_here(list(map(str, words)), here.folder, here.environment(**environment))

    return run


@pytest.mark.parametrize(
    ("key_variable_option", "wanted", "lasting"),
    [
        (("none", "full", "full"), Rung.FULL, Rung.FULL),
        (("full", "none", "none"), Rung.NONE, Rung.NONE),
        (("none", "full", None), Rung.FULL, Rung.NONE),
        (("full", "none", None), Rung.FULL, Rung.FULL),
        ((None, "none", None), Rung.NONE, None),
        (("uid", "", None), Rung.UID, Rung.UID),
        (("full", "none", "uid"), Rung.UID, Rung.UID),
        ((None, "", None), None, None),
    ],
)
def test_typed_option_beats_the_key_and_the_variable_only_strengthens_it(
    here, monkeypatch, key_variable_option, wanted, lasting
):
    """A selected rung ends the command, so that no bot plays."""
    key, variable, option = key_variable_option
    chosen = []

    def note(rung, _required):
        chosen.append(rung)
        raise UserError("enough")

    monkeypatch.setattr(isolation, "select_isolation", note)
    stored = []
    monkeypatch.setattr(
        playing, "replace", lambda config, **new: stored.append(new) or replace(config, **new)
    )
    file = here.tournament(more=f'isolation = "{key}"\n' if key else "# isolation\n")
    words = ["tournament", "run", str(file), *(("--isolation", option) if option else ())]
    done = run_here(words, here.folder, here.environment(REFEREE_ISOLATION=variable))
    assert done.stderr == "referee: enough\n"
    assert chosen == [wanted]
    assert stored == [{"isolation": lasting}]


@pytest.mark.extended("plays more games without isolation")
@pytest.mark.parametrize(
    ("variable", "option"),
    [
        pytest.param("full", None, id="stronger"),
        pytest.param("full", "full", id="typed"),
        pytest.param("none", None, id="equal"),
    ],
)
def test_extension_takes_the_stronger_rung_of_variable_and_tournament(
    here, bare, monkeypatch, variable, option
):
    """The rung `full` plays without isolation here: this test is about the choice."""
    file = here.tournament(matches=1)
    assert bare("tournament", "run", file).returncode == 0
    chosen = []

    async def note(rung, required):
        chosen.append(rung)
        return await ladder.select_isolation(Rung.NONE, required)

    monkeypatch.setattr(isolation, "select_isolation", note)
    words = ("tournament", "extend", "cup", "--matches", "1")
    words += ("--isolation", option) if option else ()
    assert bare(*words, REFEREE_ISOLATION=variable).returncode == 0
    assert chosen == [Rung(variable)]


@pytest.fixture
def stranger(here):
    """Return a bot whose build leaves the file `built`."""
    return built_bot(here, "stranger", "touch", str(here.folder / "built"))


def assert_refused(done, here):
    assert done.returncode == 2, done.stdout
    assert done.stdout == ""
    assert REFUSED in done.stderr
    assert done.stderr.endswith(
        "; to isolate bots: make some; if you trust the bots: --isolation none\n"
    )
    assert not (here.folder / "built").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("play", GREEDY, "./stranger", "--ruleset", "duel"),
        ("play", GREEDY, "./stranger", "--ruleset", "duel", "--require-isolation", "none"),
        ("bots", "check", "stranger"),
        ("bots", "submit", "stranger"),
    ],
)
def test_stranger_is_neither_built_nor_started_without_isolation(here, bare, stranger, words):
    done = bare(*words)
    assert_refused(done, here)
    assert f"referee: {stranger.name}: {REFUSED}" in done.stderr
    assert not (here.folder / "league").exists()


def test_tournament_with_a_stranger_is_refused_without_isolation(here, bare, stranger):
    file = here.tournament(bots=("random", stranger), matches=1, more="# isolation = as it comes\n")
    assert_refused(bare("tournament", "run", file), here)
    assert not (here.folder / "league").exists()


@pytest.mark.extended("plays more games without isolation")
def test_sample_bots_play_without_isolation(here, bare):
    done = bare("play", GREEDY, RANDOM, "--ruleset", "duel", "--json")
    assert json.loads(done.stdout)["isolation"] == "none"
    assert "This machine cannot isolate bots: the sample bots run with your rights" in done.stderr
    file = here.tournament(bots=("random", "greedy"), matches=1, more="# isolation = as it comes\n")
    assert bare("tournament", "run", file).returncode == 0
    assert bare("play", "greedy", "random", "--ruleset", "duel").returncode == 0
    assert bare("tournament", "extend", "cup", "--matches", "1").returncode == 0
    assert {each.isolation for each in here.records("league")} == {"none"}


def test_changed_sample_bot_is_a_stranger(here, bare):
    shutil.copytree(RANDOM, here.folder / "random")
    arguments = ("play", GREEDY, "./random", "--ruleset", "duel")
    assert bare(*arguments).returncode == 0
    assert not (here.folder / "league").exists(), "copies for one game are kept elsewhere"
    with (here.folder / "random" / "bot.py").open("a") as program:
        program.write("\n")
    assert_refused(bare(*arguments), here)


@pytest.fixture
def intruder(here, monkeypatch):
    """Change the folder `random` right after the check of its content. Its new program leaves the file `built`."""
    shutil.copytree(RANDOM, here.folder / "random")

    def check(*arguments):
        check_unisolated(*arguments)
        (here.folder / "random" / "bot.py").write_text(
            f"open({str(here.folder / 'built')!r}, 'w')\n"
        )

    check_unisolated = isolation.check_unisolated
    monkeypatch.setattr(isolation, "check_unisolated", check)


@pytest.mark.parametrize(
    "words",
    [
        ("play", GREEDY, "./random", "--ruleset", "duel"),
        ("play", GREEDY, "./random", "--ruleset", "duel", "--keep"),
        ("bots", "check", "random"),
        ("bots", "submit", "random"),
        ("tournament", "run", GREEDY, "./random", *DUEL),
    ],
)
@pytest.mark.usefixtures("intruder")
def test_sample_bot_that_changes_after_the_check_is_not_started(here, bare, words):
    done = bare(*words)
    assert done.returncode in {1, 2}
    shown = " ".join((done.stdout + done.stderr).split())
    assert "random: is not a sample bot any more; only the sample bots play without" in shown
    assert not (here.folder / "built").exists()


@pytest.mark.extended("starts more commands")
def test_copy_of_a_sample_bot_that_was_changed_is_a_stranger(here, bare):
    arguments = ("play", GREEDY, RANDOM, "--ruleset", "duel", "--keep")
    assert bare(*arguments).returncode == 0
    [program] = (here.folder / "league" / "bots" / "random").glob("*/bot/bot.py")
    original = program.read_text()
    program.chmod(0o644)
    program.write_text(f"open({str(here.folder / 'built')!r}, 'w')\n")
    assert_refused(bare("play", "greedy", "random", "--ruleset", "duel"), here)
    assert bare(*arguments).returncode == 0  # makes the copy again
    assert program.read_text() == original
    assert not (here.folder / "built").exists()


@pytest.mark.extended("plays more games without isolation")
def test_user_can_trust_a_stranger(here, bare, stranger):
    arguments = ("play", GREEDY, "./stranger", "--ruleset", "duel")
    assert bare(*arguments, "--isolation", "none").returncode == 0
    assert (here.folder / "built").exists()
    assert bare(*arguments, REFEREE_ISOLATION="none").returncode == 0
    file = here.tournament(bots=("random", stranger), matches=1)
    assert bare("tournament", "run", file).returncode == 0


@pytest.mark.extended("plays more games without isolation")
def test_tournament_keeps_the_users_word_when_it_is_extended(here, bare, stranger):
    file = here.tournament(bots=("random", stranger), matches=1, more="# isolation = as it comes\n")
    assert bare("tournament", "run", file, "--isolation", "none").returncode == 0
    assert bare("tournament", "extend", "cup", "--matches", "1").returncode == 0
    assert len(here.records("league")) == 4


@pytest.mark.extended("plays more games without isolation")
def test_stranger_of_a_league_is_refused_where_isolation_is_gone(here, bare, stranger, monkeypatch):
    async def find_isolation():
        return NO_ISOLATION  # stands for any isolation

    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(ladder, "_find_strongest", find_isolation)
        file = here.tournament(
            bots=("random", stranger), matches=1, more="# isolation = as it comes\n"
        )
        assert bare("tournament", "run", file).returncode == 0
    (here.folder / "built").unlink()
    extend = ("tournament", "extend", "cup", "--matches", "1")
    assert_refused(bare(*extend), here)
    assert_refused(bare("play", "random", "stranger", "--ruleset", "duel"), here)
    assert len(here.records("league")) == 2
    assert bare(*extend, "--isolation", "none").returncode == 0
    assert_refused(bare(*extend), here)  # the option holds for one run


def test_no_league_is_opened_if_no_bot_is_named(tmp_path):
    assert list(isolation.find_bots([tmp_path], (), tmp_path / ("x" * 300), None)) == [tmp_path]
