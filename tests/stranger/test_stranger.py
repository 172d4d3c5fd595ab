"""A verifier in another language, written from `proto/DEALS.md` alone, agrees with the referee."""

import json
import random
import shutil
from itertools import cycle, islice

import pytest
from forgeries import (
    add_until,
    change_author,
    change_content_hash,
    cut_schedule,
    exchange_bots,
    export,
    forge_archive,
)
from sample_league import SampleLeague
from strangers import ask_a_stranger

from referee import deals
from referee.rules.game import Game
from referee.rules.ruleset import HAND_SIZE, JOKER, RULESETS, GhostOverflow, GhostStart
from referee.tournament import archive_format

pytestmark = [pytest.mark.toolchain("node"), pytest.mark.unmeasured]
DUELS = [
    RULESETS["duel"].with_options(ghost_start=start, ghost_overflow=overflow)
    for start in GhostStart
    for overflow in GhostOverflow
]
TABLES = [
    (ruleset, seats)
    for ruleset in [rules for rules in RULESETS.values() if not rules.ghost] + DUELS
    for seats in range(ruleset.min_players, ruleset.max_players + 1)
]


def some_deals(count):
    """Return deals with different seeds and ids, for every ruleset and number of seats."""
    dice = random.Random(2026)
    seeds = [bytes(32), b"\xff" * 32, *(dice.randbytes(32) for _ in range(8))]
    names = cycle(["demo", "spring-cup", "with spaces  in it", "Łódź-春"])
    tables = zip(cycle(TABLES), cycle(seeds), names, strict=False)
    return [
        (seed, f"{name}-deal-{number}", ruleset, seats)
        for number, ((ruleset, seats), seed, name) in enumerate(islice(tables, count), start=1)
    ]


def options(ruleset):
    """Return the options of the duel that change the layout of a deal."""
    return f"{ruleset.ghost_start.value},{ruleset.ghost_overflow.value}"


def cards_of(counts):
    return [card for card, copies in enumerate(counts or ()) for _ in range(copies)]


def expected_answer(seed, deal_id, ruleset, seats):
    """Return the referee's own values, as the verifier prints them."""
    deck = deals.deck(seed, deal_id, ruleset)
    table = Game(ruleset, seats, deck).table
    return {
        "seed_digest": deals.seed_digest(seed),
        "deck": list(deck),
        "hands": [cards_of(hand) for hand in table.hands],
        "display": [list(slot) for slot in table.display],
        "ghost": cards_of(table.ghost),
        "left": table.deck_size,
    }


def test_verifier_and_referee_agree_on_a_thousand_deals():
    chosen_deals = some_deals(1000)
    lines = "".join(
        f"{seed.hex()} {ruleset.name} {seats} {options(ruleset)} {deal_id}\n"
        for seed, deal_id, ruleset, seats in chosen_deals
    )
    result = ask_a_stranger(deals=lines)
    assert (result.returncode, result.stderr) == (0, "")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert answers == [expected_answer(*deal) for deal in chosen_deals]
    assert {len(each["deck"]) for each in answers} == {105, 109}
    grouped = [each for each in answers if any(len(slot) > 1 for slot in each["display"])]
    assert any(JOKER in slot for each in grouped for slot in each["display"]), "no case of R9"
    ghosts = [len(each["ghost"]) for each in answers if each["ghost"]]
    assert min(ghosts) < max(ghosts) == HAND_SIZE, "no case of R16"


# Commitments


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Return the folder of a league with a finished tournament."""
    folder = tmp_path_factory.mktemp("original")
    sample = SampleLeague(folder)
    sample.play(slice(None))
    sample.league.close()
    return folder / "league"


@pytest.fixture
def folder(original, tmp_path):
    """Return the folder of a copy of the league, for a test to forge."""
    return shutil.copytree(original, tmp_path / "league")


def ask_about(folder, members):
    """Let the stranger check an archive with these members."""
    archive = folder / "cup.zip"
    archive.write_bytes(archive_format.pack(members))
    return ask_a_stranger(archive)


def test_archive_is_right_with_its_commitment(folder):
    members = export(folder)
    commitment = json.loads(members[archive_format.TOURNAMENT])["commitment"]
    assert ask_about(folder, members).stdout == (
        f"commitment {commitment}: seed, configuration, bots and schedule fit\n"
        "18 decks follow from the seed\n"
    )


def test_archive_of_an_unfinished_tournament_is_right_except_for_its_decks(tmp_path):
    sample = SampleLeague(tmp_path)
    sample.play(slice(5))
    sample.league.close()
    said = ask_about(tmp_path, export(tmp_path / "league")).stdout
    assert said.endswith(": configuration, bots and schedule fit\n0 decks follow from the seed\n")


FORGERIES = {
    cut_schedule: "configuration: not as in the terms",
    exchange_bots: "configuration: not as in the terms",
    add_until: "configuration: not as in the terms",
    change_author: "bots: not as in the terms",
    change_content_hash: "bots: not as in the terms",
}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            change,
            id=change.__name__,
            marks=() if change is add_until else pytest.mark.extended("makes each forgery"),
        )
        for change in FORGERIES
    ],
)
def test_forgery_is_found_or_has_another_commitment(original, tmp_path, change):
    said = []
    for number, fitting in enumerate(({}, {"terms": True}, {"terms": True, "commitment": True})):
        folder = shutil.copytree(original, tmp_path / str(number))
        said.append(ask_about(folder, forge_archive(folder, change, **fitting)))
    assert FORGERIES[change] in said[0].stderr
    assert "the terms do not fit the commitment" in said[1].stderr
    assert said[2].returncode == 0, said[2].stderr
    commitment = json.loads(export(original)[archive_format.TOURNAMENT])["commitment"]
    assert commitment not in said[2].stdout
