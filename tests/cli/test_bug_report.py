"""An unexpected error becomes one line and a bug report that names the version."""

import os
import subprocess
import sys

from referee import __version__

BROKEN = """
import sys
from unittest.mock import patch

from referee.cli import app

with patch.object(app, "import_module", side_effect=RuntimeError(sys.argv.pop())):
    app.run()
"""


def run_broken(temporary, message):
    return subprocess.run(
        [sys.executable, "-c", BROKEN, "doctor", message],
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_unexpected_error_writes_a_bug_report_with_the_version(tmp_path):
    done = run_broken(tmp_path, "[bold]broken")
    (report,) = tmp_path.glob("referee-bug-*.txt")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "referee: this is a bug of the referee: RuntimeError: [bold]broken;"
        f" please report it with {report}\n"
    )
    first, *_, last = report.read_text().splitlines()
    assert first.startswith(f"referee {__version__}, Python {sys.version.split()[0]}")
    assert last == "RuntimeError: [bold]broken"


def test_lack_of_threads_is_no_bug(tmp_path):
    done = run_broken(tmp_path, "can't start new thread")
    assert not list(tmp_path.iterdir())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "referee: no thread can be started: raise the limit of processes and threads (ulimit -u), or end some\n"
    )
