"""Compare the full referee with bare streams that send the same bytes: `python tests/bench/bench_referee.py`.

It prints ratios of things that it measures in turn in one run, on pinned cores, with bots that reply at once:

- CPU time of the referee's process for a decision, full referee to bare stream (wanted: at most 1.5);
- decisions a second, one pinned worker on each core to as many pinned bare streams (wanted: at least 0.7).

It measures gRPC with its default settings, as most authors of a bare stream would use it, and with the settings
of `referee.configure_process`, which make both sides faster.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path

from referee import configure_process

configure_process()  # before anything imports gRPC

import bare_stream
import uvloop
from bare_stream import Letter

from referee import deals
from referee.bots.manifest import BotSpec
from referee.clocks import Clocks, DecisionTime
from referee.match.play import GameSetup
from referee.protocol import messages
from referee.protocol.messages import RequestEncoder
from referee.records import BotId, Request
from referee.rules.events import Event, redact
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS
from referee.sandbox import NO_ISOLATION
from referee.tournament.assignments import Assignment, GameTask, WorkerSettings
from referee.tournament.game_player import GamePlayer
from referee.tournament.workers import Workers

RULES = RULESETS["basic"]
SEATS = 4
SEED = bytes(32)
GAMES = 12
ROUNDS = 5
SETTING = "GRPC_EXPERIMENTS"
DEFAULT, SET = "default gRPC", "gRPC as the referee sets it"
GRPC = {DEFAULT: "", SET: os.environ[SETTING]}
"""The value of the variable `GRPC_EXPERIMENTS` in both cases."""
FOLDER = Path(__file__).resolve().parent
BOTS = tuple(
    BotSpec(BotId(f"echo{seat}", "1"), FOLDER, ("python3", "echo_bot.py")) for seat in range(SEATS)
)


def order(number: int) -> GameTask:
    name = f"bench-{number}"
    setup = GameSetup(
        game_id=name,
        ruleset=RULES,
        seating=tuple(spec.bot for spec in BOTS),
        deck=deals.deck(SEED, name, RULES),
        clocks=Clocks(),
        max_strikes=3,
        isolation="none",
    )
    return GameTask(
        setup=setup,
        bots=BOTS,
        opaque_id=deals.opaque_id(SEED, name),
        seeds=(0,) * SEATS,
        names=(),
    )


def script(orders: Sequence[GameTask]) -> list[Letter]:
    """Return all messages to the bots, from game start to game end; they take the first legal action."""
    letters: list[Letter] = []
    for each in orders:
        game = Game(RULES, SEATS, each.setup.deck)
        letters += [
            Letter(seat, start(each, game, seat), is_request=False) for seat in range(SEATS)
        ]
        encoder = RequestEncoder(each.opaque_id)
        news: list[list[Event]] = [[] for _ in range(SEATS)]
        number = 0
        while (decision := game.decision) is not None:
            number += 1
            seat = decision.seat
            limits = DecisionTime(Clocks().decision_us, None, 300)
            request = Request(number, game.view(seat), decision, tuple(news[seat]), limits)
            letters.append(Letter(seat, encoder.encode(request), is_request=True))
            news[seat].clear()
            for event in game.apply(decision.legal[0]):
                for other in range(SEATS):
                    news[other].append(redact(event, other))
        letters += [
            Letter(seat, end, is_request=False, is_answered=False)
            for seat in range(SEATS)
            for end in [
                messages.game_end(
                    each.opaque_id, news[seat], game.outcome.ranks, "", forfeited=False
                )
            ]
        ]
    return letters


def start(each: GameTask, game: Game, seat: int) -> bytes:
    return messages.game_start(
        each.opaque_id,
        rules=RULES,
        view=game.view(seat),
        clocks=each.setup.clocks,
        seed=0,
        names=(),
        max_strikes=each.setup.max_strikes,
    )


def settings(folder: Path, cores: frozenset[int]) -> WorkerSettings:
    return WorkerSettings(
        cores=cores,
        clocks=Clocks(),
        max_processes=32,
        isolation=NO_ISOLATION,
        folder=folder,
        parent_pid=os.getpid(),
    )


async def full(orders: Sequence[GameTask]) -> float:
    """Return the CPU seconds of this process for a decision of the full referee."""
    with tempfile.TemporaryDirectory() as folder:
        player = GamePlayer(settings(Path(folder), frozenset()))
        for _ in range(2):  # the first pass starts the bots and warms up, as in a bare stream
            began, decisions = time.process_time(), 0
            for each in orders:
                (record,) = await player.play_bundle(0, (each,))
                assert not record.faults
                decisions += len(record.moves)
            spent = time.process_time() - began
        await player.close()
    return spent / decisions


@contextlib.contextmanager
def processes(count: int, setting: str) -> Iterator[Pool]:
    """Start processes that have not loaded gRPC yet and will use this setting."""
    before = os.environ[SETTING]
    os.environ[SETTING] = setting
    with get_context("spawn").Pool(count) as pool:
        os.environ[SETTING] = before
        yield pool


def _full_cpu(core: int, orders: Sequence[GameTask]) -> float:
    os.sched_setaffinity(0, {core})
    return uvloop.run(full(orders))


def _bare_cpu(core: int, letters: list[Letter]) -> float:
    cpu, _ = bare_stream.run(letters, 1, {core})
    return cpu


def _bare_rate(core: int, letters: list[Letter]) -> float:
    _, wall = bare_stream.run(letters, 2, {core})
    return 1 / wall


def compare_cpu(core: int) -> None:
    orders = [order(number) for number in range(GAMES)]
    letters = script(orders)
    whole_s: dict[str, list[float]] = {how: [] for how in GRPC}
    bare_s: dict[str, list[float]] = {how: [] for how in GRPC}
    with contextlib.ExitStack() as stack:
        whole = {how: stack.enter_context(processes(1, GRPC[how])) for how in GRPC}
        bare = {how: stack.enter_context(processes(1, GRPC[how])) for how in GRPC}
        for _ in range(ROUNDS):
            for how in GRPC:
                whole_s[how].append(whole[how].apply(_full_cpu, (core, orders)))
                bare_s[how].append(bare[how].apply(_bare_cpu, (core, letters)))
    print("CPU for a decision, full referee to bare stream (wanted: at most 1.5)")
    for how in GRPC:
        _show(how, whole_s[how], bare_s[how], 1e6, "us")
    _show(
        "the referee, a bare stream with default gRPC",
        whole_s[SET],
        bare_s[DEFAULT],
        1e6,
        "us",
    )


def _show(
    what: str, whole: Sequence[float], bare: Sequence[float], scale: float, unit: str
) -> None:
    ratio = statistics.median(one / other for one, other in zip(whole, bare, strict=True))
    one, other = (statistics.median(each) * scale for each in (whole, bare))
    print(f"  {what}: {one:.0f} to {other:.0f} {unit}, ratio {ratio:.2f}")


async def _full_rate(cores: Sequence[int]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        each = [settings(Path(folder), frozenset({core})) for core in cores]
        workers = Workers(each, on_worker_lost=print)
        async with contextlib.aclosing(workers):
            for first in (True, False):  # the first pass starts workers and bots
                began = time.perf_counter()
                played = await asyncio.gather(
                    *(
                        workers.submit(
                            worker, Assignment(worker, ((order(1000 * worker + number),),))
                        )
                        for worker in range(len(cores))
                        for number in range(2 if first else GAMES)
                    )
                )
                wall = time.perf_counter() - began
    decisions = sum(len(record.moves) for records in played for record in records)
    return decisions / wall


def compare_rates(cores: Sequence[int]) -> None:
    letters = script([order(number) for number in range(GAMES)])
    whole: list[float] = []
    rates: dict[str, list[float]] = {how: [] for how in GRPC}
    with contextlib.ExitStack() as stack:
        bare = {how: stack.enter_context(processes(len(cores), GRPC[how])) for how in GRPC}
        for _ in range(3):
            whole.append(uvloop.run(_full_rate(cores)))
            for how in GRPC:
                at_once = bare[how].starmap(_bare_rate, [(core, letters) for core in cores], 1)
                rates[how].append(sum(at_once))
    print(f"decisions/s on {len(cores)} cores, full referee to bare streams (wanted: at least 0.7)")
    _show(SET, whole, rates[SET], 1, "a second")
    _show("the referee, bare streams with default gRPC", whole, rates[DEFAULT], 1, "a second")


if __name__ == "__main__":
    available = sorted(os.sched_getaffinity(0))
    compare_cpu(available[0])
    compare_rates(available)
