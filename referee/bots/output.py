"""What a bot prints: always drained, the end of it kept, shown without its power over a terminal."""

from __future__ import annotations

import asyncio

KEPT = 1 << 20
"""Bytes kept of an output, where nothing else is said."""
_CHUNK = 1 << 16


class Output:
    """One output of a process. Only its last bytes count; no more than twice that is held.

    Args:
        kept: how many.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._bytes = bytearray()
        self.total = 0
        """Bytes written so far."""

    async def drain(self, pipe: asyncio.StreamReader) -> None:
        """Read a pipe to its end; to be run as a task that is cancelled with the process.

        Lets everybody else run after each chunk: a pipe that is never empty would hold the loop.
        """
        while chunk := await pipe.read(_CHUNK):
            self.add(chunk)
            await asyncio.sleep(0)

    def add(self, chunk: bytes) -> None:
        """Keep a chunk, and forget what is too old."""
        self._bytes += chunk
        self.total += len(chunk)
        if len(self._bytes) > 2 * self._kept:
            del self._bytes[: -self._kept]

    def kept(self) -> bytes:
        """The last bytes, no more than are to be kept."""
        return bytes(self._bytes[-self._kept :])

    def tail(self, size: int) -> str:
        """The last `size` bytes as text that can be printed: control characters are shown, not obeyed."""
        text = self._bytes[-size:].decode("utf-8", "backslashreplace")
        return "".join(
            char if char.isprintable() or char in "\n\t" else _escaped(char) for char in text
        )


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
