"""A decision is at most twelve calls from the start of the command line, and passes at most twelve modules."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ProcessPoolExecutor

import call_chain
import pytest
from pages import table
from real_runs import place

from referee.tournament import worker

pytestmark = pytest.mark.extended("counts the calls of a run")

MAX_CALLS = 12
MAX_MODULES = 12


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Play a tournament; return the functions on the way to its first decision, and the modules of each decision."""
    folder = tmp_path_factory.mktemp("calls")
    driver_calls = []
    submit, new_event_loop = ProcessPoolExecutor.submit, asyncio.events.new_event_loop

    def submit_measured(executor, function, *arguments):
        if function is worker.play_games and not driver_calls:  # the first game
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
    return driver_calls + in_worker["chain"], in_worker["modules"]


def test_a_decision_is_at_most_twelve_calls_from_the_entry_point(measured):
    chain, _ = measured
    assert chain[0] == "cli/app:run"
    assert chain[-1] == "bots/player:BotPlayer.decide"
    assert len(chain) - 1 <= MAX_CALLS, "\n".join(chain)


def test_no_two_functions_on_the_way_have_the_same_name(measured):
    chain, _ = measured
    functions = [call.rpartition(":")[2].rpartition(".")[2] for call in chain[1:]]
    assert len(set(functions)) == len(functions), "\n".join(chain)


def test_map_of_the_code_lists_these_calls(measured):
    chain, _ = measured
    rows = table("referee/README.md", "From the command to a decision")
    listed = [re.fullmatch(r"`(\w+)` in `([\w/]+)\.py`", row[0]).groups() for row in rows]
    calls = [call.rpartition(":") for call in chain[1:]]
    assert listed == [(function.rpartition(".")[2], module) for module, _, function in calls]


def test_a_decision_passes_at_most_twelve_modules(measured):
    _, modules = measured
    assert len(modules) == call_chain.DECISIONS
    for names in modules:
        assert len(names) <= MAX_MODULES, "\n".join(names)
