"""Skips the tests of this folder if the libraries of the extra `train` are missing, as for Python 3.15."""

from importlib.util import find_spec

import pytest

MISSING = [name for name in ("gymnasium", "pettingzoo", "pyspiel") if find_spec(name) is None]


class SkippedModule(pytest.Module):
    def collect(self):
        pytest.skip(f"needs {', '.join(MISSING)}", allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    return SkippedModule.from_parent(parent, path=module_path) if MISSING else None
