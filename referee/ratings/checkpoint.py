"""Ratings taken up where they were left: of many games, only those are rated that came since.

TrueSkill goes from game to game; a hundred thousand take half a minute. So what was reckoned is kept, as
bytes, with a digest of all that it comes from: which games, in which order, whom each new version followed,
by which settings. A state whose digest is not that of the games at hand is not used: what is kept may be old,
of other games, or damaged, and the ratings are those from the first game on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from referee.ratings.trueskill import Ratings, Settings, Table
from referee.result_columns import NOBODY, Ints, ResultColumns

_VERSION = 1
"""Of what a game does to the ratings: to be raised where that changes."""
_FROM_THE_END = (0, 64, 1024, 16_384)
"""So many games before the last one a state is kept: a game may come late, before others in the order."""
_WORTH = 200
"""Rating fewer games than that costs little; nothing new is kept then."""


_MAX_SEATS = 5
"""Games are padded to this size, so that a larger table among new games keeps old digests valid."""


class _State(BaseModel):
    """Ratings after some games."""

    games: int
    ratings: Table
    digest: str


_STATES = TypeAdapter(tuple[_State, ...])


def rate_from_checkpoint(
    kept: bytes | None,
    games: ResultColumns,
    settings: Settings | None = None,
    *,
    predecessors: Mapping[str, str] | None = None,
) -> tuple[Ratings, bytes | None]:
    """The ratings after some games, and what to keep for the next time; None: what is kept will do.

    Args:
        kept: what was to be kept some time ago, or anything else.
        games: in schedule order.
        settings: see `Ratings`.
        predecessors: see `Ratings`.
    """
    course = _Course(games, settings or Settings(), predecessors or {})
    old = sorted(_read(kept), key=lambda state: -state.games)
    last = next(filter(course.leads_to, old), None)
    begin = 0 if last is None else last.games
    ratings = Ratings.from_table(
        {} if last is None else last.ratings, settings, predecessors=predecessors
    )
    if len(course) - begin < _WORTH:
        course.rate(ratings, begin, len(course))
        return ratings, None
    states = [*filter(course.leads_to, old)]
    for end in sorted(len(course) - before for before in _FROM_THE_END):
        if end > begin:
            course.rate(ratings, begin, end)
            states.append(course.state(ratings, end))
            begin = end
    return ratings, _written(states, len(course))


def _read(kept: bytes | None) -> tuple[_State, ...]:
    try:
        return _STATES.validate_json(kept or b"[]")
    except ValidationError:
        return ()


def _written(states: Iterable[_State], games: int) -> bytes:
    """Of the states, the last ones that are so far from the end as they should be."""
    chosen = {}
    for before in _FROM_THE_END:
        old = [state for state in states if state.games <= games - before]
        if old:
            last = max(old, key=lambda state: state.games)
            chosen[last.games] = last
    return _STATES.dump_json(tuple(chosen.values()))


class _Course:
    """Games in their order, so that a beginning of them is the same whatever follows.

    That is, bots and rulesets are numbered as they come.
    """

    def __init__(
        self, games: ResultColumns, settings: Settings, predecessors: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._predecessors = predecessors
        missing = ((0, 0), (0, _MAX_SEATS - games.bot.shape[1]))
        bot = np.pad(games.bot, missing, constant_values=NOBODY)
        self._rank = np.pad(games.rank, missing).astype(np.int8)
        self._bots, self._bot = _as_they_come(games.bots, bot)
        self._rulesets, self._ruleset = _as_they_come(games.rulesets, games.ruleset)

    def __len__(self) -> int:
        return len(self._rank)

    def rate(self, ratings: Ratings, begin: int, end: int) -> None:
        """Rate the games from one on to before another."""
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
        """The ratings after so many games."""
        table = ratings.table()
        return _State(games=games, ratings=table, digest=self._digest(games, table))

    def leads_to(self, state: _State) -> bool:
        """Whether a state is one after the first games of these."""
        return 0 < state.games <= len(self) and state.digest == self._digest(
            state.games, state.ratings
        )

    def _digest(self, games: int, ratings: Table) -> str:
        bots = self._bots[: int(self._bot[:games].max(initial=NOBODY)) + 1]
        rulesets = self._rulesets[: int(self._ruleset[:games].max(initial=NOBODY)) + 1]
        said = json.dumps(
            [
                _VERSION,
                asdict(self._settings),
                [self._line(bot) for bot in bots],
                rulesets,
                ratings,
            ]
        )
        digest = hashlib.blake2b(said.encode(), digest_size=16)
        for column in (self._bot, self._rank, self._ruleset):
            digest.update(column[:games].astype(np.int32).tobytes())
        return digest.hexdigest()

    def _line(self, bot: str) -> list[str]:
        """A bot and whom it followed, and so on."""
        line = [bot]
        while (before := self._predecessors.get(line[-1])) is not None:
            line.append(before)
        return line


def _as_they_come(names: tuple[str, ...], numbers: Ints) -> tuple[list[str], Ints]:
    """Names in the order in which they occur first, and the numbers that they have in it."""
    backwards = numbers.ravel()[::-1]
    first = np.full(len(names) + 1, len(backwards))  # NOBODY takes the last place
    first[backwards] = np.arange(len(backwards))[::-1]  # of several the last one stays
    order = np.argsort(first[:-1], kind="stable")
    order = order[first[order] < len(backwards)]
    places = np.full(len(names) + 1, NOBODY)
    places[order] = np.arange(len(order))
    return [names[number] for number in order.tolist()], places[numbers]
