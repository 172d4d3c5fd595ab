"""The six bots, built once in a run whatever the number of test processes."""

import os

import pytest
from six_bots import SIX, as_parameters, built


@pytest.fixture(scope="session")
def league(tmp_path_factory):
    """A league whose copies of bots all processes of the run have in common."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "languages"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session", params=as_parameters(SIX))
def spec(request, league):
    """Each of the six, built."""
    return built(request.param, league)


@pytest.fixture
def short_folder(tmp_path_factory):
    """Short, for the path of a socket must be."""
    return tmp_path_factory.mktemp("l")
