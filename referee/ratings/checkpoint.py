"""Continue ratings from a checkpoint: rate only the games after the checkpoint.

TrueSkill rates one game after another, so a hundred thousand games take half a minute. A checkpoint is a byte
string with up to four states. A state has the ratings after the first n games, and a digest of these ratings and of
everything that determines them: the version of the algorithm, the games and their order, the predecessors of the bots,
and the settings. A state can be used if its digest is the same when it is computed again with the current games,
predecessors and settings. If no state can be used, for example because the checkpoint is damaged, all games are rated
from the first one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from referee.ratings.trueskill import Ratings, RatingTable, Settings
from referee.result_columns import NOBODY, Ints, ResultColumns

_VERSION = 2
"""Version of the rating algorithm. It is part of the digest; raise it when the algorithm changes."""
_SAVE_DISTANCES = (0, 64, 1024, 16_384)
"""Least distances between the states of a checkpoint and the last game, in games.

Games can be stored in another order than that of the schedule. If a game is stored late, a state with later games
of the schedule can no longer be used. A state that has only earlier games can still be used.
"""
_MIN_NEW_GAMES = 200
"""If fewer games than this follow the last state that can be used, no new checkpoint is made."""
_MAX_SEATS = 5
"""Size of the largest table. All games are padded to this size.

Without padding, the first game at a larger table would change the digest of the games before it.
"""


class _State(BaseModel):
    """The ratings after the first `games` games."""

    games: int
    ratings: RatingTable
    digest: str


_STATES = TypeAdapter(tuple[_State, ...])


def rate_from_checkpoint(
    checkpoint: bytes | None,
    games: ResultColumns,
    settings: Settings | None = None,
    *,
    predecessors: Mapping[str, str] | None = None,
) -> tuple[Ratings, bytes | None]:
    """Return the ratings after all games, and a new checkpoint.

    If fewer than 200 games had to be rated, there is no new checkpoint: the second value is None.

    Args:
        checkpoint: an earlier checkpoint, or None. Bytes that are no checkpoint are ignored.
        games: the games in schedule order.
        settings: see `Ratings`.
        predecessors: see `Ratings`.

    Raises ValueError if a game cannot be rated; see `Ratings.rate`.
    """
    sequence = _GameSequence(games, settings or Settings(), predecessors or {})
    states = [*filter(sequence.matches, _read(checkpoint))]
    nothing = _State(games=0, ratings={}, digest="")
    last = max(states, key=lambda state: state.games, default=nothing)
    begin = last.games
    ratings = Ratings.from_table(last.ratings, settings, predecessors=predecessors)
    if len(sequence) - begin < _MIN_NEW_GAMES:
        sequence.rate(ratings, begin, len(sequence))
        return ratings, None
    for end in sorted(len(sequence) - before for before in _SAVE_DISTANCES):
        if end > begin:
            sequence.rate(ratings, begin, end)
            states.append(sequence.state(ratings, end))
            begin = end
    return ratings, _dump(states, len(sequence))


def _read(checkpoint: bytes | None) -> tuple[_State, ...]:
    """Return the states of a checkpoint; an empty tuple if the bytes are no checkpoint."""
    try:
        return _STATES.validate_json(checkpoint or b"[]")
    except ValidationError:
        return ()


def _dump(states: Iterable[_State], games: int) -> bytes:
    """Return a checkpoint after `games` games.

    For each distance in `_SAVE_DISTANCES`, the checkpoint contains the latest state that is at least this many games
    before the last game, if there is one.
    """
    chosen = {}
    for before in _SAVE_DISTANCES:
        old = [state for state in states if state.games <= games - before]
        if old:
            last = max(old, key=lambda state: state.games)
            chosen[last.games] = last
    return _STATES.dump_json(tuple(chosen.values()))


class _GameSequence:
    """Games in schedule order. Bots and rulesets are numbered in the order in which they first occur.

    With these numbers, the digest of the first games does not depend on later games.
    """

    def __init__(
        self, games: ResultColumns, settings: Settings, predecessors: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._predecessors = predecessors
        missing = ((0, 0), (0, _MAX_SEATS - games.bot.shape[1]))
        bot = np.pad(games.bot, missing, constant_values=NOBODY)
        self._rank = np.pad(games.rank, missing).astype(np.int8)
        self._bots, self._bot = _number_by_occurrence(games.bots, bot)
        self._rulesets, self._ruleset = _number_by_occurrence(games.rulesets, games.ruleset)

    def __len__(self) -> int:
        return len(self._rank)

    def rate(self, ratings: Ratings, begin: int, end: int) -> None:
        """Rate the games from index `begin` to before `end`."""
        part = slice(begin, end)
        for ruleset, bots, ranks in zip(
            self._ruleset[part].tolist(),
            self._bot[part].tolist(),
            self._rank[part].tolist(),
            strict=True,
        ):
            seats = _MAX_SEATS - bots.count(NOBODY)
            names = [self._bots[bot] for bot in bots[:seats]]
            ratings.rate(self._rulesets[ruleset], names, ranks[:seats])

    def state(self, ratings: Ratings, games: int) -> _State:
        """Return the state after `games` games."""
        table = ratings.table()
        return _State(games=games, ratings=table, digest=self._digest(games, table))

    def matches(self, state: _State) -> bool:
        """Return True if the digest of the state is the digest of the first `state.games` games."""
        return 0 < state.games <= len(self) and state.digest == self._digest(
            state.games, state.ratings
        )

    def _digest(self, games: int, ratings: RatingTable) -> str:
        """Return the digest of the first `games` games, the settings, the predecessors, and `ratings`."""
        bots = self._bots[: int(self._bot[:games].max(initial=NOBODY)) + 1]
        rulesets = self._rulesets[: int(self._ruleset[:games].max(initial=NOBODY)) + 1]
        text = json.dumps(
            [
                _VERSION,
                asdict(self._settings),
                [self._line(bot) for bot in bots],
                rulesets,
                ratings,
            ]
        )
        digest = hashlib.blake2b(text.encode(), digest_size=16)
        for column in (self._bot, self._rank, self._ruleset):
            digest.update(column[:games].astype(np.int32).tobytes())
        return digest.hexdigest()

    def _line(self, bot: str) -> list[str]:
        """Return `bot`, its predecessor, the predecessor's own predecessor, and so on."""
        line = [bot]
        while (before := self._predecessors.get(line[-1])) is not None:
            line.append(before)
        return line


def _number_by_occurrence(names: tuple[str, ...], numbers: Ints) -> tuple[list[str], Ints]:
    """Return the names in the order of first occurrence, and `numbers` as indexes of the returned names.

    Args:
        names: all names; those that do not occur in `numbers` are left out.
        numbers: indexes of `names`, or NOBODY.
    """
    backwards = numbers.ravel()[::-1]
    first = np.full(len(names) + 1, len(backwards))  # the last item is for NOBODY, which is -1
    # If an index is written several times, numpy keeps the value that is written last. Because of the reversed order,
    # this is the position of the first occurrence.
    first[backwards] = np.arange(len(backwards))[::-1]
    order = np.argsort(first[:-1], kind="stable")
    order = order[first[order] < len(backwards)]
    places = np.full(len(names) + 1, NOBODY)
    places[order] = np.arange(len(order))
    return [names[number] for number in order.tolist()], places[numbers]
