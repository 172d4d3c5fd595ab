"""Estimate the strength of the bots of one ruleset from all their games at once, with intervals.

In this module, the rating of a bot is its fit (`BotFigures.rating`), not the sequential rating of `trueskill.py`.

An interval should cover the true value with a chance of 95 %; `tests/bench/bench_calibration.py` measures how often it
does. The intervals of win shares come from `win_shares.py`, all others from resampling the matches
(`intervals.Resampling`).

In the shapes of arrays, n is the number of bots, M of matches, P of pairs of bots that met, and B of resamples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from referee.ratings.collusion import OpponentEffects
from referee.ratings.computed_once import ComputedOnce
from referee.ratings.fit import covariance, find_beaten, fit
from referee.ratings.intervals import (
    Certainty,
    Estimate,
    Resampling,
    quotient,
    sum_matches,
    sum_over_matches,
)
from referee.ratings.transitivity import Transitivity
from referee.ratings.trueskill import Settings
from referee.ratings.win_shares import win_share_intervals
from referee.result_columns import Flags, Floats, Ints, ResultColumns

_CHUNK = 2_000_000
"""Approximate upper limit of the number of items in one array of a fit, to save memory.

If an array for all resamples would be larger, the resamples are divided among several calls of `fit`.
"""
_OFTEN = 3
"""`Analysis.centre` takes the largest set of bots that beat each other. A bot of this set stays only if it ranked above other
bots of the set in at least this many matches, and below other bots of the set in at least this many. This rule is not
applied if fewer than two bots would stay, or if no two bots beat each other."""
_UNLIMITED = 0.5
"""Here, "beat" means directly or over a chain of bots. If b beat a, but a did not beat b, the probability that a is better
than b is at most this. If a beat b, but b did not beat a, it is at least this."""
_FURTHER_MATCHES = 4
"""`Analysis.doubt_of_equality` adds the variance of this many further matches. In half of them, one bot is better in all games; in the
other half, the other bot is. The number comes from simulated single tests of two bots that differ by the margin. With four, the
share of wrong verdicts was never above the allowed error. With three, it was up to 1.6 times the allowed error."""
_LEAST_GAMES = 4
"""The intervals of ratings, and of leads in rating, have a least width, because resamples contain only results that have occurred.
A match in which one bot wins all games may be rare and not have occurred yet. The least width comes from the variance that this
many games add to a rating or a lead if all games of a match have the same result. Four games are two matches of two
seats, or one match of four seats. With 4, the intervals of two nearly identical bots cover their true lead in at least
90 % of the cases. With 2 it would be 87 %, and without a least width 55 %. A larger number would widen the intervals of
other bots."""
_SEED = 20_050_102
"""Fixed, so that the same results always give the same intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BotFigures:
    """The estimates for one bot."""

    bot: str
    games: int
    matches: int
    wins: int
    """Number of games in which the bot had rank 1 and did not forfeit. A shared rank 1 counts."""
    forfeits: int
    """Number of games that the bot forfeited."""
    points: int
    """Sum of the points in all games."""
    rating: Estimate
    """The skill from `fit.fit`, shifted so that the mean of the bots of `Analysis.centre` is `Settings.mu`.

    Games show only differences of skill, so a mean must be fixed. An end of the interval is None if no games limit it.
    For example, the lower end of a bot that always ranked last is None.
    """
    score: Estimate
    """Mean points per game."""
    win_share: Estimate
    """Wins divided by games."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeetingFigures:
    """The results of two bots in the games that both played. `PairFigures` describes the fields."""

    first: str
    second: str
    meetings: int
    matches: int
    wins: int
    draws: int
    losses: int
    better: float

    def swap(self) -> MeetingFigures:
        """Return the figures of the same pair in the other order."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            wins=self.losses,
            losses=self.wins,
            better=1 - self.better,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFigures:
    """The comparison of two bots. Bots that never met are compared by their ratings."""

    first: str
    second: str
    meetings: int
    """Number of games with both bots."""
    matches: int
    """Number of matches with both bots."""
    wins: int
    """Number of meetings in which the first bot ranked higher."""
    draws: int
    """Number of meetings in which both bots had the same rank."""
    losses: int
    """Number of meetings in which the second bot ranked higher."""
    better: float | None
    """Share of the meetings in which the first bot ranked higher; a tie counts one half.

    Each meeting has the weight 2 / seats, as in `MatchSums.compared`. None if the bots never met.
    """
    lead: Estimate | None
    """Mean points of the first bot in the meetings, minus the mean points of the second; None if the bots never met."""
    rating_lead: Estimate
    """Rating of the first bot minus that of the second. The lower end is None if the first bot never beat the second, not even
    over a chain of bots (`fit.find_beaten`). The upper end is None if the second never beat the first."""
    chance: float | None
    """Probability that the true rating of the first bot is higher than that of the second; see `Analysis.chance_of_lead`."""


class Analysis:
    """Compute the estimates for the games of one ruleset.

    Args:
        results: the games of one ruleset, as `ResultColumns.by_ruleset` returns them.
    """

    def __init__(self, results: ResultColumns) -> None:
        self.results = results
        self._settings = Settings()
        self._sums = sum_matches(results)
        self._compared = sum_over_matches(self._sums.compared)
        self._better = sum_over_matches(self._sums.better)
        self._opponents = OpponentEffects(self._sums.games)
        self._by_bot = Certainty((self._sums.games > 0).sum(axis=0).astype(np.float64))

    @ComputedOnce
    def ratings(self) -> Floats:
        """(n,) `BotFigures.rating` of each bot, without an interval."""
        priors = np.full((1, len(self.results.bots)), self._settings.mu)
        fitted = fit(
            self._sums.pairs,
            self._compared[None],
            self._better[None],
            priors,
            self._settings,
        )[0]
        return self._centred(fitted)

    @ComputedOnce
    def centre(self) -> Flags:
        """(n,) True for the bots whose mean rating is `Settings.mu`.

        They come from the largest set in which each bot beat every other, directly or over a chain of bots (`fit.find_beaten`). A
        bot that always ranked last or always first is not in the set, because only the prior says how far it is from the others.

        Bots of this set with an uncertain distance from the others are left out: those that ranked above other bots of the
        set in fewer than three matches, or below other bots of the set in fewer than three. But if fewer than two bots would
        remain, none is left out.

        If no two bots beat each other, all bots of the ruleset are the centre.
        """
        linked = self._beaten & self._beaten.T
        size = linked.sum(axis=1)
        if not size.any():
            return np.ones(len(size), dtype=bool)
        largest: Flags = linked[size.argmax()]
        won, lost = self._sums.count_above_and_below(largest)
        often = largest & (won >= _OFTEN) & (lost >= _OFTEN)
        return often if often.sum() > 1 else largest

    @ComputedOnce
    def _beaten(self) -> Flags:
        """(n, n) as `fit.find_beaten` returns it."""
        worse = self._compared - self._better
        return find_beaten(self._sums.pairs, self._better, worse, len(self.results.bots))

    def _open_ends(self, ratings: Iterable[Estimate]) -> list[Estimate]:
        """Return the estimates of all bots, with None for each end of an interval that no games limit.

        A bot keeps its lower end if it beat all other bots of the centre, and its upper end if all of them beat it, in both
        cases directly or over a chain of bots.
        """
        not_beaten = ~(self._beaten | np.eye(len(self._beaten), dtype=bool))
        beat_all, lost_to_all = ~(not_beaten @ self.centre), ~(self.centre @ not_beaten)
        return [
            replace(each, low=each.low if won else None, high=each.high if lost else None)
            for each, won, lost in zip(ratings, beat_all, lost_to_all, strict=True)
        ]

    @ComputedOnce
    def transitivity(self) -> Transitivity:
        """The test of whether one number per bot explains the results."""
        return Transitivity(self.results.bots, self._sums, self._settings)

    @ComputedOnce
    def _resampling(self) -> Resampling:
        return Resampling.from_matches(self.results.matches)

    def prepare(self) -> None:
        """Compute now the values that `bots`, `pair` and `transitivity` keep, so that pages do not wait for them later."""
        self.bots()
        _ = self._leads, self.transitivity.misleads and self.transitivity.pairs

    def bots(self) -> tuple[BotFigures, ...]:
        """Return the estimates for all bots, sorted by name."""
        games = self._sums.games.sum(axis=0)
        points, wins = self._sums.points.sum(axis=0), self._sums.wins.sum(axis=0)
        ratings = self._open_ends(
            self._by_bot.percentile_intervals(
                self.ratings, self._resampled_ratings, self._least_variances()
            )
        )
        scores = self._by_bot.mean_intervals(
            points / games, self._resampled_deviations(self._sums.points)
        )
        shares = win_share_intervals(self._sums)
        forfeits = np.bincount(self.results.bot[self.results.forfeited], minlength=len(games))
        return tuple(
            BotFigures(
                bot=bot,
                games=int(games[number]),
                matches=int(self._by_bot.matches[number]),
                wins=int(wins[number]),
                forfeits=int(forfeits[number]),
                points=int(points[number]),
                rating=ratings[number],
                score=scores[number],
                win_share=shares[number],
            )
            for number, bot in enumerate(self.results.bots)
        )

    def pairs(self) -> tuple[PairFigures, ...]:
        """Return one comparison of every two bots, sorted by rating. The bot with the higher rating is the first."""
        bots = self.results.bots
        order = sorted(range(len(bots)), key=lambda bot: (-self.ratings[bot], bots[bot]))
        return tuple(self._pair(first, second) for first, second in combinations(order, 2))

    def meetings(self) -> tuple[MeetingFigures, ...]:
        """Return the results of all ordered pairs of bots that met. This is much faster than `pairs`, because it computes no intervals."""
        return tuple(self._meetings.values())

    def pair(self, first: str, second: str) -> PairFigures:
        """Return the comparison of two bots. Raises ValueError if one of them has not played."""
        bots = self.results.bots
        return self._pair(bots.index(first), bots.index(second))

    def count_matches(self, bot: str) -> int:
        """Return the number of matches of a bot. Raises ValueError if it has not played."""
        return int(self._by_bot.matches[self.results.bots.index(bot)])

    def chance_of_lead(self, first: str, second: str) -> float | None:
        """Return the probability that the rating of `first` is higher than the rating of `second`.

        Here, "beat" means directly or over a chain of bots (`fit.find_beaten`). If only `second` beat `first`, no games limit
        how far `first` is behind, only the prior does. The result is then limited to at most 0.5. If only `first` beat
        `second`, the probability is at least 0.5. If each beat the other, the probability has no such limit.

        Return None if neither beat the other, or if one of the bots has played fewer than two matches. Raises ValueError if
        one of the bots has not played.
        """
        bots = self.results.bots
        return self._chance_of_lead(bots.index(first), bots.index(second))

    def doubt_of_equality(self, first: str, second: str, margin: float) -> float | None:
        """Return the probability that the bot with the higher rating leads by more than `margin`.

        Resamples contain only results that have occurred. Suppose that each of two bots won one game of every match so far.
        Then the lead is nearly 0 in all resamples. But a match in which one bot wins all games may be rare and not have
        occurred yet. So the variance of `_FURTHER_MATCHES` such matches is added.

        Return None unless each of the two bots beat the other, directly or over a chain of bots (`fit.find_beaten`). Also
        return None if one of them has played fewer than two matches. Raises ValueError if one of the bots has not played.
        """
        bots = self.results.bots
        pair = [bots.index(first), bots.index(second)]
        if not (self._beaten[*pair] and self._beaten[*reversed(pair)]):
            return None
        lead, drawn, certainty = self._lead(*pair)
        return certainty.chance(abs(lead[0]) - margin, drawn, self._further_variance(pair))

    def _further_variance(self, pair: list[int]) -> float:
        """Return the variance that `_FURTHER_MATCHES` matches add to the lead of two bots if one bot is better in all games of a match.

        If the k games of a match always have the same result, the match adds k times the variance of a match of independent
        games. Here k is the larger of the two bots' mean numbers of games per match.
        """
        games_per_match = self._sums.games[:, pair].sum(axis=0) / self._by_bot.matches[pair]
        return _FURTHER_MATCHES * float(games_per_match.max()) * self._variance_of_match(pair)

    def _variance_of_match(self, pair: list[int]) -> float:
        """Return the variance that one match adds to the lead of two bots if all games are independent.

        This is the variance of the lead from `_covariance`, divided by the number of matches of the bot with fewer matches.
        """
        difference = np.array([1.0, -1.0])
        independent = difference @ self._covariance[np.ix_(pair, pair)] @ difference
        return float(independent / self._by_bot.matches[pair].min())

    def _least_variances(self) -> Floats:
        """Return the (n,) least variances of the ratings; see `_LEAST_GAMES`.

        Like a lead, a rating is a difference: the skill of the bot minus the mean skill of the centre.
        """
        differences = np.eye(len(self.results.bots)) - self.centre / self.centre.sum()
        independent = ((differences @ self._covariance) * differences).sum(axis=1)
        least: Floats = _LEAST_GAMES * independent / self._by_bot.matches
        return least

    @ComputedOnce
    def _covariance(self) -> Floats:
        """(n, n) the covariance of the ratings if all games were independent."""
        return covariance(
            self._sums.pairs, self._compared, self._better, self.ratings, self._settings
        )

    def _chance_of_lead(self, first: int, second: int) -> float | None:
        lead, drawn, certainty = self._lead(first, second)
        chance = certainty.chance(lead[0], drawn)
        won, lost = self._beaten[first, second], self._beaten[second, first]
        if chance is None or not (won or lost):
            return None
        return min(max(chance, 0.0 if lost else _UNLIMITED), 1.0 if won else _UNLIMITED)

    def _lead(self, first: int, second: int) -> tuple[Floats, Floats, Certainty]:
        """Return the (1,) lead of the first bot in rating, the (B, 1) leads in the resamples, and their certainty.

        The number of matches in the `Certainty` is that of the bot with fewer matches.
        """
        lead = self.ratings[[first]] - self.ratings[[second]]
        drawn = self._resampled_ratings[:, [first]] - self._resampled_ratings[:, [second]]
        return lead, drawn, Certainty(self._by_bot.matches[[first, second]].min(keepdims=True))

    def _pair(self, first: int, second: int) -> PairFigures:
        lead, drawn, certainty = self._lead(first, second)
        least = _LEAST_GAMES * self._variance_of_match([first, second])
        [interval] = certainty.percentile_intervals(lead, drawn, least)
        meeting = self._meetings.get((first, second))
        return PairFigures(
            first=self.results.bots[first],
            second=self.results.bots[second],
            meetings=meeting.meetings if meeting else 0,
            matches=meeting.matches if meeting else 0,
            wins=meeting.wins if meeting else 0,
            draws=meeting.draws if meeting else 0,
            losses=meeting.losses if meeting else 0,
            better=meeting.better if meeting else None,
            lead=self._leads.get((first, second)),
            rating_lead=replace(
                interval,
                low=interval.low if self._beaten[first, second] else None,
                high=interval.high if self._beaten[second, first] else None,
            ),
            chance=self._chance_of_lead(first, second),
        )

    @ComputedOnce
    def _meetings(self) -> dict[tuple[int, int], MeetingFigures]:
        """For each ordered pair of bots that met: the results of the games with both bots."""
        bots, sums = self.results.bots, self._sums
        meetings, matches = sum_over_matches(sums.meetings), self._matches_of_pairs()
        better = self._better / self._compared
        met = {}
        for place, (first, second) in enumerate(sums.pairs.tolist()):
            games, draws = int(meetings[place]), int(sums.pair_draws[place])
            wins = int(sums.pair_wins[place])
            met[first, second] = meeting = MeetingFigures(
                first=bots[first],
                second=bots[second],
                meetings=games,
                matches=int(matches[place]),
                wins=wins,
                draws=draws,
                losses=games - wins - draws,
                better=float(better[place]),
            )
            met[second, first] = meeting.swap()
        return met

    @ComputedOnce
    def _leads(self) -> dict[tuple[int, int], Estimate]:
        """For each ordered pair of bots that met: `PairFigures.lead`."""
        sums = self._sums
        leads = sum_over_matches(sums.lead) / sum_over_matches(sums.meetings)
        drawn = quotient(self._resampling.sums(sums.lead), self._resampling.sums(sums.meetings))
        certainty = Certainty(self._matches_of_pairs().astype(np.float64))
        found = {}
        for (first, second), lead in zip(
            sums.pairs.tolist(), certainty.mean_intervals(leads, drawn), strict=True
        ):
            found[first, second], found[second, first] = lead, lead.negate()
        return found

    def _matches_of_pairs(self) -> Ints:
        """Return the (P,) number of matches in which each pair met."""
        matches: Ints = np.diff(self._sums.meetings.tocsc().indptr)
        return matches

    @ComputedOnce
    def _resampled_ratings(self) -> Floats:
        """(B, n) the ratings in each resample.

        Each resample gets its own prior means, drawn at random from the prior. A bot that lost all its
        games loses all games of every resample too. With fixed prior means, its interval would be far too narrow.
        With random prior means, its interval is roughly as wide as the prior. For a bot with wins and losses, the
        prior hardly counts.
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
        """Return ratings, shifted so that the mean of the bots of `centre` is `Settings.mu`."""
        mean = ratings[..., self.centre].mean(axis=-1, keepdims=True)
        centred: Floats = ratings - mean + self._settings.mu
        return centred

    def _resampled_deviations(self, values: Floats) -> Floats:
        """Return the (B, n) mean points per game of each bot in each resample, minus those in all games.

        These differences do not contain the effect of the opponents. In a resample, a bot can have stronger or weaker
        opponents than in all games. But the schedule fixes the opponents, so they cause no uncertainty. Therefore only the
        residuals of `OpponentEffects` are resampled.

        Args:
            values: (M, n) the sum of the points of each bot in each match.
        """
        unexplained = self._opponents.scaled_residuals(values)
        return quotient(self._resampling.sums(unexplained), self._resampling.sums(self._sums.games))
