"""The store's rows and the schedule's games say the same: one made of the other.

They are siblings that do not know each other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from referee.records import BotId
from referee.schedule import ScheduledGame, Stage
from referee.store import ExtensionRow, ScheduleRow, TournamentRow
from referee.tournament.config import Part


def stored_parts(
    row: TournamentRow, added: Sequence[ExtensionRow], schedule: Sequence[ScheduledGame]
) -> tuple[Part, ...]:
    """What a tournament consists of, with its seeds."""
    firsts = [
        bisect_left(schedule, each.first_match, key=lambda game: game.match) for each in added
    ]
    ends = [*firsts, len(schedule)]
    rows: list[TournamentRow | ExtensionRow] = [row, *added]
    return tuple(
        Part(
            first,
            end - first,
            each.matches if isinstance(each, ExtensionRow) else None,
            each.commitment,
            each.seed,
            finished=each.finished_at_us is not None,
        )
        for first, end, each in zip([0, *firsts], ends, rows, strict=True)
    )


def scheduled(row: ScheduleRow, stages: Sequence[Stage]) -> ScheduledGame:
    """A game that the league keeps."""
    return ScheduledGame(
        index=row.index,
        stage=row.stage,
        round=row.round,
        match=row.match,
        seating=row.seating,
        lane=row.lane,
        bots=tuple(map(str, row.bots)),
        ruleset=stages[row.stage].ruleset,
        deal_id=row.deal_id,
        game_id=row.game_id,
    )


def schedule_row(game: ScheduledGame, versions: Mapping[str, BotId]) -> ScheduleRow:
    """A game as the league keeps it; `versions` are the bots by what the schedule calls them."""
    return ScheduleRow(
        index=game.index,
        stage=game.stage,
        round=game.round,
        match=game.match,
        seating=game.seating,
        lane=game.lane,
        bots=tuple(versions[name] for name in game.bots),
        deal_id=game.deal_id,
        game_id=game.game_id,
    )
