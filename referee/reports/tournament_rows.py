"""Make rows for the list of tournaments, for the progress of a tournament, and for the plan of a tournament.

The plan says before the first game how often bots will meet and how long the games may take.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise, product
from typing import Annotated, NamedTuple

from referee.clocks import SECOND_US
from referee.errors import RefereeError, UserError
from referee.records import ScheduledGame
from referee.reports.formats import Column, decimal, duration, moment, percent, row_from
from referee.store import RoundProgress, StoredHost, StoredMachine, StoredTournament
from referee.tournament.config import from_canonical_json


@dataclass(frozen=True, slots=True, kw_only=True)
class TournamentRow:
    """A tournament in the list of tournaments."""

    tournament: Annotated[str, Column("tournament", wrap=True)]
    """Name of the tournament."""
    rulesets: Annotated[tuple[str, ...], Column("rulesets", wrap=True, drop=2)]
    """Names of the rulesets of all stages, each name once."""
    bots: Annotated[int, Column("bots", right=True)]
    done: Annotated[int, Column("done", right=True)]
    """Number of finished games."""
    games: Annotated[int, Column("games", right=True)]
    """Number of scheduled games."""
    share: Annotated[float, Column("share", right=True, show=percent)]
    """Finished games divided by scheduled games."""
    stopped_after: Annotated[int | None, Column("stopped after", right=True, drop=3)]
    """Number of rounds after which the tournament stopped early; None if it did not stop early."""
    created_at_us: Annotated[int, Column("created", show=moment, drop=1)]
    """Microseconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRow:
    """The progress of a round. Rounds of different stages share a row if their numbers are equal. The last row sums all rounds."""

    round: Annotated[int | None, Column("round", right=True, empty="all")]
    """Round number inside a stage, from 1; None for the whole tournament."""
    done: Annotated[int, Column("done", right=True)]
    games: Annotated[int, Column("games", right=True)]
    share: Annotated[float, Column("share", right=True, show=percent)]
    """Finished games divided by scheduled games."""
    playing_time_us: Annotated[int, Column("playing time", right=True, show=duration)]
    """Sum of the durations of the finished games. It can be longer than the time that has passed, because games may be
    played at the same time."""
    per_game_us: Annotated[int | None, Column("per game", right=True, show=duration)]
    """Mean duration of a finished game; None if no game is finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineStatusRow:
    """A machine that has played games of a tournament."""

    host: Annotated[str, Column("host", wrap=True)]
    cpu: Annotated[str, Column("CPU", wrap=True, drop=1)]
    games: Annotated[int, Column("games", right=True)]
    """Number of its finished games."""
    games_per_s: Annotated[float, Column("games per s", right=True, show=decimal(1))]
    """How many of its games ended per second in the last minute of the tournament. This minute ends when the last game of any
    machine ends. If the first game of the tournament began within this minute, only the time since then counts."""
    last_game_at_us: Annotated[int, Column("last game", show=moment)]
    """When its newest game ended, in microseconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatusRow:
    """A host in the last run of a tournament on a cluster."""

    host: Annotated[str, Column("host", wrap=True)]
    playing: Annotated[int, Column("playing", right=True)]
    """Number of workers that had games to play."""
    idle: Annotated[int, Column("idle", right=True)]
    """Number of workers that could play, but had no games."""
    lost: Annotated[int, Column("lost", right=True)]
    """How many times a worker of the host was lost, failed, or had to be prepared again during the run."""
    games: Annotated[int, Column("games", right=True)]
    """Number of games that the host played in the run."""
    games_per_s: Annotated[float, Column("games per s", right=True, show=decimal(1))]
    """`games` divided by the seconds from the start of the run to `noted_at_us`."""
    noted_at_us: Annotated[int, Column("noted", show=moment)]
    """When the driver stored these figures, in microseconds since 1970-01-01 UTC. It does so every 2 seconds, and at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextGameRow:
    """A game of the schedule that is still to be played."""

    game: Annotated[str, Column("game", wrap=True)]
    """Id of the game."""
    round: Annotated[int, Column("round", right=True)]
    match: Annotated[int, Column("match", right=True)]
    lane: Annotated[int, Column("lane", right=True)]
    bots: Annotated[tuple[str, ...], Column("bots", wrap=True)]
    """`name@version` of each seat, seat 0 first."""


def next_game_rows(games: Iterable[ScheduledGame]) -> tuple[NextGameRow, ...]:
    """Return a row for each game, in the given order."""
    return tuple(row_from(NextGameRow, each, game=each.game_id) for each in games)


def tournament_rows(
    tournaments: Iterable[StoredTournament],
) -> tuple[tuple[TournamentRow, ...], tuple[RefereeError, ...]]:
    """Return a row for each stored tournament that can be read, in the given order, and the errors of the others.

    A tournament cannot be read if its configuration is damaged, or if this version of the referee does not know the format of
    the configuration or the algorithm of the schedule.
    """
    rows, errors = list[TournamentRow](), list[RefereeError]()
    for each in tournaments:
        try:
            rows.append(_tournament_row(each))
        except RefereeError as error:
            errors.append(error)
    return tuple(rows), tuple(errors)


def _tournament_row(tournament: StoredTournament) -> TournamentRow:
    try:
        config = from_canonical_json(tournament.config)
    except UserError as error:
        raise UserError(f"tournament {tournament.name}: {error}") from error
    except ValueError as error:
        raise RefereeError(
            f"tournament {tournament.name} is damaged: its configuration: {error}"
        ) from error
    return row_from(
        TournamentRow,
        tournament,
        tournament=tournament.name,
        rulesets=tuple(dict.fromkeys(stage.ruleset.name for stage in config.stages)),
        bots=len(config.bots),
        done=tournament.stored,
        share=tournament.stored / tournament.games,
    )


def machine_status_rows(machines: Iterable[StoredMachine]) -> tuple[MachineStatusRow, ...]:
    """Return a row for each machine."""
    return tuple(
        row_from(MachineStatusRow, each, last_game_at_us=each.last_us) for each in machines
    )


def host_status_rows(hosts: Iterable[StoredHost]) -> tuple[HostStatusRow, ...]:
    """Return a row for each host."""
    return tuple(
        HostStatusRow(
            **asdict(host.figures),
            games_per_s=host.figures.games
            * SECOND_US
            / max(1, host.noted_at_us - host.began_at_us),
            noted_at_us=host.noted_at_us,
        )
        for host in hosts
    )


def status_rows(rounds: Sequence[RoundProgress]) -> tuple[StatusRow, ...]:
    """Return a row for each round, then a row for all rounds of a tournament."""
    games, done = sum(each.games for each in rounds), sum(each.done for each in rounds)
    everything = _status(None, games, done, sum(each.playing_us for each in rounds))
    rows = (_status(each.round, each.games, each.done, each.playing_us) for each in rounds)
    return (*rows, everything)


def _status(number: int | None, games: int, done: int, playing_us: int) -> StatusRow:
    """Return the row of a round number; `number` is None for the whole tournament."""
    return StatusRow(
        round=number,
        done=done,
        games=games,
        share=done / games if games else 1.0,
        playing_time_us=playing_us,
        per_game_us=playing_us // done if done else None,
    )


ASSUMED_GAME_US = SECOND_US // 10
"""The expected duration of a game if no stored game has the same `GameKind`."""


class Spread(NamedTuple):
    """The smallest and the largest of several numbers, such as the numbers of games of all bots."""

    least: int
    most: int


class GameKind(NamedTuple):
    """Ruleset and table size of a game. Games with the same ruleset and table size are expected to take equally long."""

    ruleset: str
    seats: int


def _spread(spread: Spread) -> str:
    least, most = spread
    return f"{least}" if least == most else f"{least}-{most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """The plan of a stage. The last row has the plan of all stages together.

    A field of type `Spread` counts something for each bot, for each bot in each seat, or for each pair. It has the smallest
    and the largest of these counts.
    """

    stage: Annotated[int | None, Column("stage", empty="all")]
    """Stage number, from 0; None for all stages."""
    rulesets: Annotated[tuple[str, ...], Column("rulesets")]
    """Names of the rulesets, each name once."""
    seats: Annotated[tuple[int, ...], Column("seats")]
    """Table sizes, each size once."""
    games: Annotated[int, Column("games")]
    matches: Annotated[int, Column("matches")]
    rounds: Annotated[int, Column("rounds")]
    games_per_bot: Annotated[Spread, Column("games per bot", show=_spread)]
    games_per_bot_and_seat: Annotated[Spread, Column("games per bot and seat", show=_spread)]
    """Number of games that a bot plays in a seat. Seat 0 at a table of three bots and seat 0 at a table of four bots count
    as two seats."""
    meetings_per_pair: Annotated[Spread, Column("meetings per pair", show=_spread)]
    """Number of matches that two bots play together. In a gauntlet, a pair is a challenger and a bot of the field."""
    matches_at_the_right: Annotated[Spread, Column("matches at the right", show=_spread)]
    """Number of matches in which one bot of a pair sits directly to the right of the other. Each pair of `meetings_per_pair`
    counts twice: once with each bot on the right."""
    playing_time_us: Annotated[int, Column("playing time", show=duration)]
    """Expected sum of the durations of all games, divided by the number of workers."""
    measured: Annotated[int, Column("measured", data_only=True)]
    """Number of stored games from which the expected duration was computed. For rulesets and table sizes without a stored game, the
    duration is assumed."""


def game_times(games: Iterable[tuple[GameKind, int]]) -> dict[GameKind, tuple[int, ...]]:
    """Return the durations of played games by kind, in microseconds."""
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
    """Return a row for each stage of a schedule, then a row for the whole schedule.

    Args:
        bots: the names of all bots, as in the schedule.
        schedule: at least one game.
        times: durations of played games by kind, in microseconds (`game_times`).
        rulesets: the name of the ruleset of each stage.
        workers: largest number of games that are played at the same time.
        challengers: number of challengers in a gauntlet; 0 in other formats. `bots` must start with the challengers.
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
    measured = {kind: times[kind] for kind in kinds if times.get(kind)}
    lasting_us = sum(
        sum(measured[kind]) * count / len(measured[kind])
        if kind in measured
        else ASSUMED_GAME_US * count
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
        games_per_bot_and_seat=_count(
            [(size, seat, bot) for size in sizes for seat in range(size) for bot in bots],
            ((len(game.bots), seat, bot) for game in games for seat, bot in enumerate(game.bots)),
        ),
        meetings_per_pair=_count(
            map(frozenset, pairs),
            (frozenset(pair) for table in matches for pair in combinations(table, 2)),
        ),
        matches_at_the_right=_count(
            [pair for one, other in pairs for pair in ((one, other), (other, one))],
            (pair for table in matches for pair in pairwise((*table, table[0]))),
        ),
        playing_time_us=round(lasting_us / min(workers, len(games))),
        measured=sum(map(len, measured.values())),
    )


def _pairs(bots: Sequence[str], challengers: int) -> list[tuple[str, str]]:
    """Return all pairs of bots; in a gauntlet only the pairs of a challenger and a bot of the field."""
    if challengers:
        return list(product(bots[:challengers], bots[challengers:]))
    return list(combinations(bots, 2))


def _count(kinds: Iterable[object], items: Iterable[object]) -> Spread:
    """Count how often each of `kinds` occurs in `items`, and return the smallest and the largest count."""
    counts = Counter(items)
    each = [counts[kind] for kind in kinds]
    return Spread(min(each), max(each))
