"""The terms of a commitment have one exact form, and different tournaments have different terms."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_league import SampleLeague

from referee.records import ScheduledGame
from referee.tournament.terms import (
    CommittedBot,
    Terms,
    digest_bots,
    digest_configuration,
    digest_schedule,
)

TERMS = Terms(seed="0" * 64, configuration="1" * 64, bots="2" * 64, schedule="3" * 64)
GAME = ScheduledGame(
    index=0,
    stage=0,
    round=0,
    match=0,
    seating=0,
    lane=0,
    bots=("ann@1", "bob@1"),
    deal_id="cup-deal-1",
    game_id="cup-1",
)


def test_terms_are_read_from_their_text():
    assert TERMS.text.splitlines()[1] == "1" * 64 + "  configuration"
    assert Terms.parse(TERMS.text) == TERMS


@pytest.mark.parametrize(
    "text",
    [
        "",
        TERMS.text[:-1],
        TERMS.text + "\n",
        TERMS.text + "4" * 64 + "  more\n",
        TERMS.text.replace("  ", " "),
        TERMS.text.replace("\n", "\r\n"),
        TERMS.text.replace("1" * 64, "A" * 64),
        TERMS.text.replace("1" * 64, "1" * 63),
        TERMS.text.replace("bots", "robots"),
        "".join(reversed(TERMS.text.splitlines(keepends=True))),
    ],
)
def test_other_text_is_no_terms(text):
    with pytest.raises(ValueError, match="these are no terms of a commitment"):
        Terms.parse(text)


def test_every_line_changes_the_commitment():
    changed = [replace(TERMS, **{name: "4" * 64}) for name in TERMS.__slots__]
    assert len({terms.commitment for terms in (TERMS, *changed)}) == 5


TEXTS = st.text(alphabet='a1@ "\\\n,{}[]é', max_size=6)
BOTS = st.lists(st.builds(CommittedBot, TEXTS, TEXTS, TEXTS), max_size=3)


@given(one=BOTS, other=BOTS)
@settings(max_examples=200)
def test_different_bots_have_different_digests_whatever_their_texts_contain(one, other):
    assert (digest_bots(one) == digest_bots(other)) == (one == other)


def test_every_value_of_a_line_changes_the_digest_of_a_schedule():
    games = [
        GAME,
        replace(GAME, game_id="cup-2"),
        replace(GAME, deal_id="cup-deal-2"),
        replace(GAME, stage=1),
        replace(GAME, round=1),
        replace(GAME, lane=1),
        replace(GAME, bots=("bob@1", "ann@1")),
    ]
    schedules = [[game] for game in games] + [list(pair) for pair in combinations(games, 2)]
    assert len({digest_schedule(schedule) for schedule in schedules}) == len(schedules)


def test_order_of_keys_and_form_of_numbers_do_not_change_a_configuration():
    one = {"lanes": 4, "until": {"margin": 1.0, "confidence": 0.95}}
    other = {"until": {"confidence": 0.95, "margin": 1}, "lanes": 4}
    assert digest_configuration(one) == digest_configuration(other)
    assert digest_configuration(one) != digest_configuration(one | {"lanes": 5})


@pytest.mark.parametrize("value", [2**60, float("nan"), float("inf"), "\ud800"])
def test_value_that_canonical_json_cannot_have_is_refused(value):
    with pytest.raises(ValueError, match=r"domain|representable|codepoints"):
        digest_configuration({"lanes": value})


def test_tournament_file_may_have_a_name_that_is_no_utf8(tmp_path):
    sample = SampleLeague(tmp_path, "cup-\udcff.toml")
    assert sample.tournament.config.file.name == "cup-?.toml"
    sample.league.close()


def test_terms_do_not_depend_on_the_folder_of_the_tournament(tmp_path):
    terms = set()
    for folder in (tmp_path / "one", tmp_path / "other"):
        folder.mkdir()
        sample = SampleLeague(folder)
        terms.add(sample.tournament.parts[0].terms)
        assert str(tmp_path) not in sample.league.tournament("cup").config
        sample.league.close()
    assert len(terms) == 1
