"""Every sample bot is what its manifest and the README say, plays by the rules, and beats chance."""

from __future__ import annotations

import ast
import collections
import re
import sys
from itertools import combinations

import pytest
from bot_games import FOLDER, NAMES, TABLE_NAMES, TABLES, answer, bot, module, play
from greedy_by_the_book import choose

from referee.bots.manifest import load_manifest
from referee.pb import table_pb2
from referee.protocol.values import ruleset_message
from referee.rules.actions import DecisionKind
from referee.rules.cards import HIDDEN, JOKER, Layer
from referee.rules.ruleset import RULESETS

pytestmark = pytest.mark.unmeasured
EXPECTED = ["bait", "counter", "final_sprint", "greedy", "random", "small_beasts"]
README = (FOLDER / "README.md").read_text()
BETTER_THAN_CHANCE = [name for name in NAMES if name != "random"]


def test_they_are_all_here():
    assert NAMES == EXPECTED


@pytest.mark.parametrize("name", NAMES)
def test_manifest(name):
    manifest = load_manifest(FOLDER / name)
    assert manifest.name == name
    assert manifest.language == "python"
    assert manifest.run.command == ("python3", "bot.py")
    assert manifest.build is None


@pytest.mark.parametrize("name", NAMES)
def test_imports_the_kit_and_the_standard_library_only(name):
    tree = ast.parse((FOLDER / name / "bot.py").read_text())
    imported = {
        node.module if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert "referee.sdk" in imported
    assert {each.split(".")[0] for each in imported - {"referee.sdk"}} <= sys.stdlib_module_names


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_tells_of_it(name):
    assert re.search(rf"^\| `{name}` \|", README, re.MULTILINE)
    assert module(name).__doc__
    assert README.count(load_manifest(FOLDER / name).description)


@pytest.mark.parametrize(("rules", "players"), TABLES, ids=TABLE_NAMES)
@pytest.mark.parametrize("name", NAMES)
def test_plays_by_the_rules_at_every_table(name, rules, players):
    play([bot(name)] * players, rules, seed=3)


@pytest.mark.parametrize("name", NAMES)
def test_meets_every_kind_of_decision(name):
    """So that the games above show that each is answered, and answered legally."""
    met = collections.Counter()

    def watch(seat, game, _request, _reply):
        if seat == 0:
            met[game.decision.kind] += 1

    for rules in (RULESETS["duel"], RULESETS["basic"]):
        for seed in range(4):
            play([bot(name), bot("random")], rules, seed, watch)
            play([bot("random"), bot(name)], rules, seed, watch)
            play([bot(name), bot(name)], rules, seed, watch)
    assert set(met) == set(DecisionKind)


@pytest.mark.parametrize("name", NAMES)
def test_plays_the_same_game_again(name):
    def told(seed):
        replies = []
        play(
            [bot(name), bot("random"), bot(name)],
            RULESETS["expert"],
            seed,
            lambda _seat, _game, _request, reply: replies.append(reply),
        )
        return replies

    assert told(1) == told(1)
    assert told(1) != told(2)


@pytest.mark.parametrize(("ruleset", "players"), [("basic", 4), ("classic", 3), ("duel", 2)])
@pytest.mark.parametrize("name", BETTER_THAN_CHANCE)
def test_is_clearly_better_than_chance(name, ruleset, players):
    """Alone among random bots, in each seat, it comes first in at least nine games of ten."""
    games, firsts = 0, 0
    for seed in range(10):
        for seat in range(players):
            bots = [bot("random")] * players
            bots[seat] = bot(name)
            outcome = play(bots, RULESETS[ruleset], seed)
            games += 1
            firsts += outcome.ranks[seat] == 1
    assert firsts >= 0.9 * games


# Greedy


@pytest.mark.parametrize(("rules", "players"), TABLES, ids=TABLE_NAMES)
def test_greedy_does_what_the_readme_lays_down(rules, players):
    message = ruleset_message(rules)

    def watch(seat, _game, request, reply):
        if seat % 2 == 0:
            assert reply.action == choose(request, message)

    for seed in range(4):
        bots = [bot("greedy") if seat % 2 == 0 else bot("random") for seat in range(players)]
        play(bots, rules, seed, watch)


PLAY = table_pb2.DECISION_KIND_PLAY
TAKE_OR_LEAVE = table_pb2.DECISION_KIND_TAKE_OR_LEAVE
DRAW = table_pb2.DECISION_KIND_DRAW
OPTIONAL_DRAW = table_pb2.DECISION_KIND_OPTIONAL_DRAW
EXAMPLES = [
    (
        PLAY,
        {"hand": {3: 1, 9: 2}, "tops": [Layer(2, 1, 0), Layer(1, 1, 0)]},
        {"play": {"value": 9, "naturals": 1}},
    ),
    (PLAY, {"hand": {7: 2, 12: 2, JOKER: 1}}, {"play": {"value": 12, "naturals": 2, "jokers": 1}}),
    (PLAY, {"hand": {5: 1, JOKER: 1}}, {"play": {"value": 5, "naturals": 1, "jokers": 1}}),
    (
        TAKE_OR_LEAVE,
        {"hand": {4: 2, 10: 1}, "snatched": Layer(4, 1, 0)},
        {"choice": table_pb2.CHOICE_TAKE},
    ),
    (
        TAKE_OR_LEAVE,
        {"hand": {4: 2, 10: 1}, "snatched": Layer(9, 2, 0)},
        {"choice": table_pb2.CHOICE_LEAVE},
    ),
    (
        DRAW,
        {"hand": {4: 2, 10: 1}, "display": [13, 10, 4]},
        {"draw_display": {"slot": 2, "cards": [4]}},
    ),
    (
        DRAW,
        {"hand": {4: 2, 10: 1}, "display": [6, 5, 3]},
        {"choice": table_pb2.CHOICE_DRAW_DECK},
    ),
    (
        OPTIONAL_DRAW,
        {"hand": {4: 2, 10: 1}, "display": [13, 12, 5]},
        {"choice": table_pb2.CHOICE_PASS},
    ),
]
"""Those of the README, in its order."""


@pytest.mark.parametrize(("kind", "position", "expected"), EXAMPLES)
def test_greedy_at_the_examples_of_the_readme(kind, position, expected):
    assert answer("greedy", kind, **position) == table_pb2.Action(**expected)


def test_all_examples_of_the_readme_are_tried():
    rows = README.split("Examples:")[1].strip().splitlines()[2:]
    assert len(rows) == len(EXAMPLES)


# Counter


@pytest.mark.parametrize(("rules", "players"), TABLES, ids=TABLE_NAMES)
def test_counter_knows_nothing_that_is_not_so(rules, players, monkeypatch):
    """At each of its decisions every hand holds at least what it thinks, and much is known."""
    brains = []
    counter = bot("counter")
    start = counter.start

    def remember(self, game):
        brains.append(self)
        start(self, game)

    monkeypatch.setattr(counter, "start", remember)
    known_cards = 0

    def watch(seat, game, _request, _reply):
        nonlocal known_cards
        if seat == 0:
            for hand, known in zip(game.table.hands, brains[-1].known, strict=True):
                assert known[HIDDEN] == 0
                assert all(held >= least for held, least in zip(hand, known, strict=True))
                known_cards += sum(known)

    for seed in range(4):
        play([counter, *[bot("random")] * (players - 1)], rules, seed, watch)
    assert known_cards > 50
    assert len(brains) == 4


def test_counter_does_not_build_where_it_will_be_robbed():
    counter = bot("counter")()
    counter.known = [[0] * (JOKER + 1) for _ in range(2)]
    seven_alone = Layer(7, 1, 0)
    two_sevens = Layer(7, 2, 0)
    assert not counter.can_snatch(1, seven_alone)
    counter.known[1][8] = 1
    assert counter.can_snatch(1, seven_alone)
    assert not counter.can_snatch(1, two_sevens)
    counter.known[1][JOKER] = 1
    assert counter.can_snatch(1, two_sevens)


# The rulebooks' tactics, each at a position where it shows


def played(name, **position):
    layer = answer(name, PLAY, **position).play
    return layer.value, layer.naturals


def test_bait_lays_out_a_lonely_low_card():
    lonely = {2: 1, 5: 1, 9: 3}
    assert played("bait", hand=lonely, display=[9, 1]) == (2, 1)
    assert played("bait", hand=lonely, display=[10, 1]) == (9, 3)  # nothing tempts
    assert played("bait", hand={2: 2, 8: 1, 9: 3}, display=[9]) == (9, 3)  # nothing to offer
    assert played("bait", hand=lonely, display=[9], other_hand=4) == (9, 3)  # too late
    left_to_it = answer("bait", table_pb2.DECISION_KIND_RECLAIM_OR_DISCARD, hand={2: 5})
    assert left_to_it.choice == table_pb2.CHOICE_DISCARD


def test_small_beasts_wait_for_their_pack():
    assert played("small_beasts", hand={2: 3, 9: 1}) == (9, 1)
    assert played("small_beasts", hand={2: 4, 9: 1}) == (2, 4)
    assert played("small_beasts", hand={2: 3, 9: 1}, other_hand=3) == (2, 3)  # too late


def test_final_sprint_takes_nothing_near_the_end():
    def choice(**position):
        return answer("final_sprint", TAKE_OR_LEAVE, hand={9: 5}, **position).choice

    assert choice(other_hand=4, deck_size=21) == table_pb2.CHOICE_TAKE
    assert choice(other_hand=3, deck_size=21) == table_pb2.CHOICE_LEAVE
    assert choice(other_hand=4, deck_size=20) == table_pb2.CHOICE_LEAVE


def test_no_two_are_the_same_bot_under_two_names():
    def replies(name):
        given = []
        bots = [bot(name)] * 3
        play(bots, RULESETS["basic"], 5, lambda *decision: given.append(decision[-1]))
        return given

    assert all(one != other for one, other in combinations(map(replies, NAMES), 2))
