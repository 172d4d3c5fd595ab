"""Run the tests of this folder on uvloop, the event loop of the workers."""

import uvloop


def pytest_asyncio_loop_factories():
    return {"uvloop": uvloop.new_event_loop}
