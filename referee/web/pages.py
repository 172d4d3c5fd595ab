"""Make the pages of a league, of a tournament, and of games: what each one shows, and the data that it offers for download."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from math import ceil
from typing import Any

from referee.errors import Cause, DamagedRecordError, NotFoundError, UserError, did_you_mean
from referee.match.replay import Difference
from referee.records import GameRecord
from referee.reports.bot_rows import FaultRow
from referee.reports.formats import csv_text, json_text
from referee.reports.game_rows import GameRow, charge_rows, game_head, game_rows, seat_rows
from referee.reports.playthrough import log_lines
from referee.reports.rating_rows import RatingRow
from referee.reports.selection import GameFilter
from referee.reports.statistics import LuckRow, NeighbourRow, PairRow, SeatWorthRow
from referee.reports.tournament_rows import NextGameRow, StatusRow
from referee.reports.verdicts import name_deviations
from referee.roster.roster import Roster
from referee.rules.events import Termination
from referee.rules.ruleset import RULESETS
from referee.store import GameChoice
from referee.tournament.archive_writer import export_archive
from referee.tournament.config import part_title
from referee.tournament.create import TournamentState
from referee.web.board import board_data
from referee.web.cache import NotReadyError
from referee.web.charts import Spec, intervals
from referee.web.tables import CrosstableRow, Table, crosstable, tables
from referee.web.templates import Links, Page
from referee.web.views import REPLAY_HIDDEN, STDERR_HIDDEN, LeagueViews, hide_detail

NEWEST = 10
"""Number of games on the page of the league."""
PAGE_SIZE = 50
"""Number of games on a page of the list of games."""
_ARCHIVED = 300
"""For a tournament with more games, the page offers no archive, because packing it takes more than a second. Instead, the page names the
command that writes the archive."""

_VALUES = {
    "ruleset": tuple(RULESETS),
    "cause": tuple(each.value for each in Cause),
    "termination": tuple(each.value for each in Termination),
}
"""Maps each field of `GameChoice` that has a fixed list of values to this list."""


def league_page(views: LeagueViews, links: Links) -> Page:
    """Return the first page: tournaments, ratings and the newest games."""
    newest, _ = views.league.find_games(GameChoice(), offset=0, limit=NEWEST)
    ratings = views.ratings(GameFilter())
    return Page(
        "league.html",
        "League",
        {
            "tournaments": views.tournaments(),
            "unreadable": views.unreadable_tournaments(),
            "ratings": None
            if ratings is None
            else tables(RatingRow, ratings.rows, links, "Ratings"),
            "deviations": () if ratings is None else tuple(name_deviations(ratings.analysed)),
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

    If the record is damaged, or if the replay must not be shown yet, the page says so. The second case occurs only on a server,
    because a report has no pages of such games. In a report, the value `board` is what `board_data` returns, or None if the record
    is damaged. On a server, `board` is always None.
    """
    values: dict[str, Any] = {"game_id": game_id, "head": None, "log": None, "board": None}
    values |= {"board_file": links.board(game_id), "linked": True}
    values |= {"problem": None, "stderr_hidden": None}
    try:
        record = views.league.record(game_id)
        values |= _game_values(record)
        if links.files is not None:
            values["board"] = board_data(record)
        elif views.is_spoiler(game_id):
            values |= {"problem": REPLAY_HIDDEN, "stderr_hidden": STDERR_HIDDEN}
            values["charges"] = list(map(hide_detail, values["charges"]))
        else:
            values["log"] = log_lines(record)
    except (DamagedRecordError, Difference) as error:
        values["problem"] = views.league.explain(error)
    return Page("game.html", game_id, values, live=values["problem"] == REPLAY_HIDDEN)


def unstored_game_page(record: GameRecord, board_file: str) -> Page:
    """Return the page of a finished game that the league does not have.

    Args:
        record: the game.
        board_file: the address of the data file of its replay.
    """
    values: dict[str, Any] = {"game_id": record.game_id, "log": log_lines(record), "problem": None}
    values |= {"board_file": board_file, "linked": False, "stderr_hidden": None}
    return Page("game.html", record.game_id, values | _game_values(record), live=False)


def _game_values(record: GameRecord) -> dict[str, Any]:
    return {
        "head": game_head(record),
        "seats": seat_rows(record),
        "charges": charge_rows(record),
    }


def read_choice(query: Iterable[tuple[str, str]]) -> tuple[GameChoice, int]:
    """Return the filter and the page number from the query of an address. An empty value does not restrict the games.

    Raises UserError for an unknown key, for a key that is given more than once, for a page that is not a number from 1 with at most
    9 digits, and for an unknown ruleset, cause or termination. Names of bots and tournaments are not checked.
    """
    keys = ("page", *(field.name for field in fields(GameChoice)))
    given: dict[str, str] = {}
    for key, value in query:
        if key not in keys:
            similar = did_you_mean(key, keys)
            raise UserError(
                f"unknown key {key!r} in the address{similar}; choose one of {', '.join(keys)}"
            )
        if key in given:
            raise UserError(f"{key}: given more than once")
        given[key] = value
    page = given.pop("page", "1")
    if not page.isascii() or not page.isdecimal() or len(page) > 9 or int(page) < 1:  # noqa: PLR2004
        raise UserError(f"page: {page!r} is not the number of a page")
    wanted = {key: value for key, value in given.items() if value}
    for key, known in _VALUES.items():
        if key in wanted and wanted[key] not in known:
            value = wanted[key]
            similar = did_you_mean(value, known)
            raise UserError(
                f"{key}: unknown value {value!r}{similar}; choose one of {', '.join(known)}"
            )
    return GameChoice(**wanted), int(page)


def _filters(views: LeagueViews, choice: GameChoice) -> list[FilterField]:
    """Return the fields of the filter. A wanted value that is not in the list, such as a bot without a version, is put in front."""
    bots = tuple(str(row.bot) for row in views.league.bots())
    options = {
        "tournament": ("tournament", tuple(row.tournament for row in views.tournaments())),
        "bot": ("bot", bots),
        "other": ("other bot", bots),
        "ruleset": ("ruleset", _VALUES["ruleset"]),
        "cause": ("fault", _VALUES["cause"]),
        "termination": ("ended by", _VALUES["termination"]),
    }
    filters = []
    for key, (label, values) in options.items():
        wanted = getattr(choice, key)
        shown = values if wanted in (None, *values) else (wanted, *values)
        filters.append(FilterField(key, label, shown, wanted))
    return filters


@dataclass(frozen=True, slots=True)
class RulesetPart:
    """What the page of a tournament shows about the ratings of one ruleset: standings, chart of intervals, crosstable and deviations."""

    ruleset: str
    standings: Table
    intervals: Spec
    crosstable: list[CrosstableRow]
    deviations: list[str]
    """The sentence of `name_deviations` if one number misleads in this ruleset; otherwise empty."""


@dataclass(frozen=True, slots=True)
class SeedCommitment:
    """The commitment of one part of a tournament, and the seed of this part if it is public.

    A part is either the tournament without its extensions, or one extension.
    """

    title: str
    commitment: str
    seed: str | None


def tournament_page(views: LeagueViews, links: Links, name: str) -> Page:
    """Return the page of a tournament. Raises NotFoundError if the league has no such tournament."""
    tournament, choice = views.tournament(name), GameFilter(tournament=name)
    (row,) = (row for row in views.tournaments(having=name) if row.tournament == name)
    status = views.status(name)
    return Page(
        "tournament.html",
        name,
        {
            "row": row,
            "status": status,
            "speed": views.speed(name),
            "may_stop": tournament.may_stop,
            "next_games": tables(NextGameRow, views.next_games(name), links, "Next games"),
            "rounds": tables(StatusRow, status, links, "Rounds"),
            "faults": tables(FaultRow, views.fault_counts(tournament=name), links, "Faults"),
            "seats": tables(SeatWorthRow, views.seat_worths(choice), links, "Seats"),
            "luck": tables(LuckRow, views.luck(choice), links, "Luck"),
            "commitments": _commitments(tournament),
            "has_archive": _has_archive(tournament),
            # last, because this starts the computation of ratings, which slows down all other threads
            "rulesets": _rulesets(views, links, choice),
            **_describe_verdicts(views, links, choice),
        },
    )


def download(views: LeagueViews, file: str) -> tuple[bytes, str]:
    """Return the content and the media type of a download.

    Args:
        views: the league.
        file: the name of the tournament with one of the endings `.standings.csv`, `.standings.json`, `.pairs.csv`,
            `.pairs.json` and `.zip`.

    Raises NotFoundError for another ending, for an unknown tournament, and for an archive that the page does not offer.
    Raises NotReadyError if `LeagueViews.ratings` or `LeagueViews.pairs` returns None.
    """
    name, _, ending = file.rpartition(".")
    if ending == "zip":
        return _pack(views, name), "application/zip"
    name, _, kind = name.rpartition(".")
    if kind not in {"standings", "pairs"} or ending not in {"csv", "json"}:
        raise NotFoundError(f"{file}: there is no such download")
    choice = GameFilter(tournament=name)
    row_type: type
    rows: Sequence[object] | None
    if kind == "standings":
        ratings = views.ratings(choice)
        row_type, rows = RatingRow, None if ratings is None else ratings.rows
    else:
        row_type, rows = PairRow, views.pairs(choice)
    if rows is None:
        raise NotReadyError
    if ending == "csv":
        return csv_text(row_type, rows).encode(), "text/csv; charset=utf-8"
    return f"{json_text(rows)}\n".encode(), "application/json"


def _pack(views: LeagueViews, name: str) -> bytes:
    """Return the archive of a tournament. Raises NotFoundError if the page does not offer it."""
    tournament = views.tournament(name)
    if not _has_archive(tournament):
        reason = "too large to be packed here" if _is_finished(tournament) else "not finished yet"
        raise NotFoundError(
            f"{name} is {reason}; a command writes its archive: referee tournament export {name}"
        )
    return export_archive(views.league, Roster.for_reading(views.league), name).data


def _rulesets(views: LeagueViews, links: Links, choice: GameFilter) -> list[RulesetPart] | None:
    """Return the part of each ruleset. Return None if the ratings are still being computed."""
    ratings = views.ratings(choice)
    if ratings is None:
        return None
    parts = []
    for ruleset, analysis in ratings.analysed.items():
        rows = [row for row in ratings.rows if row.ruleset == ruleset]
        (table,) = tables(RatingRow, rows, links, "Ratings")
        grid = crosstable([row.bot for row in rows], analysis.meetings(), links)
        deviations = list(name_deviations({ruleset: analysis}))
        parts.append(RulesetPart(ruleset, table, intervals(rows), grid, deviations))
    return parts


def _describe_verdicts(views: LeagueViews, links: Links, choice: GameFilter) -> dict[str, Any]:
    judged = views.judge(choice)
    return {
        "judged": judged,
        "neighbours": None
        if judged is None
        else tables(NeighbourRow, judged.neighbour_rows(), links, "Settled places"),
    }


def _commitments(tournament: TournamentState) -> list[SeedCommitment]:
    return [
        SeedCommitment(
            part_title(number),
            part.commitment,
            None if part.published_seed is None else part.published_seed.hex(),
        )
        for number, part in enumerate(tournament.parts)
    ]


def _has_archive(tournament: TournamentState) -> bool:
    return _is_finished(tournament) and tournament.games <= _ARCHIVED


def _is_finished(tournament: TournamentState) -> bool:
    return all(part.finished for part in tournament.parts)
