"""Make results and faults by hand, for tests of ratings and reports."""

from __future__ import annotations

from referee.errors import Cause, Evidence
from referee.records import ChargedFault, Fault, GameResult


def game_result(
    bots,
    ranks,
    scores=None,
    *,
    game_id="cup-1",
    tournament="cup",
    index=0,
    ruleset="basic",
    round=1,  # noqa: A002 - the name of the field
    match=0,
    forfeited=(),
) -> GameResult:
    """Return a result; without `scores` all seats have 0 points."""
    return GameResult(
        game_id=game_id,
        tournament=tournament,
        index=index,
        ruleset=ruleset,
        round=round,
        match=match,
        bots=tuple(bots),
        scores=(0,) * len(ranks) if scores is None else tuple(scores),
        ranks=tuple(ranks),
        forfeited=tuple(forfeited),
    )


def charged_fault(
    game_id, bot, cause=Cause.TIMEOUT, *, forfeit=False, move=0, detail="no reply", stderr_tail=""
) -> ChargedFault:
    """Return a fault of seat 0, charged to `bot`."""
    evidence = Evidence(detail=detail, stderr_tail=stderr_tail)
    return ChargedFault(game_id, bot, Fault(0, cause, forfeit, move, evidence))
