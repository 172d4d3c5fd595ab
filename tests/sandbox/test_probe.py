"""Tests that the probe notices what a program can reach."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from referee.sandbox import Protection
from referee.sandbox.probe import _prepare_folder, _try_forbidden_acts
from referee.sandbox.process_group import ProcessGroupLauncher


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may trace a process that is no child")
async def test_probe_sees_that_signals_and_tracers_reach_the_referee():
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _prepare_folder(folder)
        results = await _try_forbidden_acts(ProcessGroupLauncher(), folder, stack)
    assert "signal the referee" in results[Protection.PROCESS_VIEW].reason
    assert "trace the referee" in results[Protection.PTRACE].reason
