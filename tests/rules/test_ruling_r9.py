"""Ruling R9: where a 13 or joker goes that does not join the duel's ghost."""

from __future__ import annotations

import pytest
from positions import cards, follow, game, play

from referee.rules.events import GhostRefilled, SlotCard
from referee.rules.game import Game
from referee.rules.ruleset import JOKER, RULESETS, count_cards


def display_after(display: str, *turned_up: int) -> str:
    """Return the display after the ghost lost a 3 and turned up these cards and a 12."""
    ghost = "3 5 5 6 6 7 7 9 9 10 10 11 11"
    deck = " ".join("J" if card == JOKER else str(card) for card in (*turned_up, 12, 1, 1))
    run = game("duel", ["4 1", "2"], ghost=ghost, display=display, deck=deck)
    events = follow(run, (0, play("4")))
    assert isinstance(events[2], GhostRefilled)
    assert events[2].ghost_cards == (12,)
    assert tuple(card for _, card in events[2].display_cards) == turned_up
    assert run.view(0).deck_size == 2
    return " ".join(
        "+".join("J" if card == JOKER else str(card) for card in slot) or "-"
        for slot in run.view(0).display
    )


@pytest.mark.parametrize(
    ("reason", "before", "turned_up", "after"),
    [
        ("lowest single", "7 5 9 6 8 10", [13], "7 5+13 9 6 8 10"),
        ("leftmost of the lowest", "7 5 9 5 8 10", [JOKER], "7 5+J 9 5 8 10"),
        ("a group is no single", "7 2+13 9 5 8 10", [13], "7 2+13 9 5+13 8 10"),
        ("two go onto two singles", "7 5 9 6 8 10", [13, JOKER], "7 5+13 9 6+J 8 10"),
        ("a 13 is lower than a joker", "J 13 J J J J", [13], "J 13+13 J J J J"),
        (
            "a joker is a single as good as any",
            "3+13 J 4+13 5+13 J 6+13",
            [13],
            "3+13 J+13 4+13 5+13 J 6+13",
        ),
        ("gaps are left alone", "- 7 - 6 - -", [13], "- 7 - 6+13 - -"),
        ("no single: lowest bottom", "7+13 6+13 - - - -", [13], "7+13 6+13+13 - - - -"),
        (
            "no single: leftmost of equal bottoms",
            "7+13 6+J 6+13 - - -",
            [13],
            "7+13 6+J+13 6+13 - - -",
        ),
        (
            "no single: a joker at the bottom is highest",
            "J+13 13+J - - - -",
            [13],
            "J+13 13+J+13 - - - -",
        ),
        ("no single: gaps are left alone", "- 9+13 - 6+13 - -", [13], "- 9+13 - 6+13+13 - -"),
        ("empty display: the first slot", "- - - - - -", [13], "13 - - - - -"),
        ("the opened slot is then a single", "- - - - - -", [13, JOKER], "13+J - - - - -"),
        ("and then a group", "- - - - - -", [13, JOKER, 13], "13+J+13 - - - - -"),
    ],
    ids=lambda value: value.replace(" ", "-").replace(":", "") if isinstance(value, str) else None,
)
def test_R9_13_or_joker_goes_onto_this_card(reason, before, turned_up, after):
    assert display_after(before, *turned_up) == after, reason


def test_R9_applies_to_the_set_up():
    """The ghost turns up two 13s and a joker at the set-up."""
    head = cards("1 1 1 1 1 1 1 1 2 2 2 2 2 2 2 2 3 3 3 3 3 3")
    display, ghost_turns = cards("9 4 6 4 13 8"), cards("5 13 5 J 5 6 7 13 8 9 10 11 12 12 5 7")
    used = count_cards((*head, *display, *ghost_turns))
    full = [0, *([8] * 13), 1]
    tail = [card for card in range(1, 15) for _ in range(full[card] - used[card])]
    run = Game(RULESETS["duel"], 2, (*head, *display, *ghost_turns, *tail))
    view = run.view(0)
    assert view.display == ((9,), (4, 13), (6, 13), (4, JOKER), (13,), (8,))
    assert view.ghost == count_cards(cards("5 5 5 6 7 8 9 10 11 12 12 5 7"))
    assert view.deck_size == len(tail)


def test_R9_event_names_the_slots_in_drawing_order():
    run = game("duel", ["4 1", "2"], ghost="3", display="7 5 9 6 8 10", deck="13 2 J")
    events = follow(run, (0, play("4")))
    assert events[2] == GhostRefilled((2,), (SlotCard(1, 13), SlotCard(3, JOKER)))
