"""Make the pages of a league: what each one shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import ceil
from typing import Any

from referee.errors import Cause, NotFoundError, RefereeError, UserError
from referee.match.replay import Difference
from referee.records import GameRecord
from referee.reports.game_rows import GameRow, charge_rows, game_head, game_rows, seat_rows
from referee.reports.playthrough import log_lines
from referee.reports.rating_rows import RatingRow
from referee.reports.selection import GameFilter
from referee.reports.verdicts import name_deviations
from referee.rules.events import Termination
from referee.rules.ruleset import RULESETS
from referee.store import GameChoice
from referee.web.tables import tables
from referee.web.templates import Links, Page
from referee.web.views import REPLAY_HIDDEN, LeagueViews

NEWEST = 10
"""Number of games on the page of the league."""
PAGE_SIZE = 50
"""Number of games on a page of the list of games."""


def league_page(views: LeagueViews, links: Links) -> Page:
    """Return the first page: tournaments, ratings and the newest games."""
    newest, _ = views.league.find_games(GameChoice(), offset=0, limit=NEWEST)
    ratings = views.standings(GameFilter(), patience_s=views.patience_s)
    return Page(
        "league.html",
        "League",
        {
            "tournaments": views.tournaments(),
            "ratings": None if ratings is None else tables(RatingRow, ratings, links, "Ratings"),
            "deviations": ()
            if ratings is None
            else tuple(name_deviations(views.analyses(GameFilter()))),
            "newest": tables(GameRow, game_rows(game.result for game in newest), links, "Games"),
        },
    )


@dataclass(frozen=True, slots=True)
class FilterField:
    """A field of the filter: a list of values, from which the reader chooses one."""

    key: str
    label: str
    options: tuple[str, ...]
    value: str | None


def games_page(views: LeagueViews, links: Links, choice: GameChoice, number: int) -> Page:
    """Return a page of the list of games, newest first.

    Args:
        views: the league.
        links: the addresses of the page.
        choice: restricts the games.
        number: the number of the page, from 1. If there are fewer pages, the last one is shown.
    """
    league = views.league
    games, total = league.find_games(choice, offset=(number - 1) * PAGE_SIZE, limit=PAGE_SIZE)
    last = max(1, ceil(total / PAGE_SIZE))
    if number > last:
        return games_page(views, links, choice, last)
    wanted = {field.name: getattr(choice, field.name) for field in fields(choice)}
    return Page(
        "games.html",
        "Games",
        {
            "games": tables(GameRow, game_rows(game.result for game in games), links, "Games"),
            "total": total,
            "number": number,
            "last": last,
            "address": lambda page: links.games(page, **wanted),
            "filters": _filters(views, choice),
        },
    )


def game_page(views: LeagueViews, links: Links, game_id: str) -> Page:
    """Return the page of a stored game: result, faults and replay. Raises NotFoundError if there is no such game.

    If the record is damaged or must not be shown yet, the page says so.
    """
    values: dict[str, Any] = {"game_id": game_id, "head": None, "seats": [], "charges": []}
    values |= {"log": None, "problem": None, "board_file": links.board(game_id), "linked": True}
    try:
        record = views.record(game_id)
        values |= _game_values(record)
        if views.is_spoiler(game_id):
            values["problem"] = REPLAY_HIDDEN
        elif links.files is None:
            values["log"] = log_lines(record)
        else:
            views.board(game_id)  # raises an error if the game cannot be replayed
    except NotFoundError:
        raise
    except (RefereeError, Difference) as error:
        values["problem"] = str(error)
    return Page("game.html", game_id, values, live=values["problem"] == REPLAY_HIDDEN)


def unstored_game_page(record: GameRecord, board_file: str) -> Page:
    """Return the page of a finished game that the league does not have.

    Args:
        record: the game.
        board_file: the address of the data file of its replay.
    """
    values: dict[str, Any] = {"game_id": record.game_id, "log": log_lines(record), "problem": None}
    values |= {"board_file": board_file, "linked": False}
    return Page("game.html", record.game_id, values | _game_values(record), live=False)


def _game_values(record: GameRecord) -> dict[str, Any]:
    return {
        "head": game_head(record),
        "seats": seat_rows(record),
        "charges": charge_rows(record),
    }


def read_choice(query: Mapping[str, str]) -> tuple[GameChoice, int]:
    """Return the filter and the page number of an address's query. Raises UserError for a page that is no number."""
    keys = [field.name for field in fields(GameChoice)]
    page = query.get("page", "1")
    if not page.isascii() or not page.isdecimal() or len(page) > 9 or int(page) < 1:  # noqa: PLR2004
        raise UserError(f"page: {page!r} is not the number of a page")
    return GameChoice(**{key: query[key] for key in keys if query.get(key)}), int(page)


def _filters(views: LeagueViews, choice: GameChoice) -> list[FilterField]:
    bots = tuple(str(row.bot) for row in views.league.bots())
    options = {
        "tournament": ("tournament", tuple(row.tournament for row in views.tournaments())),
        "bot": ("bot", bots),
        "other": ("other bot", bots),
        "ruleset": ("ruleset", tuple(RULESETS)),
        "cause": ("fault", tuple(each.value for each in Cause)),
        "termination": ("ended by", tuple(each.value for each in Termination)),
    }
    return [
        FilterField(key, label, values, getattr(choice, key))
        for key, (label, values) in options.items()
    ]
