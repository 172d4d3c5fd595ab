"""Judge which of two bots is better: one is ahead, both are equal, or it is still open.

A `Judge` gives all verdicts of the project: those of `ratings compare` and `stats settled`, those of the web pages, and
those that end a tournament early. So `confidence` and `margin` mean the same everywhere.

- The allowed error is 1 - `confidence`. It is divided equally among all pairs of neighbours.
- For the verdict *equal*, a single test adds up the allowed errors of all pairs of neighbours in a ruleset, and divides
  the sum among all pairs of bots of this ruleset. It does so because the tested games also decide which bots are
  neighbours, and neighbours have the closest fits.
- If there are several looks, a boundary divides the share of a pair among them; see below. How much is known about a pair
  at a look depends on how many matches its two bots have played before this look.
- A verdict is final: once a look has found a bot ahead, or two bots equal, later looks do not test these two bots again.
- A bot is also ahead if a chain of final verdicts says so: if a is ahead of b, and b is ahead of c, then a is ahead of
  c. Such a verdict can be wrong only if a verdict of the chain is wrong.

`tests/bench/bench_settled.py` measures how often the verdicts are wrong.

**The boundary** (`allowed_errors`) says how sure each look must be. A verdict is tested at several looks, and each test
can be wrong. With the boundary, all looks together give a wrong verdict with at most a fixed probability. The looks share
the allowed error in the way of Lan and DeMets (Discrete sequential boundaries for clinical trials, Biometrika 70, 1983),
in proportion to the rounds: the looks in the first half of the rounds get half of the error. If the test of a pair is
wrong at two looks, the error counts only at the first of them. So the test of a look, taken alone, may be wrong with a
higher probability than the look's share of the error. The recursion of Armitage, McPherson and Rowe (Repeated
significance tests on accumulating data, JRSS A 132, 1969) computes this higher probability.

The model: the lead of a bot, divided by its standard error, is normally distributed. If the true lead is 0, this
quotient has the mean 0 and the standard deviation 1. If the two bots have played m and n matches before a look, the
amount of data at this look is 1 / (1 / m + 1 / n). The quotients at two looks with the amounts s and t > s have the
correlation sqrt(s / t). The amount need not grow in proportion to the rounds, because open pairs may play more games
in a round after a look than before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from math import ceil, sqrt

import numpy as np
from scipy.special import ndtr

from referee.ratings.analysis import Analysis
from referee.ratings.stopping import StopCondition
from referee.result_columns import Floats

_LOWEST, _HIGHEST = -8.0, 38.0
"""Bounds are searched between these leads, in standard errors. If the true lead is 0, a lead below -8 has a probability below
1e-15, so integrals start there."""
_LEAST_GROWTH = 1.01
"""If the amount of data of a pair grows by less than this factor from one look to the next, it counts as grown by this
factor. Otherwise, equal amounts would lead to a division by zero. This only makes the bounds stricter."""
_LEAST_NODES = 64
"""The least number of nodes of an integral; with 64 the relative error of a result is below 1e-6."""


class Verdict(Enum):
    """The verdict about two bots."""

    AHEAD = "ahead"
    """One bot is surely better."""
    EQUAL = "equal"
    """The fits of the two bots surely differ by less than the margin."""
    OPEN = "open"
    """The games do not yet show AHEAD or EQUAL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdict:
    """The verdict about two bots."""

    bot: str
    """The better bot if the verdict is AHEAD, even if newer games put it behind. Else the bot with the higher fit."""
    below: str
    """The other bot."""
    chance: float | None
    """Probability that `bot` is better than `below`; None if `Analysis.chance_of_lead` returns None.

    If the verdict is AHEAD, it is the probability at the look that gave the verdict. It can be low if the verdict
    follows from a chain of verdicts.
    """
    verdict: Verdict


Final = Mapping[tuple[str, frozenset[str]], PairVerdict]
"""Verdicts that are not OPEN, by the name of the ruleset and the two bots."""
MatchCounts = Mapping[tuple[str, str], int]
"""The number of matches of each bot before a look, by the name of the ruleset and the bot."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Gives verdicts by one condition. It has no state: pass the verdicts of a look to the next call of `look`."""

    condition: StopCondition
    looks: tuple[int, ...] = (1,)
    """The number of rounds before each look, for all planned looks of the tournament. The default is for a single test of any games."""

    def look(
        self, analyses: Mapping[str, Analysis], rounds: int = 1, before: Verdicts | None = None
    ) -> Verdicts:
        """Return the verdicts about all neighbours. `Analysis.ratings`, the fit, orders the bots.

        Args:
            analyses: the analyses of the games before the look, by the name of the ruleset.
            rounds: the number of rounds before the look, one of `looks`.
            before: the verdicts of the look before this one; None at the first look.
        """
        final: Final = {} if before is None else before.final
        counts = {
            (ruleset, bot): analysis.count_matches(bot)
            for ruleset, analysis in analyses.items()
            for bot in analysis.results.bots
        }
        history = (*(() if before is None else before.history), counts)
        assert len(history) == self.looks.index(rounds) + 1  # noqa: S101 - no look is left out
        pairs = sum(len(each.results.bots) - 1 for each in analyses.values())
        error = (1 - self.condition.confidence) / max(1, pairs)
        test = _Test(self.condition.margin, error, self.looks, history)
        for _ in range(2):  # twice: new verdicts can complete chains
            tables = {
                ruleset: tuple(
                    _judge(test, ruleset, analysis, pair, final)
                    for pair in pairwise(_sort(analysis))
                )
                for ruleset, analysis in analyses.items()
            }
            settled = {
                (ruleset, frozenset((each.bot, each.below))): each
                for ruleset, table in tables.items()
                for each in table
                if each.verdict is not Verdict.OPEN
            }
            final = {**final, **settled}
        return Verdicts(analyses, tables, final, history, test)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts after a look."""

    analyses: Mapping[str, Analysis]
    """The analyses of the games before the look, by the name of the ruleset."""
    neighbours: Mapping[str, tuple[PairVerdict, ...]]
    """The verdicts about all neighbours, by the name of the ruleset, from the highest fit to the lowest."""
    final: Final
    """The final verdicts of this look and of all looks before, also about bots that are no neighbours any more."""
    history: tuple[MatchCounts, ...]
    """The number of matches of each bot before each look, from the first look to this one."""
    _test: _Test

    @property
    def are_settled(self) -> bool:
        """Whether no verdict about neighbours is open."""
        return all(
            each.verdict is not Verdict.OPEN for table in self.neighbours.values() for each in table
        )

    def compare(self, ruleset: str, bot: str, other: str) -> PairVerdict:
        """Return the verdict about any two bots that have played by a ruleset, for a command that asks about them.

        If the two bots are not neighbours, they are tested in the same way as neighbours. One such verdict has at least the
        confidence of the condition, but several of them together may have less.
        """
        analysis = self.analyses[ruleset]
        first, second = sorted((bot, other), key=_sort(analysis).index)
        return _judge(self._test, ruleset, analysis, (first, second), self.final)

    def needed_chance(self, ruleset: str, bot: str, other: str) -> float:
        """Return the least probability of a lead with which the test of this look finds one of the two bots ahead."""
        return self._test.needed_chance(ruleset, bot, other)


@dataclass(frozen=True, slots=True)
class _Test:
    """The test of two bots at a look."""

    margin: float
    error: float
    """The share of a pair in the allowed error."""
    looks: tuple[int, ...]
    history: tuple[MatchCounts, ...]

    def judge(self, ruleset: str, analysis: Analysis, bot: str, below: str) -> Verdict:
        """Return the verdict about two bots; `bot` has the higher fit.

        If `bot` beat `below` neither directly nor over a chain of bots, the games set no lower limit to its lead. The
        probability of a lead is then at most 0.5 or unknown, so the verdict is not AHEAD. The verdict is EQUAL only if each
        bot beat the other, directly or over a chain.
        """
        ahead = analysis.chance_of_lead(bot, below)
        if ahead is None:
            return Verdict.OPEN
        if ahead >= self.needed_chance(ruleset, bot, below):
            return Verdict.AHEAD
        doubt = analysis.doubt_of_equality(bot, below, self.margin)
        data = self._list_data((ruleset, bot), (ruleset, below))
        error = self._error_of_equality(len(analysis.results.bots))
        allowed = allowed_errors(self.looks, error, data)[-1]
        # If the lead is above the margin, the doubt is above 0.5. `allowed` is at most 0.5, so the verdict is not EQUAL.
        return Verdict.EQUAL if doubt is not None and doubt < allowed else Verdict.OPEN

    def _error_of_equality(self, bots: int) -> float:
        """Return the share of a pair in the allowed error of EQUAL, in a ruleset with n = `bots` bots.

        The same games decide which bots are neighbours, and neighbours are closer than other pairs. So a single test divides
        the error of the n - 1 pairs of neighbours among all n (n - 1) / 2 pairs. With several looks, each look gets only a
        part of the pair's share, so its test is stricter already. If tests with several looks also divided the error among
        all pairs, open pairs would need more games, and stored tournaments that stopped early would no longer pass
        verification.
        """
        return self.error * 2 / bots if len(self.looks) == 1 else self.error

    def needed_chance(self, ruleset: str, bot: str, below: str) -> float:
        """See `Verdicts.needed_chance`."""
        data = self._list_data((ruleset, bot), (ruleset, below))
        # The same games decide which bot leads, so the test has two sides, and each side gets half of the error.
        return 1 - allowed_errors(self.looks, self.error / 2, data)[-1]

    def _list_data(self, bot: tuple[str, str], below: tuple[str, str]) -> tuple[float, ...]:
        """Return how much was known about the lead at each look so far, as a multiple of what was known at the first look.

        If one bot has played m matches and the other n, the variance of the lead is about in proportion to 1 / m + 1 / n.
        Multiples that differ only by float errors become equal by rounding, so that `allowed_errors` finds them in its cache.
        """
        amounts = [
            1 / (1 / max(1, each.get(bot, 0)) + 1 / max(1, each.get(below, 0)))
            for each in self.history
        ]
        return tuple(round(amount / amounts[0], 6) for amount in amounts)


def _sort(analysis: Analysis) -> list[str]:
    """Return the bots sorted by fit, the highest first, and bots of equal fit by name."""
    ratings = dict(zip(analysis.results.bots, analysis.ratings.tolist(), strict=True))
    return sorted(ratings, key=lambda bot: (-ratings[bot], bot))


def _judge(
    test: _Test, ruleset: str, analysis: Analysis, pair: tuple[str, str], final: Final
) -> PairVerdict:
    """Return the verdict about a pair of bots, of which the first has the higher fit.

    A final verdict about the pair decides. If there is none, a chain of final verdicts decides. If there is no chain
    either, `test` decides.
    """
    known = final.get((ruleset, frozenset(pair)))
    if known is not None and known.verdict is Verdict.AHEAD:
        return known
    bot, below = pair
    if known is not None:
        verdict = known.verdict
    elif chain := _follow_chain(ruleset, pair, final):
        bot, below = chain
        verdict = Verdict.AHEAD
    else:
        verdict = test.judge(ruleset, analysis, bot, below)
    return PairVerdict(
        bot=bot, below=below, chance=analysis.chance_of_lead(bot, below), verdict=verdict
    )


def _follow_chain(ruleset: str, pair: tuple[str, str], final: Final) -> tuple[str, str] | None:
    """Return the better bot of a pair and the other one, if a chain of final verdicts says which one is better.

    If a verdict is wrong, there can be a chain from each of the two bots to the other. Return None in this case, and if there
    is no chain.
    """
    ahead = [
        (each.bot, each.below)
        for (where, _), each in final.items()
        if where == ruleset and each.verdict is Verdict.AHEAD
    ]
    found = [(bot, other) for bot, other in (pair, pair[::-1]) if other in _list_worse(bot, ahead)]
    return found[0] if len(found) == 1 else None


def _list_worse(bot: str, ahead: Sequence[tuple[str, str]]) -> set[str]:
    """Return the bots that are worse than `bot` by a chain of verdicts.

    Each item of `ahead` is a verdict: the better bot, then the worse bot.
    """
    worse, added = set[str](), {bot}
    while added:
        added = {below for leader, below in ahead if leader in added} - worse
        worse |= added
    return worse


@lru_cache(maxsize=256)
def allowed_errors(
    looks: tuple[int, ...], error: float, data: tuple[float, ...]
) -> tuple[float, ...]:
    """Return the largest allowed probability of a wrong verdict for the test of each look in `data`.

    If the true lead of a bot is 0, the probability that at least one of these tests finds it ahead is at most `error`.

    Args:
        looks: the number of rounds before each look, ascending. The last look is after all rounds.
        error: the allowed probability of a wrong verdict at any look, above 0 and at most 0.5.
        data: how much is known about the lead at each look so far, in any unit.
    """
    known = list(data)
    for number in range(1, len(known)):
        known[number] = max(known[number], known[number - 1] * _LEAST_GROWTH)
    bounds: list[float] = []
    finest = sqrt(min(1 - before / amount for before, amount in pairwise((0.0, *known))))
    leads, weights = np.zeros(1), np.ones(1)  # before the first round, the lead is 0
    for (before, amount), (last, rounds) in zip(
        pairwise((0.0, *known)), pairwise((0, *looks)), strict=False
    ):
        leads *= sqrt(before / amount)  # in the standard errors of this look
        deviation = sqrt((amount - before) / amount)
        bound = _find_bound(leads, weights, deviation, error * (rounds - last) / looks[-1])
        nodes, sizes = _place_nodes(bound, finest)
        weights = sizes * (_density((nodes[:, None] - leads) / deviation) @ weights) / deviation
        leads = nodes
        bounds.append(bound)
    return tuple(ndtr([-bound for bound in bounds]).tolist())


def _find_bound(leads: Floats, weights: Floats, deviation: float, spent: float) -> float:
    """Return the bound of a look: the lead above which the look finds the bot ahead.

    If the true lead is 0, `spent` is the probability that this look is the first one that finds the bot ahead.

    Args:
        leads: possible leads at the look before, in the standard errors of this look.
        weights: for each lead, the probability that the bot has this lead and that no look has found the bot ahead.
        deviation: the standard deviation of the change of the lead since the look before, in the same unit.
        spent: the part of the error for this look.
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - loads slowly, and only verdicts need it

    def excess(bound: float) -> float:
        return float(ndtr((leads - bound) / deviation) @ weights) - spent

    return float(brentq(excess, _LOWEST, _HIGHEST, xtol=1e-10))


def _place_nodes(bound: float, finest: float) -> tuple[Floats, Floats]:
    """Return the nodes and the weights of an integral over all leads below `bound`, by the rule of Gauss and Legendre.

    Adjacent nodes are closer than `finest`. This is the smallest `deviation` (see `_find_bound`) of all looks.
    """
    width = bound - _LOWEST
    nodes, sizes = np.polynomial.legendre.leggauss(max(_LEAST_NODES, ceil(2 * width / finest)))
    return _LOWEST + width * (nodes + 1) / 2, sizes * width / 2


def _density(values: Floats) -> Floats:
    """Return the density of the standard normal distribution."""
    density: Floats = np.exp(-values * values / 2) / sqrt(2 * np.pi)
    return density
