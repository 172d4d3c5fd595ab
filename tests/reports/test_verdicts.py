"""Test the verdict about two bots as a sentence and as a row."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from referee.ratings.analysis import PairFigures
from referee.ratings.intervals import Estimate
from referee.ratings.judge import PairVerdict, Verdict
from referee.ratings.stopping import StopCondition
from referee.reports.verdicts import Comparison, Judgement


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


def judgement(**verdicts):
    """Return the judgement of a@1 and b@1, with a verdict by each ruleset."""
    tables = {
        ruleset: (PairVerdict(bot="a@1", below="b@1", chance=0.9, verdict=verdict),)
        for ruleset, verdict in verdicts.items()
    }
    return Judgement(SimpleNamespace(neighbours=tables), StopCondition(margin=0.5), "")


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (Verdict.AHEAD, "a@1 is better than b@1, known after 40 games."),
        (Verdict.EQUAL, "a@1 and b@1 are equal within 0.5, known after 40 games."),
        (
            Verdict.OPEN,
            "Not known after 40 games: neither a@1 nor b@1 is surely better, nor are they surely equal within 0.5.",
        ),
    ],
)
def test_tournament_of_two_bots_ends_with_its_verdict(verdict, sentence):
    assert judgement(basic=verdict).conclusions(40) == (sentence,)


def test_conclusions_of_several_rulesets_name_the_ruleset():
    assert judgement(basic=Verdict.AHEAD, duel=Verdict.EQUAL).conclusions(8) == (
        "basic: a@1 is better than b@1, known after 8 games.",
        "duel: a@1 and b@1 are equal within 0.5, known after 8 games.",
    )
