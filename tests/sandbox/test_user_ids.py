"""Tests that each program gets a user id of its own, whatever programs and other users do. Needs root."""

import errno
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from referee.errors import VoidGame
from referee.sandbox import Access, Limits, user_ids
from referee.sandbox import resources as sandbox_resources
from referee.sandbox.cgroups import Cgroups
from referee.sandbox.resources import ProgramSpec, SandboxResources
from referee.sandbox.user_ids import lease_user_id, list_pids

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives bots users of their own")
HOLDER = """
import os
from referee.sandbox import user_ids
user_ids._PARENTS, user_ids._USER_IDS = ({place!r},), ({ids!r},)
print(user_ids.lease_user_id().uid, flush=True)
os.read(0, 1)
"""

KILLING_HOLDER = """
from referee.sandbox import user_ids
user_ids._PARENTS, user_ids._USER_IDS = ({place!r},), ({ids!r},)
user_ids.SWEEPER = ["/bin/sh", "-c", "echo $$ $0; exec sleep 1000"]
user_ids.lease_user_id().send_kill()
"""
"""A referee whose helper takes 1000 seconds, and prints its own pid and the user id."""

REMOVING_HOLDER = """
import subprocess
from referee.sandbox import user_ids
from referee.sandbox.system_v import list_objects
user_ids._PARENTS, user_ids._USER_IDS = ({place!r},), ({ids!r},)
lease = user_ids.lease_user_id()
make = ["ipcmk", "--queue", "--shmem", "1000", "--semaphore", "1", "--mode", "0666"]
subprocess.run(make, user=lease.uid, cwd="/", stdout=subprocess.DEVNULL, check=True)
made = len(list_objects(lease.uid))
lease.remove_leftovers()
print(made, len(list_objects(lease.uid)))
"""
"""A referee that prints how many objects of System V a user has before and after `remove_leftovers`."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Let the locks lie in a folder of this test, which other referees do not use."""
    monkeypatch.setattr(user_ids, "_PARENTS", (str(tmp_path),))
    return tmp_path


@pytest.fixture
def own_ids(place, monkeypatch):
    """Let the locks and the user ids belong to this test alone: other tests end all processes of the usual ids."""
    ids = range(68_300, 68_310, 2)
    monkeypatch.setattr(user_ids, "_USER_IDS", (ids,))
    return place, ids


@pytest.mark.usefixtures("own_ids")
def test_released_user_id_is_leased_again():
    first, second = lease_user_id(), lease_user_id()
    assert second.uid not in {first.uid, first.uid + 1}
    first.release()
    third = lease_user_id()
    assert third.uid == first.uid
    for lease in (second, third):
        lease.release()


@pytest.mark.usefixtures("own_ids")
def test_released_user_id_is_free_although_a_starting_process_has_a_copy_of_the_lock():
    first = lease_user_id()
    copy = os.dup(first._lock)
    first.release()
    second = lease_user_id()
    os.close(copy)
    assert second.uid == first.uid
    second.release()


@pytest.mark.usefixtures("own_ids")
def test_zombie_is_no_running_process_of_a_user():
    lease = lease_user_id()
    with subprocess.Popen(["/bin/true"], user=lease.uid, cwd="/") as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert list_pids(lease.uid) == []
    lease.release()


@pytest.mark.usefixtures("own_ids")
def test_error_of_a_lock_voids_the_game_and_is_named(monkeypatch):
    def refuse(*_arguments):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(user_ids, "_lock", refuse)
    with pytest.raises(VoidGame, match=r"^no user id for a bot: .*No locks available$"):
        lease_user_id()


def test_lock_of_a_killed_referee_is_free(own_ids):
    place, ids = own_ids
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(place=str(place), ids=ids)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        uid = int(holder.stdout.readline())
        while_held = lease_user_id()
        holder.kill()
    afterwards = lease_user_id()
    assert while_held.uid > uid == afterwards.uid
    for lease in (while_held, afterwards):
        lease.release()


def test_helper_that_outlives_a_killed_referee_keeps_the_lock(own_ids):
    place, ids = own_ids
    with subprocess.Popen(
        [sys.executable, "-c", KILLING_HOLDER.format(place=str(place), ids=ids)],
        stdout=subprocess.PIPE,
    ) as holder:
        helper, uid = map(int, holder.stdout.readline().split())
        holder.kill()
        holder.wait()
        while_it_runs = lease_user_id()
        os.kill(helper, signal.SIGKILL)
        assert holder.stdout.read() == b""  # the helper has ended
    afterwards = lease_user_id()
    assert while_it_runs.uid > uid == afterwards.uid
    for lease in (while_it_runs, afterwards):
        lease.release()


def test_objects_of_system_v_are_removed_without_cap_sys_admin(own_ids):
    place, ids = own_ids
    code = REMOVING_HOLDER.format(place=str(place), ids=ids)
    command = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
    holder = subprocess.run([*command, sys.executable, "-c", code], capture_output=True, check=True)
    assert holder.stdout.split() == [b"3", b"0"]


def test_user_id_of_a_real_account_is_not_leased(own_ids, monkeypatch):
    _, ids = own_ids

    def find_account(uid):
        if uid not in {ids[0], ids[1] + 1}:
            raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", find_account)
    lease = lease_user_id()
    assert lease.uid == ids[2]
    lease.release()


def test_error_says_whether_the_ids_are_missing_or_in_use(own_ids, monkeypatch):
    _, ids = own_ids
    leases = [lease_user_id() for _ in ids]
    with pytest.raises(VoidGame, match=r"are in use: end other referees$"):
        lease_user_id()
    for lease in leases:
        lease.release()
    monkeypatch.setattr(user_ids, "_USER_IDS", (range(1 << 32, (1 << 32) + 2),))
    with pytest.raises(
        VoidGame, match=r"no user ids .* the container the user ids 61184 to 62183$"
    ):
        lease_user_id()


def test_second_release_of_resources_spares_the_next_program_with_the_user_id(own_ids, tmp_path):
    program = ProgramSpec(("true",), tmp_path, {}, Limits(), Access())
    tmp_path.chmod(0o755)
    resources = SandboxResources(Cgroups(()), program)
    uid = resources.uid
    assert own_ids[0] in resources.lock_file.parents
    resources.release()
    with subprocess.Popen(["/bin/sleep", "1000"], user=uid, cwd="/") as other:
        resources.release()
        resources.kill_processes()
        try:
            assert list_pids(uid) == [other.pid]
        finally:
            other.kill()


@pytest.fixture
def resources(own_ids, tmp_path):
    """Return the resources of a program, whose scratch folder is `tmp_path / "scratch"`."""
    scratch = own_ids[0] / "scratch"
    scratch.mkdir()
    tmp_path.chmod(0o755)
    program = ProgramSpec(("true",), tmp_path, {}, Limits(), Access(scratch=scratch))
    return SandboxResources(Cgroups(()), program)


def test_release_waits_for_file_descriptors(resources, tmp_path, monkeypatch):
    lacks = iter((True, True, False))

    def list_if_possible(uid):
        if next(lacks):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return list_pids(uid)

    monkeypatch.setattr(user_ids, "list_pids", list_if_possible)
    uid = resources.uid
    resources.release()
    assert (tmp_path / "scratch").stat().st_uid == os.getuid()
    lease = lease_user_id()
    assert lease.uid == uid
    lease.release()


def test_second_release_does_what_the_first_did_not(resources, tmp_path, monkeypatch):
    def fail(*_arguments):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    uid = resources.uid
    with monkeypatch.context() as patch:
        patch.setattr(user_ids.UserIdLease, "release", fail)
        patch.setattr(sandbox_resources, "_change_owner", fail)
        with pytest.raises(OSError, match="Too many open files"):
            resources.release()
    assert (tmp_path / "scratch").stat().st_uid == uid
    resources.release()
    assert (tmp_path / "scratch").stat().st_uid == os.getuid()
    lease = lease_user_id()
    assert lease.uid == uid
    lease.release()


@pytest.mark.usefixtures("own_ids")
def test_file_with_a_name_outside_of_the_folders_keeps_its_owner(tmp_path):
    home, work = (tmp_path / name for name in ("home", "work"))
    for folder in (home / "store", work):
        folder.mkdir(parents=True)
    names = [home / "store" / "inside", home / "again", work / "inside", tmp_path / "outside"]
    for name in (names[0], names[3]):
        name.touch()
    for name in names[1:3]:
        name.hardlink_to(names[0])
    (work / "planted").hardlink_to(names[3])
    (home / "planted").hardlink_to(names[3])
    tmp_path.chmod(0o755)
    program = ProgramSpec(("true",), tmp_path, {}, Limits(), Access(home=home, writable=(work,)))
    resources = SandboxResources(Cgroups(()), program)
    uid, own = resources.uid, os.getuid()
    try:
        assert [name.stat().st_uid for name in names] == [uid, uid, uid, own]
        assert [name.stat().st_uid for name in (home, home / "store", work)] == [uid] * 3
        os.chown(names[3], uid + 1, -1)  # the file of another user
        (tmp_path / "left").hardlink_to(work / "inside")  # as a program can in a folder like /tmp
    finally:
        resources.release()
    assert [name.stat().st_uid for name in names] == [own, own, own, uid + 1]
    assert [name.stat().st_uid for name in (home, home / "store", work)] == [own] * 3


def test_program_cannot_take_the_locks():
    lease = lease_user_id()
    folders = (Path(parent, user_ids._FOLDER) for parent in user_ids._PARENTS)
    lock = next(folder for folder in folders if folder.is_dir()) / str(lease.uid)
    for command in ("ls", "touch", "cat"):
        tried = subprocess.run(
            [command, lock],
            user=lease.uid,
            group=lease.uid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Permission denied" in tried.stderr
    lease.release()


@pytest.mark.usefixtures("place")
def test_user_id_with_running_processes_is_not_leased(monkeypatch):
    # other tests end all processes of the usual ids
    monkeypatch.setattr(user_ids, "_USER_IDS", (range(68_000, 68_010, 2),))
    lease = lease_user_id()
    lease.release()
    for uid in (lease.uid, lease.uid + 1):
        with subprocess.Popen(["/bin/sleep", "1000"], user=uid, cwd="/") as left_behind:
            assert list_pids(uid) == [left_behind.pid]
            other = lease_user_id()
            assert other.uid > lease.uid
            other.release()
            left_behind.kill()
        assert not list_pids(uid)


def test_user_id_that_gets_a_process_just_before_it_is_locked_is_not_leased(own_ids, monkeypatch):
    """Another referee had the lock until now, started the process and was killed."""
    _, ids = own_ids
    lock, started = user_ids._lock, []

    def start_and_lock(folder, uid):
        if uid == ids[0]:
            started.append(subprocess.Popen(["/bin/sleep", "1000"], user=uid, cwd="/"))
        return lock(folder, uid)

    monkeypatch.setattr(user_ids, "_lock", start_and_lock)
    lease = lease_user_id()
    with started[0] as left_behind:
        left_behind.kill()
    assert lease.uid == ids[1]
    lease.release()


@pytest.mark.parametrize("mode", [0o777, 0o710, 0o701])
def test_locks_that_others_can_reach_are_refused(place, mode):
    folder = place / user_ids._FOLDER
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(VoidGame, match="must belong to root, with mode 0700"):
        lease_user_id()


def test_planted_folder_or_link_is_not_used(place, tmp_path_factory):
    folder = place / user_ids._FOLDER
    folder.mkdir(mode=0o700)
    os.chown(folder, 66_999, 66_999)
    with pytest.raises(VoidGame, match="must belong to root"):
        lease_user_id()
    folder.rmdir()
    target = tmp_path_factory.mktemp("target")
    target.chmod(0o700)
    folder.symlink_to(target)
    with pytest.raises(VoidGame, match="Not a directory"):
        lease_user_id()
    assert not list(target.iterdir())
