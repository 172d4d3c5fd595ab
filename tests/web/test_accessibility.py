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
