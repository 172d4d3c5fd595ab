"""A record as statistics take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from referee.records import GameRecord, ScheduledGame


@dataclass(frozen=True, slots=True)
class PlayedRecord:
    """What a game of a tournament came to (`ratings.RankedGame`, `ratings.results.PlayedGame`)."""

    ruleset: str
    match: int
    bots: tuple[str, ...]
    scores: tuple[int, ...]
    ranks: tuple[int, ...]
    forfeited: tuple[int, ...]

    @classmethod
    def of(cls, game: ScheduledGame, record: GameRecord) -> Self:
        """Of a game of the schedule and its record."""
        return cls(
            record.ruleset.name,
            game.match,
            tuple(map(str, record.seating)),
            record.result.scores,
            record.result.ranks,
            record.result.forfeited,
        )
