"""An unexpected error becomes one line and a bug report that names the version."""

import os
import subprocess
import sys

from referee import __version__

BROKEN = """
from unittest.mock import patch

from referee.cli import app

with patch.object(app, "import_module", side_effect=RuntimeError("[bold]broken")):
    app.run()
"""


def test_unexpected_error_writes_a_bug_report_with_the_version(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, "doctor"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    (report,) = tmp_path.glob("referee-bug-*.txt")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "referee: this is a bug of the referee: RuntimeError: [bold]broken;"
        f" please report it with {report}\n"
    )
    first, *_, last = report.read_text().splitlines()
    assert first.startswith(f"referee {__version__}, Python {sys.version.split()[0]}")
    assert last == "RuntimeError: [bold]broken"
