"""Build the wheel, install it outside the clone, and use it as after an installation from a package index."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from strongest_isolation import strongest

from referee.roster import roster

ROOT = Path(__file__).parents[1]
SITE_PACKAGES = Path(sysconfig.get_path("purelib"))
TIMEOUT_S = 120
pytestmark = [
    pytest.mark.unmeasured,
    pytest.mark.extended("builds and installs the wheel"),
]


def run(*command, cwd, **environment):
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def list_made(clone):
    """Return a file for each thing that a build of a sample bot makes, by its `.gitignore`."""
    made = []
    for ignored in sorted(clone.glob("sample_bots/*/.gitignore")):
        for line in ignored.read_text().splitlines():
            path = ignored.parent / line.strip("/")
            made.append(path / "made" / "by_a_build" if line.endswith("/") else path)
    return made


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Copy all files that git knows, with their present content. Beside them, make what builds of the sample bots leave."""
    target = tmp_path_factory.mktemp("clone")
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        source = ROOT / name
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            (target / name).symlink_to(source.readlink())
        elif source.exists():
            shutil.copy(source, target / name)
    for made in list_made(target):
        made.parent.mkdir(parents=True, exist_ok=True)
        made.touch()
    return target


@pytest.fixture(scope="module")
def wheel(clone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ".")
    run(sys.executable, "-m", "pip", *build, cwd=clone)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Create an environment with this wheel and with copies of all packages that the tests use."""
    folder = tmp_path_factory.mktemp("environment")
    folder.chmod(0o755)  # under root, bots are another user
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    own = shutil.ignore_patterns("__editable__*", "linko_referee*", "referee")
    shutil.copytree(SITE_PACKAGES, packages, ignore=own, copy_function=link, dirs_exist_ok=True)
    install = ("install", "--no-deps", "--no-index", wheel)
    run(sys.executable, "-m", "pip", "--python", python, *install, cwd=folder)
    return folder


def link(source, target):
    """Make a hard link, which takes no time, or copy the file if it is on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def test_wheel_has_every_file_of_the_templates(wheel, tmp_path):
    names = set(zipfile.ZipFile(wheel).namelist())
    for language, sample in roster.LANGUAGES.items():
        folder = tmp_path / sample
        roster.create_bot(folder, name="mine", language=language, author="Ada")
        files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert {f"referee/sample_bots/{sample}/{file}" for file in files} <= names
    assert not [name for name in names if "__pycache__" in name]


def test_wheel_has_nothing_that_a_build_of_a_sample_bot_makes(clone, wheel):
    made = {f"referee/{path.relative_to(clone)}" for path in list_made(clone)}
    assert made
    assert sorted(made.intersection(zipfile.ZipFile(wheel).namelist())) == []


def test_wheel_has_types_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "referee/py.typed" in names
    folders = {name.split("/")[0] for name in names}
    assert folders == {"referee", wheel.name.rsplit("-", 3)[0] + ".dist-info"}


def test_pip_installs_from_the_clone_what_the_wheel_has(clone, wheel, tmp_path):
    install = ("install", "--no-deps", "--no-build-isolation", "--target", tmp_path, ".")
    run(sys.executable, "-m", "pip", *install, cwd=clone)
    package = [path for path in (tmp_path / "referee").rglob("*") if path.is_file()]
    installed = {str(path.relative_to(tmp_path)) for path in package if path.suffix != ".pyc"}
    names = zipfile.ZipFile(wheel).namelist()
    assert installed == {name for name in names if name.startswith("referee/")}


def test_installed_wheel_plays_a_tournament_of_its_sample_bots(installed, tmp_path):
    """The bots run under the strongest isolation. The scripts of the sandbox come from the wheel too."""
    environment = {"REFEREE_LEAGUE": "", "PYTHONPATH": ""}
    environment |= {"PATH": f"{installed / 'bin'}:{os.environ['PATH']}"}
    cwd = tmp_path / "elsewhere"
    cwd.mkdir()

    def referee(*arguments):
        return run(installed / "bin" / "referee", *arguments, cwd=cwd, **environment)

    where = "import referee; print(referee.__file__)"
    package = Path(run(installed / "bin" / "python", "-c", where, cwd=cwd, **environment)).parent
    assert package.is_relative_to(installed)
    bots = [str(package / "sample_bots" / name) for name in ("random", "greedy", "bait")]
    (cwd / "cup.toml").write_text(
        f'name = "cup"\nruleset = "classic"\nseats = 3\nmatches = 2\nbots = {json.dumps(bots)}\n'
    )
    assert "All games are played." in referee("tournament", "run", "cup.toml")
    assert referee("verify") == "cup: 6 games verified.\n"
    assert {row["bot"].split("@")[0] for row in json.loads(referee("ratings", "--json"))} == {
        "random",
        "greedy",
        "bait",
    }
    (first, *_) = json.loads(referee("game", "list", "--json"))
    shown = json.loads(referee("game", "show", first["game_id"], "--json"))
    assert shown["isolation"] == strongest().summary
    sample = f"from referee.roster.roster import is_sample_bot as f; print(f(Path({bots[0]!r})))"
    script = f"from pathlib import Path; {sample}"
    assert run(installed / "bin" / "python", "-c", script, cwd=cwd, **environment) == "True\n"
    referee("bots", "init", "mine", "--author", "Ada")
    assert "mine" in referee("play", "./mine", bots[0], "--isolation", strongest().rung.value)
