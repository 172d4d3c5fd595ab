"""A schedule made longer: more rounds of all its tables, after what is there already; or shorter.

Games that are there keep their numbers, deals and lanes. The cyclic orders of the tables go on where they
were, so that neighbours become as even as in a tournament that was as long from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, pairwise

from referee.schedule.algorithms import ALGORITHMS
from referee.schedule.games import ScheduledGame, Stage


def longer(stages: Iterable[Stage], matches: int) -> tuple[Stage, ...]:
    """Stages with so many more matches at each table."""
    return tuple(replace(stage, matches=stage.matches + matches) for stage in stages)


def shorter(stages: Iterable[Stage], rounds: int) -> tuple[Stage, ...]:
    """Stages that end after so many rounds: their schedule is what the longer ones' begins with."""
    return tuple(replace(stage, matches=min(stage.matches, rounds)) for stage in stages)


def extended(
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
        extensions: how many matches at each table each of them adds.
        lanes: as for the algorithm.

    Raises ValueError as the algorithm does, for an extension of nothing, and for one of a balanced
    choice, which has no rounds of all tables.
    """
    make = ALGORITHMS[algorithm]
    parts = [make(tournament, bots, stages, lanes=lanes)]
    if any(matches < 1 for matches in extensions):
        raise ValueError("an extension adds a match or more at each table")
    if extensions and any(stage.balanced for stage in stages):
        raise ValueError("only some of the tables play, a balanced choice; no round can be added")
    totals = accumulate(extensions, longer, initial=tuple(stages))
    for before, after in pairwise(totals):
        added = _added(make(tournament, bots, after, lanes=lanes), before)
        last = parts[-1][-1]
        parts.append(
            tuple(_numbered(tournament, added, last.index + 1, last.match + 1, lanes=lanes))
        )
    return tuple(parts)


def _added(games: Iterable[ScheduledGame], before: Sequence[Stage]) -> list[ScheduledGame]:
    """The games of new rounds; stages take turns, round by round."""
    new = [game for game in games if game.round >= before[game.stage].matches]
    return sorted(new, key=lambda game: (game.round - before[game.stage].matches, game.stage))


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
