"""Estimate the strength of the bots of one ruleset from all their games at once, with intervals.

Each interval covers the true value with a chance of 95 %. It comes from resampling the matches
(`intervals.Resampling`). `tests/bench/bench_calibration.py` measures how often intervals really cover.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from referee.ratings.collusion import OpponentEffects
from referee.ratings.fit import fit
from referee.ratings.intervals import Certainty, Estimate, Matrix, Resampling, sum_matches
from referee.ratings.trueskill import Settings
from referee.result_columns import Floats, ResultColumns

_CHUNK = 2_000_000
"""The most numbers in one array; more fits than that are split into chunks."""
_SEED = 20_050_102


@dataclass(frozen=True, slots=True, kw_only=True)
class BotFigures:
    """The estimates for one bot."""

    bot: str
    games: int
    matches: int
    wins: int
    """Number of games of rank 1: with shared ranks, without forfeits."""
    forfeits: int
    rating: Estimate
    """The order-free fit (`fit`), shifted so that the mean of all bots is 25, the mean of the prior.

    The shift is needed because games show only differences of skill.
    """
    score: Estimate
    """Mean points per game."""
    win_share: Estimate
    """Wins divided by games."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFigures:
    """The comparison of two bots. Bots that never met are compared through their common opponents."""

    first: str
    second: str
    meetings: int
    """Number of games with both bots."""
    matches: int
    """Number of matches with both bots."""
    better: float | None
    """Share of the meetings in which the first bot ranked higher; a tie is one half. None if they never met."""
    lead: Estimate | None
    """Mean points of the first bot minus those of the second, in a meeting; None if they never met."""
    rating_lead: Estimate
    """Rating of the first bot minus that of the second."""
    chance: float | None
    """Probability that the first bot is the better one, by the ratings; None without data."""


class Analysis:
    """Compute the estimates for the games of one ruleset.

    Args:
        results: one part of `ResultColumns.by_ruleset`.
        settings: the constants of the rating.
    """

    def __init__(self, results: ResultColumns, settings: Settings | None = None) -> None:
        self.results = results
        self._settings = settings or Settings()
        self._sums = sum_matches(results)
        self._opponents = OpponentEffects(self._sums.games)
        self._by_bot = Certainty((self._sums.games > 0).sum(axis=0).astype(np.float64))

    @cached_property
    def ratings(self) -> Floats:
        """(n,) the order-free ratings of the n bots."""
        priors = np.full((1, len(self.results.bots)), self._settings.mu)
        fitted = fit(
            self._sums.pairs,
            _sum(self._sums.compared)[None],
            _sum(self._sums.better)[None],
            priors,
            self._settings,
        )[0]
        return self._centred(fitted)

    @cached_property
    def _resampling(self) -> Resampling:
        return Resampling.from_matches(self.results.matches)

    def bots(self) -> tuple[BotFigures, ...]:
        """Return the estimates for all bots, sorted by name."""
        games = self._sums.games.sum(axis=0)
        points, wins = self._sums.points.sum(axis=0), self._sums.wins.sum(axis=0)
        ratings = self._by_bot.percentile_intervals(self.ratings, self._resampled_ratings)
        scores = self._by_bot.mean_intervals(
            points / games, self._resampled_deviations(self._sums.points)
        )
        shares = self._by_bot.share_intervals(
            wins / games, self._resampled_deviations(self._sums.wins), games
        )
        forfeits = np.bincount(self.results.bot[self.results.forfeited], minlength=len(games))
        return tuple(
            BotFigures(
                bot=bot,
                games=int(games[number]),
                matches=int(self._by_bot.matches[number]),
                wins=int(wins[number]),
                forfeits=int(forfeits[number]),
                rating=ratings[number],
                score=scores[number],
                win_share=shares[number],
            )
            for number, bot in enumerate(self.results.bots)
        )

    def pairs(self) -> tuple[PairFigures, ...]:
        """Return the comparisons of all ordered pairs of different bots."""
        bots = self.results.bots
        return tuple(
            self._pair(first, second)
            for first in range(len(bots))
            for second in range(len(bots))
            if first != second
        )

    def pair(self, first: str, second: str) -> PairFigures:
        """Return the comparison of two bots. Raises ValueError if one of them has not played."""
        bots = self.results.bots
        return self._pair(bots.index(first), bots.index(second))

    def chance_of_lead(self, first: str, second: str, more: float = 0.0) -> float | None:
        """Return the probability that the rating of `first` exceeds that of `second` by more than `more`.

        None means that there are no data. Raises ValueError if one of the bots has not played.
        """
        bots = self.results.bots
        lead, drawn, certainty = self._lead(bots.index(first), bots.index(second))
        return certainty.chance(lead[0] - more, drawn)

    def _lead(self, first: int, second: int) -> tuple[Floats, Floats, Certainty]:
        """Return the (1,) lead in rating, its (B, 1) values in B resamples, and its `Certainty`."""
        lead = self.ratings[[first]] - self.ratings[[second]]
        drawn = self._resampled_ratings[:, [first]] - self._resampled_ratings[:, [second]]
        return lead, drawn, Certainty(self._by_bot.matches[[first, second]].min(keepdims=True))

    def _pair(self, first: int, second: int) -> PairFigures:
        lead, drawn, certainty = self._lead(first, second)
        meeting = self._meetings.get((first, second))
        return PairFigures(
            first=self.results.bots[first],
            second=self.results.bots[second],
            meetings=meeting.games if meeting else 0,
            matches=meeting.matches if meeting else 0,
            better=meeting.better if meeting else None,
            lead=meeting.lead if meeting else None,
            rating_lead=certainty.percentile_intervals(lead, drawn)[0],
            chance=certainty.chance(lead[0], drawn),
        )

    @cached_property
    def _meetings(self) -> dict[tuple[int, int], _Meeting]:
        """What the games of each pair of bots say, for both orders of the pair."""
        certainty = Certainty(np.diff(self._sums.meetings.tocsc().indptr).astype(np.float64))
        meetings = _sum(self._sums.meetings)
        leads = _sum(self._sums.lead) / meetings
        better = _sum(self._sums.better) / _sum(self._sums.compared)
        drawn = _quotient(
            self._resampling.sums(self._sums.lead), self._resampling.sums(self._sums.meetings)
        )
        estimates = certainty.mean_intervals(leads, drawn)
        met = {}
        for place, (first, second) in enumerate(self._sums.pairs.tolist()):
            known = int(meetings[place]), int(certainty.matches[place])
            won, lead = float(better[place]), estimates[place]
            met[first, second] = _Meeting(*known, won, lead)
            met[second, first] = _Meeting(*known, 1 - won, lead.negate())
        return met

    @cached_property
    def _resampled_ratings(self) -> Floats:
        """(B, n) the ratings in each of B resamples.

        Each resample has its own prior means, drawn from the prior. That matters only where the games say
        little, as for a bot that always lost: there the interval becomes that of the prior.
        """
        draws, bots = self._resampling.draws, len(self.results.bots)
        priors = np.random.default_rng(_SEED).normal(
            self._settings.mu, self._settings.sigma, (draws, bots)
        )
        start = self.ratings - self.ratings.mean() + self._settings.mu
        rows = max(1, _CHUNK // max(bots**2, len(self._sums.pairs)))
        chunks = []
        for begin in range(0, draws, rows):
            part = slice(begin, begin + rows)
            chunks.append(
                fit(
                    self._sums.pairs,
                    self._resampling.sums(self._sums.compared, part),
                    self._resampling.sums(self._sums.better, part),
                    priors[part],
                    self._settings,
                    start=start,
                    within=1e-3,
                )
            )
        return self._centred(np.concatenate(chunks))

    def _centred(self, ratings: Floats) -> Floats:
        centred: Floats = ratings - ratings.mean(axis=-1, keepdims=True) + self._settings.mu
        return centred

    def _resampled_deviations(self, values: Floats) -> Floats:
        """(B, n) in each of B resamples: the deviation of each bot's mean from its mean in all games.

        The effect of the opponents is removed, because the schedule fixed them.
        """
        unexplained = self._opponents.scaled_residuals(values)
        return _quotient(
            self._resampling.sums(unexplained), self._resampling.sums(self._sums.games)
        )


@dataclass(frozen=True, slots=True)
class _Meeting:
    """What the games of one pair of bots say."""

    games: int
    matches: int
    better: float
    lead: Estimate


def _sum(sums: Matrix) -> Floats:
    """Return the (F,) sums over all matches."""
    return np.asarray(sums.sum(axis=0)).reshape(-1)


def _quotient(part: Floats, whole: Floats) -> Floats:
    """Return the quotient, NaN where the whole is 0."""
    return part / np.where(whole > 0, whole, np.nan)
