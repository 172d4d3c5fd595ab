"""Look at pages as people do: find what axe objects to, and keep screenshots."""

from __future__ import annotations

from pathlib import Path

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
"""The screenshots of the last run. Git ignores this folder."""


def violations(page):
    """Return what axe finds against WCAG 2.2, levels A and AA."""
    page.evaluate(AXE.read_text())  # the policy of the page forbids a script tag
    result = page.evaluate("rules => axe.run({runOnly: rules})", RULES)
    assert len(result["passes"]) > 10
    return [(each["id"], node["target"]) for each in result["violations"] for node in each["nodes"]]


def keep_screenshot(page, name):
    """Save the whole page as a picture, for people to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
