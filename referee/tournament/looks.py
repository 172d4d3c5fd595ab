"""Take the looks of a tournament: the tests, after some rounds, whether its standings are settled.

Only a tournament that may stop early (key `until` of its file) has looks. A look uses only the games before it, and later games
do not start before the look is over. Therefore a tournament stops at the same look with any number of workers, and in a resumed
run. `verify` checks each look.
"""

from __future__ import annotations

from dataclasses import dataclass

from referee.ratings.analysis import Analysis
from referee.ratings.judge import NOTHING, Judge, Verdicts
from referee.ratings.stopping import look_rounds
from referee.result_columns import ResultColumns
from referee.schedule.extension import shorten
from referee.tournament.config import TournamentConfig, count_rounds


@dataclass(frozen=True, slots=True)
class Look:
    """A test whether the standings are settled. It takes place when all games of a round are stored."""

    rounds: int
    """Number of rounds before the look."""
    games: int
    """Number of games before the look. They are the first games of the schedule."""


@dataclass(frozen=True, slots=True)
class TakenLook:
    """A look, and the verdicts after it."""

    look: Look
    verdicts: Verdicts


def list_looks(config: TournamentConfig) -> tuple[Look, ...]:
    """Return all looks of a tournament; an empty tuple if the configuration has no `until`.

    The last look is after the last round, when the tournament ends anyway.
    """
    if config.until is None:
        return ()
    bots = len(config.bots)
    return tuple(
        Look(rounds, sum(stage.games(bots) for stage in shorten(config.stages, rounds)))
        for rounds in look_rounds(count_rounds(config))
    )


def take_looks(
    config: TournamentConfig, games: ResultColumns, last: Look, before: TakenLook | None = None
) -> TakenLook:
    """Take all looks from the first one to `last`, and return the last one. The configuration must have `until`.

    A look needs the final verdicts of the looks before it. If the caller has taken some of them already, this function takes
    only the looks after them.

    Args:
        config: the configuration of the tournament.
        games: the games in schedule order, at least those before `last`.
        last: one of the tournament's looks.
        before: an earlier look of this tournament; None if the caller has taken none.
    """
    assert config.until is not None  # noqa: S101 - callers check it
    looks = list_looks(config)
    judge = Judge(config.until, tuple(look.rounds for look in looks))
    taken = before
    for look in looks[: looks.index(last) + 1]:
        if taken is not None and look.rounds <= taken.look.rounds:
            continue
        by_ruleset = games.select(slice(look.games)).by_ruleset()
        analyses = {ruleset: Analysis(results) for ruleset, results in by_ruleset.items()}
        final = NOTHING if taken is None else taken.verdicts.final
        taken = TakenLook(look, judge.look(analyses, look.rounds, final))
    assert taken is not None  # noqa: S101 - `last` is one of the looks
    return taken


def find_newest_look(
    config: TournamentConfig, games: int, stopped_after: int | None
) -> Look | None:
    """Return the newest look of a tournament with this number of stored games; None before its first look.

    Args:
        config: the configuration of the tournament.
        games: the number of stored games.
        stopped_after: the number of rounds after which the tournament stopped early; None if it did not.
    """
    past = [
        look
        for look in list_looks(config)
        if look.games <= games and (stopped_after is None or look.rounds <= stopped_after)
    ]
    return past[-1] if past else None
