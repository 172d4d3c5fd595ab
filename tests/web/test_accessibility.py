"""axe finds nothing on any page that is against WCAG 2.2, levels A and AA, on screens and on a phone, light and dark.

No page scrolls sideways. The screenshots stay in `build/screenshots`.
"""

from __future__ import annotations

import re

import pytest
from sights import keep_screenshot, violations

PATHS = (
    "/",
    "/tournaments/cup",
    "/bots/greedy@1.0",
    "/histories/greedy@1.0",
    "/pairs/greedy@1.0/random@1.0",
    "/games",
    "/games/cup-1",
    "/games/cup-1#move=20",
)
pytestmark = [
    pytest.mark.extended("opens pages in a browser"),
    pytest.mark.toolchain("chromium"),
    pytest.mark.unmeasured,
]


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark"), (2560, "light")],
)
def test_no_page_violates_wcag(open_page, width, scheme):
    found = {}
    for path in PATHS:
        page = open_page(
            path,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        name = re.sub(r"\W+", "-", path).strip("-") or "league"
        keep_screenshot(page, f"{name}-{width}-{scheme}")
        found[path] = violations(page)
        page.close()
    assert found == {path: [] for path in PATHS}


WIDE_ROW = (
    "1",
    "small_beasts@1.0",
    *("25.47", "0.20", "24.87", "25.2 [24.9, 25.6]", "> 99.9 %", "800", "200", "18 % [16, 21]"),
    *("11040", "13.8 [13.5, 14.1]", "0", "0"),
)
"""The texts of a row of standings after 1,200 games, with wide figures."""


def widen_standings(page):
    """Write `WIDE_ROW` into the first row of the standings, and return the region with the table, and the row."""
    standings = page.get_by_role("region", name="Ratings")
    row = standings.locator("tbody tr").first
    for cell, text in zip(row.locator("td").all(), WIDE_ROW, strict=True):
        cell.locator("bdi").evaluate("(node, text) => { node.textContent = text }", text)
    return standings, row


def test_standings_fit_on_paper(open_page):
    page = open_page("/tournaments/cup", viewport={"width": 980, "height": 700})
    page.emulate_media(media="print")
    standings, _ = widen_standings(page)
    keep_screenshot(page, "standings-on-paper")
    assert standings.evaluate("node => node.scrollWidth - node.clientWidth") == 0


def test_standings_fit_into_a_window_of_1280_pixels(open_page):
    page = open_page("/tournaments/cup", viewport={"width": 1280, "height": 900})
    standings, row = widen_standings(page)
    assert standings.evaluate("node => node.scrollWidth - node.clientWidth") == 0
    assert row.locator("bdi").nth(1).evaluate("node => node.getClientRects().length") == 1


def test_names_of_a_crosstable_stay_visible_when_it_is_scrolled(open_page):
    page = open_page("/tournaments/cup", viewport={"width": 200, "height": 900})
    crosstable = page.get_by_role("region", name="Crosstable")
    crosstable.evaluate("node => { node.scrollLeft = node.scrollWidth }")
    assert crosstable.evaluate("node => node.scrollLeft") > 40
    name = crosstable.get_by_role("rowheader").last
    before = crosstable.bounding_box()["x"]
    assert name.bounding_box()["x"] == pytest.approx(before, abs=2)
    first = crosstable.locator("tbody tr").last.locator("td a").first
    first.focus()
    shown = name.bounding_box()
    assert first.bounding_box()["x"] >= shown["x"] + shown["width"]
