"""How strong the bots are, and how sure that is: what `ratings` has reckoned, as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

from referee.ratings import Point, Rating
from referee.ratings.intervals import Estimate
from referee.reports.formats import (
    Column,
    chance,
    decimal,
    estimate,
    percent,
    percent_estimate,
    row_from,
)
from referee.rules.scoring import competition_ranks

if TYPE_CHECKING:  # numpy and scipy take a while to load
    from referee.ratings.analysis import Analysis, PairFigures
    from referee.ratings.stopping import Neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingRow:
    """How a bot stands in a ruleset, every figure with its 95 % interval."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    rank: Annotated[int, Column("#", right=True)]
    """By conservative rating, then mu; equal ranks are shared."""
    bot: Annotated[str, Column("bot", wrap=True)]
    mu: Annotated[float, Column("mu", right=True, show=decimal(2), drop=4)]
    """TrueSkill, game after game in schedule order."""
    sigma: Annotated[float, Column("sigma", right=True, show=decimal(2), drop=5)]
    conservative: Annotated[float, Column("rating", right=True, show=decimal(2))]
    """mu - 3 sigma."""
    fit: Annotated[Estimate, Column("fit [95 %]", right=True, show=estimate(1), interval=True)]
    """The order-free rating: the skills that explain all games at once; their mean is 25."""
    ahead: Annotated[float | None, Column("ahead", right=True, show=chance, drop=3)]
    """How sure it is, by the fit, that the bot is better than the next one below; None for the last."""
    games: Annotated[int, Column("games", right=True, drop=6)]
    matches: Annotated[int, Column("matches", right=True)]
    """What the intervals come from."""
    wins: Annotated[int, Column("wins", data_only=True)]
    """Games of rank 1, shared ones included, forfeited ones not."""
    win_share: Annotated[
        Estimate,
        Column("won [95 %]", right=True, show=percent_estimate, drop=2, interval=True),
    ]
    """Wins divided by games."""
    mean_score: Annotated[
        Estimate, Column("score [95 %]", right=True, show=estimate(1), drop=7, interval=True)
    ]
    """Mean points of a game, by the rules."""
    strikes: Annotated[int, Column("strikes", right=True, drop=1)]
    forfeits: Annotated[int, Column("forfeits", right=True, drop=8)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """How two bots compare."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    other: Annotated[str, Column("against", wrap=True)]
    meetings: Annotated[int, Column("meetings", right=True, drop=1)]
    """Games in which both sat at the table."""
    matches: Annotated[int, Column("matches", right=True)]
    better: Annotated[float | None, Column("ahead in", right=True, show=percent, drop=2)]
    """The share of the meetings in which the bot ranked higher, ties by half."""
    lead: Annotated[
        Estimate | None, Column("points more [95 %]", right=True, show=estimate(1), interval=True)
    ]
    """Mean points of the bot less the other's, in a meeting."""
    rating_lead: Annotated[
        Estimate, Column("rating more [95 %]", right=True, show=estimate(1), drop=3, interval=True)
    ]
    """Order-free rating of the bot less the other's."""
    chance: Annotated[float | None, Column("P(better)", right=True, show=chance)]
    """How sure it is that the bot is the better one, by their ratings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """A bot's rating after a round."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    tournament: Annotated[str, Column("tournament", wrap=True)]
    round: Annotated[int, Column("round", right=True)]
    """From 1."""
    games: Annotated[int, Column("games", right=True)]
    """That the bot had played by then."""
    mu: Annotated[float, Column("mu", right=True, show=decimal(2))]
    sigma: Annotated[float, Column("sigma", right=True, show=decimal(2))]
    conservative: Annotated[float, Column("rating", right=True, show=decimal(2))]
    """mu - 3 sigma."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourRow:
    """Two that follow each other in a table, and whether that is settled."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    below: Annotated[str, Column("above", wrap=True)]
    """The next one in the table, by the fitted ratings."""
    chance: Annotated[float | None, Column("P(better)", right=True, show=chance)]
    """How sure it is that the bot is the better one."""
    verdict: Annotated[str, Column("verdict")]
    """`ahead`: the bot is surely better; `equal`: surely as good, within the margin; `open`: neither."""


def neighbour_rows(ruleset: str, table: Iterable[Neighbours]) -> tuple[NeighbourRow, ...]:
    """The table of a ruleset, from the top."""
    return tuple(
        row_from(NeighbourRow, each, ruleset=ruleset, verdict=each.verdict.value) for each in table
    )


def rating_rows(
    ruleset: str,
    ratings: Mapping[str, Rating],
    analysis: Analysis,
    strikes: Mapping[str, int],
) -> list[RatingRow]:
    """How the bots of a ruleset stand, the best first.

    Args:
        ruleset: its name.
        ratings: TrueSkill, game after game.
        analysis: of the same games.
        strikes: of each bot that has any.
    """
    known = {each.bot: each for each in analysis.bots()}
    ranks = competition_ranks([(ratings[bot].conservative, ratings[bot].mu) for bot in known])
    table = sorted(zip(ranks, known, strict=True), key=lambda place: place[0])
    return [
        RatingRow(
            ruleset=ruleset,
            rank=rank,
            bot=bot,
            mu=ratings[bot].mu,
            sigma=ratings[bot].sigma,
            conservative=ratings[bot].conservative,
            fit=known[bot].rating,
            ahead=analysis.chance_of_lead(bot, below[1]) if below else None,
            games=known[bot].games,
            matches=known[bot].matches,
            wins=known[bot].wins,
            win_share=known[bot].win_share,
            mean_score=known[bot].score,
            strikes=strikes.get(bot, 0),
            forfeits=known[bot].forfeits,
        )
        for (rank, bot), below in zip_longest(table, table[1:])
    ]


def pair_rows(ruleset: str, pairs: Iterable[PairFigures]) -> tuple[PairRow, ...]:
    """The pairs of a ruleset."""
    return tuple(
        row_from(PairRow, each, ruleset=ruleset, bot=each.first, other=each.second)
        for each in pairs
    )


def comparison(ruleset: str, pair: PairFigures, margin: float = 0.5) -> str:
    """One sentence that says which of two bots is better, and how sure that is.

    Within `margin` of rating on either side they are called equal.
    """
    lead = pair.rating_lead
    met = (
        f"in {pair.meetings} games of {pair.matches} matches"
        if pair.meetings
        else "though they have never met"
    )
    if pair.chance is None or lead.low is None or lead.high is None:
        return f"{ruleset}: too little is known to compare {pair.first} and {pair.second}, {met}."
    known = f"rating {lead.value:+.2f}, 95 % interval {lead.low:+.2f} to {lead.high:+.2f}; {met}"
    if -margin < lead.low and lead.high < margin:
        return f"{ruleset}: {pair.first} and {pair.second} are equally strong ({known})."
    better, worse = (pair.first, pair.second) if lead.value >= 0 else (pair.second, pair.first)
    sure = max(pair.chance, 1 - pair.chance)
    if lead.low <= 0 <= lead.high:
        return (
            f"{ruleset}: it is not settled whether {better} is better than {worse}:"
            f" {chance(sure)} sure ({pair.first} less {pair.second}: {known})."
        )
    return (
        f"{ruleset}: {better} is better than {worse}, {chance(sure)} sure"
        f" ({pair.first} less {pair.second}: {known})."
    )


def history_rows(points: Mapping[str, Iterable[Point]]) -> tuple[HistoryRow, ...]:
    """Ratings after rounds, by ruleset."""
    return tuple(
        HistoryRow(
            ruleset=ruleset,
            tournament=point.tournament,
            round=point.round + 1,
            games=point.games,
            mu=point.rating.mu,
            sigma=point.rating.sigma,
            conservative=point.rating.conservative,
        )
        for ruleset, each in points.items()
        for point in each
    )
