"""`tournament run` makes a tournament of bots and options, with the checks of a tournament file, and can write the file."""

import errno
import json
import os
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest
from real_runs import SAMPLE_BOTS, SEED, place
from tournament.config_files import FakePace, with_bots

from referee import toml_file
from referee.cli import run
from referee.cli.without_file import RUN, check_new, read_arguments, save_file
from referee.errors import UserError
from referee.rules.ruleset import RULESETS
from referee.sandbox import Rung
from referee.tournament.config_reader import load_tournament

PACE = FakePace({})
DUEL = {"ruleset": "duel", "seats": 2, "matches": 3}


@pytest.fixture
def here(tmp_path):
    """A working directory with the folders of four bots."""
    with chdir(with_bots(tmp_path)):
        yield tmp_path


def error_of(*words, keys=DUEL, settings=()):
    with pytest.raises(UserError) as caught:
        read_arguments(words, keys, settings, PACE)
    return str(caught.value)


def test_options_make_the_same_configuration_as_the_file_that_is_saved(here):
    settings = (
        "clocks.decision=2",
        "clocks.bank=30+0.1",
        "deals = fresh",
        'format="gauntlet"',
        'challengers=["./cy", "zoe", {path="./cy", name="deep", args=["-d", "6"]}]',
        "until={margin=2.5}",
        "show_names=true",
    )
    config, content = read_arguments(("./ann", "./bob"), DUEL | {"name": "cup"}, settings, PACE)
    assert (config.file, config.name, len(config.bots)) == (RUN, "cup", 5)
    (here / "cups").mkdir()
    saved = Path("cups/cup.toml")
    save_file(saved, content, config)
    loaded = load_tournament(saved)
    for bot, saved_bot in zip(config.bots, loaded.bots, strict=True):
        assert (saved_bot.folder, saved_bot.variant) == (bot.folder, bot.variant)
    assert replace(loaded, file=RUN, bots=config.bots) == config
    assert 'bots = ["../ann", "../bob"]' in saved.read_text()


def test_folder_beside_the_saved_file_is_written_with_a_slash(here):
    config, content = read_arguments(("./ann", "./bob"), DUEL, (), PACE)
    save_file(here / "cup.toml", content, config)
    assert 'bots = ["./ann", "./bob"]' in (here / "cup.toml").read_text()


@pytest.mark.parametrize(("settings", "mode"), [((), 0o644), ((f"seed={SEED}",), 0o600)])
def test_only_the_user_can_read_a_saved_file_with_a_seed(here, settings, mode):
    before = os.umask(0o022)
    try:
        config, content = read_arguments(("./ann", "./bob"), DUEL, settings, PACE)
        save_file(here / "cup.toml", content, config)
    finally:
        os.umask(before)
    assert (here / "cup.toml").stat().st_mode & 0o777 == mode


def test_file_saved_through_a_link_names_the_folders_of_its_bots(here):
    (here / "deep" / "er").mkdir(parents=True)
    (here / "link").symlink_to(here / "deep" / "er")
    config, content = read_arguments(("./ann", "./bob"), DUEL, (), PACE)
    save_file(here / "link" / "cup.toml", content, config)
    loaded = load_tournament(here / "link" / "cup.toml")
    assert [entry.folder.resolve() for entry in loaded.bots] == [here / "ann", here / "bob"]


@pytest.mark.usefixtures("here")
def test_tournament_has_the_name_of_its_ruleset_by_default():
    assert read_arguments(("./ann", "./bob"), DUEL, (), PACE)[0].name == "duel"
    staged = ('stage=[{ruleset="duel", seats=2, matches=1}]',)
    assert read_arguments(("./ann", "./bob"), {}, staged, PACE)[0].name == "tournament"


def test_single_word_is_a_file_that_leaves_nothing_to_options(here):
    file = here / "cup.toml"
    file.write_text('name="cup"\nbots=["./ann", "./bob"]\nruleset="duel"\nseats=2\nmatches=1\n')
    config, content = read_arguments((str(file),), {"seats": None}, (), PACE)
    assert (config, content) == (load_tournament(file), None)
    reason = f"not allowed with a tournament file; change the key in {file}"
    assert error_of(str(file)) == f"--ruleset: {reason}"
    assert error_of(str(file), keys={}, settings=("seats=2",)) == f"--set: {reason}"
    assert error_of("ann.toml", keys={}) == "ann.toml: no such file"
    assert error_of("./no/such") == "no/such: no such file"


@pytest.mark.parametrize(
    ("keys", "settings", "message"),
    [
        (
            {},
            (),
            (
                "tournament run: ruleset: missing\n"
                "tournament run: seats: missing\n"
                "tournament run: matches: missing; give matches or a budget"
            ),
        ),
        ({"matches": None}, (), "tournament run: matches: missing; give matches or a budget"),
        ({"seats": 3}, (), "tournament run: seats: duel has 2 players, not 3"),
        (
            {"ruleset": "Foo!"},
            (),
            f"tournament run: ruleset: unknown ruleset 'Foo!'; choose one of {', '.join(RULESETS)}",
        ),
        (DUEL, ("mathes=2",), "tournament run: mathes: unknown key (did you mean 'matches'?)"),
        (DUEL, ("matches=2",), "--set: matches: given twice"),
        (DUEL, (f"matches={DUEL['matches']}",), "--set: matches: given twice"),
        (DUEL, ("name=cup",), "--set: name: give it with --name"),
        (DUEL, ("bots=[]",), "--set: bots: give the bots as arguments, without --set"),
        (DUEL, ("clocks.bank=1", "clocks={bank=2}"), "--set: clocks.bank: given twice"),
        (DUEL, ("clocks.bank=1", "clocks=2"), "--set: clocks: given twice"),
        (DUEL, ("until",), "--set: 'until': write KEY=VALUE, such as clocks.decision=2"),
        (DUEL, ("until={margin=1",), "--set: end of document: Unclosed inline table"),
        (DUEL, ("clocks.=2",), "--set: line 1: Invalid initial character for a key part"),
    ],
)
@pytest.mark.usefixtures("here")
def test_wrong_options_have_the_messages_of_a_file(keys, settings, message):
    keys = DUEL | keys if keys else {}
    assert error_of("./ann", "./bob", keys=keys, settings=settings) == message


@pytest.mark.usefixtures("here")
def test_text_that_looks_like_a_number_needs_no_quotes():
    for setting, key, value in (
        ("clocks.bank=30", "clocks", {"bank": "30"}),
        ("clocks . bank = 30", "clocks", {"bank": "30"}),
        ('"clocks".bank=30', "clocks", {"bank": "30"}),
        ("clocks.bank='30'", "clocks", {"bank": "30"}),
        (f"seed={'1' * 64}", "seed", "1" * 64),
        (f"seed={'1' * 62}e1", "seed", f"{'1' * 62}e1"),
        ("max_turns=30", "max_turns", 30),
    ):
        _, content = read_arguments(("./ann", "./bob"), DUEL, (setting,), PACE)
        assert content[key] == value


@pytest.mark.parametrize("others", [("a.toml",), ("./ann", "greedy")])
def test_tournament_file_beside_other_arguments_is_refused(here, others):
    reason = "is a tournament file; give one file and nothing else, or only bots"
    assert error_of("cup.toml", *others, keys={}) == f"FILE|BOT: cup.toml {reason}"
    assert error_of(*others[1:], "cup.toml", "bob", keys={}) == f"FILE|BOT: cup.toml {reason}"
    (here / "ann").rename(here / "bot.toml")
    read_arguments(("./bot.toml", "./bob"), DUEL, (), PACE)


@pytest.mark.usefixtures("here")
def test_unknown_folder_is_named_with_its_place():
    assert error_of("./ann", "./eve") == "tournament run: bots[1]: './eve': no such folder"


def test_new_file_is_accepted_and_leaves_no_trace(here):
    before = sorted(here.iterdir())
    check_new(here / "new.toml")
    assert sorted(here.iterdir()) == before


def test_file_that_cannot_be_created_is_refused(here):
    (here / "cup.toml").touch()
    (here / "dangling.toml").symlink_to(here / "none" / "cup.toml")
    (here / "loop").symlink_to(here / "loop")
    for file, reason in (
        (here / "cup.toml", f"{here / 'cup.toml'}: exists already; choose a new file"),
        (here / "ann", f"{here / 'ann'}: exists already; choose a new file"),
        (here / "dangling.toml", f"{here / 'dangling.toml'}: exists already; choose a new file"),
        (here / "none" / "cup.toml", f"{here / 'none'}: no such folder"),
        (here / "cup.toml" / "cup.toml", f"{here / 'cup.toml'}: no such folder"),
        (here / ("c" * 300), f"{here / ('c' * 300)}: File name too long"),
        (here / "loop" / "c.toml", f"{here}/loop/c.toml: Too many levels of symbolic links"),
    ):
        with pytest.raises(UserError) as caught:
            check_new(file)
        assert str(caught.value) == f"--save: {reason}"
    assert not (here / "none").exists()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_folder_that_cannot_be_used_is_refused(here, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UserError) as caught:
        check_new(here / "new.toml")
    assert str(caught.value) == f"--save: {here / 'new.toml'}: {os.strerror(number)}"


def test_no_part_of_a_file_is_left_that_could_not_be_written(here, monkeypatch):
    config, content = read_arguments(("./ann", "./bob"), DUEL, (), PACE)
    monkeypatch.setattr(toml_file, "write", lambda _: "x = 1\n\ud800")  # the end cannot be encoded
    with pytest.raises(UnicodeEncodeError):
        save_file(here / "cup.toml", content, config)
    assert not (here / "cup.toml").exists()


def test_error_after_the_tournament_is_stored_says_how_to_resume_it(tmp_path, monkeypatch):
    def fill_disk(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(run, "save_file", fill_disk)
    with place(tmp_path) as made:
        bots = (SAMPLE_BOTS / "greedy", SAMPLE_BOTS / "random")
        words = ("--ruleset", "duel", "--seats", "2", "--matches", "1", "--save", "cup.toml")
        done = made.referee("tournament", "run", *bots, *words)
        (row,) = json.loads(made.referee("tournament", "status", "--json").stdout)
    assert done.returncode == 1
    assert done.stderr == (
        "referee: --save: cup.toml: No space left on device; the tournament duel is stored; resume it with:"
        " referee tournament resume duel --league league\n"
    )
    assert row["tournament"] == "duel"


@pytest.mark.extended("plays a tournament")
def test_tournament_without_a_file_is_played_saved_and_verified(tmp_path):
    with place(tmp_path) as made:
        bots = (SAMPLE_BOTS / "greedy", SAMPLE_BOTS / "random")
        words = ("--ruleset", "duel", "--seats", "2", "--matches", "1", "--save", "cup.toml")
        done = made.referee("tournament", "run", *bots, *words)
        assert (done.returncode, done.stderr) == (0, "")
        assert made.referee("verify", "duel").returncode == 0
        assert 'isolation = "none"' not in (made.folder / "cup.toml").read_text(), "of a variable"
        plan = json.loads(made.referee("tournament", "plan", "cup.toml", "--json").stdout)
        assert plan[-1]["games"] == 2
        assert made.referee("tournament", "run", "cup.toml", "--save", "x").returncode == 2


@pytest.mark.extended("plays a tournament")
def test_saved_file_has_the_isolation_that_the_tournament_keeps(tmp_path):
    with place(tmp_path) as made:
        bots = (SAMPLE_BOTS / "greedy", SAMPLE_BOTS / "random")
        words = ("--ruleset", "duel", "--seats", "2", "--matches", "1", "--save", "cup.toml")
        done = made.referee("tournament", "run", *bots, *words, "--isolation", "none")
        assert (done.returncode, done.stderr) == (0, "")
        assert load_tournament(made.folder / "cup.toml").isolation is Rung.NONE
