"""Measure how many functions of the project lead from the entry point to a decision, and the modules it passes.

- The functions are the frames on the stack whose code belongs to the project, lambdas and generators included. A
  task of asyncio has a stack of its own: the stack of the place that created the task is put in front of it. The
  stack of a worker process is put behind the stack of the driver's call that submitted the assignment.
- The modules of a decision are those with functions that run between one request and the next: the reply is
  awaited, decoded and applied, and the next request is made. The modules of `rules` count as one, because they
  are pure and stand behind the class `Game`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from weakref import WeakKeyDictionary

import referee
from referee.bots.player import BotPlayer
from referee.tournament import worker

PROJECT = Path(referee.__file__).parent
FILE = "REFEREE_CALL_CHAIN_FILE"
"""The environment variable with the path of the file that a worker writes its measurements to."""
DECISIONS = 12
"""How many decisions of its first game a worker measures."""
_LOOP_FUNCTIONS = {"_run", "_run_once", "run", "run_forever", "run_until_complete"}
_callers = WeakKeyDictionary()
"""For each task, the calls that led to its creation."""
_initialize_worker = worker.initialize_worker


def list_calls():
    """Return the project's functions between the start of this process and the caller, as `MODULE:FUNCTION`."""
    calls = []
    is_in_loop = asyncio._get_running_loop() is not None
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if (module := name_module(code)) is not None:
            calls.append(f"{module}:{code.co_qualname}")
        elif is_in_loop and "asyncio" in code.co_filename and code.co_name in _LOOP_FUNCTIONS:
            break
        frame = frame.f_back
    before = _callers.get(asyncio.current_task(), []) if is_in_loop else []
    return [*before, *reversed(calls)]


def name_module(code):
    """Return the module of a function of the project, `tournament/conduct`; None for any other function."""
    path = Path(code.co_filename)
    return str(path.relative_to(PROJECT).with_suffix("")) if PROJECT in path.parents else None


def follow_tasks(loop):
    """Note for each task of an event loop which calls created it; return the loop."""

    def create(loop, coroutine, **options):
        task = asyncio.Task(coroutine, loop=loop, **options)
        _callers[task] = list_calls()
        return task

    loop.set_task_factory(create)
    return loop


def initialize_measured_worker(settings):
    """Make this process a worker that measures the first decisions of its first game."""
    _initialize_worker(settings)
    follow_tasks(worker._WORKERS[0].runner.get_loop())
    decide = BotPlayer.decide
    chains, modules = [], []

    def profile(frame, event, _argument):
        module = name_module(frame.f_code) if event == "call" else None
        if module is not None and not is_in_background(frame):
            modules[-1].add("rules" if module.startswith("rules/") else module)

    async def decide_measured(player, request):
        sys.setprofile(None)
        chains.append([*list_calls(), "bots/player:BotPlayer.decide"])
        if len(chains) > DECISIONS:
            write(chains[0], modules)
            BotPlayer.decide = decide
        else:
            modules.append(set())
            sys.setprofile(profile)
        return await decide(player, request)

    BotPlayer.decide = decide_measured


def is_in_background(frame):
    """Return True in the tasks and callbacks that measure resources, watch for floods and write heartbeats."""
    task = asyncio.current_task()
    if task is not None:
        module = name_module(task.get_coro().cr_code)
    else:  # a callback of the event loop: its first function of the project tells what it is for
        module = None
        while frame is not None and frame.f_code.co_name not in _LOOP_FUNCTIONS:
            module = name_module(frame.f_code) or module
            frame = frame.f_back
    return module is not None and module.startswith(("sandbox/", "bots/flood", "tournament/worker"))


def write(chain, modules):
    measured = {"chain": chain, "modules": [sorted(names) for names in modules]}
    Path(os.environ[FILE]).write_text(json.dumps(measured))
