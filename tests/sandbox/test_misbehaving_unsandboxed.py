"""Tests bots that attack the rungs without a sandbox, in each seat. Each game is followed by a healthy one."""

import asyncio
import os
import socket
import sys
import tempfile
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from isolated_games import FOLDER, SHORT, Games, spec

from referee.errors import Cause
from referee.sandbox import NO_ISOLATION, Limits, Rung
from referee.sandbox.ladder import select_isolation
from referee.sandbox.system_v import read_ipc_table
from referee.store.league import League
from referee.tournament import game_player

sys.path.insert(0, str(FOLDER))
import burglar

pytestmark = [
    pytest.mark.unmeasured,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root gives bots users of their own"),
    pytest.mark.extended("plays more misbehaving bots"),
]
SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")  # noqa: S108 - everybody may write there


@cache
def find_isolation(*, cgroups):
    found = asyncio.run(select_isolation(Rung.UID))
    return found if cgroups else replace(found, controllers=None)


@pytest.fixture
async def games(rung, tmp_path_factory, monkeypatch):
    """Return games on a rung. A void game is an error, because no attack may spoil a game."""
    monkeypatch.setattr(game_player, "VOID_ATTEMPTS", 1)
    folder = tmp_path_factory.mktemp("i")
    folder.chmod(0o755)
    isolation = NO_ISOLATION
    if rung != "none":
        isolation = await asyncio.to_thread(find_isolation, cgroups=rung == "uid with cgroup")
    games = Games(folder, isolation)
    yield games
    await games.close()


UID = ["uid", "uid with cgroup"]
ALL = ["none", *UID]


def few(name):
    """Return a bot that may run 20 processes."""
    return replace(spec(name), limits=Limits(processes=20))


@pytest.mark.parametrize("rung", ALL)
async def test_process_that_replaces_itself_for_ever_ends_with_its_bot(games):
    async for _seat, record in games.each_seat(few("respawns_for_ever")):
        assert all(fault.cause is Cause.TOO_MANY_PROCESSES for fault in record.faults)


@pytest.mark.parametrize("rung", ALL)
async def test_bot_with_too_many_hidden_processes_is_charged(games):
    causes = {Cause.TOO_MANY_PROCESSES, Cause.TIMEOUT, Cause.STRIKES}
    async for seat, record in games.each_seat(few("starts_more_and_more"), clocks=SHORT):
        assert record.forfeited == (seat,)
        assert {fault.cause for fault in record.faults} <= causes


@pytest.mark.parametrize("rung", ALL)
@pytest.mark.parametrize("name", ["passes_descriptors", "holds_its_outputs"])
async def test_bot_cannot_block_the_referee_by_its_outputs(games, name):
    began_s = time.monotonic()
    async for _, record in games.each_seat(spec(name)):
        assert not record.faults
    assert time.monotonic() - began_s < burglar.HOLD_S


@pytest.mark.parametrize("rung", ALL)
async def test_bot_cannot_block_grpc_by_slow_sockets(games):
    with socket.socket(socket.AF_UNIX) as link:
        try:
            link.getsockopt(socket.SOL_SOCKET, 83)  # SO_PASSRIGHTS
        except OSError:
            pytest.skip("needs Linux 6.16")
    async for _, record in games.each_seat(spec("passes_slow_sockets")):
        assert not record.faults


@pytest.mark.parametrize("rung", UID)
async def test_bot_cannot_take_the_locks_of_user_ids(games):
    async for _, record in games.each_seat(spec("binds_names")):
        assert not record.faults


@pytest.fixture
def league_files():
    """Return the files of the database of an open league, in a folder that everybody may enter."""
    # not in /tmp, because a bot may have a /tmp of its own
    with tempfile.TemporaryDirectory(prefix="league-", dir="/var/lib") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with League.open(folder, create=True):
            files = [folder / f"league.db{ending}" for ending in ("", "-wal", "-shm")]
            assert all(file.exists() for file in files)
            yield files


@pytest.mark.parametrize("rung", UID)
async def test_bot_cannot_read_the_database_of_the_league(games, league_files):
    async for _, record in games.each_seat(spec("reads_files", *league_files)):
        assert not record.faults


@pytest.mark.parametrize("rung", UID)
async def test_nothing_of_a_bot_remains_in_shared_folders_and_memory(games):
    before = list_shared()
    async for _, record in games.each_seat(spec("leaves_memory")):
        assert not record.faults
    await games.player.close()
    until_s = time.monotonic() + 60
    # other tests, which run at the same time, remove their own objects
    while not list_shared() <= before and time.monotonic() < until_s:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.1)
    assert list_shared() <= before


def list_shared():
    """Return the files of burglars and the objects of System V that exist now."""
    files = [path for each in SHARED_FOLDERS for path in Path(each).glob("left-by-burglar-*")]
    rows = [
        (kind, tuple(row.values())[:2])
        for kind in ("shm", "sem", "msg")
        for row in read_ipc_table(kind)
    ]
    return {*map(str, files), *rows}
