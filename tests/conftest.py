"""Decide which tests run, which are skipped, and which are measured for coverage.

    pytest                      the tests that fit into three minutes on two cores
    pytest --everything         all tests
    pytest --left-out           only the tests that plain `pytest` leaves out
    pytest tests/crash          all tests of the named folders and files, even if plain `pytest` leaves them out

The last lines of plain `pytest` count the tests that it left out, by reason. A test is left out if it
needs a PostgreSQL server, or if it has a mark like this:

    @pytest.mark.extended("plays hundreds of games")

With pytest-xdist, a run of all tests uses several processes and a run of named tests uses one. The
options `-n 0`, `-n 7` and so on set the number of processes. Without pytest-xdist everything runs in one process.
A run with `--cov` but without `-n` also uses one process, because pytest-cov reads `-n` before this file sets it.

A test that needs a program names the program. The test is skipped on a machine without the program:

    @pytest.mark.toolchain("buf")

A test that needs an isolation rung, or a stronger one, names the rung. The test is skipped on a machine that
does not give the rung:

    @pytest.mark.isolation("full")

Tests use PostgreSQL through the fixtures `postgres` and `postgres_url`.

With REFEREE_REQUIRE_ALL=1, as in CI, a skip is a failure, because no test may be missing unnoticed. A test may still be
skipped if the kernel does not give its isolation rung, because nobody can install a rung.

Measuring coverage makes Python up to three times slower. If a test spends most of its time on lines that other tests
cover, give the test this mark. Then the test, its fixtures and the processes that it starts are not measured:

    @pytest.mark.unmeasured

Property tests (hypothesis) try 25 examples, and with REFEREE_REQUIRE_ALL=1 100, if they do not set a number themselves.
"""

import gc
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import hypothesis
import pytest

from referee import configure_process

HERE = Path(__file__).parent
REQUIRE_ALL = "REFEREE_REQUIRE_ALL"
NO_RUNG = "this machine does not give the isolation"
LEFT_OUT = pytest.StashKey[Counter[str]]()
"""How many tests this run left out, by reason."""
SLOWEST_FIRST = (
    "check/test_check_bot.py",
    "cluster/test_cluster_runs.py",
    "languages/test_manners.py",
    "crash/test_random_moments.py",
    "bots/test_misbehaving_games.py",
    "cluster/test_killed_processes.py",
    "sandbox/test_thinking_time.py",
    "languages/test_promises.py",
    "rules/test_oracle_agrees.py",
    "cluster/test_cut_link.py",
    "web/test_accessibility.py",
    "cli/test_isolation.py",
    "web/test_sit_page.py",
    "cli/test_signals.py",
    "sample_bots/test_sample_bots.py",
    "test_readme.py",
    "crash/test_shortages.py",
    "crash/test_leagues_that_cannot_be_written.py",
    "train/test_example.py",
    "tournament/test_resume.py",
    "sandbox/test_sandbox.py",
    "cli/test_commands.py",
    "cli/test_bots_commands.py",
)
"""The files that take longest. They start first. If one of them started last, all other processes would wait for it."""
COVERAGE_VARIABLES = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")
"""Environment variables that make child processes measure their own coverage."""
hypothesis.settings.register_profile(
    "examples", max_examples=100 if os.environ.get(REQUIRE_ALL) else 25, deadline=None
)
hypothesis.settings.load_profile("examples")
# With this variable, every process that the tests start would compile all modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
configure_process()  # before anything imports gRPC

import postgres_server  # noqa: E402 - imports of the project come after `configure_process`
from strongest_isolation import strongest  # noqa: E402 - the same

from referee.sandbox import Rung  # noqa: E402 - the same
from referee.sandbox.missing import how_to_install  # noqa: E402 - the same


def pytest_addoption(parser):
    parser.addoption(
        "--everything",
        action="store_true",
        help="also run the tests that plain `pytest` leaves out because they take long or need much",
    )
    parser.addoption(
        "--left-out",
        action="store_true",
        help="run only the tests that plain `pytest` leaves out",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Choose tests and processes before pytest-xdist reads the options.

    Every worker of pytest-xdist parses the same command line and calls this hook too.
    """
    names_tests = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    if names_tests or config.option.keyword or config.option.markexpr:
        config.option.everything = True
    if config.pluginmanager.hasplugin("xdist") and not hasattr(config, "workerinput"):
        measures_here = (
            config.pluginmanager.hasplugin("_cov") and config.option.numprocesses is None
        )
        _set_processes(config.option, one=names_tests or measures_here)


def _set_processes(option, *, one):
    """Set the options of pytest-xdist that the command line leaves open.

    All tests run in more processes than there are cores, since most of them wait for time limits to pass.
    The tests of a file run in one process, since they share fixtures that are expensive.
    """
    if option.numprocesses in {None, "auto"}:
        option.numprocesses = 0 if one else min(4, 2 * len(os.sched_getaffinity(0)))
    if option.dist == "no":
        option.dist = "loadfile"
    option.loadscopereorder = False  # keeps the order of SLOWEST_FIRST


def pytest_collection_modifyitems(config, items):
    reasons = {item: reason for item in items if (reason := _reason_to_leave_out(item))}
    if config.option.left_out:
        _keep(config, items, lambda item: item in reasons)
    elif not config.option.everything:
        config.stash[LEFT_OUT] = Counter(reasons.values())
        _keep(config, items, lambda item: item not in reasons)

    def place(item):
        file = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
        return SLOWEST_FIRST.index(file) if file in SLOWEST_FIRST else len(SLOWEST_FIRST)

    items.sort(key=place)


def pytest_collection_finish():
    """Exempt all modules and tests from garbage collection: each of the many collections would take 0.3 s."""
    if not gc.get_freeze_count():  # a test of this file runs pytest in this process
        gc.freeze()


def _keep(config, items, is_wanted):
    """Remove the tests that are not wanted from `items`, and report these tests to pytest."""
    config.hook.pytest_deselected(items=[item for item in items if not is_wanted(item)])
    items[:] = filter(is_wanted, items)


def _reason_to_leave_out(item):
    if (mark := item.get_closest_marker("extended")) is not None:
        return mark.args[0]
    return "needs a PostgreSQL server" if "postgres" in item.fixturenames else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Send the counts from a worker of pytest-xdist to the controlling process, which collects no tests itself."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash.get(LEFT_OUT, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take the counts from any worker, because every worker collects all tests."""
    if (counts := getattr(node, "workeroutput", {}).get("left_out")) is not None:
        node.config.stash[LEFT_OUT] = Counter(counts)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter, config):
    """Print what was left out below everything else that pytest reports."""
    yield
    if counts := config.stash.get(LEFT_OUT, None):
        terminalreporter.section("left out")
        for reason, count in counts.most_common():
            terminalreporter.line(f"{count:5}  {reason}")
        total = counts.total()
        terminalreporter.line(
            f"{total:5}  tests left out. Run everything: {_command()} --everything"
        )


def _command():
    """Return the command that started pytest, as a person can type it again."""
    program = sys.argv[0]
    if Path(program).name == "__main__.py":
        return f"{sys.executable} -m pytest"
    return "pytest" if program == shutil.which("pytest") else program


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
    """Start a PostgreSQL server for a module, because tests of other modules expect no foreign child processes."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
    folder = postgres_server.programs()
    if folder is None:
        pytest.skip("PostgreSQL is not installed: `apt install postgresql`")
    with postgres_server.server(folder) as server:
        yield server


@pytest.fixture
def postgres_url(postgres):
    """Create an empty PostgreSQL database."""
    with postgres.database() as url:
        yield url


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Switch coverage off for a test with the mark `unmeasured`, its fixtures and its processes."""
    tracer = sys.gettrace()
    if tracer is None or item.get_closest_marker("unmeasured") is None:
        return (yield)
    with patch.dict(os.environ):
        for name in COVERAGE_VARIABLES:
            os.environ.pop(name, None)
        sys.settrace(None)
        try:
            return (yield)
        finally:
            sys.settrace(tracer)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):  # noqa: ARG001 - pytest matches hooks by these names
    return _fail_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):  # noqa: ARG001 - the same
    """Handle modules that skip themselves while they are collected."""
    return _fail_skip((yield))


def _fail_skip(report):
    if os.environ.get(REQUIRE_ALL) == "1" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        if NO_RUNG not in str(reason):
            report.outcome = "failed"
            report.longrepr = f"{REQUIRE_ALL}=1 allows no skip. {reason}"
    return report
