"""A clock that tests move, and a stream whose other end is the test."""

import asyncio

import grpc

from referee.bots.clock import Clock


class FakeTime:
    """Time that passes only in `pass_us`. A timer whose time lies within a step is called late, at its end."""

    def __init__(self):
        self.now_ns = 1_000_000_000
        self.early_us = 0
        """How many microseconds too early each timer is called. uvloop's timers may be 1 ms early."""
        self.timers = []
        self.armed = 0
        """How many timers have been created."""
        self.clock = Clock(lambda: self.now_ns, self._call_later)

    def _call_later(self, delay_s, call, *args):
        timer = FakeTimer(self.now_ns + round(delay_s * 1e9), call, args)
        self.timers.append(timer)
        self.armed += 1
        return timer

    def pass_us(self, us):
        """Let time pass in one step, then call all timers that are due."""
        self.now_ns += us * 1000
        until_ns = self.now_ns + self.early_us * 1000
        due = [timer for timer in self.timers if timer.due_ns <= until_ns]
        self.timers = [timer for timer in self.timers if timer not in due]
        for timer in due:
            if not timer.cancelled:
                timer.call(*timer.args)

    def creep_us(self, us, step_us=500):
        """Let time pass in small steps, so that no timer is late."""
        for _ in range(us // step_us):
            self.pass_us(step_us)


class FakeTimer:
    def __init__(self, due_ns, call, args):
        self.due_ns, self.call, self.args = due_ns, call, args
        self.cancelled = False

    def cancel(self):
        self.cancelled = True


class FakeStream:
    """The referee's end of a stream. It reads the messages that were passed to `say`, and keeps what is written."""

    def __init__(self):
        self.said = asyncio.Queue()
        """The messages of the bot that the referee has not read yet."""
        self.written = []
        """The messages of the referee."""
        self.writable = asyncio.Event()
        """Cleared while the bot does not read its stream."""
        self.writable.set()

    def say(self, message):
        self.said.put_nowait(
            message if isinstance(message, bytes | Exception) else message.SerializeToString()
        )

    def hang_up(self):
        self.said.put_nowait(grpc.aio.EOF)

    async def read(self):
        message = await self.said.get()
        if isinstance(message, Exception):
            raise message
        return message

    async def write(self, data):
        self.written.append(data)
        await self.writable.wait()

    async def abort(self, code, details):
        raise grpc.aio.AbortError(code, details)
