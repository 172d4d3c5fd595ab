"""Write what bots print, and the messages of their streams, to files for people who look for a mistake.

The folder that the user names gets a folder for each game, and in it two files for each bot:

    BOT.log      standard output and standard error in the order in which they came, with control characters escaped;
                 missing if the bot has printed nothing
    BOT.jsonl    the messages, one JSON value in each line; only with `LogSettings.messages`

What a process prints before its first game is in the file of that game. Later, what it prints while it plays no game
is in the file of the game that ended last. If a process plays several games at once, what it prints is in the files
of all of them. The output of a process that has played no game is in the folder `start-up`.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from google.protobuf.json_format import MessageToDict

from referee.bots import BotSpec
from referee.bots.inbox import MESSAGE_LIMIT
from referee.bots.server import Stream
from referee.pb import play_pb2
from referee.protocol import messages
from referee.sandbox.launcher import printable

START_UP = "start-up"
"""The folder for the files of a process that has played no game."""
_MESSAGES_KIB = 64 << 10
"""The limit of a file with messages."""
_UNSAFE = re.compile(r"[^\w.@+#-]+", re.ASCII)
_TOKEN = "(left out)"  # noqa: S105 - replaces the token, with which another program could play as this bot
Message = play_pb2.BotMessage | play_pb2.RefereeMessage


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Where the logs of bots go."""

    folder: Path
    """The folder that gets a folder for each game. An absolute path, because workers may have another working directory."""
    messages: bool = False
    """Whether to write the messages too."""
    errors: list[str] = field(default_factory=list, compare=False)
    """Why logs are incomplete: one reason for each bot process whose log could not be written. Each worker process has its own list."""

    def open(self, spec: BotSpec) -> BotLog:
        """Return the log of a new process of a bot."""
        return BotLog(self, spec)


class BotLog:
    """The files of one bot process. If a write fails, for example because the disk is full, the log of the process ends.

    Args:
        settings: where the files are, and whether there are files with messages.
        spec: the bot. Its limit of output is the limit for each file with output.
    """

    def __init__(self, settings: LogSettings, spec: BotSpec) -> None:
        self._settings = settings
        self._file = _UNSAFE.sub("_", str(spec.bot))
        self._limits = {".log": spec.limits.output_kib << 10, ".jsonl": _MESSAGES_KIB << 10}
        self._left: dict[Path, int] = {}
        """How many bytes each file may still get. A number below 0 means that the file was cut, and ends with a note."""
        self._early: list[tuple[str, str]] = []
        """What was logged before the first game: each text with the suffix of its file."""
        self._early_size = 0
        """How many characters of output are in `_early`."""
        self._games: dict[str, str] = {}
        """The folder of each game that the process has played or plays, by the id that the bot sees."""
        self._playing: dict[str, str] = {}
        """The games among these that are played now."""
        self._last = START_UP
        """The folder of the game that ended last; before that, the folder for processes without a game."""
        self._is_broken = False

    def begin(self, game_id: str, name: str) -> None:
        """Note that a game begins. Its files replace those of an earlier attempt to play it.

        Args:
            game_id: the id that the bot sees.
            name: the name of the folder. Characters that do not fit into a name of a file are replaced.
        """
        folder = _UNSAFE.sub("_", name)
        self._games[game_id] = self._playing[game_id] = folder
        for path in (self._path(folder, ending) for ending in self._limits):
            self._left.pop(path, None)
            with suppress(OSError):
                path.unlink(missing_ok=True)
        self._write_early(folder)

    def end(self, game_id: str) -> None:
        """Note that a game is over."""
        self._last = self._playing.pop(game_id)

    def close(self) -> None:
        """Write what the process has printed, if it has played no game."""
        self._write_early(START_UP)

    def _write_early(self, folder: str) -> None:
        early, self._early = self._early, []
        for ending, text in early:
            self._write(folder, ending, text)

    def make_writer(self) -> Callable[[bytes], None]:
        """Return a function that adds chunks of one output of the process. Control characters are escaped."""
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

        def write(chunk: bytes) -> None:
            if self._is_full():
                return  # a bot that prints without end must not cost the time of others
            text = printable(decoder.decode(chunk))
            if not self._games:
                # one character more than the file may get, so that `_cut` adds its note
                text = text[: self._limits[".log"] + 1 - self._early_size]
                self._early_size += len(text)
            self._add("", ".log", text)

        return write

    def _is_full(self) -> bool:
        """Return whether new output would be lost, because each current file is full or a write has failed."""
        if not self._games:
            return self._early_size > self._limits[".log"]
        paths = (self._path(folder, ".log") for folder in self._current_folders())
        return self._is_broken or all(self._left.get(path, 0) < 0 for path in paths)

    def _current_folders(self) -> Collection[str]:
        """Return the folders of the games that are played now. If there are none, return only `_last`."""
        return self._playing.values() or (self._last,)

    def wrap(self, stream: Stream) -> Stream:
        """Return a stream that also writes its messages to the log; without `LogSettings.messages`, return `stream` itself."""
        return cast("Stream", _LoggedStream(stream, self)) if self._settings.messages else stream

    def add_message(self, sender: str, message: Message | bytes) -> None:
        """Write a message: one line for each known game in it, and one line for what belongs to no known game.

        `bytes` are a message that is unreadable or too large. The first `MESSAGE_LIMIT` of them are written as hexadecimal
        digits. The sender is `bot` or `referee`.
        """
        parts: Mapping[str, Any]
        if isinstance(message, bytes):
            parts = {"": {"bytes": message[:MESSAGE_LIMIT].hex()}}
        else:
            parts = {
                game_id: {"message": MessageToDict(part, preserving_proto_field_name=True)}
                for game_id, part in _split(message, self._games)
            }
        for game_id, content in parts.items():
            line = {"at_us": time.time_ns() // 1000, "from": sender, **content}
            self._add(game_id, ".jsonl", json.dumps(line) + "\n")

    def _add(self, game_id: str, ending: str, text: str) -> None:
        """Add a text to a file of a game, or of all current games if it belongs to no known game."""
        if not text:
            return
        if game_id in self._games:
            self._write(self._games[game_id], ending, text)
        elif not self._games:
            self._early.append((ending, text))
        else:
            for folder in self._current_folders():
                self._write(folder, ending, text)

    def _path(self, folder: str, ending: str) -> Path:
        return self._settings.folder / folder / f"{self._file}{ending}"

    def _write(self, folder: str, ending: str, text: str) -> None:
        if self._is_broken:
            return
        path = self._path(folder, ending)
        text = self._cut(path, text)
        if not text:
            return
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(
                path, "a", encoding="utf-8", errors="backslashreplace", opener=_open_privately
            ) as file:
                file.write(text)
        except OSError as error:
            self._is_broken = True
            self._settings.errors.append(f"{path}: {error.strerror}")
            if path.suffix == ".jsonl":
                with suppress(OSError):
                    _remove_unfinished_line(path)

    def _cut(self, path: Path, text: str) -> str:
        """Return the part of a text that a file may still get.

        The first text that does not fit is cut, and a note follows. In a file with messages, the note replaces this text.
        """
        limit = self._limits[path.suffix]
        left = self._left.get(path, limit)
        if left < 0:
            return ""
        data = text.encode(errors="backslashreplace")
        self._left[path] = left - len(data)
        if len(data) <= left:
            return text
        note = f"more than {limit >> 10} KiB: the rest is left out"
        if path.suffix == ".jsonl":
            return json.dumps({"note": note}) + "\n"  # every line stays JSON
        return f"{data[:left].decode(errors='ignore')}\n({note})\n"


def _remove_unfinished_line(path: Path) -> None:
    """Remove the end of a file after its last line break."""
    os.truncate(path, path.read_bytes().rfind(b"\n") + 1)


def _open_privately(path: str, flags: int) -> int:
    """Open a file that other users cannot read, because a bot with a user id of its own could see the cards of others in it."""
    return os.open(path, flags, 0o600)


class _LoggedStream:
    """A stream whose messages are written to a log. All attributes except `read` and `write` are those of the stream.

    The position of a line is decided when `read` returns a message of the bot, or when `write` is called with a message of
    the referee. So a request stands before its reply. A line is written in the next iteration of the event loop, so the time of
    a reply is measured before its line is written. The line of a request is written while the bot's clock runs, and costs
    the bot a fraction of a millisecond.
    """

    def __init__(self, stream: Stream, log: BotLog) -> None:
        self._stream = stream
        self._log = log

    async def read(self) -> Any:
        """Read a message of the bot."""
        data = await self._stream.read()
        if isinstance(data, bytes):
            self._log_soon("bot", _parse_bot_message, data)
        return data

    async def write(self, data: bytes) -> None:
        """Write a message to the bot."""
        # log it before the wait, because the bot may reply before gRPC reports that the message is written
        self._log_soon("referee", play_pb2.RefereeMessage.FromString, data)
        await self._stream.write(data)

    def _log_soon(
        self, sender: str, parse: Callable[[bytes], Message | bytes], data: bytes
    ) -> None:
        def log() -> None:
            self._log.add_message(sender, parse(data))

        asyncio.get_running_loop().call_soon(log)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _parse_bot_message(data: bytes) -> play_pb2.BotMessage | bytes:
    if len(data) > MESSAGE_LIMIT:
        return data
    try:
        message = messages.parse_bot_message(data)
    except ValueError:
        return data
    if message.hello.token:
        message.hello.token = _TOKEN
    return message


def _split(message: Message, games: Container[str]) -> Iterator[tuple[str, Message]]:
    """Split a message into one part for each of the `games` in it and, if anything is left, one part for the rest.

    Each part comes with the id of its game; the rest has an empty id. An empty message is yielded whole, with an empty id.
    """
    parts: defaultdict[str, Message] = defaultdict(type(message))
    for descriptor, value in message.ListFields():
        if isinstance(value, (play_pb2.Hello, play_pb2.Goodbye)):
            getattr(parts[""], descriptor.name).CopyFrom(value)
            continue
        for item in value:
            game_id = item.game_id if item.game_id in games else ""
            getattr(parts[game_id], descriptor.name).append(item)
    yield from parts.items() or [("", message)]
