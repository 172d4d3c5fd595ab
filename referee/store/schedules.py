"""Read the tournaments of a league with their extensions, schedules and progress. The caller opens the transaction.

Each public function implements the method of `League` with the same name. The argument `where` is the name of
the league in messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, func, select, true

from referee.errors import NotFoundError, did_you_mean
from referee.records import ScheduledGame
from referee.store import NewTournament, RoundProgress, StoredExtension, StoredTournament, schema


def tournament_names(connection: Connection) -> list[str]:
    """See `League.tournament_names`."""
    table = schema.tournaments.c
    return list(connection.scalars(select(table.name).order_by(table.id)))


def check_tournament(connection: Connection, name: str, where: str) -> None:
    """See `League.check_tournament`."""
    known = tournament_names(connection)
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "the league has no tournaments"
        similar = did_you_mean(name, known)
        raise NotFoundError(f"{where}: no tournament {name!r}{similar}; {there}")


def tournaments(connection: Connection, name: str | None = None) -> list[StoredTournament]:
    """See `League.tournaments`; if `name` is not None, return only that tournament."""
    table, match = schema.tournaments.c, schema.matches.c
    chosen = select(table.id).where(table.name == name)
    counts = (
        select(
            match.tournament_id,
            func.count(schema.games.c.id).label("games"),
            func.count(schema.results.c.game_id).label("stored"),
        )
        .select_from(schema.matches.join(schema.games).outerjoin(schema.results))
        .where(true() if name is None else match.tournament_id.in_(chosen))
        .group_by(match.tournament_id)
        .subquery()
    )
    columns: list[Any] = [table[field.name] for field in fields(NewTournament)]
    columns += [counts.c.games, counts.c.stored, table.finished_at_us, table.stopped_after]
    rows = connection.execute(
        select(*columns)
        .select_from(schema.tournaments.join(counts, counts.c.tournament_id == table.id))
        .order_by(table.id)
    )
    return [StoredTournament(*row) for row in rows]


def tournament(connection: Connection, name: str, where: str) -> StoredTournament:
    """See `League.tournament`."""
    check_tournament(connection, name, where)
    [row] = tournaments(connection, name)
    return row


def extensions(connection: Connection, name: str) -> list[StoredExtension]:
    """See `League.extensions`."""
    table, match = schema.extensions, schema.matches.c
    columns: list[Any] = [
        table.c[field.name] for field in fields(StoredExtension) if field.name in table.c
    ]
    first_game = (
        select(func.min(schema.games.c.position))
        .select_from(schema.games.join(schema.matches))
        .where(match.tournament_id == table.c.tournament_id, match.number == table.c.first_match)
        .scalar_subquery()
    )
    columns.append(first_game.label("first_game"))  # the last field of `StoredExtension`
    rows = connection.execute(
        select(*columns)
        .select_from(table.join(schema.tournaments))
        .where(schema.tournaments.c.name == name)
        .order_by(table.c.first_match)
    )
    return [StoredExtension(*row) for row in rows]


def progress(connection: Connection, name: str) -> list[RoundProgress]:
    """See `League.progress`. Rounds with the same number count as one round, even if they belong to different stages."""
    match, result = schema.matches.c, schema.results.c
    rows = connection.execute(
        select(
            match.round,
            func.count(schema.games.c.id),
            func.count(result.game_id),
            func.coalesce(func.sum(result.duration_us), 0),
        )
        .select_from(
            schema.games.join(schema.matches)
            .join(schema.tournaments)
            .outerjoin(schema.results, result.game_id == schema.games.c.id)
        )
        .where(schema.tournaments.c.name == name)
        .group_by(match.round)
        .order_by(match.round)
    )
    return [RoundProgress(number, games, done, int(us)) for number, games, done, us in rows]


def schedule(connection: Connection, name: str) -> list[ScheduledGame]:
    """See `League.schedule`."""
    tables = _tables_of_bots(connection, schema.tournaments.c.name == name)
    return _make_games(connection.execute(_select_games(name)), tables)


def missing_games(connection: Connection, name: str, limit: int) -> list[ScheduledGame]:
    """See `League.missing_games`."""
    result = schema.results
    query = _select_games(name)
    missing = query.where(~select(result).where(result.c.game_id == schema.games.c.id).exists())
    rows = connection.execute(missing.limit(limit)).all()
    matches = schema.match_bots.c.match_id.in_({row.match_id for row in rows})
    return _make_games(rows, _tables_of_bots(connection, matches))


def _select_games(name: str) -> Select[Any]:
    """Return the query for all games of a tournament, in schedule order. `_make_games` reads its rows."""
    match, game = schema.matches.c, schema.games.c
    return (
        select(
            game.match_id,
            game.position.label("index"),
            match.stage,
            match.round,
            match.number.label("match"),
            game.seating,
            game.lane,
            func.coalesce(game.deal_id, match.deal_id).label("deal_id"),
            game.name.label("game_id"),
        )
        .select_from(schema.games.join(schema.matches).join(schema.tournaments))
        .where(schema.tournaments.c.name == name)
        .order_by(game.position)
    )


def _make_games(
    rows: Iterable[Row[Any]], tables: Mapping[int, tuple[str, ...]]
) -> list[ScheduledGame]:
    games = []
    for row in rows:
        values = row._asdict()
        bots, seating = tables[values.pop("match_id")], values["seating"]
        games.append(ScheduledGame(bots=bots[seating:] + bots[:seating], **values))
    return games


def _tables_of_bots(
    connection: Connection, condition: ColumnElement[bool]
) -> dict[int, tuple[str, ...]]:
    """Map the `id` of each match that meets `condition` to the bots of the match, in the order of their places."""
    tables: dict[int, tuple[str, ...]] = defaultdict(tuple)
    rows = connection.execute(
        select(schema.match_bots.c.match_id, schema.bots.c.name, schema.bots.c.version)
        .select_from(
            schema.match_bots.join(schema.bots)
            .join(schema.matches, schema.matches.c.id == schema.match_bots.c.match_id)
            .join(schema.tournaments)
        )
        .where(condition)
        .order_by(schema.match_bots.c.match_id, schema.match_bots.c.place)
    )
    for match_id, bot, version in rows:
        tables[match_id] += (f"{bot}@{version}",)
    return tables
