"""Define the condition under which a tournament stops early, and after which rounds it is tested.

Each test can give a wrong verdict, and tests after every round would often stop a tournament wrongly. Therefore only
some rounds end with a test, called a look. The looks are planned before the first game. `judge` gives the verdicts.
The options of the command line use the constants of this module, so `referee --help` loads it too. Therefore it must not
load numpy, which is slow.
"""

from __future__ import annotations

from dataclasses import dataclass

CONFIDENCE = 0.95
"""The usual confidence: the probability that all verdicts about neighbours are right."""
MARGIN = 1.0
"""The usual margin: two bots count as equal if their fits surely differ by less than this."""
MIN_CONFIDENCE, MAX_CONFIDENCE = 0.5, 0.9999
"""The least and the highest confidence that may be asked for."""
MAX_MARGIN = 25.0
"""The largest margin that may be asked for: the mean fit of the centre."""
_GROWTH = 1.2
"""From one look to the next, the number of rounds grows by about this factor, but by at least one round.

More looks would be of little use, because a few new games rarely change a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCondition:
    """Say how sure verdicts must be, and which bots count as equal.

    A tournament stops early when no verdict about neighbours is open.
    """

    confidence: float = CONFIDENCE
    """Probability, from `MIN_CONFIDENCE` to `MAX_CONFIDENCE`, that all verdicts together are right."""
    margin: float = MARGIN
    """Two bots count as equal if their fits surely differ by less than this. With 0, no bots count as equal."""


def look_rounds(rounds: int) -> list[int]:
    """Return after how many rounds each look takes place, in a tournament of `rounds` rounds.

    The last look is after the last round. A look before it is left out if too few rounds remain after it: fewer than half
    of the rounds from this look to the next planned one.
    """
    found: list[int] = []
    look, following = 1, 2
    while look + following <= 2 * rounds:
        found.append(look)
        look, following = following, max(following + 1, int(following * _GROWTH))
    return [*found, rounds]
