"""What a bot reads through the kit is what the rules know: whole random games, field by field."""

from __future__ import annotations

import itertools
import random

import pytest

from referee.clocks import Budget, Clocks
from referee.pb import play_pb2, table_pb2
from referee.protocol import encode
from referee.records import Request
from referee.rules import actions, events
from referee.rules.cards import JOKER, JOKERS, NUMBERS, Layer, count
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, EndOn
from referee.rules.table import full_deck
from referee.rules.turn import snatches
from referee.sdk import Bot, Session
from referee.sdk import actions as sdk_actions
from referee.sdk import cards as sdk_cards
from referee.sdk import events as sdk_events
from referee.sdk import game as sdk_game

PAIRS = [(rules, 2 if rules.ghost else 4) for rules in RULESETS.values()]
CLOCKS = Clocks(start_up_us=1, game_start_us=2, decision_us=3, bank_us=4, increment_us=5)


def plain(value):
    """A value of the kit or of the rules, with the name of its kind, to be compared."""
    if isinstance(value, actions.Choice | sdk_actions.Choice):
        return value.name
    if isinstance(value, events.Termination | sdk_events.Termination):
        return value.name
    if hasattr(value, "_fields"):
        return type(value).__name__, *(plain(field) for field in value)
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value


class Recorder(Bot):
    """Keeps what it is told, plays at random."""

    told: list

    def start(self, game):
        self.game = game

    def decide(self, request):
        self.told.append(request)
        return request.game.random.choice(request.legal)

    def end(self, result):
        self.told.append(result)


def parsed(data):
    return play_pb2.RefereeMessage.FromString(data)


def compare_view(told, view):
    for field in view._fields:
        assert plain(getattr(told, field)) == plain(getattr(view, field)), field
    for seat, layers in enumerate(view.tables):
        assert plain(told.top(seat)) == plain(layers[-1] if layers else None)
    table = [sum(layer.size for layer in layers) for layers in view.tables]
    assert told.scores == tuple(
        on_table - held for on_table, held in zip(table, view.hand_sizes, strict=True)
    )
    assert told.players == len(view.tables)
    assert sorted((told.seat, *told.opponents)) == list(range(told.players))
    assert told.opponents[0] == (told.seat + 1) % told.players


def compare_victims(request, game):
    """The seats that are named are those from whom the play snatches."""
    for play in request.plays:
        twin = game.copy()
        expected = tuple(
            seat
            for seat in request.view.opponents
            if (layers := twin.table.layers[seat])
            and snatches(twin.ruleset, Layer(*play.layer), layers[-1])
        )
        assert request.victims(play.layer) == expected


@pytest.mark.parametrize(("rules", "players"), PAIRS, ids=lambda case: getattr(case, "name", case))
def test_whole_games(rules, players):
    chance = random.Random(7)
    deck = [card for card, copies in enumerate(full_deck(rules)) for _ in range(copies)]
    chance.shuffle(deck)
    game = Game(rules, players, deck)
    told = []
    session = Session(type("Seat", (Recorder,), {"told": told}))
    encoder = encode.RequestEncoder("g")
    start = encode.game_start(
        "g", rules=rules, view=game.view(0), clocks=CLOCKS, seed=9, names="ABC", max_strikes=3
    )
    session.receive(parsed(start))
    news = []
    for number in itertools.count(1):
        decision = game.decision
        if decision is None:
            break
        chosen = chance.choice(decision.legal)
        if decision.seat == 0:
            ask = Request(number, game.view(0), decision, tuple(news), Budget(3, 4, 5))
            answer = session.receive(parsed(encoder.encode(ask)))
            request = told.pop()
            assert request.kind.name == decision.kind.name
            assert plain(tuple(request.legal)) == plain(decision.legal)
            assert plain(request.events) == plain(tuple(news))
            compare_view(request.view, ask.view)
            compare_victims(request, game)
            index = list(request.message.legal).index(answer.replies[0].action)
            chosen = decision.legal[index]
            news = []
        news += [events.seen_by(event, 0) for event in game.apply(chosen)]
    end = encode.game_end("g", news, game.outcome.ranks, "", forfeited=False)
    session.receive(parsed(end))
    (result,) = told
    assert plain(result.events) == plain(tuple(news))
    assert result.ranks == game.outcome.ranks
    assert result.events[-1].termination.name == game.outcome.termination.name


@pytest.mark.parametrize(
    "rules",
    [*RULESETS.values(), RULESETS["basic"].with_options(end_on=EndOn.DECK, max_turns=9)],
    ids=lambda rules: f"{rules.name}-{rules.max_turns}",
)
def test_what_a_game_starts_with(rules):
    deck = [card for card, copies in enumerate(full_deck(rules)) for _ in range(copies)]
    view = Game(rules, 2, deck).view(1)
    start = encode.game_start(
        "g", rules=rules, view=view, clocks=CLOCKS, seed=9, names=["A", "B"], max_strikes=4
    )
    game = sdk_game.Game(parsed(start).game_starts[0])
    for field in sdk_game.Ruleset._fields:
        told, known = getattr(game.ruleset, field), getattr(rules, field)
        assert told.name == known.name if field == "end_on" else told == known
    assert game.clocks == (1, 2, 3, 4, 5)
    assert (game.id, game.seat, game.players) == ("g", 1, 2)
    assert (game.names, game.max_strikes) == (("A", "B"), 4)
    compare_view(game.view, view)


def all_layers():
    numbers = [
        (value, naturals, jokers)
        for value in NUMBERS
        for naturals in (1, 2, 3)
        for jokers in (0, 1)
    ]
    return numbers + [(JOKER, 0, size) for size in range(1, JOKERS + 1)]


@pytest.mark.parametrize("rules", RULESETS.values(), ids=RULESETS)
def test_what_snatches_what(rules):
    ruleset = sdk_game.Game(play_pb2.GameStart(ruleset=encode.ruleset_message(rules))).ruleset
    for attacker, victim in itertools.product(all_layers(), repeat=2):
        assert ruleset.snatches(sdk_cards.Layer(*attacker), sdk_cards.Layer(*victim)) == snatches(
            rules, Layer(*attacker), Layer(*victim)
        )


def test_time_is_told():
    told = []
    session = Session(type("Seat", (Recorder,), {"told": told}))
    session.receive(play_pb2.RefereeMessage(game_starts=[play_pb2.GameStart(game_id="g")]))
    request = play_pb2.Request(
        game_id="g",
        kind=table_pb2.DECISION_KIND_PLAY,
        legal=[{}],
        time_left_us=1,
        bank_left_us=2,
        last_elapsed_us=3,
    )
    session.receive(play_pb2.RefereeMessage(requests=[request]))
    assert (told[0].time_left_us, told[0].bank_left_us, told[0].last_elapsed_us) == (1, 2, 3)


def test_how_a_game_can_end_for_one_bot():
    game = sdk_game.Game(play_pb2.GameStart(game_id="g"))
    result = sdk_game.Result(play_pb2.GameEnd(forfeited=True, reason="crash"), game)
    assert (result.forfeited, result.reason, result.ranks, result.events) == (
        True,
        "crash",
        (),
        (),
    )


# Completeness: the kit has a word for everything in the schema.


@pytest.mark.parametrize(
    ("kit", "schema"),
    [
        (sdk_actions.DecisionKind, table_pb2.DecisionKind),
        (sdk_actions.Choice, table_pb2.Choice),
        (sdk_events.Termination, table_pb2.Termination),
        (sdk_game.EndOn, table_pb2.EndOn),
    ],
)
def test_every_word_of_the_schema(kit, schema):
    named = {member.value for member in kit}
    assert named | {0} == set(schema.values())
    for member in kit:
        assert schema.Name(member.value).endswith(f"_{member.name}")


def test_every_event_of_the_schema():
    kinds = table_pb2.Event.DESCRIPTOR.oneofs_by_name["kind"].fields
    assert set(sdk_events._DECODERS) == {field.name for field in kinds}
    assert sdk_events.events_of([table_pb2.Event()]) == ()  # of a later version


def test_every_action_of_the_schema_and_back():
    for action in (
        sdk_actions.Play(sdk_cards.Layer(7, 2, 1)),
        sdk_actions.DrawDisplay(3, (5, 14)),
        sdk_actions.SnatchGhost(4),
        *sdk_actions.Choice,
    ):
        message = sdk_actions.message_of(action)
        assert sdk_actions.action_of(message) == action
    kinds = table_pb2.Action.DESCRIPTOR.oneofs_by_name["kind"].fields
    assert {field.name for field in kinds} == {
        "play",
        "choice",
        "draw_display",
        "ghost_value",
    }


@pytest.mark.parametrize("layer", all_layers())
def test_a_layer_has_the_cards_it_has(layer):
    assert count(sdk_cards.Layer(*layer).cards) == count(Layer(*layer).cards)
    assert sdk_cards.Layer(*layer).size == Layer(*layer).size
