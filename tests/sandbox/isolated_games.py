"""Play games in this process under some isolation, with bots of `tests/misbehaving`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from descendants import running
from orders import game_order
from own_cgroups import own_cgroups
from strongest_isolation import strongest

from referee.bots import BotSpec
from referee.clocks import Clocks
from referee.match.replay import check_record
from referee.records import BotId
from referee.rules.ruleset import RULESETS
from referee.tournament.assignments import WorkerSettings
from referee.tournament.game_player import GamePlayer

FOLDER = Path(__file__).parents[1] / "misbehaving"
RULES = RULESETS["basic"].with_options(max_turns=12)
CLOCKS = Clocks(start_up_us=60_000_000, game_start_us=20_000_000, decision_us=20_000_000)
"""Limits that a healthy bot keeps even on a busy machine."""
SHORT = replace(CLOCKS, decision_us=1_500_000)


def spec(name, *arguments, program="burglar.py"):
    words = (sys.executable, program, name, *map(str, arguments))
    return BotSpec(BotId(name, "1"), FOLDER, words)


HEALTHY = replace(spec("fair", program="bot.py"), bot=BotId("healthy", "1"))
OTHER = replace(HEALTHY, bot=BotId("other", "1"))


class Games:
    """Plays games and checks at the end that nothing is left of them.

    Args:
        folder: where the folders of the bots are.
        isolation: the isolation of the bots; None for the strongest one.
    """

    def __init__(self, folder, isolation=None, *, pondering=False):
        self.isolation = strongest() if isolation is None else isolation
        self.folder = folder
        self.strangers = running()
        """Processes that other tests have left."""
        self.player = GamePlayer(
            WorkerSettings(
                cores=frozenset(),
                clocks=CLOCKS,
                max_processes=4,
                isolation=self.isolation,
                folder=folder,
                parent_pid=os.getpid(),
                pondering=pondering,
            )
        )
        self.number = 0

    async def play(self, *specs, clocks=CLOCKS, lane=0, deal=None, rules=RULES):
        self.number += 1
        order = game_order(
            str(self.number),
            rules,
            specs,
            clocks=clocks,
            max_strikes=2,
            isolation=self.isolation.summary,
            deal=deal,
        )
        (record,) = await self.player.play_all(lane, (order,))
        check_record(record)
        return record

    async def assert_healthy_game(self):
        record = await self.play(HEALTHY, OTHER)
        assert not record.faults

    async def each_seat(self, wrong, **options):
        """Yield the seat and the record of a game with `wrong` in each seat; play a healthy game after each.

        Asserts that no other bot is charged.
        """
        for seat in (0, 1):
            bots = [HEALTHY, HEALTHY]
            bots[seat] = wrong
            record = await self.play(*bots, **options)
            assert {fault.seat for fault in record.faults} <= {seat}, (
                "only the misbehaving bot is charged"
            )
            yield seat, record
            await self.assert_healthy_game()

    def process(self, spec, lane=0):
        return self.player._pool._processes[lane, str(spec.bot)]

    async def close(self):
        """Stop all bots, and assert that no process, folder or cgroup is left."""
        await self.player.close()
        self.player._launcher.reap()
        assert not running() - self.strangers
        assert not list(self.folder.iterdir())
        assert not own_cgroups()
