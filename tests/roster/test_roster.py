"""Folders become versions of bots: copied, built, named, found again."""

import asyncio
import shutil

import pytest

from referee.errors import NotFoundError, UserError
from referee.records import BotId
from referee.roster.roster import Roster
from referee.roster.versions import find_bot, look_up_bot, predecessors
from referee.roster.workshop import BuildError, Workshop
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store import League

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
    """A roster, and what it has built so far."""

    def __init__(self, league):
        self.league = league
        self.built = []
        self.workshop = Workshop(
            league.folder,
            ProcessGroupLauncher(),
            on_build=lambda manifest: self.built.append(manifest.name),
        )
        self.roster = Roster(league, self.workshop)

    async def enter(self, folder, **more):
        return await self.roster.enter(folder, now_us=7, **more)


@pytest.fixture
def shop(league):
    return Shop(league)


def make(folder, *, name="ann", version="1.0", author="Ada", more="", source="exit 0\n"):
    folder.mkdir(exist_ok=True)
    text = MANIFEST.format(name=name, version=version, author=author) + more
    (folder / "bot.toml").write_text(text)
    (folder / "source").write_text(source)
    return folder


async def test_a_folder_becomes_a_version_that_is_run_from_the_league(shop, tmp_path):
    entry = await shop.enter(make(tmp_path / "mine"))
    assert entry.is_new
    assert entry.spec.bot == BotId("ann", "1.0")
    assert entry.spec.folder.is_relative_to(shop.league.folder / "bots" / "ann")
    assert (entry.spec.folder / "source").read_text() == "exit 0\n"
    (row,) = shop.league.bots()
    assert (row.folder, row.added_at_us) == (str(tmp_path / "mine"), 7)
    assert (row.checked_at_us, row.retired_at_us) == (None, None)


async def test_the_same_content_is_the_same_version_wherever_it_lies(shop, tmp_path):
    first = await shop.enter(make(tmp_path / "mine"))
    second = await shop.enter(make(tmp_path / "copy"))
    assert not second.is_new
    assert second.spec == first.spec
    assert len(shop.league.bots()) == 1


async def test_changed_content_is_a_new_version(shop, tmp_path):
    labels = []
    for source in ("1", "2", "3", "1"):
        entry = await shop.enter(make(tmp_path / "mine", source=source))
        labels.append(entry.spec.bot.version)
        assert (entry.spec.folder / "source").read_text() == source
    assert labels == ["1.0", "1.0+2", "1.0+3", "1.0"]
    entry = await shop.enter(make(tmp_path / "mine", version="1.1"))
    assert entry.spec.bot == BotId("ann", "1.1")


async def test_what_was_copied_does_not_change_with_its_source(shop, tmp_path):
    entry = await shop.enter(make(tmp_path / "mine", source="old"))
    make(tmp_path / "mine", source="new")
    assert (shop.roster.spec(entry.spec.bot).folder / "source").read_text() == "old"
    shutil.rmtree(tmp_path / "mine")
    assert shop.roster.player("ann") == entry.spec


async def test_the_files_of_a_copy_cannot_be_written(shop, tmp_path):
    entry = await shop.enter(make(tmp_path / "mine"))
    assert (entry.spec.folder / "source").stat().st_mode & 0o222 == 0


# Building


async def test_a_bot_is_built_once_and_not_where_its_author_works(shop, tmp_path):
    counts = tmp_path / "counts"
    mine = make(tmp_path / "mine", more=BUILD.format(COUNTS.format(counts)))
    entry = await shop.enter(mine)
    again = await shop.enter(mine)
    assert counts.read_text() == "made\n"
    assert shop.built == ["ann"]
    assert (entry.spec.folder / "run").exists()
    assert not (mine / "run").exists()
    assert not again.is_new


async def test_two_at_once_build_once(shop, tmp_path):
    counts = tmp_path / "counts"
    mine = make(tmp_path / "mine", more=BUILD.format("sleep 0.2; " + COUNTS.format(counts)))
    other = Shop(shop.league)
    copies = await asyncio.gather(
        asyncio.to_thread(asyncio.run, shop.workshop.copy(mine)),
        asyncio.to_thread(asyncio.run, other.workshop.copy(mine)),
    )
    assert copies[0].spec == copies[1].spec
    assert counts.read_text() == "made\n"


async def test_what_a_build_printed_is_kept(shop, tmp_path):
    more = BUILD.format("echo compiled; cp source run")
    entry = await shop.enter(make(tmp_path / "mine", more=more))
    assert shop.roster.build_log(entry.spec.bot) == "compiled\n"
    plain = await shop.enter(make(tmp_path / "plain", name="bob"))
    assert shop.roster.build_log(plain.spec.bot) == ""


async def test_a_build_that_fails_leaves_nothing_but_its_words(shop, tmp_path):
    mine = make(tmp_path / "mine", more=BUILD.format("seq 100; echo oops >&2; exit 1"))
    with pytest.raises(BuildError) as caught:
        await shop.enter(mine)
    assert str(caught.value) == "ann: bot.toml: build.command: exited with 1"
    lines = caught.value.output.splitlines()
    assert len(lines) == 41
    assert lines[0] == "… 61 lines before"
    assert "oops" in lines
    assert shop.league.bots() == []
    assert [path.name for path in (shop.league.folder / "bots" / "ann").iterdir()] == ["lock"]


async def test_a_build_that_was_broken_off_is_made_again(shop, tmp_path):
    mine = make(tmp_path / "mine", more=BUILD.format("cp source run"))
    entry = await shop.enter(mine)
    home = entry.spec.folder.parent
    (home / "ready").unlink()
    (home / "bot" / "run").unlink()
    await shop.enter(mine)
    assert shop.built == ["ann", "ann"]
    assert (home / "bot" / "run").exists()


# Names


async def test_another_authors_bot_cannot_have_the_name_unless_told(shop, tmp_path):
    await shop.enter(make(tmp_path / "mine"))
    yours = make(tmp_path / "yours", author="Bob", source="else")
    with pytest.raises(UserError) as caught:
        await shop.enter(yours)
    assert str(caught.value) == (
        f"{yours}/bot.toml: name: 'ann' is a bot of Ada in this league, and this one is by Bob"
    )
    assert len(shop.league.bots()) == 1
    entry = await shop.enter(yours, any_author=True)
    assert entry.spec.bot == BotId("ann", "1.0+2")


async def test_a_name_means_the_newest_version_that_plays(shop, tmp_path):
    for version in ("1.0", "2.0", "1.5"):
        await shop.enter(make(tmp_path / "mine", version=version))
    assert shop.roster.player("ann").bot.version == "1.5"
    assert shop.roster.player("ann@1.0").bot.version == "1.0"
    shop.league.mark_retired(BotId("ann", "1.5"), at_us=9)
    assert shop.roster.player("ann").bot.version == "2.0"


async def test_a_retired_version_does_not_play_but_can_be_started_for_what_it_began(shop, tmp_path):
    entry = await shop.enter(make(tmp_path / "mine"))
    shop.league.mark_retired(entry.spec.bot, at_us=9)
    with pytest.raises(UserError, match=r"ann@1\.0 is retired"):
        shop.roster.player("ann@1.0")
    with pytest.raises(
        NotFoundError, match=r"no version that plays of 'ann'; .*: 1\.0 \(retired\)"
    ):
        shop.roster.player("ann")
    assert shop.roster.spec(entry.spec.bot) == entry.spec


async def test_names_that_nobody_has(shop, tmp_path):
    await shop.enter(make(tmp_path / "mine"))
    with pytest.raises(NotFoundError, match="the league has no bot 'bob'"):
        find_bot(shop.league, "bob")
    with pytest.raises(NotFoundError, match=r"no version '3' of 'ann'; there are: 1\.0"):
        find_bot(shop.league, "ann@3")


async def test_the_predecessor_of_a_version_is_the_one_before_it(shop, tmp_path):
    for name, version in (("ann", "1.0"), ("bob", "1.0"), ("ann", "2.0"), ("ann", "1.9")):
        await shop.enter(make(tmp_path / f"{name}", name=name, version=version))
    assert predecessors(shop.league) == {"ann@2.0": "ann@1.0", "ann@1.9": "ann@2.0"}


async def test_what_a_killed_referee_has_left_half_copied_is_removed(shop, tmp_path):
    left = shop.league.folder / "bots" / "ann" / "new-abc" / "bot"
    left.mkdir(parents=True)
    entry = await shop.enter(make(tmp_path / "mine"))
    assert not left.exists()
    assert (entry.spec.folder / "source").exists()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("rm bot.toml", r"it has spoilt bot\.toml: .*/bot\.toml: no such file"),
        ("cd ..; rm -rf bot", r"it has spoilt bot\.toml: .*/bot: no such folder"),
        ("sed -i s/Ada/Eve/ bot.toml", r"it has changed bot\.toml"),
    ],
)
async def test_a_build_leaves_the_manifest_alone(shop, tmp_path, command, reason):
    mine = make(tmp_path / "mine", more=BUILD.format(command))
    with pytest.raises(BuildError, match=f"ann: bot.toml: build.command: {reason}"):
        await shop.enter(mine)
    assert shop.league.bots() == []


async def test_a_copy_that_is_discarded_is_built_again(shop, tmp_path):
    mine = make(tmp_path / "mine", more=BUILD.format("cp source run"))
    copy = await shop.workshop.copy(mine)
    assert not shop.roster.knows(copy)
    shop.workshop.discard(copy)
    assert not copy.spec.folder.exists()
    await shop.enter(mine)
    assert shop.built == ["ann", "ann"]
    assert shop.roster.knows(copy)


async def test_a_bot_whose_versions_are_all_retired_can_still_be_looked_up(shop, tmp_path):
    for version in ("1.0", "2.0"):
        entry = await shop.enter(make(tmp_path / "mine", version=version))
        shop.league.mark_retired(entry.spec.bot, at_us=9)
    assert look_up_bot(shop.league, "ann").version == "2.0"
    assert look_up_bot(shop.league, "ann@1.0").version == "1.0"
    with pytest.raises(NotFoundError):
        look_up_bot(shop.league, "bob")
