"""Update the worked exchange of `proto/README.md`: `.venv/bin/python proto/exchange.py`.

Every JSON block of the guide follows a comment that names its message and its place in the exchange,
`<!-- RefereeMessage: game start -->`. The messages are those of one fixed game, made by the referee's own
encoders. A test compares the guide with them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from referee import deals
from referee.clocks import SECOND_US, Clocks
from referee.match.play import GameSetup, RecordedGame, play_game
from referee.pb import play_pb2
from referee.protocol import messages
from referee.protocol.values import PROTOCOL_VERSION, action_message
from referee.records import BotId, Reply, Request
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS

GUIDE = Path(__file__).with_name("README.md")
BLOCK = re.compile(
    r"<!-- (?P<message>\w+): (?P<key>[\w ]+) -->\n```json\n(?P<json>.*?)```\n", re.DOTALL
)
WIDTH = 98
"""The longest line of JSON, in characters."""

SEED = bytes(32)
DEAL = "example-3673"
"""The first four decisions of `SEAT` in this deal are of four kinds, and their messages are short."""
SEAT = 1
PLAYERS = 3
RULES = RULESETS["advanced"]
CLOCKS = Clocks(bank_us=30 * SECOND_US, increment_us=SECOND_US // 10)
GAME_ID = deals.opaque_id(SEED, DEAL)
DECISIONS = 4
"""The number of decisions in the guide."""


class Scripted:
    """A player that picks a legal action by a hash and records its decisions."""

    def __init__(self, deal: str, seat: int) -> None:
        self._name = f"{deal}/{seat}"
        self.decisions: list[tuple[Request, Reply]] = []

    async def decide(self, request: Request) -> Reply:
        """Pick an action by a hash of the deal, the seat and the number of the decision."""
        digest = hashlib.sha256(f"{self._name}/{request.number}".encode()).digest()
        action = request.decision.legal[
            int.from_bytes(digest[:4], "big") % len(request.decision.legal)
        ]
        reply = Reply(action, 300 + digest[4], 0)
        self.decisions.append((request, reply))
        return reply


def play(deal: str) -> tuple[RecordedGame, list[tuple[Request, Reply]]]:
    """Play one game of a deal; return it with the decisions of `SEAT`."""
    setup = GameSetup(
        game_id=deal,
        ruleset=RULES,
        seating=(BotId("scripted", "1.0"),) * PLAYERS,
        deck=deals.deck(SEED, deal, RULES),
        clocks=CLOCKS,
        max_strikes=3,
        isolation="none",
    )
    players = [Scripted(deal, seat) for seat in range(PLAYERS)]
    game = play_game(setup, players, now_us=int, monotonic_ns=int)
    return asyncio.run(game), players[SEAT].decisions


def exchange() -> Iterator[tuple[str, Message]]:
    """Yield the messages of the exchange in order, each with its key in the guide."""
    played, decisions = play(DEAL)
    hello = play_pb2.Hello(protocol_version=PROTOCOL_VERSION, name="mine", max_games=4)
    hello.token = "9f2c51d0e7"  # noqa: S105 - an example
    yield "hello", play_pb2.BotMessage(hello=hello)
    game_start = messages.game_start(
        GAME_ID,
        rules=RULES,
        view=Game(RULES, PLAYERS, played.record.deck).view(SEAT),
        clocks=CLOCKS,
        seed=deals.bot_seed(SEED, DEAL, SEAT),
        names=(),
        max_strikes=3,
    )
    yield "game start", play_pb2.RefereeMessage.FromString(game_start)
    yield "ready", play_pb2.BotMessage(ready=[play_pb2.Ready(game_id=GAME_ID)])
    encoder = messages.RequestEncoder(GAME_ID)
    for number, (request, decided) in enumerate(decisions[:DECISIONS], start=1):
        yield f"request {number}", play_pb2.RefereeMessage.FromString(encoder.encode(request))
        reply = play_pb2.Reply(
            game_id=GAME_ID, decision_id=request.number, action=action_message(decided.action)
        )
        yield f"reply {number}", play_pb2.BotMessage(replies=[reply])
    game_end = messages.game_end(
        GAME_ID, played.unseen_events[SEAT], played.record.ranks, "", forfeited=False
    )
    yield "game end and goodbye", play_pb2.RefereeMessage.FromString(game_end + messages.goodbye())


def to_json(message: Message) -> str:
    """Write a message in protobuf's JSON on few lines, with the field names of the schema."""
    return _layout(MessageToDict(message, preserving_proto_field_name=True), indent=0) + "\n"


def _layout(value: Any, indent: int, before: int = 0) -> str:
    """Keep a value on one line if it fits; fill lines with the short items of a list."""
    flat = json.dumps(value, ensure_ascii=False)
    if indent + before + len(flat) <= WIDTH or not isinstance(value, dict | list):
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        items = [
            f"{json.dumps(key)}: {_layout(item, indent + 2, len(key) + 5)}"
            for key, item in value.items()
        ]
        return "{\n" + ",\n".join(pad + item for item in items) + f"\n{' ' * indent}}}"
    lines: list[str] = []
    for item in (_layout(item, indent + 2, 1) for item in value):
        if lines and "\n" not in lines[-1] + item and len(lines[-1]) + len(item) + 3 <= WIDTH:
            lines[-1] += f", {item}"
        else:
            lines.append(pad + item)
    return "[\n" + ",\n".join(lines) + f"\n{' ' * indent}]"


def update_guide(guide: str) -> str:
    """Return the guide with current JSON blocks. Raises KeyError for an unknown block."""
    found = dict(exchange())
    return BLOCK.sub(
        lambda block: (
            f"<!-- {block['message']}: {block['key']} -->\n"
            f"```json\n{to_json(found[block['key']])}```\n"
        ),
        guide,
    )


if __name__ == "__main__":
    GUIDE.write_text(update_guide(GUIDE.read_text()))
