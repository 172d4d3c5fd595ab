"""Load the reference program of `greedy`, and variants of it with one mistake."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).parents[1] / "sample_bots"
sys.path.insert(0, str(_FOLDER))

from greedy_by_the_book import choose, is_snatched, size  # noqa: E402 - the path comes first

__all__ = ["choose", "is_snatched", "mistaken", "size"]


def mistaken(right: str, wrong: str) -> Callable:
    """Return `choose` of a program in which `right`, which occurs once, is replaced by `wrong`."""
    program = (_FOLDER / "greedy_by_the_book.py").read_text()
    assert program.count(right) == 1
    module = ModuleType("mistaken")
    exec(program.replace(right, wrong), module.__dict__)  # noqa: S102 - the tests' own program
    return module.choose
