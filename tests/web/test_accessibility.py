"""axe finds nothing on any page that is against WCAG 2.2, levels A and AA, on a screen and on a phone, light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_violates_wcag(open_page, width, scheme):
    found = {}
    for path in PATHS:
        page = open_page(
            path,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        page.evaluate(AXE.read_text())  # the policy of the page forbids a script tag
        result = page.evaluate("rules => axe.run({runOnly: rules})", RULES)
        assert len(result["passes"]) > 10, path
        found[path] = [
            (each["id"], node["target"]) for each in result["violations"] for node in each["nodes"]
        ]
        page.close()
    assert found == {path: [] for path in PATHS}
