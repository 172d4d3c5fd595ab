"""Keep the games that people play on the server. Decide who may start a game, with which bots, and how many at a time."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Self

from starlette.concurrency import run_in_threadpool

from referee.bots import BotSpec
from referee.errors import NotFoundError, RefereeError, UserError
from referee.records import BotId, GameRecord
from referee.roster import find_bot
from referee.roster.roster import Roster, StoredCopy, enter_person, person_id
from referee.rules.ruleset import RULESETS, Ruleset
from referee.sandbox import Rung
from referee.store import StoredBot
from referee.store.database import write_patiently
from referee.store.league import League
from referee.tournament.person import PersonGame
from referee.web.problems import explain
from referee.web.sitting import Sitting

YOU = "you"
"""In the form, the value of the place that the person takes. The value of a bot is `name@version`, so it is never this word."""
SEATS = max(rules.max_players for rules in RULESETS.values())
"""The number of places in the form, one for each possible player."""
_EXAMPLE_SEATS = 4
GAMES = 4
"""The limit of games that are played at the same time."""
KEPT = 20
"""How many ended games the lobby keeps when a new game starts. Older ended games are forgotten."""
AWAY_S = 300.0
"""If `GAMES` games are being played, a new game may replace a game from which no page has requested news for this time, in seconds."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The game that a person wants to play, as the form says it."""

    name: str
    """The name of the person."""
    ruleset: str
    seats: tuple[str, ...]
    """The players at the `SEATS` places of the form, clockwise: each is `YOU`, a bot as `name@version`, or empty. Empty places are left
    out of the game. The first place that is not empty is seat 0."""
    store: bool
    """Whether the league stores the finished game."""

    @classmethod
    def read(cls, form: Mapping[str, str]) -> Self:
        """Return the wish from the fields of a form. Missing fields are empty."""
        return cls(
            form.get("name", ""),
            form.get("ruleset", ""),
            tuple(form.get(f"seat-{seat}", "") for seat in range(SEATS)),
            "store" in form,
        )

    @classmethod
    def example(cls, bots: Sequence[str]) -> Self:
        """Return the wish that a new form shows: the person, and up to three of the bots."""
        players = (YOU, *bots[: _EXAMPLE_SEATS - 1])
        return cls("guest", "basic", (*players, *[""] * (SEATS - len(players))), store=True)


class Lobby:
    """The games with people on one server. Use it in one event loop.

    Args:
        league: the league, open for reading.
        open_league: opens the league for writing.
        isolation: the rung of the bots; None for the strongest rung of this machine.
    """

    def __init__(
        self, league: League, open_league: Callable[[], League], isolation: Rung | None
    ) -> None:
        self.token = secrets.token_urlsafe(16)
        """Whoever knows it may start games."""
        self._league = league
        self._open_league = open_league
        self._isolation = isolation
        self._games: dict[str, Sitting] = {}
        self._is_closed = False

    def games(self) -> Iterator[tuple[str, Sitting]]:
        """Yield each game with its id, the newest first."""
        yield from reversed(self._games.items())

    def game(self, sitting_id: str) -> Sitting:
        """Return a game by its id. Raises NotFoundError if the lobby has no such game."""
        try:
            return self._games[sitting_id]
        except KeyError:
            raise NotFoundError(
                "The server does not have this game. It keeps only the newest games."
            ) from None

    def bots(self) -> list[StoredBot]:
        """Return all versions of bots that are not retired."""
        return [row for row in self._league.bots() if row.retired_at_us is None]

    def explain(self, error: Exception) -> str:
        """See `problems.explain`."""
        return explain(self._league, error)

    async def start(self, wish: Wish) -> str:
        """Start a game, and return its id in the lobby.

        Raises UserError if the wish cannot be fulfilled, if `GAMES` games are being played and none may be replaced, or if the
        server ends. Raises StoreError if the game is to be stored and nothing can be stored at the moment. Raises RefereeError if the
        machine lacks resources.
        """
        order = await run_in_threadpool(self._order, wish)
        await self._make_room()
        if self._is_closed:
            raise UserError("the server ends")
        sitting_id = secrets.token_hex(4)
        store = partial(self._store, order.person) if wish.store else None
        try:
            self._games[sitting_id] = Sitting(order, store, self.explain)
        except (OSError, RuntimeError) as error:  # no file descriptor or thread was free
            raise RefereeError(f"the game cannot be started: {error}") from error
        return sitting_id

    async def leave(self, sitting_id: str) -> None:
        """End a game and forget it. Raises NotFoundError if the lobby has no such game."""
        await self.game(sitting_id).close()
        self._games.pop(sitting_id, None)  # another request may have done it

    async def close(self) -> None:
        """End all games."""
        self._is_closed = True
        await asyncio.gather(*map(self._forget, list(self._games)))

    async def _make_room(self) -> None:
        """Forget old ended games. If `GAMES` games are being played, end one that may be replaced; raise UserError if there is none."""
        over = [sitting_id for sitting_id, game in self._games.items() if game.shown.is_over]
        for sitting_id in over[:-KEPT]:
            await self._forget(sitting_id)
        while len(played := self._played()) >= GAMES:
            longest = min(played, key=lambda sitting_id: played[sitting_id].seen_at_s)
            if time.monotonic() - played[longest].seen_at_s < AWAY_S:
                raise UserError(
                    f"{GAMES} games are being played here; wait until one of them is over"
                )
            await self._forget(longest)

    async def _forget(self, sitting_id: str) -> None:
        """Do the same as `leave`, unless another request has done it."""
        with suppress(NotFoundError):
            await self.leave(sitting_id)

    def _played(self) -> dict[str, Sitting]:
        return {key: game for key, game in self._games.items() if not game.shown.is_over}

    def _order(self, wish: Wish) -> PersonGame:
        rules, seats = _read_table(wish)
        person = person_id(self._league, wish.name)
        if wish.store:
            with self._open_league() as league:
                league.check_writable()
        stored = {seat: find_bot(self._league, seat) for seat in seats if seat != YOU}
        bots = [str(stored[seat].bot) for seat in seats if seat in stored]
        twins = {bot for bot in bots if bots.count(bot) > 1}
        if twins:
            raise UserError(f"players: {min(twins)} has more than one place")
        specs = {seat: self._spec(seat, rules) for seat in stored}
        return PersonGame(
            players=tuple(specs.get(seat, person) for seat in seats),
            ruleset=rules,
            isolation=self._isolation,
            stored=tuple(StoredCopy(row, specs[seat].folder) for seat, row in stored.items()),
            parent_pid=os.getpid(),
        )

    def _spec(self, bot: str, rules: Ruleset) -> BotSpec:
        roster = Roster.for_reading(self._league)
        spec = roster.active_spec(bot)
        if not roster.is_ready(spec.bot):
            raise UserError(
                f"{spec.bot} was built in another place, or its copy was changed; play it once with `referee play`, which"
                " builds it again or says what to do"
            )
        if rules.name not in spec.rulesets:
            raise UserError(f"{bot} does not play {rules.name}")
        return spec

    def _store(self, person: BotId, record: GameRecord) -> None:
        """Store a finished game. If the database is locked, try again."""

        def write() -> None:
            with self._open_league() as league:
                enter_person(league, person, now_us=time.time_ns() // 1000)
                league.add_game_once(record)

        write_patiently(write)


def _read_table(wish: Wish) -> tuple[Ruleset, list[str]]:
    """Return the ruleset, and who plays. Raises UserError if these players cannot play the ruleset."""
    rules = RULESETS.get(wish.ruleset)
    if rules is None:
        raise UserError(f"ruleset: there is no ruleset {wish.ruleset!r}")
    seats = [seat for seat in wish.seats if seat]
    if seats.count(YOU) != 1:
        raise UserError("players: choose one place for yourself")
    try:
        rules.check_players(len(seats))
    except ValueError as error:
        raise UserError(f"players: {error}") from None
    return rules, seats
