"""Test the speed of a tournament and the time that is left, from the ends of its games."""

from __future__ import annotations

from referee.web.views import Speed, speed

SECOND_US = 1_000_000


def ends(*seconds):
    return [round(second * SECOND_US) for second in seconds]


def test_even_games_give_their_speed_and_the_time_left():
    assert speed(ends(0, 0.5, 1, 1.5, 2), missing=10) == Speed(2.0, 5 * SECOND_US)


def test_order_of_the_ends_does_not_matter():
    assert speed(ends(2, 0, 1), missing=3) == speed(ends(0, 1, 2), missing=3)


def test_games_before_the_last_minute_do_not_count():
    assert speed(ends(0, 1, 2, 100, 104), missing=1) == Speed(0.25, 4 * SECOND_US)


def test_finished_tournament_has_no_time_left():
    assert speed(ends(0, 1), missing=0) == Speed(1.0, 0)


def test_too_few_games_have_no_speed():
    assert speed([], missing=5) is None
    assert speed(ends(7), missing=5) is None
    assert speed(ends(7, 7), missing=5) is None
    assert speed(ends(0, 60), missing=5) is None
