"""Tests the rung `uid`: programs with a user id of their own. Needs root."""

import asyncio
import errno
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Event

import pytest
from descendants import running
from extended import extend_all_but, extend_cases_but
from own_cgroups import read_cpu_limit

from referee.errors import Cause, Forfeit, VoidGame
from referee.sandbox import Access, Limits, State, process_group, seccomp
from referee.sandbox.cgroups import Cgroups
from referee.sandbox.folders import ProgramFolder, run_folder
from referee.sandbox.probe import probe
from referee.sandbox.process_group import UidLauncher
from referee.sandbox.process_tree import PROCESS_TREES
from referee.sandbox.system_v import read_ipc_table
from referee.sandbox.user_ids import list_pids

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives bots users of their own")


@pytest.fixture
def place():
    """Return a folder that every user can reach, with the folders of a program in it."""
    with tempfile.TemporaryDirectory(prefix="uid-") as folder:
        place = Path(folder)
        for name in ("own", "bot/scratch", "bot/link"):
            (place / name).mkdir(parents=True, mode=0o755)
        (place / "own").chmod(0o755)
        yield place


@pytest.fixture
def launch(place):
    launcher = UidLauncher(Cgroups(()))
    place.chmod(0o755)

    async def launch(program, **more):
        return await launcher.launch(
            ["sh", "-c", program],
            folder=more.pop("folder", place / "own"),
            environment={"PATH": "/usr/bin", "TMPDIR": str(place / "bot/scratch")},
            access=Access(scratch=place / "bot" / "scratch", link=place / "bot" / "link"),
        )

    return launch


@pytest.fixture(autouse=True)
def _assert_nothing_left():
    yield
    until_s = time.monotonic() + 20
    while running() and time.monotonic() < until_s:  # a sweeper may still be ending
        time.sleep(0.01)
    assert not running()


async def test_running_program_has_its_own_cpu_limit(place):
    cgroups = Cgroups.find()
    if "cpu" not in cgroups.controllers:
        pytest.skip("this machine gives the referee no cgroups")
    place.chmod(0o755)
    launched = await UidLauncher(cgroups).launch(
        ["sleep", "1000"],
        folder=place / "own",
        environment={"PATH": "/usr/bin"},
        limits=Limits(cpus=0.25),
    )
    limit = read_cpu_limit(launched.cgroup)
    await launched.kill()
    assert limit == "25000"


async def read_words(launched):
    text = await launched.process.stdout.read()
    await launched.kill()
    return text.decode().split()


async def test_program_has_its_own_user_without_other_rights(launch):
    program = "id -u; id -G; grep NoNewPrivs /proc/self/status; kill -0 $PPID || echo refused"
    uid, groups, _, no_new, signalled = await read_words(await launch(program))
    assert uid == groups != "0"
    assert no_new == "1"
    assert signalled == "refused"


async def test_program_cannot_use_keys_of_the_kernel(launch):
    if (known := seccomp.ARCHITECTURES.get(platform.machine())) is None:
        pytest.skip("this kind of machine has no filter of system calls")
    numbers = [known.refused[name] for name in ("add_key", "keyctl", "request_key")]
    call = "libc.syscall(each, 0, 0, 0, 0, 0), ctypes.get_errno()"
    code = f"import ctypes; libc = ctypes.CDLL(None, use_errno=True)\nfor each in {numbers}: print(*({call}))"
    words = await read_words(await launch(f"/usr/bin/python3 -c '{code}'"))
    assert words == ["-1", str(errno.EPERM)] * 3


async def test_outputs_are_pipes(launch):
    program = "for number in 1 2; do test -p /proc/self/fd/$number && echo $number; done"
    assert await read_words(await launch(program)) == ["1", "2"]


async def test_program_writes_only_into_its_scratch_folder(launch, place):
    program = 'for f in . /usr /etc "$TMPDIR"; do touch $f/x && echo $f; done'
    assert await read_words(await launch(program)) == [str(place / "bot" / "scratch")]
    assert (place / "bot" / "scratch").stat().st_uid == 0


@pytest.mark.usefixtures("without_namespaces")
async def test_program_reaches_its_own_folders_in_a_run_folder_but_lists_no_other(place):
    place.chmod(0o755)
    with run_folder() as run:
        folder = ProgramFolder(run)
        folder.socket.touch()
        program = (
            'echo "$TMPDIR"/*; touch "$TMPDIR/x" "$LINK/y"; ls "$LINK"; ls "$RUN" || echo refused'
        )
        launched = await UidLauncher(Cgroups(())).launch(
            ["sh", "-c", program],
            folder=place / "own",
            environment={
                "PATH": "/usr/bin",
                "TMPDIR": str(folder.scratch),
                "LINK": str(folder.socket.parent),
                "RUN": str(run.parent),
            },
            access=Access(scratch=folder.scratch, link=folder.socket.parent),
        )
        words = await read_words(launched)
        assert words == [f"{folder.scratch}/*", "socket", "y", "refused"]


@pytest.mark.parametrize("name", ["private_options", "make_reachable"])
async def test_error_of_the_referees_files_voids_the_game(launch, monkeypatch, name):
    def fail(_):
        raise PermissionError(errno.EACCES, "Permission denied", "/a/file")

    monkeypatch.setattr(process_group, name, fail)
    with pytest.raises(VoidGame, match=r"the isolation cannot be set up: .*/a/file"):
        await launch("true")


async def test_user_id_is_released_only_after_a_cancelled_kill(launch, monkeypatch):
    launched = await launch("exec sleep 1000")
    resources, entered, go_on = launched._resources, Event(), Event()
    uid, remove = resources.uid, resources.remove_leftovers

    def wait_and_remove():
        entered.set()
        assert go_on.wait(60)
        remove()

    monkeypatch.setattr(resources, "remove_leftovers", wait_and_remove)
    killing = asyncio.ensure_future(launched.kill())
    assert await asyncio.to_thread(entered.wait, 60)
    killing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await killing
    assert resources.uid == uid
    go_on.set()
    await launched.kill()
    assert resources.uid is None
    assert launched.process.pid not in PROCESS_TREES._programs


async def test_two_programs_have_two_users(launch):
    first = await launch("id -u; sleep 1000")
    second = await launch("id -u")
    uid = (await first.process.stdout.readline()).decode().strip()
    assert await read_one_line(second) != uid
    await first.kill()


async def read_one_line(launched):
    text = await launched.process.stdout.read()
    await launched.kill()
    return text.decode().strip()


async def test_kill_ends_everything_that_the_program_started(launch):
    launched = await launch("setsid sleep 1000 & echo on; wait")
    assert await launched.process.stdout.readline() == b"on\n"
    assert launched.list_others()
    launched.terminate()
    assert await launched.process.wait() == -signal.SIGTERM
    await launched.kill()
    assert await launched.breach() is None
    assert not running()


async def test_missing_program_is_no_start(place):
    place.chmod(0o755)
    launcher = UidLauncher(Cgroups(()))
    with pytest.raises(Forfeit) as raised:
        await launcher.launch(["./none"], folder=place / "own", environment={})
    assert raised.value.cause is Cause.NO_START


@pytest.fixture
def without_namespaces(monkeypatch):
    """Start programs as on a machine that refuses mount namespaces."""
    monkeypatch.setattr(process_group, "private_options", lambda _: [])


@pytest.mark.usefixtures("without_namespaces")
async def test_folder_that_the_user_cannot_reach_voids_the_game(launch, place):
    hidden = place / "hidden"
    (hidden / "bot").mkdir(parents=True)
    hidden.chmod(0o700)
    with pytest.raises(VoidGame, match="cannot be reached by the bot, which runs as another user"):
        await launch("true", folder=hidden / "bot")


async def test_folder_below_a_closed_one_is_shown_alone(launch):
    hidden = Path(tempfile.mkdtemp(prefix="hidden-", dir="/var"))
    try:
        (hidden / "bot").mkdir()
        (hidden / "secret").touch()
        assert await read_words(
            await launch(f"pwd; ls {hidden}; touch {hidden}/x", folder=hidden / "bot")
        ) == [str(hidden / "bot"), "bot"]
    finally:
        shutil.rmtree(hidden)


WRITABLE_FOR_ALL = ["/tmp", "/var/tmp", "/dev/shm", "/run/lock"]  # noqa: S108 - they are what is tested
SHARED_FOLDERS = [path for path in WRITABLE_FOR_ALL if Path(path).is_dir()]
LEAVE = f"""
for folder in {" ".join(SHARED_FOLDERS)}; do
    mkdir $folder/left-$$ && echo x >$folder/left-$$/file && mkfifo $folder/left-$$-pipe && echo $folder
done
ipcmk --queue --shmem 1000 --semaphore 1 --mode 0666 >/dev/null && echo ipc
setsid env -i sleep 1000 >/dev/null 2>&1 &
echo $$
"""


async def test_shared_folders_and_memory_are_private(launch):
    launched = await launch(f"{LEAVE} wait")
    *words, marker = await read_lines(launched, len(SHARED_FOLDERS) + 2)
    assert words == [*SHARED_FOLDERS, "ipc"]
    assert not find_leftovers(marker, launched._resources.uid)
    await launched.kill()


@pytest.mark.usefixtures("without_namespaces")
async def test_what_a_program_leaves_in_shared_folders_and_memory_is_removed(launch):
    launched = await launch(LEAVE)
    uid = launched._resources.uid
    *words, marker = await read_lines(launched, len(SHARED_FOLDERS) + 2)
    assert words == [*SHARED_FOLDERS, "ipc"]
    assert len(find_leftovers(marker, uid)) == 2 * len(SHARED_FOLDERS) + 3
    await launched.kill()
    assert not find_leftovers(marker, uid)
    assert not list_pids(uid)


async def test_private_folders_have_a_limited_size(launch):
    program = "for each in /tmp /dev/shm; do head -c 100M /dev/zero >$each/x || echo full; done"
    assert await read_words(await launch(program)) == ["full", "full"]


@pytest.fixture
def open_folder():
    with tempfile.TemporaryDirectory(dir="/var") as folder:
        Path(folder).chmod(0o777)
        yield folder


async def test_folders_that_everybody_may_write_to_are_read_only(launch, open_folder):
    assert await read_words(await launch(f"touch {open_folder}/x || echo refused")) == ["refused"]


@pytest.mark.extended("starts more programs on the rungs")
async def test_user_may_run_only_as_many_processes_as_the_limit(launch):
    program = "import os, time\nwhile os.fork(): print(flush=True)\ntime.sleep(1000)"
    launched = await launch(f"/usr/bin/python3 -c '{program}'")
    try:
        while b"BlockingIOError" not in (line := await launched.process.stderr.readline()):
            assert line, "the program has ended"
        assert len(list_pids(launched._resources.uid)) <= 72
    finally:
        await launched.kill()


KILLED_REFEREE = """
import asyncio, os, sys
from pathlib import Path
from referee.sandbox.cgroups import Cgroups
from referee.sandbox.process_group import UidLauncher
from referee.sandbox.user_ids import list_pids

async def main():
    launched = await UidLauncher(Cgroups(())).launch(
        ["sh", "-c", "setsid env -i sleep 1000 & setsid env -i sleep 1000 & id -u; wait"],
        folder=Path("/usr"),
        environment={"PATH": "/usr/bin:/bin"},
    )
    uid = int(await launched.process.stdout.readline())
    print(uid, *list_pids(uid), flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


def test_everything_of_the_user_ends_with_a_killed_referee():
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_REFEREE], stdout=subprocess.PIPE, check=False, timeout=60
    )
    uid, *pids = map(int, killed.stdout.split())
    assert len(pids) >= 3  # `id` may still run
    until_s = time.monotonic() + 20
    while left := {*pids} & {*list_pids(uid)}:  # another referee may use the user id now
        assert time.monotonic() < until_s, left
        time.sleep(0.01)


async def test_missing_folder_of_a_program_is_named(launch, place):
    with pytest.raises(VoidGame, match="own: No such file or directory"):
        await launch("true", folder=place / "missing" / "own")


async def test_process_with_the_mark_of_another_program_counts_for_its_own(launch, monkeypatch):
    marks = iter((1000, 2000))  # a process may only take a smaller number
    monkeypatch.setattr(process_group, "create_mark", lambda: next(marks))
    victim = await launch("exec sleep 1000")
    take = "resource.setrlimit(10, (1000, 1000))"
    lives = "print(os.getpid(), flush=True); time.sleep(1000)"
    code = f"import os, resource, time; {take}; os.setsid(); {lives}"
    thief = await launch(f"python3 -c '{code}' & wait")
    try:
        (pid,) = map(int, await read_lines(thief, 1))
        assert pid in PROCESS_TREES.list_pids(thief.process.pid)
        os.kill(thief.process.pid, signal.SIGKILL)
        await thief.process.wait()
        assert os.getsid(pid) == pid, "the orphan does not lead a session of its own"
        with PROCESS_TREES.expect_start():
            assert PROCESS_TREES.list_pids(victim.process.pid) == []
            assert PROCESS_TREES.list_pids(thief.process.pid) == [pid]
        os.kill(pid, signal.SIGKILL)
        while not PROCESS_TREES.count_ended(thief.process.pid):
            assert not PROCESS_TREES.count_ended(victim.process.pid)
    finally:
        await thief.kill()
        await victim.kill()


async def read_lines(launched, number):
    return [(await launched.process.stdout.readline()).decode().strip() for _ in range(number)]


def find_leftovers(marker, uid):
    """Return what exists of the files and System V objects that a program with `LEAVE` leaves."""
    files = [path for each in SHARED_FOLDERS for path in Path(each).glob(f"left-{marker}*")]
    rows = [row for kind in ("shm", "sem", "msg") for row in read_ipc_table(kind)]
    return [*files, *(row for row in rows if row["cuid"] == uid)]


PROTECTED = {
    "yes": State.ON,
    "no": State.OFF,
    "reads what everybody may read": State.PARTIAL,
    "sees others, cannot signal them": State.PARTIAL,
    "yes, except of its own": State.PARTIAL,
    "only those for keys, on x86-64 and arm64": State.PARTIAL,
}
"""The state of a protection, by the text in the table of README.md. The others depend on the cgroup."""
PROBE_PROGRAMS = Path(process_group.__file__).with_name("probe_programs.py")
WITHOUT_CGROUP = {
    "cgroup or monitored": State.OFF,
    "only with a cgroup": State.OFF,
    "with a cgroup, else what can be found": State.PARTIAL,
}
"""The state without a cgroup of protections that are on with one."""


@pytest.mark.parametrize(
    "has_cgroup",
    extend_cases_but(
        ["cgroup"], {"no cgroup": (False,), "cgroup": (True,)}, "starts more programs on the rungs"
    ),
)
async def test_rung_protects_as_the_table_says(has_cgroup):
    """Compares the results of the probe with the column `uid` of the table in README.md."""
    cgroups = Cgroups.find() if has_cgroup else Cgroups(())
    if has_cgroup and not {"memory", "cpu"} <= cgroups.controllers:
        pytest.skip("this machine gives the referee no cgroups")
    assert_results_are_as_in_the_table(await probe(UidLauncher(cgroups)), has_cgroup=has_cgroup)


@pytest.mark.usefixtures("without_namespaces")
@pytest.mark.parametrize(
    "umask", extend_all_but({0o077}, [0o022, 0o077], "starts more programs on the rungs")
)
async def test_rung_protects_as_the_table_says_without_mount_namespaces(place, monkeypatch, umask):
    place.chmod(0o755)
    program = shutil.copy(PROBE_PROGRAMS, place)
    monkeypatch.setattr("referee.sandbox.probe._PROGRAMS", program)
    monkeypatch.setattr("referee.sandbox.probe._PYTHON", ("/usr/bin/python3", "-I", "-S"))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    before = os.umask(umask)
    try:
        results = await probe(UidLauncher(Cgroups(())))
    finally:
        os.umask(before)
    assert_results_are_as_in_the_table(results, has_cgroup=False)
    assert "/secret" in results[0].reason


def assert_results_are_as_in_the_table(results, *, has_cgroup):
    table = (Path(process_group.__file__).with_name("README.md")).read_text()
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if " | yes | " in line]
    for result in results:
        (cell,) = [row[3] for row in rows if row[0].startswith(result.protection.value)]
        with_cgroup = State.ON if cell in WITHOUT_CGROUP else PROTECTED.get(cell)
        expected = with_cgroup if has_cgroup else WITHOUT_CGROUP.get(cell, with_cgroup)
        assert result.state is expected, (cell, result)
