"""Select the algorithm of a schedule, and make a schedule longer or shorter.

In a longer schedule all existing games keep their numbers, deals and lanes. If all tables play, an extension
adds rounds. Their cyclic orders continue the old ones, so neighbours become as even as in a tournament that
was that long from the start. To a balanced choice an extension adds another choice, as if every stage came
again: bots that have played less so far play more of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, pairwise
from types import MappingProxyType

from referee.records import ScheduledGame
from referee.schedule import Stage
from referee.schedule.balanced import balanced_schedule
from referee.schedule.gauntlet import gauntlet
from referee.schedule.round_robin import round_robin

ROUND_ROBIN = "round-robin-1"
BALANCED = "balanced-1"
GAUNTLET = "gauntlet-1"
ALGORITHMS = MappingProxyType(
    {ROUND_ROBIN: round_robin, BALANCED: balanced_schedule, GAUNTLET: gauntlet}
)
"""The algorithms by the names that leagues store. An algorithm that changes must get a new name."""


def select_algorithm(stages: Iterable[Stage]) -> str:
    """Return the name of the algorithm for a new tournament. All its stages must be of one kind."""
    kinds = {(stage.challengers > 0, stage.balanced) for stage in stages}
    if any(challenged for challenged, _ in kinds):
        return GAUNTLET
    return BALANCED if any(choice for _, choice in kinds) else ROUND_ROBIN


Schedule = Callable[[Sequence[Stage]], Sequence[ScheduledGame]]


def lengthen(stages: Iterable[Stage], matches: int) -> tuple[Stage, ...]:
    """Return the stages with `matches` more matches, at each table or in each balanced choice."""
    return tuple(replace(stage, matches=stage.matches + matches) for stage in stages)


def shorten(stages: Iterable[Stage], rounds: int) -> tuple[Stage, ...]:
    """Return the stages cut after `rounds` rounds. Their schedule is the start of the longer one."""
    return tuple(replace(stage, matches=min(stage.matches, rounds)) for stage in stages)


def extended_schedule(
    algorithm: str,
    tournament: str,
    bots: Sequence[str],
    stages: Sequence[Stage],
    extensions: Sequence[int],
    *,
    lanes: int,
) -> tuple[tuple[ScheduledGame, ...], ...]:
    """Return the schedule of a tournament, followed by the games that each extension adds.

    Args:
        algorithm: a name in `ALGORITHMS`.
        tournament: the name of the tournament.
        bots: as for the algorithm.
        stages: the stages of the tournament at its creation.
        extensions: the number of matches that each extension adds, at each table or to each balanced choice.
        lanes: as for the algorithm.

    Raises ValueError as the algorithm does, and if an extension adds no match.
    """
    if any(matches < 1 for matches in extensions):
        raise ValueError("an extension must add at least one match")
    parts = [ALGORITHMS[algorithm](tournament, bots, stages, lanes=lanes)]
    added = _choices if any(stage.balanced for stage in stages) else _rounds

    def schedule(longer_stages: Sequence[Stage]) -> Sequence[ScheduledGame]:
        return ALGORITHMS[algorithm](tournament, bots, longer_stages, lanes=lanes)

    for games in added(schedule, stages, extensions):
        last = parts[-1][-1]
        parts.append(
            tuple(_renumber(tournament, games, last.index + 1, last.match + 1, lanes=lanes))
        )
    return tuple(parts)


def _rounds(
    schedule: Schedule, stages: Sequence[Stage], extensions: Sequence[int]
) -> Iterator[list[ScheduledGame]]:
    """Yield the games of the rounds that each extension adds; stages take turns, round by round."""
    totals = accumulate(extensions, lengthen, initial=tuple(stages))
    for before, after in pairwise(totals):
        new = [game for game in schedule(after) if game.round >= before[game.stage].matches]
        yield sorted(new, key=lambda game: (game.round - before[game.stage].matches, game.stage))


def _choices(
    schedule: Schedule, stages: Sequence[Stage], extensions: Sequence[int]
) -> Iterator[list[ScheduledGame]]:
    """Yield the games of the choice that each extension adds.

    They come from the schedule of all stages so far, followed by the same stages once more.
    """
    repeated = list(stages)
    done = Counter(
        {game.stage: game.round + 1 for game in schedule(stages)}
    )  # the last game of a stage counts
    for matches in extensions:
        first = len(repeated)
        repeated += [replace(stage, matches=matches) for stage in stages]
        games = [
            replace(game, stage=stage, round=done[stage] + game.round)
            for game in schedule(repeated)
            if (stage := game.stage - first) >= 0
        ]
        done |= Counter({game.stage: game.round + 1 for game in games})
        yield games


def _renumber(
    tournament: str, games: Iterable[ScheduledGame], index: int, match: int, *, lanes: int
) -> Iterator[ScheduledGame]:
    """Yield the games with indexes and matches from these on, and with new ids, deals and lanes."""
    for _, of_match in groupby(games, key=lambda game: game.match):
        for game in of_match:
            yield replace(
                game,
                index=index,
                match=match,
                lane=index % lanes,
                deal_id=f"{tournament}-deal-{match + 1}",
                game_id=f"{tournament}-{index + 1}",
            )
            index += 1
        match += 1
