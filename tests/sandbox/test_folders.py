"""Tests the folder of a program, and that nothing of it is left."""

import os

import pytest

from referee.errors import VoidGame
from referee.sandbox.folders import ProgramFolder


@pytest.fixture
def folder(tmp_path):
    return ProgramFolder(tmp_path)


def test_only_the_owner_can_enter_a_program_folder(folder):
    for each in (folder.path, folder.scratch, folder.socket.parent):
        assert each.stat().st_mode & 0o777 == 0o700
    assert not list(folder.scratch.iterdir())


def test_folder_that_cannot_be_created_voids_the_game(tmp_path):
    with pytest.raises(VoidGame, match="no room for a bot's folder"):
        ProgramFolder(tmp_path / "gone")


def test_remove_deletes_locked_folders_and_follows_no_link(folder, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    (folder.scratch / "link").symlink_to(kept)
    (folder.scratch / "broken").symlink_to("nowhere")
    os.mkfifo(folder.scratch / "fifo")
    locked = folder.scratch / "locked" / "deeper"
    locked.mkdir(parents=True)
    (locked / "file").write_text("x")
    locked.chmod(0)
    locked.parent.chmod(0)
    folder.remove()
    assert list(tmp_path.iterdir()) == [kept]
    assert (kept / "file").read_text() == "mine"


def test_folders_too_deep_for_a_path_are_removed(folder, tmp_path):
    here = os.open(folder.scratch, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("deep", dir_fd=here)
        deeper = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    folder.remove()
    assert not list(tmp_path.iterdir())


def test_folder_can_be_removed_twice(folder, tmp_path):
    folder.remove()
    folder.remove()
    assert not list(tmp_path.iterdir())


def test_scratch_size_counts_disk_blocks(folder):
    assert folder.scratch_kib(1000) == 0
    deep = folder.scratch / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"x" * (300 << 10))
    with (deep / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 30)
    assert 300 + 3 * 4 <= folder.scratch_kib(1000) <= 300 + 8 * 4
    assert folder.scratch_kib(100) >= 100, "counting may stop at the limit"


def test_scratch_size_does_not_follow_links(folder, tmp_path):
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "file").write_bytes(b"x" * (300 << 10))
    (folder.scratch / "folder").symlink_to(tmp_path / "large")
    (folder.scratch / "file").symlink_to(tmp_path / "large" / "file")
    (folder.scratch / "itself").symlink_to(folder.scratch)
    os.mkfifo(folder.scratch / "fifo")
    assert folder.scratch_kib(1000) == 4 * 4


def test_scratch_size_counts_empty_files(folder):
    for number in range(50):
        (folder.scratch / str(number)).touch()
    assert folder.scratch_kib(1000) == 50 * 4
