"""Test how folders are submitted to a league: copied, built, named and found again; and how people get an id."""

import asyncio
import errno
import os
import re
import shutil
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from referee.bots import snapshot
from referee.bots.build import Built
from referee.bots.manifest import Variant, load_manifest
from referee.errors import NotFoundError, Shortage, StoreError, UserError
from referee.records import BotId
from referee.roster import find_bot, look_up_bot, predecessors, roster, workshop
from referee.roster.content import BuildError, check_build
from referee.roster.roster import SAMPLE_BOTS, Roster, create_bot, enter_person, person_id
from referee.roster.workshop import Workshop
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store.league import League

MANIFEST = """
name = "{name}"
version = "{version}"
author = "{author}"
language = "sh"
[run]
command = ["./run"]
"""
BUILD = '[build]\ncommand = ["sh", "-c", "{}"]\n'
COUNTS = "echo made >> {}; cp source run"


@pytest.fixture
def league(tmp_path):
    with League.open(tmp_path / "league", create=True) as league:
        yield league


class Shop:
    """A roster with its workshop, and the names of the bots that it has built."""

    def __init__(self, league):
        self.league = league
        self.built = []
        self.workshop = Workshop(
            league.folder,
            ProcessGroupLauncher(),
            on_build=lambda manifest: self.built.append(manifest.name),
        )
        self.roster = Roster(league, self.workshop)

    async def submit(self, folder, **more):
        return await self.roster.submit(folder, now_us=7, **more)


@pytest.fixture
def shop(league):
    return Shop(league)


def make(folder, *, name="ann", version="1.0", author="Ada", more="", source="exit 0\n"):
    folder.mkdir(exist_ok=True)
    text = MANIFEST.format(name=name, version=version, author=author) + more
    (folder / "bot.toml").write_text(text)
    (folder / "source").write_text(source)
    return folder


async def test_submitted_folder_becomes_a_version_that_runs_from_its_copy(shop, tmp_path):
    submission = await shop.submit(make(tmp_path / "mine"))
    assert submission.is_new
    assert submission.spec.bot == BotId("ann", "1.0")
    assert submission.spec.folder.is_relative_to(shop.league.folder / "bots" / "ann")
    assert (submission.spec.folder / "source").read_text() == "exit 0\n"
    (row,) = shop.league.bots()
    assert (row.folder, row.added_at_us) == (str(tmp_path / "mine"), 7)
    assert (row.checked_at_us, row.retired_at_us) == (None, None)


async def test_same_content_in_another_folder_is_the_same_version(shop, tmp_path):
    first = await shop.submit(make(tmp_path / "mine"))
    second = await shop.submit(make(tmp_path / "copy"))
    assert not second.is_new
    assert second.spec == first.spec
    assert len(shop.league.bots()) == 1


async def test_changed_content_becomes_a_new_version(shop, tmp_path):
    labels = []
    for source in ("1", "2", "3", "1"):
        submission = await shop.submit(make(tmp_path / "mine", source=source))
        labels.append(submission.spec.bot.version)
        assert (submission.spec.folder / "source").read_text() == source
    assert labels == ["1.0", "1.0+2", "1.0+3", "1.0"]
    submission = await shop.submit(make(tmp_path / "mine", version="1.1"))
    assert submission.spec.bot == BotId("ann", "1.1")


async def test_copy_is_unchanged_when_its_source_changes_or_vanishes(shop, tmp_path):
    submission = await shop.submit(make(tmp_path / "mine", source="old"))
    make(tmp_path / "mine", source="new")
    assert (shop.roster.spec(submission.spec.bot).folder / "source").read_text() == "old"
    shutil.rmtree(tmp_path / "mine")
    assert shop.roster.active_spec("ann") == submission.spec


async def test_build_leaves_no_special_permissions(shop, tmp_path):
    command = "cp source run; chmod 6755 run; mkdir made; chmod 7777 made"
    copy = (await shop.submit(make(tmp_path / "mine", more=BUILD.format(command)))).spec.folder
    modes = [stat.S_IMODE((copy / name).stat().st_mode) for name in ("run", "made")]
    assert modes == [0o555, 0o755]


async def test_files_of_a_copy_are_read_only(shop, tmp_path):
    submission = await shop.submit(make(tmp_path / "mine"))
    assert (submission.spec.folder / "source").stat().st_mode & 0o222 == 0


@pytest.mark.parametrize(
    "change",
    [{"name": "bob"}, {"author": "Bob"}, {"more": "[limits]\ncpus = 2\n"}, {"more": "[wrong"}],
)
async def test_manifest_that_changes_while_it_is_copied_is_refused(
    shop, tmp_path, monkeypatch, change
):
    mine = make(tmp_path / "mine")
    take = snapshot.take

    def change_and_take(folder, into, **more):
        make(mine, **change)
        return take(folder, into, **more)

    monkeypatch.setattr(snapshot, "take", change_and_take)
    with pytest.raises(UserError) as caught:
        await shop.workshop.copy(mine)
    assert str(caught.value) == (f"{mine}/bot.toml: changed while it was copied; submit it again")
    assert [path.name for path in (shop.league.folder / "bots" / "ann").iterdir()] == ["lock"]


@pytest.mark.parametrize("variant", [None, Variant("deep")])
async def test_manifest_that_is_left_out_of_the_copy_is_refused(shop, tmp_path, variant):
    mine = make(tmp_path / "mine", more=BUILD.format("cp source run"))
    (mine / ".gitignore").write_text("*.toml\n")
    with pytest.raises(UserError) as caught:
        await shop.workshop.copy(mine, variant=variant)
    assert str(caught.value) == (
        f"{mine}/bot.toml: is not in the copy, because .gitignore excludes it or because it is a"
        " link to an excluded file"
    )
    assert shop.built == []


async def test_manifest_that_is_a_link_to_what_is_left_out_is_refused(shop, tmp_path):
    mine = make(tmp_path / "mine")
    (mine / "__pycache__").mkdir()
    (mine / "bot.toml").rename(mine / "__pycache__" / "bot.toml")
    (mine / "bot.toml").symlink_to("__pycache__/bot.toml")
    with pytest.raises(UserError, match=r"mine/bot\.toml: is not in the copy"):
        await shop.workshop.copy(mine)


async def test_folder_whose_path_is_not_utf8_is_refused_before_the_build(shop, tmp_path):
    mine = make(tmp_path / "mine\udcff", more=BUILD.format("cp source run"))
    with pytest.raises(UserError) as caught:
        await shop.submit(mine)
    assert str(caught.value) == f"{mine}: its path is not UTF-8; rename the folder"
    assert shop.built == []


@pytest.mark.parametrize("place", [".", "ann", "other", "ann/sub"])
async def test_folder_among_the_copies_of_the_league_is_refused_and_stays_as_it_is(shop, place):
    """With `--league .`, bots in the folder `bots` are where the league keeps its copies."""
    bots = shop.league.folder / "bots"
    (bots / place).mkdir(parents=True)
    mine = make(bots / place)
    (mine / "new-weights").mkdir()
    before = sorted(bots.rglob("*"))
    with pytest.raises(UserError) as caught:
        await shop.submit(mine)
    assert str(caught.value) == (
        f"{mine}: the league keeps its copies of bots in {bots}; choose another --league, or move the bot"
    )
    assert sorted(bots.rglob("*")) == before


async def test_copy_of_the_league_can_be_submitted(shop, tmp_path):
    submission = await shop.submit(make(tmp_path / "mine"))
    assert not (await shop.submit(submission.spec.folder)).is_new


# Building


async def test_bot_is_built_once_and_only_in_its_copy(shop, tmp_path):
    counts = tmp_path / "counts"
    mine = make(tmp_path / "mine", more=BUILD.format(COUNTS.format(counts)))
    submission = await shop.submit(mine)
    second = await shop.submit(mine)
    assert counts.read_text() == "made\n"
    assert shop.built == ["ann"]
    assert (submission.spec.folder / "run").exists()
    assert not (mine / "run").exists()
    assert not second.is_new


async def test_concurrent_copies_of_the_same_content_build_once(shop, tmp_path):
    counts = tmp_path / "counts"
    mine = make(tmp_path / "mine", more=BUILD.format("sleep 0.2; " + COUNTS.format(counts)))
    other = Shop(shop.league)
    copies = await asyncio.gather(
        asyncio.to_thread(asyncio.run, shop.workshop.copy(mine)),
        asyncio.to_thread(asyncio.run, other.workshop.copy(mine)),
    )
    assert copies[0].spec == copies[1].spec
    assert counts.read_text() == "made\n"


def other_machine(shop, _tmp_path, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    return shop


def other_python(shop, _tmp_path, monkeypatch):
    monkeypatch.setattr(workshop.sys.implementation, "cache_tag", "cpython-399")
    return shop


def other_folder(shop, tmp_path, _monkeypatch):
    shutil.copytree(shop.league.folder, tmp_path / "copied")
    return Shop(League.open(tmp_path / "copied", create=False))


@pytest.mark.parametrize("change", [other_machine, other_python, other_folder])
async def test_built_copy_is_built_again_in_another_place(shop, tmp_path, monkeypatch, change):
    mine = make(tmp_path / "mine", more=BUILD.format("pwd > run; echo built"))
    bot = (await shop.submit(mine)).spec.bot
    plain = (await shop.submit(make(tmp_path / "plain", name="bob"))).spec.bot
    shutil.rmtree(mine)
    shop.built.clear()
    await shop.roster.refresh(bot)
    assert shop.built == []
    there = change(shop, tmp_path, monkeypatch)
    content_hash = there.roster.content_hash(bot)
    first = there.league.folder / "bots" / "ann" / content_hash / "bot" / "run"
    before = first.read_text()
    assert not there.workshop.has("ann", content_hash)
    assert not there.roster.is_ready(bot)
    await there.roster.refresh(plain)
    await there.roster.refresh(bot)
    await there.roster.refresh(bot)
    assert there.built == ["ann"]
    folder = there.roster.spec(bot).folder
    assert (folder / "run").read_text() == f"{folder}\n"
    assert there.workshop.has("ann", content_hash)
    assert first.read_text() == before, "other processes may play with the first copy"
    assert {path.name for path in folder.parents[1].iterdir()} == {
        "lock",
        content_hash,
        folder.parent.name,
    }


async def test_copy_that_cannot_be_built_in_another_place_stays_usable_in_the_first(
    shop, tmp_path, monkeypatch
):
    command = f"echo oops; test ! -e {tmp_path}/broken && cp source run"
    submission = await shop.submit(make(tmp_path / "mine", more=BUILD.format(command)))
    bot, first = submission.spec.bot, submission.spec.folder
    shutil.rmtree(tmp_path / "mine")
    with monkeypatch.context() as patch:
        other_machine(shop, tmp_path, patch)
        (tmp_path / "broken").touch()
        for _ in range(2):
            with pytest.raises(UserError) as caught:
                await shop.roster.refresh(bot)
            assert str(caught.value) == (
                f"{first.parent}: this copy was built in another folder, on another kind of machine or with another Python,"
                " and it cannot be built again here: ann: bot.toml: build.command: exited with 1"
            )
            assert caught.value.output == "oops"
            assert not shop.roster.is_ready(bot)
    assert shop.roster.is_ready(bot)
    assert shop.roster.spec(bot).folder == first
    assert (first / "run").exists()
    (tmp_path / "broken").unlink()
    other_machine(shop, tmp_path, monkeypatch)
    await shop.roster.refresh(bot)
    assert shop.roster.is_ready(bot)
    assert (shop.roster.spec(bot).folder / "run").exists()


async def refreshed_spec(shop, bot):
    await shop.roster.refresh(bot)
    return shop.roster.spec(bot)


@pytest.mark.parametrize("more", ["", BUILD.format("mkdir -p site-packages")])
async def test_bot_with_python_packages_is_refused_in_a_path_with_a_colon(tmp_path, more):
    mine = make(tmp_path / "mine", more=more)
    if not more:
        (mine / "site-packages").mkdir()
        (mine / "site-packages" / "six.py").touch()
    with League.open(tmp_path / "league", create=True) as league:
        bot = (await Shop(league).submit(mine)).spec.bot
    (tmp_path / "league").rename(tmp_path / "a:b")
    with (
        League.open(tmp_path / "a:b", create=False) as league,
        pytest.raises(UserError, match="move the league or the bot to a path without one"),
    ):
        await refreshed_spec(Shop(league), bot)
    with League.open(tmp_path / "c:d", create=True) as league:
        with pytest.raises(UserError, match="move the league or the bot to a path without one"):
            await Shop(league).submit(mine)
        assert [path.name for path in (league.folder / "bots" / "ann").iterdir()] == ["lock"]


async def test_build_in_another_place_does_not_need_the_first_copy(shop, tmp_path, monkeypatch):
    more = BUILD.format("echo compiled; cp source run")
    mine = make(tmp_path / "mine", more=more)
    first = await shop.workshop.copy(mine, is_kept=False)
    other_machine(shop, tmp_path, monkeypatch)
    make_old(shop)
    submission = await shop.submit(mine)  # removes the first copy, which was unused for two days
    assert not first.spec.folder.exists()
    assert shop.roster.is_ready(submission.spec.bot)
    await shop.roster.refresh(submission.spec.bot)
    assert shop.roster.spec(submission.spec.bot).folder == submission.spec.folder
    assert shop.roster.build_log(submission.spec.bot) == "compiled\n"
    assert shop.built == ["ann"] * 2


async def test_log_of_a_build_in_another_place_can_be_read(shop, tmp_path, monkeypatch):
    more = BUILD.format("echo compiled; cp source run")
    bot = (await shop.submit(make(tmp_path / "mine", more=more))).spec.bot
    other_machine(shop, tmp_path, monkeypatch)
    assert shop.roster.build_log(bot) == "compiled\n"


async def test_copy_of_a_version_is_permanent_after_it_was_lost_and_made_for_a_game(shop, tmp_path):
    more = BUILD.format("cp source run")
    mine = make(tmp_path / "mine", more=more)
    submission = await shop.submit(mine)
    shutil.rmtree(submission.spec.folder.parent)
    await shop.workshop.copy(mine, is_kept=False)
    await shop.roster.refresh(submission.spec.bot)
    make_old(shop)
    await shop.workshop.copy(make(tmp_path / "other", source="b", more=more), is_kept=False)
    assert shop.roster.is_ready(submission.spec.bot)


def copies_of_ann(shop):
    return {path.name for path in (shop.league.folder / "bots" / "ann").iterdir()} - {"lock"}


def make_old(shop, hours=48):
    """Let all copies be unused for some hours."""
    for mark in shop.league.folder.glob("bots/*/*/passing"):
        os.utime(mark, (time.time() - hours * 3600,) * 2)


async def test_copy_of_a_game_that_takes_hours_stays(shop, tmp_path):
    playing = await shop.workshop.copy(make(tmp_path / "mine"), is_kept=False)
    make_old(shop, hours=20)
    await shop.workshop.copy(make(tmp_path / "other", source="b"), is_kept=False)
    assert playing.spec.folder.exists()


async def test_copy_that_is_not_kept_is_removed_when_it_was_not_used_for_a_day(shop, tmp_path):
    more = BUILD.format("cp source run")
    mine = [make(tmp_path / each, source=each, more=more) for each in "abc"]
    first, second = [await shop.workshop.copy(each, is_kept=False) for each in mine[:2]]
    make_old(shop)
    await shop.workshop.copy(mine[1], is_kept=False)  # uses it again
    assert shop.built == ["ann"] * 2
    third = await shop.workshop.copy(mine[2], is_kept=False)
    assert not first.spec.folder.exists()
    assert copies_of_ann(shop) == {second.content_hash, third.content_hash}


async def test_copy_that_a_league_uses_is_kept(shop, tmp_path):
    more = BUILD.format("cp source run")
    mine = [make(tmp_path / each, source=each, more=more) for each in "abc"]
    await shop.workshop.copy(mine[0], is_kept=False)
    await shop.submit(mine[0])  # played first, then submitted
    await shop.submit(mine[1])
    await shop.workshop.copy(mine[1], is_kept=False)
    assert shop.built == ["ann"] * 2
    make_old(shop)
    await shop.workshop.copy(mine[2], is_kept=False)
    for row in shop.league.bots():
        assert shop.workshop.has("ann", row.content_hash)


async def test_output_of_a_build_is_kept(shop, tmp_path):
    more = BUILD.format("echo compiled; cp source run")
    submission = await shop.submit(make(tmp_path / "mine", more=more))
    assert shop.roster.build_log(submission.spec.bot) == "compiled\n"
    plain = await shop.submit(make(tmp_path / "plain", name="bob"))
    assert shop.roster.build_log(plain.spec.bot) == ""


async def test_failed_build_raises_its_output_and_leaves_no_copy(shop, tmp_path):
    mine = make(tmp_path / "mine", more=BUILD.format("(seq 100; echo oops) >&2; exit 1"))
    with pytest.raises(BuildError) as caught:
        await shop.submit(mine)
    assert str(caught.value) == "ann: bot.toml: build.command: exited with 1"
    lines = caught.value.output.splitlines()
    assert len(lines) == 41
    assert lines[14:17] == ["15", "… 61 lines left out …", "77"]
    assert "oops" in lines
    assert shop.league.bots() == []
    assert [path.name for path in (shop.league.folder / "bots" / "ann").iterdir()] == ["lock"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
async def test_shortage_during_a_copy_charges_no_bot_and_leaves_no_copy(
    shop, tmp_path, monkeypatch, number
):
    def fail(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(workshop, "make_read_only", fail)
    with pytest.raises(Shortage) as caught:
        await shop.submit(make(tmp_path / "mine"))
    copies = shop.league.folder / "bots" / "ann"
    assert str(caught.value) == f"{copies}: {os.strerror(number)}"
    assert [path.name for path in copies.iterdir()] == ["lock"]


async def test_incomplete_build_is_repeated(shop, tmp_path):
    mine = make(tmp_path / "mine", more=BUILD.format("cp source run"))
    submission = await shop.submit(mine)
    home = submission.spec.folder.parent
    (home / "ready").unlink()
    (home / "bot" / "run").unlink()
    await shop.submit(mine)
    assert shop.built == ["ann", "ann"]
    assert (home / "bot" / "run").exists()


@pytest.mark.parametrize("lost", ["bot", "bot/bot.toml"])
async def test_damaged_copy_is_made_again(shop, tmp_path, lost):
    mine = make(tmp_path / "mine")
    submission = await shop.submit(mine)
    home = submission.spec.folder.parent
    (home / lost).rename(tmp_path / "lost")
    assert not shop.workshop.has("ann", home.name)
    with pytest.raises(UserError, match="the league's copy of ann is gone; submit it again"):
        shop.roster.spec(submission.spec.bot)
    assert (await shop.submit(mine)).spec == submission.spec
    assert (home / "bot" / "bot.toml").exists()


def change(file):
    """Change a read-only file of a copy."""
    file.chmod(0o644)
    file.write_text("exit 1\n")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda copy: change(copy / "source"),
        lambda copy: (copy / "source").unlink(),
        lambda copy: (copy / "source").chmod(0o755),
        lambda copy: (copy / "new").touch(),
        lambda copy: change(copy / "bot.toml"),
    ],
)
async def test_changed_copy_is_refused_until_its_folder_is_submitted_again(shop, tmp_path, spoil):
    mine = make(tmp_path / "mine")
    spec = (await shop.submit(mine)).spec
    await shop.roster.refresh(spec.bot)
    assert shop.roster.is_ready(spec.bot)
    spoil(spec.folder)
    message = f"{spec.folder.parent}: the league's copy of ann was changed; submit the original folder again"
    for refuse in (shop.roster.check, lambda bot: asyncio.run(shop.roster.refresh(bot))):
        with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
            await asyncio.to_thread(refuse, spec.bot)
    assert not shop.roster.is_ready(spec.bot)
    submission = await shop.submit(mine)
    assert (submission.spec, submission.is_new) == (spec, False)
    await shop.roster.refresh(spec.bot)
    assert (spec.folder / "source").read_text() == "exit 0\n"


async def test_changed_copy_of_a_version_stays_permanent_if_a_game_replaces_it(shop, tmp_path):
    mine = make(tmp_path / "mine")
    spec = (await shop.submit(mine)).spec
    change(spec.folder / "source")
    await shop.workshop.copy(mine, is_kept=False)
    assert (spec.folder / "source").read_text() == "exit 0\n"
    make_old(shop)
    await shop.workshop.copy(make(tmp_path / "other", source="b"), is_kept=False)
    assert shop.roster.is_ready(spec.bot)


async def test_variant_of_a_changed_copy_is_refused(shop, tmp_path):
    spec = (await shop.submit(make(tmp_path / "mine"))).spec
    change(spec.folder / "source")
    with pytest.raises(UserError, match="the league's copy of ann was changed"):
        await shop.roster.submit_variant(spec.bot, Variant("ann2", ("--deep",)), now_us=7)
    assert len(shop.league.bots()) == 1


async def test_changed_copy_of_a_variant_is_made_again_from_its_bot(shop, tmp_path):
    spec = (await shop.submit(make(tmp_path / "mine"))).spec
    variant = Variant("ann2", ("--deep",))
    first = (await shop.roster.submit_variant(spec.bot, variant, now_us=7)).spec
    change(first.folder / "source")
    with pytest.raises(UserError, match="the league's copy of ann2 was changed"):
        await shop.roster.refresh(first.bot)
    assert (await shop.roster.submit_variant(spec.bot, variant, now_us=8)).spec == first
    assert (first.folder / "source").read_text() == "exit 0\n"


async def test_build_may_add_files_to_its_copy(shop, tmp_path):
    mine = make(tmp_path / "mine", more=BUILD.format("cp source run"))
    spec = (await shop.submit(mine)).spec
    await shop.roster.refresh(spec.bot)
    await shop.submit(mine)
    assert shop.built == ["ann"]


# Names


async def test_name_of_another_authors_bot_is_refused_unless_allowed(shop, tmp_path):
    await shop.submit(make(tmp_path / "mine"))
    yours = make(tmp_path / "yours", author="Bob", source="else")
    with pytest.raises(UserError) as caught:
        await shop.submit(yours)
    assert str(caught.value) == (
        f"{yours}/bot.toml: name: 'ann' is a bot of Ada in this league, and this one is by Bob; choose another name,"
        " or, if the name is from bot.toml and not from a tournament file, submit the folder with `referee bots submit --any-author`"
    )
    assert len(shop.league.bots()) == 1
    submission = await shop.submit(yours, any_author=True)
    assert submission.spec.bot == BotId("ann", "1.0+2")


async def test_author_is_checked_again_when_the_copy_is_added(shop, tmp_path):
    yours = make(tmp_path / "yours", author="Bob", source="else")
    copy = await shop.workshop.copy(yours)
    await shop.submit(make(tmp_path / "mine"))  # another process, while Bob's bot is checked
    with pytest.raises(UserError, match=r"'ann' is a bot of Ada in this league, and .* by Bob"):
        shop.roster.add_copy(copy, yours, now_us=8)
    assert len(shop.league.bots()) == 1
    assert not copy.spec.folder.exists()
    copy = await shop.workshop.copy(yours)
    added = shop.roster.add_copy(copy, yours, now_us=8, any_author=True)
    assert (added.spec.bot, added.is_new) == (BotId("ann", "1.0+2"), True)


async def test_name_selects_the_newest_version_that_is_not_retired(shop, tmp_path):
    for version in ("1.0", "2.0", "1.5"):
        await shop.submit(make(tmp_path / "mine", version=version))
    assert shop.roster.active_spec("ann").bot.version == "1.5"
    assert shop.roster.active_spec("ann@1.0").bot.version == "1.0"
    shop.league.mark_retired(BotId("ann", "1.5"), at_us=9)
    assert shop.roster.active_spec("ann").bot.version == "2.0"


async def test_retired_version_has_a_spec_but_is_not_active(shop, tmp_path):
    submission = await shop.submit(make(tmp_path / "mine"))
    shop.league.mark_retired(submission.spec.bot, at_us=9)
    advice = "submit it again to let it play, or give it another name if it is a variant$"
    with pytest.raises(UserError, match=rf"^ann@1\.0 is retired; {advice}"):
        shop.roster.active_spec("ann@1.0")
    with pytest.raises(NotFoundError, match=rf"'ann' are retired \(1\.0\); {advice}"):
        shop.roster.active_spec("ann")
    assert shop.roster.spec(submission.spec.bot) == submission.spec


async def test_unknown_name_or_version_raises_not_found(shop, tmp_path):
    await shop.submit(make(tmp_path / "mine"))
    with pytest.raises(NotFoundError, match="the league has no bot 'bob'"):
        find_bot(shop.league, "bob")
    with pytest.raises(NotFoundError, match=r"no version '3' of 'ann'; there are: 1\.0"):
        find_bot(shop.league, "ann@3")


async def test_predecessor_is_the_version_submitted_before(shop, tmp_path):
    for name, version in (("ann", "1.0"), ("bob", "1.0"), ("ann", "2.0"), ("ann", "1.9")):
        await shop.submit(make(tmp_path / f"{name}", name=name, version=version))
    assert predecessors(shop.league) == {"ann@2.0": "ann@1.0", "ann@1.9": "ann@2.0"}


async def test_unfinished_copy_of_a_killed_referee_is_removed(shop, tmp_path):
    left = shop.league.folder / "bots" / "ann" / "new-abc" / "bot"
    left.mkdir(parents=True)
    submission = await shop.submit(make(tmp_path / "mine"))
    assert not left.exists()
    assert (submission.spec.folder / "source").exists()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("rm bot.toml", r"the build has damaged bot\.toml: .*/bot\.toml: no such file"),
        ("cd ..; rm -rf bot", r"the build has damaged bot\.toml: .*/bot: no such folder"),
        ("sed -i s/Ada/Eve/ bot.toml", r"the build has changed bot\.toml"),
    ],
)
async def test_build_that_changes_the_manifest_fails(shop, tmp_path, command, reason):
    mine = make(tmp_path / "mine", more=BUILD.format(command))
    with pytest.raises(BuildError, match=f"ann: bot.toml: build.command: {reason}"):
        await shop.submit(mine)
    assert shop.league.bots() == []


def test_damage_without_a_build_is_that_of_the_fetch(tmp_path):
    mine = make(tmp_path / "mine")
    (mine / "out").symlink_to("/etc")
    reason = (
        "ann: the fetch of its packages: the fetch has left something that no bot may contain: "
    )
    with pytest.raises(BuildError, match=reason) as error:
        check_build(load_manifest(mine), Built(None, "", 1.0), mine)
    assert error.value.is_fetch


DIG = """
import os
for _ in range(6_000):
    os.mkdir("d")
    os.chdir("d")
"""


@pytest.mark.extended("makes deep folders")
async def test_failed_build_that_left_deep_folders_leaves_no_copy(shop, tmp_path):
    mine = make(tmp_path / "mine", more=BUILD.format("python3 source; exit 1"), source=DIG)
    with pytest.raises(BuildError, match="exited with 1"):
        await shop.submit(mine)
    assert [path.name for path in (shop.league.folder / "bots" / "ann").iterdir()] == ["lock"]


LEFTOVERS = {
    "absolute link": ("ln -s /etc/passwd x", "bot/x: a link that leads out .*, to /etc/passwd"),
    "link upwards": ("ln -s ../../ready x", r"bot/x: a link that leads out .*, to \.\./\.\./ready"),
    "link through a link": ("mkdir -p a/b; ln -s a/b c; ln -s c/../../x d", "bot/d: a link that"),
    "link in __pycache__": ("mkdir __pycache__; ln -s / __pycache__/x", "__pycache__/x: a link"),
    "link in .git": ("mkdir .git; ln -s / .git/x", "git/x: a link that leads out"),
    "manifest as a link": ("mv bot.toml ..; ln -s ../bot.toml bot.toml", "bot.toml: a link that"),
    "pipe": ("mkfifo x", "bot/x: neither a file nor a folder nor a link"),
    "socket": (
        "python3 -c 'import socket; socket.socket(1).bind(chr(120))'",
        "bot/x: neither a file nor a folder nor a link",
    ),
    "deep folders": ("python3 source", "folders are nested more than 100 deep"),
}


@pytest.mark.parametrize("case", LEFTOVERS)
async def test_build_that_leaves_what_no_bot_may_have_is_refused(shop, tmp_path, case):
    command, reason = LEFTOVERS[case]
    mine = make(tmp_path / "mine", more=BUILD.format(command), source=DIG)
    with pytest.raises(BuildError, match=f"left something that no bot may contain: .*{reason}"):
        await shop.submit(mine)
    assert shop.league.bots() == []
    left = {path.name for path in (shop.league.folder / "bots" / "ann").iterdir()}
    assert left == {"lock"}


async def test_discarded_copy_is_built_again(shop, tmp_path):
    mine = make(tmp_path / "mine", more=BUILD.format("cp source run"))
    copy = await shop.workshop.copy(mine)
    assert copy.is_new
    shop.roster.discard_unused(copy)
    assert not copy.spec.folder.exists()
    await shop.submit(mine)
    assert shop.built == ["ann", "ann"]
    again = await shop.workshop.copy(mine)
    assert not again.is_new
    shop.roster.discard_unused(again)
    assert again.spec.folder.exists()


async def test_copy_that_another_command_has_made_is_not_discarded(shop, tmp_path):
    mine = make(tmp_path / "mine", more=BUILD.format("cp source run"))
    playing = await shop.workshop.copy(mine, is_kept=False)
    await shop.submit(make(tmp_path / "theirs", author="Bob"))
    with pytest.raises(UserError, match="'ann' is a bot of Bob in this league"):
        shop.roster.add_copy(await shop.workshop.copy(mine, is_kept=False), mine, now_us=7)
    assert playing.spec.folder.exists()
    make_old(shop)
    await shop.workshop.copy(make(tmp_path / "other", source="b"), is_kept=False)
    assert not playing.spec.folder.exists()


async def test_copy_that_two_submissions_check_is_kept_if_one_of_them_fails(shop, tmp_path):
    mine = make(tmp_path / "mine")
    first, second = [await shop.workshop.copy(mine, is_kept=False) for _ in range(2)]
    shop.roster.discard_unused(second)
    submission = shop.roster.add_copy(first, mine, now_us=7)
    make_old(shop)
    await shop.workshop.copy(make(tmp_path / "other", source="b"), is_kept=False)
    assert shop.roster.is_ready(submission.spec.bot)


async def test_copy_whose_removal_was_cut_short_is_made_again(shop, tmp_path, monkeypatch):
    mine = make(tmp_path / "mine")
    copy = await shop.workshop.copy(mine)

    def remove_a_part(folder):
        (folder / "bot" / "source").unlink()

    with monkeypatch.context() as patch:
        patch.setattr(workshop, "remove_folder", remove_a_part)
        shop.roster.discard_unused(copy)
    again = await shop.workshop.copy(mine)
    assert again.is_new
    assert (again.spec.folder / "source").exists()


async def test_copy_that_was_discarded_meanwhile_cannot_be_added(shop, tmp_path):
    mine = make(tmp_path / "mine")
    copy = await shop.workshop.copy(mine)
    shop.roster.discard_unused(copy)
    with pytest.raises(UserError, match="the league's copy of ann is gone; submit it again"):
        shop.roster.add_copy(copy, mine, now_us=7)
    assert shop.league.bots() == []


async def test_copy_that_is_added_during_the_wait_for_the_lock_is_kept(shop, tmp_path, monkeypatch):
    mine = make(tmp_path / "mine")
    copy = await shop.workshop.copy(mine)

    @contextmanager
    def add_before_the_lock(folder):
        shop.roster.add_copy(copy, mine, now_us=7)
        with lock(folder):
            yield

    lock = workshop._lock
    monkeypatch.setattr(workshop, "_lock", add_before_the_lock)
    shop.roster.discard_unused(copy)
    assert copy.spec.folder.exists()


async def test_error_of_a_submission_is_told_although_the_copy_cannot_be_discarded(
    shop, tmp_path, monkeypatch
):
    await shop.submit(make(tmp_path / "theirs", author="Bob"))
    mine = make(tmp_path / "mine")
    copy = await shop.workshop.copy(mine)

    def fail(_):
        raise StoreError("database is locked")

    monkeypatch.setattr(shop.league, "unchanged_versions", fail)
    with pytest.raises(UserError, match="'ann' is a bot of Bob in this league"):
        shop.roster.add_copy(copy, mine, now_us=7)
    assert copy.spec.folder.exists()


async def test_copy_is_kept_if_another_process_adds_it_while_it_is_discarded(
    shop, tmp_path, monkeypatch
):
    mine = make(tmp_path / "mine")
    copy = await shop.workshop.copy(mine)
    new_row = roster._new_row

    begun = threading.Event()

    def discard_elsewhere():
        with League.open(shop.league.folder, create=False) as league:
            begun.set()
            Roster(league, shop.workshop).discard_unused(copy)

    with ThreadPoolExecutor(1) as other:

        def let_the_other_begin(*arguments):
            discarded.append(other.submit(discard_elsewhere))
            begun.wait()
            time.sleep(0.3)
            return new_row(*arguments)

        discarded = []
        monkeypatch.setattr(roster, "_new_row", let_the_other_begin)
        shop.roster.add_copy(copy, mine, now_us=7)
    (done,) = discarded
    assert done.exception() is None
    assert shop.workshop.spec("ann", copy.content_hash).folder == copy.spec.folder


async def test_bot_with_only_retired_versions_can_be_looked_up(shop, tmp_path):
    for version in ("1.0", "2.0"):
        submission = await shop.submit(make(tmp_path / "mine", version=version))
        shop.league.mark_retired(submission.spec.bot, at_us=9)
    assert look_up_bot(shop.league, "ann").version == "2.0"
    assert look_up_bot(shop.league, "ann@1.0").version == "1.0"
    with pytest.raises(NotFoundError):
        look_up_bot(shop.league, "bob")


def roster_of(league):
    return Roster(league, Workshop(league.folder, ProcessGroupLauncher(), on_build=print))


@pytest.mark.parametrize("name", ["", "Anna", "an na", "<b>", "a" * 33, "../x"])
def test_invalid_name_of_a_person_is_refused(league, name):
    with pytest.raises(UserError, match="is not a valid name"):
        person_id(league, name)


async def test_person_cannot_have_the_name_of_a_bot(league):
    await roster_of(league).submit(SAMPLE_BOTS / "random", now_us=1)
    with pytest.raises(UserError, match="'random' is the name of a bot"):
        person_id(league, "random")
    with pytest.raises(UserError, match="'random' is the name of a bot"):
        enter_person(league, BotId("random", "person"), now_us=2)


async def test_bot_cannot_have_the_name_of_a_person(league, tmp_path):
    enter_person(league, person_id(league, "anna"), now_us=1)
    create_bot(tmp_path / "anna", name="anna", language="python", author="anna")
    with pytest.raises(UserError, match=r"bot\.toml: name: 'anna' is the name of a person"):
        await roster_of(league).submit(tmp_path / "anna", now_us=2)
    with pytest.raises(UserError, match="'anna' is the name of a person"):
        await roster_of(league).submit(tmp_path / "anna", now_us=2, any_author=True)


@pytest.mark.parametrize(
    ("key", "line"), [("version", 'version = "person"'), ("language", 'language = "person"')]
)
async def test_bot_cannot_look_like_a_person(league, tmp_path, key, line):
    create_bot(tmp_path / "anna", name="anna", language="python", author="anna")
    manifest = tmp_path / "anna" / "bot.toml"
    manifest.write_text(re.sub(rf"^{key} = .*", line, manifest.read_text(), flags=re.MULTILINE))
    for any_author in (False, True):
        with pytest.raises(UserError, match=rf"bot.toml: {key}: 'person' stands for people"):
            await roster_of(league).submit(tmp_path / "anna", now_us=2, any_author=any_author)


def test_person_enters_once_and_no_tournament_can_choose_it(league):
    anna = person_id(league, "anna")
    enter_person(league, anna, now_us=5)
    enter_person(league, person_id(league, "anna"), now_us=6)
    [row] = league.bots()
    assert (str(row.bot), row.language, row.added_at_us, row.retired_at_us) == (
        "anna@person",
        "person",
        5,
        5,
    )
    with pytest.raises(NotFoundError, match="'anna' is a person, not a bot"):
        find_bot(league, "anna")
    with pytest.raises(UserError, match="anna@person is a person, not a bot"):
        roster_of(league).active_spec("anna@person")
