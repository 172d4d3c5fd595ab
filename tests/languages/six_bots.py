"""The six bots that follow one policy, and how they are built for the tests: once in a run.

Under the strongest isolation that there is, with the network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from strongest_isolation import strongest

from referee.bots.manifest import BotSpec
from referee.roster.workshop import BuildError, Workshop
from referee.sandbox.ladder import make_launcher

FOLDER = Path(__file__).parents[2] / "sample_bots"


class SampleBot(NamedTuple):
    """What is said of one of the six beside its folder."""

    language: str
    toolchain: tuple[str, ...] = ()
    """The programs that it is built and run with."""
    tests: tuple[str, ...] = ()
    """The commands by which its own tests are run, as they stand in its README."""


SIX = {
    "greedy": SampleBot("python"),
    "greedy_go": SampleBot("go", ("go",), ("go vet ./... && go test ./...",)),
    "greedy_rust": SampleBot("rust", ("cargo",), ("cargo test --release",)),
    "greedy_java": SampleBot("java", ("mvn", "javac"), ("mvn test",)),
    "greedy_typescript": SampleBot("typescript", ("node", "npm"), ("npm ci", "npm test")),
    "greedy_cpp": SampleBot(
        "cpp",
        ("cmake", "make", "g++", "protoc", "grpc_cpp_plugin"),
        ("cmake --workflow --preset test",),
    ),
}
"""By their folders, which are their names."""


def as_parameters(names: Iterable[str]) -> list:
    """Return names of bots as parameters of tests, with marks for those that have to be compiled."""
    return [pytest.param(name, marks=marks_of(*SIX[name].toolchain)) for name in names]


def marks_of(*programs: str) -> list:
    """Return the marks of a test that needs these programs to build a bot."""
    if not programs:
        return []
    return [
        pytest.mark.toolchain(*programs),
        pytest.mark.extended("builds bots in five other languages"),
    ]


def built(name: str, league: Path) -> BotSpec:
    """A bot, from its copy in the league; that is built by the first who asks, others wait for it.

    Raises AssertionError with what the build printed, where it fails.
    """
    workshop = Workshop(league, make_launcher(strongest()), on_build=lambda _: None, network=True)
    try:
        return asyncio.run(workshop.copy(FOLDER / name)).spec
    except BuildError as error:
        raise AssertionError(f"{error}\n{error.output}") from None
