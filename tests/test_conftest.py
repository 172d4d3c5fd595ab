"""The suite's own rules about skipping, tried on a small suite of each kind of skip."""

from pathlib import Path

import pytest
import strongest_isolation

from referee.sandbox.rungs import NO_ISOLATION

pytest_plugins = ["pytester"]
CONFTEST = (Path(__file__).parent / "conftest.py").read_text()
INI = """
[pytest]
asyncio_default_fixture_loop_scope = function
markers =
    toolchain(name)
    isolation(rung)
"""
SUITE = {
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


@pytest.fixture
def run_suite(pytester, monkeypatch):
    def run(*, require_all):
        monkeypatch.setenv("REFEREE_REQUIRE_ALL", "1" if require_all else "")
        monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
        pytester.makeini(INI)
        pytester.makeconftest(CONFTEST)
        pytester.makepyfile(**SUITE)
        return pytester.runpytest_inprocess("-rsf", "--continue-on-collection-errors")

    return run


def test_a_skip_is_a_skip_on_a_users_machine(run_suite):
    result = run_suite(require_all=False)
    assert result.parseoutcomes() == {"skipped": 4, "passed": 1, "xfailed": 1}
    result.stdout.fnmatch_lines(["SKIPPED*no-such-tool is not installed*"])


def test_a_skip_is_a_failure_where_everything_is_required(run_suite):
    result = run_suite(require_all=True)
    assert result.parseoutcomes() == {"failed": 1, "errors": 3, "passed": 1, "xfailed": 1}
    shown = result.stdout.str()
    for reason in ("by mark", "from within", "no-such-tool is not installed", "whole module"):
        assert f"REFEREE_REQUIRE_ALL=1 allows no skip. Skipped: {reason}" in shown


def test_a_rung_that_the_machine_does_not_give_is_no_failure(pytester, monkeypatch):
    monkeypatch.setenv("REFEREE_REQUIRE_ALL", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setattr(strongest_isolation, "strongest", lambda: NO_ISOLATION)
    pytester.makeini(INI)
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile("""
        import pytest

        @pytest.mark.isolation("full")
        def test_full(): assert False

        @pytest.mark.isolation("none")
        def test_none(): ...
    """)
    result = pytester.runpytest_inprocess("-rs")
    assert result.parseoutcomes() == {"skipped": 1, "passed": 1}
    result.stdout.fnmatch_lines(["SKIPPED*does not give the isolation full*"])
