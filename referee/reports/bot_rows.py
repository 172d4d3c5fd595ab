"""What a bot's processes take of the machine.

The versions of bots in a league: what they are, what became of them, what they last said.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Protocol

from rich.console import Group
from rich.text import Text

from referee.errors import Cause
from referee.records import BotId, ChargedFault, GameResult
from referee.reports.formats import Column, duration, memory, moment, visible


class MeasuredBot(Protocol):
    """What was measured of a bot over all games. Rows of the store fit."""

    @property
    def games(self) -> int:
        """In how many games it was measured."""
        ...

    @property
    def mean_cpu_us(self) -> float:
        """CPU time of a game, in microseconds."""
        ...

    @property
    def max_cpu_us(self) -> int:
        """That of the game that took most."""
        ...

    @property
    def mean_peak_memory_kib(self) -> float:
        """The most memory in use at once, over all games."""
        ...

    @property
    def max_peak_memory_kib(self) -> int:
        """That of the game in which it was most."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """What a bot took, over all games in which that was measured."""

    games: Annotated[int, Column("games measured", right=True)]
    mean_cpu_us: Annotated[int, Column("CPU of a game, mean", right=True, show=duration)]
    max_cpu_us: Annotated[int, Column("CPU of a game, most", right=True, show=duration)]
    mean_peak_memory_kib: Annotated[int, Column("peak memory, mean", right=True, show=memory)]
    max_peak_memory_kib: Annotated[int, Column("peak memory, most", right=True, show=memory)]


def usage_row(bot: MeasuredBot) -> UsageRow:
    """What was measured of a bot; means are rounded."""
    return UsageRow(
        games=bot.games,
        mean_cpu_us=round(bot.mean_cpu_us),
        max_cpu_us=bot.max_cpu_us,
        mean_peak_memory_kib=round(bot.mean_peak_memory_kib),
        max_peak_memory_kib=bot.max_peak_memory_kib,
    )


class KnownBot(Protocol):
    """A version of a bot, as the league knows it. Rows of the store fit."""

    @property
    def bot(self) -> BotId:
        """Name and version."""
        ...

    @property
    def author(self) -> str:
        """Who wrote it."""
        ...

    @property
    def language(self) -> str:
        """What it is written in."""
        ...

    @property
    def folder(self) -> str:
        """Where it came from."""
        ...

    @property
    def content_hash(self) -> str:
        """SHA-256 of its content, in hexadecimal."""
        ...

    @property
    def added_at_us(self) -> int:
        """When it came. Microseconds since 1970-01-01 UTC, as all times here."""
        ...

    @property
    def checked_at_us(self) -> int | None:
        """When it passed the check; None: never checked."""
        ...

    @property
    def retired_at_us(self) -> int | None:
        """When it was retired; None: it plays."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BotRow:
    """A version of a bot."""

    bot: Annotated[str, Column("bot", wrap=True)]
    """`name@version`."""
    language: Annotated[str, Column("language")]
    author: Annotated[str, Column("author", wrap=True, drop=5)]
    added_at_us: Annotated[int, Column("came", show=moment, drop=3)]
    """Microseconds since 1970-01-01 UTC."""
    checked_at_us: Annotated[int | None, Column("checked", show=moment, empty="no", drop=6)]
    """When it passed the check; None: it was not checked."""
    retired_at_us: Annotated[int | None, Column("retired", show=moment, empty="no", drop=4)]
    games: Annotated[int, Column("games", right=True)]
    strikes: Annotated[int, Column("strikes", right=True)]
    forfeits: Annotated[int, Column("forfeits", right=True)]
    folder: Annotated[str, Column("came from", wrap=True, drop=2)]
    """Where it came from."""
    content_hash: Annotated[str, Column("content", drop=1)]
    """SHA-256, in hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """Something that went wrong with a bot."""

    game_id: Annotated[str, Column("game", wrap=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    """`name@version`."""
    move: Annotated[int, Column("move", right=True)]
    """How many moves the game had when it happened."""
    cause: Annotated[str, Column("cause")]
    forfeit: Annotated[bool, Column("cost", show=lambda yes: "forfeit" if yes else "strike")]
    detail: Annotated[str, Column("detail", wrap=True)]
    stderr_tail: Annotated[str, Column("stderr", data_only=True)]
    """The end of what the process had written to standard error."""


def bot_rows(
    bots: Iterable[KnownBot], games: Iterable[GameResult], faults: Iterable[ChargedFault]
) -> tuple[BotRow, ...]:
    """One row a version, in the order given, with how often it played and what went wrong."""
    played = Counter(bot for game in games for bot in game.bots)
    charged = defaultdict[str, Counter[bool]](Counter)
    for each in faults:
        charged[each.bot][each.fault.forfeit] += 1
    return tuple(
        BotRow(
            bot=(name := str(row.bot)),
            language=row.language,
            author=row.author,
            added_at_us=row.added_at_us,
            checked_at_us=row.checked_at_us,
            retired_at_us=row.retired_at_us,
            games=played[name],
            strikes=charged[name][False],
            forfeits=charged[name][True],
            folder=row.folder,
            content_hash=row.content_hash,
        )
        for row in bots
    )


def log_rows(faults: Iterable[ChargedFault]) -> tuple[LogRow, ...]:
    """One row a fault, in the order given."""
    return tuple(
        LogRow(
            game_id=each.game_id,
            bot=each.bot,
            move=each.fault.move,
            cause=each.fault.cause.value,
            forfeit=each.fault.forfeit,
            detail=each.fault.evidence.detail,
            stderr_tail=each.fault.evidence.stderr_tail,
        )
        for each in faults
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """How often one thing went wrong with a bot."""

    bot: Annotated[str, Column("bot", wrap=True)]
    cause: Annotated[str, Column("cause")]
    """Its name in the list of faults, such as `timeout`."""
    strikes: Annotated[int, Column("strikes", right=True)]
    forfeits: Annotated[int, Column("forfeits", right=True)]
    games: Annotated[int, Column("games", right=True)]
    """Games in which it happened."""


def fault_rows(faults: Iterable[ChargedFault]) -> tuple[FaultRow, ...]:
    """Faults by bot, in the order of the alphabet, and cause, in the order of the list of faults."""
    by_kind = defaultdict[tuple[str, Cause], list[ChargedFault]](list)
    for each in faults:
        by_kind[each.bot, each.fault.cause].append(each)
    order = list(Cause)
    return tuple(
        FaultRow(
            bot=bot,
            cause=cause.value,
            strikes=sum(not each.fault.forfeit for each in by_kind[bot, cause]),
            forfeits=sum(each.fault.forfeit for each in by_kind[bot, cause]),
            games=len({each.game_id for each in by_kind[bot, cause]}),
        )
        for bot, cause in sorted(by_kind, key=lambda kind: (kind[0], order.index(kind[1])))
    )


def log_text(rows: Iterable[LogRow]) -> Group:
    """The faults one after another, each with what the process had written to standard error."""
    return Group(*(_log_entry(row) for row in rows))


def _log_entry(row: LogRow) -> Text:
    cost = "forfeit" if row.forfeit else "strike"
    title = f"{row.game_id}, move {row.move}: {row.bot}, {row.cause} ({cost}): {row.detail}\n"
    said = visible(row.stderr_tail, lines=True) or "(nothing on standard error)\n"
    return Text(visible(title, lines=True), style="bold").append(said, style="not bold")
