"""Read an output of an untrusted program from a pipe, so that the program cannot block the event loop.

A program can block the referee while it reads the program's output:

- Through a UNIX socket it can send file descriptors, and the kernel closes them in the reader. Closing a TCP socket with the
  option SO_LINGER takes as long as the program has chosen. So the output goes through a pipe, which carries no descriptors.
- A program that calls `splice` or `sendfile` from an empty socket into a pipe holds the lock of the pipe while it waits. Then
  each call that reads or closes the pipe waits too, even in non-blocking mode, until the program is killed. So each pipe has a
  thread of its own, and nothing else uses the pipe.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CHUNK_BYTES = 1 << 16


@contextmanager
def open_output() -> Iterator[tuple[int, asyncio.StreamReader]]:
    """Open the pipe for an output of a program. Yield the end for the program, and a reader of the output.

    Start the program inside the context. After the context only the program has the end, and the output is read.

    Raises OSError if no file descriptor or no thread is left.
    """
    pipe = _OutputPipe()
    try:
        yield pipe.writing_end, pipe.reader
    finally:
        pipe.resume_reading()


class _OutputPipe(asyncio.ReadTransport):
    """A pipe with a thread that passes what it reads to `reader`. The thread ends with the output, or with this process.

    After each chunk the thread waits for `resume_reading`, so at most a few chunks are in memory.
    """

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self.reader = asyncio.StreamReader()
        self.reader.set_transport(self)
        self._is_paused = False
        self._wanted = threading.Semaphore(0)
        self._reading_end, self.writing_end = os.pipe()
        try:
            threading.Thread(target=self._read, name="output", daemon=True).start()
        except RuntimeError as error:
            os.close(self._reading_end)
            os.close(self.writing_end)
            raise OSError(errno.EAGAIN, str(error)) from error

    def pause_reading(self) -> None:
        """See `asyncio.ReadTransport`; `reader` calls this method in `feed_data`."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._is_paused = False
        self._wanted.release()

    def _read(self) -> None:
        """Read the output to its end, in the thread."""
        self._wanted.acquire()
        # in this thread, because `close` can wait for the lock of the pipe
        os.close(self.writing_end)
        with (
            open(self._reading_end, "rb", buffering=0) as pipe,  # noqa: PTH123 - a descriptor
            suppress(RuntimeError),  # the event loop is closed
        ):
            while chunk := pipe.read(_CHUNK_BYTES):
                self._loop.call_soon_threadsafe(self._feed, chunk)
                self._wanted.acquire()
            self._loop.call_soon_threadsafe(self.reader.feed_eof)

    def _feed(self, chunk: bytes) -> None:
        """Pass a chunk to the reader, in the event loop."""
        self.reader.feed_data(chunk)
        if not self._is_paused:
            self._wanted.release()
