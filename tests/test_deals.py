"""Decks, seeds and ids follow from the tournament's seed as `proto/DEALS.md` defines them."""

import hashlib
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee import deals
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS

pytestmark = pytest.mark.unmeasured

BASIC = RULESETS["basic"]
DUEL = RULESETS["duel"]
SEED = bytes(range(32))
seeds = st.binary(min_size=32, max_size=32)


def naive_hmac(key: bytes, message: bytes) -> bytes:
    """Compute an HMAC by RFC 2104, without the library."""
    padded = key + bytes(64 - len(key))
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in padded) + message).digest()
    return hashlib.sha256(bytes(b ^ 0x5C for b in padded) + inner).digest()


def naive_deck(seed: bytes, deal_id: str, jokers: int) -> list[int]:
    """Implement the algorithm of the docstring a second time, without `deals`."""
    cards = []
    for value in range(1, 14):
        cards += [value] * 8
    cards += [14] * jokers

    stream = b""
    for counter in range(100):
        stream += naive_hmac(
            seed, b"deal" + b"\x00" + deal_id.encode() + b"\x00" + counter.to_bytes(8, "big")
        )
    at = 0
    i = len(cards) - 1
    while i >= 1:
        n = i + 1
        word = int.from_bytes(stream[at : at + 4], "big")
        at += 4
        if word < 2**32 - 2**32 % n:
            j = word % n
            cards[i], cards[j] = cards[j], cards[i]
            i -= 1
    return cards


@given(seed=seeds, deal_id=st.text(max_size=40), ruleset=st.sampled_from([BASIC, DUEL]))
@settings(max_examples=50)
def test_second_implementation_makes_the_same_deck(seed, deal_id, ruleset):
    jokers = 1 if ruleset is DUEL else 5
    assert list(deals.deck(seed, deal_id, ruleset)) == naive_deck(seed, deal_id, jokers)


def cards(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def test_deck_of_a_known_seed_is_unchanged():
    assert deals.deck(SEED, "demo-deal-1", BASIC) == cards(
        "13 1 1 1 8 13 10 11 12 12 8 13 2 6 4 3 10 12 1 10 2 3 13 5 2 2 5 12 7 9 6 8 2 11 4 "
        "4 13 5 3 3 7 7 8 4 7 4 11 8 11 3 4 10 9 14 10 9 1 7 6 13 9 14 5 12 7 13 6 1 11 12 "
        "10 8 13 6 6 1 2 2 14 8 2 11 11 4 4 5 10 9 9 11 12 9 3 14 14 1 8 9 5 7 10 6 3 7 6 3 "
        "12 5 5 "
    )


def test_deck_of_the_duel_of_a_known_seed_is_unchanged():
    assert deals.deck(SEED, "demo-deal-1", DUEL) == cards(
        "3 7 3 4 9 12 9 1 1 13 6 1 11 1 6 4 6 2 13 4 12 1 13 14 5 5 5 12 10 9 6 9 13 3 13 3 "
        "6 1 8 8 3 2 3 11 4 13 11 1 10 6 2 7 2 5 13 8 5 8 9 4 4 10 10 2 10 12 10 5 11 3 2 7 "
        "11 4 12 9 7 12 9 2 6 11 11 4 8 5 6 8 11 7 3 8 7 8 10 1 2 10 12 7 5 12 13 9 7 "
    )


def test_seed_digest_bot_seeds_and_ids_of_a_known_seed_are_unchanged():
    assert deals.seed_digest(SEED) == (
        "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd"
    )
    assert deals.text_seed("7") == bytes.fromhex(
        "7902699be42c8a8e46fbbb4501726517e86b22c56a189f7625a6da49081b2451"
    )
    assert deals.bot_seed(SEED, "demo-1", 0) == 0xCF3D0F190D8AFB37
    assert deals.bot_seed(SEED, "demo-1", 3) == 0x1871E3CC9CE3ACF1
    assert deals.opaque_id(SEED, "demo-1") == "69eebb3428e45419"


@pytest.mark.parametrize("name", RULESETS)
def test_every_deck_can_be_dealt(name):
    ruleset = RULESETS[name]
    deck = deals.deck(SEED, "deal", ruleset)
    Game(ruleset, ruleset.max_players, deck)
    assert len(deck) == (105 if name == "duel" else 109)
    assert Counter(deck) == Counter({**dict.fromkeys(range(1, 14), 8), 14: len(deck) - 104})


@given(seed=seeds, other=seeds)
@settings(max_examples=30)
def test_different_seeds_and_deals_give_different_decks(seed, other):
    deck = deals.deck(seed, "demo-deal-1", BASIC)
    assert deck == deals.deck(seed, "demo-deal-1", BASIC)
    assert deck != deals.deck(seed, "demo-deal-2", BASIC)
    assert (deck == deals.deck(other, "demo-deal-1", BASIC)) == (seed == other)


def test_every_card_is_equally_likely_at_every_position():
    decks = [deals.deck(SEED, f"deal-{number}", BASIC) for number in range(1000)]
    for place in (0, 1, 54, 107, 108):
        seen = Counter(deck[place] for deck in decks)
        # chi-squared, 13 degrees of freedom: 34.5 is exceeded once in a thousand
        expected = {card: 1000 * copies / 109 for card, copies in Counter(decks[0]).items()}
        assert sum((seen[card] - mean) ** 2 / mean for card, mean in expected.items()) < 34.5


def test_words_that_would_favour_low_numbers_are_dropped():
    largest = 2**32 - 1  # 2^32 mod 3 is 1: only this word is dropped
    assert deals._below(3, iter([largest, largest, 5])) == 2
    assert deals._below(3, iter([largest - 1, 0])) == 2
    assert deals._below(8, iter([largest])) == 7


def test_bot_seeds_and_ids_are_all_different():
    ids = [f"demo-{number}" for number in range(500)]
    numbers = {deals.bot_seed(SEED, game, seat) for game in ids for seat in range(5)}
    opaque = {deals.opaque_id(SEED, game) for game in ids}
    assert len(numbers) == 2500
    assert len(opaque) == 500
    assert numbers.isdisjoint(int(text, 16) for text in opaque)
    assert all(0 <= number < 2**64 for number in numbers)
    assert all(len(text) == 16 for text in opaque)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_seed_of_another_size_is_refused(size):
    reason = f"a seed must have 32 bytes, but this one has {size}"
    with pytest.raises(ValueError, match=reason):
        deals.deck(bytes(size), "deal", BASIC)
    with pytest.raises(ValueError, match=reason):
        deals.seed_digest(bytes(size))
    with pytest.raises(ValueError, match=reason):
        deals.bot_seed(bytes(size), "game", 0)
