"""Test the verdict about two bots as a sentence and as a row."""

from __future__ import annotations

import pytest

from referee.ratings.analysis import PairFigures
from referee.ratings.intervals import Estimate
from referee.ratings.judge import PairVerdict, Verdict
from referee.reports.verdicts import Comparison


def compare(verdict, chance, *, bot="a@1", low=-1.0, high=5.0, meetings=8):
    """Return the comparison of a@1 and b@1. `bot` is the one with the higher rating, or the better one."""
    value = 2.0 if bot == "a@1" else -2.0
    figures = PairFigures(
        first="a@1",
        second="b@1",
        meetings=meetings,
        matches=2,
        wins=2,
        draws=0,
        losses=6,
        better=0.25,
        lead=Estimate(1.0, 0.5, 1.5),
        rating_lead=Estimate(value, low, high),
        chance=0.5,
    )
    below = "b@1" if bot == "a@1" else "a@1"
    found = PairVerdict(bot=bot, below=below, chance=chance, verdict=verdict)
    return Comparison("basic", figures, found, 1.5)


@pytest.mark.parametrize(
    ("comparison", "sentence", "verdict"),
    [
        (
            compare(Verdict.AHEAD, 0.998),
            "better than b@1, 99.8 % sure (a@1 minus b@1: rating +2.00, 95 % interval -1.00 to +5.00; in 8",
            "ahead",
        ),
        (
            compare(Verdict.AHEAD, 1.0, bot="b@1"),
            "basic: b@1 is better than a@1, > 99.9 % sure (a@1 minus b@1: rating -2.00, ",
            "behind",
        ),
        (
            compare(Verdict.EQUAL, 0.6),
            "basic: a@1 and b@1 are equally strong within 1.5 (a@1 minus b@1: ",
            "equal",
        ),
        (
            compare(Verdict.OPEN, 0.9, bot="b@1"),
            "basic: it is not settled whether b@1 is better than a@1; the probability is 90.0 % (",
            "open",
        ),
        (
            compare(Verdict.OPEN, None, low=None, high=None),
            "basic: too little is known to compare a@1 and b@1, in 8 games of 2 matches.",
            "open",
        ),
        (
            compare(Verdict.AHEAD, 0.998, high=None, meetings=0),
            "99.8 % sure (a@1 minus b@1: rating +2.00; without a common game).",
            "ahead",
        ),
    ],
)
def test_verdict_is_a_sentence_and_a_row(comparison, sentence, verdict):
    assert sentence in comparison.sentence()
    row = comparison.row()
    assert (row.bot, row.other, row.verdict) == ("a@1", "b@1", verdict)
