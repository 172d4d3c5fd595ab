"""Run the verifier in another language that was written from `proto/DEALS.md` alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

VERIFIER = Path(__file__).parent / "stranger" / "verifier.mjs"


def ask_a_stranger(*archive, deals=None):
    """Let the verifier check an archive, or compute the deals of the text `deals`; return the finished process."""
    return subprocess.run(
        [shutil.which("node"), VERIFIER, *archive],
        input=deals,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
