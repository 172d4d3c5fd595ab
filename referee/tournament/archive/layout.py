"""What is in the parts of an archive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, RootModel

from referee.bots.manifest import Manifest
from referee.ratings import rate
from referee.tournament.results import PlayedRecord

FORMAT = 1
"""Of an archive. One that has other parts or keys gets another number."""
PARTS = TOURNAMENT, BOTS, RECORDS, RATINGS = (
    "tournament.json",
    "bots.json",
    "records.binpb.gz",
    "ratings.json",
)
"""In the order of the file."""
_DECIMALS = 6

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""32 bytes in hexadecimal."""


class Part(BaseModel):
    """A part, or a piece of one: unknown keys are errors, and no value is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Head(BaseModel):
    """What tournament.json has in every format."""

    format: int


class Match(Part):
    """A match of the schedule. In game j, from 0, seat s has the bot at place (j + s) mod k."""

    deal: str
    stage: int
    round: int
    bots: tuple[str, ...]
    games: tuple[str, ...]
    lanes: tuple[int, ...]
    """Of each game."""


class Extension(Part):
    """Matches that were added to a tournament."""

    created_at_us: int
    matches: Annotated[int, Field(ge=1)]
    """More at each table, or in each stage of a balanced choice."""
    commitment: Digest
    seed: Digest | None
    """None while games of it are missing."""


class TournamentPart(Part):
    """tournament.json."""

    format: int
    name: str
    created_at_us: int
    """Microseconds since 1970-01-01 UTC."""
    configuration: dict[str, Any]
    schedule: tuple[Match, ...]
    commitment: Digest
    seed: Digest | None
    """None while games are missing, but for those of extensions: it is a secret until then."""
    settled_after: Annotated[int, Field(ge=1)] | None
    """It stopped after so many rounds; `schedule` has no others then. None: it did not."""
    extensions: tuple[Extension, ...]


class Bot(Part):
    """A bot that played."""

    bot: str
    """`name@version`, as in the schedule."""
    content_hash: Digest
    manifest: Manifest


class BotsPart(RootModel[tuple[Bot, ...]]):
    """bots.json: in the order of the configuration."""


class Rating(Part):
    """What is believed of a bot's skill."""

    mu: float
    """TrueSkill, game after game."""
    sigma: float
    fit: float
    """The order-free rating: of all games at once."""


class RatingsPart(RootModel[dict[str, dict[str, Rating]]]):
    """ratings.json: by ruleset, then bot, from this tournament's games alone."""

    @classmethod
    def of(cls, games: Sequence[PlayedRecord]) -> Self:
        """What games, in schedule order, make of the bots, rounded to what is kept of it."""
        from referee.ratings.analysis import Analysis  # noqa: PLC0415 - as `ratings` says
        from referee.ratings.results import Results  # noqa: PLC0415 - the same

        by_ruleset = Results.of(games)
        found = {}
        for ruleset, table in rate(games).items():
            results = by_ruleset[ruleset]
            fits = dict(zip(results.bots, Analysis(results).ratings.tolist(), strict=True))
            found[ruleset] = {
                bot: Rating(
                    mu=round(rating.mu, _DECIMALS),
                    sigma=round(rating.sigma, _DECIMALS),
                    fit=round(fits[bot], _DECIMALS),
                )
                for bot, rating in table.items()
            }
        return cls(found)
