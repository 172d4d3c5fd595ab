"""The corpus is complete, and finds programs that follow the policy with one mistake."""

from __future__ import annotations

import gzip
from collections import Counter

import corpus
import pytest
from conversations import conversation
from hard_positions import SIGNS, Position, signs
from policy import choose, mistaken
from record_corpus import TABLES, record

from referee.pb import table_pb2
from referee.rules.ruleset import RULESETS

pytestmark = pytest.mark.unmeasured

SEATS = corpus.load()
POSITIONS = [
    Position(request, seat.start.ruleset, reply.action)
    for seat in SEATS
    for request, reply in zip(seat.sent.requests, seat.expected.replies, strict=True)
]
MAX_BYTES = 300 * 1024
LEAST = 1_500
LEAST_OF_A_KIND = 20
LEAST_OF_A_SORT = 3


def kinds(rules):
    """Yield the kinds of decision that occur in a ruleset."""
    for kind in table_pb2.DecisionKind.values():
        needs = {
            table_pb2.DECISION_KIND_UNSPECIFIED: False,
            table_pb2.DECISION_KIND_OPTIONAL_DRAW: rules.optional_draw,
            table_pb2.DECISION_KIND_GHOST_SET: rules.ghost,
        }
        if needs.get(kind, True):
            yield kind


def test_corpus_has_enough_positions_in_a_small_file():
    assert len(POSITIONS) >= LEAST
    assert corpus.PATH.stat().st_size < MAX_BYTES


def test_corpus_has_every_kind_of_decision_of_every_ruleset():
    found = Counter((position.rules.name, position.request.kind) for position in POSITIONS)
    expected = {(name, kind) for name, rules in RULESETS.items() for kind in kinds(rules)}
    assert set(found) == expected
    assert min(found.values()) >= LEAST_OF_A_KIND


def test_corpus_has_every_table_size():
    tables = {(seat.start.ruleset.name, len(seat.start.view.hand_sizes)) for seat in SEATS}
    assert tables == {(rules.name, seats) for rules, seats in TABLES}


def test_corpus_has_all_sorts_of_hard_positions():
    found = Counter(
        (position.request.kind, sign) for position in POSITIONS for sign in signs(position)
    )
    assert set(found) == {(kind, sign) for kind, names in SIGNS.items() for sign in names}
    assert min(found.values()) >= LEAST_OF_A_SORT


def test_corpus_has_games_with_start_requests_in_order_and_end():
    assert len({seat.start.game_id for seat in SEATS}) == len(SEATS)
    for sent, expected in SEATS:
        (start,), (end,), (ready,) = sent.game_starts, sent.game_ends, expected.ready
        assert start.game_id == end.game_id == ready.game_id
        assert end.events[-1].HasField("game_over")
        numbers = [request.decision_id for request in sent.requests]
        assert numbers == sorted(set(numbers))
        for request, reply in zip(sent.requests, expected.replies, strict=True):
            assert request.game_id == reply.game_id == start.game_id
            assert request.decision_id == reply.decision_id
            assert reply.action in request.legal


def test_expected_actions_are_those_of_the_policy():
    for position in POSITIONS:
        assert position.action == choose(position.request, position.rules)


@pytest.mark.extended("measures large schedules and long statistics")
def test_corpus_can_be_recorded_again():
    """Only the content is compared, because the compressed file depends on the version of zlib."""
    recorded = corpus.pack(record())
    stored = gzip.decompress(corpus.PATH.read_bytes())
    assert recorded == stored, "run: .venv/bin/python tests/languages/record_corpus.py"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("seat != request.view.seat and table.layers", "table.layers"),
        ("table.layers[-1]", "table.layers[0]"),
        ("size(attacker) != size(victim)", "size(attacker) < size(victim)"),
        ("victim.value < attacker.value", "victim.value <= attacker.value"),
        ("attacker.value == 1 and rules.ones_snatch_thirteens", "False"),
        ("attacker.value == 1 and rules.ones_snatch_thirteens", "attacker.value == 1"),
        ("attacker.value == 1 and rules.ones_snatch_jokers", "False"),
        ("attacker.value == 1 and rules.ones_snatch_jokers", "attacker.value == 1"),
        ("(1 + len(victims))", "(1 + bool(victims))"),
        ("size(action.play) *", "action.play.naturals *"),
        ("one.play.jokers < other.play.jokers", "one.play.jokers > other.play.jokers"),
        ("one.play.value > other.play.value", "one.play.value < other.play.value"),
        ("size(layer) >= 3", "size(layer) > 3"),
        ("size(layer) >= 3", "layer.naturals >= 3"),
        ("hand[layer.value] >= 1", "hand[layer.value] >= 2"),
        ("1000 if card == JOKER else 100", "100"),
        ("100 * hand[card] + card", "100 * hand[card]"),
        ("100 * hand[card] + card", "hand[card] + 100 * card"),
        ("best(action.draw_display.cards, is_worthier)", "action.draw_display.cards[0]"),
        ("CHOICE_PASS: 99", "CHOICE_PASS: 6"),
        ("CHOICE_PASS: 99", "CHOICE_PASS: 200"),
        ("CHOICE_DRAW_DECK: 6", "CHOICE_DRAW_DECK: 5"),
        ("CHOICE_DRAW_DECK: 6", "CHOICE_DRAW_DECK: 7"),
        ("worth(one) > worth(other)", "worth(one) >= worth(other)"),
        ("card_worth(action.ghost_value)", "action.ghost_value"),
        ("card_worth(action.ghost_value)", "100 + card_worth(action.ghost_value)"),
    ],
)
def test_corpus_finds_a_program_with_one_mistake(right, wrong):
    choose_wrongly = mistaken(right, wrong)
    assert any(
        choose_wrongly(position.request, position.rules) != position.action
        for position in POSITIONS
    )


# Conversations


@pytest.mark.parametrize("at_once", [1, 64])
def test_conversation_has_the_whole_corpus_with_at_most_the_given_number_of_games(at_once):
    playing, requests, replies, most = set(), Counter(), Counter(), 0
    for message, expected in conversation(SEATS, at_once):
        playing -= {end.game_id for end in message.game_ends}
        assert {request.game_id for request in message.requests} == playing
        playing |= {start.game_id for start in message.game_starts}
        assert len(playing) <= at_once
        most = max(most, len(message.requests))
        requests.update(request.game_id for request in message.requests)
        replies.update(reply.game_id for reply in expected.replies)
    assert not playing
    assert most == at_once
    assert requests == replies == {seat.start.game_id: seat.size for seat in SEATS}


def test_conversation_finds_a_bot_that_mixes_up_the_rules_of_its_games():
    rules, wrong = None, 0
    for message, expected in conversation(SEATS, 16):
        for request, reply in zip(message.requests, expected.replies, strict=True):
            wrong += choose(request, rules) != reply.action
        for start in message.game_starts:
            rules = start.ruleset
    assert wrong
