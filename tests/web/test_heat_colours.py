"""The text of a crosstable can be read on each colour of its cells, on a light and on a dark page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import referee.web

STYLE = (Path(referee.web.__file__).with_name("static") / "style.css").read_text()
WANTED = 4.5
"""Contrast of text by WCAG 2.2, level AA."""


def colours(*, dark):
    """Return the colours of the style sheet by name. A dark page changes some of those of a light page."""
    blocks = re.findall(
        r"(?:@media \(prefers-color-scheme: (dark)\) \{\s*)?:root \{(.*?)\}", STYLE, re.DOTALL
    )
    found = {}
    for scheme, block in blocks:
        if dark or not scheme:
            found |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
    return found


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast_on_every_shade(dark):
    found = colours(dark=dark)
    text = luminance(found["text"])
    for shade in range(11):
        back = luminance(found[f"heat-{shade}"])
        high, low = max(text, back), min(text, back)
        assert (high + 0.05) / (low + 0.05) >= WANTED, shade


@pytest.mark.parametrize("dark", [False, True])
def test_every_shade_has_its_own_colour(dark):
    found = colours(dark=dark)
    assert len({found[f"heat-{shade}"] for shade in range(11)}) == 11
    assert all(f".heat-{shade} {{" in STYLE for shade in range(11))
