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
import time
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


class OutputThreads:
    """The threads of this process that read outputs, and the CPU time that they have used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.native_ids: set[int] = set()
        """The ids of the threads that run now, as in /proc/self/task."""
        self.cpu_ns = 0
        """The CPU time of all threads until now, also of those that have ended, in ns. The current chunk of a thread is missing."""

    def count(self, cpu_ns: int) -> None:
        """Add CPU time of the current thread."""
        with self._lock:
            self.cpu_ns += cpu_ns


OUTPUT_THREADS = OutputThreads()


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
        native_id = threading.get_native_id()
        OUTPUT_THREADS.native_ids.add(native_id)
        # in this thread, because `close` can wait for the lock of the pipe
        os.close(self.writing_end)
        with suppress(RuntimeError):  # the event loop is closed
            counted_ns = 0
            with open(self._reading_end, "rb", buffering=0) as pipe:  # noqa: PTH123 - a descriptor
                while chunk := pipe.read(_CHUNK_BYTES):
                    self._loop.call_soon_threadsafe(self._feed, chunk)
                    used_ns = time.thread_time_ns()
                    OUTPUT_THREADS.count(used_ns - counted_ns)
                    counted_ns = used_ns
                    self._wanted.acquire()
            # only now, so that whoever sees the end finds the pipe closed
            self._loop.call_soon_threadsafe(self.reader.feed_eof)
        OUTPUT_THREADS.native_ids.discard(native_id)

    def _feed(self, chunk: bytes) -> None:
        """Pass a chunk to the reader, in the event loop."""
        self.reader.feed_data(chunk)
        if not self._is_paused:
            self._wanted.release()
