"""Explain errors to visitors of the web pages without telling them where the league is stored."""

from __future__ import annotations

import logging

from referee.errors import StoreError
from referee.store.league import League

UVICORN_LOG = logging.getLogger("uvicorn.error")
"""The logger of uvicorn, which prints errors in the terminal of the server."""
LOG = UVICORN_LOG.getChild("referee")
"""Prints errors of the referee in the same way, also while uvicorn's own errors are not printed."""


def explain(league: League, error: Exception) -> str:
    """Return the message of an error without the path or the database address of the league.

    The message of a StoreError can contain the address in a form that `League.explain` does not find. So this message is only
    printed in the terminal.
    """
    if isinstance(error, StoreError):
        LOG.error("%s", error)
        return "The database of the league does not work at the moment. The terminal of the server shows more."
    return league.explain(error)
