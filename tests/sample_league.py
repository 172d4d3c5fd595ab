"""Make a league with a small tournament that the stand-in plays, without any process."""

from __future__ import annotations

import asyncio
from pathlib import Path

from referee import deals
from referee.match import stand_in_action
from referee.records import GameRecord, Move, Usage
from referee.roster.roster import Roster
from referee.roster.workshop import Workshop
from referee.rules.game import Game
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store.league import League
from referee.tournament.archive_writer import export_archive
from referee.tournament.config_reader import load_tournament
from referee.tournament.create import create_tournament

SAMPLE_BOTS = Path(__file__).parents[1] / "sample_bots"
BOTS = ("greedy", "random", "bait")
SEED = bytes(range(32))
FILE = f"""
name = "cup"
ruleset = "classic"
seats = 2
matches = 2
bots = [{", ".join(f'"{SAMPLE_BOTS / bot}"' for bot in BOTS)}]

[[stage]]

[[stage]]
ruleset = "duel"
matches = 1
"""
GAMES = 3 * 2 * (2 + 1)
NOW_US = 1_800_000_000_000_000


class SampleLeague:
    """A league with a tournament; `play` plays its games with the stand-in in every seat."""

    def __init__(self, folder, file_name="cup.toml", seed=SEED):
        self._seed = seed
        self.league = League.open(folder / "league", create=True)
        workshop = Workshop(self.league.folder, ProcessGroupLauncher(), on_build=None)
        self.roster = Roster(self.league, workshop)
        file = folder / file_name
        file.write_text(FILE)
        specs = [
            asyncio.run(self.roster.submit(SAMPLE_BOTS / bot, now_us=NOW_US)).spec for bot in BOTS
        ]
        self.tournament = create_tournament(
            self.league, load_tournament(file), specs, seed=seed, now_us=NOW_US
        )

    def play(self, games):
        """Play and store some games: `games` is a slice of the schedule."""
        self.league.add_games(map(self.make_record, self.tournament.schedule[games]))

    def make_record(self, game):
        """Return the record of a game that the stand-in plays in every seat."""
        ruleset = self.tournament.config.stages[game.stage].ruleset
        deck = deals.deck(self._seed, game.deal_id, ruleset)
        run = Game(ruleset, len(game.bots), deck)
        moves = []
        while (decision := run.decision) is not None:
            action = stand_in_action(decision)
            run.apply(action)
            moves.append(Move(decision.seat, action, 250, 0, stand_in=False))
        config = self.tournament.config
        return GameRecord(
            game_id=game.game_id,
            ruleset=ruleset,
            seating=tuple(self.tournament.bots[bot] for bot in game.bots),
            deck=deck,
            moves=tuple(moves),
            faults=(),
            termination=run.outcome.termination,
            scores=run.outcome.scores,
            ranks=run.outcome.ranks,
            forfeited=(),
            usage=(Usage(0.02, 3072),) * len(game.bots),
            clocks=config.clocks,
            max_strikes=config.faults.max_strikes,
            isolation="none",
            started_at_us=NOW_US,
            duration_us=31_000,
        )

    def export(self):
        return export_archive(self.league, self.roster, "cup")
