"""The algorithms that make schedules, by the names that leagues keep.

A schedule made longer, by games after those that are there already; or shorter.

Games that are there keep their numbers, deals and lanes. Where all tables play, more rounds of them do: the
cyclic orders go on where they were, so that neighbours become as even as in a tournament that was as long
from the beginning. Of a balanced choice, what is added is one more, as if each stage came again: who has
played less so far plays more of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, pairwise
from types import MappingProxyType

from referee.records import ScheduledGame
from referee.schedule.balanced import balanced_schedule
from referee.schedule.gauntlet import gauntlet
from referee.schedule.round_robin import round_robin
from referee.schedule.stages import Stage

ROUND_ROBIN = "round-robin-1"
BALANCED = "balanced-1"
GAUNTLET = "gauntlet-1"
ALGORITHMS = MappingProxyType(
    {ROUND_ROBIN: round_robin, BALANCED: balanced_schedule, GAUNTLET: gauntlet}
)
"""All that ever made schedules. One that makes other schedules gets a new name."""


def select_algorithm(stages: Iterable[Stage]) -> str:
    """The name of what makes the schedule of a new tournament; its stages are of one kind."""
    kinds = {(stage.challengers > 0, stage.balanced) for stage in stages}
    if any(challenged for challenged, _ in kinds):
        return GAUNTLET
    return BALANCED if any(choice for _, choice in kinds) else ROUND_ROBIN


Schedule = Callable[[Sequence[Stage]], Sequence[ScheduledGame]]


def lengthen(stages: Iterable[Stage], matches: int) -> tuple[Stage, ...]:
    """Stages with so many more matches, at each table or in the whole balanced choice."""
    return tuple(replace(stage, matches=stage.matches + matches) for stage in stages)


def shorten(stages: Iterable[Stage], rounds: int) -> tuple[Stage, ...]:
    """Stages that end after so many rounds: their schedule is what the longer ones' begins with."""
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
    """The schedule of a tournament, and what each of its extensions adds.

    Args:
        algorithm: one of `ALGORITHMS`.
        tournament: its name.
        bots: as for the algorithm.
        stages: those of the tournament as it was created.
        extensions: how many matches each of them adds, at each table or to each balanced choice.
        lanes: as for the algorithm.

    Raises ValueError as the algorithm does, and for an extension of nothing.
    """
    if any(matches < 1 for matches in extensions):
        raise ValueError("an extension adds a match or more")
    parts = [ALGORITHMS[algorithm](tournament, bots, stages, lanes=lanes)]
    added = _choices if any(stage.balanced for stage in stages) else _rounds

    def schedule(longer_stages: Sequence[Stage]) -> Sequence[ScheduledGame]:
        return ALGORITHMS[algorithm](tournament, bots, longer_stages, lanes=lanes)

    for games in added(schedule, stages, extensions):
        last = parts[-1][-1]
        parts.append(
            tuple(_numbered(tournament, games, last.index + 1, last.match + 1, lanes=lanes))
        )
    return tuple(parts)


def _rounds(
    schedule: Schedule, stages: Sequence[Stage], extensions: Sequence[int]
) -> Iterator[list[ScheduledGame]]:
    """The games of the rounds that each extension adds; stages take turns, round by round."""
    totals = accumulate(extensions, lengthen, initial=tuple(stages))
    for before, after in pairwise(totals):
        new = [game for game in schedule(after) if game.round >= before[game.stage].matches]
        yield sorted(new, key=lambda game: (game.round - before[game.stage].matches, game.stage))


def _choices(
    schedule: Schedule, stages: Sequence[Stage], extensions: Sequence[int]
) -> Iterator[list[ScheduledGame]]:
    """The games of the choice that each extension adds, chosen for stages behind all the others."""
    repeated = list(stages)
    done = Counter({game.stage: game.round + 1 for game in schedule(stages)})  # the last one's
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


def _numbered(
    tournament: str, games: Iterable[ScheduledGame], index: int, match: int, *, lanes: int
) -> Iterator[ScheduledGame]:
    """The games with numbers from these on, and all that follows from them."""
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
