import sys
import time

import psutil
import pytest

from referee.bots.build import build
from referee.sandbox.missing_programs import find_missing_program, how_to_install
from referee.sandbox.process_group import ProcessGroupLauncher


async def built(tmp_path, *command, limit_s=20.0):
    return await build(command, tmp_path, launcher=ProcessGroupLauncher(), limit_s=limit_s)


async def built_by(tmp_path, script, **limits):
    return await built(tmp_path, sys.executable, "-c", script, **limits)


def descendants():
    children = psutil.Process().children(recursive=True)
    return [child for child in children if child.status() != psutil.STATUS_ZOMBIE]


async def test_a_build_runs_in_the_folder_and_its_words_are_kept(tmp_path):
    result = await built(tmp_path, "sh", "-c", "echo made; echo warning >&2; echo 1 > made")
    assert result.ok
    assert set(result.output.splitlines()) == {"made", "warning"}
    assert (tmp_path / "made").read_text() == "1\n"


async def test_a_build_finds_what_its_user_has(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("A_CACHE", "/somewhere")
    result = await built(tmp_path, "sh", "-c", 'echo "$HOME $A_CACHE"')
    assert result.output == f"{tmp_path} /somewhere\n"


async def test_a_build_is_not_told_how_to_open_the_database(tmp_path, monkeypatch):
    monkeypatch.setenv("REFEREE_DB", "postgresql+psycopg://ann:secret@h/cup")
    monkeypatch.setenv("PGPASSWORD", "secret")
    assert "secret" not in (await built(tmp_path, "env")).output


async def test_a_build_that_fails(tmp_path):
    result = await built(tmp_path, "sh", "-c", "echo 'main.c: no semicolon' >&2; exit 3")
    assert not result.ok
    assert result.reason == "exited with 3"
    assert result.output == "main.c: no semicolon\n"


async def test_a_build_that_is_ended(tmp_path):
    result = await built(tmp_path, "sh", "-c", "kill -SEGV $$")
    assert result.reason == "ended by SIGSEGV"


async def test_a_build_that_hangs_is_ended_with_all_its_children(tmp_path):
    began = time.monotonic()
    result = await built(tmp_path, "sh", "-c", "echo begun; sleep 60 & sleep 60", limit_s=0.5)
    assert result.reason == "not finished after 0.5 s"
    assert result.output == "begun\n"
    assert time.monotonic() - began < 10
    assert descendants() == []


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
os.wait()
"""


async def test_a_build_that_leaves_a_daemon_fails_and_the_daemon_is_ended(tmp_path):
    result = await built_by(tmp_path, DAEMON)
    assert not result.ok
    assert "running: a build must end all that it starts" in result.reason
    assert descendants() == []


async def test_a_helper_may_end_a_little_later(tmp_path):
    result = await built(tmp_path, "sh", "-c", "sleep 0.3 & exit 0")
    assert result.ok


async def test_a_build_that_never_stops_printing(tmp_path):
    result = await built(tmp_path, "sh", "-c", "yes", limit_s=0.5)
    assert result.reason == "not finished after 0.5 s"
    assert len(result.output) == 1 << 20


async def test_a_missing_program(tmp_path):
    result = await built(tmp_path, "no-such-compiler")
    assert result.reason == "cannot be started: no-such-compiler is not installed, or not in PATH"


async def test_a_missing_toolchain_and_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = await built(tmp_path, "cargo", "build")
    assert result.reason == (
        "cannot be started: cargo is not installed; it belongs to Rust: https://rustup.rs (Debian's is often too old)"
    )


async def test_a_toolchain_that_a_shell_misses(tmp_path):
    result = await built(tmp_path, "/bin/sh", "-c", "PATH= mvn package")
    assert result.reason == f"exited with 127: {how_to_install('mvn')}"


async def test_a_program_of_the_folder_that_is_not_there(tmp_path):
    result = await built(tmp_path, "./configure")
    assert result.reason == "cannot be started: ./configure: No such file or directory"


@pytest.mark.parametrize(
    ("said", "program"),
    [
        ("sh: 1: cmake: not found\n", "cmake"),
        ("bash: line 1: go: command not found\n", "go"),
        ("env: 'node': No such file or directory\n", "node"),
        ("main.c: symbol x not found\n", None),
    ],
)
def test_what_shells_say_of_a_missing_program(said, program):
    assert find_missing_program(said) == program
