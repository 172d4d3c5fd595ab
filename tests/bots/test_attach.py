"""A bot that a person starts has no known process."""

import asyncio
from pathlib import Path

from referee.bots.attach import AttachLauncher


async def launch(address):
    announced = []
    launcher = AttachLauncher(lambda *what: announced.append(what))
    environment = {"REFEREE_ADDRESS": address, "REFEREE_TOKEN": "abc"}
    program = await launcher.launch(("bot",), folder=Path("/"), environment=environment)
    (told,) = announced
    return program, told


async def test_address_and_token_are_announced():
    _, told = await launch("127.0.0.1:4000")
    assert told == ("127.0.0.1:4000", "abc")


async def test_address_does_not_mark_the_program_as_one_of_the_run_folder():
    _, (address, _) = await launch("unix:/tmp/run/bot/socket")
    assert not address.startswith("unix:/tmp/run/")
    assert Path(address.removeprefix("unix:")) == Path("/tmp/run/bot/socket")  # noqa: S108 - no file is made


async def test_program_runs_until_the_referee_does_not_use_it_any_more():
    program, _ = await launch("127.0.0.1:4000")
    waiting = asyncio.ensure_future(program.process.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    await program.kill()
    assert await waiting == 0
    assert program.process.returncode is None
    assert await program.process.stderr.read() == b""
