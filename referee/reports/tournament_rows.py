"""Which tournaments there are and how far they have come.

What a schedule comes to, before a game of it is played: how even it is, and how long it may take.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Annotated, NamedTuple

from referee.clocks import SECOND_US
from referee.records import ScheduledGame
from referee.reports.formats import Column, duration, moment, percent


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
    stopped_after: Annotated[int | None, Column("stopped after", right=True, drop=3)]
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
    stopped_after: int | None,
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
        stopped_after=stopped_after,
        created_at_us=created_at_us,
    )


def status_rows(
    schedule: Iterable[ScheduledGame], durations_us: Mapping[str, int]
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


ASSUMED_GAME_US = SECOND_US // 10
"""What a game is taken to last where none like it is known: the sample bots in Python
need less."""


class Spread(NamedTuple):
    """The least and the most of several numbers."""

    least: int
    most: int


class GameKind(NamedTuple):
    """Games that are expected to last equally long."""

    ruleset: str
    seats: int


def _spread(spread: Spread) -> str:
    least, most = spread
    return f"{least}" if least == most else f"{least}-{most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A stage of a tournament; in the last row, all of them together."""

    stage: Annotated[int | None, Column("stage", empty="all")]
    """From 0; None for all of them."""
    rulesets: Annotated[tuple[str, ...], Column("ruleset")]
    """Of the stage; each once."""
    seats: Annotated[tuple[int, ...], Column("seats of a table")]
    """At a table; each size once."""
    games: Annotated[int, Column("games")]
    matches: Annotated[int, Column("matches")]
    rounds: Annotated[int, Column("rounds")]
    games_per_bot: Annotated[Spread, Column("games of a bot", show=_spread)]
    games_in_seat: Annotated[Spread, Column("games of a bot in a seat", show=_spread)]
    """How often a bot has a seat, over all bots and seats; seats of other table sizes are others."""
    meetings: Annotated[Spread, Column("meetings of a pair", show=_spread)]
    """Matches that a pair plays at one table, over all pairs; of a gauntlet, over those of a challenger
    and one of the field."""
    neighbours: Annotated[Spread, Column("to the right of another", show=_spread)]
    """Matches in which one sits to the right of another, over all ordered pairs; of a gauntlet, see
    `meetings`."""
    playing_us: Annotated[int, Column("playing time", show=duration)]
    """What all games are expected to last, divided by the workers."""
    measured: Annotated[int, Column("measured", data_only=True)]
    """Stored games that this is known from; where there is none of a kind it is an assumption."""


def game_times(games: Iterable[tuple[GameKind, int]]) -> dict[GameKind, tuple[int, ...]]:
    """The durations of played games, in microseconds, by kind."""
    times = defaultdict[GameKind, list[int]](list)
    for kind, duration_us in games:
        times[kind].append(duration_us)
    return {kind: tuple(durations) for kind, durations in times.items()}


def plan_rows(
    bots: Sequence[str],
    schedule: Sequence[ScheduledGame],
    times: Mapping[GameKind, Sequence[int]],
    *,
    rulesets: Sequence[str],
    workers: int,
    challengers: int = 0,
) -> tuple[PlanRow, ...]:
    """The figures of each stage of a schedule, then of all of it.

    Args:
        bots: all that take part, by the names of the schedule.
        schedule: at least one game.
        times: durations of played games, in microseconds, by kind (`game_times`).
        rulesets: the name of the ruleset of each stage.
        workers: games that are played side by side.
        challengers: of a gauntlet: how many of the bots, from the first one on.
    """
    pairs = _pairs(bots, challengers)
    stages = defaultdict[int, list[ScheduledGame]](list)
    for game in schedule:
        stages[game.stage].append(game)
    return tuple(
        _row(stage, bots, pairs, games, times=times, rulesets=rulesets, workers=workers)
        for stage, games in [*sorted(stages.items()), (None, schedule)]
    )


def _row(
    stage: int | None,
    bots: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    games: Sequence[ScheduledGame],
    *,
    times: Mapping[GameKind, Sequence[int]],
    rulesets: Sequence[str],
    workers: int,
) -> PlanRow:
    matches = [game.bots for game in games if game.seating == 0]
    sizes = tuple(dict.fromkeys(map(len, matches)))
    kinds = Counter(GameKind(rulesets[game.stage], len(game.bots)) for game in games)
    known = {kind: times[kind] for kind in kinds if times.get(kind)}
    lasting_us = sum(
        sum(known[kind]) * count / len(known[kind]) if kind in known else ASSUMED_GAME_US * count
        for kind, count in kinds.items()
    )
    return PlanRow(
        stage=stage,
        rulesets=tuple(dict.fromkeys(kind.ruleset for kind in kinds)),
        seats=sizes,
        games=len(games),
        matches=len(matches),
        rounds=len({(game.stage, game.round) for game in games}),
        games_per_bot=_count(bots, (bot for game in games for bot in game.bots)),
        games_in_seat=_count(
            [(size, seat, bot) for size in sizes for seat in range(size) for bot in bots],
            ((len(game.bots), seat, bot) for game in games for seat, bot in enumerate(game.bots)),
        ),
        meetings=_count(
            map(frozenset, pairs),
            (frozenset(pair) for table in matches for pair in combinations(table, 2)),
        ),
        neighbours=_count(
            [pair for one, other in pairs for pair in ((one, other), (other, one))],
            (pair for table in matches for pair in pairwise((*table, table[0]))),
        ),
        playing_us=round(lasting_us / workers),
        measured=sum(map(len, known.values())),
    )


def _pairs(bots: Sequence[str], challengers: int) -> list[tuple[str, str]]:
    """Those who are to meet equally often."""
    if challengers:
        return list(product(bots[:challengers], bots[challengers:]))
    return list(combinations(bots, 2))


def _count(kinds: Iterable[object], occurring: Iterable[object]) -> Spread:
    """How often the kind that occurs least often does, and the one that occurs most often."""
    counts = Counter(occurring)
    each = [counts[kind] for kind in kinds]
    return Spread(min(each), max(each))
