"""Change the tables of a league. The caller opens the transaction.

Each public function implements the method of `League` with the same name, with three exceptions: `add_bot` serves
`League.add_version`, `change_bot` serves `mark_checked` and `mark_retired`, and `try_to_write` serves `check_writable`.
A key is the `id` of a row.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    ScalarSelect,
    Table,
    delete,
    false,
    func,
    insert,
    select,
    update,
)

from referee.clocks import SECOND_US
from referee.errors import UserError
from referee.records import BotId, GameRecord, Machine, ScheduledGame
from referee.store import (
    NewExtension,
    NewTournament,
    StoredBot,
    StoredHost,
    escape_nul,
    schema,
)


def try_to_write(connection: Connection) -> None:
    """Execute a statement that stores no row. The database refuses it if this user may only read.

    To begin a transaction is not enough: SQLite and PostgreSQL refuse only the first statement that writes.
    """
    table = schema.records
    connection.execute(insert(table).from_select(table.c.keys(), select(table).where(false())))


def add_bot(connection: Connection, bot: StoredBot) -> None:
    """Add a version of a bot; see `League.add_version`."""
    connection.execute(insert(schema.bots).values(asdict(bot)))


def change_bot(connection: Connection, bot: BotId, **values: str | int | None) -> None:
    """Set columns of a version of a bot. Raises UserError if the league does not have the version."""
    table = schema.bots
    same = (table.c.name == bot.name) & (table.c.version == bot.version)
    if connection.execute(update(table).where(same).values(values)).rowcount == 0:
        raise UserError(f"bot {bot} is not in the league")


def add_tournament(
    connection: Connection, tournament: NewTournament, schedule: Sequence[ScheduledGame]
) -> None:
    """See `League.add_tournament`."""
    table = schema.tournaments
    if connection.scalar(select(table.c.id).where(table.c.name == tournament.name)) is not None:
        raise UserError(f"tournament {tournament.name!r} is already stored")
    key = _insert(connection, insert(table).values(asdict(tournament)))
    _add_schedule(connection, key, schedule)


def add_extension(
    connection: Connection,
    tournament: str,
    extension: NewExtension,
    schedule: Sequence[ScheduledGame],
) -> None:
    """See `League.add_extension`."""
    key = _tournament_key(connection, tournament)
    connection.execute(insert(schema.extensions).values(tournament_id=key, **asdict(extension)))
    _add_schedule(connection, key, schedule)


def stop_early(connection: Connection, tournament: str, *, rounds: int, games: int) -> None:
    """See `League.stop_early`."""
    table, matches = schema.tournaments, schema.matches
    key = _tournament_key(connection, tournament)
    first_later = connection.scalar(
        select(func.min(matches.c.number))
        .select_from(matches.join(schema.games))
        .where(matches.c.tournament_id == key, schema.games.c.position >= games)
    )
    if first_later is not None:
        _drop_matches(connection, key, matches.c.number >= first_later)
    ended = _last_end(matches.c.tournament_id == key)
    connection.execute(
        update(table).where(table.c.id == key).values(stopped_after=rounds, finished_at_us=ended)
    )


def _last_end(of_matches: ColumnElement[bool]) -> ScalarSelect[int]:
    """Return a query for the latest end of a game, in the matches that fit `of_matches`.

    The query compares all ends, because the game that was stored last may have ended before others.
    """
    results = schema.results
    return (
        select(func.max(results.c.started_at_us + results.c.duration_us))
        .select_from(results.join(schema.games).join(schema.matches))
        .where(of_matches)
        .scalar_subquery()
    )


def replace_games(
    connection: Connection,
    tournament: str,
    old: Sequence[ScheduledGame],
    new: Sequence[ScheduledGame],
) -> None:
    """See `League.replace_games`."""
    changed = {
        game.match
        for before, after in zip_longest(old, new)
        if before != after
        for game in (before, after)
        if game is not None
    }
    first, last = min(changed), max(changed)
    key = _tournament_key(connection, tournament)
    _drop_matches(connection, key, schema.matches.c.number.between(first, last))
    if added := [game for game in new if first <= game.match <= last]:
        _add_schedule(connection, key, added)


def _drop_matches(connection: Connection, key: int, condition: ColumnElement[bool]) -> None:
    """Remove those matches of the tournament `key` that fit `condition`, and all games of these matches.

    If one of the games has been played, the database raises an error, because the row in `results` refers to the game.
    """
    matches = schema.matches.c
    dropped = select(matches.id).where(matches.tournament_id == key, condition)
    for column in (schema.games.c.match_id, schema.match_bots.c.match_id, matches.id):
        connection.execute(delete(column.table).where(column.in_(dropped)))


def note_hosts(connection: Connection, tournament: str, hosts: Sequence[StoredHost]) -> None:
    """See `League.note_hosts`."""
    table = schema.cluster_hosts
    key = _tournament_key(connection, tournament)
    connection.execute(delete(table).where(table.c.tournament_id == key))
    for host in hosts:
        connection.execute(
            insert(table).values(
                tournament_id=key,
                **asdict(host.figures),
                began_at_us=host.began_at_us,
                noted_at_us=host.noted_at_us,
            )
        )


def _tournament_key(connection: Connection, name: str) -> int:
    """Return the key of a stored tournament."""
    table = schema.tournaments.c
    key: int = connection.execute(select(table.id).where(table.name == name)).scalar_one()
    return key


def _add_schedule(
    connection: Connection, tournament_id: int, schedule: Sequence[ScheduledGame]
) -> None:
    """Add the games of a schedule and their matches to a tournament."""
    common_deals = _find_common_deals(schedule)
    match_ids = _add_matches(connection, tournament_id, schedule, common_deals)
    connection.execute(
        insert(schema.games),
        [
            {
                "name": game.game_id,
                "match_id": match_ids[game.match],
                "position": game.index,
                "seating": game.seating,
                "lane": game.lane,
                "deal_id": None if game.match in common_deals else game.deal_id,
            }
            for game in schedule
        ],
    )


def _find_common_deals(schedule: Sequence[ScheduledGame]) -> dict[int, str]:
    """Return deal ids by match number, only for the matches whose games all have the same deal."""
    found = defaultdict[int, set[str]](set)
    for game in schedule:
        found[game.match].add(game.deal_id)
    return {match: next(iter(deals)) for match, deals in found.items() if len(deals) == 1}


def _add_matches(
    connection: Connection,
    tournament_id: int,
    schedule: Sequence[ScheduledGame],
    common_deals: Mapping[int, str],
) -> dict[int, int]:
    """Add the matches of a schedule. Return their keys, by match number.

    `common_deals` is the result of `_find_common_deals`.
    """
    table = schema.matches
    firsts = {game.match: game for game in reversed(schedule)}
    connection.execute(
        insert(table),
        [
            {
                "tournament_id": tournament_id,
                "number": number,
                "stage": game.stage,
                "round": game.round,
                "deal_id": common_deals.get(number),
            }
            for number, game in sorted(firsts.items())
        ],
    )
    rows = connection.execute(
        select(table.c.number, table.c.id).where(
            table.c.tournament_id == tournament_id,
            table.c.number.between(min(firsts), max(firsts)),
        )
    )
    ids: dict[int, int] = {row.number: row.id for row in rows}
    bots = _bot_ids(connection)
    connection.execute(
        insert(schema.match_bots),
        [
            {"match_id": ids[number], "place": place, "bot_id": _bot_key(bots, bot)}
            for number, game in sorted(firsts.items())
            for place, bot in enumerate(_base_order(game))
        ],
    )
    return ids


def _base_order(game: ScheduledGame) -> tuple[str, ...]:
    """Return the bots of a match in the order of their places in `match_bots`."""
    size = len(game.bots)
    return tuple(game.bots[(place - game.seating) % size] for place in range(size))


def keep_checkpoint(connection: Connection, name: str, content: bytes) -> None:
    """See `League.keep_checkpoint`."""
    table = schema.checkpoints
    connection.execute(delete(table).where(table.c.name == name))
    connection.execute(insert(table).values(name=name, content=content))


def add_game(connection: Connection, record: GameRecord) -> None:
    """See `League.add_game`."""
    from referee.protocol import record as wire  # noqa: PLC0415 - most commands need no protobuf

    place = _find_place(connection, record.game_id)
    key = place.key
    bots = _bot_ids(connection)
    machine = record.machine
    elapsed = [0] * len(record.seating)
    for move in record.moves:
        elapsed[move.seat] += move.elapsed_us
    connection.execute(
        insert(schema.results).values(
            game_id=key,
            tournament_id=place.tournament_id,
            ruleset=record.ruleset.name,
            termination=record.termination.value,
            decisions=len(record.moves),
            started_at_us=record.started_at_us,
            duration_us=record.duration_us,
            machine_id=None if machine is None else _machine_id(connection, machine),
            speed=None if machine is None else machine.speed,
            noise=None if machine is None else machine.noise,
        )
    )
    connection.execute(
        insert(schema.records).values(game_id=key, record=zlib.compress(wire.dumps(record), 9))
    )
    connection.execute(
        insert(schema.seats),
        [
            {
                "game_id": key,
                "seat": seat,
                "bot_id": _bot_key(bots, str(bot)),
                "score": record.scores[seat],
                "rank": record.ranks[seat],
                "forfeited": seat in record.forfeited,
                "elapsed_us": elapsed[seat],
                "cpu_us": None if usage is None else round(usage.cpu_s * SECOND_US),
                "peak_memory_kib": None if usage is None else usage.peak_memory_kib,
            }
            for seat, (bot, usage) in enumerate(zip(record.seating, record.usage, strict=True))
        ],
    )
    _add_faults(connection, key, record)
    _mark_if_finished(connection, place)


def _machine_id(connection: Connection, machine: Machine) -> int:
    """Return the key of a machine. Add the machine if it is new."""
    table = schema.machines
    same = (table.c.host == machine.host) & (table.c.cpu == machine.cpu)
    key = connection.scalar(select(table.c.id).where(same))
    if key is None:
        return _insert(connection, insert(table).values(host=machine.host, cpu=machine.cpu))
    return int(key)


class _Place(NamedTuple):
    """The key of a game, and the tournament and the match that it belongs to."""

    key: int
    tournament_id: int | None = None
    """Key of the tournament; None for a free game, which belongs to no tournament."""
    match: int = 0
    """Number of the match in the tournament; 0 for a free game."""


def _find_place(connection: Connection, game_id: str) -> _Place:
    """Return the place of the game `game_id`. If `games` has no row for it, add it as a free game.

    Raises UserError if a played game with this id is already stored.
    """
    games, matches, results = schema.games, schema.matches, schema.results
    row = connection.execute(
        select(games.c.id, matches.c.tournament_id, matches.c.number, results.c.game_id)
        .select_from(games.outerjoin(matches).outerjoin(results, results.c.game_id == games.c.id))
        .where(games.c.name == game_id)
    ).one_or_none()
    if row is None:
        free = insert(games).values(name=game_id, position=0, seating=0, lane=0)
        return _Place(_insert(connection, free))
    if row.game_id is not None:
        raise UserError(f"game {game_id} is already stored")
    return _Place(row.id, row.tournament_id, row.number)


def _add_faults(connection: Connection, key: int, record: GameRecord) -> None:
    if record.faults:
        connection.execute(
            insert(schema.faults),
            [
                {
                    "game_id": key,
                    "seat": fault.seat,
                    "cause": fault.cause.value,
                    "forfeit": fault.forfeit,
                    "move": fault.move,
                    "detail": escape_nul(fault.evidence.detail),
                    "exit_code": fault.evidence.exit_code,
                    "signal": fault.evidence.signal,
                    "elapsed_us": fault.evidence.elapsed_us,
                    "stderr_tail": escape_nul(fault.evidence.stderr_tail),
                }
                for fault in record.faults
            ],
        )


def _mark_if_finished(connection: Connection, place: _Place) -> None:
    """Mark a tournament or an extension as finished if the game at `place` was its last missing game.

    If the game is in an extension, only the extension is marked, because the tournament itself has only the games before
    its first extension. A free game belongs to no tournament, so nothing is marked.
    """
    games, matches, results = schema.games, schema.matches, schema.results
    if place.tournament_id is None:
        return
    part: Table = schema.tournaments
    part_id, first, end = place.tournament_id, 0, None
    for extension in connection.execute(
        select(schema.extensions.c.id, schema.extensions.c.first_match)
        .where(schema.extensions.c.tournament_id == place.tournament_id)
        .order_by(schema.extensions.c.first_match)
    ):
        if extension.first_match > place.match:
            end = extension.first_match
            break
        part, part_id, first = schema.extensions, extension.id, extension.first_match
    own = (matches.c.tournament_id == place.tournament_id) & (matches.c.number >= first)
    if end is not None:
        own &= matches.c.number < end
    missing = (
        select(games.c.id)
        .select_from(matches.join(games).outerjoin(results))
        .where(own, results.c.game_id.is_(None))
        # Games of late matches are most likely to be missing, so begin with them. An index has this order, so the search
        # ends at the first missing game.
        .order_by(matches.c.number.desc())
        .limit(1)
    )
    if connection.scalar(missing) is None:
        finished = update(part).where(part.c.id == part_id).values(finished_at_us=_last_end(own))
        connection.execute(finished)


def _insert(connection: Connection, statement: Insert) -> int:
    """Insert one row and return its key."""
    key = connection.execute(statement).inserted_primary_key
    assert key is not None  # noqa: S101 - the database has made a key
    return int(key[0])


def _bot_ids(connection: Connection) -> dict[str, int]:
    """Map the `name@version` of every bot to its key."""
    table = schema.bots
    rows = connection.execute(select(table.c.name, table.c.version, table.c.id))
    return {f"{name}@{version}": key for name, version, key in rows}


def _bot_key(bots: dict[str, int], bot: str) -> int:
    """Return the key of the bot `name@version`. Raises UserError if the bot is not among `bots`."""
    try:
        return bots[bot]
    except KeyError:
        raise UserError(f"bot {bot} is not in the league") from None
