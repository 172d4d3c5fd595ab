"""Play a tournament without processes: the stand-in decides for every bot."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from referee.match import stand_in_action
from referee.records import GameRecord, Move
from referee.roster.roster import Roster
from referee.roster.workshop import Workshop
from referee.rules.game import Game
from referee.sandbox import NO_ISOLATION
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store.league import League
from referee.tournament.archive_writer import export_archive
from referee.tournament.assignments import AssignmentResult
from referee.tournament.conduct import Conductor
from referee.tournament.create import (
    create_tournament,
    enter_bots,
    find_state,
    find_tournament,
)
from referee.tournament.verify import verify_tournament
from referee.tournament.verify_league import LeagueTournament

SEED = bytes(range(32))


class StandIns:
    """A group of workers that plays every game with the stand-in at every seat."""

    stretch_s = 0.0

    def __len__(self):
        return 2

    async def submit(self, _number, assignment):
        await asyncio.sleep(0)
        return AssignmentResult(
            [play(task.setup) for bundle in assignment.bundles for task in bundle]
        )

    def list_hosts(self):
        return []

    def drain(self):
        pass

    def kill(self):
        pass


@asynccontextmanager
async def open_workers():
    yield StandIns()


def play(setup):
    """Return the record of a game that the stand-in plays in every seat."""
    run = Game(setup.ruleset, len(setup.seating), setup.deck)
    moves = []
    while (decision := run.decision) is not None:
        action = stand_in_action(decision)
        run.apply(action)
        moves.append(Move(decision.seat, action, 250, 0, stand_in=False))
    return GameRecord(
        game_id=setup.game_id,
        ruleset=setup.ruleset,
        seating=setup.seating,
        deck=setup.deck,
        moves=tuple(moves),
        faults=(),
        termination=run.outcome.termination,
        scores=run.outcome.scores,
        ranks=run.outcome.ranks,
        forfeited=(),
        usage=(None,) * len(setup.seating),
        clocks=setup.clocks,
        max_strikes=setup.max_strikes,
        isolation=setup.isolation,
        started_at_us=1_800_000_000_000_000,
        duration_us=31_000,
    )


class Cup:
    """A league with one tournament, `cup`, which is played by `StandIns`."""

    def __init__(self, folder, config):
        self.league = League.open(folder / "league", create=True)
        workshop = Workshop(self.league.folder, ProcessGroupLauncher(), on_build=None)
        self.roster = Roster(self.league, workshop)
        bots = asyncio.run(enter_bots(config, self.roster, now_us=0))
        create_tournament(self.league, config, bots, seed=SEED, now_us=0)

    def play(self, until=None, **options):
        """Play to the end, or until `until` games are stored; return True at the end."""
        conductor = None
        stored = self.league.tournament("cup").stored

        def count(_game, _record):
            nonlocal stored
            stored += 1
            if until is not None and stored >= until:
                conductor.drain()

        conductor = Conductor(
            self.league,
            find_tournament(self.league, "cup"),
            self.roster,
            NO_ISOLATION,
            open_workers(),
            on_game_stored=count,
            say=print,
            **options,
        )
        return asyncio.run(conductor.play_missing_games())

    @property
    def schedule(self):
        return self.league.schedule("cup")

    @property
    def stopped_after(self):
        return find_state(self.league, "cup").stopped_after

    def verify(self):
        return verify_tournament(LeagueTournament(self.league, "cup"))

    def export(self, folder):
        path = folder / "cup.zip"
        path.write_bytes(export_archive(self.league, self.roster, "cup").data)
        return path
