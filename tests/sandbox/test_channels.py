"""Tests whether two sandboxes can pass bits to each other; `-s` shows how many pass in each channel.

Two processes of one bot run in two sandboxes, as in two lanes of a worker. The channels are those of
`tests/misbehaving/channels.py`. One process sends a random bit, then the other one reads a number. The first half
of the numbers shows which numbers mean 1, and the second half shows how many bits pass.
"""

import asyncio
import os
import random
import re
import shlex
import statistics
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from math import log2
from pathlib import Path

import pytest
from strongest_isolation import strongest

from referee.sandbox import Access, bubblewrap
from referee.sandbox.ladder import make_launcher

pytestmark = pytest.mark.isolation("namespaces")
PROGRAM = Path(__file__).parents[1] / "misbehaving" / "channels.py"
PYTHON = os.path.realpath(sys.executable)
SYMBOLS = 16
NAMED = {"Core", "PageCache", "InodeNumbers", "SocketCookies", "EventIds"}
"""The channels that nothing closes. The README of the sandbox names them."""
NOISY = {"Core", "PageCache"}
"""The named channels in which other programs of a busy machine can disturb every bit."""
OF_ONE_USER = {"DescriptorsInFlight", "PipePages", "ModificationTime"}
"""The channels that are open only if the sandboxes have the same user, because the referee is not root."""
README = Path(bubblewrap.__file__).with_name("README.md")
IN_ONE_SANDBOX = {
    *("AbstractDatagrams", "AbstractSocket", "DescriptorsInFlight", "LoopbackPort", "PipePages"),
    *("PendingSignals", "Processes", "Signals"),
    *("MessageQueue", "NamedMemory", "NamedSemaphore", "Semaphores", "SharedMemory"),
}
"""Channels that work between two processes of one sandbox. So the programs of these channels are right. Bots may open
no queue at all."""
COLD_PAGES = 256


def channel_names():
    spec = spec_from_file_location("channels", PROGRAM)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kinds().keys()


class Lane:
    """The connection with a process in a sandbox that sends and receives bits."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer

    async def ask(self, *words):
        self._writer.write(" ".join(map(str, words)).encode() + b"\n")
        return float(await self._reader.readline())

    def close(self):
        self._writer.close()


@pytest.fixture
def own(tmp_path):
    """Return the folder of the bot, which both processes are shown, with a large file that no process has read."""
    folder = tmp_path / "own"
    folder.mkdir(mode=0o755)
    (folder / "code.py").write_text("pass")
    with (folder / "cold").open("wb") as cold:
        cold.write(os.urandom(COLD_PAGES << 12))
        cold.flush()
        os.fsync(cold.fileno())
        os.posix_fadvise(cold.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return folder


@pytest.fixture
async def start_lanes(tmp_path, own):
    """Return a function that starts a sandbox with some processes. All of them use one core, as in a worker."""
    launcher = make_launcher(strongest())
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    started = []

    async def start(name, processes=1):
        for folder in ("scratch", "link"):
            (tmp_path / name / folder).mkdir(mode=0o755, parents=True)
        launched, lanes = await start_sandbox(launcher, own, tmp_path / name, processes)
        started.append((launched, lanes))
        return lanes

    yield start
    for launched, lanes in started:
        for lane in lanes:
            lane.close()
        await launched.kill()
    os.sched_setaffinity(0, cores)


@pytest.fixture
async def lanes(start_lanes):
    return [*await start_lanes("first"), *await start_lanes("second")]


async def start_sandbox(launcher, own, place, processes):
    address = place / "link" / "socket"
    connected = asyncio.Queue()
    server = await asyncio.start_unix_server(
        lambda *streams: connected.put_nowait(Lane(*streams)), address
    )
    program = shlex.join([PYTHON, "-I", "-S", str(PROGRAM), str(address), *shared_files(own)])
    launched = await launcher.launch(
        ["sh", "-c", f"{f'{program} & ' * processes} wait"],
        folder=own,
        environment={"HOME": str(place / "scratch"), "PATH": os.defpath},
        access=Access(scratch=place / "scratch", link=place / "link", readable=(PROGRAM,)),
    )
    errors = asyncio.ensure_future(launched.process.stderr.read())
    lanes = asyncio.gather(*(connected.get() for _ in range(processes)))
    await asyncio.wait({lanes, errors}, return_when=asyncio.FIRST_COMPLETED)
    assert lanes.done(), (await errors).decode()
    server.close()
    return launched, lanes.result()


def shared_files(own):
    """Return files and folders that both sandboxes show: of the system, of the referee, devices and the bot's own."""
    package = Path(bubblewrap.__file__).parents[1]
    return [
        *("/usr", "/usr/bin/env", "/etc/ld.so.cache", "/etc/ssl", "/dev/null", "/dev/urandom"),
        *(
            "/proc/self/ns/time",
            "/proc/self/ns/cgroup",
            "/proc/version",
            "/proc/loadavg",
            "/proc/meminfo",
            "/proc/sys/fs",
        ),
        *(PYTHON, str(PROGRAM), str(package / "sdk"), str(package / "sandbox" / "init.py")),
        *(str(own), str(own / "code.py"), str(own / "cold")),
    ]


async def measure_bits(name, sender, receiver):
    """Return the bits that pass in a channel with a symbol of one bit, and the seconds for a symbol."""
    bits = [bit for _ in range(2) for bit in random.sample([0, 1] * (SYMBOLS // 2), SYMBOLS)]
    for bit in (0, 1):  # both sides prepare themselves
        await sender.ask("send", name, bit)
        await receiver.ask("receive", name)
    readings = []
    began = time.perf_counter()
    for bit in bits:
        await sender.ask("send", name, bit)
        readings.append(await receiver.ask("receive", name))
    elapsed_s = (time.perf_counter() - began) / len(bits)
    await sender.ask("send", name, 0)
    return capacity(bits[SYMBOLS:], decode(bits[:SYMBOLS], readings)), elapsed_s


def decode(known, readings):
    """Return the bits that the second half of the readings means, from the known bits of the first half."""
    zero, one = (
        statistics.median(each for bit, each in zip(known, readings, strict=False) if bit == wanted)
        for wanted in (0, 1)
    )
    return [
        int(zero != one and abs(each - one) < abs(each - zero)) for each in readings[len(known) :]
    ]


def capacity(sent, received):
    """Return the bits that a symbol carries if as many symbols are wrong as here.

    Chance alone makes less than one symbol of eight wrong in one of 500 attempts, so more errors count as no bits.
    """
    wrong = sum(a != b for a, b in zip(sent, received, strict=True)) / len(sent)
    if wrong > 1 / 8:
        return 0.0
    return 1 + sum(part * log2(part) for part in (wrong, 1 - wrong) if part)


def test_random_readings_carry_no_bits_and_correct_ones_all():
    assert capacity([0, 1] * 8, [0] * 16) == 0
    assert capacity([0, 1] * 8, [0, 1] * 8) == 1
    assert decode([0, 1, 1, 0], [5, 9, 9, 5, 9, 5]) == [1, 0]
    assert decode([0, 1, 1, 0], [5] * 8) == [0] * 4


def test_readme_names_the_channels_that_are_open():
    text = README.read_text().split("\n### Side channels\n")[1].split("\n#")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == NAMED | OF_ONE_USER


@pytest.mark.extended("measures channels between sandboxes")
async def test_no_bits_pass_between_two_lanes(lanes):
    """Only the channels that the README names pass bits."""
    found = {}
    open_here = NAMED if os.geteuid() == 0 else NAMED | OF_ONE_USER
    for name in sorted(channel_names() - open_here):
        found[name], _ = await measure_bits(name, *lanes)
        print(f"{name:20} {found[name] * SYMBOLS:6.1f} of {SYMBOLS} bits")  # noqa: T201 - for `-s`
    assert {name: bits for name, bits in found.items() if bits} == {}


@pytest.mark.extended("measures channels between sandboxes")
async def test_bits_pass_between_two_processes_of_one_sandbox(start_lanes):
    """Show that the programs can pass bits where nothing is between them."""
    lanes = await start_lanes("both", processes=2)
    found = {name: (await measure_bits(name, *lanes))[0] for name in sorted(IN_ONE_SANDBOX)}
    assert all(found.values()), found


@pytest.mark.extended("measures channels between sandboxes")
async def test_named_channels_pass_bits(lanes):
    """A channel that does not pass bits any more must go from the README. A busy machine lets fewer bits pass."""
    found = {}
    for name in sorted(NAMED):
        found[name], elapsed_s = await measure_bits(name, *lanes)
        passed = (
            f"{found[name] * SYMBOLS:6.1f} of {SYMBOLS} bits, {found[name] / elapsed_s:8.0f} bits/s"
        )
        print(f"{name:20} {passed}")  # noqa: T201 - for `-s`
    assert all(bits for name, bits in found.items() if name not in NOISY), found
