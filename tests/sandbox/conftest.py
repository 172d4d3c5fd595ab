"""Tests of this folder run on the event loop that workers have."""

import uvloop


def pytest_asyncio_loop_factories():
    return {"uvloop": uvloop.new_event_loop}
