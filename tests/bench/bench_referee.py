"""Compare the full referee with bare streams that send the same bytes: `python tests/bench/bench_referee.py`.

One pinned worker on each core plays games of four bots that reply at once, with 1, 4, 16 and 64 games at the same time. As
many pinned bare streams send the same messages, one at a time. All of them run in turn, several times, and the bench prints
medians and ratios:

- decisions a second of all cores (wanted with 64 games: 5 times that of one game, 3.5 times that of the bare streams; wanted
  with one game and pondering: 0.7 times that of the bare streams);
- CPU time of the referee's process for a decision (wanted with 64 games: at most 40 us; wanted with one game and pondering:
  at most 70 us more than a bare stream);
- the mean size of a batch;
- the memory of the referee's process (wanted with 64 games: at most 1.2 times that with one).

The bots are made with the Python SDK. The last lines compare the CPU time of such a bot with that of `echo_bot.py`, which uses gRPC directly
(wanted: at most 1.3 times with one game, at most 1.5 times with 16).

With `--profile N`, it prints instead a profile of one worker with N games at the same time.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from referee import configure_process

configure_process()  # before anything imports gRPC

import bare_stream
import psutil
import uvloop
from bare_stream import Letter

from referee import deals
from referee.bots import BotSpec
from referee.clocks import Clocks, DecisionTime
from referee.match.play import GameSetup
from referee.protocol import messages
from referee.protocol.messages import RequestEncoder
from referee.records import BotId, Request
from referee.rules.events import Event, redact
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS
from referee.sandbox import NO_ISOLATION
from referee.tournament.assignments import GameTask, WorkerSettings
from referee.tournament.game_player import GamePlayer

RULES = RULESETS["basic"]
SEATS = 4
SEED = bytes(32)
GAMES = 64
ROUNDS = 5
IN_FLIGHT = (1, 4, 16, 64)
FOLDER = Path(__file__).resolve().parent
KIT, ECHO = "kit_bot.py", "echo_bot.py"


class Figures(NamedTuple):
    """What one worker, or one bare stream, has measured."""

    rate: float
    """Decisions a second."""
    cpu_us: float
    """CPU time of this process for a decision, in microseconds."""
    bot_us: float = 0.0
    """CPU time of all bots for a decision, in microseconds."""
    batch: float = 1.0
    """The mean number of requests in a message."""
    mib: float = 0.0
    """The memory of this process that no other process shares, in MiB."""


def list_bots(program: str) -> tuple[BotSpec, ...]:
    return tuple(
        BotSpec(BotId(f"bot{seat}", "1"), FOLDER, ("python3", program)) for seat in range(SEATS)
    )


def order(number: int, program: str = KIT) -> GameTask:
    name = f"bench-{number}"
    setup = GameSetup(
        game_id=name,
        ruleset=RULES,
        seating=tuple(spec.bot for spec in list_bots(program)),
        deck=deals.deck(SEED, name, RULES),
        clocks=Clocks(),
        max_strikes=3,
        isolation="none",
    )
    return GameTask(
        setup=setup,
        bots=list_bots(program),
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


async def play(
    core: int, in_flight: int, *, program: str = KIT, pondering: bool = False, profile: bool = False
) -> Figures:
    """Play `GAMES` games on a core, `in_flight` at a time, and measure."""
    orders = [order(number, program) for number in range(GAMES)]
    with tempfile.TemporaryDirectory() as folder:
        player = GamePlayer(
            WorkerSettings(
                cores=frozenset({core}),
                clocks=Clocks(),
                max_processes=32,
                isolation=NO_ISOLATION,
                folder=Path(folder),
                parent_pid=os.getpid(),
                pondering=pondering,
            )
        )
        warming = [order(GAMES + number, program) for number in range(4)]
        await player.play_all(0, warming)  # start the bots
        bots = psutil.Process().children()
        profiler = cProfile.Profile(time.process_time)
        began_s, spent_s, bots_s = time.perf_counter(), time.process_time(), cpu_s(bots)
        if profile:
            profiler.enable()
        sizes: list[int] = []
        for first in range(0, GAMES, in_flight):
            for record in await player.play_all(0, orders[first : first + in_flight]):
                assert not record.faults
                sizes += [move.batch_size for move in record.moves]
        profiler.disable()
        decisions = len(sizes)
        figures = Figures(
            decisions / (time.perf_counter() - began_s),
            (time.process_time() - spent_s) / decisions * 1e6,
            (cpu_s(bots) - bots_s) / decisions * 1e6,
            decisions / sum(1 / size for size in sizes),
            psutil.Process().memory_full_info().uss / 2**20,
        )
        await player.close()
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(45)
    return figures


def cpu_s(processes: Sequence[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


def run_full(core: int, in_flight: int, program: str, pondering: bool) -> Figures:
    os.sched_setaffinity(0, {core})
    return uvloop.run(play(core, in_flight, program=program, pondering=pondering))


def run_bare(core: int) -> Figures:
    letters = script([order(number) for number in range(12)])
    cpu_s, wall_s = bare_stream.run(letters, 3, {core})
    return Figures(1 / wall_s, cpu_s * 1e6)


def measure(cores: Sequence[int], function: object, *arguments: object) -> Figures:
    """Run a function on all cores at the same time, in new processes. Return the sum of the rates, and the means of all else."""
    with get_context("spawn").Pool(len(cores)) as pool:
        found = pool.starmap(function, [(core, *arguments) for core in cores], 1)
    rate, *others = (list(each) for each in zip(*found, strict=True))
    return Figures(sum(rate), *map(statistics.fmean, others))


def median(runs: Sequence[Figures]) -> Figures:
    return Figures(*map(statistics.median, zip(*runs, strict=True)))


def compare(cores: Sequence[int]) -> None:
    cases = {
        "bare streams": (run_bare,),
        "1, pondering": (run_full, 1, KIT, True),
        **{str(number): (run_full, number, KIT, False) for number in IN_FLIGHT},
        "1, echo_bot.py": (run_full, 1, ECHO, False),
        "16, echo_bot.py": (run_full, 16, ECHO, False),
    }
    runs: dict[str, list[Figures]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, case in cases.items():
            runs[name].append(measure(cores, *case))
    print(
        f"games at once     decisions/s on {len(cores)} cores     referee's CPU     batch    memory   a bot's CPU"
    )
    for name, found in runs.items():
        best = median(found)
        to_bare, to_one = (
            statistics.median(
                each.rate / other.rate for each, other in zip(found, runs[base], strict=True)
            )
            for base in ("bare streams", "1")
        )
        print(
            f"{name:<16} {best.rate:7.0f} ({to_bare:.2f} of bare, {to_one:.2f} of 1)"
            f" {best.cpu_us:8.0f} us {best.batch:8.1f} {best.mib:8.0f} MiB {best.bot_us:8.0f} us"
        )


if __name__ == "__main__":
    available = sorted(os.sched_getaffinity(0))
    if "--profile" in sys.argv:
        os.sched_setaffinity(0, {available[0]})
        uvloop.run(play(available[0], int(sys.argv[-1]), profile=True))
    else:
        compare(available)
