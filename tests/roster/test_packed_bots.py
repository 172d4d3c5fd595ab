"""A bot that was packed on one machine is built from the same files on another."""

from __future__ import annotations

import asyncio
import errno
import gzip
import io
import os
import tarfile
import tracemalloc

import pytest

from referee.bots.manifest import Variant
from referee.errors import Shortage, UserError
from referee.roster import content
from referee.roster.workshop import Workshop
from referee.sandbox.process_group import ProcessGroupLauncher

MANIFEST = """name = "packed"
version = "1"
author = "x"
language = "python"
[build]
command = ["{program}", "-c", "{script}"]
[run]
command = ["./made"]
"""


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    script = "sleep 0.3; echo built > made; echo changed > text"
    (folder / "bot.toml").write_text(MANIFEST.format(program="sh", script=script))
    (folder / "text").write_text("original\n")
    (folder / "tool").write_text("#!/bin/sh\n")
    (folder / "tool").chmod(0o755)
    return folder


def workshop(folder, builds=None):
    """Return a workshop that adds the manifest of each bot that it builds to the list `builds`."""
    return Workshop(
        folder, ProcessGroupLauncher(), on_build=([] if builds is None else builds).append
    )


async def test_unpacked_bot_has_the_files_before_the_build_and_is_built(source, tmp_path):
    here, there = workshop(tmp_path / "here"), workshop(tmp_path / "there")
    copy = await here.copy(source)
    archive = here.pack("packed", copy.content_hash)
    assert not there.has("packed", copy.content_hash)
    unpacked = await there.unpack(archive, copy.content_hash, tmp_path)
    assert there.has("packed", copy.content_hash)
    assert unpacked.content_hash == copy.content_hash
    assert unpacked.build_s is not None
    assert (unpacked.spec.folder / "made").read_text() == "built\n"
    assert there.pack("packed", copy.content_hash) != b""


async def test_variant_is_the_same_bot_on_another_machine(source, tmp_path):
    here, there = workshop(tmp_path / "here"), workshop(tmp_path / "there")
    copy = await here.copy(source, variant=Variant("deep", ("--depth", 'six "6"')))
    unpacked = await there.unpack(here.pack("deep", copy.content_hash), copy.content_hash, tmp_path)
    assert unpacked.content_hash == copy.content_hash != (await here.copy(source)).content_hash
    assert unpacked.spec.command == copy.spec.command == ("./made", "--depth", 'six "6"')
    assert there.manifest("deep", copy.content_hash) == copy.manifest


async def test_links_folders_and_permissions_are_unpacked(source, tmp_path):
    (source / "sub" / "empty").mkdir(parents=True)
    (source / "sub" / "same").hardlink_to(source / "text")
    (source / "link").symlink_to("sub/../text")
    (source / "to-folder").symlink_to("sub")
    here, there = workshop(tmp_path / "here"), workshop(tmp_path / "there")
    copy = await here.copy(source)
    archive = here.pack("packed", copy.content_hash)
    unpacked = await there.unpack(archive, copy.content_hash, tmp_path)
    folder = unpacked.spec.folder
    assert str((folder / "link").readlink()) == "sub/../text"
    assert str((folder / "to-folder").readlink()) == "sub"
    assert (folder / "sub" / "same").read_text() == "original\n"
    assert (folder / "sub" / "empty").is_dir()
    assert os.access(folder / "tool", os.X_OK)
    assert not os.access(folder / "sub" / "same", os.X_OK)


async def test_copy_of_a_copy_has_the_same_files_if_a_gitignore_is_ignored(source, tmp_path):
    (source / ".gitignore").write_text("*.bin\n/nets/.gitignore\n")
    (source / "nets").mkdir()
    (source / "nets" / ".gitignore").write_text("!best.bin\n")
    (source / "nets" / "best.bin").write_text("weights")
    here, there = workshop(tmp_path / "here"), workshop(tmp_path / "there")
    copy = await here.copy(source)
    unpacked = await there.unpack(
        here.pack("packed", copy.content_hash), copy.content_hash, tmp_path
    )
    assert (unpacked.spec.folder / "nets" / "best.bin").read_text() == "weights"

    deep = Variant("deep", ("--depth", "6"))
    variant = await here.copy_variant("packed", copy.content_hash, deep)
    assert (variant.spec.folder / "nets" / "best.bin").read_text() == "weights"
    assert variant.content_hash == here.hash_variant("packed", copy.content_hash, deep)
    assert variant.content_hash == here.hash_folder(source, deep)


async def test_large_file_is_never_in_memory_as_a_whole(source, tmp_path):
    with (source / "weights").open("wb") as file:
        file.truncate(32 << 20)
    here = workshop(tmp_path / "here")
    tracemalloc.start()
    try:
        copy = await here.copy(source)
        await here.copy_variant("packed", copy.content_hash, Variant("deep", ("--depth", "6")))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


async def test_variant_of_a_bot_without_a_build_has_its_files(source, tmp_path):
    head, _, rest = MANIFEST.partition("[build]")
    (source / "bot.toml").write_text(head + rest[rest.index("[run]") :])
    (source / "made").write_text("made by hand\n")
    here = workshop(tmp_path / "here")
    copy = await here.copy(source)
    deep = Variant("deep", ("--depth", "6"))
    variant = await here.copy_variant("packed", copy.content_hash, deep)
    assert (variant.spec.folder / "made").read_text() == "made by hand\n"
    assert variant.content_hash == here.hash_folder(source, deep)


def archive_of(*members):
    """Return an archive with members of these names, types and link targets."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as files:
        for name, kind, target in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            files.addfile(member)
    return data.getvalue()


@pytest.mark.parametrize(
    "members",
    [
        [("../outside", tarfile.REGTYPE, "")],
        [("sub/../../outside", tarfile.REGTYPE, "")],
        [("{0}/outside", tarfile.REGTYPE, "")],
        [("link", tarfile.SYMTYPE, "{0}"), ("link/outside", tarfile.REGTYPE, "")],
        [("link", tarfile.SYMTYPE, ".."), ("link/outside", tarfile.SYMTYPE, "x")],
        [("link", tarfile.SYMTYPE, "{0}/outside"), ("link", tarfile.REGTYPE, "")],
        [("pipe", tarfile.FIFOTYPE, "")],
        [("device", tarfile.CHRTYPE, "")],
        [("hard", tarfile.LNKTYPE, "missing")],
        [("hard", tarfile.LNKTYPE, "{0}/secret")],
    ],
)
async def test_archive_whose_members_leave_its_folder_is_refused(tmp_path, members):
    (tmp_path / "secret").write_text("secret")
    (scratch := tmp_path / "scratch").mkdir()
    archive = archive_of(
        (".", tarfile.DIRTYPE, ""),
        *((name.format(tmp_path), kind, target.format(tmp_path)) for name, kind, target in members),
    )
    with pytest.raises(UserError, match="the archive of a bot cannot be unpacked"):
        await workshop(tmp_path / "there").unpack(archive, "00", scratch)
    assert not (tmp_path / "outside").exists()
    assert {each.name for each in scratch.rglob("*")} <= {"bot", "link"}


async def test_archive_with_other_content_is_refused_before_it_is_built(source, tmp_path):
    here, there = workshop(tmp_path / "here"), workshop(tmp_path / "there", builds := [])
    copy = await here.copy(source)
    with pytest.raises(UserError, match=f"content hash is {copy.content_hash} instead of 00"):
        await there.unpack(here.pack("packed", copy.content_hash), "00", tmp_path)
    assert not there.has("packed", copy.content_hash)
    assert builds == []


async def test_copy_is_not_that_of_a_hash_with_the_same_beginning(source, tmp_path):
    here = workshop(tmp_path / "here")
    copy = await here.copy(source)
    similar = copy.content_hash[:-1] + ("0" if copy.content_hash[-1] != "0" else "1")
    assert not here.has("packed", similar)
    with pytest.raises(UserError, match="the league's copy of packed is gone"):
        here.spec("packed", similar)


@pytest.mark.parametrize(
    "archive",
    [
        b"no archive",
        gzip.compress(archive_of(("a", tarfile.REGTYPE, "")))[:-9],
        archive_of(("\u00e9\0", tarfile.REGTYPE, "")),
        pytest.param(
            archive_of(
                ("0", tarfile.REGTYPE, ""),
                *((f"{number + 1}", tarfile.LNKTYPE, f"{number}") for number in range(1200)),
            ),
            marks=pytest.mark.extended("measures large schedules and long statistics"),
        ),
    ],
    ids=["no archive", "half a compressed archive", "name with NUL", "long chain of hard links"],
)
async def test_damaged_archive_is_refused(tmp_path, archive):
    with pytest.raises(UserError, match="the archive of a bot cannot be unpacked"):
        await workshop(tmp_path).unpack(archive, "00", tmp_path)


async def test_full_disk_does_not_mean_that_the_archive_is_damaged(source, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    here = workshop(tmp_path / "here")
    copy = await here.copy(source)
    archive = here.pack("packed", copy.content_hash)
    monkeypatch.setattr(content, "_extract_member", fail)
    with pytest.raises(Shortage, match=f"{tmp_path}/bot: No space left on device"):
        await workshop(tmp_path / "there").unpack(archive, copy.content_hash, tmp_path)


async def test_two_copies_of_a_bot_in_one_event_loop_wait_for_each_other(source, tmp_path):
    here = workshop(tmp_path / "here")
    async with asyncio.timeout(60):
        first, second = await asyncio.gather(here.copy(source), here.copy(source))
    assert first.spec == second.spec
    assert sorted(copy.build_s is None for copy in (first, second)) == [False, True]
