"""A bot that replies at once with the first legal action, straight from the message."""

from __future__ import annotations

import asyncio
import os

import grpc

from referee.pb import play_pb2


async def main() -> None:
    async with grpc.aio.insecure_channel(os.environ["REFEREE_ADDRESS"]) as channel:
        call = channel.stream_stream("/linko.v1.RefereeService/Play")()
        hello = play_pb2.Hello(
            protocol_version=1, token=os.environ["REFEREE_TOKEN"], name="echo", max_games=64
        )
        await call.write(play_pb2.BotMessage(hello=hello).SerializeToString())
        while (data := await call.read()) is not grpc.aio.EOF:
            message = play_pb2.RefereeMessage.FromString(data)
            answer = play_pb2.BotMessage()
            for start in message.game_starts:
                answer.ready.add(game_id=start.game_id)
            for request in message.requests:
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


if __name__ == "__main__":
    asyncio.run(main())
