"""A bot that replies with the first legal action after an exact time: `timely_bot.py MS`.

With `1` it replies 1 ms after the request, with `+5` 5 ms after the limit of the decision.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

import grpc

from referee.pb import play_pb2


async def main(when: str) -> None:
    async with grpc.aio.insecure_channel(os.environ["REFEREE_ADDRESS"]) as channel:
        call = channel.stream_stream("/linko.v1.RefereeService/Play")()
        hello = play_pb2.Hello(protocol_version=1, token=os.environ["REFEREE_TOKEN"], name="timely")
        await call.write(play_pb2.BotMessage(hello=hello).SerializeToString())
        while (data := await call.read()) is not grpc.aio.EOF:
            asked_ns = time.monotonic_ns()
            message = play_pb2.RefereeMessage.FromString(data)
            answer = play_pb2.BotMessage()
            for start in message.game_starts:
                answer.ready.add(game_id=start.game_id)
            for request in message.requests:
                limit_ns = request.time_left_us * 1000 if when.startswith("+") else 0
                sleep_until(asked_ns + limit_ns + round(float(when) * 1e6))
                answer.replies.add(
                    game_id=request.game_id,
                    decision_id=request.decision_id,
                    action=request.legal[0],
                )
            if message.HasField("goodbye"):
                await call.done_writing()
                return
            if answer.ready or answer.replies:
                await call.write(answer.SerializeToString())


def sleep_until(when_ns: int) -> None:
    while (left_ns := when_ns - time.monotonic_ns()) > 0:
        time.sleep(left_ns / 1e9)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
