"""Every game keeps its cards and ends; illegal actions change nothing; copies are independent."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy

import pytest
from few_tables import few_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from playouts import POLICIES, TABLE_NAMES, TABLES, anything, pick, shuffled

from referee.rules.actions import Action, Choice, Decision, DrawDisplay, Play, SnatchGhost
from referee.rules.events import Event, GameOver, Termination
from referee.rules.game import Game, IllegalActionError
from referee.rules.ruleset import FULL, RULESETS, Counts, EndOn, Layer, Ruleset, count_cards

pytestmark = pytest.mark.unmeasured

every_table = pytest.mark.parametrize(("ruleset", "players"), TABLES, ids=TABLE_NAMES)
seeds = st.integers(0, 2**32)
policies = st.sampled_from(POLICIES)


def deal(ruleset: Ruleset, players: int, seed: int) -> Game:
    """Return a short random game. With odd seeds it ends with the deck."""
    end_on = EndOn.DECK if seed % 2 else EndOn.DECK_AND_DISPLAY
    rules = ruleset.with_options(end_on=end_on, max_turns=120)
    return Game(rules, players, shuffled(rules, seed))


def play_on(game: Game, policy, chance: random.Random) -> Iterator[Decision]:
    """Play to the end; yield each decision before its action."""
    while game.decision is not None:
        yield game.decision
        game.apply(policy(game.decision, chance))


def undrawn(game: Game) -> tuple[int, ...]:
    """Return the rest of the deck in drawing order."""
    return game.table.deck[len(game.table.deck) - game.table.deck_size :]


def everything(game: Game) -> tuple[object, ...]:
    """Return the whole state of a game."""
    views = tuple(game.view(seat) for seat in range(game.players))
    return (views, game.decision, game.outcome, undrawn(game), tuple(game.table.events))


def all_cards(game: Game) -> Counts:
    """Count all cards of a game, in every place."""
    views = [game.view(seat) for seat in range(game.players)]
    public = views[0]
    found = list(undrawn(game))
    found += [card for slot in public.display for card in slot]
    found += [card for table in public.tables for layer in table for card in layer.cards]
    if public.snatched is not None:
        found += public.snatched.cards
    piles = [count_cards(found), public.discards, *(view.hand for view in views)]
    if public.ghost is not None:
        piles.append(public.ghost)
    return tuple(map(sum, zip(*piles, strict=True)))


@every_table
@settings(max_examples=6)
@given(seed=seeds, policy=policies)
def test_game_conserves_its_109_cards_and_ends(ruleset, players, seed, policy):
    game = deal(ruleset, players, seed)
    assert all_cards(game) == FULL
    for _ in play_on(game, policy, random.Random(seed)):
        assert all_cards(game) == FULL
    assert all_cards(game) == FULL
    assert game.outcome is not None
    assert game.decision is None


@every_table
@settings(max_examples=6)
@given(seed=seeds, policy=policies)
def test_outcome_follows_from_the_last_view(ruleset, players, seed, policy):
    game = deal(ruleset, players, seed)
    for _ in play_on(game, policy, random.Random(seed)):
        assert game.outcome is None
    view = game.view(0)
    termination, scores, ranks = game.outcome
    for seat, points in enumerate(scores):
        on_table = sum(layer.size for layer in view.tables[seat])
        assert points == on_table - view.hand_sizes[seat]
    assert (0 in view.hand_sizes) is (termination is Termination.OUT)
    if termination is Termination.DECK_EMPTY:
        assert (view.deck_size, game.ruleset.end_on) == (0, EndOn.DECK)
    if termination is Termination.EXHAUSTED:
        assert (view.deck_size, view.display) == (0, ((),) * 6)
    if termination is Termination.TURN_LIMIT:
        assert view.turn == game.ruleset.max_turns
    assert scores[ranks.index(1)] == max(scores)


# Illegal actions


def foreign_actions(chance: random.Random) -> list[Action]:
    """Return random actions of every kind. Most are not legal."""
    layers = [
        Layer(chance.randint(-1, 16), chance.randint(-1, 9), chance.randint(-1, 6))
        for _ in range(6)
    ]
    return [
        *Choice,
        *map(Play, layers),
        Play(Layer(14, 0, 0)),
        Play(Layer(chance.randint(1, 13), 0, 1)),
        *(DrawDisplay(slot, (chance.randint(0, 15),)) for slot in range(-1, 8)),
        *(DrawDisplay(slot, ()) for slot in range(-1, 8)),
        *(SnatchGhost(value) for value in range(-1, 16)),
    ]


@few_tables
@settings(max_examples=4)
@given(seed=seeds, policy=policies)
def test_illegal_action_changes_nothing(ruleset, players, seed, policy):
    game, chance = deal(ruleset, players, seed), random.Random(seed)
    for decision in play_on(game, policy, random.Random(seed)):
        if chance.random() < 0.8:
            continue
        before = everything(game)
        for action in foreign_actions(chance):
            if action not in decision.legal:
                with pytest.raises(IllegalActionError):
                    game.apply(action)
                assert everything(game) == before
    unharmed = deal(ruleset, players, seed)
    for _ in play_on(unharmed, policy, random.Random(seed)):
        pass
    assert everything(game) == everything(unharmed)


@every_table
def test_every_action_is_illegal_after_the_end(ruleset, players):
    game = deal(ruleset, players, 3)
    legal_once = {
        action
        for decision in play_on(game, anything, random.Random(3))
        for action in decision.legal
    }
    before = everything(game)
    for action in legal_once:
        with pytest.raises(IllegalActionError):
            game.apply(action)
    assert everything(game) == before


@pytest.mark.parametrize("nonsense", [None, "play", 0, (), [], {}, object(), Play, Layer(1, 1, 0)])
def test_value_that_is_no_action_is_illegal(nonsense):
    game = deal(RULESETS["basic"], 3, 4)
    before = everything(game)
    with pytest.raises(IllegalActionError):
        game.apply(nonsense)
    assert everything(game) == before


@pytest.mark.parametrize("name", RULESETS)
def test_value_that_equals_a_legal_action_is_replaced_by_it(name):
    """A named tuple equals a plain one, and 1 equals 1.0. Such values must not enter the game."""
    for look_alike in (plain_tuple, with_floats):
        game, twin, chance = (
            deal(RULESETS[name], 2, 9),
            deal(RULESETS[name], 2, 9),
            random.Random(9),
        )
        while game.decision is not None:
            action = anything(game.decision, chance)
            assert repr(game.apply(look_alike(action))) == repr(twin.apply(action))
            assert repr(everything(game)) == repr(everything(twin))


def plain_tuple(action):
    return tuple(map(plain_tuple, action)) if isinstance(action, tuple) else action


def with_floats(action):
    if isinstance(action, tuple):
        parts = map(with_floats, action)
        return type(action)(*parts) if hasattr(action, "_fields") else tuple(parts)
    return float(action) if isinstance(action, int) else action


# Copies and replays


@few_tables
@settings(max_examples=5)
@given(seed=seeds, policy=policies)
def test_copy_is_equal_and_independent(ruleset, players, seed, policy):
    game, chance = deal(ruleset, players, seed), random.Random(seed)
    steps = play_on(game, policy, random.Random(seed))
    for _ in steps:
        if chance.random() < 0.85:
            continue
        before = everything(game)
        stray = game.copy()
        assert everything(stray) == before
        for _ in play_on(stray, anything, chance):
            pass
        assert everything(game) == before  # the copy did not change it
        twin = game.copy()
        while twin.decision is not None:
            action = pick(chance, twin.decision.legal)
            if chance.random() < 0.9:
                twin = twin.copy()  # a copy of a copy, during a turn
            twin.apply(action)
        assert everything(game) == before


@few_tables
@settings(max_examples=5)
@given(seed=seeds, policy=policies, stop=st.integers(0, 200))
def test_copy_continues_like_the_original(ruleset, players, seed, policy, stop):
    game = deal(ruleset, players, seed)
    for number, _ in enumerate(play_on(game, policy, random.Random(seed))):
        if number == stop:
            break
    twins, chance = (game.copy(), deepcopy(game)), random.Random(seed)
    while game.decision is not None:
        action = policy(game.decision, chance)
        assert [twin.decision for twin in twins] == [game.decision] * 2
        events = game.apply(action)
        assert [twin.apply(action) for twin in twins] == [events] * 2
        assert [everything(twin) for twin in twins] == [everything(game)] * 2
    for copy in (game.copy(), deepcopy(game)):  # a game that is over can be copied too
        assert everything(copy) == everything(game)


@few_tables
@settings(max_examples=5)
@given(seed=seeds, policy=policies)
def test_same_actions_give_the_same_events_and_outcome(ruleset, players, seed, policy):
    game, chance = deal(ruleset, players, seed), random.Random(seed)
    log: list[tuple[Action, tuple[Event, ...]]] = []
    while game.decision is not None:
        action = policy(game.decision, chance)
        log.append((action, game.apply(action)))
    again = deal(ruleset, players, seed)
    assert [again.apply(action) for action, _ in log] == [events for _, events in log]
    assert again.outcome == game.outcome
    last = log[-1][1][-1]
    assert isinstance(last, GameOver)
    assert last == game.outcome
    assert sum(isinstance(event, GameOver) for _, events in log for event in events) == 1


def test_view_does_not_change_later():
    game, chance = deal(RULESETS["duel"], 2, 8), random.Random(8)
    kept = []
    for _ in play_on(game, anything, chance):
        view = game.view(0)
        kept.append((view, repr(view)))
    assert all(repr(view) == text for view, text in kept)


# Compared with an independent engine: the number of decisions in a game of random players


@pytest.mark.parametrize(
    ("ruleset", "players", "decisions", "exhausted"),
    [
        ("basic", 4, 164, (0.8, 1.0)),
        ("classic", 2, 45, (0.0, 0.1)),
        ("classic", 4, 206, (0.0, 1.0)),
        ("duel", 2, 138, (0.0, 1.0)),
    ],
)
def test_random_games_are_as_long_as_those_of_another_engine(
    ruleset, players, decisions, exhausted
):
    rules = RULESETS[ruleset]
    total, games, ends = 0, 200, []
    for seed in range(games):
        chance = random.Random(seed)
        run = Game(rules, players, shuffled(rules, seed))
        while run.decision is not None:
            run.apply(anything(run.decision, chance))
            total += 1
        ends.append(run.outcome.termination)
    assert total / games == pytest.approx(decisions, rel=0.1)
    low, high = exhausted
    assert low <= ends.count(Termination.EXHAUSTED) / games <= high
