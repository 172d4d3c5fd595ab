"""Provide the six bots. Each is built once in a run, with any number of test processes."""

import os

import pytest
from six_bots import SIX, as_parameters, build


@pytest.fixture(scope="session")
def league(tmp_path_factory):
    """Return a league that all test processes of the run share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "languages"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session", params=as_parameters(SIX))
def spec(request, league):
    """Return each of the six bots, built."""
    return build(request.param, league)


@pytest.fixture
def short_folder(tmp_path_factory):
    """Return a folder with a short path, because the path of a socket is limited."""
    return tmp_path_factory.mktemp("l")
