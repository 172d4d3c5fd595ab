"""Explain errors to visitors of the web pages, who need not know where the league is stored."""

from __future__ import annotations

import logging

from referee.errors import StoreError
from referee.store.league import League

_LOG = logging.getLogger("uvicorn.error")
"""uvicorn prints its errors in the terminal of the server."""


def explain(league: League, error: Exception) -> str:
    """Return the message of an error without the place of the league.

    If the database has failed, its message can contain its address. So the message is only printed in the terminal.
    """
    if isinstance(error, StoreError):
        _LOG.error("%s", error)
        return "The database of the league does not work at the moment. The terminal of the server shows more."
    return league.explain(error)
