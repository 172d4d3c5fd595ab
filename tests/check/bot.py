"""Bots that a check must see through: `bot.py NAME`, one way to be wrong each, beside those of `misbehaving`.

The classes there and here have names of the same make, and can all be run by this file.
"""

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "misbehaving"))

import bot as misbehaving

from referee.pb import play_pb2, table_pb2

Fair = misbehaving.Fair
HELD = 4
NONSENSE = table_pb2.Action(ghost_value=13)


class Plain(Fair):
    """Nothing wrong: the first legal action."""

    def reply(self, request, action=None):
        return super().reply(request, request.legal[0] if action is None else action)


class HoldsFour(Plain):
    """Nothing wrong with that either."""

    async def greet(self):
        await self.say(hello=misbehaving.hello(max_games=HELD))


class IsByChance(Plain):
    """Nothing wrong: it answers differently each time."""

    def reply(self, request, action=None):
        return super().reply(request, action or random.SystemRandom().choice(request.legal))


class TakesItsTime(Plain):
    """Within the limit."""

    async def answer(self, request):
        await asyncio.sleep(0.005)
        await super().answer(request)


class PrintsForEver(Plain):
    """From a child, which goes with it."""

    async def greet(self):
        self.printer = await asyncio.create_subprocess_exec("yes")
        await super().greet()

    async def leave(self):
        self.printer.kill()
        await self.printer.wait()
        await super().leave()


class IsWrongWithGhosts(Plain):
    def reply(self, request, action=None):
        wrong = request.kind == table_pb2.DECISION_KIND_GHOST_SET
        return super().reply(request, NONSENSE if wrong else action)


class IsWrongInExpert(Plain):
    async def prepare(self, start):
        self.wrong = start.ruleset.name == "expert"
        await super().prepare(start)

    def reply(self, request, action=None):
        wrong = self.wrong and request.kind == table_pb2.DECISION_KIND_DRAW
        return super().reply(request, NONSENSE if wrong else action)


class NamesTheLastGame(HoldsFour):
    """Answers for whatever game began last."""

    async def prepare(self, start):
        self.last = start.game_id
        await super().prepare(start)

    def reply(self, request, action=None):
        request.game_id = self.last
        return super().reply(request, action)


class MixesItsGames(HoldsFour):
    """Counts the turns of all games together."""

    async def prepare(self, start):
        self.turns = 0
        await super().prepare(start)

    def reply(self, request, action=None):
        self.turns += 1
        return super().reply(request, action or request.legal[self.turns % len(request.legal)])


class CrashesWithTwo(Plain):
    async def answer(self, request):
        if len(request.view.tables) == 2:
            raise ZeroDivisionError("no third player")
        await super().answer(request)


class CrashesAtTheEnd(Plain):
    async def greet(self):
        await super().greet()
        read = self.stream.read

        async def read_and_look():
            data = await read()
            if play_pb2.RefereeMessage.FromString(data).game_ends:
                raise LookupError("no rank")
            return data

        self.stream.read = read_and_look


class ExitsAtGoodbye(Plain):
    async def leave(self):
        misbehaving.complain("cannot save the model")
        os._exit(3)


class IgnoresSigterm(Plain):
    async def greet(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        await super().greet()


class IgnoresGoodbyeAlone(Plain):
    async def leave(self):
        await asyncio.sleep(misbehaving.FOREVER_S)


if __name__ == "__main__":
    misbehaving.complain(f"I am {sys.argv[1]}")
    asyncio.run(misbehaving.kinds()[sys.argv[1]]().run())
