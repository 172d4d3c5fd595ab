"""Test which package manager fetches for a bot, and what it sees. Real fetches need toolchains and registries."""

import json
import os
import sys

import pytest
from strongest_isolation import strongest

from referee.bots import PYTHON_PACKAGES
from referee.bots.build import build
from referee.bots.fetch import MANAGERS, copy_files, plan_fetches
from referee.bots.registries import read_registries
from referee.errors import UserError
from referee.sandbox.gateway import Address
from referee.sandbox.ladder import make_launcher
from referee.sandbox.process_group import ProcessGroupLauncher

ADDRESSES = {Address("registry.example", 443)}
BUILD = ("make",)


def write(folder, **files):
    """Write files; `__` in a name stands for a dot, and `/` is kept."""
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def programs(folder, build=BUILD, custom=None):
    return [fetch.command[0] for fetch in plan_fetches(folder, build, custom)]


def files_of(folder):
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


@pytest.mark.parametrize(
    ("file", "program"),
    [
        ("go.mod", "go"),
        ("Cargo.lock", "cargo"),
        ("package-lock.json", "npm"),
        ("pom.xml", "mvn"),
        ("requirements.txt", "python3"),
    ],
)
def test_package_manager_follows_from_the_files_of_the_bot(tmp_path, file, program):
    assert programs(tmp_path) == []
    (tmp_path / file).touch()
    assert programs(tmp_path) == [program]


def test_bot_that_brings_its_packages_along_fetches_none(tmp_path):
    for name in ("go.mod", "package-lock.json", "requirements.txt"):
        (tmp_path / name).touch()
    for name in ("node_modules", "site-packages", "vendor"):
        (tmp_path / name).mkdir()
    (tmp_path / "vendor/modules.txt").touch()
    assert programs(tmp_path) == []


def test_bot_without_a_build_fetches_only_what_it_needs_to_run(tmp_path):
    for manager in MANAGERS.values():
        (tmp_path / manager.files[0]).touch()
    assert programs(tmp_path, build=None) == ["npm", "python3"]


def test_command_of_the_manifest_replaces_the_package_managers(tmp_path):
    (tmp_path / "go.mod").touch()
    assert programs(tmp_path, custom=("bundle", "install")) == ["bundle"]
    assert programs(tmp_path, custom=()) == []


async def test_package_in_the_bots_folder_is_refused_unless_the_manifest_fetches_nothing(tmp_path):
    write(
        tmp_path,
        Cargo__lock="",
        Cargo__toml='[dependencies]\nlocal = { path = "local" }\n',
    )
    launcher = ProcessGroupLauncher()
    refused = await build(("true",), tmp_path, launcher=launcher)
    assert refused.reason.startswith("Cargo.toml: dependencies.local.path: ")
    assert "or set build.fetch in bot.toml" in refused.reason
    assert (await build(("true",), tmp_path, launcher=launcher, fetch=())).ok


def test_maven_runs_the_goals_of_the_build_without_sources(tmp_path):
    (tmp_path / "pom.xml").touch()
    [fetch] = plan_fetches(tmp_path, ("mvn", "-q", "verify"), None)
    skip = ("-Dmaven.main.skip=true", "-Dmaven.test.skip=true")
    assert fetch.command == ("mvn", *skip, "-q", "verify")
    [fetch] = plan_fetches(tmp_path, ("sh", "build.sh"), None)
    assert fetch.command == ("mvn", *skip, "-B", "package")


def test_npm_runs_no_scripts_and_pip_takes_only_wheels():
    assert "--ignore-scripts" in MANAGERS["npm"].command
    assert "--only-binary=:all:" in MANAGERS["pip"].command


@pytest.mark.parametrize("name", MANAGERS)
def test_package_manager_sees_only_the_files_that_name_packages(tmp_path, name):
    bot, work = tmp_path / "bot", tmp_path / "work"
    work.mkdir()
    contents = {
        "Cargo.lock": "",
        "Cargo.toml": "",
        "go.mod": "",
        "go.sum": "",
        "package.json": "{}",
        "package-lock.json": "{}",
        "pom.xml": "<project/>",
        "requirements.txt": "numpy",
        "bot.py": "print()",
        "src/main.rs": "fn main() {}",
        "src/Bot.java": "class Bot {}",
        "proto/a.proto": "syntax",
        ".npmrc": "script-shell=x",
        ".cargo/config.toml": "",
        ".mvn/jvm.config": "-javaagent:x",
        "setup.py": "evil",
    }
    write(bot, **contents)
    copy_files(MANAGERS[name], bot, work, ADDRESSES)
    more = {"cargo": ["src/main.rs"], "mvn": ["proto/a.proto"]}.get(name, [])
    assert files_of(work) == sorted([*MANAGERS[name].files, *more])
    if name == "cargo":  # it wants the file to exist
        assert (work / "src/main.rs").read_text() == ""


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "large", "deep", "extensions"])
def test_strange_file_is_refused_and_named(tmp_path, kind):
    bot, work = tmp_path / "bot", tmp_path / "work"
    bot.mkdir()
    work.mkdir()
    file, manager = bot / "package-lock.json", MANAGERS["npm"]
    match kind:
        case "link":
            file.symlink_to("/etc/passwd")
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "large":
            with file.open("wb") as opened:
                opened.truncate((2 << 20) + 1)
        case "deep":
            file.write_text('{"dependencies":' * 100_000)
        case "extensions":
            manager = MANAGERS["mvn"]
            write(bot, **{".mvn/extensions.xml": "<extensions/>", "pom.xml": "<project/>"})
    with pytest.raises(UserError, match=r"^(package-lock.json|.mvn/extensions.xml): "):
        copy_files(manager, bot, work, ADDRESSES)


async def test_refused_package_fails_before_any_program_runs(tmp_path):
    bot = tmp_path / "bot"
    write(bot, requirements__txt="-e .\n", setup__py="open('ran', 'w')")
    result = await build(("touch", "ran"), bot, launcher=ProcessGroupLauncher())
    assert result.is_fetch
    assert result.reason.startswith("requirements.txt: -e .: options are not allowed")
    assert not (bot / "ran").exists()
    assert files_of(tmp_path) == ["bot/requirements.txt", "bot/setup.py"]


async def test_fetch_of_the_manifest_runs_before_the_build_in_the_bots_folder(tmp_path):
    result = await build(
        ("sh", "-c", "cat got"),
        tmp_path,
        launcher=ProcessGroupLauncher(),
        fetch=("sh", "-c", "echo lib > got"),
    )
    assert result.ok
    assert result.output == "$ sh -c echo lib > got\n$ sh -c cat got\nlib\n"


async def test_fetch_and_the_build_with_its_packages_use_the_python_of_the_referee(
    tmp_path, monkeypatch
):
    other = tmp_path / "other" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho the python of the user\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{other.parent}:{os.environ['PATH']}")
    bot = tmp_path / "bot"
    bot.mkdir()
    show = ("python3", "-c", "import sys; print(sys.prefix)")
    make = ("sh", "-c", f"mkdir {PYTHON_PACKAGES}; python3 -c 'import sys; print(sys.prefix)'")
    result = await build(show, bot, launcher=ProcessGroupLauncher(), fetch=make)
    assert result.output.splitlines()[1::2] == [sys.prefix, sys.prefix]


async def test_failed_fetch_says_which_command_failed(tmp_path):
    command = ("sh", "-c", "echo no such package; exit 3")
    result = await build(("touch", "ran"), tmp_path, launcher=ProcessGroupLauncher(), fetch=command)
    assert result.is_fetch
    assert result.reason == "build.fetch: exited with 3"
    assert not (tmp_path / "ran").exists()


async def test_build_runs_if_no_registry_can_be_reached_because_caches_may_have_everything(
    tmp_path,
):
    command = ("sh", "-c", "echo dial tcp: no such host; exit 1")
    launcher = ProcessGroupLauncher()
    assert (await build(("true",), tmp_path, launcher=launcher, fetch=command)).ok
    result = await build(("false",), tmp_path, launcher=launcher, fetch=command)
    assert not result.is_fetch
    assert result.reason.endswith("exited with 1; before that, build.fetch: exited with 1")


REACH = """
import json, os, socket, urllib.request
def reach(host, port):
    try:
        socket.create_connection((host, port), timeout=3).close()
        return True
    except OSError:
        return False
def get(url):
    try:
        urllib.request.urlopen(url, timeout=10).close()
        return "got"
    except OSError as error:
        return str(error)
print(json.dumps({
    "loopback": reach("127.0.0.1", int(os.environ.get("PORT", 0)) or %d),
    "elsewhere": reach("192.0.2.1", 443),
    "by the gateway": get("http://localhost:%d/"),
    "variables": sorted(os.environ),
    "home": sorted(os.listdir(os.environ["HOME"])),
}))
"""


@pytest.mark.isolation("namespaces")
async def test_fetch_in_a_sandbox_reaches_neither_this_machine_nor_other_hosts(
    tmp_path, monkeypatch
):
    import asyncio  # noqa: PLC0415 - only this test serves

    monkeypatch.setenv("MY_PASSWORD", "secret")
    tmp_path.chmod(0o755)
    bot = tmp_path / "bot"
    bot.mkdir()
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as here:
        port = here.sockets[0].getsockname()[1]
        write(bot, look__py=REACH % (port, port))
        launcher = make_launcher(strongest())
        result = await build(None, bot, launcher=launcher, fetch=("python3", "look.py"))
    assert result.ok, result.output
    seen = json.loads(result.output.splitlines()[-1])
    assert (seen["loopback"], seen["elsewhere"]) == (False, False)
    assert "403" in seen["by the gateway"]
    assert "MY_PASSWORD" not in seen["variables"]
    assert ".ssh" not in seen["home"]


@pytest.mark.extended("fetches a package from a registry")
@pytest.mark.isolation("namespaces")
async def test_wheel_is_fetched_and_given_to_the_build(tmp_path):
    tmp_path.chmod(0o755)
    bot = tmp_path / "bot"
    write(bot, requirements__txt="six==1.16.0\n")
    use = ("python3", "-c", "import six; print(six.__file__)")
    result = await build(use, bot, launcher=make_launcher(strongest()))
    assert result.ok, f"{result.reason}\n{result.output}"
    assert (bot / "site-packages/six.py").exists()
    assert result.output.endswith("/site-packages/six.py\n")


PACKAGE = """{"name": "bot", "version": "1.0.0", "dependencies": {"is-number": "7.0.0"},
"scripts": {"preinstall": "touch evil", "install": "touch evil", "prepare": "touch evil"}}"""
LOCK = """{"name": "bot", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
"": {"name": "bot", "version": "1.0.0", "dependencies": {"is-number": "7.0.0"}, "hasInstallScript": true},
"node_modules/is-number": {"version": "7.0.0", "resolved": "https://registry.npmjs.org/is-number/-/is-number-7.0.0.tgz",
"integrity": "sha512-41Cifkg6e8TylSpdtTpeLVMqvSBEVzTttHvERD741+pnZ8ANv0004MRL43QKPDlK9cGvNp6NZWZUBlbGXYxxng=="}}}"""


@pytest.mark.extended("fetches a package from a registry")
@pytest.mark.isolation("namespaces")
@pytest.mark.toolchain("npm")
async def test_packages_of_npm_are_fetched_without_running_the_bots_scripts(tmp_path):
    tmp_path.chmod(0o755)
    bot = tmp_path / "bot"
    write(
        bot,
        **{"package.json": PACKAGE, "package-lock.json": LOCK, ".npmrc": "ignore-scripts=false"},
    )
    result = await build(None, bot, launcher=make_launcher(strongest()))
    assert result.ok, f"{result.reason}\n{result.output}"
    assert (bot / "node_modules/is-number/package.json").exists()
    assert not list(tmp_path.rglob("evil"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bot"]


def test_every_manager_has_settings_for_its_registry():
    hosts = {address.host for address in read_registries(home=None, environment={}).addresses}
    assert hosts >= {
        *("pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "proxy.golang.org"),
        *("index.crates.io", "static.crates.io", "repo.maven.apache.org"),
    }
