"""The libraries of the pages are the pinned ones, classic scripts, and have their licences."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VENDOR = ROOT / "referee" / "web" / "static" / "vendor"


def test_every_library_has_its_licence():
    licences = {path.stem for path in (VENDOR / "LICENSES").iterdir()}
    assert {path.stem for path in VENDOR.glob("*.js")} <= licences


@pytest.mark.extended("downloads packages")
@pytest.mark.toolchain("npm")
@pytest.mark.unmeasured
def test_libraries_are_those_of_npm():
    script = ROOT / ".github" / "renew_web_assets.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
