"""A bot written from the guide alone plays whole games, without a fault."""

import os
import subprocess
import sys
from pathlib import Path

BOT = Path(__file__).parent / "guide_bot"


def test_by_hand_it_says_how_to_start_it():
    environment = {key: value for key, value in os.environ.items() if "REFEREE" not in key}
    started = subprocess.run(
        [sys.executable, BOT / "bot.py"], env=environment, capture_output=True, check=False
    )
    assert started.returncode == 2
    assert b"referee play" in started.stderr
