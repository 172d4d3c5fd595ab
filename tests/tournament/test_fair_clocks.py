"""Clocks stay fair on a worker whose core is busy with other work: a short form of `bench_fair_clocks`, with longer times."""

import dataclasses
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
from bench_fair_clocks import CLOCKS, busy, played, timeouts

pytestmark = pytest.mark.unmeasured
PATIENT = dataclasses.replace(CLOCKS, decision_us=200_000)
"""A limit that is long enough for a bot that replies at once, even if other tests run on the same core."""

SURELY = 0.9
"""The part of late decisions that must be timeouts. The others are late because the machine stood still, which
is not charged to the bot."""


@pytest.mark.extended("measures large schedules and long statistics")
async def test_the_clocks_are_fair_on_a_busy_core():
    cores = sorted(os.sched_getaffinity(0))[-1:]  # workers of other tests begin with the first core
    with busy(cores):
        prompt = await played(cores, "1", 500, PATIENT)
        late = await played(cores, "+100", 20, PATIENT)
    assert not timeouts(prompt)
    decisions = sum(len(record.moves) for record in late)
    assert SURELY * decisions <= len(timeouts(late)) <= decisions
