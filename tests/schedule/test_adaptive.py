"""Test which bots play after a look: open pairs meet more often, and nothing else changes."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.rules.ruleset import RULESETS
from referee.schedule import Stage, expand_matches
from referee.schedule.adaptive import collect_matches, redraw
from referee.schedule.extension import ALGORITHMS, ROUND_ROBIN

pytestmark = pytest.mark.unmeasured

BASIC, DUEL = RULESETS["basic"], RULESETS["duel"]
NAMES = ["ann", "bob", "cy", "dee", "eve", "flo", "gus", "hal"]
EIGHT = len(NAMES)
ROUNDS = 12
FEW = settings(max_examples=50)


def planned(*stages, bots=EIGHT):
    """Return the matches of a tournament before its first look."""
    algorithm = "gauntlet-1" if stages[0].challengers else ROUND_ROBIN
    games = ALGORITHMS[algorithm]("cup", NAMES[:bots], stages, lanes=5)
    matches = collect_matches(NAMES[:bots], games)
    assert expand_matches("cup", NAMES[:bots], stages, matches, lanes=5) == games
    return matches


def stage(seats, ruleset=BASIC, **more):
    return Stage(ruleset, seats, ROUNDS, **more)


def meetings(matches):
    return Counter(pair for match in matches for pair in combinations(sorted(match.order), 2))


def plays(matches):
    return Counter(bot for match in matches for bot in match.order)


def drawn(stage, pairs, *, rounds=2, next_rounds=ROUNDS, bots=EIGHT):
    """Return the matches of a stage between a look and the next one."""
    matches = planned(stage, bots=bots)
    found = redraw([stage], matches, [pairs], rounds=rounds, next_rounds=next_rounds)
    return [match for match in found if rounds < match.round <= next_rounds]


@st.composite
def looks(draw):
    """Draw a stage, its bots, and open pairs of a look. At least one pair of neighbours is settled."""
    bots = draw(st.integers(3, len(NAMES)))
    table = draw(st.permutations(range(bots)))
    neighbours = list(pairwise(table))
    pairs = draw(st.lists(st.sampled_from(neighbours), min_size=1, max_size=bots - 2, unique=True))
    return stage(draw(st.integers(2, min(4, bots)))), bots, pairs


@pytest.mark.extended("measures large schedules and long statistics")
@FEW
@given(looks())
def test_only_the_bots_of_later_matches_change(look):
    played, bots, pairs = look
    before = planned(played, bots=bots)
    after = redraw([played], before, [pairs], rounds=3, next_rounds=5)
    assert [(match.stage, match.round) for match in after] == [
        (match.stage, match.round) for match in before
    ]
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert all(3 < match.round <= 5 for match, _ in changed)
    assert all(len(set(match.order)) == played.seats for match in after)


@pytest.mark.extended("measures large schedules and long statistics")
@FEW
@given(looks())
def test_every_open_pair_meets_about_as_often_as_the_others(look):
    played, bots, pairs = look
    matches = drawn(played, pairs, bots=bots)
    met = meetings(matches)
    often = [met[min(pair), max(pair)] for pair in pairs]
    assert min(often) >= len(matches) // len(pairs)
    if played.seats == 2:
        assert max(often) - min(often) <= 1


@pytest.mark.extended("measures large schedules and long statistics")
@FEW
@given(looks())
def test_same_look_gives_the_same_tables(look):
    played, bots, pairs = look
    assert drawn(played, pairs, bots=bots) == drawn(played, list(reversed(pairs)), bots=bots)


NEVER_CHANGED = {  # seats, open pairs, and the digest of the tables after the look
    "pairs share a bot": (3, [(0, 1), (1, 2)], "d5d961828c8c7fe2"),
    "one pair": (4, [(2, 3)], "5d53436b50c45dce"),
    "three pairs": (5, [(0, 1), (3, 4), (6, 7)], "66632252c04085c5"),
}


@pytest.mark.parametrize(("seats", "pairs", "digest"), NEVER_CHANGED.values(), ids=NEVER_CHANGED)
def test_tables_after_a_look_never_change(seats, pairs, digest):
    """Verification computes the looks of stored tournaments again."""
    text = " ".join(NAMES[bot] for match in drawn(stage(seats), pairs) for bot in match.order)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


def test_in_duels_only_open_pairs_play():
    matches = drawn(stage(2, DUEL), [(3, 2), (5, 6), (6, 7)])
    assert set(meetings(matches)) == {(2, 3), (5, 6), (6, 7)}


def test_open_pair_sits_at_every_larger_table_and_others_take_turns():
    matches = drawn(stage(4), [(2, 3)])
    share = plays(matches)
    assert share[2] == share[3] == len(matches)
    others = [share[bot] for bot in (0, 1, 4, 5, 6, 7)]
    assert max(others) - min(others) <= 1


def test_two_open_pairs_share_every_table_of_four():
    matches = drawn(stage(4), [(0, 1), (4, 5)])
    assert all(set(match.order) == {0, 1, 4, 5} for match in matches)


def test_free_seats_go_first_to_bots_of_open_pairs():
    share = plays(drawn(stage(3), [(0, 1), (2, 3)]))
    assert set(share) == {0, 1, 2, 3}
    assert max(share.values()) - min(share.values()) <= 1


def test_bots_at_a_table_sit_left_of_each_other_about_equally_often():
    matches = drawn(stage(4), [(0, 1), (4, 5)])
    left = Counter((match.order[at - 1], match.order[at]) for match in matches for at in range(4))
    assert len(left) == 12
    assert max(left.values()) - min(left.values()) <= 4


def test_stage_keeps_its_tables_if_no_pair_is_settled():
    whole = planned(stage(4))
    assert redraw([stage(4)], whole, [None], rounds=2, next_rounds=3) == whole


def test_gauntlet_keeps_its_tables():
    gauntlet = stage(3, challengers=2)
    whole = planned(gauntlet)
    assert redraw([gauntlet], whole, [[(0, 1)]], rounds=2, next_rounds=3) == whole
    assert redraw([gauntlet], whole, [[]], rounds=2, next_rounds=3) == whole[: len(whole) // 6]


def test_settled_stage_plays_no_further_match():
    stages = [stage(2, DUEL), stage(4)]
    whole = planned(*stages)
    found = redraw(stages, whole, [[], [(0, 1)]], rounds=2, next_rounds=3)
    assert [match for match in found if match.stage == 0 and match.round > 2] == []
    assert [match for match in found if match.round <= 2] == [
        match for match in whole if match.round <= 2
    ]
    later = [match for match in found if match.round > 2]
    assert [match.round for match in later] == [
        match.round for match in whole if match.stage and match.round > 2
    ]
    assert redraw(stages, whole, [[], []], rounds=2, next_rounds=3) == [
        match for match in whole if match.round <= 2
    ]
