"""The suite's own rules about skipping, on suites of one test."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
CONFTEST = (Path(__file__).parent / "conftest.py").read_text()
INI = """
[pytest]
asyncio_default_fixture_loop_scope = function
markers = toolchain(name)
"""
SKIPPED = {
    "marked": "import pytest\n@pytest.mark.skip(reason='some reason')\ndef test(): pass",
    "in the test": "import pytest\ndef test(): pytest.skip('some reason')",
    "module": "import pytest\npytest.skip('some reason', allow_module_level=True)",
    "toolchain": "import pytest\n@pytest.mark.toolchain('no-such-tool')\ndef test(): pass",
}


@pytest.fixture
def run_suite(pytester, monkeypatch):
    def run(source, *, require_all):
        monkeypatch.setenv("REFEREE_REQUIRE_ALL", "1" if require_all else "")
        monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
        pytester.makeini(INI)
        pytester.makeconftest(CONFTEST)
        pytester.makepyfile(source)
        return pytester.runpytest_inprocess()

    return run


@pytest.mark.parametrize("source", SKIPPED.values(), ids=SKIPPED)
def test_a_skip_is_a_skip(run_suite, source):
    outcomes = run_suite(source, require_all=False).parseoutcomes()
    assert outcomes == {"skipped": 1}


@pytest.mark.parametrize("source", SKIPPED.values(), ids=SKIPPED)
def test_a_skip_is_a_failure_where_everything_is_required(run_suite, source):
    result = run_suite(source, require_all=True)
    assert set(result.parseoutcomes()) <= {"failed", "error", "errors"}
    assert result.ret != 0
    result.stdout.re_match_lines([".*REFEREE_REQUIRE_ALL=1 allows no skip.*(some reason|no-such-)"])


def test_programs_that_are_there_are_no_reason_to_skip(run_suite):
    source = "import pytest\n@pytest.mark.toolchain('sh', 'ls')\ndef test(): pass"
    assert run_suite(source, require_all=True).parseoutcomes() == {"passed": 1}


def test_what_is_expected_to_fail_is_no_skip(run_suite):
    source = "import pytest\n@pytest.mark.xfail\ndef test(): assert False"
    assert run_suite(source, require_all=True).parseoutcomes() == {"xfailed": 1}
