"""What a bot's processes take of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

from referee.reports.columns import Column
from referee.reports.show import duration, memory


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
