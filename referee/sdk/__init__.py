"""What a bot author writes against.

A whole bot:

    from referee.sdk import Action, Request, run

    def decide(request: Request) -> Action:
        return request.legal[0]

    if __name__ == "__main__":
        run(decide)

A bot that wants to remember something within a game is a subclass of `Bot`: there is one instance for
every game, so that games played at the same time cannot mix. `sample_bots/` has bots to learn from.

Cards are numbers: 1 to 13, `JOKER` (14), `HIDDEN` (0). A multiset of cards is a tuple of 15 counts,
indexed by card: `request.view.hand[7]` is how many sevens you hold.

The kit has none of the referee's own parts but the generated messages: it would work the same on a
machine that has only the kit. What it wraps stays in reach as `.message`, and it decodes nothing
before it is asked for.
"""

from referee.sdk.actions import Action, Choice, DecisionKind, DrawDisplay, Play, SnatchGhost
from referee.sdk.bot import Bot, Decide
from referee.sdk.cards import HIDDEN, JOKER, Layer
from referee.sdk.client import run
from referee.sdk.events import (
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
from referee.sdk.game import Clocks, EndOn, Game, Result, Ruleset
from referee.sdk.request import LegalActions, Request
from referee.sdk.session import Session
from referee.sdk.view import View

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
