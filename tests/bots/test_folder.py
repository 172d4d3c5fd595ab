"""A bot's folder, and that nothing of it is left."""

import os

import pytest

from referee.bots.folder import BotFolder
from referee.errors import VoidGame


@pytest.fixture
def folder(tmp_path):
    return BotFolder(tmp_path)


def test_it_is_for_its_owner_alone(folder):
    for each in (folder.path, folder.scratch, folder.socket.parent):
        assert each.stat().st_mode & 0o777 == 0o700
    assert not list(folder.scratch.iterdir())


def test_no_room_for_it_is_nobodys_fault(tmp_path):
    with pytest.raises(VoidGame, match="no room for a bot's folder"):
        BotFolder(tmp_path / "gone")


def test_nothing_of_it_is_left_and_nothing_else_is_touched(folder, tmp_path):
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


def test_folders_too_deep_for_any_path(folder, tmp_path):
    here = os.open(folder.scratch, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("deep", dir_fd=here)
        deeper = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    folder.remove()
    assert not list(tmp_path.iterdir())


def test_it_may_be_gone_already(folder, tmp_path):
    folder.remove()
    folder.remove()
    assert not list(tmp_path.iterdir())
