"""Plan the rounds of a ladder.

A round of a ladder has the matches between two looks. The tables of the plan are placeholders. Before each round, a look
uses the results of all earlier rounds to replace the tables of the round (`referee.tournament.ladder`). The placeholders
take the bots in the order of the tournament's list, and begin again at its end. A round has at least as many games as the
largest of these three numbers; only the last round may have fewer:

- `ROUND_GAMES`;
- two games for each lane, because workers are idle while the last games of a round are played;
- a twentieth of the games before the round, rounded down. When the results of many games are known, little is lost if
  one look chooses many games.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from referee.records import ScheduledGame
from referee.schedule import Match, Stage, check_stages, expand_matches

ROUND_GAMES = 20
_GROWTH = 20
"""A round has at least as many games as were planned before it, divided by this number and rounded down."""


def ladder_schedule(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """Return the planned schedule of a ladder, in the order of play.

    Args:
        tournament: the name of the tournament, used in ids.
        bots: the names of the bots.
        stages: one stage; `Stage.matches` is the number of all matches.
        lanes: the number of lanes, at least the number of seats of a table.

    Raises ValueError if `check_stages` does, or if there is not exactly one stage.
    """
    check_stages(bots, stages, lanes)
    [stage] = stages
    rounds = _number_rounds(stage, lanes)
    matches = (
        Match(
            0,
            next(rounds),
            tuple((number * stage.seats + seat) % len(bots) for seat in range(stage.seats)),
        )
        for number in range(stage.matches)
    )
    return expand_matches(tournament, bots, stages, matches, lanes=lanes)


def _number_rounds(stage: Stage, lanes: int) -> Iterator[int]:
    """Yield the number of the round of each match."""
    number = played = 0
    while True:
        number += 1
        games = max(ROUND_GAMES, 2 * lanes, played // _GROWTH)
        matches = -(-games // stage.seats)
        played += matches * stage.seats
        for _ in range(matches):
            yield number
