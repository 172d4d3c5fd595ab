"""What holds for every test: which may be skipped, and where none may.

A test that needs a program which a user's machine may lack says so, and is skipped without it:

    @pytest.mark.toolchain("buf")

One that needs a rung of the isolation ladder, or a stronger one, says that too: what this machine gives is
probed once.

    @pytest.mark.isolation("full")

PostgreSQL is asked for by a fixture, `postgres` or `postgres_url`.

What tries more of the same is asked for by REFEREE_THOROUGH=1, as before a release:

    @pytest.mark.thorough

With REFEREE_REQUIRE_ALL=1 (CI) a skip is a failure, so that nothing goes untested unnoticed; but for a rung
that the machine's kernel does not give, which nobody can install: CI shows which one it has.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

from referee import configure_process

HERE = Path(__file__).parent
REQUIRE_ALL = "REFEREE_REQUIRE_ALL"
NO_RUNG = "this machine does not give the isolation"
THOROUGH = os.environ.get("REFEREE_THOROUGH") == "1"
LONGEST = (
    "languages/test_manners.py",
    "tournament/test_resume.py",
    "check/test_check.py",
    "tournament/test_workers.py",
    "crash/test_random_moments.py",
    "cli/test_bots_commands.py",
    "cli/test_until.py",
    "cli/test_extend.py",
    "store/test_database.py",
    "bots/test_misbehaving_games.py",
    "bots/test_misbehaving_isolated.py",
    "test_readme.py",
)
"""Files that take longest. They begin first, so that at the end no process works on one while others wait."""
PLAYED_MUCH = ("languages", "sample_bots", "stranger")
"""Folders whose tests play a lot on lines that others cover."""
configure_process()  # before anything imports gRPC

import postgres_server  # noqa: E402 - after that
from strongest_isolation import strongest  # noqa: E402 - the same

from referee.bots.build import how_to_install  # noqa: E402 - the same
from referee.sandbox import Rung  # noqa: E402 - the same


def pytest_xdist_auto_num_workers(config):
    """How many processes test at once: all tests, more than there are cores, since most wait for limits
    to pass; those that somebody names, none but pytest's own, so that they begin at once.
    """
    everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return min(4, 2 * len(os.sched_getaffinity(0))) if everything else 0


def pytest_collection_modifyitems(config, items):
    left = [each for each in items if each.get_closest_marker("thorough")] if not THOROUGH else []
    config.hook.pytest_deselected(items=left)
    items[:] = [each for each in items if each not in left]

    def place(item):
        file = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
        return LONGEST.index(file) if file in LONGEST else len(LONGEST)

    items.sort(key=place)


def pytest_runtest_setup(item):
    for mark in item.iter_markers("toolchain"):
        missing = [program for program in mark.args if shutil.which(program) is None]
        if missing:
            pytest.skip("; ".join(map(how_to_install, missing)))
    if (mark := item.get_closest_marker("isolation")) is not None:
        wanted, found = Rung(mark.args[0]), strongest()
        if found.rung.height < wanted.height:
            why = [f"{each.rung.value}: {each.reason} ({each.advice})" for each in found.refusals]
            pytest.skip(f"{NO_RUNG} {wanted.value}: {'; '.join(why)}")


@pytest.fixture(scope="module")
def postgres():
    """A PostgreSQL server, for a module: tests of other modules want no strange child processes."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
    folder = postgres_server.programs()
    if folder is None:
        pytest.skip("PostgreSQL is not installed: `apt install postgresql`")
    with postgres_server.server(folder) as server:
        yield server


@pytest.fixture
def postgres_url(postgres):
    """An empty PostgreSQL database."""
    with postgres.database() as url:
        yield url


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Coverage makes plain Python three times as slow: not for what does much of the same."""
    measure = sys.gettrace()
    if item.get_closest_marker("unmeasured") or item.path.parent.name in PLAYED_MUCH:
        sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(measure)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):  # noqa: ARG001 - pytest matches hooks by these names
    return _skip_is_failure((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):  # noqa: ARG001 - the same
    return _skip_is_failure((yield))


def _skip_is_failure(report):
    """A whole module can be skipped too, while it is collected."""
    if os.environ.get(REQUIRE_ALL) == "1" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        if NO_RUNG not in str(reason):
            report.outcome = "failed"
            report.longrepr = f"{REQUIRE_ALL}=1 allows no skip. {reason}"
    return report
