"""Tests which toolchains a sandbox shows."""

import os
import platform
import pwd
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from programs import tool

from referee.errors import UserError
from referee.sandbox import Access, Limits, bubblewrap, mounts, toolchains
from referee.sandbox.folders import require_home
from referee.sandbox.resources import ProgramSpec

NOBODY = 65534


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home" / "ann"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def find(program, *folders):
    """Return the toolchains of `program` in the folders of a test, without the interpreter of the test."""
    path = os.pathsep.join(map(str, folders))
    interpreter = {Path(sys.prefix), Path(sys.base_prefix), Path(toolchains.__file__).parents[1]}
    return [each for each in toolchains.find_toolchains(program, path) if each not in interpreter]


@pytest.mark.parametrize("where", [".", ".local"])
def test_of_a_python_in_a_home_folder_only_its_own_files_are_shown(home, where, monkeypatch):
    prefix = (home / where).resolve()
    (prefix / "bin").mkdir(parents=True)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (prefix / "lib" / name).mkdir(parents=True)
    (prefix / "lib" / "libpython3.so").touch()
    (prefix / "share" / "keyrings").mkdir(parents=True)
    (home / ".ssh").mkdir()
    for attribute in ("prefix", "base_prefix", "base_exec_prefix"):
        monkeypatch.setattr(sys, attribute, str(prefix))
    toolchains._interpreter.cache_clear()
    try:
        shown = toolchains.find_toolchains("none", "")
    finally:
        toolchains._interpreter.cache_clear()
    own = [prefix / "bin", prefix / "lib" / "libpython3.so", prefix / "lib" / name]
    assert [each for each in shown if home in each.parents or each == home] == own
    assert toolchains.find_interpreter() == own


def test_whole_installation_of_a_program_in_bin_is_shown(home):
    node = tool(home / ".nvm" / "v20" / "bin" / "node")
    (home / ".nvm" / "v20" / "lib").mkdir()
    assert find("node", node.parent) == [home / ".nvm" / "v20"]


@pytest.mark.parametrize("where", [".local/bin", "bin", ".cargo/bin"])
def test_only_the_bin_folder_is_shown_if_private_files_lie_beside_it(home, where):
    program = tool(home / where / "tool")
    (program.parents[1] / ".local/share").mkdir(parents=True, exist_ok=True)
    assert find("tool", program.parent) == [program.parent]


def test_a_home_folder_is_never_shown(home):
    tool(home / "tool")
    assert find("tool", home, home.parent, "/", "relative/bin") == []


@pytest.mark.parametrize("where", ["shims", ".local/shims", "../shims"])
def test_shims_beside_private_files_are_shown_alone(home, where):
    shims = tool((home / where).resolve() / "python3").parent
    assert find("python3", shims) == [shims]


def test_home_folder_behind_a_link_is_never_shown(home, monkeypatch):
    link = home.with_name("link")
    link.symlink_to(home)
    monkeypatch.setenv("HOME", str(link))
    shims = tool(home / "shims" / "python3").parent
    (home / "lib").mkdir()
    programs = tool(home / "bin" / "python3").parent
    assert find("python3", link / "shims", programs) == [
        *(programs, shims),
        link / "shims",
    ]


def test_home_folder_behind_a_detour_is_never_shown(home):
    (home / "lib").mkdir()
    (home / "tools").mkdir()
    tool(home / "bin" / "tool")
    detour = home / "tools" / ".."
    assert find("tool", detour / "bin", detour) == [home / "bin", detour / "bin"]


def test_target_of_a_linked_local_folder_is_never_shown(home):
    tool(home.with_name("disk") / "bin" / "tool")
    (home.with_name("disk") / "share").mkdir()
    link = home / ".local"
    link.symlink_to(home.with_name("disk"))
    assert find("tool", link / "bin") == [link / "bin", link.resolve() / "bin"]


@pytest.mark.parametrize("where", ["bin", ".local/bin"])
@pytest.mark.parametrize("function", ["getpwall", "getpwuid", "getpwnam"])
def test_home_folder_of_an_account_is_never_shown(home, monkeypatch, function, where):
    """After sudo or with another HOME, PATH can still name folders of a user's own home folder."""

    def find_none(*_):
        raise KeyError

    account = SimpleNamespace(pw_dir=str(home))
    for each in ("getpwuid", "getpwnam"):
        monkeypatch.setattr(pwd, each, (lambda _: account) if each == function else find_none)
    monkeypatch.setattr(pwd, "getpwall", lambda: [account] if function == "getpwall" else [])
    monkeypatch.setenv("SUDO_USER", "ann")
    monkeypatch.setenv("HOME", str(home.with_name("other")))
    programs = tool(home / where / "tool").parent
    (programs.parent / "share").mkdir()
    assert find("tool", programs, home, home.parent) == [programs]


def test_target_of_a_link_is_shown(home):
    real = tool(home / "opt" / "jdk" / "bin" / "java")
    (home / "opt" / "jdk" / "lib").mkdir()
    link = home / "links" / "java"
    link.parent.mkdir()
    link.symlink_to(real)
    assert find("java", link.parent) == [home / "links", home / "opt" / "jdk"]


def test_interpreter_of_a_script_is_shown(home):
    tool(home / "py" / "bin" / "snake")
    (home / "py" / "lib").mkdir()
    tool(home / "scripts" / "run", "#!/usr/bin/env snake\n")
    folders = (home / "scripts", home / "py" / "bin")
    assert find("run", *folders) == [home / "py", home / "scripts"]


def test_virtual_environment_is_shown_with_its_interpreter(home):
    tool(home / "pythons" / "3.12" / "bin" / "python3")
    (home / "pythons" / "3.12" / "lib").mkdir()
    venv = home / "bot" / ".venv"
    tool(venv / "bin" / "pip")
    (venv / "lib").mkdir()
    (venv / "pyvenv.cfg").write_text(f"home = {home}/pythons/3.12/bin\nversion = 3.12\n")
    assert find("pip", venv / "bin") == [venv, home / "pythons" / "3.12"]


@contextmanager
def no_privileges():
    """Let root be a user who may not enter every folder."""
    is_root = os.geteuid() == 0
    if is_root:
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        if is_root:
            os.setresuid(0, 0, 0)


def test_closed_folders_and_loops_of_links_are_not_shown(home, monkeypatch):
    monkeypatch.setattr(toolchains, "_interpreter", tuple)
    node = tool(home / "open" / "node").parent
    environment = home / "environment"
    (environment / "bin").mkdir(parents=True)
    (environment / "lib").mkdir()
    (environment / "pyvenv.cfg").write_text(f"home = {home}/closed/bin\n")
    tool(home / "closed" / "bin" / "node")
    (home / "closed" / "lib").mkdir()
    (home / "loop").symlink_to("loop")
    for parent in home.parents[:-2]:
        parent.chmod(0o711)
    (home / "closed").chmod(0)
    places = [home / "closed", home / "closed/bin", home / "loop", environment / "bin", node]
    try:
        with no_privileges():
            assert find("node", *places) == sorted([environment, node])
    finally:
        (home / "closed").chmod(0o755)


def test_shims_are_shown_with_their_prefix(home):
    tool(home / ".pyenv" / "shims" / "python3")
    assert find("python3", home / ".pyenv" / "shims") == [home / ".pyenv"]


def test_folders_of_the_system_are_no_toolchains():
    assert find("sh", "/usr/bin", "/bin", "/no/such/folder") == []


def test_trial_of_an_overlay_that_takes_too_long_has_no_result(tmp_path, monkeypatch):
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\nexec sleep 60\n")
    bwrap.chmod(0o755)
    overlays = mounts.Overlays(bwrap)
    with monkeypatch.context() as quick:
        quick.setattr(mounts, "_TRIAL_LIMIT_S", 0.1)
        with pytest.raises(OSError, match=r"the trial of an overlay did not end within 0\.1 s"):
            overlays.are_possible(tmp_path)
    bwrap.write_text("#!/bin/sh\n")
    assert overlays.are_possible(tmp_path)


def test_user_without_a_home_folder_has_toolchains_but_no_build(monkeypatch, tmp_path):
    def fail():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", fail)
    opened = tool(tmp_path / "go" / "bin" / "go").parent
    assert find("go", opened, "/bin") == [opened]  # and not /
    with pytest.raises(UserError, match="has no account and no home folder: set HOME"):
        require_home()


@pytest.mark.parametrize(
    "option",
    [
        *(f"--unshare-{name}" for name in ("cgroup-try", "ipc", "net", "pid", "user", "uts")),
        *("--cap-drop ALL", "--die-with-parent", "--new-session", "--seccomp 4"),
        *("--remount-ro /", "--remount-ro /dev"),
    ],
)
def test_bubblewrap_is_asked_for_every_protection(tmp_path, option):
    """If a protection fails, the tests of sandboxes are skipped as on a machine that does not give it."""
    bwrap = Path("/usr/bin/bwrap")
    program = ProgramSpec(("true",), tmp_path, {}, Limits(), Access())
    shown = mounts.Mounts(None, mounts.Overlays(bwrap), None)
    words = bubblewrap.command_line(bwrap, program, shown, has_filter=True)
    assert f" {option} " in " ".join(words)


@pytest.mark.parametrize(
    "where", ["/var/../tmp", "/etc", "/etc/x", "/home/..", "/home/../usr", "/lib64"]
)
def test_build_has_another_home_if_its_own_would_hide_files(monkeypatch, where):
    monkeypatch.setenv("HOME", where)
    assert bubblewrap.find_build_home() == Path("/home/build")


def test_build_has_its_home_at_the_path_of_the_users_home(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    assert bubblewrap.find_build_home() == Path("/home/ann")


@pytest.mark.parametrize(
    ("release", "counts"),
    [("5.13.19-generic", False), ("5.14.0-427.el9", True), ("4.19.0", False), ("6.1.0-13", True)],
)
def test_limits_count_in_a_namespace_from_linux_5_14_on(monkeypatch, release, counts):
    monkeypatch.setattr(platform, "release", lambda: release)
    assert bubblewrap._counts_by_namespace() is counts


def test_folder_behind_a_link_to_a_home_is_private(tmp_path, monkeypatch):
    """The home a/ann leads to y/ann, and the link a to x: so x contains a home, too."""
    (tmp_path / "x").mkdir()
    (tmp_path / "y" / "ann").mkdir(parents=True)
    (tmp_path / "a").symlink_to("x")
    (tmp_path / "x" / "ann").symlink_to(tmp_path / "y" / "ann")
    monkeypatch.setattr(pwd, "getpwall", lambda: [SimpleNamespace(pw_dir="relative")])
    monkeypatch.chdir(tmp_path)
    toolchains._home_folders.cache_clear()
    found = toolchains._home_folders(tmp_path / "a" / "ann")
    assert tmp_path / "x" in found
    assert not {Path("relative"), tmp_path / "relative"} & found
