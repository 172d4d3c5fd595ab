"""Make charts as specifications of Vega-Lite. `static/charts.js` draws them in the browser.

A specification is plain data. Names from strangers are values of the data, never a part of an expression. The colours
come from the style sheet of the page, so a chart fits a light and a dark page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from referee.reports.bot_rows import LatencyRow
from referee.reports.formats import duration
from referee.reports.rating_rows import HistoryRow, RatingRow
from referee.web.templates import cut

Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""Tells the language of the specification. Nothing is loaded from there."""
_SIGMAS = 2
"""On each side of mu, the band has a width of this number of sigmas, as in the diagram of `referee ratings --history`."""
_ROW_HEIGHT = 28
_HEIGHT = 260


def intervals(rows: Sequence[RatingRow]) -> Spec:
    """Return a chart of the fit of each bot with its 95 % interval, in the order of the rows.

    Args:
        rows: the ratings of one ruleset. A bot without an interval is only a point. If one end of the interval is not known,
            the line ends at the point on that side.
    """
    values = [
        {
            "place": place,
            "bot": f"{place}. {cut(row.bot)}",
            "fit": row.fit.value,
            "low": row.fit.value if row.fit.low is None else row.fit.low,
            "high": row.fit.value if row.fit.high is None else row.fit.high,
        }
        for place, row in enumerate(rows, 1)
    ]
    bots = {
        "field": "bot",
        "type": "nominal",
        "sort": {"field": "place", "op": "min"},
        "axis": {"title": None, "labelLimit": 150, "grid": True},
    }
    return _chart(
        "The fit of each bot with its 95 % interval, best bot first. If a line ends at its point,"
        " the end of the interval on that side is not known. The table has the same figures.",
        values,
        height=_ROW_HEIGHT * len(rows),
        encoding={"y": bots},
        layer=[
            {
                "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.55},
                "encoding": {"x": _quantity("low", "fit, 95 % interval"), "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {"x": _quantity("fit", "fit, 95 % interval")},
            },
        ],
    )


def history(rows: Sequence[HistoryRow]) -> Spec:
    """Return a chart of mu over the games of a bot, in a band from mu - 2 sigma to mu + 2 sigma.

    Args:
        rows: the history of a bot in one ruleset.
    """
    values = [
        {
            "games": row.games,
            "mu": row.mu,
            "low": row.mu - _SIGMAS * row.sigma,
            "high": row.mu + _SIGMAS * row.sigma,
        }
        for row in rows
    ]
    title = f"mu ± {_SIGMAS} sigma"
    return _chart(
        f"The rating of the bot after each round: mu as a line, in a band of {_SIGMAS} sigma on both sides, over the"
        " number of games. The table has the same figures.",
        values,
        height=_HEIGHT,
        encoding={
            "x": {
                "field": "games",
                "type": "quantitative",
                "title": "games of the bot",
                "axis": {"tickMinStep": 1},
            },
        },
        layer=[
            {
                "mark": {"type": "area", "opacity": 0.25},
                "encoding": {"y": _quantity("low", title), "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "line", "strokeWidth": 2, "point": len(rows) == 1},
                "encoding": {"y": _quantity("mu", title)},
            },
        ],
    )


def latencies(rows: Sequence[LatencyRow]) -> Spec:
    """Return a chart of the number of decisions in each range of time."""
    values = [
        {
            "place": place,
            "time": f"≥ {duration(row.at_least_us)}",
            "decisions": row.decisions,
        }
        for place, row in enumerate(rows)
    ]
    times = {
        "field": "time",
        "type": "nominal",
        "sort": {"field": "place", "op": "min"},
        "axis": {"title": "time of the decision", "labelAngle": -45},
    }
    return _chart(
        "The number of decisions of the bot in each range of time. The table has the same figures.",
        values,
        height=_HEIGHT,
        encoding={
            "x": times,
            "y": {
                "field": "decisions",
                "type": "quantitative",
                "title": "decisions",
                "axis": {"tickMinStep": 1},
            },
        },
        mark={"type": "bar"},
    )


def _chart(description: str, values: list[dict[str, Any]], **parts: object) -> Spec:
    return {
        "$schema": _SCHEMA,
        "description": description,
        "width": "container",
        "data": {"values": values},
        **parts,
    }


def _quantity(field: str, title: str) -> dict[str, Any]:
    """Return the encoding of a rating. Its axis need not begin at 0, because only differences of ratings count."""
    return {"field": field, "type": "quantitative", "title": title, "scale": {"zero": False}}
