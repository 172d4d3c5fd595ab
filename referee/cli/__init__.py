"""The command line: parse what people type, call the other packages, print the results.

Exit codes:
    0    success
    1    something is wrong: a stored game is not correct, a bot failed its check, or a run cannot go on
    2    bad input; nothing was changed
    130  interrupted; the run can be resumed
"""

import sys

from referee import configure_process


def main() -> None:
    """Run the command line and exit."""
    configure_process()
    try:
        # Imported here, because a worker process imports this module too but needs none of the commands.
        from referee.cli.app import run  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit(130)  # Ctrl-C during the import, which takes a moment
    run()
