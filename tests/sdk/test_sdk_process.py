"""Bots that use the SDK run as real processes, and the tests play the referee."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from scripted_referee import (
    TOKEN,
    bot_process,
    game_ends,
    game_starts,
    requests,
    scripted_referee,
)

from referee.pb import play_pb2

SAMPLE_BOTS = sorted(Path(__file__).parents[2].glob("sample_bots/*/bot.py"))
UVLOOP = ""
STANDARD_LOOP = "import sys\nsys.modules['uvloop'] = None  # as if it were not installed\n"

FIRST_LEGAL = """
    from referee.sdk import run

    run(lambda request: request.legal[0])
"""
COUNTS_ITS_DECISIONS = """
    from referee.sdk import Bot, run

    class CountsItsDecisions(Bot):
        def start(self, game):
            self.decisions = -1

        def decide(self, request):
            self.decisions += 1
            return request.legal[self.decisions]

    run(CountsItsDecisions, max_games=8, batch_wait_us=500, name="counts")
"""
BUSY = """
    from referee.sdk import run

    def decide(request):
        print("thinking", flush=True)
        while True:
            pass

    run(decide)
"""
FORKS = """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    from referee.sdk import run

    def decide(request):
        with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
            assert list(pool.map(abs, range(-3, 0))) == [3, 2, 1]
        return request.legal[0]

    run(decide)
"""
CATCHES_EVERYTHING = """
    import sys
    import time

    from referee.sdk import run

    def decide(request):
        sys.stderr.write("not a whole line")
        print("thinking", flush=True)
        while True:
            try:
                time.sleep(60)
            except:
                pass

    run(decide)
"""
THREADS = """
    import sys
    import time
    from concurrent.futures import ThreadPoolExecutor

    from referee.sdk import run

    pool = ThreadPoolExecutor(1)

    def decide(request):
        sys.stderr.write("not a whole line")
        thought = pool.submit(time.sleep, 60)
        print("thinking", flush=True)
        thought.result()

    run(decide)
"""
RAISES = """
    from referee.sdk import run

    def decide(request):
        raise ZeroDivisionError("a mistake in the bot")

    run(decide)
"""
STOPS = """
    from referee.sdk import run

    def decide(request):
        return next(iter(()))

    run(decide)
"""
NO_ACTION = """
    from referee.sdk import run

    run(lambda request: None)
"""


@pytest.fixture
def write_bot(tmp_path):
    def write(program, prelude=""):
        folder = tmp_path / "my_bot"
        folder.mkdir()
        (folder / "bot.py").write_text(prelude + dedent(program))
        return folder / "bot.py"

    return write


@pytest.fixture
def socket_folder(tmp_path_factory):
    """Return a folder with a short path, because the path of a socket is limited."""
    return tmp_path_factory.mktemp("s")


@pytest.mark.parametrize("prelude", [UVLOOP, STANDARD_LOOP], ids=["uvloop", "asyncio"])
async def test_bot_exits_with_0_after_hello_game_and_goodbye(write_bot, socket_folder, prelude):
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(FIRST_LEGAL, prelude), referee.address) as bot,
    ):
        hello = play_pb2.Hello(protocol_version=1, token=TOKEN, name="my_bot", max_games=1)
        assert await referee.receive() == play_pb2.BotMessage(hello=hello)
        started = await referee.exchange(game_starts("g"))
        assert started == play_pb2.BotMessage(ready=[play_pb2.Ready(game_id="g")])
        message = requests(("g", 17))
        (reply,) = (await referee.exchange(message)).replies
        assert (reply.game_id, reply.decision_id) == ("g", 17)
        assert reply.action == message.requests[0].legal[0]
        await referee.send(game_ends("g"))
        await referee.assert_goodbye_ends_the_stream()
        assert await bot.exit() == (0, "")


async def test_requests_of_several_games_are_decided_together_by_separate_instances(
    write_bot, socket_folder
):
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(COUNTS_ITS_DECISIONS), referee.address) as bot,
    ):
        greeting = await referee.receive()
        hello = greeting.hello
        assert (hello.name, hello.max_games, hello.batch_wait_us) == ("counts", 8, 500)
        started = await referee.exchange(game_starts("a", "b"))
        assert [ready.game_id for ready in started.ready] == ["a", "b"]
        await referee.exchange(requests(("b", 1)))
        both = await referee.exchange(requests(("a", 4), ("b", 5)))
        assert [
            (reply.game_id, reply.decision_id, reply.action.draw_display.slot)
            for reply in both.replies
        ] == [("a", 4, 0), ("b", 5, 1)]
        await referee.send(game_ends("a"))  # needs no answer
        (reply,) = (await referee.exchange(requests(("b", 6)))).replies
        assert reply.action.draw_display.slot == 2
        again = game_starts("a")
        again.MergeFrom(requests(("b", 7), draws=4))
        mixed = await referee.exchange(again)
        assert [ready.game_id for ready in mixed.ready] == ["a"]
        assert [reply.action.draw_display.slot for reply in mixed.replies] == [3]
        await referee.assert_goodbye_ends_the_stream()
        assert await bot.exit() == (0, "")


@pytest.mark.parametrize("program", SAMPLE_BOTS, ids=lambda program: program.parent.name)
async def test_sample_bot_says_its_name_and_exits_with_0_after_goodbye(program, socket_folder):
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(program, referee.address) as bot,
    ):
        greeting = await referee.receive()
        assert greeting.hello.name == program.parent.name
        await referee.exchange(game_starts("g"))
        await referee.assert_goodbye_ends_the_stream()
        assert await bot.exit() == (0, "")


async def test_name_of_a_folder_may_be_other_than_utf_8(write_bot, socket_folder):
    program = write_bot(FIRST_LEGAL)
    folder = program.parent.rename(program.parent.with_name("my_\udcff"))
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(folder / program.name, referee.address),
    ):
        hello = await referee.receive()
    assert hello.hello.name == "my_\ufffd"


async def test_reason_of_a_goodbye_is_printed(write_bot, socket_folder):
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(FIRST_LEGAL), referee.address) as bot,
    ):
        await referee.receive()
        await referee.assert_goodbye_ends_the_stream("too many messages")
        assert await bot.exit() == (0, "the referee said goodbye: too many messages\n")


async def test_bot_exits_after_goodbye_even_if_the_referee_does_not_close_the_stream(
    write_bot, socket_folder
):
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(FIRST_LEGAL), referee.address) as bot,
    ):
        await referee.receive()
        await referee.send(play_pb2.RefereeMessage(goodbye=play_pb2.Goodbye()))
        assert await bot.exit() == (0, "")


@pytest.mark.parametrize("prelude", [UVLOOP, STANDARD_LOOP], ids=["uvloop", "asyncio"])
async def test_bot_exits_with_0_on_sigterm_while_it_waits(write_bot, socket_folder, prelude):
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(FIRST_LEGAL, prelude), referee.address) as bot,
    ):
        await referee.receive()
        await referee.exchange(game_starts("g"))
        bot.terminate()
        assert await bot.exit() == (0, "")


@pytest.mark.parametrize("prelude", [UVLOOP, STANDARD_LOOP], ids=["uvloop", "asyncio"])
async def test_bot_exits_with_0_on_sigterm_during_a_decision(write_bot, socket_folder, prelude):
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(BUSY, prelude), referee.address) as bot,
    ):
        await referee.receive()
        await referee.exchange(game_starts("g"))
        await referee.send(requests(("g", 1)))
        assert await bot.first_line() == "thinking\n"
        bot.terminate()
        assert await bot.exit() == (0, "")


@pytest.mark.parametrize("program", [CATCHES_EVERYTHING, THREADS], ids=["bare except", "threads"])
async def test_bot_exits_on_sigterm_whatever_its_decision_does(write_bot, socket_folder, program):
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(program), referee.address) as bot,
    ):
        await referee.receive()
        await referee.exchange(game_starts("g"))
        await referee.send(requests(("g", 1)))
        assert await bot.first_line() == "thinking\n"
        bot.terminate()
        assert await bot.exit() == (0, "not a whole line")


@pytest.mark.parametrize("prelude", [UVLOOP, STANDARD_LOOP], ids=["uvloop", "asyncio"])
async def test_first_ctrl_c_ends_a_decision(write_bot, socket_folder, prelude):
    prelude += "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(BUSY, prelude), referee.address) as bot,
    ):
        await referee.receive()
        await referee.exchange(game_starts("g"))
        await referee.send(requests(("g", 1)))
        assert await bot.first_line() == "thinking\n"
        bot.interrupt()
        code, stderr = await bot.exit()
    assert code == -signal.SIGINT
    assert ", in decide\n" in stderr
    assert stderr.endswith("\nKeyboardInterrupt\n")


async def test_bot_may_fork_in_each_decision(write_bot, socket_folder, monkeypatch):
    monkeypatch.delenv("GRPC_ENABLE_FORK_SUPPORT", raising=False)  # a bot does not inherit it
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(FORKS), referee.address) as bot,
    ):
        await referee.receive()
        await referee.exchange(game_starts("g"))
        for number in range(1, 41):
            await referee.exchange(requests(("g", number)))
        await referee.assert_goodbye_ends_the_stream()
        assert await bot.exit() == (0, "")


@pytest.mark.parametrize(
    ("program", "message"),
    [(RAISES, "ZeroDivisionError: a mistake in the bot\n"), (STOPS, "StopIteration\n")],
    ids=["ZeroDivisionError", "StopIteration"],
)
async def test_exception_of_the_bot_is_printed_and_exits_with_1(
    write_bot, socket_folder, program, message
):
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(program), referee.address) as bot,
    ):
        await referee.receive()
        await referee.exchange(game_starts("g"))
        await referee.send(requests(("g", 1)))
        code, stderr = await bot.exit()
        assert code == 1
        assert stderr.startswith("Traceback")
        assert stderr.endswith(message)
        first, *others = [line for line in stderr.splitlines() if line.startswith("  File ")]
        assert first.endswith(", in decide")
        assert "bot.py" in first
        assert others == []  # no frames of the SDK and of asyncio


async def test_traceback_without_code_of_the_bot_is_whole(write_bot, socket_folder):
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(NO_ACTION), referee.address) as bot,
    ):
        await referee.receive()
        await referee.exchange(game_starts("g"))
        await referee.send(requests(("g", 1)))
        _, stderr = await bot.exit()
    assert "which is no action; return an item of request.legal\n" in stderr
    assert ", in receive_in_parts\n" in stderr


async def test_hook_of_the_bot_for_exceptions_stays(write_bot, socket_folder):
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(
            write_bot(RAISES, "import sys\nsys.excepthook = lambda *_: sys.stderr.write('mine')"),
            referee.address,
        ) as bot,
    ):
        await referee.receive()
        await referee.exchange(game_starts("g"))
        await referee.send(requests(("g", 1)))
        assert await bot.exit() == (1, "mine")


@pytest.mark.parametrize("prelude", [UVLOOP, STANDARD_LOOP], ids=["uvloop", "asyncio"])
async def test_stream_that_ends_without_goodbye_exits_with_3(write_bot, socket_folder, prelude):
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(FIRST_LEGAL, prelude), referee.address) as bot,
    ):
        await referee.receive()
        referee.close_stream()
        assert await bot.exit() == (3, "the stream to the referee broke: the referee closed it\n")


async def test_stream_that_breaks_during_a_decision_ends_the_bot_before_the_last_decision(
    write_bot, socket_folder, tmp_path
):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    program = f"""
        import sys
        import time

        from referee.sdk import run

        def decide(request):
            print("decides", file=sys.stderr)
            if request.message.decision_id == 1:
                open({str(gate)!r}).read()  # until the test opens and closes the other end
            time.sleep(0.1)  # meanwhile a thread of gRPC may notice the end
            return request.legal[0]

        run(decide)
    """
    async with (
        scripted_referee(socket_folder) as referee,
        bot_process(write_bot(program), referee.address) as bot,
    ):
        await referee.receive()
        await referee.exchange(game_starts("g"))
        for number in range(1, 9):
            await referee.send(requests(("g", number)))
        with await asyncio.to_thread(gate.open, "w"):
            referee.close_stream()
            await referee.wait_closed()
        code, stderr = await bot.exit()
        assert code == 3
        *decisions, reason = stderr.splitlines()
        assert reason.startswith("the stream to the referee broke: ")
        assert set(decisions) == {"decides"}
        assert len(decisions) < 8


async def test_address_without_a_referee_exits_with_3(write_bot, socket_folder):
    async with bot_process(write_bot(FIRST_LEGAL), f"unix:{socket_folder / 'none'}") as bot:
        code, stderr = await bot.exit()
    assert code == 3
    assert stderr.startswith("the stream to the referee broke: UNAVAILABLE")
    assert stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("address", "token"), [(None, None), (None, TOKEN), ("unix:/nowhere", None)]
)
async def test_bot_started_by_hand_prints_a_hint_and_exits_with_2(write_bot, address, token):
    async with bot_process(write_bot(FIRST_LEGAL), address, token) as bot:
        code, stderr = await bot.exit()
    assert code == 2
    assert stderr == "this program is a bot: start it with `referee play …`\n"


def test_importing_the_sdk_imports_only_rules_and_messages_of_the_referee():
    script = "import sys, referee.sdk; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env=os.environ
    ).stdout.split()
    own = {name.removeprefix("referee.") for name in modules if name.startswith("referee.")}
    assert {name for name in own if not name.startswith(("pb", "sdk"))} == {
        "protocol",
        "protocol.values",
        "rules",
        "rules.actions",
        "rules.events",
        "rules.ruleset",
    }
    heavy = {"grpc", "uvloop", "pydantic", "sqlalchemy", "rich", "typer", "psutil", "trueskill"}
    assert heavy.isdisjoint(modules)
