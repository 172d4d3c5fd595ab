"""Send a signal to the command `referee` itself at a chosen moment, without a clock.

`prepare` writes a `sitecustomize.py`, which Python imports first. It counts the events of Python's audit hooks, such as
imports, opened files and started programs, from the moment at which `referee.cli.main` imports its first module.
"""

SITE = """
import os, signal, sys

if "multiprocessing" not in " ".join(sys.orig_argv) and os.environ.get("SIGNAL_AT"):
    at, number = int(os.environ["SIGNAL_AT"]), int(os.environ["SIGNAL_NUMBER"])
    first, count = os.getpid(), None

    def hook(event, arguments):
        global count
        if count is None and event == "import" and arguments[0] == "referee.cli.app":
            count = 0
        if count is None or os.getpid() != first:
            return
        count += 1
        if count == at:
            os.kill(first, number)

    if os.environ.get("SIGNAL_REPORT"):
        import atexit
        atexit.register(lambda: print("sent:", count is not None and count >= at, file=sys.stderr))
    if os.environ["SIGNAL_AT"] == "0":
        import atexit
        atexit.register(lambda: print("events:", count))
    sys.addaudithook(hook)
"""


def prepare(folder):
    """Write the file, and return the variables that a command needs, besides SIGNAL_AT and SIGNAL_NUMBER.

    With SIGNAL_REPORT, the command tells at its end on standard error whether the signal was sent.
    """
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SITE)
    return {"PYTHONPATH": str(folder)}
