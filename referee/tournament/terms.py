"""Compute the commitment of a tournament or of an extension, and the terms behind it.

The commitment is published before the first game. It fixes the seed, the configuration, the bots, and the planned
schedule, so nobody can change them later unnoticed. The terms are a short text with the SHA-256 of each of the four, and
the commitment is the SHA-256 of this text. The terms name the seed only by its SHA-256, so they are public from the
start. `proto/DEALS.md` describes every byte.

An extension has its own terms: its own seed, and a schedule with only the games of the extension.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from typing import Any, Self

import rfc8785

from referee.records import ScheduledGame

_LINE = re.compile(r"([0-9a-f]{64})  ([a-z]+)")


@dataclass(frozen=True, slots=True)
class Terms:
    """The SHA-256, in hexadecimal, of each thing that a commitment fixes."""

    seed: str
    """The SHA-256 of the 32 bytes of the seed (`deals.seed_digest`)."""
    configuration: str
    """The SHA-256 of the stored configuration (`digest_configuration`)."""
    bots: str
    """The SHA-256 of the bots with their contents and authors (`digest_bots`)."""
    schedule: str
    """The SHA-256 of the planned schedule (`digest_schedule`)."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the terms from a text. Raises ValueError if it is not exactly in the form that the property `text` returns."""
        lines = [_LINE.fullmatch(line) for line in text.split("\n")[:-1]]
        digests = [(line[2], line[1]) for line in lines if line is not None]
        if [name for name, _ in digests] == [field.name for field in fields(cls)]:
            terms = cls(**dict(digests))
            if terms.text == text:
                return terms
        raise ValueError("these are no terms of a commitment")

    @property
    def text(self) -> str:
        """The terms as text: a line `DIGEST  NAME` for each field, in the format of `sha256sum`."""
        return "".join(f"{digest}  {name}\n" for name, digest in asdict(self).items())

    @property
    def commitment(self) -> str:
        """The SHA-256 of `text`, in hexadecimal."""
        return _digest(self.text.encode())


@dataclass(frozen=True, slots=True)
class CommittedBot:
    """What a commitment fixes about a bot."""

    bot: str
    """`name@version`, as in the schedule."""
    content_hash: str
    author: str


def digest_configuration(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON (RFC 8785) of a stored configuration.

    Raises ValueError if RFC 8785 cannot express a value, such as an integer of 54 bits.
    """
    return _digest(rfc8785.dumps(values))


def digest_bots(bots: Sequence[CommittedBot]) -> str:
    """Return the SHA-256 of the canonical JSON (RFC 8785) of a list of bots, in the order of the configuration."""
    return _digest(rfc8785.dumps([asdict(bot) for bot in bots]))


def digest_schedule(games: Iterable[ScheduledGame]) -> str:
    """Return the SHA-256 of a text with one line for each game, in schedule order.

    A line has the id of the game, the id of the deal, the numbers of stage, round and lane, and the bots in the order of
    their seats. Spaces separate them; no id and no name of a bot contains a space.
    """
    digest = sha256()
    for game in games:
        numbers = (game.stage, game.round, game.lane)
        line = " ".join((game.game_id, game.deal_id, *map(str, numbers), *game.bots))
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
