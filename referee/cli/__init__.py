"""The command line: parse what people type, call the other packages, print the results.

Exit codes:
    0    success
    1    something is wrong: a game is not correct, or a run cannot go on
    2    bad input; nothing was changed
    130  interrupted; the run can be resumed
"""

import sys

from referee import configure_process


def main() -> None:
    """Run the command line and exit."""
    configure_process()
    try:
        # A worker process imports this module again, but it needs none of the commands.
        from referee.cli.app import run  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit(130)  # the import takes a moment, in which Ctrl-C can come
    run()
