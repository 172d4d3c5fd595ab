"""Results as columns, for what reckons with all games of a league at once.

A row as a Python object costs a microsecond or two, and a hundred thousand games have half a million. So
the database joins each column to one text of numbers, and numpy reads that.
"""

from __future__ import annotations

from itertools import compress
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    String,
    case,
    cast,
    func,
    literal,
    select,
)

from referee.errors import StoreError
from referee.result_columns import NOBODY, Ints, ResultColumns
from referee.rules.ruleset import RULESETS
from referee.store import schema

T = TypeVar("T")

_MIDDLE = 1 << 15
"""Added to a score, which is then positive."""
_HALF = 32
"""Bits of a number: keys and places fit into so many."""
_RULESETS = tuple(sorted(RULESETS))


class _Bits(NamedTuple):
    """Some bits of a number. Numbers that are small are packed into one: there is less to be read."""

    shift: int
    bits: int

    def pack(self, column: ColumnElement[int]) -> ColumnElement[int]:
        """To be added to the others; a wide number in PostgreSQL, which keeps products as narrow as factors."""
        return column * cast(_constant(1 << self.shift), BigInteger)

    def unpack(self, numbers: Ints) -> Ints:
        """What was put there."""
        return numbers >> self.shift & (1 << self.bits) - 1


_FORFEITED = _Bits(0, 1)
_RANK = _Bits(1, 3)
_SCORE = _Bits(4, 16)
_SEAT = _Bits(20, 3)
_GAME = _Bits(23, 24)
_BOT = _Bits(47, 16)
_RULESET = _Bits(0, len(_RULESETS).bit_length())


def read_result_columns(connection: Connection, tournament: str | None) -> ResultColumns:
    """See `League.columns`."""
    game, ruleset, match, position, league = _played(connection)
    order = np.argsort(league << _HALF | position, kind="stable")
    if tournament is not None:
        order = order[league[order] == _tournament(connection, tournament)]
    game, match = game[order], match[order]
    _check_room(connection)
    sat, struck = _sat(connection), _struck(connection)
    of_seat, of_strike = _GAME.unpack(sat), _GAME.unpack(struck)
    most = max(each.max(initial=0) for each in (game, of_seat, of_strike))
    rows = np.full(most + 1, NOBODY)
    rows[game] = np.arange(len(game))
    row, struck_row = rows[of_seat], rows[of_strike]
    if len(game) < most:  # some are not wanted, or not played
        sat, row = sat[row != NOBODY], row[row != NOBODY]
        struck, struck_row = struck[struck_row != NOBODY], struck_row[struck_row != NOBODY]
    seat = _SEAT.unpack(sat)
    seats = int(seat.max(initial=0)) + 1
    place = row * seats + seat

    def placed(values: Ints, empty: int = 0) -> Ints:
        filled = np.full(len(game) * seats, empty, dtype=np.int64)
        filled[place] = values
        return filled.reshape(len(game), seats)

    strikes = np.zeros((len(game), seats), dtype=np.int64)
    np.add.at(strikes, (struck_row, _SEAT.unpack(struck)), 1)
    bots, numbers = _bots(connection)
    rulesets, ruleset = _present(_RULESETS, ruleset[order])
    return ResultColumns(
        bots=bots,
        rulesets=rulesets,
        ruleset=ruleset,
        match=np.cumsum(np.diff(match, prepend=match[:1]) != 0),
        bot=placed(numbers[_BOT.unpack(sat)], NOBODY),
        score=placed(_SCORE.unpack(sat) - _MIDDLE),
        rank=placed(_RANK.unpack(sat)),
        forfeited=placed(_FORFEITED.unpack(sat)).astype(bool),
        strikes=strikes,
    )


def _tournament(connection: Connection, name: str) -> int:
    """The key of a tournament; -1: there is none of that name."""
    table = schema.tournaments.c
    key = connection.scalar(select(table.id).where(table.name == name))
    return NOBODY if key is None else int(key)


def _played(connection: Connection) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Of each played game of a schedule its key, ruleset, the key of its match, place, key of the tournament.

    Raises StoreError for a ruleset that is not known here.
    """
    game, match, result = schema.games.c, schema.matches.c, schema.results.c
    number = ((_constant(name), _constant(number)) for number, name in enumerate(_RULESETS))
    ruleset = case(*number, value=result.ruleset, else_=_constant(len(_RULESETS)))
    scheduled = schema.results.join(schema.games, game.id == result.game_id)
    told, of_match, position = _numbers(
        connection,
        select().select_from(scheduled).where(game.match_id.is_not(None)),
        _GAME.pack(game.id) + ruleset,
        game.match_id,
        game.position,
    )
    key, rules = _GAME.unpack(told), _RULESET.unpack(told)
    if rules.max(initial=0) == len(_RULESETS):
        raise StoreError("the league has games of a ruleset that this version does not know")
    matches, tournaments = _numbers(
        connection, select().select_from(schema.matches), match.id, match.tournament_id
    )
    tournament = np.zeros(matches.max(initial=0) + 1, dtype=np.int64)
    tournament[matches] = tournaments
    return key, rules, of_match, position, tournament[of_match]


def _check_room(connection: Connection) -> None:
    """Raise StoreError when keys do not fit into their bits: of 16 million games, or 65 thousand bots."""
    for table, part in ((schema.games, _GAME), (schema.bots, _BOT)):
        most = connection.scalar(select(func.max(table.c.id))) or 0
        if most >= 1 << part.bits:
            raise StoreError(f"the league has more {table.name} than can be looked at together")


def _sat(connection: Connection) -> Ints:
    """Of each seat of each game who sat there, and what came of it."""
    seat = schema.seats.c
    packed = (
        _BOT.pack(seat.bot_id)
        + _GAME.pack(seat.game_id)
        + _SEAT.pack(seat.seat)
        + _SCORE.pack(seat.score + _constant(_MIDDLE))
        + _RANK.pack(seat.rank)
        + cast(seat.forfeited, Integer)
    )
    [numbers] = _numbers(connection, select().select_from(schema.seats), packed)
    return numbers


def _struck(connection: Connection) -> Ints:
    """Of each strike the seat of the game that got it."""
    fault = schema.faults.c
    strikes = select().select_from(schema.faults).where(fault.forfeit.is_(False))
    [numbers] = _numbers(connection, strikes, _GAME.pack(fault.game_id) + _SEAT.pack(fault.seat))
    return numbers


def _constant(value: T) -> ColumnElement[T]:
    """Part of the statement's text: a parameter would be fetched anew for each row."""
    return literal(value, literal_execute=True)


def _numbers(
    connection: Connection, joined: Select[Any], *columns: ColumnElement[int]
) -> list[Ints]:
    """Of each column the numbers of all rows, in no order."""
    texts = (func.aggregate_strings(cast(column, String), ",") for column in columns)
    row = connection.execute(joined.add_columns(*texts)).one()
    return [np.fromstring(text or "", dtype=np.int64, sep=",") for text in row]


def _present(names: tuple[str, ...], numbers: Ints) -> tuple[tuple[str, ...], Ints]:
    """Those of some names that occur, and which of them does in each place."""
    occurs = np.bincount(numbers, minlength=len(names)) > 0
    return tuple(compress(names, occurs)), (np.cumsum(occurs) - 1)[numbers]


def _bots(connection: Connection) -> tuple[tuple[str, ...], Ints]:
    """All bots, and the number of each by its key."""
    table = schema.bots.c
    known = connection.execute(select(table.id, table.name, table.version).order_by(table.id)).all()
    numbers = np.full(max((key for key, _, _ in known), default=0) + 1, NOBODY)
    numbers[[key for key, _, _ in known]] = np.arange(len(known))
    return tuple(f"{name}@{version}" for _, name, version in known), numbers
