"""Select the algorithm of a schedule, and extend or shorten a schedule.

An extension adds games. Existing games keep their numbers, deals and lanes.

- If all tables play, the extension adds rounds. In each added round, every table has the same cyclic order that it
  would have if the tournament had been created with all these rounds.
- If the stages are balanced, the extension adds another balanced choice to each stage. If the new choice must
  let some bots play more often than others, it prefers bots that have played less in the earlier choices. Pairs of
  bots that have met rarely in the earlier choices meet often in the new one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from types import MappingProxyType

from referee.records import ScheduledGame
from referee.schedule import Stage
from referee.schedule.balanced import balanced_schedule
from referee.schedule.ladder import ladder_schedule
from referee.schedule.round_robin import gauntlet, round_robin

ROUND_ROBIN = "round-robin-1"
BALANCED = "balanced-1"
GAUNTLET = "gauntlet-1"
LADDER = "ladder-2"
ALGORITHMS = MappingProxyType(
    {
        ROUND_ROBIN: round_robin,
        BALANCED: balanced_schedule,
        GAUNTLET: gauntlet,
        LADDER: ladder_schedule,
    }
)
"""The algorithms by name. The database stores the name.

If you change an algorithm so that it makes other schedules, give the changed algorithm a new name and keep the old one.
Verification must be able to compute old schedules again. Two errors were corrected without a new name. This version
of the referee cannot open a league that is older than these corrections, so no stored schedule can have the errors:

- `balanced-1` left matches out with 25 bots at tables of 4;
- `balanced-1` and `gauntlet-1` repeated tables in a balanced choice with several stages or an extension.

The name of a ladder's algorithm also stands for the way in which its looks choose games. So if a change in
`tournament/ladder.py` or `ratings/information.py` leads to other games, give the algorithm a new name. No release
contained `ladder-1`, so it was not kept.
"""


def select_algorithm(stages: Iterable[Stage]) -> str:
    """Return the name of the algorithm for a new tournament that is no ladder.

    Either all stages or none must have challengers, and either all or none must be balanced.
    """
    kinds = {(stage.challengers > 0, stage.balanced) for stage in stages}
    if any(challenged for challenged, _ in kinds):
        return GAUNTLET
    return BALANCED if any(choice for _, choice in kinds) else ROUND_ROBIN


Schedule = Callable[[Sequence[Stage]], Sequence[ScheduledGame]]
"""A function that takes stages and returns their games."""


def lengthen(stages: Iterable[Stage], matches: int) -> tuple[Stage, ...]:
    """Return the stages, each with `matches` added to `Stage.matches`."""
    return tuple(replace(stage, matches=stage.matches + matches) for stage in stages)


def shorten(stages: Iterable[Stage], rounds: int) -> tuple[Stage, ...]:
    """Return the stages with only the first `rounds` rounds, for a tournament that stopped early.

    The stages must not be balanced. The schedule of the result is the start of the full schedule.
    """
    return tuple(replace(stage, matches=min(stage.matches, rounds)) for stage in stages)


def extension_games(
    algorithm: str,
    tournament: str,
    bots: Sequence[str],
    stages: Sequence[Stage],
    extensions: Sequence[int],
    *,
    lanes: int,
    last: ScheduledGame,
) -> tuple[tuple[ScheduledGame, ...], ...]:
    """Return for each extension the games that it adds.

    Args:
        algorithm: a name in `ALGORITHMS`.
        tournament: the name of the tournament, used in ids.
        bots: the names of the bots; in a gauntlet, the challengers first.
        stages: the stages before the first extension.
        extensions: for each extension, the number of matches that it adds to each table. If the stages are
            balanced, the number of matches that it adds to each stage.
        lanes: the number of lanes, at least the number of seats of the largest table.
        last: the last game before the first extension. The numbers of the added games continue from its number.

    Raises ValueError if an extension adds no match, or if the algorithm cannot make the schedule of the
    stages.
    """
    if any(matches < 1 for matches in extensions):
        raise ValueError("an extension must add at least one match; give 1 or more")
    if not extensions:
        return ()
    added = _choices if any(stage.balanced for stage in stages) else _rounds

    def schedule(longer_stages: Sequence[Stage]) -> Sequence[ScheduledGame]:
        return ALGORITHMS[algorithm](tournament, bots, longer_stages, lanes=lanes)

    parts = []
    for games in added(schedule, stages, extensions):
        parts.append(
            tuple(_renumber(tournament, stages, games, last.index + 1, last.match + 1, lanes=lanes))
        )
        last = parts[-1][-1]
    return tuple(parts)


def _rounds(
    schedule: Schedule, stages: Sequence[Stage], extensions: Sequence[int]
) -> Iterator[list[ScheduledGame]]:
    """Yield, for each extension, the games of the rounds that it adds. All tables of the stages play.

    The games are sorted by round, then by stage: the first new round of each stage, then the second, and so
    on. The rounds of a stage do not change if more rounds follow. So one schedule is computed for all extensions
    together.
    """
    ends = list(accumulate(extensions))
    added: list[list[ScheduledGame]] = [[] for _ in extensions]
    for game in schedule(lengthen(stages, ends[-1])):
        new_round = game.round - stages[game.stage].matches
        if new_round > 0:
            added[bisect_left(ends, new_round)].append(game)
    for games in added:
        yield sorted(games, key=lambda game: (game.round - stages[game.stage].matches, game.stage))


def _choices(
    schedule: Schedule, stages: Sequence[Stage], extensions: Sequence[int]
) -> Iterator[list[ScheduledGame]]:
    """Yield, for each extension, the games of the balanced choices that it adds.

    For each extension, a copy of each original stage is appended to the list of stages. The copy has the number of
    matches that the extension adds. The new games are the games of these copies. In each new game, the stage number of
    the copy is replaced by the number of the original stage. Appended stages change neither the tables of the earlier
    stages nor the order of their games. So one schedule is computed for all extensions together.
    """
    repeated = list(stages)
    for matches in extensions:
        repeated += [replace(stage, matches=matches) for stage in stages]
    choices: list[list[ScheduledGame]] = [[] for _ in range(1 + len(extensions))]
    for game in schedule(repeated):
        number, stage = divmod(game.stage, len(stages))
        choices[number].append(replace(game, stage=stage))
    # The number of rounds of each stage so far. The dictionary below keeps only the round of the last game of a stage,
    # and this is the last round of the stage.
    done = Counter[int]()
    for number, games in enumerate(choices):
        if number:
            yield [replace(game, round=done[game.stage] + game.round) for game in games]
        done += Counter({game.stage: game.round for game in games})


def _renumber(
    tournament: str,
    stages: Sequence[Stage],
    games: Iterable[ScheduledGame],
    index: int,
    match: int,
    *,
    lanes: int,
) -> Iterator[ScheduledGame]:
    """Yield the games with new numbers, and with the lanes and the ids that follow from the numbers.

    Args:
        tournament: the name of the tournament, used in ids.
        stages: the stages of the tournament.
        games: the games in the order of play.
        index: the number of the first game.
        match: the number of the first match.
        lanes: the number of lanes.
    """
    for _, of_match in groupby(games, key=lambda game: game.match):
        for game in of_match:
            yield replace(
                game,
                index=index,
                match=match,
                lane=index % lanes,
                deal_id=stages[game.stage].deal_id(tournament, match, game.seating),
                game_id=f"{tournament}-{index + 1}",
            )
            index += 1
        match += 1
