"""Provide the SDK: everything that a bot in Python needs.

This is a complete bot:

    from referee.sdk import Action, Request, run

    def decide(request: Request) -> Action:
        return request.legal[0]

    if __name__ == "__main__":
        run(decide)

If your bot must remember something during a game, write a subclass of `Bot`. The SDK creates one instance of the
subclass for each game. `sample_bots/` has bots to learn from.

Cards are numbers: 1 to 13, `JOKER` (14), `HIDDEN` (0). A multiset of cards is a tuple of 15 counts,
indexed by card: `request.view.hand[7]` is how many sevens you hold.

Layers, actions, events and rulesets are the types of `referee.rules`. Each `Request`, `View`, `Game` and `Result`
has a protobuf message of the referee as `.message`, and decodes a value of the message when the bot reads the value.

With `referee.sdk.simulate`, your bot can look ahead. `simulate` draws at random the cards that your seat cannot see, and
returns a game that your bot can play on. The docstring of `simulate` has an example.
`referee.sdk.env` writes views and actions as numbers, and lets a trained policy play.

`run` connects the bot to the gRPC stream of the process. `Session` is the bot's side of the protocol without any I/O: it
receives messages and returns messages.

Exit codes: 0 after the referee's goodbye or a SIGTERM, 1 when the bot raised an exception, 2 when the
program was not started by a referee, 3 when the stream broke.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, NoReturn, TypeVar, get_args

from referee.pb import play_pb2, table_pb2
from referee.protocol.values import KINDS_BACK, PROTOCOL_VERSION, action_message
from referee.rules.actions import Action, Choice, DecisionKind, DrawDisplay, Play, SnatchGhost
from referee.rules.events import (
    Discarded,
    DisplayRefilled,
    Drawn,
    Event,
    GameOver,
    GhostDeclined,
    GhostRefilled,
    GhostSnatched,
    Left,
    Passed,
    Played,
    Reclaimed,
    SlotCard,
    Snatched,
    Taken,
    Termination,
)
from referee.rules.ruleset import (
    HIDDEN,
    JOKER,
    EndOn,
    GhostOverflow,
    GhostSnatch,
    GhostStart,
    Layer,
    Ruleset,
)
from referee.sdk.bot import Bot, Clocks, Decide, Game, Result, bot_class
from referee.sdk.request import LegalActions, Request, View

__all__ = [
    "HIDDEN",
    "JOKER",
    "Action",
    "Bot",
    "Choice",
    "Clocks",
    "Decide",
    "DecisionKind",
    "Discarded",
    "DisplayRefilled",
    "DrawDisplay",
    "Drawn",
    "EndOn",
    "Event",
    "Game",
    "GameOver",
    "GhostDeclined",
    "GhostOverflow",
    "GhostRefilled",
    "GhostSnatch",
    "GhostSnatched",
    "GhostStart",
    "Layer",
    "Left",
    "LegalActions",
    "Passed",
    "Play",
    "Played",
    "Reclaimed",
    "Request",
    "Result",
    "Ruleset",
    "Session",
    "SlotCard",
    "SnatchGhost",
    "Snatched",
    "Taken",
    "Termination",
    "View",
    "run",
]

METHOD = "/linko.v1.RefereeService/Play"
NO_REFEREE = 2
STREAM_BROKEN = 3
_CLOSING_S = 1.0
"""After the goodbye, the bot waits at most this number of seconds until the referee closes the stream."""
_PART_S = 0.05
"""How many seconds the SDK collects replies, if the bot decides the requests of a message one after the other. After each
decision, the SDK sends the replies so far if more than this time has passed since it last sent replies, or since the first
decision began if it has sent none. Otherwise they wait for the next decision. If that takes too long, they are late too."""
_ACTIONS = get_args(Action)
_WithEvents = TypeVar("_WithEvents", play_pb2.Request, play_pb2.GameEnd)


class Session:
    """Play all games of one bot process, message by message.

    Args:
        bot: a subclass of `Bot`, or a function that takes a request and returns an action.
    """

    # Each game:   unknown --game_start/ready--> open --game_end--> unknown
    #                                            | ^
    #                                            +-+ request/reply

    def __init__(self, bot: type[Bot] | Decide) -> None:
        self._class = bot_class(bot)
        self._games: dict[str, tuple[Game, Bot]] = {}
        """The open games, by id."""
        self._missed: dict[str, list[table_pb2.Event]] = {}
        """By game id: the events of requests that the bot did not get, because the SDK does not know the kind of decision."""

    def receive(self, message: play_pb2.RefereeMessage) -> play_pb2.BotMessage:
        """Handle a message of the referee and return the bot's message, which is empty if the bot has nothing to say.

        Exceptions of the bot are passed on. Only a StopIteration becomes a RuntimeError, because Python does not let it out of
        a generator. Raises KeyError when the message names a game that is not open, ValueError when the bot does not return
        one action for each request, and TypeError when the bot returns something that is no action.
        """
        whole = play_pb2.BotMessage()
        for part in self.receive_in_parts(message):
            whole.MergeFrom(part)
        return whole

    def receive_bytes(self, message: bytes) -> bytes:
        """Do the same as `receive` with serialised messages, for a bot in the caller's own process, as in `referee.train`."""
        return self.receive(play_pb2.RefereeMessage.FromString(message)).SerializeToString()

    def receive_in_parts(self, message: play_pb2.RefereeMessage) -> Iterator[play_pb2.BotMessage]:
        """Do the same as `receive`, but yield the bot's message in parts, so that few replies wait for slow decisions.

        There are several parts in two cases only: if the bot decides one request after the other and takes longer than
        `_PART_S`, or if the message has requests and also ends games. In the first case, parts are yielded between
        decisions, so a reply waits for at most one slow decision. In the second case, the replies are yielded before the SDK
        calls `Bot.end`, because `Bot.end` may take long.

        If the message has no requests, `Ready` is yielded after `Bot.end` has returned. The reason is that `Bot.end` may end
        the process, and a bot must not exit after its `Ready`.
        """
        reply = play_pb2.BotMessage()
        for start in message.game_starts:
            game, bot = Game(start), self._class()
            self._games[game.id] = game, bot
            bot.start(game)
            reply.ready.add(game_id=game.id)
        if self._class.decide_batch.__func__ is not Bot.decide_batch.__func__:  # type: ignore[attr-defined]
            self._decide(message.requests, reply)
        else:
            began_s = time.monotonic()
            for request in message.requests:
                self._decide((request,), reply)
                if time.monotonic() - began_s > _PART_S:
                    yield reply
                    reply, began_s = play_pb2.BotMessage(), time.monotonic()
        if message.game_ends and reply.replies:
            yield reply
            reply = play_pb2.BotMessage()
        for end in message.game_ends:
            game, bot = self._games.pop(end.game_id)
            bot.end(Result(self._add_missed(end), game))
        yield reply

    def _decide(self, messages: Sequence[play_pb2.Request], reply: play_pb2.BotMessage) -> None:
        """Add the bot's actions to `reply`.

        If this SDK does not know the kind of a decision, it replies with the first legal action. The bot gets the events of
        that request with the next request of the same game, or with its result.
        """
        requests = [
            Request(self._add_missed(request), *self._games[request.game_id])
            for request in messages
            if request.kind in KINDS_BACK
        ]
        returned: object = self._class.decide_batch(requests) if requests else ()
        if not isinstance(returned, Iterable):
            raise TypeError(
                f"decide_batch returned {returned!r}; it must return one action for each request"
            )
        actions = list(returned)
        if len(actions) != len(requests):
            raise ValueError(
                "decide_batch must return one action for each request:"
                f" it got {len(requests)} and returned {len(actions)}"
            )
        action_messages = map(_action_message, actions)
        for request in messages:
            if request.kind in KINDS_BACK:
                action = next(action_messages)
            else:
                action = request.legal[0]
                self._missed.setdefault(request.game_id, []).extend(request.events)
            reply.replies.add(
                game_id=request.game_id, decision_id=request.decision_id, action=action
            )

    def _add_missed(self, message: _WithEvents) -> _WithEvents:
        """Return the message with the missed events of its game before its own events."""
        missed = self._missed.pop(message.game_id, None)
        if missed is None:
            return message
        whole = type(message)(events=missed)
        whole.MergeFrom(message)
        return whole


def _action_message(action: Action | table_pb2.Action) -> table_pb2.Action:
    """Return an action as a message. Raises TypeError for anything that is no action."""
    if isinstance(action, table_pb2.Action):
        return action
    if isinstance(action, _ACTIONS):
        with suppress(AttributeError, TypeError, ValueError):  # such as `DrawDisplay(-1)`
            return action_message(action)
    raise TypeError(
        f"the bot returned {action!r}, which is no action; return an item of request.legal"
    )


def run(
    bot: type[Bot] | Decide, *, max_games: int = 1, batch_wait_us: int = 0, name: str = ""
) -> NoReturn:
    """Play for the referee that started this program, then exit.

    Args:
        bot: a subclass of `Bot`, or a function that takes a request and returns an action.
        max_games: how many games this process can play at the same time. If `max_games` is above 1, the referee
            may send requests of several games in one message. `Bot.decide_batch` gets all requests of a message.
        batch_wait_us: how many microseconds a request may wait for requests of other games, so that the referee can
            send more requests in one message. The wait counts as your time.
        name: the bot's name in logs; if empty, the name of the program's folder.

    An exception of the bot is printed and ends the process with exit code 1. The traceback begins with the bot's own
    code; see `_print_exception`.
    """
    address = os.environ.get("REFEREE_ADDRESS")
    token = os.environ.get("REFEREE_TOKEN")
    if not address or token is None:
        _print_error("this program is a bot: start it with `referee play …`")
        sys.exit(NO_REFEREE)
    hello = play_pb2.Hello(
        protocol_version=PROTOCOL_VERSION,
        token=token,
        name=name or _program_folder(),
        max_games=max_games,
        batch_wait_us=batch_wait_us,
    )
    # Set this before gRPC is imported. The fork handlers of gRPC crash or block a bot that forks, for example with a pool of
    # `multiprocessing`. They are not needed: only the process that calls `run` uses gRPC, never a child process.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    signal.signal(signal.SIGTERM, _exit_at_once)
    if sys.excepthook is sys.__excepthook__:  # the bot has no hook of its own
        sys.excepthook = _print_exception
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            # Not `runner.run`: with it, Ctrl-C only cancels the task, which has no effect during a decision.
            runner.get_loop().run_until_complete(_play(address, hello, Session(bot)))
    except _StreamBrokenError as error:
        _print_error(f"the stream to the referee broke: {error}")
        sys.exit(STREAM_BROKEN)
    sys.exit(0)


class _StreamBrokenError(Exception):
    """The stream ended without a goodbye."""


# The stream:   connecting --hello--> playing --goodbye--> closing --> exit code 0
#                   |                    |
#                   +----stream breaks---+--> exit code 3


async def _play(address: str, hello: play_pb2.Hello, session: Session) -> None:
    """Play until the goodbye. Raises _StreamBrokenError when the stream ends without a goodbye."""
    import grpc  # noqa: PLC0415 - see `run`

    async with grpc.aio.insecure_channel(address) as channel:
        play: Any = channel.stream_stream(
            METHOD,
            request_serializer=play_pb2.BotMessage.SerializeToString,
            response_deserializer=play_pb2.RefereeMessage.FromString,
        )
        stream = play()
        await _stream_operation(stream.write(play_pb2.BotMessage(hello=hello)))
        messages = aiter(stream)  # `stream.read` would return no more messages after a failed write
        can_write = True
        while True:
            message = await _stream_operation(anext(messages, None))
            if not isinstance(message, play_pb2.RefereeMessage):
                raise _StreamBrokenError("the referee closed it")
            if can_write:
                can_write = await _write_replies(stream, session.receive_in_parts(message))
            if message.HasField("goodbye"):
                break
        if message.goodbye.reason:
            _print_error(f"the referee said goodbye: {message.goodbye.reason}")
        await stream.done_writing()
        await asyncio.wait([asyncio.ensure_future(stream.code())], timeout=_CLOSING_S)


async def _write_replies(stream: Any, replies: Iterable[play_pb2.BotMessage]) -> bool:
    """Write the replies that are not empty. Return False if the stream is broken; a goodbye may still be unread."""
    try:
        for reply in replies:
            if reply.ready or reply.replies:
                await _stream_operation(stream.write(reply))
    except _StreamBrokenError:
        return False
    return True


async def _stream_operation(operation: Awaitable[Any]) -> Any:
    """Await a read or write of the stream and return its result.

    Raises _StreamBrokenError when gRPC reports an error.
    """
    import grpc  # noqa: PLC0415 - see `run`

    try:
        return await operation
    except grpc.aio.AioRpcError as error:
        raise _StreamBrokenError(f"{error.code().name}: {error.details()}") from None
    except asyncio.InvalidStateError:
        raise _StreamBrokenError("the referee closed it") from None


def _program_folder() -> str:
    # Importing pathlib would take 3 ms at each start-up.
    name = os.path.basename(os.path.dirname(os.path.realpath(sys.argv[0])))  # noqa: PTH119, PTH120
    return os.fsencode(name).decode(errors="replace")  # a message holds only UTF-8


def _exit_at_once(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Exit with code 0 after a SIGTERM, even in the middle of a decision.

    `sys.exit` would be too slow: a bare `except` of the bot catches `SystemExit`, and Python waits for running threads.
    """
    for output in (sys.stdout, sys.stderr):
        with suppress(Exception):  # for example if the signal came in the middle of a write
            output.flush()
    os._exit(0)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the function that creates uvloop's event loop; None if uvloop is not installed."""
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return uvloop.new_event_loop


def _print_exception(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print an exception that nobody has caught, without the frames of the SDK and of asyncio that called the bot.

    The hook changes only what is printed: the exception is still uncaught, so a debugger stops at it.

    The printed traceback begins with the first code outside of the SDK that `Session.receive_in_parts` called, usually the
    bot's. If there is no such code, the whole traceback is printed.
    """
    import traceback  # noqa: PLC0415 - would take time at each start-up

    own = trace
    while own is not None and own.tb_frame.f_code is not Session.receive_in_parts.__code__:
        own = own.tb_next
    sdk = os.path.dirname(__file__)  # noqa: PTH120 - see `_program_folder`
    while own is not None and own.tb_frame.f_code.co_filename.startswith(sdk):
        own = own.tb_next
    cause = error.__cause__
    if own is None and isinstance(cause, StopIteration):  # the bot's; see `Session.receive`
        _print_exception(type(cause), cause, cause.__traceback__)
        return
    traceback.print_exception(kind, error, own or trace)


def _print_error(line: str) -> None:
    sys.stderr.write(line + "\n")
