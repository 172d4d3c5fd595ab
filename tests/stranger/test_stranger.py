"""A verifier in another language, written from `proto/DEALS.md` alone, agrees with the referee."""

import json
import random
import shutil
import subprocess
from itertools import cycle, islice
from pathlib import Path

import pytest

from referee import deals
from referee.rules.game import Game
from referee.rules.ruleset import JOKER, RULESETS

pytestmark = [pytest.mark.toolchain("node"), pytest.mark.unmeasured]
VERIFIER = Path(__file__).with_name("verifier.mjs")
TABLES = [
    (ruleset, seats)
    for ruleset in RULESETS.values()
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


def cards_of(counts):
    return [card for card, copies in enumerate(counts or ()) for _ in range(copies)]


def expected_answer(seed, deal_id, ruleset, seats):
    """Return the referee's own values, as the verifier prints them."""
    deck = deals.deck(seed, deal_id, ruleset)
    table = Game(ruleset, seats, deck).table
    return {
        "commitment": deals.commitment(seed),
        "deck": list(deck),
        "hands": [cards_of(hand) for hand in table.hands],
        "display": [list(slot) for slot in table.display],
        "ghost": cards_of(table.ghost),
        "left": table.deck_size,
    }


def test_verifier_and_referee_agree_on_a_thousand_deals():
    chosen_deals = some_deals(1000)
    lines = "".join(
        f"{seed.hex()} {ruleset.name} {seats} {deal_id}\n"
        for seed, deal_id, ruleset, seats in chosen_deals
    )
    result = subprocess.run(
        [shutil.which("node"), VERIFIER],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (result.returncode, result.stderr) == (0, "")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert answers == [expected_answer(*deal) for deal in chosen_deals]
    assert {len(each["deck"]) for each in answers} == {105, 109}
    grouped = [each for each in answers if any(len(slot) > 1 for slot in each["display"])]
    assert any(JOKER in slot for each in grouped for slot in each["display"]), "no case of R9"
