"""One game without a tournament."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Sequence

from referee import deals
from referee.bots.isolation import Isolation
from referee.bots.manifest import BotSpec
from referee.bots.run_folder import run_folder
from referee.clocks import Clocks
from referee.match import Fixture
from referee.match.play import Watcher
from referee.records import GameRecord
from referee.rules.ruleset import Ruleset
from referee.tournament.game_player import GamePlayer
from referee.tournament.orders import Assignment, GameOrder, WorkerSettings

MAX_STRIKES = 3


def free_game(
    specs: Sequence[BotSpec], rules: Ruleset, text: str, isolation: Isolation
) -> GameOrder:
    """A game of its own, by default clocks.

    Args:
        specs: the bots, seat 0 first; none of them twice.
        rules: what is played.
        text: any text; the same one deals the same cards and seeds the bots the same.
        isolation: what the bots run under.
    """
    seed = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    game_id = f"play-{hashlib.sha256(seed).hexdigest()[:6]}-{secrets.token_hex(3)}"
    return GameOrder(
        fixture=Fixture(
            game_id=game_id,
            ruleset=rules,
            seating=tuple(spec.bot for spec in specs),
            deck=deals.deck(seed, "play", rules),
            clocks=Clocks(),
            max_strikes=MAX_STRIKES,
            isolation=isolation.words,
        ),
        bots=tuple(specs),
        opaque_id=deals.opaque_id(seed, "play"),
        seeds=tuple(deals.bot_seed(seed, "play", seat) for seat in range(len(specs))),
        names=(),
        suspended=frozenset(),
    )


async def play_single(
    order: GameOrder, isolation: Isolation, watch: Watcher | None = None
) -> GameRecord:
    """Play a game in this process, with bots that are started for it alone.

    Raises `VoidGame` when it cannot be finished.
    """
    with run_folder() as folder:
        player = GamePlayer(
            WorkerSettings(
                cores=frozenset(),
                clocks=order.fixture.clocks,
                max_processes=len(order.bots),
                isolation=isolation,
                folder=folder,
                parent_pid=os.getpid(),
            )
        )
        try:
            (record,) = await player.play(Assignment(0, (order,)), watch)
        finally:
            await player.close()
    return record
