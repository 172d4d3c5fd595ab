"""Make bots, tournaments, schedules and records for tests that store them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from referee import deals
from referee.clocks import Clocks
from referee.errors import Cause, Evidence
from referee.match import stand_in_action
from referee.records import BotId, Fault, GameRecord, Machine, Move, ScheduledGame, Usage
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS
from referee.schedule import Deals, Stage
from referee.schedule.round_robin import round_robin
from referee.store import NewTournament, StoredBot
from referee.store.league import League

NAMES = ("ann", "bob", "cy", "dee")
SEED = bytes(range(32))
MACHINE = Machine(host="alpha", cpu="Model 1", speed=150_000, noise=0.125)


def bot(name: str, version: str = "1.0", content: str = "") -> StoredBot:
    content_hash = hashlib.sha256(f"{name}@{version}{content}".encode()).hexdigest()
    return StoredBot(name, version, "Ada", "python", f"/bots/{name}", content_hash, 1_700_000_000)


def add_bot(league: League, row: StoredBot) -> None:
    """Add a version of a bot to a league."""
    league.add_version(row.name, lambda _versions: row)


def tournament(name: str = "cup") -> NewTournament:
    return NewTournament(name, 1_700_000_000_000_000, '{"a": 1}', SEED, "c" * 64, "the terms")


def schedule(
    name: str = "cup", matches: int = 2, seats: int = 3, kind: Deals = Deals.SAME
) -> list[ScheduledGame]:
    stage = Stage(RULESETS["classic"], seats, matches, deals=kind)
    names = [f"{each}@1.0" for each in NAMES]
    return list(round_robin(name, names, [stage], lanes=4))


def swap_bots(rows: Sequence[ScheduledGame]) -> list[ScheduledGame]:
    """Return the games with ann in the seats of dee, and dee in the seats of ann."""
    swap = {"ann@1.0": "dee@1.0", "dee@1.0": "ann@1.0"}
    return [replace(row, bots=tuple(swap.get(bot, bot) for bot in row.bots)) for row in rows]


def played(game: ScheduledGame) -> GameRecord:
    """Return a record of the game in which the stand-in made all decisions."""
    rules = RULESETS["classic"]
    deck = deals.deck(SEED, game.deal_id, rules)
    run = Game(rules, len(game.bots), deck)
    moves = []
    while (decision := run.decision) is not None:
        action = stand_in_action(decision)
        run.apply(action)
        moves.append(Move(decision.seat, action, 250 + decision.seat, 0, stand_in=False))
    return GameRecord(
        game_id=game.game_id,
        ruleset=rules,
        seating=tuple(map(BotId.parse, game.bots)),
        deck=deck,
        moves=tuple(moves),
        faults=(),
        termination=run.outcome.termination,
        scores=run.outcome.scores,
        ranks=run.outcome.ranks,
        forfeited=(),
        usage=tuple(Usage(0.01 * seat, 2048 + seat) for seat in range(len(game.bots))),
        clocks=Clocks(),
        max_strikes=3,
        isolation="none",
        started_at_us=1_700_000_000_000_000,
        duration_us=31_000,
        machine=MACHINE,
    )


def faulty(record: GameRecord) -> GameRecord:
    """Return the same record with a strike of seat 0 and a forfeit of seat 1."""
    strike = Evidence(detail="too late", elapsed_us=77)
    crash = Evidence(detail="gone", signal="SIGSEGV", exit_code=None, stderr_tail="Ouch\n")
    return replace(
        record,
        faults=(
            Fault(0, Cause.TIMEOUT, forfeit=False, move=0, evidence=strike),
            Fault(1, Cause.CRASH, forfeit=True, move=1, evidence=crash),
        ),
        ranks=(1, 3, 1),
        forfeited=(1,),
    )


def filled(
    league: League, name: str = "cup", matches: int = 2, kind: Deals = Deals.SAME
) -> list[ScheduledGame]:
    """Store missing bots and a tournament; return its schedule."""
    there = league.bots()
    for each in map(bot, NAMES):
        if each not in there:
            add_bot(league, each)
    rows = schedule(name, matches, kind=kind)
    league.add_tournament(tournament(name), rows)
    return rows
