"""A bot that uses no gRPC library, only the bytes that the guide describes, passes the check."""

from pathlib import Path

import pytest
from real_runs import place

BOT = Path(__file__).with_name("without_grpc")


@pytest.mark.extended("checks a bot")
def test_bot_without_a_grpc_library_passes_the_check(tmp_path):
    with place(tmp_path) as here:
        done = here.referee("bots", "check", BOT)
        assert done.returncode == 0, done.stdout
        assert done.stdout.endswith("without_grpc@1: the check has passed.\n")
