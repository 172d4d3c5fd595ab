"""Play bots that attack the servers of other bots, where isolation does not prevent it: on the rungs `none` and `uid`.

Each plays in each seat against its victim. Only the intruder may be charged. A healthy game follows.
"""

import json
import os
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer

import pytest
from extended import extend_all_but
from test_misbehaving_games import FOLDER, PATIENT, Run, spec

from referee.bots import session
from referee.errors import Cause
from referee.sandbox import NO_ISOLATION, Rung

sys.path.insert(0, str(FOLDER))
import bot
import intruder

pytestmark = pytest.mark.unmeasured
START = replace(PATIENT, start_up_us=60_000_000)
CHARGED = {
    "steals_token": (Cause.IMPERSONATION, "the bot opened a stream with the token of another bot"),
    "steals_token_late": (
        Cause.IMPERSONATION,
        "the bot opened a stream with the token of another bot",
    ),
    "takes_all_connections": (
        Cause.FLOOD,
        "the bot opened more than 200 connections to the server of",
    ),
}
NOT_CHARGED = {"knocks"}
CHARGED_IF_FOUND = {"steals_token_and_goes"}
NO_RIGHTS = (Cause.CRASH, "")
"""The end of an intruder that the kernel refuses what it needs for its attack."""
MORE = pytest.mark.extended("plays more misbehaving bots")


def test_every_intruder_has_a_test():
    here = {name for name, kind in bot.kinds().items() if kind.__module__ == "intruder"}
    assert here - {"intruder", "waits"} == {*CHARGED, *NOT_CHARGED, *CHARGED_IF_FOUND}
    assert intruder.Waits in bot.kinds().values()


class Request(StreamRequestHandler):
    """Reads one request of a bot for the board, and answers it."""

    def handle(self):
        name, text = json.loads(self.rfile.readline())
        if text is not None:
            self.server.texts[name] = text
        self.wfile.write(json.dumps(self.server.texts.get(name)).encode() + b"\n")


@contextmanager
def open_board(name):
    """Open a board at an abstract socket, where two bots leave texts for each other."""
    with ThreadingUnixStreamServer(f"\0{name}", Request) as board:
        board.texts = {}
        thread = threading.Thread(target=board.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            board.shutdown()
            thread.join()


@pytest.fixture(
    params=[
        (Rung.NONE, "tcp"),
        pytest.param((Rung.NONE, "unix"), marks=MORE),
        pytest.param(
            (Rung.UID, "tcp"),
            marks=[MORE, pytest.mark.skipif(os.geteuid() != 0, reason="only root gives users")],
        ),
    ],
    ids=lambda value: f"{value[0]}-{value[1]}",
)
async def run(request, tmp_path_factory, monkeypatch):
    # on a busy machine, an intruder may need long for the hello on its stream
    monkeypatch.setattr(session, "STRANGER_LIMIT_S", 20.0)
    rung, transport = request.param
    folder = tmp_path_factory.mktemp("r")
    folder.chmod(0o755)
    run = Run(folder, replace(NO_ISOLATION, rung=rung))
    run.rung, run.transport = rung, transport
    await run.play_healthy()
    run.descriptors = 1000
    yield run
    await run.close_and_assert_nothing_left()


async def play_each_seat(run, name):
    for seat in (0, 1):
        board = os.urandom(8).hex()
        command = (sys.executable, "intruder.py")
        victim = replace(spec("victim", *command, "waits", board), transport=run.transport)
        if name == "steals_token_late":
            victim = replace(victim, command=(sys.executable, "bot.py", "fair"))
        bots = [victim, victim]
        bots[seat] = replace(spec(name, *command, name, board), transport=run.transport)
        lane = 1 + seat  # with new processes, because the attack comes first
        with open_board(board):
            record = await run.play(*bots, start=START, game=PATIENT, lane=lane)
        faults = [each for each in record.faults if each.seat != seat]
        assert not faults, "the victim was charged"
        assert not any(move.stand_in for move in record.moves if move.seat != seat)
        yield seat, record, run.player._pool._processes.get((lane, f"{name}@1"))
        await run.play_healthy()


@pytest.mark.parametrize(
    "name", extend_all_but({"steals_token"}, sorted(CHARGED), "plays more misbehaving bots")
)
async def test_intruder_is_charged_and_its_victim_plays(run, name):
    cause, detail = CHARGED[name]
    if run.rung is Rung.UID and name == "steals_token_late":
        cause, detail = NO_RIGHTS
    async for seat, record, _ in play_each_seat(run, name):
        (fault,) = record.faults
        assert (fault.cause, fault.forfeit) == (cause, True)
        assert detail in fault.evidence.detail
        assert record.forfeited == (seat,)


@MORE
@pytest.mark.parametrize("name", sorted(NOT_CHARGED))
async def test_intruder_that_does_no_harm_is_not_charged(run, name):
    async for _, record, process in play_each_seat(run, name):
        assert not record.faults
        assert "intruded" in process.stderr_tail()


@MORE
@pytest.mark.parametrize("name", sorted(CHARGED_IF_FOUND))
async def test_intruder_that_leaves_at_once_does_not_harm_its_victim(run, name):
    async for _, record, _ in play_each_seat(run, name):
        assert {fault.cause for fault in record.faults} <= {Cause.IMPERSONATION}
