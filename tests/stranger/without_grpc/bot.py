"""A bot without any gRPC library, written from section 6 of the guide alone. It sends back the first legal action."""

import os
import socket
import struct
import sys

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8


def text(value):
    return bytes([len(value)]) + value


HEADER = (
    b"\x83\x86\x04"
    + text(b"/linko.v1.RefereeService/Play")
    + b"\x01"
    + text(b"localhost")
    + b"".join(
        b"\x00" + text(name) + text(value)
        for name, value in ((b"content-type", b"application/grpc"), (b"te", b"trailers"))
    )
)


def varint(number):
    more = b""
    while number > 127:
        more += bytes([number & 127 | 128])
        number >>= 7
    return more + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def read_varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return number, at


def fields(data):
    """Yield the number and the value of each field."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = read_varint(data, at)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def answer(message):
    """Return the reply to a message of the referee, and whether the message is the goodbye."""
    reply, goodbye = b"", False
    for number, value in fields(message):
        parts = dict(reversed(list(fields(value))))  # of a list, the first one
        if number == 1:
            reply += field(2, field(1, parts[1]))
        elif number == 2:
            reply += field(3, field(1, parts[1]) + field(2, parts[2]) + field(3, parts[6]))
        goodbye = goodbye or number == 4
    return reply, goodbye


def send_frame(connection, kind, flags, stream, content=b""):
    head = struct.pack(">I", len(content))[1:] + bytes([kind, flags])
    connection.sendall(head + struct.pack(">I", stream) + content)


def send_message(connection, message):
    send_frame(connection, DATA, 0, 1, b"\x00" + struct.pack(">I", len(message)) + message)


def messages(connection):
    """Yield each message of the referee until the stream ends."""
    incoming, waiting = connection.makefile("rb"), b""
    while head := incoming.read(9):
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        content = incoming.read(size)
        if kind in {RST_STREAM, GOAWAY} or (kind == HEADERS and flags & 1):
            return
        if kind in {SETTINGS, PING} and not flags & 1:
            send_frame(connection, kind, 1, 0, content if kind == PING else b"")
        if kind == DATA and content:
            for stream in (0, 1):
                send_frame(connection, WINDOW_UPDATE, 0, stream, struct.pack(">I", size))
            waiting += content
        while len(waiting) >= 5 and len(waiting) >= (
            end := 5 + int.from_bytes(waiting[1:5], "big")
        ):
            yield waiting[5:end]
            waiting = waiting[end:]


def main():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["REFEREE_ADDRESS"].removeprefix("unix:"))
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    send_frame(connection, SETTINGS, 0, 0)
    send_frame(connection, HEADERS, 4, 1, HEADER)
    token = os.environ["REFEREE_TOKEN"].encode()
    hello = field(1, 1) + field(2, token) + field(3, b"without gRPC") + field(4, 1)
    send_message(connection, field(1, hello))
    goodbye = False
    for message in messages(connection):
        reply, goodbye = answer(message)
        if reply:
            send_message(connection, reply)
        if goodbye:
            send_frame(connection, DATA, 1, 1)
    return 0 if goodbye else 3


if __name__ == "__main__":
    sys.exit(main())
