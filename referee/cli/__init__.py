"""The command `referee`: what people type and read. It decides nothing; it asks the other parts.

Exit codes: 0 all is well; 1 something is not right (a record that does not check, a run that cannot
go on); 2 bad input, nothing was changed; 130 interrupted, and can be resumed.
"""

import sys

from referee import configure_process


def main() -> None:
    """Run the command line and exit."""
    configure_process()
    try:
        # A worker process imports the program it was started from, which is this: not all commands.
        from referee.cli.app import run  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit(130)  # that takes a moment, in which somebody may change his mind
    run()
