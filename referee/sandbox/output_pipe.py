"""Read an output of an untrusted program from a pipe, so that the program cannot block the event loop.

A program could block the referee in two ways while the referee reads the program's output:

- If the output came through a UNIX socket, the program could send file descriptors too, and the kernel would close them in
  the referee. If one of them is a TCP socket with the option SO_LINGER, that can take as long as the program has
  chosen. So the output goes through a pipe, which carries no descriptors.
- If a program calls `splice` or `sendfile` from an empty socket into a pipe, the call waits for data, and meanwhile holds the
  lock of the pipe. Then each call that reads or closes the pipe waits too, even in non-blocking mode. That can last until the
  program is killed. So each pipe has a thread of its own, and nothing else reads or closes the pipe.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

_CHUNK_BYTES = 1 << 16
"""The most bytes that are read at once; as many as a pipe holds."""
_PAUSE_S = 0.001
"""Seconds to wait after each chunk, so that a program that prints without end takes little CPU time from other threads and
programs."""


@contextmanager
def open_output() -> Iterator[tuple[int, asyncio.StreamReader]]:
    """Open the pipe for an output of a program. Yield the writing end for the program, and a reader of the output.

    Start the program inside the context. When the context ends, a thread closes the writing end of the pipe in this process, and
    begins to read.

    Raises OSError if no file descriptor or no thread is left.
    """
    reader = asyncio.StreamReader()
    pipe = _OutputPipe(reader)
    try:
        yield pipe.writing_end, reader
    finally:
        pipe.resume_reading()


class OutputThreads:
    """The threads of this process that read outputs, and the CPU time that they have used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.native_ids: set[int] = set()
        """The ids of the threads that run now, as in /proc/self/task."""
        self.cpu_ns = 0
        """The CPU time of all threads until now, also of those that have ended, in ns. Each thread adds its time after each chunk."""

    def add_cpu(self, cpu_ns: int) -> None:
        """Add CPU time of the current thread."""
        with self._lock:
            self.cpu_ns += cpu_ns


OUTPUT_THREADS = OutputThreads()


class _OutputPipe(asyncio.ReadTransport):
    """Reads a pipe in a thread, and passes the bytes to a `StreamReader`.

    Only the `StreamReader` keeps this object alive, because the thread has only a weak reference. The thread ends when the output
    ends or this process ends. If nobody uses the `StreamReader` any more, the thread ends at the next chunk.
    """

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__()
        reader.set_transport(self)
        self._reader_ref = weakref.ref(reader)
        self._is_paused = False
        self._wanted: SimpleQueue[None] = SimpleQueue()
        """Gets an item for each chunk that the thread may read. When nobody uses the reader any more, the callback of the weak reference
        below puts one more item, so that the thread wakes up, reads once more and ends. This callback can run in the middle of
        another `put`. Of Python's queues, only `SimpleQueue` allows that."""
        # the callback must not contain `self`: the thread holds the callback, so it would keep this object alive
        wanted = self._wanted
        feed_ref = weakref.WeakMethod(self._feed, lambda _: wanted.put(None))
        reading_end, self.writing_end = os.pipe()
        ends = reading_end, self.writing_end
        try:
            threading.Thread(
                target=_read_output,
                args=(*ends, wanted, feed_ref, asyncio.get_running_loop()),
                name="output",
                daemon=True,
            ).start()
        except RuntimeError as error:
            for end in ends:
                os.close(end)
            raise OSError(errno.EAGAIN, str(error)) from error

    def pause_reading(self) -> None:
        """See `asyncio.ReadTransport`; the reader calls this method in `feed_data`."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._is_paused = False
        self._wanted.put(None)

    def _feed(self, chunk: bytes) -> None:
        """Pass a chunk to the reader. Called in the event loop. An empty chunk means the end of the output."""
        reader = self._reader_ref()
        if reader is None:
            return
        if not chunk:
            reader.feed_eof()
            return
        reader.feed_data(chunk)
        if not self._is_paused:
            self._wanted.put(None)


def _read_output(
    reading_end: int,
    writing_end: int,
    wanted: SimpleQueue[None],
    feed_ref: weakref.WeakMethod[Callable[[bytes], None]],
    loop: asyncio.AbstractEventLoop,
) -> None:
    """Read an output until its end, or until nobody wants more. This is the thread of an `_OutputPipe`.

    It waits for an item of `wanted` before each chunk, so at most a few chunks are in memory.
    """
    wanted.get()
    native_id = threading.get_native_id()
    OUTPUT_THREADS.native_ids.add(native_id)
    # close it in this thread, because `close` can wait for the lock of the pipe
    os.close(writing_end)
    counted_ns = 0
    try:
        with open(reading_end, "rb", buffering=0) as pipe:
            while (chunk := pipe.read(_CHUNK_BYTES)) and (feed := feed_ref()):
                loop.call_soon_threadsafe(feed, chunk)
                del feed
                used_ns = time.thread_time_ns()
                OUTPUT_THREADS.add_cpu(used_ns - counted_ns)
                counted_ns = used_ns
                time.sleep(_PAUSE_S)
                wanted.get()
        # report the end only after the pipe is closed, so that nobody sees the end while the pipe is still open
        if feed := feed_ref():
            loop.call_soon_threadsafe(feed, b"")
    except RuntimeError:
        pass  # the event loop is closed
    finally:
        OUTPUT_THREADS.native_ids.discard(native_id)
