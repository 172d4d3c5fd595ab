"""Make records of random games, with faults if a test needs them, and standings."""

from __future__ import annotations

import random
from typing import Any

from referee.clocks import Clocks
from referee.errors import Cause, Evidence
from referee.match import stand_in_action
from referee.records import BotId, Fault, GameRecord, Move, Usage, final_ranks, forfeited_seats
from referee.reports.rating_rows import Tally
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, full_deck, list_cards


def standings(games, ratings, strikes=None):
    """Return the standings after these games. `strikes` has, by game id, the number of strikes of each seat that has any."""
    tally = Tally()
    for game in games:
        tally.add(game, (strikes or {}).get(game.game_id, {}))
    return tally.rows(ratings)


def record(
    ruleset: str = "basic",
    seats: int = 3,
    *,
    seed: int = 1,
    strike_at: int | None = None,
    forfeit_at: int | None = None,
    detail: str = "no reply",
    stderr_tail: str = "",
    clocks: Clocks | None = None,
    **options: Any,
) -> GameRecord:
    """Return the record of a random game; `options` are those of the ruleset.

    The bot that decides move `strike_at` gets a strike; the one that decides move `forfeit_at` forfeits the game.
    """
    chance, rules = random.Random(seed), RULESETS[ruleset].with_options(**options)
    deck = list_cards(full_deck(rules))
    chance.shuffle(deck)
    game, moves, faults = Game(rules, seats, deck), [], []
    while (decision := game.decision) is not None:
        number = len(moves)
        if number in {strike_at, forfeit_at}:
            forfeit = number == forfeit_at
            evidence = Evidence(detail=detail, elapsed_us=5_000_000, stderr_tail=stderr_tail)
            cause = Cause.OUT_OF_TIME if forfeit else Cause.TIMEOUT
            faults.append(Fault(decision.seat, cause, forfeit, number, evidence))
        out = any(fault.seat == decision.seat and fault.forfeit for fault in faults)
        helped = out or number == strike_at
        action = stand_in_action(decision) if helped else chance.choice(decision.legal)
        moves.append(Move(decision.seat, action, 0 if helped else 100 + number, 1, helped))
        game.apply(action)
    return GameRecord(
        game_id=f"cup-{seed}",
        ruleset=rules,
        seating=tuple(BotId(f"bot{seat}", "1.0") for seat in range(seats)),
        deck=tuple(deck),
        moves=tuple(moves),
        faults=tuple(faults),
        termination=game.outcome.termination,
        scores=game.outcome.scores,
        ranks=final_ranks(game.outcome.ranks, faults),
        forfeited=forfeited_seats(faults),
        usage=tuple(Usage(0.01 * seat, 2048) for seat in range(seats)),
        clocks=clocks or Clocks(),
        max_strikes=3,
        isolation="none",
        started_at_us=1_700_000_000_000_000,
        duration_us=123_456,
    )
