"""Keep the end of what a program prints.

Standard output and standard error are always drained, so that no program waits for a full pipe. Only the last
bytes are kept. Text for people has its control characters escaped, so that it cannot command a terminal.
"""

from __future__ import annotations

import asyncio

DEFAULT_KEPT_BYTES = 1 << 20
"""How many bytes of an output are kept if the caller does not say."""
_CHUNK_BYTES = 1 << 16


class Output:
    """One output of a process. At most twice the kept bytes are in memory.

    Args:
        kept_bytes: how many bytes from the end are kept.
    """

    def __init__(self, kept_bytes: int = DEFAULT_KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._bytes = bytearray()
        self.total = 0
        """How many bytes the process has written."""

    async def drain(self, pipe: asyncio.StreamReader) -> None:
        """Read a pipe to its end. Run this as a task, and cancel the task when the process is gone."""
        while chunk := await pipe.read(_CHUNK_BYTES):
            self.add(chunk)
            await asyncio.sleep(0)  # a pipe that is never empty would block the event loop

    def add(self, chunk: bytes) -> None:
        """Append a chunk and drop the oldest bytes if there are too many."""
        self._bytes += chunk
        self.total += len(chunk)
        if len(self._bytes) > 2 * self._kept_bytes:
            del self._bytes[: -self._kept_bytes]

    def last_bytes(self) -> bytes:
        """Return the kept bytes."""
        return bytes(self._bytes[-self._kept_bytes :])

    def tail(self, size: int) -> str:
        """Return the last `size` bytes as printable text, with control characters escaped."""
        text = self._bytes[-size:].decode("utf-8", "backslashreplace")
        return "".join(
            char if char.isprintable() or char in "\n\t" else _escape(char) for char in text
        )


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
