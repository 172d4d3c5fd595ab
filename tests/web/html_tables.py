"""Read the tables and the charts of a page."""

from __future__ import annotations

import json
from html.parser import HTMLParser


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tables, self.charts, self.addresses = {}, [], []
        self._row, self._text, self._caption = None, [], None
        self._in_chart = False

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag in {"td", "th", "caption"}:
            self._text = []
        elif tag == "tr":
            self._row = []
        elif tag == "a":
            self.addresses.append(values["href"])
        elif tag == "script" and values.get("type") == "application/json":
            self._in_chart, self._text = True, []

    def handle_data(self, data):
        self._text.append(data)

    def handle_endtag(self, tag):
        text = " ".join("".join(self._text).split())
        if tag == "caption":
            self._caption = text
            self.tables[text] = []
        elif tag in {"td", "th"}:
            self._row.append(text)
        elif tag == "tr":
            self.tables[self._caption].append(tuple(self._row))
        elif tag == "script" and self._in_chart:
            self._in_chart = False
            self.charts.append(json.loads("".join(self._text)))


def read_page(html):
    """Return an object with `tables` (rows of texts by caption, the titles first), `charts` and `addresses`."""
    reader = _Reader()
    reader.feed(html)
    return reader
