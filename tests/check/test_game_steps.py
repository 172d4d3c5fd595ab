"""Test the interval of the strength that a check measures. `test_check_bot` tests the steps with real bots."""

from __future__ import annotations

import pytest

from referee.check.game_steps import half_width


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((-1.0, 1.0), 12.706),  # the quantiles are those of published tables of Student's t
        ((-1.0, 0.0, 1.0), 4.303 / 3**0.5),
        ((0.0, 2.0) * 50, 1.984 * (100 / 99) ** 0.5 / 10),
    ],
)
def test_few_games_give_a_wide_interval(values, expected):
    assert half_width(values) == pytest.approx(expected, rel=1e-3)
