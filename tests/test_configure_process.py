import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import referee

ROOT = Path(__file__).resolve().parents[1]


def run(script, **environment):
    """Run a script in a fresh interpreter and return what it prints."""
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},
    ).stdout.strip()


def test_distribution_takes_its_version_from_the_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert settings["dynamic"]["version"] == {"attr": "referee.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", referee.__version__)


@pytest.mark.extended("imports every module in a process of its own")
def test_import_of_any_module_leaves_environment_and_garbage_collector_alone():
    files = [file.relative_to(ROOT) for file in (ROOT / "referee").rglob("*.py")]
    modules = sorted(
        ".".join(file.with_suffix("").parts).removesuffix(".__init__")
        for file in files
        if not {"migrations", "sample_bots"} & set(file.parts)  # not imported as modules of referee
    )
    assert len(modules) > 100
    script = f"""
import gc, importlib, os
import gymnasium, pettingzoo  # libraries for training, which set variables

def state():
    return dict(os.environ), gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()

before = state()
for name in {modules}:
    importlib.import_module(name)
    assert state() == before, name
if os.fork() == 0:
    os._exit(gc.get_freeze_count())  # not 0 if an import has registered a fork handler
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert run(script) == "0"


def test_import_of_referee_loads_none_of_its_modules():
    script = "import sys, referee; print([name for name in sys.modules if 'referee.' in name])"
    assert run(script) == "[]"


def test_configure_process_keeps_only_the_experiments_that_a_user_has_chosen():
    script = """
import os
from referee import configure_process
configure_process()
print(*(f"{name}={os.environ[name]}" for name in sorted(os.environ) if name.startswith("GRPC_")))
"""
    default = (
        "GRPC_ENABLE_FORK_SUPPORT=0 GRPC_EXPERIMENTS=-event_engine_listener GRPC_VERBOSITY=NONE"
    )
    assert run(script) == default
    chosen = {"GRPC_ENABLE_FORK_SUPPORT": "1", "GRPC_EXPERIMENTS": "", "GRPC_VERBOSITY": "DEBUG"}
    assert run(script, **chosen) == default.replace("-event_engine_listener", "")


def test_configure_process_makes_collections_rare_but_keeps_them():
    script = """
import gc
from referee import configure_process
young, middle, _ = gc.get_threshold()
configure_process()
rarer_young, rarer_middle, _ = gc.get_threshold()
print(gc.isenabled(), rarer_young > young, rarer_middle > middle)
"""
    assert run(script) == "True True True"
