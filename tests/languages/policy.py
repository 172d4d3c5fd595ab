"""Greedy by the book, as the tests of the sample bots have it, and programs that differ from it a little."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).parents[1] / "sample_bots"
sys.path.insert(0, str(_FOLDER))

from greedy_by_the_book import choose, is_snatched, size  # noqa: E402 - the path comes first

__all__ = ["choose", "is_snatched", "mistaken", "size"]


def mistaken(right: str, wrong: str) -> Callable:
    """`choose` with one piece of the program, which occurs once, replaced by another."""
    program = (_FOLDER / "greedy_by_the_book.py").read_text()
    assert program.count(right) == 1
    module = ModuleType("mistaken")
    exec(program.replace(right, wrong), module.__dict__)  # noqa: S102 - the tests' own program
    return module.choose
