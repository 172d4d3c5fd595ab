"""Run the tests of this folder on the event loop that workers use."""

import sys
import textwrap

import process_groups
import pytest
import uvloop

from referee.sandbox.process_group import ProcessGroupLauncher


def pytest_asyncio_loop_factories():
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
async def only_own_processes():
    """Ignore processes of earlier tests, and kill those of this test if it fails."""
    process_groups.ignore_earlier_tests()
    yield
    process_groups.kill_descendants()


@pytest.fixture
async def launch(tmp_path):
    """Return a function that starts a program without isolation. Tests of other rungs override it."""
    launcher = ProcessGroupLauncher()
    programs = []

    async def launch(*command, environment=process_groups.ENVIRONMENT):
        programs.append(await launcher.launch(command, folder=tmp_path, environment=environment))
        return programs[-1]

    yield launch
    for program in programs:  # the event loop can be closed only after the end of their output
        await program.kill()
        await program.process.stdout.read()
        await program.process.stderr.read()


@pytest.fixture
def python(launch):
    """Return a function that starts a Python program with `launch`."""

    def python(program, **more):
        return launch(sys.executable, "-c", textwrap.dedent(program), **more)

    return python
