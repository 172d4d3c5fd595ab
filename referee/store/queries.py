"""Read from the tables of a league. The caller opens the transaction.

Each public function implements the method of `League` with the same name, with five exceptions: `select_summaries`,
`list_summaries`, `select_results`, `load_results` and `bot_keys` are public because `game_lists` uses them too. In
public functions, the argument `where` is the name of the league in messages. A key is the `id` of a row.
"""

from __future__ import annotations

import zlib
from dataclasses import fields
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, case, func, select, true

from referee.clocks import SECOND_US
from referee.errors import Cause, DamagedRecordError, Evidence, NotFoundError, RefereeError
from referee.records import BotId, ChargedFault, Fault, GameRecord, GameResult, Machine
from referee.store import (
    RECENT_S,
    FaultCount,
    HostFigures,
    StoredBot,
    StoredGame,
    StoredHost,
    StoredMachine,
    StoredUsage,
    schema,
)

MAX_LIMIT = 2**63 - 1
"""The largest number that SQLite and PostgreSQL accept after LIMIT."""
SCHEDULE_ORDER = (
    schema.matches.c.tournament_id.is_(None),
    schema.matches.c.tournament_id,
    schema.games.c.position,
    schema.games.c.id,
)
"""Columns that sort games by tournament, the oldest first, and inside a tournament by schedule.

Free games, which belong to no tournament, come last, in the order in which they were stored.
"""


def bots(connection: Connection, name: str | None) -> list[StoredBot]:
    """See `League.bots`."""
    table = schema.bots
    query = select(*(table.c[field.name] for field in fields(StoredBot))).order_by(table.c.id)
    if name is not None:
        query = query.where(table.c.name == name)
    return [StoredBot(*row) for row in connection.execute(query)]


def record(connection: Connection, game_id: str, where: str) -> GameRecord:
    """See `League.record`."""
    from referee.protocol import record as wire  # noqa: PLC0415 - most commands need no protobuf

    kept: bytes | None = connection.scalar(
        select(schema.records.c.record)
        .select_from(schema.records.join(schema.games))
        .where(schema.games.c.name == game_id)
    )
    if kept is None:
        raise NotFoundError(f"{where}: no game {game_id!r} is stored")
    try:
        return wire.loads(zlib.decompress(kept))
    except (ValueError, zlib.error) as error:
        raise DamagedRecordError(
            f"{where}: the record of {game_id} cannot be read: {error}"
        ) from error


def games(connection: Connection, tournament_name: str | None) -> list[StoredGame]:
    """See `League.games`."""
    query = select_summaries()
    if tournament_name is not None:
        query = query.where(schema.tournaments.c.name == tournament_name)
    return list_summaries(connection, query.order_by(*SCHEDULE_ORDER))


def list_summaries(connection: Connection, query: Select[Any]) -> list[StoredGame]:
    """Return the summaries that a query of `select_summaries` finds."""
    return [_summary(*row) for row in connection.execute(query)]


def _summary(*row: Any) -> StoredGame:
    *values, host, cpu, speed, noise = row
    machine = None if host is None else Machine(host=host, cpu=cpu, speed=speed, noise=noise)
    game_id, ruleset, termination, decisions, started_at_us, duration_us = values
    return StoredGame(game_id, ruleset, termination, decisions, started_at_us, duration_us, machine)


def select_summaries() -> Select[Any]:
    """Return a query for all played games. The caller may restrict it, and then gives it to `list_summaries`."""
    result = schema.results.c
    return select(
        schema.games.c.name,
        result.ruleset,
        result.termination,
        result.decisions,
        result.started_at_us,
        result.duration_us,
        schema.machines.c.host,
        schema.machines.c.cpu,
        result.speed,
        result.noise,
    ).select_from(
        schema.results.join(schema.games)
        .outerjoin(schema.machines)
        .outerjoin(schema.matches)
        .outerjoin(schema.tournaments, schema.tournaments.c.id == schema.matches.c.tournament_id)
    )


def results(connection: Connection, tournament_name: str | None, *, free: bool) -> list[GameResult]:
    """See `League.results`."""
    query = select_results()
    if tournament_name is not None:
        query = query.where(schema.tournaments.c.name == tournament_name)
    elif not free:
        query = query.where(schema.games.c.match_id.is_not(None))
    return load_results(connection, query)


def forfeits(connection: Connection, tournament_name: str) -> dict[str, tuple[int, ...]]:
    """See `League.forfeits`."""
    game, seat = schema.games.c, schema.seats.c
    query = (
        select(game.name, seat.seat)
        .select_from(
            schema.tournaments.join(schema.matches)
            .join(schema.games)
            .join(schema.results, schema.results.c.game_id == game.id)
            .outerjoin(schema.seats, (seat.game_id == game.id) & seat.forfeited)
        )
        .where(schema.tournaments.c.name == tournament_name)
    )
    found: dict[str, tuple[int, ...]] = {}
    for name, number in connection.execute(query):
        seats = found.get(name, ())
        found[name] = seats if number is None else tuple(sorted((*seats, number)))
    return found


def game_counts(connection: Connection) -> dict[str, int]:
    """See `League.game_counts`."""
    bot = schema.bots.c
    rows = connection.execute(
        select(bot.name, bot.version, func.count())
        .select_from(schema.seats.join(schema.bots))
        .group_by(bot.id)
    )
    return {f"{name}@{version}": count for name, version, count in rows}


def machines(connection: Connection, tournament_name: str | None) -> list[StoredMachine]:
    """See `League.machines`."""
    machine, result = schema.machines.c, schema.results.c
    joined = schema.results.join(schema.machines)
    chosen: ColumnElement[bool] = true()
    if tournament_name is not None:
        joined = joined.join(schema.tournaments, schema.tournaments.c.id == result.tournament_id)
        chosen = schema.tournaments.c.name == tournament_name
    end_us = result.started_at_us + result.duration_us
    first_us, newest_us = connection.execute(
        select(func.min(result.started_at_us), func.max(end_us)).select_from(joined).where(chosen)
    ).one()
    if newest_us is None:
        return []
    window_us = min(RECENT_S * SECOND_US, max(1, newest_us - first_us))
    query = (
        select(
            machine.id,
            machine.host,
            machine.cpu,
            func.count(),
            func.avg(result.speed),
            func.avg(result.noise),
            func.sum(case((end_us > newest_us - window_us, 1), else_=0)),
            func.max(end_us),
        )
        .select_from(joined)
        .where(chosen)
        .group_by(machine.id, machine.host, machine.cpu)
        .order_by(machine.id)
    )
    return [
        StoredMachine(
            key,
            host,
            cpu,
            games,
            float(speed),
            None if noise is None else float(noise),
            float(recent) / window_us * SECOND_US,
            last_us,
        )
        for key, host, cpu, games, speed, noise, recent, last_us in connection.execute(query)
    ]


def hosts(connection: Connection, tournament_name: str) -> list[StoredHost]:
    """See `League.hosts`."""
    table = schema.cluster_hosts.c
    query = (
        select(
            table.host,
            table.playing,
            table.idle,
            table.lost,
            table.games,
            table.began_at_us,
            table.noted_at_us,
        )
        .join_from(schema.cluster_hosts, schema.tournaments)
        .where(schema.tournaments.c.name == tournament_name)
        .order_by(table.host)
    )
    return [
        StoredHost(HostFigures(*figures), began_at_us, noted_at_us)
        for *figures, began_at_us, noted_at_us in connection.execute(query)
    ]


def select_results() -> Select[Any]:
    """Return a query for all played games. The caller may restrict it, and then gives it to `load_results`."""
    game, match, seat = schema.games.c, schema.matches.c, schema.seats.c
    return select(
        game.id,
        game.name,
        schema.tournaments.c.name,
        game.position,
        schema.results.c.ruleset,
        match.round,
        match.number,
        seat.bot_id,
        seat.score,
        seat.rank,
        seat.forfeited,
    ).select_from(
        schema.results.join(schema.games)
        .join(schema.seats, seat.game_id == game.id)
        .outerjoin(schema.matches)
        .outerjoin(schema.tournaments, schema.tournaments.c.id == match.tournament_id)
    )


def load_results(connection: Connection, query: Select[Any]) -> list[GameResult]:
    """Return the results of the games that `query` selects, in the order of `League.results`."""
    bot = schema.bots.c
    names: dict[int, str] = {
        key: f"{name}@{version}"
        for key, name, version in connection.execute(select(bot.id, bot.name, bot.version))
    }
    rows = connection.execute(query.order_by(*SCHEDULE_ORDER, schema.seats.c.seat))
    return [_result(list(group), names) for _, group in groupby(rows, key=lambda row: row[0])]


def _result(rows: list[Any], names: dict[int, str]) -> GameResult:
    """Return the result of one game. `rows` has one row for each seat.

    A free game has no match, so it counts as a match of its own. The number of this match is the key of the game.
    """
    key, game_id, tournament_name, position, ruleset, round_number, number, *_ = rows[0]
    return GameResult(
        game_id=game_id,
        tournament=tournament_name or "",
        index=position,
        ruleset=ruleset,
        round=round_number or 0,
        match=key if number is None else number,
        bots=tuple(names[row[7]] for row in rows),
        scores=tuple(row[8] for row in rows),
        ranks=tuple(row[9] for row in rows),
        forfeited=tuple(seat for seat, row in enumerate(rows) if row[10]),
    )


def checkpoint(connection: Connection, name: str) -> bytes | None:
    """See `League.checkpoint`."""
    table = schema.checkpoints.c
    content: bytes | None = connection.scalar(select(table.content).where(table.name == name))
    return content


def faults(
    connection: Connection, tournament_name: str | None, bot_text: str | None, limit: int | None
) -> list[ChargedFault]:
    """See `League.faults`."""
    fault, query = schema.faults.c, _select_faults(connection, tournament_name, bot_text)
    if limit is not None:
        keys = query.with_only_columns(fault.id).order_by(fault.id.desc())
        newest = keys.limit(min(limit, MAX_LIMIT)).subquery()
        query = query.where(fault.id.in_(select(newest.c.id)))
    rows = connection.execute(query.order_by(*SCHEDULE_ORDER, fault.id))
    return list(map(_charged_fault, rows))


def fault_counts(
    connection: Connection, tournament_name: str | None, bot_text: str | None
) -> list[FaultCount]:
    """See `League.fault_counts`."""
    fault, bot = schema.faults.c, schema.bots.c
    query = (
        _select_faults(connection, tournament_name, bot_text)
        .with_only_columns(
            bot.name,
            bot.version,
            fault.cause,
            func.sum(case((fault.forfeit, 0), else_=1)),
            func.sum(case((fault.forfeit, 1), else_=0)),
            func.count(fault.game_id.distinct()),
        )
        .group_by(bot.id, bot.name, bot.version, fault.cause)
        .order_by(bot.id, fault.cause)
    )
    return [
        FaultCount(name := f"{bot_name}@{version}", _cause(cause, name), *numbers)
        for bot_name, version, cause, *numbers in connection.execute(query)
    ]


def _select_faults(
    connection: Connection, tournament_name: str | None, bot_text: str | None
) -> Select[Any]:
    """Return a query for faults with their games and bots. `_charged_fault` reads the rows of the query.

    `tournament_name` and `bot_text` are the arguments `tournament` and `bot` of `League.faults`.
    """
    fault, bot = schema.faults.c, schema.bots.c
    query = select(
        schema.games.c.name.label("game_id"),
        fault.seat,
        bot.name,
        bot.version,
        fault.cause,
        fault.forfeit,
        fault.move,
        fault.detail,
        fault.exit_code,
        fault.signal,
        fault.elapsed_us,
        fault.stderr_tail,
    ).select_from(
        schema.faults.join(schema.games, schema.games.c.id == fault.game_id)
        .join(
            schema.seats,
            (schema.seats.c.game_id == fault.game_id) & (schema.seats.c.seat == fault.seat),
        )
        .join(schema.bots, bot.id == schema.seats.c.bot_id)
        .outerjoin(schema.matches, schema.matches.c.id == schema.games.c.match_id)
        .outerjoin(schema.tournaments, schema.tournaments.c.id == schema.matches.c.tournament_id)
    )
    if tournament_name is not None:
        query = query.where(schema.tournaments.c.name == tournament_name)
    if bot_text is not None:
        # Adding 0 keeps SQLite from using the index of `bot_id`. With this index it would read all seats of the bot, which are far more
        # than its faults.
        query = query.where((schema.seats.c.bot_id + 0).in_(bot_keys(connection, bot_text)))
    return query


def _cause(value: str, where: str) -> Cause:
    """Return the cause that the table `faults` stores as `value`.

    Raises RefereeError if there is no such cause. `where` is the game or the bot of the fault, for the message.
    """
    try:
        return Cause(value)
    except ValueError as error:
        raise RefereeError(f"the table faults is damaged: {where}: {error}") from error


def _charged_fault(row: Row[Any]) -> ChargedFault:
    """Return the fault in a row of `_select_faults`. Raises RefereeError if the cause is unknown."""
    evidence = Evidence(
        detail=row.detail,
        exit_code=row.exit_code,
        signal=row.signal,
        elapsed_us=row.elapsed_us,
        stderr_tail=row.stderr_tail,
    )
    fault = Fault(
        seat=row.seat,
        cause=_cause(row.cause, row.game_id),
        forfeit=row.forfeit,
        move=row.move,
        evidence=evidence,
    )
    return ChargedFault(row.game_id, f"{row.name}@{row.version}", fault)


def stray_games(connection: Connection, tournament_name: str | None) -> set[str]:
    """See `League.stray_games`."""
    game, match, result, seat = (
        table.c for table in (schema.games, schema.matches, schema.results, schema.seats)
    )
    moved = (
        select(game.name)
        .select_from(schema.results.join(schema.games).outerjoin(schema.matches))
        .where(result.tournament_id.is_distinct_from(match.tournament_id))
    )
    fault = schema.faults.c
    of_fault = (seat.game_id == fault.game_id) & (seat.seat == fault.seat)
    seatless = (
        select(game.name)
        .select_from(
            schema.faults.join(schema.games)
            .outerjoin(schema.matches)
            .outerjoin(schema.seats, of_fault)
        )
        .where(seat.game_id.is_(None))
    )
    if tournament_name is not None:
        chosen = select(schema.tournaments.c.id).where(schema.tournaments.c.name == tournament_name)
        scheduled = match.tournament_id.in_(chosen)
        moved = moved.where(scheduled | result.tournament_id.in_(chosen))
        seatless = seatless.where(scheduled)
    return {name for query in (moved, seatless) for name in connection.scalars(query)}


def bot_keys(connection: Connection, text: str) -> list[int]:
    """Return the keys of the bot versions that `text` names.

    `text` is `name@version`, or only a name, which means all versions of the bot.
    """
    table, bot = schema.bots.c, BotId.parse(text)
    query = select(table.id).where(table.name == bot.name)
    if bot.version:
        query = query.where(table.version == bot.version)
    return list(connection.scalars(query))


def usage(connection: Connection) -> list[StoredUsage]:
    """See `League.usage`."""
    seat, bot = schema.seats.c, schema.bots.c
    query = (
        select(
            bot.name,
            bot.version,
            func.count(seat.cpu_us),
            func.avg(seat.cpu_us),
            func.max(seat.cpu_us),
            func.avg(seat.peak_memory_kib),
            func.max(seat.peak_memory_kib),
        )
        .select_from(schema.seats.join(schema.bots))
        .where(seat.cpu_us.is_not(None))
        .group_by(bot.id, bot.name, bot.version)
        .order_by(bot.id)
    )
    return [
        StoredUsage(f"{name}@{version}", games, float(mean_us), max_us, float(mean_kib), max_kib)
        for name, version, games, mean_us, max_us, mean_kib, max_kib in connection.execute(query)
    ]
