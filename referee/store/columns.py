"""Read the results of all games of a league into arrays, fast enough for a hundred thousand games.

A hundred thousand games have half a million rows. To make a Python object of each row would take too long. So
the database packs the small numbers of each row into one large number, and joins the large numbers of all
rows to one text. numpy parses the text. A key is the `id` of a row in a table of `store.schema`.
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

_SCORE_OFFSET = 1 << 15
"""Added to each score before packing, because a packed number must not be negative."""
_POSITION_BITS = 32
"""Number of bits for the position in the schedule, in a game's sort key. The bits above them are the key of the tournament."""
_RULESETS = tuple(sorted(RULESETS))


class _Bits(NamedTuple):
    """The place of one small number inside a packed number."""

    shift: int
    """Number of bits below the small number."""
    bits: int
    """Number of bits of the small number."""

    def pack(self, column: ColumnElement[int]) -> ColumnElement[int]:
        """Return the column, shifted to this place. The sum of columns at different places is a packed number.

        The factor is cast to 64 bits, because in PostgreSQL the product of two 32-bit numbers has 32 bits.
        """
        return column * cast(_inline(1 << self.shift), BigInteger)

    def unpack(self, numbers: Ints) -> Ints:
        """Return the small number at this place of each packed number."""
        return numbers >> self.shift & (1 << self.bits) - 1


_FORFEITED = _Bits(0, 1)
_RANK = _Bits(1, 3)
_SCORE = _Bits(4, 16)
_SEAT = _Bits(20, 3)
_GAME = _Bits(23, 24)
_BOT = _Bits(47, 16)
_RULESET = _Bits(0, len(_RULESETS).bit_length())
_MACHINE = _Bits(8, 15)


def read_result_columns(connection: Connection, tournament: str | None) -> ResultColumns:
    """See `League.columns`."""
    games = _read_games(connection)
    game, ruleset, match, position, tournament_key, machine, fresh_deal = games
    order = np.argsort(tournament_key << _POSITION_BITS | position, kind="stable")
    if tournament is not None:
        order = order[tournament_key[order] == _find_tournament(connection, tournament)]
    game, match = game[order], match[order]
    _check_room(connection)
    seats_read, strikes_read = _read_seats(connection), _read_strikes(connection)
    seat_game, strike_game = _GAME.unpack(seats_read), _GAME.unpack(strikes_read)
    max_key = max(each.max(initial=0) for each in (game, seat_game, strike_game))
    row_by_key = np.full(max_key + 1, NOBODY)
    row_by_key[game] = np.arange(len(game))
    row, strike_row = row_by_key[seat_game], row_by_key[strike_game]
    if len(game) < max_key:  # some seats may belong to free games or other tournaments
        seats_read, row = seats_read[row != NOBODY], row[row != NOBODY]
        wanted = strike_row != NOBODY
        strikes_read, strike_row = strikes_read[wanted], strike_row[wanted]
    seat = _SEAT.unpack(seats_read)
    seats = int(seat.max(initial=0)) + 1
    place = row * seats + seat

    def arrange(values: Ints, empty: int = 0) -> Ints:
        """Return an array with a row for each game and a column for each seat.

        `values` must have one item for each item of `seats_read`. A seat without an item gets `empty`.
        """
        filled = np.full(len(game) * seats, empty, dtype=np.int64)
        filled[place] = values
        return filled.reshape(len(game), seats)

    bots, numbers = _read_bots(connection)
    bot = arrange(numbers[_BOT.unpack(seats_read)], NOBODY)
    _check_seats(bot)
    strikes = np.zeros((len(game), seats), dtype=np.int64)
    np.add.at(strikes, (strike_row, _SEAT.unpack(strikes_read)), 1)
    rulesets, ruleset = _drop_unused(_RULESETS, ruleset[order])
    machine = machine[order]
    return ResultColumns(
        bots=bots,
        rulesets=rulesets,
        ruleset=ruleset,
        match=np.cumsum(np.diff(match, prepend=match[:1]) != 0),
        bot=bot,
        score=arrange(_SCORE.unpack(seats_read) - _SCORE_OFFSET),
        rank=arrange(_RANK.unpack(seats_read)),
        forfeited=arrange(_FORFEITED.unpack(seats_read)).astype(bool),
        strikes=strikes,
        machine=np.where(machine, machine, NOBODY),
        fresh_deal=fresh_deal[order].astype(bool),
    )


def _check_seats(bot: Ints) -> None:
    """Raise StoreError if a game has fewer than two seats, or a seat after a missing one. `bot` is as in `ResultColumns`."""
    there = bot != NOBODY
    has_two = there.shape[1] > 1 and there[:, :2].all()
    if len(bot) and (not has_two or (there[:, 1:] > there[:, :-1]).any()):
        raise StoreError(
            "the table seats is damaged: a game has lost a seat; `referee verify` names the game"
        )


def _find_tournament(connection: Connection, name: str) -> int:
    """Return the key of the tournament `name`. If there is none, return `NOBODY`, which is never a key."""
    table = schema.tournaments.c
    key = connection.scalar(select(table.id).where(table.name == name))
    return NOBODY if key is None else int(key)


def _read_games(connection: Connection) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints]:
    """Return seven arrays with an item for each played game that belongs to a schedule.

    The arrays are the key of the game, the ruleset as an index in `_RULESETS`, the key of the match, the position in the
    schedule, the key of the tournament, the key of the machine (0 if unknown), and whether the deal is fresh (1 or 0). Raises
    StoreError for an unknown ruleset.
    """
    game, match, result = schema.games.c, schema.matches.c, schema.results.c
    number = ((_inline(name), _inline(number)) for number, name in enumerate(_RULESETS))
    ruleset = case(*number, value=result.ruleset, else_=_inline(len(_RULESETS)))
    scheduled = schema.results.join(schema.games, game.id == result.game_id)
    packed, of_match, position = _read_numbers(
        connection,
        select().select_from(scheduled).where(game.match_id.is_not(None)),
        _GAME.pack(game.id) + _MACHINE.pack(func.coalesce(result.machine_id, _inline(0))) + ruleset,
        game.match_id,
        game.position,
    )
    key, rules = _GAME.unpack(packed), _RULESET.unpack(packed)
    if rules.max(initial=0) == len(_RULESETS):
        raise StoreError(
            "the league has games of a ruleset that this version does not know; use a newer version of the referee"
        )
    matches, tournaments, fresh_deals = _read_numbers(
        connection,
        select().select_from(schema.matches),
        match.id,
        match.tournament_id,
        cast(match.deal_id.is_(None), Integer),
    )
    tournament, fresh_deal = np.zeros((2, matches.max(initial=0) + 1), dtype=np.int64)
    tournament[matches], fresh_deal[matches] = tournaments, fresh_deals
    machine = _MACHINE.unpack(packed)
    return key, rules, of_match, position, tournament[of_match], machine, fresh_deal[of_match]


def _check_room(connection: Connection) -> None:
    """Raise StoreError if the largest key of a game, a bot or a machine does not fit into its bits of a packed number."""
    kinds = ((schema.games, _GAME), (schema.bots, _BOT), (schema.machines, _MACHINE))
    for table, part in kinds:
        most = connection.scalar(select(func.max(table.c.id))) or 0
        if most >= 1 << part.bits:
            raise StoreError(
                f"the league has more {table.name} than one table of results can hold; use several leagues"
            )


def _read_seats(connection: Connection) -> Ints:
    """Return one packed number for each seat of each played game."""
    seat = schema.seats.c
    packed = (
        _BOT.pack(seat.bot_id)
        + _GAME.pack(seat.game_id)
        + _SEAT.pack(seat.seat)
        + _SCORE.pack(seat.score + _inline(_SCORE_OFFSET))
        + _RANK.pack(seat.rank)
        + cast(seat.forfeited, Integer)
    )
    [numbers] = _read_numbers(connection, select().select_from(schema.seats), packed)
    return numbers


def _read_strikes(connection: Connection) -> Ints:
    """Return one packed number for each strike, made of a game and a seat."""
    fault = schema.faults.c
    strikes = select().select_from(schema.faults).where(fault.forfeit.is_(False))
    [numbers] = _read_numbers(
        connection, strikes, _GAME.pack(fault.game_id) + _SEAT.pack(fault.seat)
    )
    return numbers


def _inline(value: T) -> ColumnElement[T]:
    """Return `value` as SQL text. A parameter would be slower, because the database evaluates parameters for each row."""
    return literal(value, literal_execute=True)


def _read_numbers(
    connection: Connection, joined: Select[Any], *columns: ColumnElement[int]
) -> list[Ints]:
    """Return an array for each column, with one item for each row that `joined` selects.

    The database chooses the order of the rows. It is the same in all arrays.
    """
    texts = (func.aggregate_strings(cast(column, String), ",") for column in columns)
    row = connection.execute(joined.add_columns(*texts)).one()
    return [np.fromstring(text or "", dtype=np.int64, sep=",") for text in row]


def _drop_unused(names: tuple[str, ...], numbers: Ints) -> tuple[tuple[str, ...], Ints]:
    """Keep the names whose index is in `numbers`. Return the kept names, and `numbers` as indexes in the kept names."""
    occurs = np.bincount(numbers, minlength=len(names)) > 0
    return tuple(compress(names, occurs)), (np.cumsum(occurs) - 1)[numbers]


def _read_bots(connection: Connection) -> tuple[tuple[str, ...], Ints]:
    """Return the `name@version` of all bots, and an array that maps a bot's key to the bot's index."""
    table = schema.bots.c
    known = connection.execute(select(table.id, table.name, table.version).order_by(table.id)).all()
    numbers = np.full(max((key for key, _, _ in known), default=0) + 1, NOBODY)
    numbers[[key for key, _, _ in known]] = np.arange(len(known))
    return tuple(f"{name}@{version}" for _, name, version in known), numbers
