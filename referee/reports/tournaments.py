"""Which tournaments there are and how far they have come."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from referee.reports.columns import Column
from referee.reports.inputs import PlannedGame
from referee.reports.show import duration, moment, percent


@dataclass(frozen=True, slots=True, kw_only=True)
class TournamentRow:
    """A tournament."""

    tournament: Annotated[str, Column("tournament", wrap=True)]
    """Its name."""
    rulesets: Annotated[tuple[str, ...], Column("rulesets", wrap=True, drop=2)]
    """Of its stages, each once."""
    bots: Annotated[int, Column("bots", right=True)]
    done: Annotated[int, Column("done", right=True)]
    """Games that are finished."""
    games: Annotated[int, Column("games", right=True)]
    """Games of the whole schedule."""
    share: Annotated[float, Column("share", right=True, show=percent)]
    """Done divided by games."""
    settled_after: Annotated[int | None, Column("settled after", right=True, drop=3)]
    """It stopped after so many rounds, when its table was settled; None: it did not."""
    created_at_us: Annotated[int, Column("created", show=moment, drop=1)]
    """Microseconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRow:
    """How far a round has come; in the last row, the whole tournament."""

    round: Annotated[int | None, Column("round", right=True, empty="all")]
    """From 0; None for all of them."""
    done: Annotated[int, Column("done", right=True)]
    games: Annotated[int, Column("games", right=True)]
    share: Annotated[float, Column("share", right=True, show=percent)]
    """Done divided by games."""
    playing_us: Annotated[int, Column("playing time", right=True, show=duration)]
    """Durations of the finished games added up, whether or not they were played side by side."""
    mean_us: Annotated[int | None, Column("per game", right=True, show=duration)]
    """Mean duration of a finished game; None before the first."""


def tournament_row(
    tournament: str,
    rulesets: Iterable[str],
    *,
    bots: int,
    done: int,
    games: int,
    settled_after: int | None,
    created_at_us: int,
) -> TournamentRow:
    """The row of a tournament with so many games done."""
    return TournamentRow(
        tournament=tournament,
        rulesets=tuple(dict.fromkeys(rulesets)),
        bots=bots,
        done=done,
        games=games,
        share=done / games,
        settled_after=settled_after,
        created_at_us=created_at_us,
    )


def status_rows(
    schedule: Iterable[PlannedGame], durations_us: Mapping[str, int]
) -> tuple[StatusRow, ...]:
    """Status of each round of a schedule, then of all rounds.

    `durations_us` has every finished game's duration by its id; ids that are not in the schedule do
    not count.
    """
    games = Counter[int]()
    done = defaultdict[int, list[int]](list)
    for game in schedule:
        games[game.round] += 1
        if game.game_id in durations_us:
            done[game.round].append(durations_us[game.game_id])
    rounds = [_status(number, games[number], done[number]) for number in sorted(games)]
    everything = [duration_us for durations in done.values() for duration_us in durations]
    return (*rounds, _status(None, games.total(), everything))


def _status(number: int | None, games: int, durations_us: list[int]) -> StatusRow:
    done, playing_us = len(durations_us), sum(durations_us)
    return StatusRow(
        round=number,
        done=done,
        games=games,
        share=done / games if games else 1.0,
        playing_us=playing_us,
        mean_us=playing_us // done if done else None,
    )
