"""The forward model draws what a seat cannot see: only possible games, each with the same chance."""

from __future__ import annotations

import random
import textwrap
from collections import Counter
from itertools import permutations

import pytest
from observed_games import VARIANTS, Observed, Seat, observe_decisions, small_table
from scipy.stats import chisquare

from referee.pb import play_pb2, table_pb2
from referee.rules.actions import DecisionKind
from referee.rules.events import Drawn, GhostSnatched, Played, Reclaimed, Taken, redact
from referee.rules.game import Game, IllegalActionError
from referee.rules.ruleset import FULL, HIDDEN, JOKER, full_deck, list_cards
from referee.sdk import Request, simulate
from referee.sdk.simulate import ImpossibleViewError, Observer

CASES = [
    *((name, 2, DecisionKind.PLAY) for name in VARIANTS if name != "basic"),
    ("basic", 3, DecisionKind.PLAY),
    ("classic", 3, DecisionKind.PLAY),
    ("basic", 2, DecisionKind.TAKE_OR_LEAVE),
    ("expert", 3, DecisionKind.RECLAIM_OR_DISCARD),
    ("basic", 2, DecisionKind.DRAW),
    ("basic", 2, DecisionKind.OPTIONAL_DRAW),
    ("duel", 2, DecisionKind.GHOST_SET),
    ("duel", 2, DecisionKind.DRAW),
]
SEAT = 0


def state(game: Game):
    """Return all that the seat cannot see: the hands of the others and the rest of the deck."""
    table = game.table
    hands = tuple(tuple(hand) for seat, hand in enumerate(table.hands) if seat != SEAT)
    return hands, table.deck[len(table.deck) - table.deck_size :]


def known_cards(observed: Observed, rules, players: int) -> list[list[int]]:
    """Return the cards that each hand must have, by the largest surplus of gains since any moment of the game."""
    known = []
    for seat in range(players):
        surplus, most = [0] * 15, [0] * 15
        for event in reversed(observed.events):
            match event:
                case Played(player, layer) if player == seat:
                    for card in layer.cards:
                        surplus[card] -= 1
                case Drawn(player, _, cards) if player == seat and HIDDEN not in cards:
                    for card in cards:
                        surplus[card] += 1
                case Taken(player, layer) | Reclaimed(player, layer) | GhostSnatched(player, layer):
                    for card in layer.cards if player == seat else ():
                        surplus[card] += 1
            most = [max(pair) for pair in zip(most, surplus, strict=True)]
        if rules.ghost:
            most[JOKER] = max(most[JOKER], surplus[JOKER] + 2)  # they were dealt
        known.append(most)
    return known


def possible_states(start, observed: Observed) -> set:
    """Deal all hidden cards of the start in every way, and return the states where the seat has seen the same."""
    rules, others = start.ruleset, range(1, start.players)
    fixed = 2 if rules.ghost else 0  # jokers that were dealt
    sizes = [start.hand_sizes[seat] - fixed for seat in others]
    hidden = [*start.deck]
    for seat in others:
        held = list_cards(start.hands[seat])
        hidden += held[: len(held) - fixed]  # jokers are last
    found = set()
    for cards in set(permutations(hidden)):
        table, begin = start.copy(), 0
        for seat, size in zip(others, sizes, strict=True):
            table.hands[seat] = [0] * 14 + [fixed]
            for card in cards[begin : begin + size]:
                table.hands[seat][card] += 1
            begin += size
        table.deck = cards[begin:]
        game, events = Game.from_table(table), []
        try:
            for action in observed.actions:
                events += [redact(event, SEAT) for event in game.apply(action)]
        except IllegalActionError:
            continue
        if events == observed.events:
            assert game.view(SEAT) == observed.game.view(SEAT)
            found.add(state(game))
    return found


def expected_chances(observed: Observed, rules, players: int) -> dict:
    """Lay the unseen cards into the unknown places in every way, and return the chance of each state."""
    table = observed.game.table
    known = known_cards(observed, rules, players)
    others = [seat for seat in range(players) if seat != SEAT]
    unseen = list(table.deck[len(table.deck) - table.deck_size :])
    for seat in others:
        unknown = [held - sure for held, sure in zip(table.hands[seat], known[seat], strict=True)]
        unseen += list_cards(tuple(unknown))
    ways = Counter()
    for cards in set(permutations(unseen)):
        hands, begin = [], 0
        for seat in others:
            hand, missing = list(known[seat]), table.hand_sizes[seat] - sum(known[seat])
            for card in cards[begin : begin + missing]:
                hand[card] += 1
            begin += missing
            hands.append(tuple(hand))
        ways[tuple(hands), cards[begin:]] += 1
    return {state: count / ways.total() for state, count in ways.items()}


def find_position(name: str, players: int, kind: DecisionKind):
    """Return the table of the start, and a decision of this kind that has many possible states and known cards."""
    for seed in range(500):
        chance = random.Random(seed)
        start = small_table(VARIANTS[name], players, chance)
        for observed in observe_decisions(Game.from_table(start.copy()), SEAT, chance):
            decision, unseen = observed.game.decision, observed.information_set.unseen
            known = known_cards(observed, VARIANTS[name], players)[1:]
            if (
                decision.kind is kind
                and 3 <= len(unseen) <= 6
                and len(set(unseen)) > 2
                and observed.actions
                and any(map(any, known))
            ):
                return start, observed
    raise AssertionError("no seed gives such a position")


@pytest.mark.parametrize(
    ("name", "players", "kind"),
    CASES,
    ids=[f"{name}-{players}-{kind.value}" for name, players, kind in CASES],
)
def test_every_possible_game_is_drawn_with_the_same_chance(name, players, kind):
    start, observed = find_position(name, players, kind)
    expected = expected_chances(observed, VARIANTS[name], players)
    assert set(expected) == possible_states(start, observed)
    assert len(expected) > 2
    draws = max(1500, 20 * len(expected))
    chance = random.Random(1)
    drawn = Counter(state(observed.information_set.draw(chance)) for _ in range(draws))
    assert set(drawn) <= set(expected)
    found = [drawn[each] for each in expected]
    assert chisquare(found, [draws * share for share in expected.values()]).pvalue > 0.001


TABLES = [
    (name, players)
    for name, rules in VARIANTS.items()
    for players in sorted({rules.min_players, rules.max_players})
]


def dealt(name: str, players: int, seed: int) -> Game:
    cards = list_cards(full_deck(VARIANTS[name]))
    random.Random(seed).shuffle(cards)
    return Game(VARIANTS[name], players, cards)


@pytest.mark.parametrize(("name", "players"), TABLES)
def test_drawn_game_shows_the_seat_the_same_and_can_be_played_to_its_end(name, players):
    chance = random.Random(5)
    kinds = set()
    for number, observed in enumerate(observe_decisions(dealt(name, players, 7), SEAT, chance)):
        kinds.add(observed.game.decision.kind)
        if number % 4:
            continue
        drawn = observed.information_set.draw(chance)
        assert drawn.view(SEAT) == observed.game.view(SEAT)
        assert drawn.decision == observed.game.decision
        table = drawn.table
        layers = [layer.cards for each in table.layers for layer in each]
        cards = Counter(card for some in (*layers, *table.display) for card in some)
        cards.update(table.deck[len(table.deck) - table.deck_size :])
        cards.update(table.snatched.cards if table.snatched else ())
        for counts in (*table.hands, table.discards, table.ghost or ()):
            cards.update(list_cards(tuple(counts)))
        assert cards == Counter(list_cards(FULL))
        while drawn.decision is not None:
            drawn.apply(chance.choice(drawn.decision.legal))
        assert drawn.outcome is not None
    assert len(kinds) > 2


def test_drawn_games_are_independent():
    observed = next(observe_decisions(dealt("basic", 4, 1), SEAT, random.Random(1)))
    one, other = (observed.information_set.draw(random.Random(2)) for _ in range(2))
    before = state(other), other.view(SEAT)
    one.apply(one.decision.legal[0])
    assert (state(other), other.view(SEAT)) == before


def test_observer_remembers_the_cards_that_everybody_saw():
    """Seat 1 has taken what it snatched; half of the drawn hands would not have the cards by chance."""
    found = 0
    for observed in observe_decisions(dealt("basic", 2, 3), SEAT, random.Random(3)):
        known = known_cards(observed, VARIANTS["basic"], 2)[1]
        found += sum(known)
        for seed in range(3):
            hand = observed.information_set.draw(random.Random(seed)).table.hands[1]
            assert all(held >= sure for held, sure in zip(hand, known, strict=True))
    assert found > 50


# What no seat can have seen


def first_request(change) -> tuple[Observer, Request]:
    """Return an observer, and its first request after `change` has been applied to the message."""
    seat = Seat(game := dealt("basic", 3, 1), SEAT)
    request = seat.request(game)
    change(request.message)
    return Observer(seat.started), Request(request.message, seat.started, request.bot)


def change_display(message: play_pb2.Request) -> None:
    for slot in message.view.display:
        slot.cards[:] = [14]


def change_kind(message: play_pb2.Request) -> None:
    message.kind = table_pb2.DECISION_KIND_DRAW


def add_event(**event):
    return lambda message: message.events.add(**event)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            lambda message: message.view.hand_sizes.__setitem__(1, 12),
            "the hand of seat 1 has the size 13, but 12",
        ),
        (lambda message: message.view.hand.__setitem__(2, 9), "hand of your seat 0 is"),
        (lambda message: setattr(message.view, "deck_size", 50), "places in hands and deck is"),
        (change_display, "the card J is seen 7 times, but there are 5"),
        (change_kind, "no decision draw"),
        (lambda message: message.legal.pop(), "legal actions of seat 0 do not follow"),
        (
            add_event(drawn={"seat": 2, "slot": 1, "cards": [3]}),
            "the hand of seat 2 has the size 14, but 13 in the view",
        ),
    ],
)
def test_state_that_the_seat_cannot_have_seen_is_refused(change, error):
    observer, request = first_request(change)
    with pytest.raises(ImpossibleViewError, match=error):
        observer.observe(request)


def test_skipped_request_is_noticed():
    seat = Seat(game := dealt("basic", 2, 1), SEAT)
    observer = Observer(seat.started)
    while game.decision is not None and game.decision.seat == SEAT:
        seat.see(game.apply(game.decision.legal[0]))
    while game.decision.seat != SEAT:
        seat.see(game.apply(game.decision.legal[0]))
    seat.request(game)  # the bot does not observe it
    seat.see(game.apply(game.decision.legal[0]))
    while game.decision.seat != SEAT:
        seat.see(game.apply(game.decision.legal[0]))
    with pytest.raises(ImpossibleViewError, match="observe every request of the game once"):
        observer.observe(seat.request(game))


# The example of the module


def test_example_of_the_module_searches():
    text = simulate.__doc__.split("best results:\n\n")[1]
    program = textwrap.dedent(text)
    assert len(program.splitlines()) <= 40
    names = {"__name__": "example"}
    exec(compile(program, "example", "exec"), names)  # noqa: S102 - the text of the module
    names["MOST_S"] = 0.02
    played = Counter()

    class Watched(names["Searcher"]):
        def play_out(self, game, action, request):
            played[action] += 1
            return super().play_out(game, action, request)

    seat = Seat(game := dealt("duel", 2, 1), SEAT)
    bot = Watched()
    bot.start(seat.started)
    request = seat.request(game)
    assert bot.decide(request) in request.legal
    assert set(played) == set(request.legal)
