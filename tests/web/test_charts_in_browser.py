"""A browser draws the charts under the policy of the server, and draws them anew only when their data changes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = [
    pytest.mark.extended("opens pages in a browser"),
    pytest.mark.toolchain("chromium"),
    pytest.mark.unmeasured,
]
PATHS = {"/tournaments/cup": 1, "/bots/greedy@1.0": 2, "/histories/greedy@1.0": 1}
"""The number of charts of each page."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("path", "charts"), PATHS.items())
def test_every_chart_is_drawn_and_described(open_page, path, charts, scheme):
    page = open_page(path, color_scheme=scheme, viewport={"width": 390, "height": 800})
    expect(page.locator("figure.chart svg")).to_have_count(charts)
    for drawn in page.locator("figure.chart > div").all():
        expect(drawn).to_have_attribute("role", "graphics-document")
        expect(drawn).to_have_attribute("aria-label", re.compile("The table has the same figures"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_chart_is_drawn_anew_only_when_its_data_changes(open_page):
    page = open_page("/tournaments/cup")
    marks = page.locator("figure.chart svg[data-old]")
    expect(page.locator("figure.chart svg")).to_have_count(1)
    page.evaluate("document.querySelector('figure.chart svg').dataset.old = 'yes'")
    page.evaluate("document.dispatchEvent(new Event('htmx:afterSettle'))")
    expect(marks).to_have_count(1)
    page.evaluate(
        "const script = document.querySelector('figure.chart script');"
        "script.textContent = script.textContent.replace('95 %', '94 %');"
        "document.dispatchEvent(new Event('htmx:afterSettle'))"
    )
    expect(marks).to_have_count(0)
    expect(page.locator("figure.chart svg")).to_have_count(1)


def test_old_chart_does_not_stay_in_memory(open_page):
    page = open_page("/tournaments/cup")
    expect(page.locator("figure.chart svg")).to_have_count(1)
    removed = page.evaluate("""async () => {
        const removed = [];
        const remove = window.removeEventListener;
        window.removeEventListener = function (type, ...rest) {
            removed.push(type);
            return remove.call(window, type, ...rest);
        };
        const script = document.querySelector("figure.chart script");
        script.textContent = script.textContent.replace("95 %", "94 %");
        document.dispatchEvent(new Event("htmx:afterSettle"));
        await new Promise((resolve) => setTimeout(resolve));
        return removed;
    }""")
    assert "resize" in removed
    expect(page.locator("figure.chart svg")).to_have_count(1)


def test_chart_stays_when_the_page_is_updated_in_place(open_page):
    page = open_page("/tournaments/cup")
    expect(page.locator("figure.chart svg")).to_have_count(1)
    page.evaluate("document.querySelector('figure.chart svg').dataset.old = 'yes'")
    with page.expect_response("**/tournaments/cup"):
        page.evaluate("htmx.trigger('#main', 'refresh')")
    page.evaluate("new Promise(requestAnimationFrame)")
    expect(page.locator("figure.chart svg[data-old]")).to_have_count(1)
