"""Run a bot with one mistake that a check must find: `bot.py NAME`.

NAME is the name of a class below, or of one in `tests/misbehaving/bot.py`, in small letters with `_` between
words.
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
    """Chooses the first legal action, which is correct."""

    def reply(self, request, action=None):
        return super().reply(request, request.legal[0] if action is None else action)


class HoldsFour(Plain):
    """Plays up to four games at once, which is correct."""

    async def greet(self):
        await self.say(hello=misbehaving.hello(max_games=HELD))


class IsByChance(Plain):
    """Chooses differently each time, which is correct."""

    def reply(self, request, action=None):
        return super().reply(request, action or random.SystemRandom().choice(request.legal))


class TakesItsTime(Plain):
    """Waits before each reply, within the limit."""

    async def answer(self, request):
        await asyncio.sleep(0.005)
        await super().answer(request)


class PrintsForEver(Plain):
    """Prints without end from a child process, which it ends before it exits."""

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


class NeverPasses(Plain):
    """Takes every action of a ghost set for a set of the ghost."""

    def reply(self, request, action=None):
        if request.kind == table_pb2.DECISION_KIND_GHOST_SET:
            value = request.legal[-1].ghost_value
            action = table_pb2.Action(ghost_value=value)
        return super().reply(request, action)


class IsWrongInExpert(Plain):
    async def prepare(self, start):
        self.wrong = start.ruleset.name == "expert"
        await super().prepare(start)

    def reply(self, request, action=None):
        wrong = self.wrong and request.kind == table_pb2.DECISION_KIND_DRAW
        return super().reply(request, NONSENSE if wrong else action)


class PlaysOneGame(Plain):
    """Crashes if a game starts while another one is open: the hello allows one game at a time."""

    async def greet(self):
        await super().greet()
        read, games = self.stream.read, set()

        async def read_and_count():
            data = await read()
            message = play_pb2.RefereeMessage.FromString(data)
            games.difference_update(each.game_id for each in message.game_ends)
            games.update(each.game_id for each in message.game_starts)
            if len(games) > 1:
                raise LookupError("two games at once")
            return data

        self.stream.read = read_and_count


class NamesTheLastGame(HoldsFour):
    """Names the game that started last in every reply except the first one of each game."""

    async def prepare(self, start):
        self.last = start.game_id
        await super().prepare(start)

    def reply(self, request, action=None):
        if request.decision_id > 1:
            request.game_id = self.last
        return super().reply(request, action)


class AnswersOneRequest(HoldsFour):
    """Answers only the first request of a message."""

    def choose(self, requests):
        return requests[:1]


class ExitsWithManyRequests(HoldsFour):
    """Exits when it gets several requests in one message."""

    def choose(self, requests):
        if len(requests) > 1:
            misbehaving.complain("too many")
            os._exit(3)
        return requests


class MixesItsGames(HoldsFour):
    """Chooses by the number of requests in all games together."""

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
