"""Make the page of a tournament, and the data that it offers for download."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from referee.errors import NotFoundError
from referee.reports.bot_rows import FaultRow, fault_rows
from referee.reports.formats import csv_text, json_text
from referee.reports.rating_rows import RatingRow
from referee.reports.selection import GameFilter
from referee.reports.statistics import LuckRow, NeighbourRow, PairRow, SeatWorthRow
from referee.reports.tournament_rows import NextGameRow, StatusRow
from referee.reports.verdicts import name_deviations
from referee.roster.roster import Roster
from referee.roster.workshop import Workshop
from referee.tournament.archive_writer import export_archive
from referee.tournament.config import part_title
from referee.tournament.create import TournamentState
from referee.web.charts import Spec, intervals
from referee.web.tables import CrosstableRow, Table, crosstable, tables
from referee.web.templates import Links, Page
from referee.web.views import LeagueViews

_ARCHIVED = 300
"""A tournament with more games takes more than a second to pack, so the page names the command instead."""


@dataclass(frozen=True, slots=True)
class RulesetPart:
    """The standings and the crosstable of a ruleset of a tournament."""

    ruleset: str
    standings: Table
    intervals: Spec
    crosstable: list[CrosstableRow]
    deviations: list[str]
    """Sentences about pairs that the ratings do not explain; see `name_deviations`."""


@dataclass(frozen=True, slots=True)
class SeedCommitment:
    """The commitment of a part of a tournament, and the seed if it is public."""

    title: str
    commitment: str
    seed: str | None


def tournament_page(views: LeagueViews, links: Links, name: str) -> Page:
    """Return the page of a tournament. Raises NotFoundError if the league has no such tournament."""
    tournament, choice = views.tournament(name), GameFilter(tournament=name)
    (row,) = (row for row in views.tournaments() if row.tournament == name)
    status, judged = views.status(name), views.judge(choice)
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
            "faults": tables(FaultRow, fault_rows(views.faults(tournament=name)), links, "Faults"),
            "judged": judged,
            "neighbours": tables(NeighbourRow, judged.neighbour_rows(), links, "Settled places"),
            "seats": tables(SeatWorthRow, views.seat_worths(choice), links, "Seats"),
            "luck": tables(LuckRow, views.luck(choice), links, "Luck"),
            "commitments": _commitments(tournament),
            "has_archive": _has_archive(tournament),
            # last, because the computation of ratings slows down everything beside it
            "rulesets": _rulesets(views, links, choice),
        },
    )


def download(views: LeagueViews, file: str) -> tuple[bytes, str]:
    """Return the content and the media type of a download.

    Args:
        views: the league.
        file: the name of the tournament with one of the endings `.standings.csv`, `.standings.json`, `.pairs.csv`,
            `.pairs.json` and `.zip`.

    Raises NotFoundError for another ending, for an unknown tournament, and for an archive that the page does not offer.
    """
    name, _, ending = file.rpartition(".")
    if ending == "zip" and _has_archive(views.tournament(name)):
        workshop = Workshop(views.league.folder, None, on_build=lambda _: None)
        archive = export_archive(views.league, Roster(views.league, workshop), name)
        return archive.data, "application/zip"
    name, _, kind = name.rpartition(".")
    choice = GameFilter(tournament=name)
    row_type: type
    rows: Sequence[object]
    if kind == "standings":
        row_type, rows = RatingRow, views.standings(choice, patience_s=None) or []
    elif kind == "pairs":
        row_type, rows = PairRow, views.pairs(choice)
    else:
        raise NotFoundError(f"{file}: there is no such download")
    if ending == "csv":
        return csv_text(row_type, rows).encode(), "text/csv; charset=utf-8"
    if ending == "json":
        return f"{json_text(rows)}\n".encode(), "application/json"
    raise NotFoundError(f"{file}: there is no such download")


def _rulesets(views: LeagueViews, links: Links, choice: GameFilter) -> list[RulesetPart] | None:
    """Return the part of each ruleset. Return None if the ratings are still being computed."""
    standings = views.standings(choice, patience_s=views.patience_s)
    if standings is None:
        return None
    pairs, parts = views.pairs(choice), []
    for ruleset, analysis in views.analyses(choice).items():
        rows = [row for row in standings if row.ruleset == ruleset]
        (table,) = tables(RatingRow, rows, links, "Ratings")
        compared = [row for row in pairs if row.ruleset == ruleset]
        grid = crosstable([row.bot for row in rows], compared, links)
        deviations = list(name_deviations({ruleset: analysis}))
        parts.append(RulesetPart(ruleset, table, intervals(rows), grid, deviations))
    return parts


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
    finished = all(part.finished for part in tournament.parts)
    return finished and tournament.games <= _ARCHIVED
