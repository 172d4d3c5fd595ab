"""Continue ratings from a checkpoint, so that only games since then are rated.

TrueSkill rates one game after another; a hundred thousand games take half a minute. A checkpoint is bytes that
hold ratings after some of the games, each with a digest of everything that determines them: the games and
their order, the predecessors of the bots, and the settings. If no digest fits the given games, for example
because the checkpoint is old or damaged, all games are rated from the first one.
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

_VERSION = 1
"""Version of the rating algorithm, part of the digest: raise it when the algorithm changes."""
_SAVE_DISTANCES = (0, 64, 1024, 16_384)
"""Distances from the last game at which a state is saved.

States before the end help if a late game comes before others in the order.
"""
_MIN_NEW_GAMES = 200
"""No new checkpoint is made for fewer new games than this."""
_MAX_SEATS = 5
"""Games are padded to this size, so that a larger table among new games keeps old digests valid."""


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
    """Return the ratings after all games, and the next checkpoint; None if the old one is good enough.

    Args:
        checkpoint: an earlier checkpoint, None, or any bytes.
        games: the games in schedule order.
        settings: see `Ratings`.
        predecessors: see `Ratings`.
    """
    sequence = _GameSequence(games, settings or Settings(), predecessors or {})
    old = sorted(_read(checkpoint), key=lambda state: -state.games)
    last = next(filter(sequence.matches, old), None)
    begin = 0 if last is None else last.games
    ratings = Ratings.from_table(
        {} if last is None else last.ratings, settings, predecessors=predecessors
    )
    if len(sequence) - begin < _MIN_NEW_GAMES:
        sequence.rate(ratings, begin, len(sequence))
        return ratings, None
    states = [*filter(sequence.matches, old)]
    for end in sorted(len(sequence) - before for before in _SAVE_DISTANCES):
        if end > begin:
            sequence.rate(ratings, begin, end)
            states.append(sequence.state(ratings, end))
            begin = end
    return ratings, _dump(states, len(sequence))


def _read(checkpoint: bytes | None) -> tuple[_State, ...]:
    try:
        return _STATES.validate_json(checkpoint or b"[]")
    except ValidationError:
        return ()


def _dump(states: Iterable[_State], games: int) -> bytes:
    """Return the checkpoint: for each distance from the end the last state that is that far away."""
    chosen = {}
    for before in _SAVE_DISTANCES:
        old = [state for state in states if state.games <= games - before]
        if old:
            last = max(old, key=lambda state: state.games)
            chosen[last.games] = last
    return _STATES.dump_json(tuple(chosen.values()))


class _GameSequence:
    """Games in their order, with bots and rulesets numbered by first occurrence.

    So the numbers in the first games do not depend on later games.
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
        """Return True if these games start with the games of the state."""
        return 0 < state.games <= len(self) and state.digest == self._digest(
            state.games, state.ratings
        )

    def _digest(self, games: int, ratings: RatingTable) -> str:
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
        """Return a bot, its predecessor, the predecessor of that one, and so on."""
        line = [bot]
        while (before := self._predecessors.get(line[-1])) is not None:
            line.append(before)
        return line


def _number_by_occurrence(names: tuple[str, ...], numbers: Ints) -> tuple[list[str], Ints]:
    """Return the names in the order of first occurrence, and `numbers` as indexes of these names."""
    backwards = numbers.ravel()[::-1]
    first = np.full(len(names) + 1, len(backwards))  # NOBODY is the index of the last item
    # The last write to an item wins, and it is the first occurrence.
    first[backwards] = np.arange(len(backwards))[::-1]
    order = np.argsort(first[:-1], kind="stable")
    order = order[first[order] < len(backwards)]
    places = np.full(len(names) + 1, NOBODY)
    places[order] = np.arange(len(order))
    return [names[number] for number in order.tolist()], places[numbers]
