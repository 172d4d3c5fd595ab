"""Take the looks of a tournament: the tests, after some rounds, whether its standings are settled.

Only a tournament that may stop early (key `until` of its file) has looks. A look uses only the games before it, and later games
do not start before the look is over. Therefore a tournament stops at the same look with any number of workers, and in a resumed
run. A ruleset whose neighbours are all settled plays no further match, so the number of games before a look depends on the looks before it.
`course` says which matches follow a look. `verify` checks each look.
"""

from __future__ import annotations

from dataclasses import dataclass

from referee.ratings.analysis import Analysis
from referee.ratings.judge import Judge, Verdict, Verdicts
from referee.result_columns import ResultColumns
from referee.schedule import Stage
from referee.tournament.config import TournamentConfig, list_look_rounds


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

    def plays_on(self, stage: Stage) -> bool:
        """Return whether a stage plays further matches if it has any: whether a pair of neighbours in its ruleset is open."""
        table = self.verdicts.neighbours[stage.ruleset.name]
        return any(each.verdict is Verdict.OPEN for each in table)


def find_next_look(config: TournamentConfig, taken: TakenLook | None) -> Look | None:
    """Return the look after `taken`, or the first look if `taken` is None. Return None if no look follows.

    No look follows the last one. No look follows if no game is left to play, because all standings are settled, or because no ruleset
    with open neighbours has further rounds.
    """
    done, games = (0, 0) if taken is None else (taken.look.rounds, taken.look.games)
    ahead = [rounds for rounds in list_look_rounds(config) if rounds > done]
    if not ahead:
        return None
    rounds, bots = ahead[0], len(config.bots)
    added = sum(
        stage.games(bots) // stage.matches * (min(stage.matches, rounds) - min(stage.matches, done))
        for stage in config.stages
        if taken is None or taken.plays_on(stage)
    )
    return Look(rounds, games + added) if added else None


def take_look(
    config: TournamentConfig, games: ResultColumns, look: Look, before: TakenLook | None
) -> TakenLook:
    """Take a look of a tournament. The configuration must have `until`.

    Args:
        config: the configuration of the tournament.
        games: the games in schedule order, at least those before the look.
        look: the look after `before`, as `find_next_look` returns it.
        before: the look before this one; None if this is the first.
    """
    assert config.until is not None  # noqa: S101 - callers check it
    judge = Judge(config.until, list_look_rounds(config))
    by_ruleset = games.select(slice(look.games)).by_ruleset()
    analyses = {ruleset: Analysis(results) for ruleset, results in by_ruleset.items()}
    earlier = None if before is None else before.verdicts
    return TakenLook(look, judge.look(analyses, look.rounds, earlier))


def take_looks(config: TournamentConfig, games: ResultColumns) -> TakenLook | None:
    """Take all looks of a tournament whose games are stored, and return the newest. Return None before the first look.

    Args:
        config: the configuration of the tournament. It must have `until`.
        games: the stored games in schedule order.
    """
    taken = None
    while (look := find_next_look(config, taken)) is not None and look.games <= len(games):
        taken = take_look(config, games, look, taken)
    return taken
