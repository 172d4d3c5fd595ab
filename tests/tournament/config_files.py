"""Write tournament files and the folders of the bots that they name."""

from __future__ import annotations

import pytest

from referee.errors import UserError
from referee.rules.ruleset import RULESETS
from referee.tournament.config_reader import load_tournament

BASIC = RULESETS["basic"]
HEAD = 'name = "cup"\n'
BOTS = 'bots = ["./ann", "./bob", "./cy", "./dee"]\n'
GOOD = HEAD + BOTS + 'ruleset = "basic"\nseats = 3\nmatches = 2\n'


GAUNTLET = GOOD.replace(', "./dee"]', "]") + 'format = "gauntlet"\nchallengers = ["./dee", "zoe"]\n'


class FakePace:
    """Knows the duration of games in microseconds, by ruleset and seats."""

    def __init__(self, known, cores=1):
        self.cores = cores
        self._known = known

    def game_us(self, ruleset, seats):
        return self._known.get((ruleset, seats))


def with_bots(folder):
    """Write the folders of four bots into a folder; return this folder."""
    for name in ("ann", "bob", "cy", "dee"):
        (folder / name).mkdir()
        (folder / name / "bot.toml").write_text(
            f'name = "{name}"\nversion = "1"\nauthor = "x"\nlanguage = "python"\n'
            '[run]\ncommand = ["./bot"]\n'
        )
    return folder


def write(folder, text):
    """Write a tournament file."""
    path = folder / "cup.toml"
    path.write_text(text)
    return path


def error_of(folder, text):
    """Return the error message of a wrong tournament file."""
    with pytest.raises(UserError) as caught:
        load_tournament(write(folder, text))
    return str(caught.value)
