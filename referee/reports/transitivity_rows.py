"""Make rows of the test whether one number per bot explains the results, and sentences that name what it does not explain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from referee.ratings.intervals import Estimate
from referee.reports.formats import Column, decimal, percent, percent_estimate, row_from, visible

if TYPE_CHECKING:  # numpy and scipy take a while to load
    from referee.ratings.analysis import Analysis
    from referee.ratings.transitivity import DeviationFigures, Transitivity

_NAMED = 3
"""Largest number of pairs that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitivityRow:
    """How often a bot ranks higher than another one, and how often it should by its rating."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    """The bot of the pair that ranks higher more often than predicted."""
    other: Annotated[str, Column("against", wrap=True)]
    matches: Annotated[int, Column("matches", right=True, drop=2)]
    """Number of matches in which one of the two bots ranked higher at least once."""
    decided: Annotated[int, Column("decided", right=True, drop=1)]
    """Number of games in which one of the two bots ranked higher: ties do not count."""
    share: Annotated[
        Estimate, Column("ahead in [95 %]", right=True, show=percent_estimate, interval=True)
    ]
    """Share of the decided comparisons in which `bot` ranked higher.

    A game at a table of k seats has the weight 2 / k.
    """
    predicted: Annotated[float, Column("predicted", right=True, show=percent)]
    """The share that the fit to the decided comparisons of all pairs predicts."""
    sure: Annotated[bool, Column("deviates", show=lambda yes: "surely" if yes else "")]
    """True if the pair surely deviates from the prediction. The confidence is 95 % for all pairs together."""
    p_value: Annotated[float | None, Column("p", right=True, show=decimal(3), data_only=True)]
    """The test over all pairs, with the same value in all rows of a ruleset: the probability of deviations at least as large,
    if one number per bot explains the results. None if there are too few results for a test."""


def transitivity_rows(ruleset: str, test: Transitivity) -> tuple[TransitivityRow, ...]:
    """Return a row for each pair of a ruleset, those that deviate most surely first."""
    return tuple(
        row_from(TransitivityRow, each, ruleset=ruleset, p_value=test.p_value)
        for each in test.pairs()
    )


def name_deviations(analysed: Mapping[str, Analysis]) -> Iterator[str]:
    """Yield a sentence for each ruleset in which one number per bot misleads. It names the pairs that deviate surely.

    Args:
        analysed: the games of each ruleset.
    """
    for ruleset, analysis in analysed.items():
        if analysis.transitivity.misleads:
            yield _name_pairs(ruleset, analysis.transitivity.pairs())


def describe_tests(analysed: Mapping[str, Analysis]) -> Iterator[str]:
    """Yield a sentence with the result of the test for each ruleset, as `name_deviations` if one number per bot misleads."""
    for ruleset, analysis in analysed.items():
        test = analysis.transitivity
        if test.misleads:
            yield f"{_name_pairs(ruleset, test.pairs())} p = {test.p_value:.3f}."
        elif test.p_value is None:
            yield f"{ruleset}: too few results to test whether one number per bot explains them."
        else:
            yield (
                f"{ruleset}: the results do not contradict one number per bot, p = {test.p_value:.3f}."
            )


def _name_pairs(ruleset: str, pairs: tuple[DeviationFigures, ...]) -> str:
    named = [each for each in pairs if each.sure][:_NAMED]
    if not named:
        return f"{ruleset}: one number per bot does not explain all results, but no single pair deviates surely."
    parts = [
        f"{each.bot} beats {each.other} more often than its rating says"
        f" ({each.share.value:.0%} instead of {each.predicted:.0%})".replace("%", " %")
        for each in named
    ]
    return visible(f"{ruleset}: one number misleads: {', and '.join(parts)}.")
