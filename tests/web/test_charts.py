"""The values of the charts are those of the rows, and no text of a stranger is part of an expression."""

from __future__ import annotations

import json

import pytest

from referee.ratings.intervals import Estimate
from referee.reports.bot_rows import LatencyRow
from referee.reports.rating_rows import HistoryRow, RatingRow
from referee.web.charts import history, intervals, latencies

HOSTILE = '"] + alert(1) + datum["\u202e<script>'


def rating(bot, fit, rank=1):
    return RatingRow(
        ruleset="basic",
        rank=rank,
        bot=bot,
        mu=25.0,
        sigma=1.0,
        rating=22.0,
        fit=fit,
        ahead=None,
        games=4,
        matches=2,
        wins=1,
        won=fit,
        points=9,
        score=fit,
        strikes=0,
        forfeits=0,
    )


def round_of(number, mu, sigma):
    return HistoryRow(
        ruleset="basic",
        tournament="cup",
        round=number,
        games=10 * number,
        mu=mu,
        sigma=sigma,
        rating=mu - 3 * sigma,
    )


def values(chart):
    return chart["data"]["values"]


def test_intervals_are_those_of_the_rows_in_their_order():
    rows = [rating("z@1", Estimate(27.5, 26.0, 29.0)), rating("a@1", Estimate(22.5, 21.0, 24.0), 2)]
    assert values(intervals(rows)) == [
        {"place": 1, "bot": "1. z@1", "fit": 27.5, "low": 26.0, "high": 29.0},
        {"place": 2, "bot": "2. a@1", "fit": 22.5, "low": 21.0, "high": 24.0},
    ]


@pytest.mark.parametrize(
    ("low", "high", "line"),
    [(None, None, (25.0, 25.0)), (None, 26.0, (25.0, 26.0)), (24.0, None, (24.0, 25.0))],
)
def test_line_ends_at_the_point_where_the_interval_is_open(low, high, line):
    (value,) = values(intervals([rating("a@1", Estimate(25.0, low, high))]))
    assert (value["low"], value["high"]) == line


def test_band_of_the_history_is_two_sigma_wide_on_both_sides():
    chart = history([round_of(1, 26.0, 3.0), round_of(2, 27.0, 2.0)])
    assert values(chart) == [
        {"games": 10, "mu": 26.0, "low": 20.0, "high": 32.0},
        {"games": 20, "mu": 27.0, "low": 23.0, "high": 31.0},
    ]


@pytest.mark.parametrize(("rounds", "has_points"), [(1, True), (2, False)])
def test_history_of_one_round_is_a_point_because_a_line_needs_two(rounds, has_points):
    line = history([round_of(number + 1, 26.0, 3.0) for number in range(rounds)])["layer"][1]
    assert line["mark"]["point"] is has_points


def test_bars_have_the_decisions_of_the_rows_in_their_order():
    rows = [
        LatencyRow(at_least_us=500, below_us=1000, decisions=7, share=0.7),
        LatencyRow(at_least_us=1000, below_us=2000, decisions=3, share=0.3),
    ]
    assert values(latencies(rows)) == [
        {"place": 0, "time": "≥ 500 µs", "decisions": 7},
        {"place": 1, "time": "≥ 1.0 ms", "decisions": 3},
    ]


def test_name_of_a_stranger_is_only_a_value():
    chart = intervals([rating(HOSTILE, Estimate(25.0, 24.0, 26.0))])
    data = chart.pop("data")
    assert "alert" not in json.dumps(chart)
    assert data["values"][0]["bot"] == "1. " + HOSTILE.replace("\u202e", r"\u202e")
