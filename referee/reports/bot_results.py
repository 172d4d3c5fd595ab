"""Make rows of the results of one bot: by table size and seat, and by the time of its decisions."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from referee.records import GameRecord
from referee.reports.formats import Column, decimal, duration, percent

if TYPE_CHECKING:  # scipy takes a while to load
    from referee.ratings.analysis import Analysis
    from referee.result_columns import Flags, ResultColumns

_LIMITS_US = (0, *(step * 10**power for power in range(12) for step in (1, 2, 5)))
"""The limits of the ranges of times, in microseconds: 0, 1, 2, 5, 10, 20 and so on, up to days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatResultRow:
    """The results of a bot in a seat of tables of one size."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    seats: Annotated[int, Column("seats", right=True)]
    """Number of seats of the table."""
    seat: Annotated[int | None, Column("seat", right=True, empty="all")]
    """Number of the seat; None for all seats together."""
    games: Annotated[int, Column("games", right=True)]
    wins: Annotated[int, Column("wins", right=True)]
    """Number of games in which the bot had rank 1, alone or shared. Games that the bot forfeited do not count."""
    win_share: Annotated[float, Column("won", right=True, show=percent)]
    """Wins divided by games."""
    mean_score: Annotated[float, Column("score", right=True, show=decimal(2))]
    """Mean points of the bot in a game. A forfeit does not change the points."""
    strikes: Annotated[int, Column("strikes", right=True)]
    forfeits: Annotated[int, Column("forfeits", right=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRow:
    """How many decisions of a bot took a time within a range."""

    at_least_us: Annotated[int, Column("from", right=True, show=duration)]
    below_us: Annotated[int, Column("to below", right=True, show=duration)]
    decisions: Annotated[int, Column("decisions", right=True)]
    """Number of decisions that the bot made itself in this time."""
    share: Annotated[float, Column("share", right=True, show=percent)]
    """Decisions divided by all decisions of all rows."""


def seat_result_rows(bot: str, analysed: Mapping[str, Analysis]) -> tuple[SeatResultRow, ...]:
    """Return for each ruleset and table size a row for all seats, then a row for each seat in which the bot played."""
    return tuple(
        row
        for ruleset, analysis in analysed.items()
        if bot in analysis.results.bots
        for row in _rows(ruleset, analysis.results, bot)
    )


def _rows(ruleset: str, games: ResultColumns, bot: str) -> Iterator[SeatResultRow]:
    own = games.bot == games.bots.index(bot)
    sizes = games.seats
    for size in np.unique(sizes[own.any(axis=1)]).tolist():
        sized = own & (sizes == size)[:, None]
        yield _row(ruleset, size, None, games, sized)
        for seat in np.flatnonzero(sized.any(axis=0)).tolist():
            in_seat = np.zeros_like(sized)
            in_seat[:, seat] = sized[:, seat]
            yield _row(ruleset, size, seat, games, in_seat)


def _row(
    ruleset: str, size: int, seat: int | None, games: ResultColumns, own: Flags
) -> SeatResultRow:
    """Return the row of one seat, or of all seats. `own` has one value for each seat of each game: True where the bot sat."""
    played = int(own.sum())
    wins = int((own & (games.rank == 1) & ~games.forfeited).sum())
    return SeatResultRow(
        ruleset=ruleset,
        seats=size,
        seat=seat,
        games=played,
        wins=wins,
        win_share=wins / played,
        mean_score=float(games.score[own].mean()),
        strikes=int(games.strikes[own].sum()),
        forfeits=int(games.forfeited[own].sum()),
    )


def latency_rows(bot: str, records: Iterable[GameRecord]) -> tuple[LatencyRow, ...]:
    """Return how long the decisions of a bot took, from the shortest to the longest.

    Decisions of the stand-in are left out. There is a row for each range from the shortest to the longest decision, also
    for a range without decisions.

    Args:
        bot: `name@version`.
        records: games in which the bot played.
    """
    counts = Counter(
        bisect_right(_LIMITS_US, move.elapsed_us)
        for record in records
        for move in record.moves
        if not move.stand_in and str(record.seating[move.seat]) == bot
    )
    if not counts:
        return ()
    return tuple(
        LatencyRow(
            at_least_us=_LIMITS_US[place - 1],
            below_us=_LIMITS_US[place],
            decisions=counts[place],
            share=counts[place] / counts.total(),
        )
        for place in range(min(counts), max(counts) + 1)
    )
