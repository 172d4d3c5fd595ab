"""No seat learns hidden cards from its messages: their bytes do not depend on those cards."""

from __future__ import annotations

import asyncio
import random

import pytest
from few_tables import few_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from playouts import POLICIES, anything, shuffled
from redeal import find_seat_that_tells_apart, play_log

from referee.clocks import Clocks
from referee.match import play
from referee.match.play import GameSetup, play_game
from referee.protocol import messages
from referee.protocol.view_bytes import ViewWriter
from referee.records import BotId, Reply, Request
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS

pytestmark = pytest.mark.unmeasured

CLOCKS = Clocks(bank_us=10**9)
GAME_ID = "g"


class StopPlaying(Exception):
    """All actions have been repeated."""


class Repeater:
    """A player that repeats the actions of a game and records every message to its seat."""

    def __init__(self, actions, encoder: messages.RequestEncoder) -> None:
        self._actions = actions
        self._encoder = encoder
        self.messages: list[bytes] = []

    async def decide(self, request: Request) -> Reply:
        self.messages.append(self._encoder.encode(request))
        try:
            return Reply(next(self._actions), request.number, 0)
        except StopIteration:
            raise StopPlaying from None


def list_messages(rules, players, deck, actions, seat) -> list[object]:
    """Return every message to a seat, from the start of the game to the last action."""
    start = messages.game_start(
        GAME_ID,
        rules=rules,
        view=Game(rules, players, deck).view(seat),
        clocks=CLOCKS,
        seed=1,
        names=(),
        max_strikes=3,
    )
    # As in a real game, one encoder writes to all seats, so that it could mix them up.
    encoder, script = messages.RequestEncoder(GAME_ID), iter(actions)
    repeaters = [Repeater(script, encoder) for _ in range(players)]
    setup = GameSetup(
        game_id=GAME_ID,
        ruleset=rules,
        seating=tuple(BotId(f"bot{number}", "1") for number in range(players)),
        deck=tuple(deck),
        clocks=CLOCKS,
        max_strikes=3,
        isolation="none",
    )
    try:
        played = asyncio.run(play_game(setup, repeaters, now_us=lambda: 0, monotonic_ns=lambda: 0))
    except StopPlaying:
        return [start, *repeaters[seat].messages]
    ranks = played.record.ranks
    end = messages.game_end(GAME_ID, played.unseen_events[seat], ranks, "", forfeited=False)
    return [start, *repeaters[seat].messages, end]


def find_leak(ruleset, players, seed, policy):
    rules, chance = ruleset.with_options(max_turns=60), random.Random(seed)
    deck = shuffled(rules, seed)
    log = play_log(rules, players, deck, lambda game: policy(game.decision, chance))
    return find_seat_that_tells_apart(
        rules, deck, log, players=players, chance=chance, testimony=list_messages
    )


@few_tables
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32), policy=st.sampled_from(POLICIES))
def test_messages_do_not_depend_on_hidden_cards(ruleset, players, seed, policy):
    assert find_leak(ruleset, players, seed, policy) is None


@pytest.mark.parametrize("name", RULESETS)
def test_referee_that_does_not_redact_is_found(name, monkeypatch):
    monkeypatch.setattr(play, "redact", lambda event, seat: event)  # noqa: ARG005
    found = (find_leak(RULESETS[name], 2, seed, anything) is not None for seed in range(20))
    assert any(found)


@pytest.mark.parametrize("name", RULESETS)
def test_encoder_that_mixes_up_seats_is_found(name, monkeypatch):
    """The broken encoder sends each seat the hand of the seat before."""
    write = ViewWriter.write

    def mixed_up(self, view):
        before, self.hand = getattr(self, "hand", view.hand), view.hand
        return write(self, view._replace(hand=before))

    monkeypatch.setattr(ViewWriter, "write", mixed_up)
    found = (find_leak(RULESETS[name], 2, seed, anything) is not None for seed in range(20))
    assert any(found)
