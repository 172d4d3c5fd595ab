"""Values are formatted for people."""

import unicodedata
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from referee.reports import formats
from referee.reports.terminal import Crosstable
from referee.rules.ruleset import JOKER, Layer, count_cards, layer_name


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("greedy", "greedy"),
        ("Zoë ×", "Zoë ×"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("one\r\ntwo\t", r"one\r\ntwo\t"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("evil\u202egnp.exe", r"evil\u202egnp.exe"),
        ("zero\u200bwidth\u2028", r"zero\u200bwidth\u2028"),
        ("\udcff", r"\udcff"),
        ("\u3164\u034f\u061c\u2800", r"\u3164\u034f\u061c\u2800"),
        ("tag\U000e0100", r"tag\U000e0100"),
        ("\u2764\ufe0f", "\u2764\ufe0f"),
        ("\u2764\ufe0f\ufe0f a\ufe0f", "\u2764\ufe0f\\ufe0f a\\ufe0f"),
        ("[bold]no markup[/]", "[bold]no markup[/]"),
    ],
)
def test_control_characters_are_escaped(text, shown):
    assert formats.visible(text) == shown


def test_line_feeds_are_kept_on_demand():
    assert formats.visible("a\n\tb\x1b\r\n", lines=True) == "a\n        b\\x1b\\r\n"


@given(st.text(st.characters(exclude_categories=[])), st.booleans())
def test_escaped_text_is_printable(text, lines):
    shown = formats.visible(text, lines=lines)
    shown.encode()
    assert not {unicodedata.category(char) for char in shown.replace("\n", "")} & {"Cc", "Cf", "Cs"}
    assert lines or "\n" not in shown


@pytest.mark.parametrize(
    ("duration_us", "shown"),
    [
        (0, "0 µs"),
        (999, "999 µs"),
        (1_000, "1.0 ms"),
        (999_949, "999.9 ms"),
        (999_950, "1.0 s"),
        (4_210_000, "4.2 s"),
        (59_949_000, "59.9 s"),
        (59_950_000, "1:00 min"),
        (187_000_000, "3:07 min"),
        (7_387_000_000, "2:03:07 h"),
    ],
)
def test_durations_have_a_fitting_unit(duration_us, shown):
    assert formats.duration(duration_us) == shown


def test_numbers_and_times_are_formatted():
    assert formats.decimal(2)(1.005001) == "1.01"
    assert formats.percent(0.25) == "25.0 %"
    assert formats.moment(1_700_000_000_999_999) == "2023-11-14 22:13:20 UTC"
    assert formats.plain((3, -1)) == "3 -1"
    assert formats.plain(()) == "-"


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0, "0.0 %"),
        (1 / 20_000, "< 0.1 %"),
        (0.001, "0.1 %"),
        (0.999, "99.9 %"),
        (19_999 / 20_000, "> 99.9 %"),
        (1, "100.0 %"),
    ],
)
def test_only_everything_is_100_percent_and_only_nothing_is_0(share, shown):
    assert formats.percent(share) == shown


@pytest.mark.parametrize(
    ("shares", "places", "shown"),
    [
        ((0.71, 0.55), 0, ("71 %", "55 %")),
        ((0.6384, 0.6361), 0, ("63.8 %", "63.6 %")),
        ((0.5, 0.5), 1, ("50.0 %", "50.0 %")),
        ((1.0, 0.996), 0, ("100.0 %", "99.6 %")),
        ((0.9, 0.9997), 1, ("90.00 %", "99.97 %")),
        ((0.03, 0.003), 0, ("3.0 %", "0.3 %")),
        ((0.0, 0.3), 0, ("0 %", "30 %")),
    ],
)
def test_two_percentages_have_the_decimals_that_tell_them_apart(shares, places, shown):
    assert formats.distinct_percents(*shares, places) == shown


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        (Layer(7, 1, 0), "7"),
        (Layer(7, 3, 0), "3×7"),
        (Layer(7, 3, 1), "3×7+J"),
        (Layer(13, 1, 2), "13+2×J"),
        (Layer(JOKER, 0, 1), "J"),
        (Layer(JOKER, 0, 2), "2×J"),
    ],
)
def test_layers_are_formatted(layer, name):
    assert layer_name(layer) == name


def test_groups_and_multisets_are_formatted():
    assert formats.group_name((7,)) == "7"
    assert formats.group_name((3, 13, JOKER)) == "3+13+J"
    assert formats.group_name(()) == "-"
    assert formats.counts_name(count_cards([12, 3, JOKER, 12, 7])) == "3 7 2×12 J"
    assert formats.counts_name(count_cards([])) == "-"


def test_every_part_of_a_crosstable_has_its_title():
    console = Console(width=50, file=StringIO())
    title = "classic, a long title of a crosstable"
    console.print(Crosstable([f"bot{number}@1.0" for number in range(9)], (), title))
    lines = console.file.getvalue().splitlines()
    titles = [line.strip() for line in lines if "classic" in line]
    assert len(titles) > 1
    assert set(titles) == {title}
