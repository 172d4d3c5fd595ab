"""A game is a few calls away from the command that plays it, and a decision passes few modules."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ProcessPoolExecutor

import call_chain
import pytest
from real_runs import place

from referee.tournament import worker

MAX_CALLS = 12
MAX_MODULES = 12


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Measure a tournament: the calls of driver and worker, and the modules of each decision."""
    folder = tmp_path_factory.mktemp("calls")
    driver_calls = []
    submit, new_event_loop = ProcessPoolExecutor.submit, asyncio.events.new_event_loop

    def submit_measured(executor, function, *arguments):
        if function is worker.play_games and not driver_calls:
            driver_calls.extend(call_chain.list_calls())
        return submit(executor, function, *arguments)

    with pytest.MonkeyPatch.context() as patch, place(folder) as here:
        patch.setenv(call_chain.FILE, str(folder / "calls.json"))
        patch.setattr(worker, "initialize_worker", call_chain.initialize_measured_worker)
        patch.setattr(ProcessPoolExecutor, "submit", submit_measured)
        patch.setattr(
            asyncio.events, "new_event_loop", lambda: call_chain.follow_tasks(new_event_loop())
        )
        done = here.referee("tournament", "run", here.tournament(matches=1))
        assert done.returncode == 0, done.stderr
    in_worker = json.loads((folder / "calls.json").read_text())
    command = driver_calls.index("cli/run:run")
    return driver_calls[command:], in_worker["chain"], in_worker["modules"]


def test_a_decision_is_at_most_twelve_calls_from_the_command(measured):
    driver_calls, worker_calls, _ = measured
    chain = driver_calls + worker_calls
    assert len(chain) <= MAX_CALLS, "\n".join(chain)
    functions = [call.rpartition(":")[2].rpartition(".")[2] for call in chain]
    assert len(set(functions)) == len(functions), "two levels have the same name"


def test_a_decision_passes_at_most_twelve_modules(measured):
    *_, modules = measured
    for names in modules:
        assert len(names) <= MAX_MODULES, "\n".join(names)
