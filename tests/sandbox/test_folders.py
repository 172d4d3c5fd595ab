"""Tests the folders of runs and programs, and that nothing of them is left."""

import errno
import os
import re
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from programs import LONG_TEXTS, little_memory
from psutil import Process

from referee.errors import RefereeError, UserError, VoidGame
from referee.sandbox import folders
from referee.sandbox.folders import (
    ProgramFolder,
    kill_programs,
    remove_folder,
    run_folder,
    walk_folders,
)

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another user")


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


def dig(folder, levels, name="deep"):
    """Make folders inside each other, too deep for a path, and write 300 KiB into a file in the innermost."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    with open(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here), "wb") as file:  # noqa: PTH123
        file.write(b"x" * (300 << 10))
    os.close(here)


@pytest.mark.extended("makes deep folders")
def test_folders_too_deep_for_a_path_are_removed(folder, tmp_path):
    dig(folder.scratch, 6_000)
    folder.remove()
    assert not list(tmp_path.iterdir())


@as_root
# the child takes no lock that a thread of this process may hold
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_user_without_privileges_removes_deep_and_locked_folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nobody")
    (folder / "x").mkdir()
    for path in (folder, folder / "x"):
        os.chown(path, NOBODY, NOBODY)
    for parent in folder.parents[:-2]:
        parent.chmod(0o711)
    if not (child := os.fork()):
        try:
            os.setresuid(NOBODY, NOBODY, NOBODY)
            dig(folder / "x", 1_200)
            for mode in (0o000, 0o100, 0o200, 0o400, 0o500):
                (folder / "x" / f"{mode:o}" / "inner").mkdir(parents=True)
                (folder / "x" / f"{mode:o}").chmod(mode)
            remove_folder(folder / "x")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert not list(folder.iterdir())


def swap_for_link(victim, target):
    """Replace a folder by a link, as a program may do at any moment."""
    victim.rename(victim.with_name("moved"))
    victim.symlink_to(target)


@pytest.fixture
def kept(tmp_path_factory):
    """A folder that nobody may change."""
    kept = tmp_path_factory.mktemp("kept")
    (kept / "lock").touch()
    (kept / "file").write_text("mine")
    yield kept
    assert (kept / "lock").exists()
    assert (kept / "file").read_text() == "mine"
    assert kept.stat().st_mode & 0o777 == 0o700


def test_folder_that_becomes_a_link_before_it_is_opened_is_not_followed(folder, kept, monkeypatch):
    victim = folder.scratch / "victim"
    (victim / "inner").mkdir(parents=True)
    open_folder = folders._open_folder
    swaps = []

    def swap_and_open(name, *more, **options):
        if name == "victim":
            swap_for_link(victim, kept)
            swaps.append(victim)
        return open_folder(name, *more, **options)

    monkeypatch.setattr(folders, "_open_folder", swap_and_open)
    folder.remove()
    assert swaps == [victim]


def test_folder_that_becomes_a_link_while_it_is_read_is_not_followed(folder, kept, monkeypatch):
    victim = folder.scratch / "victim"
    (victim / "inner").mkdir(parents=True)
    (victim / "file").touch()
    list_names = folders._list_names
    swaps = []

    def list_and_swap(descriptor):
        names = list_names(descriptor)
        if "inner" in names[0]:
            swap_for_link(victim, kept)
            swaps.append(victim)
        return names

    monkeypatch.setattr(folders, "_list_names", list_and_swap)
    folder.remove()
    assert swaps == [victim]


def test_walk_ends_if_its_folder_is_moved_elsewhere(folder, kept):
    (folder.scratch / "a" / "b").mkdir(parents=True)
    walk = walk_folders(folder.scratch)
    next(walk)
    (folder.scratch / "a" / "b").rename(kept / "b")
    with pytest.raises(OSError, match="a folder was moved"):
        list(walk)


def test_walk_keeps_few_descriptors_open(folder):
    dig(folder.scratch, 50)
    numbers = {descriptor for descriptor, _, _ in walk_folders(folder.scratch)}
    assert len(numbers) <= 2


def test_walk_leaves_out_only_the_folder_whose_names_cannot_be_read(tmp_path, monkeypatch):
    for name in ("a", "b", "b/inner", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    unreadable = (tmp_path / "b").stat().st_ino
    list_names = folders._list_names

    def refuse_one(descriptor):
        if os.fstat(descriptor).st_ino == unreadable:
            raise OSError(errno.EMFILE, "too many open files")
        return list_names(descriptor)

    monkeypatch.setattr(folders, "_list_names", refuse_one)
    before = Process().num_fds()
    walked = [
        (Path(f"/proc/self/fd/{descriptor}").readlink().name, sorted(inner), others)
        for descriptor, inner, others in walk_folders(tmp_path)
    ]
    assert sorted(walked[:-1]) == [("a", [], ["file"]), ("c", [], ["file"])]
    assert walked[-1] == (tmp_path.name, ["a", "b", "c"], [])
    assert Process().num_fds() == before


@pytest.fixture
def temp(tmp_path, monkeypatch):
    """Let runs make their folders in `tmp_path`, and return the folder of all runs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"referee-{os.geteuid()}"


def test_run_folder_lies_in_a_folder_that_only_its_user_can_enter(temp):
    with run_folder() as folder:
        assert folder.parent == temp
        assert [path.stat().st_mode & 0o777 for path in (temp, folder)] == [0o700, 0o700]
    assert not temp.exists()


def test_folder_of_runs_stays_until_the_last_run_ends(temp):
    with run_folder() as first:
        with run_folder() as second:
            assert {first, second} == set(temp.iterdir())
        assert list(temp.iterdir()) == [first]
    assert not temp.exists()


def test_only_programs_with_a_socket_in_the_folder_are_killed(tmp_path):
    sockets = [tmp_path / "s", tmp_path / "other" / "s", f"{tmp_path}-other/s"]
    long = {f"V{number}": text for number, text in enumerate(LONG_TEXTS)}
    with ExitStack() as stack:
        programs = []
        for socket in sockets:
            program = subprocess.Popen(
                ["/bin/cat"],
                env={"REFEREE_ADDRESS": f"unix:{socket}"} | long,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
            )
            programs.append(stack.enter_context(program))
            stack.callback(program.kill)
            program.stdin.write(b"up")
            program.stdout.read(2)
        with little_memory():
            kill_programs(tmp_path)
        assert [program.wait(10) for program in programs[:2]] == [-9, -9]
        assert programs[2].poll() is None


@pytest.mark.extended("crashes, interrupts and starves the referee")
def test_folder_of_a_killed_run_is_removed_by_the_next_run(temp):
    left = temp / "abcdefgh"
    left.mkdir(parents=True)
    (left / "lock").touch()
    dig(left, 6_000)
    (temp / "killedxx").mkdir()
    with run_folder() as folder:
        assert list(temp.iterdir()) == [folder]


def test_run_folder_whose_removal_was_interrupted_is_removed_by_the_next_run(temp, monkeypatch):
    left = temp / "abcdefgh"
    left.mkdir(parents=True)
    for name in ("lock", *"0123456789"):
        (left / name).touch()
    unlink = os.unlink

    def stop_after_lock(name, **options):
        unlink(name, **options)
        if name == "lock":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", stop_after_lock)
        with pytest.raises(KeyboardInterrupt), run_folder():
            pass
    with run_folder() as folder:
        assert list(temp.iterdir()) == [folder]


def test_run_folder_with_a_subfolder_that_cannot_be_removed_is_removed_later(temp, monkeypatch):
    left = temp / "abcdefgh"
    (left / "busy").mkdir(parents=True)
    (left / "lock").touch()
    rmdir = os.rmdir

    def refuse_busy(name, **options):
        if name == "busy":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        rmdir(name, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", refuse_busy)
        with run_folder():
            assert (left / "busy").exists()
    with run_folder() as folder:
        assert list(temp.iterdir()) == [folder]


def test_planted_link_is_no_run_folder(tmp_path, temp, kept):
    temp.mkdir(mode=0o700)
    for planted in (tmp_path / "referee-abcdefgh", temp / "abcdefgh"):
        planted.symlink_to(kept)
    with run_folder():
        pass
    assert (tmp_path / "referee-abcdefgh").is_symlink()


def plant_link(temp, kept):
    temp.symlink_to(kept)


def plant_file(temp, kept):  # noqa: ARG001 - one signature for all
    temp.touch()


def plant_open_folder(temp, kept):
    temp.mkdir()
    temp.chmod(0o777)
    (temp / "abcdefgh").symlink_to(kept)


def plant_folder_of_another_user(temp, kept):
    temp.mkdir(mode=0o700)
    (temp / "abcdefgh").symlink_to(kept)
    os.chown(temp, NOBODY, NOBODY)


@pytest.mark.parametrize(
    "plant",
    [
        plant_link,
        plant_file,
        plant_open_folder,
        pytest.param(plant_folder_of_another_user, marks=as_root),
    ],
)
def test_folder_of_runs_that_another_user_could_have_planted_is_refused(temp, kept, plant):
    plant(temp, kept)
    with (
        pytest.raises(RefereeError, match="remove it, or set TMPDIR to a folder of your own"),
        run_folder(),
    ):
        pass


@pytest.mark.parametrize("char", [*"%?#,", *'"<>[]^`{|} \\', "\x7f", "é", "\udcff"])
def test_folder_whose_sockets_grpc_would_not_find_is_refused(tmp_path, monkeypatch, char):
    temporary = tmp_path / f"a{char}b"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with pytest.raises(UserError, match=f"{re.escape(repr(char))}: set TMPDIR"), run_folder():
        pass
    assert not list(temporary.iterdir())


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


def test_scratch_size_counts_files_below_paths_that_are_too_long(folder):
    dig(folder.scratch, 20, name="d" * 250)
    assert folder.scratch_kib(1000) >= 300


def test_scratch_size_is_right_although_a_folder_is_moved(folder, monkeypatch):
    (folder.scratch / "a" / "b").mkdir(parents=True)
    (folder.scratch / "file").write_bytes(b"x" * (300 << 10))

    def move_during_walk(path):
        for each in walk_folders(path):
            if (path / "a" / "b").exists():  # the walk is in it, and goes back to `..`
                (path / "a" / "b").rename(path / "b")
            yield each

    monkeypatch.setattr(folders, "walk_folders", move_during_walk)
    assert folder.scratch_kib(1000) >= 300


def test_scratch_size_is_given_although_folders_are_moved_without_end(folder, monkeypatch):
    def move_without_end(path):
        yield from walk_folders(path)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    (folder.scratch / "file").write_bytes(b"x" * (300 << 10))
    monkeypatch.setattr(folders, "walk_folders", move_without_end)
    assert folder.scratch_kib(1000) >= 300


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
