"""A bot of `bench_fair_clocks` and of tests that replies with the first legal action: `pondering_bot.py KIND`.

- `searcher` computes for 20 ms before each reply. At its end it prints how many ns of CPU time it has had, and how
  many ns have passed, in all of its decisions.
- `quiet` replies at once.
- `ponderer` replies at once, and has a child process that computes all the time.
- `disguised_ponderer` does the same. Its child process has another parent, and a session of its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

import grpc

from referee.pb import play_pb2

SEARCH_NS = 20_000_000


async def main(kind: str) -> None:
    if kind.endswith("ponderer"):
        compute_in_child(disguised=kind == "disguised_ponderer")
    cpu_ns = wall_ns = 0
    async with grpc.aio.insecure_channel(os.environ["REFEREE_ADDRESS"]) as channel:
        call = channel.stream_stream("/linko.v1.RefereeService/Play")()
        hello = play_pb2.Hello(
            protocol_version=1, token=os.environ["REFEREE_TOKEN"], name=kind, max_games=64
        )
        await call.write(play_pb2.BotMessage(hello=hello).SerializeToString())
        while (data := await call.read()) is not grpc.aio.EOF:
            message = play_pb2.RefereeMessage.FromString(data)
            answer = play_pb2.BotMessage()
            for start in message.game_starts:
                answer.ready.add(game_id=start.game_id)
            for request in message.requests:
                if kind == "searcher":
                    used_ns, passed_ns = search()
                    cpu_ns += used_ns
                    wall_ns += passed_ns
                answer.replies.add(
                    game_id=request.game_id,
                    decision_id=request.decision_id,
                    action=request.legal[0],
                )
            if message.HasField("goodbye"):
                print(cpu_ns, wall_ns, flush=True)
                await call.done_writing()
                return
            if answer.ready or answer.replies:
                await call.write(answer.SerializeToString())


def search() -> tuple[int, int]:
    """Compute for `SEARCH_NS` of real time. Return the CPU time of this thread and the real time, in ns."""
    cpu_ns, wall_ns = time.thread_time_ns(), time.monotonic_ns()
    while time.monotonic_ns() - wall_ns < SEARCH_NS:
        pass
    return time.thread_time_ns() - cpu_ns, time.monotonic_ns() - wall_ns


def compute_in_child(*, disguised: bool) -> None:
    """Start a process that computes until it is killed. Call this before gRPC starts threads."""
    if os.fork() == 0:
        if disguised:
            os.setsid()
            if os.fork():
                os._exit(0)
        while True:
            pass
    if disguised:
        os.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
