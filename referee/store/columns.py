"""Results as columns, for what reckons with all games of a league at once.

A row as a Python object costs a microsecond or two, and a hundred thousand games have half a million. So
the database joins each column to one text of numbers, and numpy reads that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    String,
    case,
    cast,
    func,
    literal,
    select,
)

from referee.store import schema

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_NOBODY = -1
_SEATS = 8
"""More than any table has. Numbers that are small are packed into one: there is less to be read."""
_RANKS = 8
_SCORES = 2**16
_WIDE = literal(1, BigInteger)
"""PostgreSQL has narrow numbers; times this they are wide."""


@dataclass(frozen=True, slots=True, eq=False)
class ResultColumns:
    """G results in the order of `League.results`, at tables of at most k seats."""

    bots: tuple[str, ...]
    """`name@version`, all of the league's."""
    rulesets: tuple[str, ...]
    ruleset: Ints
    """(G,) an index of `rulesets`."""
    match: Ints
    """(G,) a number for each match, in the order of the schedules."""
    bot: Ints
    """(G, k) who sat in each seat, an index of `bots`; -1: the table has no such seat."""
    score: Ints
    """(G, k) points; 0 where there is no seat."""
    rank: Ints
    """(G, k) final rank; 0 where there is no seat."""
    forfeited: Flags
    """(G, k)"""
    strikes: Ints
    """(G, k) faults that did not cost the game."""

    def chosen(self, games: Flags) -> ResultColumns:
        """Those games that are wanted; (G,)."""
        return replace(
            self,
            ruleset=self.ruleset[games],
            match=self.match[games],
            bot=self.bot[games],
            score=self.score[games],
            rank=self.rank[games],
            forfeited=self.forfeited[games],
            strikes=self.strikes[games],
        )


def result_columns(connection: Connection, tournament: str | None) -> ResultColumns:
    """See `League.columns`."""
    rulesets = _rulesets(connection)
    keys = _keys(connection, rulesets)
    if tournament is not None:
        keys = keys[:, keys[3] == _tournament(connection, tournament)]
    game, match, _, _, ruleset = keys[:, np.lexsort(keys[[0, 2, 3]])]
    seat, told = _sat(connection)
    struck = _struck(connection)
    most = max(each.max(initial=0) for each in (game, seat // _SEATS, struck // _SEATS))
    rows = np.full(most + 1, _NOBODY)
    rows[game] = np.arange(len(game))
    own = rows[seat // _SEATS] != _NOBODY
    seat, told = seat[own], told[own]
    struck = struck[rows[struck // _SEATS] != _NOBODY]
    place = rows[seat // _SEATS], seat % _SEATS
    shape = len(game), int(place[1].max(initial=0)) + 1

    def placed(values: Ints, empty: int = 0) -> Ints:
        filled = np.full(shape, empty, dtype=np.int64)
        filled[place] = values
        return filled

    strikes = np.zeros(shape, dtype=np.int64)
    np.add.at(strikes, (rows[struck // _SEATS], struck % _SEATS), 1)
    who, tail = np.divmod(told, _SCORES * 2 * _RANKS)
    bots, numbers = _bots(connection)
    return ResultColumns(
        bots=bots,
        rulesets=rulesets,
        ruleset=ruleset,
        match=np.cumsum(np.diff(match, prepend=match[:1]) != 0),
        bot=placed(numbers[who], _NOBODY),
        score=placed(tail // (2 * _RANKS) - _SCORES // 2),
        rank=placed(tail // 2 % _RANKS),
        forfeited=placed(tail % 2).astype(bool),
        strikes=strikes,
    )


def _tournament(connection: Connection, name: str) -> int:
    """The key of a tournament; -1: there is none of that name."""
    table = schema.tournaments.c
    key = connection.scalar(select(table.id).where(table.name == name))
    return _NOBODY if key is None else int(key)


def _keys(connection: Connection, rulesets: tuple[str, ...]) -> Ints:
    """Of each game the keys of itself and its match, its place, the key of its tournament, its ruleset."""
    game, match = schema.games.c, schema.matches.c
    number = {name: number for number, name in enumerate(rulesets)}
    played = select().select_from(schema.results.join(schema.games).join(schema.matches))
    return _numbers(
        connection,
        played,
        game.id,
        match.id,
        game.position,
        match.tournament_id,
        case(number, value=schema.results.c.ruleset) if number else literal(0),
    )


def _sat(connection: Connection) -> Ints:
    """Of each seat of each game where it is, and what came of it: bot, score, rank, forfeit, as one."""
    seat = schema.seats.c
    return _numbers(
        connection,
        select().select_from(schema.seats),
        _WIDE * seat.game_id * _SEATS + seat.seat,
        (_WIDE * seat.bot_id * _SCORES + seat.score + _SCORES // 2) * (2 * _RANKS)
        + 2 * seat.rank
        + case((seat.forfeited, 1), else_=0),
    )


def _struck(connection: Connection) -> Ints:
    """Of each strike the seat of the game that got it."""
    fault = schema.faults.c
    struck: Ints
    [struck] = _numbers(
        connection,
        select().select_from(schema.faults).where(fault.forfeit.is_(False)),
        _WIDE * fault.game_id * _SEATS + fault.seat,
    )
    return struck


def _numbers(connection: Connection, joined: Select[Any], *columns: ColumnElement[int]) -> Ints:
    """(columns, rows) whole numbers, in no order."""
    texts = (func.aggregate_strings(cast(column, String), ",") for column in columns)
    row = connection.execute(joined.add_columns(*texts)).one()
    numbers: Ints = np.stack([np.fromstring(text or "", dtype=np.int64, sep=",") for text in row])
    return numbers


def _rulesets(connection: Connection) -> tuple[str, ...]:
    """Those of all results."""
    ruleset = schema.results.c.ruleset
    return tuple(connection.scalars(select(ruleset).distinct().order_by(ruleset)))


def _bots(connection: Connection) -> tuple[tuple[str, ...], Ints]:
    """All bots, and the number of each by its key."""
    table = schema.bots.c
    known = connection.execute(select(table.id, table.name, table.version).order_by(table.id)).all()
    numbers = np.full(max((key for key, _, _ in known), default=0) + 1, _NOBODY)
    numbers[[key for key, _, _ in known]] = np.arange(len(known))
    return tuple(f"{name}@{version}" for _, name, version in known), numbers
