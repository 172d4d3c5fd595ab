"""Every Python sample bot is as documented, plays by the rules, and beats random play."""

from __future__ import annotations

import ast
import collections
import re
import sys
from itertools import combinations
from types import SimpleNamespace

import pytest
from bot_games import CHANGED_DUEL, FOLDER, NAMES, TABLE_NAMES, TABLES, bot, decide, module, play
from greedy_by_the_book import choose

from referee.bots.manifest import load_manifest
from referee.pb import table_pb2
from referee.protocol.values import ruleset_message
from referee.rules.actions import Choice, DecisionKind, SnatchGhost
from referee.rules.ruleset import HIDDEN, JOKER, RULESETS, Layer

pytestmark = pytest.mark.unmeasured
EXPECTED = [
    "bait",
    "counter",
    "final_sprint",
    "greedy",
    "ismcts",
    "learner",
    "random",
    "small_beasts",
]
MAY_IMPORT = {
    "ismcts": {"referee.sdk.simulate"},
    "learner": {"numpy", "numpy.typing", "referee.sdk.env"},
}
README = (FOLDER / "README.md").read_text()
SEARCHES = pytest.mark.extended("the bot searches at every decision of many games")
PLAYERS = [pytest.param(name, marks=SEARCHES if name == "ismcts" else ()) for name in NAMES]
BETTER_THAN_CHANCE = [player for player in PLAYERS if player.values != ("random",)]


def test_there_are_eight_python_bots():
    assert NAMES == EXPECTED


@pytest.mark.parametrize("name", NAMES)
def test_manifest_names_the_bot_and_its_program(name):
    manifest = load_manifest(FOLDER / name)
    assert manifest.name == name
    assert manifest.language == "python"
    assert manifest.run.command == ("python3", "bot.py")
    assert manifest.build is None


@pytest.mark.parametrize("name", NAMES)
def test_bot_imports_only_what_it_may(name):
    tree = ast.parse((FOLDER / name / "bot.py").read_text())
    imported = {
        node.module if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert "referee.sdk" in imported
    others = imported - {"referee.sdk"} - MAY_IMPORT.get(name, set())
    assert {each.split(".")[0] for each in others} <= sys.stdlib_module_names


@pytest.mark.parametrize("name", NAMES)
def test_readme_describes_the_bot(name):
    assert re.search(rf"^\| `{name}` \|", README, re.MULTILINE)
    assert module(name).__doc__
    assert README.count(load_manifest(FOLDER / name).description)


@pytest.mark.parametrize(("rules", "players"), TABLES, ids=TABLE_NAMES)
@pytest.mark.parametrize("name", PLAYERS)
def test_bot_plays_by_the_rules_at_every_table(name, rules, players):
    play([bot(name)] * players, rules, seed=3)


@pytest.mark.parametrize("name", PLAYERS)
def test_bot_takes_every_kind_of_decision(name):
    """`play` fails if an action is not legal."""
    kinds = collections.Counter()

    def watch(seat, game, _request, _reply):
        if seat == 0:
            kinds[game.decision.kind] += 1

    for rules in (RULESETS["duel"], RULESETS["basic"]):
        for seed in range(4):
            play([bot(name), bot("random")], rules, seed, watch)
            play([bot("random"), bot(name)], rules, seed, watch)
            play([bot(name), bot(name)], rules, seed, watch)
    assert set(kinds) == set(DecisionKind)


@pytest.mark.parametrize("name", PLAYERS)
def test_bot_snatches_from_the_ghost_and_passes_if_it_may(name):
    replies = collections.Counter()

    def watch(seat, game, _request, reply):
        decision = game.decision
        is_asked = decision.kind is DecisionKind.GHOST_SET and Choice.PASS in decision.legal
        if seat == 0 and is_asked:
            replies[reply.action.WhichOneof("kind")] += 1

    for seed in range(8):
        play([bot(name), bot("random")], CHANGED_DUEL, seed, watch)
    assert set(replies) == {"ghost_value", "choice"}


@pytest.mark.parametrize("name", NAMES)
def test_bot_repeats_its_replies_with_the_same_seed(name):
    def record_replies(seed):
        replies = []
        play(
            [bot(name), bot("random"), bot(name)],
            RULESETS["expert"],
            seed,
            lambda _seat, _game, _request, reply: replies.append(reply),
        )
        return replies

    assert record_replies(1) == record_replies(1)
    assert record_replies(1) != record_replies(2)


@pytest.mark.parametrize(
    ("ruleset", "players"),
    [
        ("basic", 4),
        pytest.param("classic", 3, marks=pytest.mark.extended("plays more games")),
        pytest.param("duel", 2, marks=pytest.mark.extended("plays more games")),
    ],
)
@pytest.mark.parametrize("name", BETTER_THAN_CHANCE)
def test_bot_beats_random_bots_in_nine_games_of_ten(name, ruleset, players):
    """The bot plays alone against random bots, in each seat."""
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
def test_greedy_follows_its_policy_in_the_readme(rules, players):
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
GHOST_SET = table_pb2.DECISION_KIND_GHOST_SET
SETS = [SnatchGhost(3), SnatchGhost(9), SnatchGhost(12)]
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
    (GHOST_SET, {"hand": {4: 2, 10: 1}, "ghost_actions": SETS}, {"ghost_value": 12}),
    (
        GHOST_SET,
        {"hand": {4: 2, 10: 1}, "ghost_actions": [*SETS, Choice.PASS]},
        {"choice": table_pb2.CHOICE_PASS},
    ),
]
"""The examples of the README, in the same order."""


@pytest.mark.parametrize(("kind", "position", "expected"), EXAMPLES)
def test_greedy_decides_the_examples_of_the_readme_as_they_say(kind, position, expected):
    assert decide("greedy", kind, **position) == table_pb2.Action(**expected)


def test_every_example_of_the_readme_is_tested():
    rows = README.split("Examples:")[1].strip().splitlines()[2:]
    assert len(rows) == len(EXAMPLES)


# Counter


@pytest.mark.parametrize(("rules", "players"), TABLES, ids=TABLE_NAMES)
def test_cards_that_counter_knows_are_in_the_hands(rules, players, monkeypatch):
    """At each decision every hand has at least the known cards, and many cards are known."""
    instances = []
    counter = bot("counter")
    start = counter.start

    def remember(self, game):
        instances.append(self)
        start(self, game)

    monkeypatch.setattr(counter, "start", remember)
    known_cards = 0

    def watch(seat, game, _request, _reply):
        nonlocal known_cards
        if seat == 0:
            for hand, known in zip(game.table.hands, instances[-1].known, strict=True):
                assert known[HIDDEN] == 0
                assert all(held >= least for held, least in zip(hand, known, strict=True))
                known_cards += sum(known)

    for seed in range(4):
        play([counter, *[bot("random")] * (players - 1)], rules, seed, watch)
    assert known_cards > 50
    assert len(instances) == 4


def test_counter_knows_which_seat_can_snatch_a_layer():
    counter = bot("counter")()
    counter.start(SimpleNamespace(ruleset=RULESETS["basic"], players=2))
    seven_alone = Layer(7, 1, 0)
    two_sevens = Layer(7, 2, 0)
    assert not counter.can_snatch(1, seven_alone)
    counter.known[1][8] = 1
    assert counter.can_snatch(1, seven_alone)
    assert not counter.can_snatch(1, two_sevens)
    counter.known[1][JOKER] = 1
    assert counter.can_snatch(1, two_sevens)
    assert counter.can_snatch(1, Layer(13, 1, 0))  # by the joker alone


@pytest.mark.parametrize(
    ("known", "layer", "rulesets"),
    [
        ({JOKER: 2}, Layer(JOKER, 0, 1), set()),
        ({13: 2, JOKER: 2}, Layer(JOKER, 0, 2), set()),
        ({1: 1, JOKER: 1}, Layer(JOKER, 0, 2), {"expert", "expert-jokers"}),
        ({1: 1, JOKER: 1}, Layer(JOKER, 0, 3), set()),
        ({1: 2}, Layer(13, 2, 0), {"expert"}),
        ({1: 2}, Layer(12, 2, 0), set()),
    ],
)
def test_counter_knows_what_snatches_jokers_and_thirteens(known, layer, rulesets):
    for name, rules in RULESETS.items():
        counter = bot("counter")()
        counter.start(SimpleNamespace(ruleset=rules, players=2))
        counter.known[1] = [known.get(card, 0) for card in range(JOKER + 1)]
        assert counter.can_snatch(1, layer) == (name in rulesets)


# Ismcts


def test_ismcts_keeps_count_over_decisions_of_unknown_kind():
    """A later referee may send kinds that this SDK does not know."""

    def change(request):
        if request.decision_id % 5 == 0:
            request.kind = 1000

    play([bot("ismcts"), bot("random")], RULESETS["basic"], 1, change=change)


@pytest.mark.parametrize(
    ("time_left_us", "bank_left_us", "seconds"),
    [
        (0, 0, 0.2),  # no limit
        (5_000_000, 0, 0.2),
        (200_000, 0, 0.12),
        (5_000_000, 30_000_000, 0.2),
        (2_000_000, 2_000_000, 0.06),
        (100_000, 100_000, 0.0315),
    ],
)
def test_ismcts_leaves_a_part_of_each_limit(time_left_us, bank_left_us, seconds):
    clocks = SimpleNamespace(increment_us=50_000)
    request = SimpleNamespace(
        time_left_us=time_left_us, bank_left_us=bank_left_us, game=SimpleNamespace(clocks=clocks)
    )
    thinking = module("ismcts").Ismcts().seconds_for(request)
    assert thinking == pytest.approx(seconds)


def test_ismcts_tries_each_action_and_then_the_most_promising():
    program = module("ismcts")
    node, chosen = program.Node(), collections.Counter()
    for _ in range(200):
        action = node.select(["good", "bad", "worse"])
        chosen[action] += 1
        node.children[action].visits += 1
        node.children[action].total += {"good": 0.9, "bad": 0.5, "worse": 0.1}[action]
    assert chosen["good"] > chosen["bad"] > chosen["worse"] > 0


def test_ismcts_rates_a_seat_by_its_lead():
    rate = module("ismcts").rate
    ahead, equal, behind = rate(SimpleNamespace(outcome=SimpleNamespace(scores=(10, 10, -4))))
    assert ahead == equal > 0.7
    assert 0 < behind < 0.1
    assert rate(SimpleNamespace(outcome=SimpleNamespace(scores=(3, 3)))) == [0.5, 0.5]


@pytest.mark.extended("plays some games in which a bot searches at each decision")
@pytest.mark.parametrize(("ruleset", "players"), [("basic", 4), ("duel", 2)])
def test_ismcts_beats_bait_with_sixty_iterations(ruleset, players):
    searching = type("Ismcts", (bot("ismcts"),), {"iterations": 60})
    ahead = 0.0
    for game in range(16):
        bots = [bot("bait")] * players
        bots[game % players] = searching
        ranks = play(bots, RULESETS[ruleset], game // players).ranks
        ahead += sum(ranks[game % players] < rank for rank in ranks) / (players - 1)
    assert ahead > 8


# The tactics of the rulebooks, each in a typical position


def choose_play(name, **position):
    layer = decide(name, PLAY, **position).play
    return layer.value, layer.naturals


def test_bait_plays_a_low_single_card_while_the_display_is_good():
    lonely = {2: 1, 5: 1, 9: 3}
    assert choose_play("bait", hand=lonely, display=[9, 1]) == (2, 1)
    assert choose_play("bait", hand=lonely, display=[10, 1]) == (9, 3)  # no good card on display
    assert choose_play("bait", hand={2: 2, 8: 1, 9: 3}, display=[9]) == (9, 3)  # no low single card
    assert choose_play("bait", hand=lonely, display=[9], other_hand=4) == (9, 3)  # too late
    own_layer = decide("bait", table_pb2.DECISION_KIND_RECLAIM_OR_DISCARD, hand={2: 5})
    assert own_layer.choice == table_pb2.CHOICE_DISCARD


def test_small_beasts_saves_low_cards_until_it_has_four():
    assert choose_play("small_beasts", hand={2: 3, 9: 1}) == (9, 1)
    assert choose_play("small_beasts", hand={2: 4, 9: 1}) == (2, 4)
    assert choose_play("small_beasts", hand={2: 3, 9: 1}, other_hand=3) == (2, 3)  # too late


def test_final_sprint_leaves_snatched_layers_near_the_end():
    def choice(**position):
        return decide("final_sprint", TAKE_OR_LEAVE, hand={9: 5}, **position).choice

    assert choice(other_hand=4, deck_size=21) == table_pb2.CHOICE_TAKE
    assert choice(other_hand=3, deck_size=21) == table_pb2.CHOICE_LEAVE
    assert choice(other_hand=4, deck_size=20) == table_pb2.CHOICE_LEAVE


def test_bots_decide_differently_from_each_other():
    def record_replies(name):
        replies = []
        bots = [bot(name)] * 3
        play(bots, RULESETS["basic"], 5, lambda *decision: replies.append(decision[-1]))
        return replies

    assert all(one != other for one, other in combinations(map(record_replies, NAMES), 2))
