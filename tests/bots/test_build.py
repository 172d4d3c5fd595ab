"""Test that builds run with limits, fail with a reason, and leave no process running."""

import errno
import os
import re
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from strongest_isolation import strongest

from referee.bots import build as build_module
from referee.bots.build import build
from referee.errors import Cause, Evidence, Forfeit, Shortage, UserError, VoidGame
from referee.sandbox.ladder import make_launcher
from referee.sandbox.missing import how_to_install
from referee.sandbox.process_group import ProcessGroupLauncher


async def run_build(folder, *command, limit_s=20.0):
    return await build(command, folder, launcher=ProcessGroupLauncher(), limit_s=limit_s)


async def run_python_build(folder, script, **limits):
    return await run_build(folder, sys.executable, "-c", script, **limits)


def running_descendants():
    children = psutil.Process().children(recursive=True)
    return [child for child in children if child.status() != psutil.STATUS_ZOMBIE]


async def test_build_runs_in_the_bots_folder_and_its_output_is_kept(tmp_path):
    result = await run_build(tmp_path, "sh", "-c", "echo made; echo warning >&2; echo 1 > made")
    assert result.ok
    assert set(result.output.splitlines()) == {"made", "warning"}
    assert (tmp_path / "made").read_text() == "1\n"


async def test_build_without_isolation_gets_the_users_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("A_CACHE", "/somewhere")
    result = await run_build(tmp_path, "sh", "-c", 'echo "$HOME $A_CACHE"')
    assert result.output == f"{tmp_path} /somewhere\n"


async def test_build_does_not_get_the_password_of_the_database(tmp_path, monkeypatch):
    monkeypatch.setenv("REFEREE_DB", "postgresql+psycopg://ann:secret@h/cup")
    monkeypatch.setenv("PGPASSWORD", "secret")
    assert "secret" not in (await run_build(tmp_path, "env")).output


async def test_failed_build_has_its_exit_code_and_output(tmp_path):
    result = await run_build(tmp_path, "sh", "-c", "echo 'main.c: no semicolon' >&2; exit 3")
    assert not result.ok
    assert result.reason == "exited with 3"
    assert result.output == "main.c: no semicolon\n"


async def test_build_ended_by_a_signal_names_the_signal(tmp_path):
    result = await run_build(tmp_path, "sh", "-c", "kill -SEGV $$")
    assert result.reason == "ended by SIGSEGV"


class FaultLauncher(ProcessGroupLauncher):
    """Starts programs that have a fault after their end, as if the kernel had ended one of their processes."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    async def launch(self, *args, **keywords):
        program = await super().launch(*args, **keywords)
        program.breach = self._find_fault
        return program

    async def _find_fault(self):
        return self.fault


@pytest.mark.parametrize(
    ("end", "says"), [("kill -KILL $$", "ended by SIGKILL"), ("exit 2", "exited with 2")]
)
async def test_failed_build_that_exceeded_its_memory_says_so(tmp_path, end, says):
    fault = Forfeit(Cause.OOM, Evidence(detail="the program takes 5000 MiB"))
    result = await build(("sh", "-c", end), tmp_path, launcher=FaultLauncher(fault))
    assert result.reason == f"{says}: the program takes 5000 MiB"


async def test_build_that_failed_because_the_machine_lacks_memory_charges_no_bot(tmp_path):
    launcher = FaultLauncher(VoidGame("add memory"))
    with pytest.raises(VoidGame, match="add memory"):
        await build(("sh", "-c", "exit 1"), tmp_path, launcher=launcher)
    assert (await build(("true",), tmp_path, launcher=launcher)).ok


GROWS = """
import time
memory = bytearray(200 << 20)
time.sleep(60)
"""
FORKS = """
import threading, time
for _ in range(60):
    threading.Thread(target=time.sleep, args=(60,)).start()
"""


@pytest.mark.parametrize(
    ("script", "limit", "reason"),
    [
        (
            GROWS,
            {"memory_mib": 100},
            "the program takes [12].. MiB of memory; its limit is 100 MiB",
        ),
        (FORKS, {"processes": 5}, "the program runs 61 processes and threads; its limit is 5"),
    ],
)
async def test_limits_of_a_build_hold_without_a_cgroup(
    tmp_path, monkeypatch, script, limit, reason
):
    monkeypatch.setattr(build_module, "LIMITS", replace(build_module.LIMITS, **limit))
    began_s = time.monotonic()
    result = await run_python_build(tmp_path, script)
    assert re.fullmatch(reason, result.reason)
    assert time.monotonic() - began_s < 10
    assert running_descendants() == []


async def test_hanging_build_is_killed_with_all_its_children(tmp_path):
    began_s = time.monotonic()
    result = await run_build(tmp_path, "sh", "-c", "echo begun; sleep 60 & sleep 60", limit_s=0.5)
    assert result.reason == "not finished after 0.5 s"
    assert result.output == "begun\n"
    assert time.monotonic() - began_s < 10
    assert running_descendants() == []


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
os.wait()
"""


async def test_build_that_leaves_a_daemon_fails_and_the_daemon_is_killed(tmp_path):
    result = await run_python_build(tmp_path, DAEMON)
    assert not result.ok
    assert "running: it must end every process that it starts" in result.reason
    assert running_descendants() == []


async def test_child_of_a_build_may_exit_shortly_after_the_build(tmp_path):
    result = await run_build(tmp_path, "sh", "-c", "sleep 0.3 & exit 0")
    assert result.ok


async def test_output_of_a_build_that_prints_without_end_is_capped(tmp_path):
    result = await run_build(tmp_path, "sh", "-c", "yes", limit_s=0.5)
    assert result.reason == "not finished after 0.5 s"
    kept = 1 << 20
    assert kept < len(result.output) < kept + 100
    assert " bytes left out …\n" in result.output


async def test_unknown_missing_program_is_named(tmp_path):
    result = await run_build(tmp_path, "no-such-compiler")
    assert (
        result.reason
        == "the program cannot be started: no-such-compiler is not installed, or not in PATH"
    )


async def test_known_missing_program_comes_with_installation_advice(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = await run_build(tmp_path, "cargo", "build")
    assert result.reason == (
        "the program cannot be started: cargo is not installed; it belongs to Rust: https://rustup.rs (Debian's is often too old)"
    )


async def test_program_that_a_shell_misses_comes_with_installation_advice(tmp_path):
    result = await run_build(tmp_path, "/bin/sh", "-c", "PATH= mvn package")
    assert result.reason == f"exited with 127: {how_to_install('mvn')}"


async def test_missing_program_of_the_bots_folder_is_named(tmp_path):
    result = await run_build(tmp_path, "./configure")
    assert result.reason == (
        "the program cannot be started: ./configure: No such file or directory; if this file exists, the program in its first line (#!)"
        " does not, perhaps because the file has Windows line ends"
    )


GRPC = "gRPC for C++: `apt install libgrpc++-dev protobuf-compiler-grpc`"


async def test_build_that_lacks_a_library_says_which_package_to_install(tmp_path):
    error = "main.cpp:1:10: fatal error: grpcpp/grpcpp.h: No such file or directory"
    result = await run_build(tmp_path, "sh", "-c", f"echo '{error}' >&2; exit 2")
    assert result.reason == f"exited with 2: grpcpp/grpcpp.h is missing; it belongs to {GRPC}"


async def test_beginning_and_end_of_a_long_output_are_kept(tmp_path):
    result = await run_python_build(
        tmp_path, "print('first'); print('x' * 3_000_000); print('last')"
    )
    assert result.output.startswith("first\nxxx")
    assert result.output.endswith("xxx\nlast\n")
    left_out = 3_000_000 + len("first\n" + "\n" + "last\n") - (1 << 20)
    assert f"x\n… {left_out} bytes left out …\nx" in result.output


class NewHomeLauncher(ProcessGroupLauncher):
    """Starts programs without isolation, but builds get a home folder of their own."""

    is_unprotected = False


LIST_HOME = '#!/bin/sh\ncd "$HOME" && find . -type f\n'
CARGO = "./.cargo/registry/a"
GO = "./go/pkg/mod/cache/download/a"


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """Create caches of package managers in a home folder, and return a bot's folder."""
    home = tmp_path / "home"
    for name in (CARGO, "./.cargo/git/db/a", GO, "./go/pkg/mod/cache/vcs/a"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    monkeypatch.setenv("HOME", str(home))
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("cargo", "go"):  # they list what they see
        (programs / name).write_text(LIST_HOME)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    bot = tmp_path / "bot"
    bot.mkdir()
    return bot


def seen_caches(result):
    assert result.ok, result.output
    return {line for line in result.output.splitlines() if line.endswith("/a")}


@pytest.mark.parametrize(("command", "seen"), [("cargo", {CARGO}), ("go", {GO})])
async def test_build_gets_the_caches_of_its_program_without_repositories(caches, command, seen):
    result = await build((command,), caches, launcher=NewHomeLauncher())
    assert seen_caches(result) == seen


@pytest.mark.parametrize(("file", "seen"), [("Cargo.lock", {CARGO}), ("go.mod", {GO})])
async def test_fetch_gets_the_caches_of_its_package_manager_without_repositories(
    caches, file, seen
):
    (caches / file).touch()
    result = await build(("true",), caches, launcher=NewHomeLauncher())
    assert seen_caches(result) == seen


@pytest.mark.parametrize("command", [("true",), ("cargo",)])
async def test_fetch_of_the_manifest_gets_no_caches(caches, command):
    program = caches / "cargo"
    program.write_text(LIST_HOME)
    program.chmod(0o755)
    result = await build(command, caches, launcher=NewHomeLauncher(), fetch=("./cargo",))
    assert "$ ./cargo" in result.output
    assert seen_caches(result) == set()


@pytest.mark.isolation("namespaces")
@pytest.mark.parametrize("home", ["/", "", "/usr", "/bin", "/dev/x", "/proc", "here"])
async def test_sandboxed_build_has_a_home_folder_wherever_home_is(tmp_path, monkeypatch, home):
    launcher = make_launcher(strongest())
    tmp_path.chmod(0o755)
    bot = tmp_path / "bot"
    bot.mkdir()
    monkeypatch.setenv("HOME", home)
    monkeypatch.chdir(bot)
    result = await build(("sh", "-c", 'touch "$HOME/x" && echo "$HOME"'), bot, launcher=launcher)
    assert result.ok, f"{result.reason} {result.output}"
    assert result.output == "/home/build\n"


async def test_bot_with_too_long_paths_fails_with_a_reason(caches):
    bot = folder = caches
    while (rest := 4_085 - len(str(folder))) > 0:
        folder /= "d" * min(rest, 200)
    folder.mkdir(parents=True)
    (folder / "a.rs").touch()
    (bot / "Cargo.lock").touch()
    result = await build(("true",), bot, launcher=NewHomeLauncher())
    assert result.is_fetch
    assert result.reason == "the bot's files cannot be copied for cargo: File name too long"


@pytest.mark.toolchain("java")
async def test_java_finds_a_home_folder_with_spaces_and_quotes(tmp_path):
    bot = tmp_path / "my bot's" / "bot"
    bot.mkdir(parents=True)
    command = ("java", "-XshowSettings:properties", "-version")
    result = await build(command, bot, launcher=NewHomeLauncher(), fetch=command)
    assert result.ok, result.output
    shown = [line for line in result.output.splitlines() if "user.home = " in line]
    assert [line.startswith(f"    user.home = {bot.parent}/home-") for line in shown] == [True] * 2


def fail_to_copy(monkeypatch, number):
    """Let `shutil` fail to copy each file of which the name begins with `bad`."""

    def copy(source, target, **more):
        if Path(source).name.startswith("bad"):
            raise OSError(number, os.strerror(number), source)
        return copyfile(source, target, **more)

    copyfile = shutil.copyfile
    monkeypatch.setattr(shutil, "copyfile", copy)


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.EIO])
async def test_file_of_a_cache_that_cannot_be_read_is_left_out(
    caches, tmp_path, monkeypatch, number
):
    registry = tmp_path / "home" / ".cargo" / "registry"
    (registry / "bad").touch()
    os.mkfifo(registry / "pipe")
    fail_to_copy(monkeypatch, number)
    result = await build(("cargo",), caches, launcher=NewHomeLauncher())
    assert seen_caches(result) == {CARGO}
    assert "bad" not in result.output


async def test_full_disk_during_the_copy_of_a_cache_charges_no_bot(caches, tmp_path, monkeypatch):
    (tmp_path / "home" / ".cargo" / "registry" / "bad").touch()
    fail_to_copy(monkeypatch, errno.ENOSPC)
    with pytest.raises(Shortage, match="/registry/bad: No space left on device"):
        await build(("cargo",), caches, launcher=NewHomeLauncher())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
async def test_full_disk_charges_no_bot(caches, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(build_module, "copy_files", fail)
    (caches / "go.mod").touch()
    with pytest.raises(VoidGame, match="the referee cannot write the folders of a build: "):
        await build(("true",), caches, launcher=NewHomeLauncher())


async def test_too_long_path_of_a_socket_is_no_fault_of_the_bot(caches, tmp_path, monkeypatch):
    class Sandboxed(NewHomeLauncher):
        is_sandboxed = True

    long = tmp_path / ("t" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    (caches / "go.mod").touch()
    with pytest.raises(UserError, match="too long for a socket; set TMPDIR to a shorter one"):
        await build(("true",), caches, launcher=Sandboxed())
    left = {each.name for each in tmp_path.iterdir()}
    assert left == {"bot", "home", "programs", long.name}
