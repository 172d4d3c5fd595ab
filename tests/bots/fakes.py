"""A clock that goes when told, and a stream that says what it is told."""

import asyncio

import grpc

from referee.bots.clock import Clock


class FakeTime:
    """Time that passes only in `pass_us`, with timers that are late when it passes in one go."""

    def __init__(self):
        self.now_ns = 1_000_000_000
        self.timers = []
        self.armed = 0
        self.clock = Clock(lambda: self.now_ns, self._call_later)

    def _call_later(self, delay_s, call, *args):
        timer = FakeTimer(self.now_ns + round(delay_s * 1e9), call, args)
        self.timers.append(timer)
        self.armed += 1
        return timer

    def pass_us(self, us):
        """Let time pass, then call all timers that are due by then."""
        self.now_ns += us * 1000
        due = [timer for timer in self.timers if timer.due_ns <= self.now_ns]
        self.timers = [timer for timer in self.timers if timer not in due]
        for timer in due:
            if not timer.cancelled:
                timer.call(*timer.args)

    def creep_us(self, us, step_us=500):
        """Let time pass in steps so small that no timer is late."""
        for _ in range(us // step_us):
            self.pass_us(step_us)


class FakeTimer:
    def __init__(self, due_ns, call, args):
        self.due_ns, self.call, self.args = due_ns, call, args
        self.cancelled = False

    def cancel(self):
        self.cancelled = True


class FakeStream:
    """The referee's end of a stream: what `say` was given is read, what is written is kept."""

    def __init__(self):
        self.said = asyncio.Queue()
        self.written = []
        self.writable = asyncio.Event()
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
