"""The SDK decodes the same values that the referee encoded, in whole random games."""

from __future__ import annotations

import itertools
import random

import pytest

from referee.clocks import Clocks, DecisionTime
from referee.pb import play_pb2, table_pb2
from referee.protocol import messages, values
from referee.records import Request
from referee.rules.events import redact
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, count_cards, full_deck, list_cards
from referee.sdk import (
    JOKER,
    Bot,
    Choice,
    DecisionKind,
    DrawDisplay,
    EndOn,
    GhostOverflow,
    GhostSnatch,
    GhostStart,
    Layer,
    Play,
    Session,
    SnatchGhost,
    Termination,
)
from referee.sdk import Game as BotGame
from referee.sdk import Result as BotResult

CHANGED_DUEL = RULESETS["duel"].with_options(
    ghost_start=GhostStart.AS_DEALT,
    ghost_snatch=GhostSnatch.OPTIONAL,
    ghost_overflow=GhostOverflow.LOWEST,
)
PAIRS = [(rules, 2 if rules.ghost else 4) for rules in (*RULESETS.values(), CHANGED_DUEL)]
CLOCKS = Clocks(start_up_us=1, game_start_us=2, decision_us=3, bank_us=4, increment_us=5)


class Recorder(Bot):
    """A bot that plays at random and records its requests and results."""

    received: list

    def start(self, game):
        self.game = game

    def decide(self, request):
        self.received.append(request)
        return request.game.random.choice(request.legal)

    def end(self, result):
        self.received.append(result)


def recording_session(received):
    return Session(type("Seat", (Recorder,), {"received": received}))


def parse(data):
    return play_pb2.RefereeMessage.FromString(data)


def sorted_deck(rules):
    return list_cards(full_deck(rules))


def assert_same_view(decoded, view):
    for field in view._fields:
        assert getattr(decoded, field) == getattr(view, field), field
    for seat, layers in enumerate(view.tables):
        assert decoded.top(seat) == (layers[-1] if layers else None)
    on_tables = [sum(layer.size for layer in layers) for layers in view.tables]
    assert decoded.scores == tuple(
        on_table - held for on_table, held in zip(on_tables, view.hand_sizes, strict=True)
    )
    assert decoded.players == len(view.tables)
    assert sorted((decoded.seat, *decoded.opponents)) == list(range(decoded.players))
    assert decoded.opponents[0] == (decoded.seat + 1) % decoded.players


def assert_victims_are_those_of_the_rules(request, game):
    for play in request.plays:
        expected = tuple(
            seat
            for seat in request.view.opponents
            if (layers := game.table.layers[seat]) and game.ruleset.snatches(play.layer, layers[-1])
        )
        assert request.victims(play.layer) == expected


@pytest.mark.parametrize(("rules", "players"), PAIRS, ids=lambda case: getattr(case, "name", case))
def test_whole_game_decodes_to_the_referees_values(rules, players):
    chance = random.Random(7)
    deck = sorted_deck(rules)
    chance.shuffle(deck)
    game = Game(rules, players, deck)
    received = []
    session = recording_session(received)
    encoder = messages.RequestEncoder("g")
    start = messages.game_start(
        "g", rules=rules, view=game.view(0), clocks=CLOCKS, seed=9, names="ABC", max_strikes=3
    )
    session.receive(parse(start))
    events = []
    for number in itertools.count(1):
        decision = game.decision
        if decision is None:
            break
        chosen = chance.choice(decision.legal)
        if decision.seat == 0:
            sent = Request(number, game.view(0), decision, tuple(events), DecisionTime(3, 4, 5))
            bot_message = session.receive(parse(encoder.encode(sent)))
            request = received.pop()
            assert request.kind is decision.kind
            assert tuple(request.legal) == decision.legal
            assert request.events == tuple(events)
            assert list(map(type, request.events)) == list(map(type, events))
            assert_same_view(request.view, sent.view)
            assert_victims_are_those_of_the_rules(request, game)
            index = list(request.message.legal).index(bot_message.replies[0].action)
            chosen = decision.legal[index]
            events = []
        events += [redact(event, 0) for event in game.apply(chosen)]
    end = messages.game_end("g", events, game.outcome.ranks, "", forfeited=False)
    session.receive(parse(end))
    (result,) = received
    assert result.events == tuple(events)
    assert result.ranks == game.outcome.ranks
    assert result.events[-1].termination is game.outcome.termination


@pytest.mark.parametrize(
    "rules",
    [
        *RULESETS.values(),
        RULESETS["basic"].with_options(end_on=EndOn.DECK, max_turns=9),
        CHANGED_DUEL.with_options(max_turns=8),
    ],
    ids=lambda rules: f"{rules.name}-{rules.max_turns}",
)
def test_game_start_decodes_to_the_referees_values(rules):
    view = Game(rules, 2, sorted_deck(rules)).view(1)
    start = messages.game_start(
        "g", rules=rules, view=view, clocks=CLOCKS, seed=9, names=["A", "B"], max_strikes=4
    )
    game = BotGame(parse(start).game_starts[0])
    assert game.ruleset == rules
    assert game.clocks == (1, 2, 3, 4, 5)
    assert (game.id, game.seat, game.players) == ("g", 1, 2)
    assert (game.names, game.max_strikes) == (("A", "B"), 4)
    assert_same_view(game.view, view)


def test_ruleset_newer_than_the_sdk_keeps_its_options():
    rules = table_pb2.Ruleset(
        name="next", ones_snatch_thirteens=True, end_on=table_pb2.END_ON_DECK, max_turns=9
    )
    start = play_pb2.GameStart(ruleset=rules, view=table_pb2.View(hand_sizes=[13] * 3))
    ruleset = BotGame(start).ruleset
    assert (ruleset.name, ruleset.end_on, ruleset.max_turns) == ("next", EndOn.DECK, 9)
    assert ruleset.snatches(Layer(1, 2), Layer(13, 2))
    assert not ruleset.snatches(Layer(1, 2), Layer(JOKER, 0, 2))


def test_option_newer_than_the_sdk_has_its_default_value():
    rules = values.ruleset_message(CHANGED_DUEL)
    rules.ghost_snatch = 99
    view = table_pb2.View(hand_sizes=[13] * 2)
    ruleset = BotGame(play_pb2.GameStart(ruleset=rules, view=view)).ruleset
    assert ruleset == CHANGED_DUEL.with_options(ghost_snatch=GhostSnatch.COMPULSORY)


def test_request_has_the_times_of_its_message():
    received = []
    session = recording_session(received)
    session.receive(play_pb2.RefereeMessage(game_starts=[play_pb2.GameStart(game_id="g")]))
    request = play_pb2.Request(
        game_id="g",
        kind=table_pb2.DECISION_KIND_PLAY,
        legal=[{"choice": table_pb2.CHOICE_PASS}],
        time_left_us=1,
        bank_left_us=2,
        last_elapsed_us=3,
    )
    session.receive(play_pb2.RefereeMessage(requests=[request]))
    decoded = received[0]
    assert (decoded.time_left_us, decoded.bank_left_us, decoded.last_elapsed_us) == (1, 2, 3)


def test_result_of_a_forfeit_has_its_reason_and_nothing_else():
    game = BotGame(play_pb2.GameStart(game_id="g"))
    result = BotResult(play_pb2.GameEnd(forfeited=True, reason="crash"), game)
    assert (result.forfeited, result.reason, result.ranks, result.events) == (
        True,
        "crash",
        (),
        (),
    )


# The SDK decodes everything in the schema.


@pytest.mark.parametrize(
    ("enum", "back", "schema"),
    [
        (DecisionKind, values.KINDS_BACK, table_pb2.DecisionKind),
        (Choice, values.CHOICES_BACK, table_pb2.Choice),
        (Termination, values.TERMINATIONS_BACK, table_pb2.Termination),
        (EndOn, values.OPTIONS_BACK["end_on"], table_pb2.EndOn),
        (GhostStart, values.OPTIONS_BACK["ghost_start"], table_pb2.GhostStart),
        (GhostSnatch, values.OPTIONS_BACK["ghost_snatch"], table_pb2.GhostSnatch),
        (GhostOverflow, values.OPTIONS_BACK["ghost_overflow"], table_pb2.GhostOverflow),
    ],
)
def test_every_enum_value_of_the_schema_is_decoded(enum, back, schema):
    assert set(back) | {0} == set(schema.values())
    assert set(back.values()) == set(enum)
    for value, member in back.items():
        assert schema.Name(value).endswith(f"_{member.name}")


def test_every_event_of_the_schema_is_decoded():
    kinds = table_pb2.Event.DESCRIPTOR.oneofs_by_name["kind"].fields
    assert set(values.EVENT_DECODERS) == {field.name for field in kinds}


def test_event_of_an_unknown_kind_is_dropped():
    assert values.event_values([table_pb2.Event()]) == ()


def test_every_action_of_the_schema_is_decoded():
    for action in (Play(Layer(7, 2, 1)), DrawDisplay(3, (5, 14)), SnatchGhost(4), *Choice):
        assert values.action_value(values.action_message(action)) == action
    kinds = table_pb2.Action.DESCRIPTOR.oneofs_by_name["kind"].fields
    assert {field.name for field in kinds} == {
        "play",
        "choice",
        "draw_display",
        "ghost_value",
    }


@pytest.mark.parametrize(
    ("layer", "cards"),
    [
        (Layer(7, 3), (7, 7, 7)),
        (Layer(7, 1, 2), (7, JOKER, JOKER)),
        (Layer(JOKER, 0, 2), (JOKER, JOKER)),
    ],
)
def test_cards_of_a_layer_are_naturals_then_jokers(layer, cards):
    assert layer.cards == cards
    assert layer.size == len(cards)
    assert count_cards(layer.cards)[JOKER] == layer.jokers
