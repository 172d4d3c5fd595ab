"""Apply the `.gitignore` files of a bot's folder, as git does, to keep files out of the snapshot.

The folder comes from a stranger. So the size and the number of lines of each `.gitignore` file are limited, and also the
CPU time for all these files together.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pathspec import GitIgnoreSpec
from pathspec.pattern import RegexPattern

from referee.errors import UserError

IGNORE_FILE = ".gitignore"
MAX_IGNORE_BYTES = 64 << 10
"""The largest size of a `.gitignore` file."""
_MAX_RULES, _MAX_STARS = 1000, 3
"""The most lines in a `.gitignore` file, and the most sequences of `*` in a line (`**` is one sequence). The time to
test a path by a line grows quickly with the number of these sequences: with three it is at worst about a second. A
test cannot be interrupted, so the CPU time is checked only after it."""
_MAX_RULES_S = 10.0
"""The most CPU time to parse all `.gitignore` files of a folder and to test all its paths by their rules."""
_STARS = re.compile(r"\*+")
_ALL_BELOW = re.compile(r"/\*\*(/?)$")
"""Matches the end of a rule such as `model/**` or `model/**/`. In git, such a rule does not match the folder itself, but in `pathspec` it
does. So `_parse` replaces the rule with `model/**/*` or `model/**/*/`."""
_SET = re.compile(r"\[([!^]?\]?[^\]]*)")
"""Matches a set of characters, such as `[a-z]`, without its closing `]`. If the set contains a class, as in `[[:digit:]]`, the match
ends before the `]` of the class."""


class _RulesTimer:
    """Limits the CPU time for all `.gitignore` files of one folder that is copied.

    Args:
        folder: the folder, for the message.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._left_s = _MAX_RULES_S

    @contextmanager
    def measure(self) -> Iterator[float]:
        """Measure the CPU time of a block. Yields the value of `time.thread_time` at which the block must end.

        Raises `UserError` after the block if all blocks together took more than `_MAX_RULES_S`.
        """
        began_s = time.thread_time()
        yield began_s + self._left_s
        self._left_s -= time.thread_time() - began_s
        if self._left_s < 0:
            raise UserError(
                f"{self._folder}: its {IGNORE_FILE} files take more than {_MAX_RULES_S:g} s of CPU time;"
                " write fewer rules, or rules with fewer `*`"
            )


class _Rule(NamedTuple):
    """A line of a `.gitignore` file."""

    regex: re.Pattern[str]
    """Matches the whole path of a file or folder, relative to the folder of the `.gitignore` file. The path of a folder ends with `/`."""
    is_ignored: bool
    """Whether the rule ignores what it matches; False for a rule with `!`."""


@dataclass(frozen=True, slots=True)
class IgnoreFiles:
    """The `.gitignore` files on the path from the copied folder to one of its subfolders. Begin with `start`."""

    timer: _RulesTimer
    """The timer of the copied folder."""
    rules: tuple[tuple[PurePosixPath, Sequence[_Rule]], ...] = ()
    """The rules of each file, last rule first, with the folder of the file."""

    @classmethod
    def start(cls, folder: Path) -> IgnoreFiles:
        """Return an object without files. `folder` is the path of the copied folder, for messages."""
        return cls(_RulesTimer(folder))

    def add(self, below: PurePosixPath, file: Path, data: bytes) -> IgnoreFiles:
        """Return an object with these files and one more. Raises `UserError` if that file is wrong, or if all files together take too long.

        Args:
            below: the folder that contains the file, relative to the copied folder.
            file: the path of the file, for messages.
            data: the content of the file.
        """
        with self.timer.measure():
            rules = _parse(file, data)
        return replace(self, rules=(*self.rules, (below, rules)))

    def match(self, path: PurePosixPath, *, is_folder: bool) -> bool:
        """Return whether git would ignore a path. The last rule that matches the path decides.

        Raises `UserError` if all files together take too long.
        """
        for base, rules in reversed(self.rules):
            text = f"{path.relative_to(base)}{'/' if is_folder else ''}"
            with self.timer.measure() as end_s:
                for rule in rules:
                    if rule.regex.fullmatch(text):
                        return rule.is_ignored
                    if time.thread_time() > end_s:
                        break
        return False


def _parse(file: Path, data: bytes) -> Sequence[_Rule]:
    """Return the rules in the content of a `.gitignore` file, last rule first.

    Raises `UserError` if the file is too large or has too many lines, or if a rule is wrong or not supported.
    """
    # as git does: it skips a byte order mark, and only \n and \r\n end a line
    text = data.decode("utf-8-sig", errors="surrogateescape").removesuffix("\n")
    lines = [_strip_spaces(line.removesuffix("\r")) for line in text.split("\n")]
    if len(data) > MAX_IGNORE_BYTES or len(lines) > _MAX_RULES:
        raise UserError(f"{file}: more than {MAX_IGNORE_BYTES >> 10} KiB or {_MAX_RULES} lines")
    for number, line in enumerate(lines, 1):
        if line.startswith("#") or not line.strip():
            continue
        if line[-1].isspace() and line[-1] != " ":  # `pathspec` would strip it
            raise UserError(
                f"{file}: line {number}: the rule ends in a tab or another white-space character that is not a space; remove it"
            )
        if len(_STARS.findall(line)) > _MAX_STARS:
            raise UserError(f"{file}: line {number}: more than {_MAX_STARS} wildcards in a rule")
        if any("[:" in inner for inner in _SET.findall(line)):
            # `pathspec` would read a class as a set of the letters in its name
            raise UserError(
                f"{file}: line {number}: classes such as [:digit:] are not allowed; write a range such as 0-9"
            )
    try:
        with warnings.catch_warnings():
            # `re` warns about `[[]`, because later versions may read it as a set in a set
            warnings.simplefilter("ignore", FutureWarning)
            spec = GitIgnoreSpec.from_lines(_ALL_BELOW.sub(r"/**/*\1", line) for line in lines)
    except re.error as error:
        raise UserError(f"{file}: {error.msg}") from error
    except ValueError as error:
        raise UserError(f"{file}: {error}") from error
    return [
        _Rule(_match_whole(pattern.regex), pattern.include is True)
        for pattern in reversed(list(spec.patterns))
        if isinstance(pattern, RegexPattern) and pattern.regex is not None
    ]


def _strip_spaces(line: str) -> str:
    """Return a line without the spaces at its end, as git reads it: a space after a backslash stays."""
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return line[: len(stripped) + backslashes % 2]


def _match_whole(regex: re.Pattern[str]) -> re.Pattern[str]:
    """Change a regular expression of `pathspec` so that `fullmatch` works with it.

    `pathspec` uses `search`, so a rule that matches a folder also matches each path below this folder. Here a rule must
    match the whole path. That is enough, because an ignored folder is skipped with all its content, as in git. If a
    regular expression has no `^`, as for the rule `*`, its match may begin anywhere in the path.
    """
    return regex if regex.pattern.startswith("^") else re.compile(f"(?s:.*){regex.pattern}")
