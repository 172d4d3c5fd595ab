"""Test which tests run: try `conftest.py` on small suites that have every kind of mark and skip."""

import re
import sys
from pathlib import Path

import pytest
import strongest_isolation
from extended import extend_all_but

from referee.sandbox import NO_ISOLATION

pytest_plugins = ["pytester"]
HERE = Path(__file__).parent
CONFTEST = (HERE / "conftest.py").read_text()
INI = """
[pytest]
testpaths = .
asyncio_default_fixture_loop_scope = function
markers =
    extended(reason)
    toolchain(name)
    isolation(rung)
"""
SKIPS = {
    "test_skips": """
        import pytest

        @pytest.mark.skip(reason="by mark")
        def test_marked(): ...

        def test_inside(): pytest.skip("from within")

        @pytest.mark.toolchain("sh", "no-such-tool")
        def test_tool(): ...
    """,
    "test_module": """
        import pytest
        pytest.skip("whole module", allow_module_level=True)
    """,
    "test_no_skips": """
        import pytest

        @pytest.mark.toolchain("sh", "ls")
        def test_tools(): ...

        @pytest.mark.xfail
        def test_known_wrong(): assert False
    """,
}
RUNGS = {
    "test_rungs": """
        import pytest

        @pytest.mark.isolation("full")
        def test_full(): assert False

        @pytest.mark.isolation("none")
        def test_none(): ...
    """,
}
SHORT_AND_LONG = {
    "test_short": """
        def test_one(): ...
        def test_two(): ...
    """,
    "test_long": """
        import pytest

        def test_three(): ...

        @pytest.mark.extended("plays long")
        @pytest.mark.parametrize("number", range(2))
        def test_four(number): ...

        @pytest.mark.extended("builds a lot")
        def test_five(): ...

        @pytest.fixture
        def postgres(): ...

        def test_six(postgres): ...
    """,
}
PASSED_WITH = {
    "--everything": 7,
    "--left-out": 4,
    "test_long.py": 5,
    "test_long.py::test_five": 1,
    "-k four": 2,
}
NUMBERS_OF_PROCESSES = (
    "-pno:xdist",
    "-n0",
    "-n1",
    "-n3",
    "-n7",
    "-nauto",
    "--cov=. --cov-report=",
    "--cov=. --cov-report= -n3",
)


@pytest.fixture
def suite(pytester, monkeypatch):
    """Return a function that writes a suite with the real `conftest.py` into an empty folder."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("REFEREE_REQUIRE_ALL", "")
    monkeypatch.setenv("PYTHONPATH", str(HERE))

    def write(modules):
        pytester.makeini(INI)
        pytester.makeconftest(CONFTEST)
        pytester.makepyfile(**modules)
        return pytester

    return write


# Skips


def run_skips(suite):
    return suite(SKIPS).runpytest_inprocess("-n0", "-rsf", "--continue-on-collection-errors")


def test_skip_is_a_skip_on_a_users_machine(suite):
    result = run_skips(suite)
    assert result.parseoutcomes() == {"skipped": 4, "passed": 1, "xfailed": 1}
    result.stdout.fnmatch_lines(["SKIPPED*no-such-tool is not installed*"])


def test_skip_is_a_failure_where_everything_is_required(suite, monkeypatch):
    monkeypatch.setenv("REFEREE_REQUIRE_ALL", "1")
    result = run_skips(suite)
    assert result.parseoutcomes() == {"failed": 1, "errors": 3, "passed": 1, "xfailed": 1}
    shown = result.stdout.str()
    for reason in ("by mark", "from within", "no-such-tool is not installed", "whole module"):
        assert f"REFEREE_REQUIRE_ALL=1 allows no skip. Skipped: {reason}" in shown


def test_rung_that_the_machine_does_not_give_is_a_skip_everywhere(suite, monkeypatch):
    monkeypatch.setenv("REFEREE_REQUIRE_ALL", "1")
    monkeypatch.setattr(strongest_isolation, "strongest", lambda: NO_ISOLATION)
    result = suite(RUNGS).runpytest_inprocess("-n0", "-rs")
    assert result.parseoutcomes() == {"skipped": 1, "passed": 1}
    result.stdout.fnmatch_lines(["SKIPPED*does not give the isolation full*"])


# The choice of tests


@pytest.mark.extended("starts pytest many times")
@pytest.mark.parametrize("processes", NUMBERS_OF_PROCESSES)
def test_any_number_of_processes_leaves_out_the_same_tests(suite, processes):
    result = suite(SHORT_AND_LONG).runpytest_subprocess(*processes.split())
    assert result.parseoutcomes()["passed"] == 3
    result.stdout.fnmatch_lines(
        [
            "*= left out =*",
            "    2  plays long",
            "    1  builds a lot",
            "    1  needs a PostgreSQL server",
            f"    4  tests left out. Run everything: {sys.executable} -m pytest --everything",
        ],
        consecutive=True,
    )


@pytest.mark.parametrize(
    "options", extend_all_but(["--left-out"], PASSED_WITH, "starts pytest many times")
)
def test_options_and_names_choose_tests_that_are_left_out(suite, options):
    result = suite(SHORT_AND_LONG).runpytest_inprocess(*options.split(), "-n0")
    assert result.parseoutcomes()["passed"] == PASSED_WITH[options]
    result.stdout.no_fnmatch_line("*tests left out*")


@pytest.mark.extended("starts pytest many times")
def test_workers_run_the_tests_that_were_named(suite):
    result = suite(SHORT_AND_LONG).runpytest_subprocess("-k", "four or one", "-n2")
    assert result.parseoutcomes() == {"passed": 3}


def test_the_files_that_start_first_exist():
    files = re.findall(r'"(\S+\.py)",$', CONFTEST, re.MULTILINE)
    assert files
    assert [file for file in files if not (HERE / file).is_file()] == []
