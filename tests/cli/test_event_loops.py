"""A signal while an event loop starts, runs or closes cancels its coroutine and leaves a closed loop."""

from __future__ import annotations

import asyncio
import signal

import pytest

from referee.cli.interrupts import Interrupts, run_loop


@pytest.fixture
def interrupt_at(monkeypatch):
    """Return a function that lets each call of a method of `asyncio.Runner` begin with a signal."""

    def send(method, number):
        original = getattr(asyncio.Runner, method)

        def method_with_signal(runner, *arguments, **words):
            signal.raise_signal(number)
            return original(runner, *arguments, **words)

        monkeypatch.setattr(asyncio.Runner, method, method_with_signal)

    return send


@pytest.fixture(autouse=True)
def _own_handlers():
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt, as commands do, and restore the handlers of pytest."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


async def give_loop(loops):
    loops.append(asyncio.get_running_loop())
    await asyncio.sleep(0)
    return len(loops)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("method", ["run", "close"])
def test_signal_while_the_loop_starts_or_closes_leaves_it_closed(interrupt_at, method, number):
    loops = []
    interrupt_at(method, number)
    with pytest.raises(KeyboardInterrupt):
        run_loop(give_loop(loops))
    [loop] = loops
    assert loop.is_closed()


def test_signal_while_the_loop_runs_cancels_the_coroutine():
    was_cancelled = False

    async def work():
        nonlocal was_cancelled
        signal.raise_signal(signal.SIGTERM)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            was_cancelled = True
            raise

    with pytest.raises(KeyboardInterrupt):
        run_loop(work())
    assert was_cancelled


def test_coroutine_that_is_cancelled_without_a_signal_is_no_interrupt():
    async def work():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run_loop(work())


def test_handlers_are_restored_after_the_loop():
    before = signal.getsignal(signal.SIGTERM)
    assert run_loop(give_loop([])) == 1
    assert signal.getsignal(signal.SIGTERM) is before


def test_signal_before_the_loop_cancels_the_coroutine():
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            interrupts.run_loop(asyncio.sleep(60))
