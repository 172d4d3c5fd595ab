"""What the games of a ruleset say about its bots, and how sure that is.

Every figure comes with an interval that covers the truth with a chance of 95 %, from resampling the
matches (`resample`). How often it really does is measured by `tests/bench/bench_calibration.py`.
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
"""Numbers in the largest array at a time, where many fits are made at once."""
_SEED = 20_050_102


@dataclass(frozen=True, slots=True, kw_only=True)
class BotFigures:
    """What is known of a bot."""

    bot: str
    games: int
    matches: int
    wins: int
    """Games of rank 1, shared ones included, forfeited ones not."""
    forfeits: int
    rating: Estimate
    """The order-free fit (`fit`), moved so that the mean of all bots is the prior's, 25.

    Only differences of skill can be seen in games.
    """
    score: Estimate
    """Mean points of a game."""
    win_share: Estimate
    """Wins divided by games."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFigures:
    """What is known of two bots. Those that never met are compared by what they did to others."""

    first: str
    second: str
    meetings: int
    """Games in which both sat at the table."""
    matches: int
    """The matches that these belong to."""
    better: float | None
    """The share of the meetings that the first has won, ties by half; None: they never met."""
    lead: Estimate | None
    """Mean points of the first less those of the second, in a meeting."""
    rating_lead: Estimate
    """Rating of the first less that of the second."""
    chance: float | None
    """How sure it is that the first is the better bot, by their ratings; None: not known at all."""


class Analysis:
    """The games of one ruleset, reckoned through.

    Args:
        results: the games; each bot has at least one.
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
        """(n,) the order-free ratings."""
        priors = np.full((1, len(self.results.bots)), self._settings.mu)
        fitted = fit(
            self._sums.pairs,
            _total(self._sums.compared)[None],
            _total(self._sums.better)[None],
            priors,
            self._settings,
        )[0]
        return self._centred(fitted)

    @cached_property
    def _resampling(self) -> Resampling:
        return Resampling.from_matches(self.results.matches)

    def bots(self) -> tuple[BotFigures, ...]:
        """All bots, in the order of the alphabet."""
        games = self._sums.games.sum(axis=0)
        points, wins = self._sums.points.sum(axis=0), self._sums.wins.sum(axis=0)
        ratings = self._by_bot.percentile_intervals(self.ratings, self._drawn_ratings)
        scores = self._by_bot.mean_intervals(points / games, self._drawn_means(self._sums.points))
        shares = self._by_bot.share_intervals(
            wins / games, self._drawn_means(self._sums.wins), games
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
        """All ordered pairs of different bots."""
        bots = self.results.bots
        return tuple(
            self._pair(first, second)
            for first in range(len(bots))
            for second in range(len(bots))
            if first != second
        )

    def pair(self, first: str, second: str) -> PairFigures:
        """Two of the bots. Raises ValueError when there is no such bot."""
        bots = self.results.bots
        return self._pair(bots.index(first), bots.index(second))

    def chance_of_lead(self, first: str, second: str, more: float = 0.0) -> float | None:
        """How sure it is that a bot is ahead of another one by more than so much rating.

        None where nothing is known. Raises ValueError when there is no such bot.
        """
        bots = self.results.bots
        lead, drawn, certainty = self._lead(bots.index(first), bots.index(second))
        return certainty.chance(lead[0] - more, drawn)

    def _lead(self, first: int, second: int) -> tuple[Floats, Floats, Certainty]:
        """(1,) of rating, (B, 1) in each drawing, and how well it is known."""
        lead = self.ratings[[first]] - self.ratings[[second]]
        drawn = self._drawn_ratings[:, [first]] - self._drawn_ratings[:, [second]]
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
        """The pairs that met, in both orders."""
        certainty = Certainty(np.diff(self._sums.meetings.tocsc().indptr).astype(np.float64))
        meetings = _total(self._sums.meetings)
        leads = _total(self._sums.lead) / meetings
        better = _total(self._sums.better) / _total(self._sums.compared)
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
    def _drawn_ratings(self) -> Floats:
        """(B, n) the ratings of each drawing.

        Each has priors of its own, drawn from the prior. Where the games say much that is no matter;
        where they say nothing, of a bot that has won against nobody, say, the interval is the prior's.
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

    def _drawn_means(self, values: Floats) -> Floats:
        """(B, n) of each drawing: how far the mean of each bot's games strays from what it is.

        Not counted is what comes from who else sat at the table: the schedule settled that.
        """
        unexplained = self._opponents.scaled_residuals(values)
        return _quotient(
            self._resampling.sums(unexplained), self._resampling.sums(self._sums.games)
        )


@dataclass(frozen=True, slots=True)
class _Meeting:
    """What the games of a pair say."""

    games: int
    matches: int
    better: float
    lead: Estimate


def _total(sums: Matrix) -> Floats:
    """(F,) over all matches."""
    return np.asarray(sums.sum(axis=0)).reshape(-1)


def _quotient(part: Floats, whole: Floats) -> Floats:
    """NaN where there is nothing of the whole."""
    return part / np.where(whole > 0, whole, np.nan)
