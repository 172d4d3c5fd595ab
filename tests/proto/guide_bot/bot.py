"""Play as the pseudocode in section 16 of `proto/README.md` does: with a gRPC client and stubs, without the SDK."""

import os
import queue
import sys

import grpc

from referee.pb import play_pb2, table_pb2


def decide(request):
    if request.kind == table_pb2.DECISION_KIND_PLAY:
        plain = [action for action in request.legal if action.play.jokers == 0]
        return plain[-1] if plain else request.legal[0]
    if request.kind == table_pb2.DECISION_KIND_TAKE_OR_LEAVE:
        return table_pb2.Action(choice=table_pb2.CHOICE_LEAVE)
    if request.kind == table_pb2.DECISION_KIND_RECLAIM_OR_DISCARD:
        return table_pb2.Action(choice=table_pb2.CHOICE_DISCARD)
    return request.legal[0]


def converse(channel, token):
    outgoing = queue.SimpleQueue()
    stream = channel.stream_stream(
        "/linko.v1.RefereeService/Play",
        request_serializer=play_pb2.BotMessage.SerializeToString,
        response_deserializer=play_pb2.RefereeMessage.FromString,
    )(iter(outgoing.get, None))
    hello = play_pb2.Hello(protocol_version=1, token=token, name="high", max_games=1)
    outgoing.put(play_pb2.BotMessage(hello=hello))
    games = set()
    for message in stream:
        answer = play_pb2.BotMessage()
        for start in message.game_starts:
            games.add(start.game_id)
            answer.ready.add(game_id=start.game_id)
        for request in message.requests:
            answer.replies.add(
                game_id=request.game_id, decision_id=request.decision_id, action=decide(request)
            )
        for end in message.game_ends:
            games.remove(end.game_id)
        if answer.ready or answer.replies:
            outgoing.put(answer)
        if message.HasField("goodbye"):
            sys.stderr.write(message.goodbye.reason)
            outgoing.put(None)
            return 0
    return 3


def main():
    address, token = os.environ.get("REFEREE_ADDRESS"), os.environ.get("REFEREE_TOKEN")
    if address is None or token is None:
        sys.stderr.write("a bot: start it with `referee play`\n")
        return 2
    with grpc.insecure_channel(address) as channel:
        return converse(channel, token)


if __name__ == "__main__":
    sys.exit(main())
