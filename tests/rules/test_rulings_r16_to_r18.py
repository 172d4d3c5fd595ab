"""Rulings R16 to R18: options of the duel where editions of the rulebooks differ.

`test_oracle_agrees`, `test_playouts` and `test_leaks` play all combinations of these options.
"""

from __future__ import annotations

import pytest
from playouts import DUELS, VARIANTS, shuffled
from positions import PASS, TAKE, cards, follow, game, hand, next_decision, of_kind, play

from referee.rules.actions import DecisionKind, SnatchGhost
from referee.rules.events import GhostDeclined, GhostRefilled, GhostSnatched, SlotCard, redact
from referee.rules.game import Game
from referee.rules.ruleset import (
    GHOST_OPTIONS,
    RULESETS,
    EndOn,
    GhostOverflow,
    GhostSnatch,
    GhostStart,
    card_name,
    count_cards,
    full_deck,
)

DUEL = RULESETS["duel"]
GHOST = "3 5 5 6 6 7 7 9 9 10 10 11 11"


# The options


def test_default_of_every_option_is_the_duel_without_options():
    assert DUELS["duel"] == DUEL
    assert len(set(DUELS.values())) == 8


@pytest.mark.parametrize(
    "option", [GhostStart.AS_DEALT, GhostSnatch.OPTIONAL, GhostOverflow.LOWEST]
)
@pytest.mark.parametrize("name", [name for name in RULESETS if name != "duel"])
def test_ruleset_without_a_ghost_refuses_its_options(name, option):
    (key,) = (key for key, default in GHOST_OPTIONS.items() if type(default) is type(option))
    with pytest.raises(ValueError, match=f"^{name} has no ghost, so it has no {key}$"):
        RULESETS[name].with_options(**{key: option})
    rules = RULESETS[name].with_options(**GHOST_OPTIONS)
    assert rules == RULESETS[name]


# R16: the ghost at the set-up


def dealt(display: str, turned_up: str, start: GhostStart, **options) -> Game:
    """Return a new duel with this display and these cards for the ghost."""
    rules = DUEL.with_options(ghost_start=start, **options)
    middle = (*cards(display), *cards(turned_up))
    rest = list(full_deck(rules))
    for card in middle:
        rest[card] -= 1
    others = [card for card, copies in enumerate(rest) for _ in range(copies)]
    return Game(rules, 2, (*others[:22], *middle, *others[22:]))


@pytest.mark.parametrize(
    ("reason", "turned_up", "thirteen", "as_dealt"),
    [
        ("13 low cards", "4 4 5 5 6 6 7 7 8 8 9 9 9 10", (13, 6, 0), (13, 6, 0)),
        ("a 13", "4 4 5 5 6 6 13 7 8 8 9 9 9 10", (13, 7, 1), (12, 7, 0)),
        ("a 13 as the last card", "4 4 5 5 6 6 7 7 8 8 9 9 13 10", (13, 7, 1), (12, 7, 0)),
        ("a joker and 13s", "J 13 13 4 4 5 5 6 6 7 7 8 8 9 9 9", (13, 9, 3), (10, 9, 0)),
        ("a 13 after the 13th card", "4 4 5 5 6 6 7 7 8 8 9 9 J 13 10", (13, 8, 2), (12, 7, 0)),
    ],
)
def test_R16_ghost_starts_with_13_cards_or_with_what_13_cards_leave(
    reason, turned_up, thirteen, as_dealt
):
    """The numbers are: cards of the ghost, cards in the display, cards that were dealt beyond 13."""
    for start, expected in ((GhostStart.THIRTEEN, thirteen), (GhostStart.AS_DEALT, as_dealt)):
        view = dealt("1 2 3 10 11 12", turned_up, start).view(0)
        more = 105 - 22 - 6 - 13 - view.deck_size
        found = (sum(view.ghost), sum(map(len, view.display)), more)
        assert found == expected, (reason, start)
        wanted = [card for card in cards(turned_up)[: 13 + more] if card < 13]
        assert view.ghost == count_cards(wanted)


def test_R16_ghost_as_dealt_is_filled_to_13_by_its_first_refill():
    deck = "8 8 13 8 9 9 9 10 10 11 11"
    run = game("duel", ["6 1", "2"], ghost="4 5 5 7 7", deck=deck, ghost_start=GhostStart.AS_DEALT)
    events = follow(run, (0, play("6")))
    assert events[2] == GhostRefilled((8, 8, 8, 9, 9, 9, 10, 10, 11), (SlotCard(0, 13),))
    assert sum(run.view(0).ghost) == 13


def test_R16_about_70_percent_of_deals_differ():
    """The chance that 13 of 105 cards have none of the eight 13s and the joker is 29.4 %."""
    as_dealt = DUEL.with_options(ghost_start=GhostStart.AS_DEALT)
    decks = [shuffled(DUEL, seed) for seed in range(2000)]
    differ = sum(Game(DUEL, 2, deck).view(0) != Game(as_dealt, 2, deck).view(0) for deck in decks)
    assert differ / len(decks) == pytest.approx(0.706, abs=0.03)


# R17: whether a player must snatch from the ghost


def options_of(attack: str, ghost: str, snatch: GhostSnatch) -> list[object] | None:
    """Return what seat 0 can choose from the ghost after a play; None if it is not asked."""
    run = game("duel", [f"{attack} 1", "2"], ghost=ghost, deck="12 12 12 12", ghost_snatch=snatch)
    follow(run, (0, play(attack)))
    if next_decision(run) != (0, DecisionKind.GHOST_SET):
        return None
    return [action if action is PASS else action.value for action in run.decision.legal]


@pytest.mark.parametrize(
    ("attack", "ghost", "compulsory", "optional"),
    [
        ("8", "3 5 5", None, [3, PASS]),  # one set fits
        ("8", "3 6 5 5", [3, 6], [3, 6, PASS]),  # several sets fit
        ("8 8", "3 5 5 7 7", [5, 7], [5, 7, PASS]),
        ("J", "12", None, [12, PASS]),
        ("8", "5 5", None, None),  # no set fits: nothing to decide
        ("8", "8 9", None, None),
        ("8", "", None, None),
    ],
)
def test_R17_optional_snatch_lists_every_set_that_fits_and_a_pass_last(
    attack, ghost, compulsory, optional
):
    assert options_of(attack, ghost, GhostSnatch.COMPULSORY) == compulsory
    assert options_of(attack, ghost, GhostSnatch.OPTIONAL) == optional


def duel_with_a_choice(*tables, **more):
    """Return a duel in which seat 0 has played an 8 and can snatch a 3 from the ghost, or pass."""
    run = game(
        "duel", ["8 1", "2"], *tables, ghost=GHOST, ghost_snatch=GhostSnatch.OPTIONAL, **more
    )
    follow(run, (0, play("8")))
    return run


def test_R17_snatch_that_is_chosen_is_like_a_compulsory_one():
    run, compulsory = duel_with_a_choice(), game("duel", ["8 1", "2"], ghost=GHOST)
    events = follow(compulsory, (0, play("8")))
    assert follow(run, (0, SnatchGhost(3))) == events[1:]
    assert run.view(0) == compulsory.view(0)
    assert next_decision(run) == next_decision(compulsory) == (1, DecisionKind.PLAY)


def test_R17_pass_is_a_public_event_of_its_own_and_leaves_the_ghost_alone():
    run = duel_with_a_choice()
    before = run.view(0)
    events = follow(run, (0, PASS))
    assert events == [GhostDeclined(0)]
    assert [redact(events[0], seat) for seat in (0, 1)] == [GhostDeclined(0)] * 2
    assert run.view(0)._replace(cards_to_draw=0) == before
    assert hand(run, 0) == [1]


def test_R17_pass_is_no_snatch_so_that_the_optional_draw_remains():
    """Ruling R3: the optional draw needs a turn without any snatch."""
    run = duel_with_a_choice()
    follow(run, (0, PASS))
    assert next_decision(run) == (0, DecisionKind.OPTIONAL_DRAW)


def test_R17_opponent_is_checked_after_a_pass():
    run = duel_with_a_choice([[], ["7"]])
    events = follow(run, (0, PASS))
    assert [type(event).__name__ for event in events] == ["GhostDeclined", "Snatched"]
    events = follow(run, (0, TAKE))
    assert of_kind(events, GhostSnatched) == []


def test_R17_pass_is_illegal_if_the_snatch_is_compulsory():
    run = game("duel", ["8 1", "2"], ghost="3 6")
    follow(run, (0, play("8")))
    assert PASS not in run.decision.legal


def test_R17_first_legal_action_plays_as_before():
    """A player of first legal actions meets the same events in both games."""
    for seed in range(20):
        runs = [Game(DUELS[name], 2, shuffled(DUEL, seed)) for name in ("duel", "duel-optional")]
        seen = []
        for run in runs:
            events = []
            while run.decision is not None:
                events += run.apply(run.decision.legal[0])
            seen.append(events)
        assert seen[0] == seen[1]


# R18: where a 13 or joker of the ghost goes


def display_after(display: str, turned_up: str, overflow: GhostOverflow) -> str:
    """Return the display after the ghost lost a 3 and turned up these cards and a 12."""
    deck = f"{turned_up} 12 1 1"
    run = game(
        "duel", ["4 1", "2"], ghost=GHOST, display=display, deck=deck, ghost_overflow=overflow
    )
    events = follow(run, (0, play("4")))
    refilled = events[2]
    assert isinstance(refilled, GhostRefilled)
    assert tuple(card for _, card in refilled.display_cards) == cards(turned_up)
    return " ".join("+".join(map(card_name, slot)) or "-" for slot in run.view(0).display)


@pytest.mark.parametrize(
    ("reason", "before", "turned_up", "single", "lowest"),
    [
        ("no group: equal", "7 5 9 6 8 10", "13", "7 5+13 9 6 8 10", "7 5+13 9 6 8 10"),
        ("the group is lower", "7 2+13 9 5 8 10", "13", "7 2+13 9 5+13 8 10", "7 2+13+13 9 5 8 10"),
        ("the single is lower", "7 6+13 9 5 8 10", "J", "7 6+13 9 5+J 8 10", "7 6+13 9 5+J 8 10"),
        ("the group is left of its equal", "7 5+13 5 8 9 9", "J", "7 5+13 5+J 8 9 9", "7 5+13+J 5 8 9 9"),
        ("the single is left of its equal", "7 5 5+13 8 9 9", "J", "7 5+J 5+13 8 9 9", "7 5+J 5+13 8 9 9"),
        ("two go onto one slot", "7 5 9 6 8 10", "13 J", "7 5+13 9 6+J 8 10", "7 5+13+J 9 6 8 10"),
        ("the top card does not count", "J+13 13 J J J J", "13", "J+13 13+13 J J J J", "J+13 13+13 J J J J"),
        ("a joker at the bottom is highest", "J+13 13+J - - - -", "13", "J+13 13+J+13 - - - -", "J+13 13+J+13 - - - -"),
        ("gaps are left alone", "- 9+13 - 11 - -", "13", "- 9+13 - 11+13 - -", "- 9+13+13 - 11 - -"),
        ("empty display: the first slot", "- - - - - -", "13 J", "13+J - - - - -", "13+J - - - - -"),
    ],
)  # fmt: skip
def test_R18_13_or_joker_goes_onto_the_lowest_single_card_or_the_lowest_card(
    reason, before, turned_up, single, lowest
):
    assert display_after(before, turned_up, GhostOverflow.SINGLE) == single, reason
    assert display_after(before, turned_up, GhostOverflow.LOWEST) == lowest, reason


def test_R18_applies_to_the_set_up():
    turned_up = "4 13 4 5 J 5 6 6 7 7 8 8 9 9 10"
    displays = {
        overflow: dealt("9 4 6 4 13 8", turned_up, GhostStart.THIRTEEN, ghost_overflow=overflow)
        .view(0)
        .display
        for overflow in GhostOverflow
    }
    assert displays == {
        GhostOverflow.SINGLE: ((9,), (4, 13), (6,), (4, 14), (13,), (8,)),
        GhostOverflow.LOWEST: ((9,), (4, 13, 14), (6,), (4,), (13,), (8,)),
    }


# All together


@pytest.mark.parametrize("name", VARIANTS)
def test_options_do_not_change_the_deck(name):
    rules = VARIANTS[name]
    assert full_deck(rules) == full_deck(RULESETS[rules.name])


def test_options_of_the_duel_and_of_all_rulesets_can_be_combined():
    rules = DUELS["duel-as-dealt-optional-lowest"].with_options(end_on=EndOn.DECK, max_turns=3)
    assert (rules.end_on, rules.max_turns) == (EndOn.DECK, 3)
    assert rules.ghost_start is GhostStart.AS_DEALT
