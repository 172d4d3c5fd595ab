"""Find the processes that tests have started."""

import psutil


def running():
    """Return the descendants of this process, without zombies."""
    found = psutil.Process().children(recursive=True)
    return {each for each in found if each.is_running() and each.status() != psutil.STATUS_ZOMBIE}
