"""Messages keep everything: requests, actions, events, rulesets and records survive encoding."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import get_args

import pytest

from referee.clocks import Clocks, DecisionTime
from referee.errors import Cause, Evidence
from referee.match import stand_in_action
from referee.pb import play_pb2, record_pb2, table_pb2
from referee.protocol import messages, record
from referee.protocol.values import (
    CHOICES,
    KINDS,
    OPTIONS,
    TERMINATIONS,
    action_message,
    action_value,
    event_message,
    event_values,
    ruleset_message,
    ruleset_value,
)
from referee.records import BotId, Fault, GameRecord, Machine, Move, Request, Usage
from referee.reports.formats import moment
from referee.rules.actions import Choice, DecisionKind, DrawDisplay, Play, SnatchGhost
from referee.rules.events import Event, GameOver, Termination, redact
from referee.rules.game import Game
from referee.rules.ruleset import (
    GHOST_OPTIONS,
    RULESETS,
    EndOn,
    GhostOverflow,
    GhostSnatch,
    GhostStart,
    Layer,
    full_deck,
    list_cards,
)


def game(name: str, seats: int, seed: int, **options) -> Game:
    rules = RULESETS[name].with_options(**options)
    cards = list_cards(full_deck(rules))
    random.Random(seed).shuffle(cards)
    return Game(rules, seats, cards)


def playout(name: str, seats: int, seed: int, **options):
    """Yield (request, game) at each decision of a random game."""
    chance = random.Random(seed)
    run = game(name, seats, seed, **options)
    unseen: list[list[Event]] = [[] for _ in range(seats)]
    number = 0
    while (decision := run.decision) is not None:
        number += 1
        seat = decision.seat
        time = DecisionTime(1000 + number, number if number % 2 else None, number * 3)
        yield Request(number, run.view(seat), decision, tuple(unseen[seat]), time), run
        unseen[seat].clear()
        for event in run.apply(chance.choice(decision.legal)):
            for other in range(seats):
                unseen[other].append(redact(event, other))


CASES = [(name, seats) for name in RULESETS for seats in ((2,) if name == "duel" else (2, 3, 5))]


def assert_same_view(message: table_pb2.View, view) -> None:
    assert message.seat == view.seat
    assert tuple(message.hand) == view.hand
    assert tuple(message.hand_sizes) == view.hand_sizes
    assert [
        tuple(Layer(layer.value, layer.naturals, layer.jokers) for layer in table.layers)
        for table in message.tables
    ] == list(view.tables)
    assert tuple(tuple(slot.cards) for slot in message.display) == view.display
    assert message.deck_size == view.deck_size
    assert tuple(message.discards) == view.discards
    assert tuple(message.ghost) == (view.ghost or ())
    assert (message.active_seat, message.turn) == (view.active_seat, view.turn)
    assert message.HasField("snatched") == (view.snatched is not None)
    assert message.HasField("victim") == (view.victim is not None)
    if view.snatched is not None:
        assert message.snatched == table_pb2.Layer(**view.snatched._asdict())
    if view.victim is not None:
        assert message.victim == view.victim
    assert message.cards_to_draw == view.cards_to_draw


@pytest.mark.parametrize(("name", "seats"), CASES)
def test_encoded_request_has_every_part_of_the_request(name, seats):
    encoder = messages.RequestEncoder("some-game")
    count = 0
    for request, _ in playout(name, seats, seed=seats):
        count += 1
        message = play_pb2.RefereeMessage.FromString(encoder.encode(request))
        (sent,) = message.requests
        assert (sent.game_id, sent.decision_id) == ("some-game", request.number)
        assert sent.kind == KINDS[request.decision.kind]
        assert_same_view(sent.view, request.view)
        assert list(sent.events) == [event_message(event) for event in request.events]
        assert tuple(action_value(action) for action in sent.legal) == request.decision.legal
        assert sent.time_left_us == request.time.limit_us
        assert sent.bank_left_us == (request.time.bank_left_us or 0)
        assert sent.last_elapsed_us == request.time.last_elapsed_us
    assert count > 20


def test_encoder_that_kept_parts_writes_the_same_bytes_as_a_new_one():
    used = messages.RequestEncoder("some-game")
    for request, _ in playout("duel", 2, seed=5):
        assert used.encode(request) == messages.RequestEncoder("some-game").encode(request)


def test_concatenated_requests_are_one_message():
    requests = [next(playout("basic", 3, seed=seed))[0] for seed in range(3)]
    parts = [
        messages.RequestEncoder(f"game-{number}").encode(request)
        for number, request in enumerate(requests)
    ]
    message = play_pb2.RefereeMessage.FromString(b"".join(parts))
    assert [request.game_id for request in message.requests] == ["game-0", "game-1", "game-2"]


@pytest.mark.parametrize(("name", "seats"), CASES)
def test_every_legal_action_can_be_sent_back_unchanged(name, seats):
    encoder = messages.RequestEncoder("g")
    for request, _ in playout(name, seats, seed=40 + seats):
        message = play_pb2.RefereeMessage.FromString(encoder.encode(request))
        for echoed, legal in zip(message.requests[0].legal, request.decision.legal, strict=True):
            assert messages.parse_action(echoed.SerializeToString(), request) == legal


def test_R8_slot_with_the_same_card_as_another_means_the_leftmost():
    seen = 0
    for request, run in playout("basic", 4, seed=3):
        for slot, cards in enumerate(run.table.display):
            if request.decision.kind is DecisionKind.DRAW and cards:
                reply = table_pb2.Action(draw_display=table_pb2.DrawDisplay(slot=slot))
                action = messages.parse_action(reply.SerializeToString(), request)
                assert action == DrawDisplay(run.table.display.index(cards), cards)
                assert action in request.decision.legal
                seen += action.slot != slot
    assert seen > 0


def test_reply_without_an_action_is_refused_and_nonsense_is_illegal():
    request, _ = next(playout("basic", 3, seed=1))
    for message in (table_pb2.Action(), table_pb2.Action(choice=0), table_pb2.Action(choice=77)):
        with pytest.raises(ValueError, match="names no action"):
            messages.parse_action(message.SerializeToString(), request)
    for message in (
        table_pb2.Action(draw_display=table_pb2.DrawDisplay(slot=99)),
        table_pb2.Action(ghost_value=4_000_000_000),
        table_pb2.Action(play=table_pb2.Layer()),
        table_pb2.Action(choice=table_pb2.CHOICE_TAKE),
    ):
        assert (
            messages.parse_action(message.SerializeToString(), request)
            not in request.decision.legal
        )


def test_bytes_that_are_no_bot_message_are_refused():
    with pytest.raises(ValueError, match=r"no linko\.v1\.BotMessage"):
        messages.parse_bot_message(b"\xff\xff\xff\xff")


def test_every_enum_member_has_its_own_value_in_the_schema():
    for ours, theirs, enum in (
        (Choice, CHOICES, table_pb2.Choice),
        (DecisionKind, KINDS, table_pb2.DecisionKind),
        (Termination, TERMINATIONS, table_pb2.Termination),
        (EndOn, OPTIONS["end_on"], table_pb2.EndOn),
        (GhostStart, OPTIONS["ghost_start"], table_pb2.GhostStart),
        (GhostSnatch, OPTIONS["ghost_snatch"], table_pb2.GhostSnatch),
        (GhostOverflow, OPTIONS["ghost_overflow"], table_pb2.GhostOverflow),
    ):
        assert set(theirs) == set(ours)
        assert sorted(theirs.values()) == sorted(enum.values())[1:]  # 0 is "unspecified"


def test_every_type_of_event_has_its_own_message():
    names = set()
    kinds = set()
    for name, seats in CASES:
        for seed in range(4):
            options = {"ghost_snatch": GhostSnatch.OPTIONAL} if name == "duel" else {}
            requests = playout(name, seats, seed, **options)
            events = [event for request, _ in requests for event in request.events]
            events.append(GameOver(Termination.OUT, (1,) * seats, (1,) * seats))
            kinds |= set(map(type, events))
            names |= {event_message(event).WhichOneof("kind") for event in events}
            assert list(event_values(map(event_message, events))) == events
    assert kinds == set(get_args(Event))
    assert names == {field.name for field in table_pb2.Event.DESCRIPTOR.oneofs[0].fields}


@pytest.mark.parametrize(
    "action",
    [*Choice, Play(Layer(7, 3, 1)), Play(Layer(14, 0, 2)), DrawDisplay(0, (7, 13)), SnatchGhost(4)],
)
def test_action_survives_conversion_to_a_message_and_back(action):
    assert action_value(action_message(action)) == action


@pytest.mark.parametrize("name", RULESETS)
def test_ruleset_survives_conversion_with_its_options(name):
    rules = RULESETS[name].with_options(end_on=EndOn.DECK, max_turns=77)
    assert ruleset_value(ruleset_message(rules)) == rules


@pytest.mark.parametrize(
    "option", [GhostStart.AS_DEALT, GhostSnatch.OPTIONAL, GhostOverflow.LOWEST], ids=str
)
def test_option_of_the_duel_survives_conversion(option):
    (name,) = (name for name, default in GHOST_OPTIONS.items() if type(default) is type(option))
    rules = RULESETS["duel"].with_options(**{name: option})
    message = ruleset_message(rules)
    assert getattr(message, name) == OPTIONS[name][option]
    assert ruleset_value(message) == rules
    assert message != ruleset_message(RULESETS["duel"])


@pytest.mark.parametrize("value", [0, 3])
@pytest.mark.parametrize("name", OPTIONS)
def test_ruleset_with_an_unknown_option_is_refused(name, value):
    message = ruleset_message(RULESETS["duel"])
    setattr(message, name, value)
    with pytest.raises(ValueError, match="the ruleset 'duel' has other rules in this version"):
        ruleset_value(message)


@pytest.mark.parametrize("name", GHOST_OPTIONS)
def test_ruleset_without_a_ghost_and_with_an_option_of_the_duel_is_refused(name):
    message = ruleset_message(RULESETS["basic"])
    setattr(message, name, 2)
    with pytest.raises(ValueError, match=f"basic has no ghost, so it has no {name}"):
        ruleset_value(message)


def test_unknown_or_different_ruleset_is_refused():
    message = ruleset_message(RULESETS["basic"])
    message.optional_draw = False
    with pytest.raises(ValueError, match="other rules in this version"):
        ruleset_value(message)
    with pytest.raises(ValueError, match="no ruleset 'poker'"):
        ruleset_value(table_pb2.Ruleset(name="poker", end_on=1))


def full_record() -> GameRecord:
    run = game("duel", 2, 9)
    moves = []
    while (decision := run.decision) is not None:
        action = stand_in_action(decision)
        run.apply(action)
        moves.append(Move(decision.seat, action, 12, 3, stand_in=True))
    faults = [
        Fault(
            move % 2, cause, cause is not Cause.TIMEOUT, move, Evidence(detail="why", elapsed_us=5)
        )
        for move, cause in enumerate(Cause)
    ]
    faults.append(
        Fault(
            1,
            Cause.CRASH,
            forfeit=True,
            move=9,
            evidence=Evidence(detail="d", exit_code=0, signal="SIGSEGV", stderr_tail="é\n"),
        )
    )
    return GameRecord(
        game_id="x-1",
        ruleset=run.ruleset,
        seating=(BotId("a", "1.0"), BotId("b", "2")),
        deck=run.table.deck,
        moves=tuple(moves),
        faults=tuple(faults),
        termination=run.outcome.termination,
        scores=run.outcome.scores,
        ranks=(2, 1),
        forfeited=(0,),
        usage=(None, Usage(0.12, 34_567)),
        clocks=Clocks(bank_us=7, increment_us=8),
        max_strikes=3,
        dropped=(0, 4),
        isolation="none",
        started_at_us=1_700_000_000_000_000,
        duration_us=5,
        machine=Machine(host="alpha", cpu="Model 1", speed=150_000, noise=0.125),
    )


def test_record_survives_conversion_to_bytes_and_back():
    stored = full_record()
    assert record.loads(record.dumps(stored)) == stored
    assert record.dumps(stored) == record.dumps(stored)
    quiet = replace(stored, machine=replace(stored.machine, noise=None))
    assert record.loads(record.dumps(quiet)) == quiet
    unbanked = replace(stored, clocks=Clocks(), machine=None)
    assert record.loads(record.dumps(unbanked)) == unbanked


def test_record_has_the_time_and_the_size_of_the_batch_of_a_move_and_of_a_fault():
    stored = full_record()
    (move, *moves), (fault, *faults) = stored.moves, stored.faults
    batched = replace(
        stored,
        moves=(replace(move, wall_us=30, batch_size=2), *moves),
        faults=(
            replace(fault, evidence=replace(fault.evidence, wall_us=40, batch_size=3)),
            *faults,
        ),
    )
    assert record.loads(record.dumps(batched)) == batched


def test_record_has_decisions_that_took_longer_than_two_hours():
    stored = full_record()
    first, *others = stored.moves
    slow = replace(first, elapsed_us=7_200_000_001, lag_us=7_200_000_002, wall_us=7_200_000_003)
    stored = replace(stored, moves=(slow, *others))
    assert record.loads(record.dumps(stored)) == stored


def test_bytes_that_are_no_record_are_refused():
    with pytest.raises(ValueError, match=r"no linko\.v1\.GameRecord"):
        record.loads(b"\xff\xff\xff")
    with pytest.raises(ValueError, match="termination is missing or unknown"):
        record.loads(record_pb2.GameRecord().SerializeToString())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: {"scores": r.scores[:1]}, "2 seats, but 1 score and 2 ranks"),
        (lambda r: {"ranks": (*r.ranks, 3)}, "2 seats, but 2 scores and 3 ranks"),
        (
            lambda r: {"seating": r.seating[:1], "usage": r.usage[:1]},
            "1 seat, but 2 scores and 2 ranks",
        ),
        (lambda _: {"dropped": (1,)}, "2 seats, but counts dropped messages for 1"),
        (lambda _: {"dropped": (0, 0, 7)}, "2 seats, but counts dropped messages for 3"),
        (
            lambda r: {"faults": (*r.faults, replace(r.faults[0], seat=9))},
            "2 seats, but a fault of seat 9",
        ),
        (lambda _: {"forfeited": (0, 2)}, "2 seats, but a forfeit of seat 2"),
        (lambda _: {"started_at_us": 2**62}, "started after the year 9999"),
    ],
)
def test_record_whose_values_contradict_each_other_is_refused(change, says):
    stored = full_record()
    with pytest.raises(ValueError, match=says):
        record.loads(record.dumps(replace(stored, **change(stored))))


def test_game_may_start_at_the_last_moment_of_the_calendar():
    late = replace(full_record(), started_at_us=253_402_300_799_999_999)
    assert moment(record.loads(record.dumps(late)).started_at_us) == "9999-12-31 23:59:59 UTC"
