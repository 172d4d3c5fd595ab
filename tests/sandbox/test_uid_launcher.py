"""Tests the rung `uid`: programs with a user id of their own. Needs root."""

import os
import signal
import tempfile
from pathlib import Path

import pytest
from descendants import running

from referee.errors import Cause, Forfeit, VoidGame
from referee.sandbox import Access
from referee.sandbox.cgroups import Cgroups
from referee.sandbox.process_group import UidLauncher

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
    assert not running()


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


async def test_program_writes_only_into_its_scratch_folder(launch, place):
    program = 'for f in . /usr /etc "$TMPDIR"; do touch $f/x && echo $f; done'
    assert await read_words(await launch(program)) == [str(place / "bot" / "scratch")]
    assert (place / "bot" / "scratch").stat().st_uid == 0


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
    assert launched.breach() is None
    assert not running()


async def test_missing_program_is_no_start(place):
    place.chmod(0o755)
    launcher = UidLauncher(Cgroups(()))
    with pytest.raises(Forfeit) as raised:
        await launcher.launch(["./none"], folder=place / "own", environment={})
    assert raised.value.cause is Cause.NO_START


async def test_folder_that_the_user_cannot_reach_voids_the_game(launch, place):
    hidden = place / "hidden"
    (hidden / "bot").mkdir(parents=True)
    hidden.chmod(0o700)
    with pytest.raises(VoidGame, match="cannot be reached by the bot, which runs as another user"):
        await launch("true", folder=hidden / "bot")
