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
"""

from referee.rules.actions import Action, Choice, DecisionKind, DrawDisplay, Play, SnatchGhost
from referee.rules.cards import HIDDEN, JOKER, Layer
from referee.rules.events import (
    Discarded,
    DisplayRefilled,
    Drawn,
    Event,
    GameOver,
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
from referee.rules.ruleset import EndOn, Ruleset
from referee.sdk.bot import Bot, Clocks, Decide, Game, Result
from referee.sdk.client import Session, run
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
    "GhostRefilled",
    "GhostSnatched",
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
