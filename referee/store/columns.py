"""Results as columns, for what reckons with all games of a league at once.

A row as a Python object costs a microsecond or two, and a hundred thousand games have half a million. So
the database joins each column to one text of numbers, and numpy reads that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
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
from referee.rules.ruleset import RULESETS
from referee.store import schema

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
T = TypeVar("T")

_NOBODY = -1
_SEAT_BITS = 3
"""More than any table needs. Small numbers are packed into one: there is less to be read."""
_RANK_BITS = 3
_SCORE_BITS = 16
_TAIL_BITS = _SCORE_BITS + _RANK_BITS + 1
"""Of what comes behind the bot."""
_HALF = 32
"""Bits of a number: keys and places fit into so many."""
_RULESETS = tuple(sorted(RULESETS))
_RULESET_BITS = len(_RULESETS).bit_length()


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
        if games.all():
            return self
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
    game, ruleset, match, position, league = _played(connection)
    order = np.argsort(league << _HALF | position, kind="stable")
    if tournament is not None:
        order = order[league[order] == _tournament(connection, tournament)]
    game, match = game[order], match[order]
    sat, told = _sat(connection)
    struck = _struck(connection)
    most = max(each.max(initial=0) for each in (game, sat >> _SEAT_BITS, struck >> _SEAT_BITS))
    rows = np.full(most + 1, _NOBODY)
    rows[game] = np.arange(len(game))
    if len(game) < most:  # some are not wanted, or not played
        own = rows[sat >> _SEAT_BITS] != _NOBODY
        sat, told = sat[own], told[own]
        struck = struck[rows[struck >> _SEAT_BITS] != _NOBODY]
    seat = sat & _mask(_SEAT_BITS)
    seats = int(seat.max(initial=0)) + 1
    place = rows[sat >> _SEAT_BITS] * seats + seat

    def placed(values: Ints, empty: int = 0) -> Ints:
        filled = np.full(len(game) * seats, empty, dtype=np.int64)
        filled[place] = values
        return filled.reshape(len(game), seats)

    strikes = np.zeros((len(game), seats), dtype=np.int64)
    np.add.at(strikes, (rows[struck >> _SEAT_BITS], struck & _mask(_SEAT_BITS)), 1)
    bots, numbers = _bots(connection)
    rulesets, ruleset = _present(_RULESETS, ruleset[order])
    return ResultColumns(
        bots=bots,
        rulesets=rulesets,
        ruleset=ruleset,
        match=np.cumsum(np.diff(match, prepend=match[:1]) != 0),
        bot=placed(numbers[told >> _TAIL_BITS], _NOBODY),
        score=placed((told >> _RANK_BITS + 1 & _mask(_SCORE_BITS)) - (1 << _SCORE_BITS - 1)),
        rank=placed(told >> 1 & _mask(_RANK_BITS)),
        forfeited=placed(told & 1).astype(bool),
        strikes=strikes,
    )


def _tournament(connection: Connection, name: str) -> int:
    """The key of a tournament; -1: there is none of that name."""
    table = schema.tournaments.c
    key = connection.scalar(select(table.id).where(table.name == name))
    return _NOBODY if key is None else int(key)


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
        _wide(game.id) * _constant(1 << _RULESET_BITS) + ruleset,
        game.match_id,
        game.position,
    )
    key, rules = told >> _RULESET_BITS, told & _mask(_RULESET_BITS)
    if rules.max(initial=0) == len(_RULESETS):
        raise StoreError("the league has games of a ruleset that this version does not know")
    matches, tournaments = _numbers(
        connection, select().select_from(schema.matches), match.id, match.tournament_id
    )
    tournament = np.zeros(matches.max(initial=0) + 1, dtype=np.int64)
    tournament[matches] = tournaments
    return key, rules, of_match, position, tournament[of_match]


def _sat(connection: Connection) -> list[Ints]:
    """Of each seat of each game where it is, and what came of it: bot, score, rank, forfeit, as one."""
    seat = schema.seats.c
    return _numbers(
        connection,
        select().select_from(schema.seats),
        _wide(seat.game_id) * _constant(1 << _SEAT_BITS) + seat.seat,
        _wide(seat.bot_id) * _constant(1 << _TAIL_BITS)
        + (seat.score + _constant(1 << _SCORE_BITS - 1)) * _constant(2 << _RANK_BITS)
        + seat.rank * _constant(2)
        + cast(seat.forfeited, Integer),
    )


def _struck(connection: Connection) -> Ints:
    """Of each strike the seat of the game that got it."""
    fault = schema.faults.c
    [struck] = _numbers(
        connection,
        select().select_from(schema.faults).where(fault.forfeit.is_(False)),
        _wide(fault.game_id) * _constant(1 << _SEAT_BITS) + fault.seat,
    )
    return struck


def _mask(bits: int) -> int:
    return (1 << bits) - 1


def _constant(value: T) -> ColumnElement[T]:
    """Part of the statement's text: a parameter would be fetched anew for each row."""
    return literal(value, literal_execute=True)


def _wide(column: ColumnElement[int]) -> ColumnElement[int]:
    """PostgreSQL has narrow numbers, whose products it keeps narrow."""
    return cast(column, BigInteger)


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
    numbers = np.full(max((key for key, _, _ in known), default=0) + 1, _NOBODY)
    numbers[[key for key, _, _ in known]] = np.arange(len(known))
    return tuple(f"{name}@{version}" for _, name, version in known), numbers
