"""The bots of a tournament are found by folder, name or version, and checked before anything is created."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from real_runs import SAMPLE_BOTS, place

from referee.bots.manifest import Variant
from referee.errors import NotFoundError, UserError
from referee.records import BotId
from referee.roster.roster import Roster, is_sample_bot
from referee.roster.workshop import Workshop
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store.league import League
from referee.tournament.config import canonical_json
from referee.tournament.config_reader import load_tournament
from referee.tournament.create import _free_name, check_bots, enter_bots

TWICE_HINT = (
    "; to play against itself, it needs a second name in a tournament file:"
    ' { path = "./FOLDER", name = "NAME" }'
)


@pytest.fixture
def roster(tmp_path):
    with League.open(tmp_path / "league", create=True) as league:
        yield Roster(league, Workshop(league.folder, ProcessGroupLauncher(), on_build=print))


def bot(folder, name, *, version="1", author="x", more=""):
    folder.mkdir()
    (folder / "bot.toml").write_text(
        f'name = "{name}"\nversion = "{version}"\nauthor = "{author}"\nlanguage = "sh"\n{more}'
        '[run]\ncommand = ["./bot"]\n'
    )
    return folder


def cup(tmp_path, *bots, ruleset="basic", more=""):
    listed = ", ".join(text if text.startswith("{") else f'"{text}"' for text in bots)
    path = tmp_path / "cup.toml"
    path.write_text(
        f'name = "cup"\nbots = [{listed}]\nruleset = "{ruleset}"\nseats = 2\nmatches = 1\n{more}'
    )
    return load_tournament(path)


async def refusal(roster, config):
    """Return the message with which `check_bots` refuses a configuration. Assert that `enter_bots` gives the same message."""
    with pytest.raises(UserError) as planned:
        check_bots(config, roster)
    with pytest.raises(UserError) as started:
        await enter_bots(config, roster, now_us=1)
    assert str(planned.value) == str(started.value)
    return str(planned.value)


async def submit_ann(roster, tmp_path, more):
    """Submit the bot ann with a program that can be started; `more` is the end of its manifest."""
    folder = bot(tmp_path / "ann", "ann", more=more)
    (folder / "bot").write_text("#!/bin/sh\n")
    (folder / "bot").chmod(0o755)
    await roster.submit(folder, now_us=0)


async def enter(roster, config):
    check_bots(config, roster)
    return [str(spec.bot) for spec in await enter_bots(config, roster, now_us=1)]


async def test_bots_come_from_paths_and_from_the_league(roster, tmp_path):
    await roster.submit(bot(tmp_path / "zoe1", "zoe"), now_us=0)
    await roster.submit(bot(tmp_path / "zoe2", "zoe", version="2"), now_us=0)
    bot(tmp_path / "ann", "ann")
    config = cup(tmp_path, "./ann", "zoe@1", "zoe")
    assert await enter(roster, config) == ["ann@1", "zoe@1", "zoe@2"]


async def test_two_versions_of_a_bot_may_meet(roster, tmp_path):
    bot(tmp_path / "old", "ann")
    bot(tmp_path / "new", "ann", more='description = "better"\n')
    assert await enter(roster, cup(tmp_path, "./old", "./new")) == ["ann@1", "ann@1+2"]


async def test_a_bot_that_is_listed_by_name_and_by_folder_is_refused(roster, tmp_path):
    await roster.submit(bot(tmp_path / "ann", "ann"), now_us=0)
    for texts in (("ann", "./ann"), ("./ann", "ann@1")):
        config = cup(tmp_path, *texts)
        same = "bots[1]: the same bot as bots[0], ann@1"
        assert await refusal(roster, config) == f"{config.file}: {same}{TWICE_HINT}"
    (tmp_path / "ann" / "more").touch()
    assert await enter(roster, cup(tmp_path, "ann", "./ann")) == ["ann@1", "ann@1+2"]


@pytest.mark.parametrize("texts", [("./ann", "ann"), ("ann", "./ann")])
async def test_name_means_the_version_from_before_the_folders_are_entered(roster, tmp_path, texts):
    folder = bot(tmp_path / "ann", "ann")
    await roster.submit(folder, now_us=0)
    (folder / "more").touch()
    versions = {"ann": "ann@1", "./ann": "ann@1+2"}
    assert await enter(roster, cup(tmp_path, *texts)) == [versions[text] for text in texts]


@pytest.mark.parametrize("new_is_first", [True, False])
async def test_variant_by_name_is_of_the_version_from_before_the_folders_are_entered(
    roster, tmp_path, new_is_first
):
    folder = bot(tmp_path / "ann", "ann", more='description = "old"\n')
    await roster.submit(folder, now_us=0)
    manifest = folder / "bot.toml"
    manifest.write_text(manifest.read_text().replace("old", "new"))
    texts = ["./ann", DEEP.replace("./ann", "ann")]
    await enter(roster, cup(tmp_path, *(texts if new_is_first else reversed(texts))))
    assert roster.manifest(BotId("ann", "1+2")).description == "new"
    assert roster.manifest(BotId("deep", "1")).description == "old"


async def test_league_inside_the_folder_of_a_bot_does_not_change_the_hash_of_the_bot(tmp_path):
    folder = bot(tmp_path / "ann", "ann")
    with League.open(folder / "sub" / "league", create=True) as league:
        roster = Roster(league, Workshop(league.folder, ProcessGroupLauncher(), on_build=print))
        await roster.submit(folder, now_us=0)
        config = cup(tmp_path, "ann", "./ann")
        same = "bots[1]: the same bot as bots[0], ann@1"
        assert await refusal(roster, config) == f"{config.file}: {same}{TWICE_HINT}"


async def test_two_folders_with_the_same_content_are_refused(roster, tmp_path):
    shutil.copytree(bot(tmp_path / "ann", "ann"), tmp_path / "copy")
    config = cup(tmp_path, "./ann", "./copy")
    for there in (None, roster):
        with pytest.raises(UserError) as caught:
            check_bots(config, there)
        assert str(caught.value) == f"{config.file}: bots[1]: the same bot as bots[0]{TWICE_HINT}"
    (tmp_path / "copy" / "more").touch()
    check_bots(config, None)
    assert await enter(roster, config) == ["ann@1", "ann@1+2"]


@pytest.mark.parametrize(
    ("texts", "same"),
    [
        (("./ann", "./bob", "./ann"), "bots[2]: the same bot as bots[0]"),
        (("./bob", "ann", "./bob/"), "bots[2]: the same bot as bots[0]"),
        (("ann", "./bob", "ann"), "bots[2]: the same bot as bots[0], ann@1"),
        (("ann", "ann@1", "./bob"), "bots[1]: the same bot as bots[0], ann@1"),
        (("ann@1", "./bob", "ann"), "bots[2]: the same bot as bots[0], ann@1"),
    ],
)
async def test_a_bot_that_is_listed_twice_is_refused_before_anything_is_created(
    roster, tmp_path, texts, same
):
    await roster.submit(bot(tmp_path / "ann", "ann"), now_us=0)
    bot(tmp_path / "bob", "bob")
    config = cup(tmp_path, *texts)
    with pytest.raises(UserError) as caught:
        check_bots(config, roster)
    assert str(caught.value) == f"{config.file}: {same}{TWICE_HINT}"


async def test_challenger_in_the_field_under_another_text_is_refused(roster, tmp_path):
    await roster.submit(bot(tmp_path / "ann", "ann"), now_us=0)
    bot(tmp_path / "bob", "bob")
    config = cup(tmp_path, "./bob", "ann", more='format = "gauntlet"\nchallengers = ["ann@1"]\n')
    with pytest.raises(UserError) as caught:
        check_bots(config, roster)
    same = "bots[1]: the same bot as challengers[0], ann@1"
    assert str(caught.value) == f"{config.file}: {same}{TWICE_HINT}"


async def test_an_unknown_name_or_version_is_refused(roster, tmp_path):
    await roster.submit(bot(tmp_path / "ann", "ann"), now_us=0)
    for text, reason in (
        ("zed", "the league has no bot 'zed'"),
        ("ann@2", "there is no version '2' of 'ann'; there are: 1"),
    ):
        config = cup(tmp_path, "./ann", text)
        with pytest.raises(NotFoundError) as caught:
            check_bots(config, roster)
        assert str(caught.value) == (
            f"{config.file}: bots[1]: {tmp_path}/league: {reason};"
            f" if you mean a folder, write it with a slash, such as ./{text}"
        )


async def test_a_name_without_a_league_is_refused(tmp_path):
    bot(tmp_path / "ann", "ann")
    with pytest.raises(NotFoundError, match="the league has no bot 'zed'"):
        check_bots(cup(tmp_path, "./ann", "zed"), None)


async def test_a_bot_with_a_bad_manifest_is_refused(tmp_path):
    bot(tmp_path / "ann", "ann")
    (bot(tmp_path / "bob", "bob") / "bot.toml").write_text("")
    with pytest.raises(UserError, match=r"/bob/bot\.toml: name: missing\n"):
        check_bots(cup(tmp_path, "./ann", "./bob"), None)


@pytest.mark.parametrize("by_name", [True, False])
async def test_a_bot_that_does_not_play_the_ruleset_is_refused(roster, tmp_path, by_name):
    folder = bot(tmp_path / "ann", "ann", more='rulesets = ["basic", "classic"]\n')
    bot(tmp_path / "bob", "bob")
    await roster.submit(folder, now_us=0)
    config = cup(tmp_path, "ann" if by_name else "./ann", "./bob", ruleset="duel")
    with pytest.raises(UserError) as caught:
        check_bots(config, roster)
    place = Path("ann@1") if by_name else folder / "bot.toml"
    assert str(caught.value) == f"{place}: rulesets: it does not play duel"


async def test_all_that_does_not_fit_in_a_manifest_is_reported(tmp_path):
    more = 'rulesets = ["basic"]\nlimits = { memory_mib = 2048, cpus = 1.5 }\n'
    folder = bot(tmp_path / "ann", "ann", more=more)
    bot(tmp_path / "bob", "bob")
    config = cup(tmp_path, "./ann", "./bob", ruleset="duel")
    with pytest.raises(UserError) as caught:
        check_bots(config, None)
    place = folder / "bot.toml"
    assert caught.value.args == (
        f"{place}: rulesets: it does not play duel",
        f"{place}: limits.memory_mib: 2048 is too much, {config.file} allows 1024",
        f"{place}: limits.cpus: 1.5 is too much, {config.file} allows 1.0",
    )


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('rulesets = ["basic"]\n', "rulesets: it does not play duel"),
        ("limits.memory_mib = 9999\n", "limits.memory_mib: 9999 is too much, {} allows 1024"),
    ],
)
async def test_a_bot_that_was_changed_after_the_check_is_refused(roster, tmp_path, more, says):
    """The bots of a tournament are copied one after the other, and a build can take minutes."""
    manifest = bot(tmp_path / "ann", "ann") / "bot.toml"
    bot(tmp_path / "bob", "bob")
    config = cup(tmp_path, "./ann", "./bob", ruleset="duel")
    check_bots(config, roster)
    manifest.write_text(more + manifest.read_text())
    with pytest.raises(UserError) as caught:
        await enter_bots(config, roster, now_us=1)
    assert str(caught.value) == f"{manifest}: {says.format(config.file)}"
    assert roster.versions("ann") == []


@pytest.mark.parametrize("by_name", [True, False])
async def test_a_bot_that_asks_for_more_than_the_tournament_allows_is_refused(
    roster, tmp_path, by_name
):
    folder = bot(tmp_path / "ann", "ann", more="[limits]\nmemory_mib = 512\ncpus = 1.5\n")
    bot(tmp_path / "bob", "bob")
    await roster.submit(folder, now_us=0)
    names = ("ann" if by_name else "./ann", "./bob")
    allowed = "[limits]\nmemory_mib = 512\ncpus = 1.5\n"
    check_bots(cup(tmp_path, *names, more=allowed), roster)
    config = cup(tmp_path, *names, more=allowed.replace("1.5", "1.25"))
    with pytest.raises(UserError) as caught:
        check_bots(config, roster)
    place = Path("ann@1") if by_name else folder / "bot.toml"
    assert str(caught.value) == (
        f"{place}: limits.cpus: 1.5 is too much, {config.file} allows 1.25"
    )


DEEP = '{ path = "./ann", name = "deep", args = ["--depth", "6"] }'


async def test_entry_with_a_name_and_arguments_is_a_bot_of_its_own(roster, tmp_path):
    folder = bot(tmp_path / "ann", "ann", more='description = "tries"\n')
    deeper = DEEP.replace("6", "7")
    config = cup(tmp_path, "./ann", DEEP, deeper)
    assert await enter(roster, config) == ["ann@1", "deep@1", "deep@1+2"]
    deep = BotId("deep", "1")
    assert roster.spec(deep).command == ("./bot", "--depth", "6")
    assert roster.manifest(deep).description == "tries"
    hashes = {roster.content_hash(BotId.parse(f"{name}@1")) for name in ("ann", "deep")}
    assert len(hashes) == 2
    assert await enter(roster, config) == ["ann@1", "deep@1", "deep@1+2"], "the same contents"
    assert "--depth" not in (folder / "bot.toml").read_text()


@pytest.mark.parametrize("more", ["", '[build]\ncommand = ["touch", "built"]\n'])
async def test_bot_of_the_league_has_the_same_variant_as_its_folder(roster, tmp_path, more):
    await submit_ann(roster, tmp_path, more)
    by_name = DEEP.replace("./ann", "ann")
    config = cup(tmp_path, "ann", by_name)
    assert await enter(roster, config) == ["ann@1", "deep@1"]
    assert roster.spec(BotId("deep", "1")).command == ("./bot", "--depth", "6")
    (row,) = roster.versions("deep")
    assert row.folder == str(tmp_path / "ann")
    assert await enter(roster, cup(tmp_path, "./ann", DEEP)) == ["ann@1", "deep@1"], "as stored"


async def test_variant_of_a_bot_of_the_league_is_checked(roster, tmp_path):
    await roster.submit(bot(tmp_path / "ann", "ann"), now_us=0)
    with pytest.raises(NotFoundError, match=r"bots\[1\]: .*: the league has no bot 'bob'"):
        check_bots(cup(tmp_path, "ann", DEEP.replace("./ann", "bob")), roster)
    twice = cup(tmp_path, *[DEEP.replace("./ann", "ann")] * 2)
    with pytest.raises(UserError, match=r"bots\[1\]: the same bot as bots\[0\]; to play against"):
        check_bots(twice, roster)


async def test_bot_under_another_name_may_meet_itself(roster, tmp_path):
    bot(tmp_path / "ann", "ann")
    twin = '{ path = "./ann", name = "twin" }'
    assert await enter(roster, cup(tmp_path, "./ann", twin)) == ["ann@1", "twin@1"]
    with pytest.raises(
        UserError, match=r"bots\[2\]: the same bot as bots\[1\]; to play against itself"
    ):
        check_bots(cup(tmp_path, "./ann", twin, twin), roster)


async def test_folder_of_a_retired_version_is_refused(roster, tmp_path):
    folder = bot(tmp_path / "ann", "ann")
    bot(tmp_path / "bob", "bob")
    await roster.submit(folder, now_us=0)
    roster._league.mark_retired(BotId("ann", "1"), at_us=1)
    config = cup(tmp_path, "./bob", "./ann")
    message = f"{config.file}: bots[1]: ann@1 is retired; submit it again to let it play"
    assert await refusal(roster, config) == message
    (folder / "more").touch()
    assert await enter(roster, config) == ["bob@1", "ann@1+2"]


@pytest.mark.parametrize("base", ["ann", "./ann"])
async def test_retired_variant_is_refused(roster, tmp_path, base):
    await roster.submit(bot(tmp_path / "ann", "ann"), now_us=0)
    config = cup(tmp_path, "ann", DEEP.replace("./ann", base))
    assert await enter(roster, config) == ["ann@1", "deep@1"]
    roster._league.mark_retired(BotId("deep", "1"), at_us=1)
    message = f"{config.file}: bots[1]: deep@1 is retired; choose another name"
    assert await refusal(roster, config) == message
    deeper = cup(tmp_path, "ann", DEEP.replace("./ann", base).replace("6", "7"))
    assert await enter(roster, deeper) == ["ann@1", "deep@1+2"]


@pytest.mark.parametrize("more", ["", '[build]\ncommand = ["touch", "built"]\n'])
async def test_variant_that_is_listed_by_name_and_by_folder_is_refused(roster, tmp_path, more):
    await submit_ann(roster, tmp_path, more)
    by_name = DEEP.replace("./ann", "ann")
    config = cup(tmp_path, by_name, "ann", DEEP)
    same = f"{config.file}: bots[2]: the same bot as bots[0]"
    with pytest.raises(UserError) as caught:
        check_bots(config, roster)
    assert str(caught.value) == f"{same}{TWICE_HINT}"
    assert roster.versions("deep") == []
    await enter(roster, cup(tmp_path, "ann", DEEP))
    assert await refusal(roster, config) == f"{same}, deep@1{TWICE_HINT}"
    config = cup(tmp_path, DEEP, "deep")
    same = f"{config.file}: bots[1]: the same bot as bots[0], deep@1"
    assert await refusal(roster, config) == f"{same}{TWICE_HINT}"


@pytest.mark.parametrize("text", ["./mine", DEEP, DEEP.replace("./ann", "ann")])
async def test_entry_cannot_take_the_name_of_another_authors_bot(roster, tmp_path, text):
    folder = bot(tmp_path / "ann", "ann")
    await roster.submit(folder, now_us=0)
    await roster.submit(bot(tmp_path / "deep", "deep", author="y"), now_us=0)
    mine = bot(tmp_path / "mine", "deep")
    assert await refusal(roster, cup(tmp_path, "ann", text)) == (
        f"{mine if text == './mine' else folder}/bot.toml: name: 'deep' is a bot of y in this league, and this one is by x; choose another name,"
        " or, if the name is from bot.toml and not from a tournament file, submit the folder with `referee bots submit --any-author`"
    )


def test_new_name_of_a_tournament_is_as_short_as_a_name_in_a_file():
    long = "a" * 32
    names = []
    for _ in range(11):
        names.append(_free_name(long, set(names)))
    assert names[:2] == [long, "a" * 30 + "-2"]
    assert names[-1] == "a" * 29 + "-11"
    assert _free_name("cup", {"cup", "cup-2"}) == "cup-3"


def test_stored_configuration_has_no_variant(tmp_path):
    bot(tmp_path / "ann", "ann")
    stored = json.loads(canonical_json(cup(tmp_path, "./ann", DEEP)))["bots"][1]
    assert stored.keys() == {"folder", "text"}


def test_variant_is_no_sample_bot():
    assert is_sample_bot(SAMPLE_BOTS / "greedy")
    assert not is_sample_bot(Variant("greedy", ("--depth", "6")))


@pytest.mark.extended("plays a tournament")
def test_games_of_a_variant_are_verified_rated_and_exported(tmp_path):
    greedy = SAMPLE_BOTS / "greedy"
    bots = f'"{greedy}", {{ path = "{greedy}", name = "deep", args = ["--depth", "6"] }}'
    (tmp_path / "cup.toml").write_text(
        f'name = "cup"\nbots = [{bots}]\nruleset = "duel"\nseats = 2\nmatches = 1\n'
    )
    with place(tmp_path) as here:
        assert here.referee("tournament", "run", "cup.toml").returncode == 0
        rated = json.loads(here.referee("ratings", "--json").stdout)
        assert {row["bot"] for row in rated} == {"greedy@1.0", "deep@1.0"}
        assert here.referee("tournament", "export", "cup").returncode == 0
        for stored in ("cup", "cup.zip"):
            assert here.referee("verify", stored).returncode == 0
        bots = json.loads(zipfile.ZipFile(tmp_path / "cup.zip").read("bots.json"))
        assert " --depth 6\n" in here.referee("bots", "show", "deep").stdout
        assert [bot["manifest"]["run"]["command"][-2:] for bot in bots][1] == ["--depth", "6"]


@pytest.mark.parametrize("refreshes", [True, False])
async def test_bot_of_a_moved_league_is_built_again_only_with_refreshes(
    roster, tmp_path, monkeypatch, refreshes
):
    await submit_ann(roster, tmp_path, '[build]\ncommand = ["touch", "made"]\n')
    config = cup(tmp_path, "ann", str(bot(tmp_path / "bob", "bob")))
    (tmp_path / "bob" / "bot").touch(mode=0o755)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    first, _ = await enter_bots(config, roster, now_us=1, refreshes=refreshes)
    assert roster.is_ready(first.bot) is refreshes
    assert (first.folder / "made").exists() is refreshes
