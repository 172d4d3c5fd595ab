"""Rulings R14 and R15: how a deck is dealt, and how seats are ranked."""

from __future__ import annotations

import pytest
from playouts import TABLE_NAMES, TABLES, shuffled
from positions import DECK, TAKE, draw, follow, game, next_decision, play

from referee.rules.actions import DecisionKind
from referee.rules.events import Drawn, Termination
from referee.rules.game import Game, competition_ranks
from referee.rules.ruleset import JOKER, RULESETS, count_cards

BLOCKS = [(ruleset, players) for ruleset, players in TABLES if not ruleset.ghost]


@pytest.mark.parametrize(
    ("ruleset", "players"), BLOCKS, ids=[name for name in TABLE_NAMES if "duel" not in name]
)
def test_R14_deck_deals_blocks_of_13_then_the_display(ruleset, players):
    deck = shuffled(ruleset, 14)
    view = Game(ruleset, players, deck).view(0)
    hands = [Game(ruleset, players, deck).view(seat).hand for seat in range(players)]
    assert hands == [count_cards(deck[13 * seat : 13 * seat + 13]) for seat in range(players)]
    start = 13 * players
    assert view.display == tuple((card,) for card in deck[start : start + 6])
    assert view.deck_size == 109 - start - 6
    assert view.ghost is None


def duel_deck() -> tuple[int, ...]:
    """Return a deck of the duel without a 13 or joker in the first 41 cards."""
    hands = [1] * 8 + [2] * 3 + [2] * 5 + [3] * 6
    display, ghost = [4, 5, 6, 7, 8, 9], [3, 3, *range(4, 13), 4, 5]
    rest = [card for card in range(1, 14) for _ in range(8)] + [JOKER]
    for card in (*hands, *display, *ghost):
        rest.remove(card)
    return (*hands, *display, *ghost, *rest)


def test_R14_duel_deals_11_cards_and_2_jokers_then_the_display_then_the_ghost():
    deck = duel_deck()
    run = Game(RULESETS["duel"], 2, deck)
    assert run.view(0).hand == count_cards([*deck[:11], JOKER, JOKER])
    assert run.view(1).hand == count_cards([*deck[11:22], JOKER, JOKER])
    assert run.view(0).display == tuple((card,) for card in deck[22:28])
    assert run.view(0).ghost == count_cards(deck[28:41])
    assert run.view(0).deck_size == 105 - 41
    assert run.view(0).discards == count_cards([])


@pytest.mark.parametrize(("ruleset", "players"), TABLES, ids=TABLE_NAMES)
def test_R14_seat_0_starts(ruleset, players):
    run = Game(ruleset, players, shuffled(ruleset, 0))
    assert next_decision(run) == (0, DecisionKind.PLAY)
    assert (run.view(0).active_seat, run.view(0).turn) == (0, 1)


def test_R14_first_card_of_the_deck_is_drawn_first():
    run = game(
        "classic", ["9 9 9 9 1", "2"], [[], ["8 8 8 8"]], display="1 2 3 4 5 6", deck="7 8 9 10"
    )
    follow(run, (0, play("9 9 9 9")), (0, TAKE))
    events = follow(run, (1, DECK), (1, draw(run, "6")), (1, DECK))
    assert events == [Drawn(1, None, (7,)), Drawn(1, 5, (6,)), Drawn(1, None, (8,))]
    follow(run, (1, DECK))
    assert run.view(0).display[5] == (10,)


def test_R14_turns_pass_clockwise():
    run = game("classic", ["1 2", "1 2", "1 2"])
    for turn, seat in enumerate((0, 1, 2), 1):
        assert (run.view(0).active_seat, run.view(0).turn) == (seat, turn)
        follow(run, (seat, play("1")))


def finished_game(ruleset: str, standing: list[tuple[int, int]]) -> Game:
    """Return a finished game; `standing` has the cards on the table and in the hand of each seat."""
    hands = [" ".join("1" * held) for _, held in standing]
    tables = [["2 " * played] if played else [] for played, _ in standing]
    first = standing[0]
    hands[0] += " 3"
    tables[0] = [" ".join("2" * (first[0] - 1))] if first[0] > 1 else []
    run = game(ruleset, hands, tables, max_turns=1)
    follow(run, (0, play("3")))
    while run.decision is not None:
        run.apply(run.decision.legal[0])
    return run


@pytest.mark.parametrize(
    ("standing", "scores", "classic", "others"),
    [
        ([(2, 1), (6, 1)], (1, 5), (2, 1), (2, 1)),
        ([(4, 2), (3, 1)], (2, 2), (1, 1), (2, 1)),
        ([(4, 2), (4, 2)], (2, 2), (1, 1), (1, 1)),
        ([(5, 1), (3, 1), (4, 2), (2, 3)], (4, 2, 2, -1), (1, 2, 2, 4), (1, 2, 3, 4)),
        ([(5, 1), (3, 1), (3, 1), (2, 3)], (4, 2, 2, -1), (1, 2, 2, 4), (1, 2, 2, 4)),
        ([(2, 6), (3, 1), (3, 1), (4, 2)], (-4, 2, 2, 2), (4, 1, 1, 1), (4, 1, 1, 3)),
        ([(3, 1)] * 5, (2,) * 5, (1,) * 5, (1,) * 5),
    ],
)
@pytest.mark.parametrize("ruleset", [name for name in RULESETS if name != "duel"])
def test_R15_ranks_go_by_score_then_tie_break_and_equal_seats_share_a_rank(
    ruleset, standing, scores, classic, others
):
    run = finished_game(ruleset, standing)
    assert run.outcome is not None
    assert run.outcome.termination is Termination.TURN_LIMIT
    assert run.outcome.scores == scores
    assert run.outcome.ranks == (classic if ruleset == "classic" else others)


@pytest.mark.parametrize(
    ("keys", "ranks"),
    [
        ([(3,), (2,), (2,), (1,)], (1, 2, 2, 4)),
        ([(2,), (3,), (1,), (2,)], (2, 1, 4, 2)),
        ([(1, -1), (1, -2), (1, -1)], (1, 3, 1)),
        ([(0,)], (1,)),
        ([], ()),
    ],
)
def test_R15_equal_keys_share_a_rank(keys, ranks):
    assert competition_ranks(keys) == ranks
