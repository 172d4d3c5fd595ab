"""Derive decks, seeds for bots and game ids from a tournament's seed, so that anyone can check the decks.

The caller passes the seed, which has 32 bytes. The seed of a tournament is random, unless the tournament file gives one.
It is secret until the games are played. At the start, the referee publishes a commitment and its terms
(`tournament/terms.py`). The terms contain the SHA-256 of the seed (`seed_digest`), so nobody can change the seed later
unnoticed. At the end, the referee publishes the seed itself. Then anyone can derive the decks again, in any language, from
the description below. `proto/DEALS.md` explains how to check a deal.

**Blocks.** All derived data comes in blocks of 32 bytes:

    block(purpose, id, number) = HMAC-SHA256(key = seed,
        message = purpose ‖ 0x00 ‖ id ‖ 0x00 ‖ number)

with `purpose` in ASCII, `id` in UTF-8 and `number` as 8 bytes, big-endian. Decks, seeds for bots and opaque
ids come from blocks with different purposes. So a bot's seed and opaque id tell nothing about the deck.

**A deck.** Before the shuffle the cards are in ascending order: eight 1s, eight 2s, …, eight 13s, then five jokers
(14). So a deck has 109 cards. In the duel, four of the jokers are dealt from outside the deck. So the duel's deck has
only one joker, and 105 cards. Positions count from 0.

1. Make a stream of 32-bit words from block("deal", deal id, 0), block("deal", deal id, 1), and so on. Cut
   each block into eight words of 4 bytes, big-endian.
2. To get a number below n, take the next word w of the stream. If w < 2^32 - (2^32 mod n), the number is
   w mod n. If not, skip w and try the next word of the stream.
3. Shuffle (Fisher-Yates, from the end): for i = last position, …, 2, 1, get a number j below i + 1
   (step 2) and exchange the cards at the positions i and j.

The card at position 0 is drawn first (ruling R14).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from itertools import count

from referee.rules.ruleset import Ruleset, full_deck, list_cards

SEED_SIZE = 32
"""The number of bytes of a seed."""
FREE_GAME = "play"
"""The deal id and the game id of a game outside of tournaments."""
_WORDS = 2**32
_WORD_SIZE = 4


def deck(seed: bytes, deal_id: str, ruleset: Ruleset) -> tuple[int, ...]:
    """Return the cards of a deal in drawing order, by the algorithm in this module's docstring.

    Raises ValueError for a seed that is not 32 bytes.
    """
    cards = list_cards(full_deck(ruleset))
    words = _words(seed, deal_id)
    for position in range(len(cards) - 1, 0, -1):
        other = _below(position + 1, words)
        cards[position], cards[other] = cards[other], cards[position]
    return tuple(cards)


def seed_digest(seed: bytes) -> str:
    """Return the SHA-256 of the seed in hexadecimal. It is public from the start, as a part of the terms."""
    return hashlib.sha256(check_seed(seed)).hexdigest()


def text_seed(text: str) -> bytes:
    """Return the seed of a game outside of tournaments from a text, such as `--seed` of `referee play`.

    The seed is the SHA-256 of the text in UTF-8; bytes of the command line that are not UTF-8 are hashed as they are.
    The deal id and the game id of such a game are `FREE_GAME`.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def bot_seed(seed: bytes, game_id: str, seat: int) -> int:
    """Return the 64-bit seed that a bot gets for its own random numbers in a game.

    The seed is the first 8 bytes, big-endian, of the block with the purpose "bot seed", the id `game_id`
    and the number `seat`.
    """
    return int.from_bytes(_block(seed, "bot seed", game_id, seat)[:8], "big")


def opaque_id(seed: bytes, game_id: str) -> str:
    """Return the opaque id, which bots see instead of `game_id`: 16 hexadecimal digits without any meaning.

    The digits are the first 8 bytes of the block with the purpose "game id", the id `game_id` and the number 0.
    """
    return _block(seed, "game id", game_id, 0)[:8].hex()


def check_seed(seed: bytes) -> bytes:
    """Return the seed. Raises ValueError if it is not 32 bytes."""
    if len(seed) != SEED_SIZE:
        raise ValueError(f"a seed must have {SEED_SIZE} bytes, but this one has {len(seed)}")
    return seed


def _block(seed: bytes, purpose: str, name: str, number: int) -> bytes:
    message = b"\0".join((purpose.encode("ascii"), name.encode(), number.to_bytes(8, "big")))
    return hmac.digest(check_seed(seed), message, "sha256")


def _words(seed: bytes, deal_id: str) -> Iterator[int]:
    for number in count():
        block = _block(seed, "deal", deal_id, number)
        for start in range(0, len(block), _WORD_SIZE):
            yield int.from_bytes(block[start : start + _WORD_SIZE], "big")


def _below(limit: int, words: Iterator[int]) -> int:
    """Return a number from 0 to `limit` - 1, each equally likely (step 2 of the algorithm)."""
    accepted = _WORDS - _WORDS % limit
    return next(word for word in words if word < accepted) % limit
