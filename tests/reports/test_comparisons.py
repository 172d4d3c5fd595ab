"""The figures of comparisons, the crosstable, and the diagram of a rating."""

from __future__ import annotations

import re
from itertools import permutations

import pytest
from rich.console import Console

from referee.ratings.analysis import MeetingFigures
from referee.ratings.intervals import Estimate
from referee.reports.formats import chance, estimate, percent_estimate
from referee.reports.rating_rows import HistoryRow
from referee.reports.statistics import crosstable_rows
from referee.reports.terminal import Crosstable, plot


def met(first, second, better):
    return MeetingFigures(
        first=first,
        second=second,
        meetings=8,
        matches=2,
        wins=2,
        draws=0,
        losses=6,
        better=better,
    )


def test_no_probability_is_shown_as_certain():
    assert [chance(share) for share in (0, 0.0009, 0.001, 0.5, 0.999, 0.99995, 1)] == [
        "< 0.1 %",
        "< 0.1 %",
        "0.1 %",
        "50.0 %",
        "99.9 %",
        "> 99.9 %",
        "> 99.9 %",
    ]


def test_figures_are_shown_with_their_intervals():
    assert estimate(1)(Estimate(1.25, -2.0, 3.04)) == "1.2 [-2.0, 3.0]"
    assert estimate(2)(Estimate(1.0, None, None)) == "1.00"
    assert estimate(1)(Estimate(-2.0, None, 3.1)) == "< 3.1"
    assert estimate(1)(Estimate(52.0, 43.1, None)) == "> 43.1"
    assert percent_estimate(Estimate(0.5, 0.401, 0.6)) == "50 % [40, 60]"
    assert percent_estimate(Estimate(0.5, None, None)) == "50 %"


def test_interval_that_rounding_hides_is_shown_with_one_more_decimal_place():
    assert percent_estimate(Estimate(0.502, 0.499, 0.504)) == "50.2 % [49.9, 50.4]"
    assert percent_estimate(Estimate(0.502, 0.494, 0.504)) == "50 % [49, 50]"
    assert percent_estimate(Estimate(1.0, 1.0, 1.0)) == "100 % [100, 100]"
    assert estimate(1)(Estimate(-0.01, -0.03, 0.02)) == "-0.01 [-0.03, 0.02]"
    assert estimate(2)(Estimate(1.0, 1.0001, 1.0002)) == "1.000 [1.000, 1.000]"


def shown(renderable, width=80):
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_crosstable_has_every_bot_against_every_other():
    meetings = [met("a", "b", 0.255), met("b", "a", 0.745)]
    text = shown(Crosstable(["b", "a", "c\x1b[31m"], meetings, "crosstable, basic"))
    lines = [line.split() for line in text.splitlines()]
    assert ["#", "bot", "1", "2", "3"] in lines
    assert ["1", "b", "·", "74", "-"] in lines
    assert ["2", "a", "26", "·", "-"] in lines
    assert "a tie counts half, and a game with k seats has the weight 2 / k" in " ".join(
        text.split()
    )
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [30, 40, 80, 140])
def test_crosstable_of_many_bots_is_split_into_tables_that_fit(width):
    bots = [f"bot_{number:02}@1.0" for number in range(1, 41)]
    meetings = [met(bot, other, 1.0) for bot, other in permutations(bots, 2)]
    lines = shown(Crosstable(bots, meetings, "crosstable, basic"), width).splitlines()
    assert max(map(len, lines)) <= width
    heads = [line.split() for line in lines if line.split()[:2] == ["#", "bot"]]
    assert all(head[2:] for head in heads)
    assert [number for head in heads for number in head[2:]] == [str(n) for n in range(1, 41)]
    cells = [line.split() for line in lines if "bot_" in line]
    assert len(cells) == 40 * len(heads)
    for number, bot in enumerate(bots):
        parts = cells[number::40]
        assert all(part[:2] == [str(number + 1), bot] for part in parts)
        shares = [share for part in parts for share in part[2:]]
        assert shares == ["·" if number == other else "100" for other in range(40)]
    assert sum("percentage" in line for line in lines) == 1


def test_rating_is_drawn_over_the_games():
    legend, *lines = plot(history(rounds=8, games=4), 80).splitlines()
    text = "\n".join(lines)
    assert legend == "Middle line: mu. Upper and lower line: mu + 2 sigma and mu - 2 sigma."
    assert max(map(len, lines)) <= 80
    assert len({len(line) for line in lines[2:15]}) == 1
    labels = [line.split("|")[0].strip() for line in lines[1:17]]
    assert all(re.fullmatch(r"\d+\.\d", label) for label in labels)
    assert len(set(labels)) == 16
    assert "(games)" in text
    assert any("\u2800" < char <= "\u28ff" for char in text)


@pytest.mark.parametrize("rounds", [2, 3, 4, 7, 9, 31, 97, 1000])
@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_ticks_are_at_whole_numbers_of_games(rounds, width):
    lines = plot(history(rounds=rounds, games=1), width).splitlines()
    ticks = [int(label) for label in lines[-1].split("|")[1].split()]
    assert ticks == list(range(0, ticks[-1] + 1, ticks[1]))
    drawn = max(map(len, lines[2:-2])) - len("    12.2 | ")
    assert drawn == pytest.approx(rounds * 10 / ticks[1], abs=3)  # a tick each 10 characters
    assert max(map(len, lines[1:])) <= max(width, 44)


def history(*, rounds, games):
    """Return the history of a bot that played `rounds` rounds of `games` games."""
    return [
        HistoryRow(
            ruleset="basic",
            tournament="cup",
            round=n,
            games=games * n,
            mu=25 + n,
            sigma=8 / n,
            rating=0.0,
        )
        for n in range(1, rounds + 1)
    ]


def test_crosstable_row_has_the_share_against_every_other_bot():
    meetings = [met("a", "b", 0.25), met("b", "a", 0.75)]
    first, second, third = crosstable_rows("basic", ["b", "a", "c"], meetings)
    assert (first.rank, first.bot, first.ahead_in) == (1, "b", {"a": 0.75, "c": None})
    assert (second.rank, second.bot, second.ahead_in) == (2, "a", {"b": 0.25, "c": None})
    assert (third.ruleset, third.ahead_in) == ("basic", {"b": None, "a": None})
    assert crosstable_rows("basic", ["alone"], []) == []
