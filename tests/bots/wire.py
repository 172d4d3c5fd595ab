"""Strategies of hypothesis for the bytes of a bot: valid, damaged and arbitrary messages in HTTP/2 frames."""

from __future__ import annotations

from hypothesis import strategies as st

from referee.pb import play_pb2, table_pb2

TOKEN, GAME = "own", "game"
NUMBERS = range(1, 4)
"""The numbers of the decisions that the bot is asked for."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_HEADERS = 4


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return one HTTP/2 frame."""
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
    )


def field(name: str, value: str) -> bytes:
    """Return a header as a literal field without indexing (RFC 7541, 6.2.2)."""
    return b"\0" + b"".join(bytes((len(text),)) + text.encode() for text in (name, value))


OPENING = frame(SETTINGS, 0, 0, b"") + frame(
    HEADERS,
    END_HEADERS,
    1,
    b"".join(
        field(*each)
        for each in (
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/linko.v1.RefereeService/Play"),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        )
    ),
)
"""The settings frame, and the headers that open stream 1."""


def message(data: bytes, length: int | None = None) -> bytes:
    """Return a gRPC message on stream 1. `length` is the length in its prefix; None for the true one."""
    prefix = bytes(1) + (len(data) if length is None else length).to_bytes(4, "big")
    whole = prefix + data
    parts = [whole[at : at + (1 << 14)] for at in range(0, len(whole), 1 << 14)]
    return b"".join(frame(DATA, 0, 1, part) for part in parts)


def hello(**more: object) -> bytes:
    """Return a valid hello, with the fields in `more` changed."""
    said = play_pb2.Hello(protocol_version=1, token=TOKEN, max_games=1)
    said.MergeFrom(play_pb2.Hello(**more))
    return play_pb2.BotMessage(hello=said).SerializeToString()


GAMES = st.sampled_from((GAME, "other", ""))
ACTIONS = st.builds(
    table_pb2.Action.FromString,
    st.sampled_from(
        [
            table_pb2.Action(choice=table_pb2.CHOICE_LEAVE).SerializeToString(),
            table_pb2.Action(draw_display={"slot": 9}).SerializeToString(),
            table_pb2.Action(play={"value": 3, "naturals": 1}).SerializeToString(),
            b"",
        ]
    ),
)
MESSAGES = st.builds(
    play_pb2.BotMessage,
    hello=st.none() | st.builds(play_pb2.Hello, protocol_version=st.integers(0, 3)),
    ready=st.lists(st.builds(play_pb2.Ready, game_id=GAMES), max_size=3),
    replies=st.lists(
        st.builds(
            play_pb2.Reply, game_id=GAMES, decision_id=st.integers(0, 5), action=st.none() | ACTIONS
        ),
        max_size=3,
    ),
).map(play_pb2.BotMessage.SerializeToString)
"""Valid messages. Most of them are not replies to a pending request."""


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw a valid message, change some of its bytes and cut it off somewhere."""
    data = bytearray(draw(MESSAGES))
    for at in draw(st.lists(st.integers(0, max(0, len(data) - 1)), max_size=3)):
        data[at : at + 1] = bytes((draw(st.integers(0, 255)),))
    return bytes(data[: draw(st.integers(0, len(data)))])


ANYTHING = MESSAGES | damaged() | st.binary(max_size=300)
"""Any bytes as the content of a message: valid, damaged or arbitrary."""
FRAMES = (
    ANYTHING.map(message)
    | st.builds(message, st.binary(max_size=50), st.integers(0, 2**32 - 1))
    | st.builds(
        frame,
        st.integers(0, 12),
        st.integers(0, 255),
        st.integers(0, 5) | st.just(2**31 - 1),
        st.binary(max_size=200),
    )
    | st.binary(max_size=200)
)
"""Any bytes on the socket: a framed message, a message with a wrong length, any frame, or noise."""
