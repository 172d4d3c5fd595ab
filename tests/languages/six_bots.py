"""Describe the six bots that follow one policy, and build each of them once in a test run.

Builds run in the strongest isolation of this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from strongest_isolation import strongest

from referee.bots import BotSpec
from referee.roster.content import BuildError
from referee.roster.workshop import Workshop
from referee.sandbox.ladder import make_launcher

FOLDER = Path(__file__).parents[2] / "sample_bots"


class SampleBot(NamedTuple):
    """The language, the toolchain and the tests of one of the six bots."""

    language: str
    toolchain: tuple[str, ...] = ()
    """The programs that its build and its run need."""
    tests: tuple[str, ...] = ()
    """The commands that run its own tests, as its README has them."""


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
"""The six bots by name, which is also the name of the folder."""


def as_parameters(names: Iterable[str]) -> list:
    """Return names of bots as parameters of tests, with the marks that their builds need."""
    return [pytest.param(name, marks=marks_of(*SIX[name].toolchain)) for name in names]


def marks_of(*programs: str) -> list:
    """Return the marks of a test that needs these programs to build a bot."""
    if not programs:
        return []
    return [
        pytest.mark.toolchain(*programs),
        pytest.mark.extended("builds bots in five other languages"),
    ]


def build(name: str, league: Path) -> BotSpec:
    """Return a bot from its copy in the league. The first call builds the copy; others wait for it.

    Raises AssertionError with the output of the build if the build fails.
    """
    workshop = Workshop(league, make_launcher(strongest()), on_build=lambda _: None)
    try:
        return asyncio.run(workshop.copy(FOLDER / name)).spec
    except BuildError as error:
        raise AssertionError(f"{error}\n{error.output}") from None
