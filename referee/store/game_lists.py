"""Find the played games that fit a `GameChoice`, and tell whether all games with the deal of a game are played.

The caller opens the transaction. Each public function implements the method of `League` with the same name.

`find_games` returns one page of games, newest first. `last_results` returns the last games in schedule order. Both must be fast
in a league with a hundred thousand games. So each first finds the keys of the games to return, as far as possible with
indexes alone. Then it reads only these games from the tables.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select

from referee.errors import NotFoundError
from referee.records import GameResult
from referee.store import GameChoice, ListedGame, queries, schema


def find_games(
    connection: Connection, choice: GameChoice, offset: int, limit: int
) -> tuple[list[ListedGame], int]:
    """See `League.find_games`."""
    result = schema.results.c
    keys, total = _find_keys(connection, choice, offset, limit)
    wanted = result.game_id.in_(keys)
    loaded = queries.load_results(connection, queries.select_results().where(wanted))
    results = {row.game_id: row for row in loaded}
    newest_first = (result.started_at_us.desc(), result.game_id.desc())
    query = queries.select_summaries().where(wanted).order_by(*newest_first)
    summaries = queries.list_summaries(connection, query)
    return [ListedGame(results[summary.game_id], summary) for summary in summaries], total


def last_results(
    connection: Connection, choice: GameChoice, limit: int | None
) -> tuple[list[GameResult], int]:
    """See `League.last_results`."""
    result = schema.results.c
    conditions = [
        *_conditions_on_results(choice),
        *_conditions_on_seats_and_faults(connection, choice),
    ]
    total = connection.execute(select(func.count(result.game_id)).where(*conditions)).scalar_one()
    keys = (
        select(result.game_id)
        .select_from(schema.results.join(schema.games).outerjoin(schema.matches))
        .where(*conditions)
    )
    if limit is not None:
        last_first = (column.desc() for column in queries.SCHEDULE_ORDER)
        keys = keys.order_by(*last_first).limit(min(limit, queries.MAX_LIMIT))
    query = queries.select_results().where(result.game_id.in_(keys))
    return queries.load_results(connection, query), total


def _find_keys(
    connection: Connection, choice: GameChoice, offset: int, limit: int
) -> tuple[list[int], int]:
    """Return the keys of the games on the page, and the number of all chosen games."""
    result = schema.results.c
    others = _conditions_on_seats_and_faults(connection, choice)
    query = select(result.game_id, result.started_at_us).where(
        *_conditions_on_results(choice), *others
    )
    # The query is used twice: to count, and to find the page. With `others`, it is a CTE, so that the database runs it only
    # once and keeps the rows. Without `others`, it is faster to run the query twice, because the index `ix_results_newest`
    # has the columns of the conditions and is sorted by start.
    chosen = query.cte("chosen") if others else query.subquery("chosen")
    count = select(func.count()).select_from(chosen)
    page = (
        select(chosen.c.game_id, count.scalar_subquery())
        .order_by(chosen.c.started_at_us.desc(), chosen.c.game_id.desc())
        .offset(offset)
        .limit(limit)
    )
    rows = connection.execute(page).all()
    total = rows[0][1] if rows else connection.execute(count).scalar_one()
    return [row[0] for row in rows], total


def _conditions_on_results(choice: GameChoice) -> list[ColumnElement[bool]]:
    """Return the conditions on columns that are in the index `ix_results_newest` of the table `results`."""
    result = schema.results.c
    conditions: list[ColumnElement[bool]] = []
    if choice.tournament is not None:
        table = schema.tournaments.c
        key = select(table.id).where(table.name == choice.tournament).scalar_subquery()
        conditions.append(result.tournament_id == key)
    if choice.ruleset is not None:
        conditions.append(result.ruleset == choice.ruleset)
    if choice.termination is not None:
        conditions.append(result.termination == choice.termination)
    return conditions


def _conditions_on_seats_and_faults(
    connection: Connection, choice: GameChoice
) -> list[ColumnElement[bool]]:
    """Return the conditions on the tables `seats` and `faults`. Each tests whether a subquery finds the key of the game."""
    found: list[Select[Any]] = []
    bots = [
        queries.bot_keys(connection, text)
        for text in (choice.bot, choice.other)
        if text is not None
    ]
    if bots:
        seat, other = schema.seats.alias("seat"), schema.seats.alias("other")
        keys = select(seat.c.game_id).where(seat.c.bot_id.in_(bots[0]))
        for others in bots[1:]:
            together = (other.c.game_id == seat.c.game_id) & (other.c.seat != seat.c.seat)
            keys = keys.join(other, together).where(other.c.bot_id.in_(others))
        found.append(keys)
    if choice.cause is not None:
        fault = schema.faults.c
        found.append(select(fault.game_id).where(fault.cause == choice.cause))
    return [schema.results.c.game_id.in_(keys) for keys in found]


def is_deal_played(connection: Connection, game_id: str, where: str) -> bool:
    """See `League.is_deal_played`."""
    game, match, result = schema.games.c, schema.matches.c, schema.results.c
    row = connection.execute(
        select(match.id, match.deal_id)
        .select_from(schema.games.outerjoin(schema.matches))
        .where(game.name == game_id)
    ).one_or_none()
    if row is None:
        raise NotFoundError(f"{where}: there is no game {game_id!r}")
    if row.id is None:
        return True
    with_deal = game.name == game_id if row.deal_id is None else game.match_id == row.id
    missing = (
        select(game.id)
        .select_from(schema.games.outerjoin(schema.results))
        .where(with_deal, result.game_id.is_(None))
        .limit(1)
    )
    return connection.scalar(missing) is None
