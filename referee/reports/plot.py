"""A bot's rating over its games, drawn with characters."""

from __future__ import annotations

from collections.abc import Sequence

import plotille

from referee.reports.ratings import HistoryRow

_MARGIN = 24
"""What labels and axes take beside the picture, in characters."""
_HEIGHT = 16


def plot(rows: Sequence[HistoryRow], width: int) -> str:
    """Three lines over the games played: mu - 2 sigma, mu and mu + 2 sigma.

    Args:
        rows: of one ruleset, at least one.
        width: of the text, in characters.
    """
    figure = plotille.Figure()
    figure.width, figure.height = max(20, width - _MARGIN), _HEIGHT
    figure.with_colors = False
    figure.x_label, figure.y_label = "games", "mu, 2 sigma"
    figure.register_label_formatter(float, _label)
    figure.register_label_formatter(int, _label)
    games = [row.games for row in rows]
    for sigmas in (-2, 0, 2):
        figure.plot(games, [row.mu + sigmas * row.sigma for row in rows])
    figure.set_x_limits(min_=0, max_=max(games))
    return str(figure.show())


def _label(value: float, chars: int, delta: float, left: bool = False) -> str:
    """A tick: the signature is plotille's."""
    text = f"{value:.0f}" if delta > 5 else f"{value:.1f}"  # noqa: PLR2004 - decimals would crowd
    return text.ljust(chars) if left else text.rjust(chars)
