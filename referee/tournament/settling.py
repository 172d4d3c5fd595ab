"""When a tournament with `until` stops: after the first look that finds its table settled.

The looks come after whole rounds of all stages, less and less often, and the error that may be made is
shared out among all there can be. Stored games alone decide, and no game of a later round is played
before a look is over: so a tournament stops at the same place wherever it was interrupted and however
many workers it has, and whoever has its records can see that it had to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from referee.ratings.until import looks
from referee.schedule import Stage, shorter
from referee.tournament.config import TournamentConfig

if TYPE_CHECKING:
    from referee.ratings.results import PlayedGame


@dataclass(frozen=True, slots=True)
class Look:
    """A moment at which a tournament may stop."""

    rounds: int
    """That are played then, of all stages."""
    games: int
    """That are played then: the first so many of the schedule."""


def looks_of(config: TournamentConfig) -> tuple[Look, ...]:
    """All looks, the last one when all is played; none of a tournament that does not stop by itself."""
    if config.until is None:
        return ()
    bots = len(config.bots)
    return tuple(
        Look(rounds, sum(stage.games(bots) for stage in shorter(config.stages, rounds)))
        for rounds in looks(rounds_of(config))
    )


def rounds_of(config: TournamentConfig) -> int:
    """How many rounds a tournament has if it does not stop."""
    return max(stage.matches for stage in config.stages)


def stages_played(config: TournamentConfig, settled_after: int | None) -> tuple[Stage, ...]:
    """The stages, shortened where the tournament was settled after so many rounds."""
    return config.stages if settled_after is None else shorter(config.stages, settled_after)


def is_settled(config: TournamentConfig, games: Iterable[PlayedGame]) -> bool:
    """Whether a tournament with looks has a settled table, after the games of one of them."""
    from referee.ratings.analysis import Analysis  # noqa: PLC0415 - as `ratings` says
    from referee.ratings.results import Results  # noqa: PLC0415 - the same
    from referee.ratings.settled import all_settled, neighbours  # noqa: PLC0415 - the same

    assert config.until is not None  # noqa: S101 - it has looks
    analyses = [Analysis(results) for results in Results.of(games).values()]
    return all_settled(neighbours(analyses, config.until, looks=len(looks_of(config))))
