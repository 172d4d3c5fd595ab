"""Run a bot that misbehaves on purpose: `bot.py NAME` plays correctly except for what NAME says.

Each bot is a class below. NAME is the name of the class in small letters, with `_` between words. The bots use
gRPC directly, without the SDK. Each one writes its name to standard error, where a test looks for it. `Fair`
does nothing wrong; the others play against it.
"""

import asyncio
import ctypes
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import grpc

from referee.pb import play_pb2, table_pb2

METHOD = "/linko.v1.RefereeService/Play"
AT = 3
"""The number of the bot's request in a game at which it misbehaves, from 1."""
FOREVER_S = 1_000_000
ODD_SIGNAL = 40
"""A real-time signal, which has no name."""


class Fair:
    """Replies to every request with a random legal action."""

    async def run(self):
        self.chance = random.Random(1)
        async with grpc.aio.insecure_channel(os.environ["REFEREE_ADDRESS"]) as self.channel:
            self.stream = self.channel.stream_stream(METHOD)()
            await self.greet()
            while isinstance(data := await self.stream.read(), bytes):
                message = play_pb2.RefereeMessage.FromString(data)
                for start in message.game_starts:
                    self.asked = 0
                    await self.prepare(start)
                for request in self.choose(message.requests):
                    self.asked += 1
                    await self.answer(request)
                if message.HasField("goodbye"):
                    await self.leave()
                    return

    def choose(self, requests):
        """Return the requests to answer."""
        return requests

    async def greet(self):
        await self.say(hello=hello())

    async def prepare(self, start):
        await self.say(ready=[play_pb2.Ready(game_id=start.game_id)])

    async def answer(self, request):
        await self.say(replies=[self.reply(request)])

    async def leave(self):
        await self.stream.done_writing()

    async def say(self, **fields):
        await self.stream.write(play_pb2.BotMessage(**fields).SerializeToString())

    def reply(self, request, action=None):
        return play_pb2.Reply(
            game_id=request.game_id,
            decision_id=request.decision_id,
            action=self.chance.choice(request.legal) if action is None else action,
        )


class HoldsFourGames(Fair):
    """Plays up to four games at once, which is allowed."""

    async def greet(self):
        await self.say(hello=hello(max_games=4))


class Stateless(Fair):
    """Gives the same reply to the same request, whatever it has played before."""

    async def answer(self, request):
        self.chance.seed(len(request.legal))
        await super().answer(request)


class TellsWhatItSees(Fair):
    """Prints its environment and its file descriptors, so that a test can look for secrets in them."""

    def __init__(self):  # runs before the event loop, which has file descriptors of its own
        complain(dict(os.environ))
        links = [(each, f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")]
        opened = [(each, os.readlink(link)) for each, link in links if os.path.exists(link)]
        # libffi, which ctypes loads, may keep its own library open
        complain(sorted(each for each, target in opened if ".so" not in target))

    async def run(self):
        sys.exit(1)


class GoesWrong(Fair):
    """Misbehaves at one request of each game."""

    async def answer(self, request):
        if self.asked == AT:
            await self.go_wrong(request)
        else:
            await super().answer(request)


class GoesWrongForGood(Fair):
    """Misbehaves from one request of each game on."""

    async def answer(self, request):
        if self.asked >= AT:
            await self.go_wrong(request)
        else:
            await super().answer(request)


def hello(*, version=1, token=None, max_games=1):
    token = os.environ["REFEREE_TOKEN"] if token is None else token
    return play_pb2.Hello(protocol_version=version, token=token, name="x", max_games=max_games)


def complain(line):
    os.write(2, f"{line}\n".encode())


# Start-up


class ExitsWith0(Fair):
    async def run(self):
        sys.exit(0)


class ExitsWith1(Fair):
    async def run(self):
        raise RuntimeError("no model file")


class CrashesAtStart(Fair):
    async def run(self):
        crash()


class DiesOfOddSignalAtStart(Fair):
    async def run(self):
        os.kill(os.getpid(), ODD_SIGNAL)


class HangsAtStart(Fair):
    async def run(self):
        time.sleep(FOREVER_S)


class SaysNoHello(Fair):
    async def greet(self):
        await self.stream.wait_for_connection()


class ClosesBeforeHello(Fair):
    async def greet(self):
        await self.stream.done_writing()
        time.sleep(FOREVER_S)


class AnswersBeforeHello(Fair):
    async def greet(self):
        await self.say(ready=[play_pb2.Ready(game_id="x")])


class SaysGarbageForHello(Fair):
    async def greet(self):
        await self.stream.write(b"\xff" * 20)


class SpeaksVersion2(Fair):
    async def greet(self):
        await self.say(hello=hello(version=2))


class HasWrongToken(Fair):
    async def greet(self):
        await self.say(hello=hello(token="0" * 32))


class HasForeignToken(Fair):
    """Reads the token of another bot from the environment of its process."""

    async def greet(self):
        await self.say(hello=hello(token=foreign_token()))


class SpeaksHttp1(Fair):
    async def run(self):
        connect().sendall(b"GET / HTTP/1.1\r\nHost: referee\r\n\r\n")
        time.sleep(FOREVER_S)


class SpeaksNoise(Fair):
    async def run(self):
        connect().sendall(random.Random(1).randbytes(1 << 16))
        time.sleep(FOREVER_S)


class SaysPrefaceOnly(Fair):
    async def run(self):
        preface = connect()
        preface.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        time.sleep(FOREVER_S)


class HasHugeHeaders(Fair):
    """Opens a stream with more metadata than gRPC accepts."""

    async def run(self):
        async with grpc.aio.insecure_channel(os.environ["REFEREE_ADDRESS"]) as channel:
            await channel.stream_stream(METHOD)(metadata=[("x", "x" * 100_000)]).code()
            await asyncio.sleep(FOREVER_S)


class StopsItselfAtStart(Fair):
    async def run(self):
        os.kill(os.getpid(), signal.SIGSTOP)


class ExitsAtStartBesideDaemon(Fair):
    """Exits while its daemon keeps both pipes open. The daemon could still say hello."""

    async def run(self):
        start_daemon()
        os._exit(0)


class NeverReady(Fair):
    async def prepare(self, start):
        pass


class ExitsAtGameStart(Fair):
    async def prepare(self, start):
        os._exit(4)


# The end of a process, or of its stream, in the middle of a game


class Segfaults(GoesWrong):
    async def go_wrong(self, request):
        crash()


class Aborts(GoesWrong):
    async def go_wrong(self, request):
        os.abort()


class ExitsWith3(GoesWrong):
    async def go_wrong(self, request):
        complain("last words " + "x" * 100_000 + " the end")
        os._exit(3)


class DiesOfOddSignal(GoesWrong):
    async def go_wrong(self, request):
        os.kill(os.getpid(), ODD_SIGNAL)


class ClosesStream(GoesWrong):
    async def go_wrong(self, request):
        await self.stream.done_writing()
        time.sleep(FOREVER_S)


class CancelsStream(GoesWrong):
    async def go_wrong(self, request):
        self.stream.cancel()
        await asyncio.sleep(FOREVER_S)


class CrashesBesideDaemon(GoesWrong):
    """Exits while its daemon keeps both pipes open. The referee must not wait for the end of the pipes."""

    async def go_wrong(self, request):
        start_daemon()
        os._exit(5)


class ExitsWith0BesideDaemon(GoesWrong):
    """Exits while its daemon keeps the pipes and the stream open."""

    async def go_wrong(self, request):
        start_daemon()
        os._exit(0)


class DiesWhileTalking(GoesWrong):
    """Exits after many unsolicited replies, before the referee has read them all."""

    async def go_wrong(self, request):
        request.game_id = "other"
        for _ in range(50):
            asyncio.ensure_future(self.say(replies=[self.reply(request)]))
        await asyncio.sleep(0)
        os._exit(6)


# Time


class Hangs(GoesWrongForGood):
    async def go_wrong(self, request):
        time.sleep(FOREVER_S)


class RunsInCircles(GoesWrongForGood):
    async def go_wrong(self, request):
        while True:
            pass


class StopsItself(GoesWrongForGood):
    async def go_wrong(self, request):
        os.kill(os.getpid(), signal.SIGSTOP)


class IsLate(GoesWrong):
    """Replies late once in each game."""

    async def go_wrong(self, request):
        # on a busy machine, the referee's event loop may be late too
        time.sleep(request.time_left_us / 1e6 + 0.5)
        await self.say(replies=[self.reply(request)])


class IsAlwaysLate(GoesWrongForGood):
    async def go_wrong(self, request):
        time.sleep(request.time_left_us / 1e6 + 0.1)
        await self.say(replies=[self.reply(request)])


class ComputesWhileChildrenEnd(GoesWrong):
    """Computes beyond its deadline. Its child processes use CPU time at first, and end one by one around the deadline.

    SIGCHLD is ignored, so the kernel adds the CPU time of the children to no other process.
    """

    async def go_wrong(self, request):
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        deadline_s = time.monotonic() + request.time_left_us / 1e6
        for number in range(20):
            compute = "import os, time\nwhile time.process_time() < 0.03: pass"
            sleep = f"time.sleep({deadline_s - 0.005 + number * 0.0015} - time.monotonic())"
            subprocess.Popen([sys.executable, "-I", "-S", "-c", f"{compute}\n{sleep}\nos._exit(0)"])
        await asyncio.sleep(deadline_s - 0.01 - time.monotonic())
        while time.monotonic() < deadline_s + 0.2:
            pass
        await self.say(replies=[self.reply(request)])


class UsesUpItsBank(Fair):
    """Uses most of its bank for some decisions, and then waits longer than the rest of the bank."""

    async def answer(self, request):
        bank_s = request.bank_left_us / 1e6
        await asyncio.sleep(0.7 * bank_s if bank_s > 0.5 else bank_s + 1)
        await super().answer(request)


# Messages


class PlaysWhatItLacks(GoesWrong):
    async def go_wrong(self, request):
        layer = table_pb2.Layer(value=13, naturals=8, jokers=5)
        await self.say(replies=[self.reply(request, table_pb2.Action(play=layer))])


class PlaysOutOfRange(GoesWrong):
    async def go_wrong(self, request):
        layer = table_pb2.Layer(value=2**32 - 1, naturals=2**31, jokers=2**32 - 1)
        await self.say(replies=[self.reply(request, table_pb2.Action(play=layer))])


class DrawsOutOfRange(GoesWrong):
    async def go_wrong(self, request):
        draw = table_pb2.DrawDisplay(slot=2**32 - 1)
        await self.say(replies=[self.reply(request, table_pb2.Action(draw_display=draw))])


class AnswersInWrongKind(GoesWrong):
    async def go_wrong(self, request):
        await self.say(replies=[self.reply(request, table_pb2.Action(ghost_value=3))])


class AnswersWithUnknownChoice(GoesWrong):
    async def go_wrong(self, request):
        await self.say(replies=[self.reply(request, table_pb2.Action(choice=77))])


class AlwaysPlaysWhatItLacks(GoesWrongForGood):
    async def go_wrong(self, request):
        layer = table_pb2.Layer(value=13, naturals=8, jokers=5)
        await self.say(replies=[self.reply(request, table_pb2.Action(play=layer))])


class AnswersNothing(GoesWrong):
    async def go_wrong(self, request):
        await self.say(replies=[self.reply(request, table_pb2.Action())])


class SaysGarbage(GoesWrong):
    async def go_wrong(self, request):
        await self.stream.write(b"\xff" * 20)


class RepeatsItself(Fair):
    async def answer(self, request):
        reply = self.reply(request)
        await self.say(replies=[reply, reply])
        await self.say(replies=[reply])


class AnswersForOthers(Fair):
    async def answer(self, request):
        reply = self.reply(request)
        for other in (
            play_pb2.Reply(game_id="other", decision_id=reply.decision_id, action=reply.action),
            play_pb2.Reply(
                game_id=reply.game_id, decision_id=reply.decision_id + 1, action=reply.action
            ),
            play_pb2.Reply(game_id=reply.game_id, decision_id=0, action=reply.action),
        ):
            await self.say(replies=[other])
        await self.say(replies=[reply], ready=[play_pb2.Ready(game_id=reply.game_id)])


class FloodsReplies(GoesWrong):
    async def go_wrong(self, request):
        request.game_id = "other"
        while True:
            await self.say(replies=[self.reply(request)])


class FloodsInOneMessage(GoesWrong):
    async def go_wrong(self, request):
        await self.say(ready=[play_pb2.Ready()] * 1000)
        time.sleep(FOREVER_S)


class FloodsWithoutReading(GoesWrong):
    """Sends valid replies without end, and does not read its stream any more."""

    async def go_wrong(self, request):
        while True:
            await self.say(replies=[self.reply(request)])


class Says100KB(GoesWrong):
    async def go_wrong(self, request):
        await self.say(hello=play_pb2.Hello(name="x" * 100_000))


class Says5MB(GoesWrong):
    async def go_wrong(self, request):
        await self.say(hello=play_pb2.Hello(name="x" * 5_000_000))


class Says20MB(GoesWrong):
    async def go_wrong(self, request):
        await self.say(hello=play_pb2.Hello(name="x" * 20_000_000))


class OpensSecondStream(GoesWrong):
    """Opens a second stream and prints its status. This is no fault."""

    async def go_wrong(self, request):
        second = self.channel.stream_stream(METHOD)()
        with suppress(grpc.RpcError, grpc.aio.BaseError):  # the stream may already be refused
            await second.write(play_pb2.BotMessage(hello=hello()).SerializeToString())
        complain(f"second stream: {(await second.code()).name}")
        await self.say(replies=[self.reply(request)])


class OpensManySockets(GoesWrong):
    """Opens many sockets and keeps them open."""

    async def go_wrong(self, request):
        self.sockets = []  # closes those of the game before: a bot may have only 1024 open files
        self.sockets = [connect() for _ in range(900)]
        await self.say(replies=[self.reply(request)])


# Resources


class TakesMuchMemory(GoesWrong):
    async def go_wrong(self, request):
        self.hog = b"x" * (300 << 20)
        await asyncio.sleep(FOREVER_S)


class TakesMuchMemoryAtStart(Fair):
    async def greet(self):
        self.hog = b"x" * (300 << 20)
        await asyncio.sleep(FOREVER_S)


class TakesMuchMemoryInChildren(GoesWrong):
    """Starts children that together exceed the limit. They leave the session of the bot."""

    async def go_wrong(self, request):
        hog = f"import time; hog = b'x' * (100 << 20); time.sleep({FOREVER_S})"
        for _ in range(3):
            subprocess.Popen([sys.executable, "-c", hog], start_new_session=True)
        await asyncio.sleep(FOREVER_S)


class SharesMemoryWithChildren(Fair):
    """Shares its memory with children, so that all of them together need no more than the bot alone."""

    async def greet(self):
        self.shared = b"x" * (100 << 20)
        for _ in range(3):
            if os.fork() == 0:
                time.sleep(FOREVER_S)
        await super().greet()

    async def answer(self, request):
        if self.asked == AT:
            await asyncio.sleep(0.5)
        await super().answer(request)


class RunsManyProcesses(GoesWrong):
    async def go_wrong(self, request):
        for _ in range(60):
            subprocess.Popen(["sleep", str(FOREVER_S)])
        await asyncio.sleep(FOREVER_S)


class OpensManyFiles(GoesWrong):
    """Opens as many files as it can, and prints how many."""

    async def go_wrong(self, request):
        files = []
        with suppress(OSError):
            while True:
                files.append(os.open("/dev/null", os.O_RDONLY))
        complain(f"{files[-1] + 1} files are open")
        for file in files:
            os.close(file)
        await self.say(replies=[self.reply(request)])


class OpensManyStreams(GoesWrong):
    async def go_wrong(self, request):
        while True:
            streams = [self.channel.stream_stream(METHOD)() for _ in range(8)]
            await asyncio.gather(*(stream.code() for stream in streams))


class MakesNoiseBeside(GoesWrong):
    """Sends noise on further sockets. Its stream stays correct."""

    async def go_wrong(self, request):
        self.sockets = [connect() for _ in range(3)]
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        noise = random.Random(1).randbytes(1 << 16)
        for link, said in zip(self.sockets, (b"GET / HTTP/1.1\r\n\r\n", preface, noise)):
            with suppress(OSError):
                link.sendall(said)
        await self.say(replies=[self.reply(request)])


class SaysHelloAgain(Fair):
    """Sends another hello with every reply and after it."""

    async def answer(self, request):
        await self.say(hello=hello(max_games=9), replies=[self.reply(request)])
        await self.say(hello=hello(token="0" * 32))


class TalksNonsense(Fair):
    """Sends correct replies, and random messages for other games, other decisions, or noise.

    Start it as `talks_nonsense SEED`.
    """

    async def greet(self):
        self.nonsense = random.Random(sys.argv[2])
        await super().greet()

    async def answer(self, request):
        for _ in range(self.nonsense.randrange(3)):
            await self.stream.write(self.something(request))
        if self.nonsense.random() < 0.9:
            await super().answer(request)

    def something(self, request):
        say, reply = self.nonsense, self.reply(request)
        reply.game_id = say.choice((request.game_id, "", "other"))
        reply.decision_id += say.choice((-1, 0, 0, 1, 1000))
        said = play_pb2.BotMessage(
            replies=[reply] * say.randrange(3),
            ready=[play_pb2.Ready(game_id=request.game_id)] * say.randrange(2),
            hello=hello() if say.randrange(4) == 0 else None,
        )
        data = bytearray(said.SerializeToString())
        for _ in range(say.choice((0, 0, 1, 3))):
            data[say.randrange(len(data) + 1) :] = say.randbytes(say.randrange(20))
        return bytes(data)


# Output and files


class PrintsMuch(Fair):
    """Prints at least 8 MiB to each output, and for at least half a second, without a line end."""

    async def answer(self, request):
        if self.asked == AT:
            end_s = time.monotonic() + 0.5
            number = 0
            while number < 1 << 7 or time.monotonic() < end_s:
                os.write(1, b"o" * (1 << 16))
                os.write(2, b"e" * (1 << 16))
                number += 1
        await super().answer(request)


class PrintsForEver(Fair):
    """Prints without end from child processes."""

    async def greet(self):
        for descriptor in (1, 2):
            if os.fork() == 0:
                while True:
                    os.write(descriptor, b"x" * (1 << 16))
        await super().greet()


class PrintsBinary(GoesWrong):
    async def go_wrong(self, request):
        os.write(2, b"\x00\xff\xfe\x1b[2J\x1b]0;owned\x07\r\xe2\x80\xae\n" + bytes(range(256)))
        await self.say(replies=[play_pb2.Reply(game_id=request.game_id)])
        await self.say(replies=[self.reply(request, table_pb2.Action())])


class FillsScratch(GoesWrong):
    """Writes too much into several files of nested folders."""

    async def go_wrong(self, request):
        folder = Path(os.environ["TMPDIR"], "a", "b")
        folder.mkdir(parents=True)
        for number in range(5):
            (folder / str(number)).write_bytes(b"x" * (1 << 18))
        await asyncio.sleep(FOREVER_S)


class FillsScratchWithNames(GoesWrong):
    """Creates many empty files."""

    async def go_wrong(self, request):
        for number in range(300):
            Path(os.environ["TMPDIR"], str(number)).touch()
        await asyncio.sleep(FOREVER_S)


class FillsScratchInDeepFolders(GoesWrong):
    """Writes too much into a file whose path is longer than the kernel accepts."""

    async def go_wrong(self, request):
        os.chdir(dig(os.environ["TMPDIR"], "d" * 250, levels=20))
        Path("file").write_bytes(b"x" * (2 << 20))
        await asyncio.sleep(FOREVER_S)


class DigsDeepFolders(Fair):
    """Leaves folders that are 6,000 deep, and at the bottom a link and a locked folder."""

    async def greet(self):
        bottom = dig(os.environ["TMPDIR"], "d", levels=6_000)
        os.symlink(Path.cwd(), "link", dir_fd=bottom)
        os.mkdir("locked", 0, dir_fd=bottom)
        await super().greet()


def dig(folder, name, *, levels):
    """Make folders inside each other, and return a file descriptor of the innermost."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    return here


class LittersScratch(Fair):
    """Leaves a link that must not be followed, a pipe that must not be opened, and a locked folder."""

    async def greet(self):
        scratch = Path(os.environ["TMPDIR"])
        if list(scratch.iterdir()):
            complain("the scratch folder is not empty")
            os._exit(1)
        (scratch / "link").symlink_to(Path.cwd())
        os.mkfifo(scratch / "fifo")
        locked = scratch / "deep" / "deeper"
        locked.mkdir(parents=True)
        (locked / "file").write_bytes(b"x" * 1000)
        locked.chmod(0)
        await super().greet()


class AtRandom(Fair):
    """Misbehaves in three games of ten, each time in another way. Start it as `at_random SEED`.

    The seed of the game decides how, because each game may have another process.
    """

    async def greet(self):
        if random.Random().random() < 0.05:
            sys.exit(1)
        await super().greet()

    async def prepare(self, start):
        chance = random.Random(f"{sys.argv[2]} {start.seed}")
        ways = (GoesWrong, GoesWrongForGood, RepeatsItself, AnswersForOthers, LeavesZombies)
        wrong = [
            kind
            for name, kind in kinds().items()
            if issubclass(kind, ways) and name != "says_20_mb"
        ]
        kind = chance.choice(wrong) if chance.random() < 0.3 else Fair
        self.__class__ = type(
            kind.__name__, (AtRandom, kind) if kind is not Fair else (AtRandom,), {}
        )
        await super().prepare(start)


# Shutdown


class IgnoresGoodbye(Fair):
    async def run(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        await super().run()

    async def leave(self):
        time.sleep(FOREVER_S)


class StopsItselfAtGoodbye(Fair):
    async def leave(self):
        os.kill(os.getpid(), signal.SIGSTOP)


class LeavesDaemon(Fair):
    """Plays and exits correctly, but leaves a daemon that keeps both pipes open."""

    async def greet(self):
        start_daemon()
        await super().greet()


class LeavesChildren(GoesWrong):
    """Exits in a game and leaves children in its own process group."""

    async def go_wrong(self, request):
        for _ in range(3):
            if os.fork() == 0:
                time.sleep(FOREVER_S)
        os._exit(7)


class LeavesDisguisedDaemon(Fair):
    """Leaves a daemon that has neither the session nor the environment of the bot."""

    async def greet(self):
        start_daemon(lambda: os.execve("/bin/sleep", ["sleep", str(FOREVER_S)], {}))
        await super().greet()


class LeavesZombies(Fair):
    """Starts programs at every request that exit when no parent waits for them."""

    async def answer(self, request):
        for _ in range(3):
            start_daemon(lambda: os._exit(0))
        await super().answer(request)


class Ponders(Fair):
    """Computes all the time in two child processes. One of them has another parent and a session of its own."""

    async def run(self):
        start_daemon(compute)
        if os.fork() == 0:
            compute()
        await super().run()


class TicksAllTheTime(Fair):
    """Prints a dot each millisecond in two child processes, as a signal to its processes in other lanes."""

    async def run(self):
        start_daemon(tick)
        if os.fork() == 0:
            tick()
        await super().run()


class Searches(Fair):
    """Computes for 20 ms before each reply, which is allowed."""

    async def answer(self, request):
        until_s = time.monotonic() + 0.02
        while time.monotonic() < until_s:
            pass
        await super().answer(request)


class IsWrapped(Fair):
    """Plays in a child process of the process that the referee has started."""

    async def run(self):
        child = os.fork()
        if child == 0:
            os.execv(sys.executable, [sys.executable, __file__, "fair"])
        os.waitpid(child, 0)


def compute():
    while True:
        pass


def tick():
    while True:
        os.write(1, b".")
        time.sleep(0.001)


def crash():
    ctypes.string_at(0)


def connect():
    link = socket.socket(socket.AF_UNIX)
    link.connect(os.environ["REFEREE_ADDRESS"].removeprefix("unix:"))
    return link


def foreign_token(*, with_address=False):
    """Return the token of another bot of the same run; the folders of both bots have the same parent."""
    own = os.environ["REFEREE_TOKEN"]
    run = Path(os.environ["TMPDIR"]).parents[1]
    for process in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = process.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        seen = dict(each.split("=", 1) for each in variables if "=" in each)
        token = seen.get("REFEREE_TOKEN", own)
        if token != own and Path(seen.get("TMPDIR", "")).is_relative_to(run):
            return (token, seen["REFEREE_ADDRESS"]) if with_address else token
    raise LookupError("there is no other bot")


def start_daemon(live=lambda: time.sleep(FOREVER_S)):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            live()
        os._exit(0)
    os.wait()


def name_of(kind):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[a-z])(?=[0-9])", "_", kind.__name__).lower()


def kinds(kind=Fair):
    """Return every bot of this file by its name."""
    found = {name_of(kind): kind}
    for child in kind.__subclasses__():
        found |= kinds(child)
    return {name: each for name, each in found.items() if each not in (GoesWrong, GoesWrongForGood)}


if __name__ == "__main__":
    complain(f"I am {sys.argv[1]}")
    asyncio.run(kinds()[sys.argv[1]]().run())
