"""What runs below the process of the tests."""

import psutil


def running():
    """Descendants of this process, without those that have ended and nobody waits for."""
    found = psutil.Process().children(recursive=True)
    return {each for each in found if each.is_running() and each.status() != psutil.STATUS_ZOMBIE}
