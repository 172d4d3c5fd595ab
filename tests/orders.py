"""Make games for a `GamePlayer` in the process of the tests."""

from __future__ import annotations

from referee import deals
from referee.match.play import GameSetup
from referee.tournament.assignments import GameTask


def game_order(number, rules, specs, *, clocks, max_strikes, isolation="none", deal=None):
    """Return a game with the deal named `deal`, by default with a deal of its own."""
    return GameTask(
        setup=GameSetup(
            game_id=number,
            ruleset=rules,
            seating=tuple(spec.bot for spec in specs),
            deck=deals.deck(bytes(32), deal or number, rules),
            clocks=clocks,
            max_strikes=max_strikes,
            isolation=isolation,
        ),
        bots=specs,
        opaque_id=f"opaque-{number}",
        seeds=tuple(range(len(specs))),
        names=(),
    )
