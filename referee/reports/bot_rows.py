"""Make rows about the bots of a league: their versions, faults, CPU time, memory, results by seat, and the time of their decisions."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from rich.console import Group
from rich.text import Text

from referee.errors import Cause
from referee.records import ChargedFault, GameRecord, Move
from referee.reports.formats import (
    Column,
    decimal,
    duration,
    memory,
    moment,
    percent,
    quoted,
    row_from,
    visible,
)
from referee.store import FaultCount, StoredBot, StoredUsage

if TYPE_CHECKING:  # numpy and scipy take a while to load
    from referee.ratings.analysis import Analysis
    from referee.result_columns import Flags, ResultColumns

_LIMITS_US = (0, *(step * 10**power for power in range(20) for step in (1, 2, 5)))
"""The boundaries between the ranges of `LatencyRow`, in microseconds: 0, 1, 2, 5, 10, 20 and so on.

The last boundary is higher than any time in a record, because times in records have at most 64 bits.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """CPU time and memory of a bot, from all games in which both were measured."""

    games_measured: Annotated[int, Column("games measured", right=True)]
    mean_cpu_per_game_us: Annotated[int, Column("mean CPU per game", right=True, show=duration)]
    max_cpu_per_game_us: Annotated[int, Column("max CPU per game", right=True, show=duration)]
    mean_peak_memory_kib: Annotated[int, Column("mean peak memory", right=True, show=memory)]
    max_peak_memory_kib: Annotated[int, Column("max peak memory", right=True, show=memory)]


def usage_row(usage: StoredUsage) -> UsageRow:
    """Return the row of a bot. Means are rounded to whole microseconds and KiB."""
    return UsageRow(
        games_measured=usage.games,
        mean_cpu_per_game_us=round(usage.mean_cpu_us),
        max_cpu_per_game_us=usage.max_cpu_us,
        mean_peak_memory_kib=round(usage.mean_peak_memory_kib),
        max_peak_memory_kib=usage.max_peak_memory_kib,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """How many decisions of a bot, without those of the stand-in, were in batches with a similar number of requests."""

    least: Annotated[int, Column("least", right=True)]
    """The row counts decisions in batches of at least this many requests."""
    most: Annotated[int, Column("most", right=True)]
    """The row counts decisions in batches of at most this many requests."""
    decisions: Annotated[int, Column("decisions", right=True)]
    share: Annotated[float, Column("share", right=True, show=percent)]
    """`decisions` divided by the sum of `decisions` over all rows."""


BATCH_GAMES = 100
"""The batches of a bot are shown for this many of its newest games."""


def batch_rows(records: Iterable[GameRecord], bot: str) -> tuple[BatchRow, ...]:
    """Return a row for each range of batch sizes that occurred. The ranges are 1, 2 to 3, 4 to 7 and so on.

    Args:
        records: games of the bot.
        bot: `name@version`.
    """
    sizes = Counter(move.batch_size.bit_length() for move in _own_moves(records, bot))
    return tuple(
        BatchRow(
            least=1 << bits - 1,
            most=(1 << bits) - 1,
            decisions=count,
            share=count / sizes.total(),
        )
        for bits, count in sorted(sizes.items())
    )


def _own_moves(records: Iterable[GameRecord], bot: str) -> Iterator[Move]:
    """Yield the moves that a bot decided itself. A damaged record may have moves of seats that do not exist; they are left out."""
    for record in records:
        seats = {seat for seat, each in enumerate(record.seating) if str(each) == bot}
        yield from (move for move in record.moves if move.seat in seats and not move.stand_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class BotRow:
    """A version of a bot."""

    bot: Annotated[str, Column("bot", wrap=True)]
    """`name@version`."""
    language: Annotated[str, Column("language", drop=7)]
    author: Annotated[str, Column("author", wrap=True, drop=5)]
    added_at_us: Annotated[int, Column("added", show=moment, drop=3)]
    """Microseconds since 1970-01-01 UTC."""
    checked_at_us: Annotated[int | None, Column("checked", show=moment, empty="no", drop=6)]
    """Time when the version last passed the check, in microseconds like `added_at_us`; None if it never passed."""
    retired_at_us: Annotated[int | None, Column("retired", show=moment, empty="no", drop=4)]
    """Time when the version was retired, in microseconds like `added_at_us`; None if it is not retired."""
    games: Annotated[int, Column("games", right=True)]
    strikes: Annotated[int, Column("strikes", right=True)]
    forfeits: Annotated[int, Column("forfeits", right=True)]
    folder: Annotated[str, Column("folder", wrap=True, drop=2)]
    """The folder that was submitted."""
    content_hash: Annotated[str, Column("content hash", drop=1)]
    """SHA-256 of the folder's content, in hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """A fault of a bot, with the end of the bot's standard error."""

    game_id: Annotated[str, Column("game id", wrap=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    """`name@version`."""
    move: Annotated[int, Column("move", right=True)]
    """Number of moves in the game before the fault."""
    cause: Annotated[str, Column("cause")]
    forfeit: Annotated[bool, Column("forfeit")]
    detail: Annotated[str, Column("detail", wrap=True)]
    stderr_tail: Annotated[str, Column("stderr tail", data_only=True)]
    """The last output of the process on standard error."""


def bot_rows(
    bots: Iterable[StoredBot], games: Mapping[str, int], faults: Iterable[FaultCount]
) -> tuple[BotRow, ...]:
    """Return a row for each version in `bots`, in the order of `bots`.

    Args:
        bots: the versions.
        games: the number of games of each version that has played, by `name@version`.
        faults: how many faults of each cause the versions had.
    """
    strikes, forfeits = Counter[str](), Counter[str]()
    for each in faults:
        strikes[each.bot] += each.strikes
        forfeits[each.bot] += each.forfeits
    return tuple(
        row_from(
            BotRow,
            row,
            bot=(name := str(row.bot)),
            games=games.get(name, 0),
            strikes=strikes[name],
            forfeits=forfeits[name],
        )
        for row in bots
    )


def log_rows(faults: Iterable[ChargedFault]) -> tuple[LogRow, ...]:
    """Return a row for each fault, in the given order."""
    return tuple(
        row_from(
            LogRow,
            each.fault.evidence,
            game_id=each.game_id,
            bot=each.bot,
            move=each.fault.move,
            cause=each.fault.cause.value,
            forfeit=each.fault.forfeit,
        )
        for each in faults
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """How often a bot had faults of one cause."""

    bot: Annotated[str, Column("bot", wrap=True)]
    cause: Annotated[str, Column("cause")]
    """The name of the cause, such as `timeout`."""
    strikes: Annotated[int, Column("strikes", right=True)]
    forfeits: Annotated[int, Column("forfeits", right=True)]
    games: Annotated[int, Column("games", right=True)]
    """Number of games in which the bot had a fault of this cause."""


def fault_rows(faults: Iterable[FaultCount]) -> tuple[FaultRow, ...]:
    """Return a row for each bot and cause, sorted by bot, then by cause in the order of `Cause`."""
    order = list(Cause)
    return tuple(
        row_from(FaultRow, each, cause=each.cause.value)
        for each in sorted(faults, key=lambda each: (each.bot, order.index(each.cause)))
    )


def log_text(rows: Iterable[LogRow]) -> Group:
    """Return the faults one after another, each with the end of the bot's standard error."""
    return Group(*(_log_entry(row) for row in rows))


def _log_entry(row: LogRow) -> Text:
    cost = "forfeit" if row.forfeit else "strike"
    title = f"{row.game_id}, after move {row.move}: {row.bot}, {row.cause} ({cost}): {row.detail}"
    stderr = quoted(row.stderr_tail) if row.stderr_tail else "(nothing on standard error)\n"
    return Text(f"{visible(title)}\n", style="bold").append(stderr, style="not bold")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatResultRow:
    """The results of a bot at tables of one size, in one seat or in all seats together."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    seats: Annotated[int, Column("seats", right=True)]
    """Number of seats of the table."""
    seat: Annotated[int | None, Column("seat", right=True, empty="all")]
    """Number of the seat; None for all seats together."""
    games: Annotated[int, Column("games", right=True)]
    wins: Annotated[int, Column("wins", right=True)]
    """Number of games in which the bot had rank 1, alone or shared. A game that the bot forfeited is not a win."""
    won: Annotated[float, Column("won", right=True, show=percent)]
    """Wins divided by games."""
    score: Annotated[float, Column("score", right=True, show=decimal(2))]
    """Mean points of the bot in a game. In a game that it forfeited, it gets the lowest points of all seats."""
    strikes: Annotated[int, Column("strikes", right=True)]
    forfeits: Annotated[int, Column("forfeits", right=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRow:
    """How many decisions of a bot took at least `at_least_us` and less than `below_us` microseconds."""

    at_least_us: Annotated[int, Column("at least", right=True, show=duration)]
    below_us: Annotated[int, Column("below", right=True, show=duration)]
    decisions: Annotated[int, Column("decisions", right=True)]
    """Decisions of the stand-in are left out."""
    share: Annotated[float, Column("share", right=True, show=percent)]
    """`decisions` divided by the sum of `decisions` over all rows."""


def seat_result_rows(bot: str, analysed: Mapping[str, Analysis]) -> tuple[SeatResultRow, ...]:
    """Return the rows of each ruleset and table size: first a row for all seats, then one for each seat in which the bot played."""
    return tuple(
        row
        for ruleset, analysis in analysed.items()
        if bot in analysis.results.bots
        for row in _seat_results(ruleset, analysis.results, bot)
    )


def _seat_results(ruleset: str, games: ResultColumns, bot: str) -> Iterator[SeatResultRow]:
    own = games.bot == games.bots.index(bot)
    for size in sorted(set(games.seats[own.any(axis=1)].tolist())):
        sized = own & (games.seats == size)[:, None]
        yield _seat_result(ruleset, size, None, games, sized)
        for seat in sized.any(axis=0).nonzero()[0].tolist():
            in_seat = sized.copy()
            in_seat[:, :seat] = in_seat[:, seat + 1 :] = False
            yield _seat_result(ruleset, size, seat, games, in_seat)


def _seat_result(
    ruleset: str, size: int, seat: int | None, games: ResultColumns, own: Flags
) -> SeatResultRow:
    """Return the row of one seat, or of all seats. `own` has a value for each seat of each game: True if the row counts it."""
    played = int(own.sum())
    wins = int((own & (games.rank == 1) & ~games.forfeited).sum())
    return SeatResultRow(
        ruleset=ruleset,
        seats=size,
        seat=seat,
        games=played,
        wins=wins,
        won=wins / played,
        score=float(games.points[own].mean()),
        strikes=int(games.strikes[own].sum()),
        forfeits=int(games.forfeited[own].sum()),
    )


def latency_rows(bot: str, records: Iterable[GameRecord]) -> tuple[LatencyRow, ...]:
    """Return a row for each range of decision times of a bot, shortest times first.

    Decisions of the stand-in are left out. The first row has the shortest decision, the last row the longest. Each range
    in between has a row, even if it has no decisions.

    Args:
        bot: `name@version`.
        records: games in which the bot played.
    """
    counts = Counter(bisect_right(_LIMITS_US, move.elapsed_us) for move in _own_moves(records, bot))
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
