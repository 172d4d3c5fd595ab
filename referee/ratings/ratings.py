"""Ratings that grow game by game, and the state they can be kept in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, Self

from referee.ratings.update import Model, Rating, Settings


class RankedGame(Protocol):
    """What must be known of a game to rate it. Results from the store fit."""

    @property
    def ruleset(self) -> str:
        """Name of the ruleset. Each has ratings of its own."""
        ...

    @property
    def bots(self) -> tuple[str, ...]:
        """Who sat where, seat 0 first."""
        ...

    @property
    def ranks(self) -> tuple[int, ...]:
        """Final rank of each seat, 1 the best, equal ranks shared. Forfeits are already in it."""
        ...


Table = dict[str, dict[str, Rating]]
"""Ratings by ruleset, then bot."""


class Ratings:
    """The ratings after the games added so far.

    The order of the games matters, so it must be one that anybody can find again: the schedule's.

    Args:
        settings: the constants.
        predecessors: of bots that are a new version of another one. Such a bot begins where its
            predecessor stands when it first plays, as unsure as any newcomer.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        predecessors: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings or Settings()
        self._predecessors = predecessors or {}
        self._model = Model(self._settings)
        self._ratings: dict[str, dict[str, Rating]] = {}

    @property
    def prior(self) -> Rating:
        """The rating of a bot that has not played."""
        return self._model.prior

    def add(self, game: RankedGame) -> None:
        """Rate one game; see `rate`."""
        self.rate(game.ruleset, game.bots, game.ranks)

    def rate(self, ruleset: str, bots: Sequence[str], ranks: Sequence[int]) -> None:
        """Rate one game, given by who sat where and who came out as what.

        Raises ValueError, and nothing has changed, when a bot sits at the table twice, when there is
        one seat only, or when there are not as many ranks as seats.
        """
        if len(set(bots)) != len(bots) or len(bots) < 2:  # noqa: PLR2004 - a game
            raise ValueError(f"a game of {', '.join(bots)} says nothing about who is better")
        ratings = self._ratings.get(ruleset, {})
        before = [ratings.get(bot) or self._first(bot, ratings) for bot in bots]
        after = self._model.update(before, ranks)
        self._ratings.setdefault(ruleset, ratings).update(zip(bots, after, strict=True))

    def _first(self, bot: str, ratings: Mapping[str, Rating]) -> Rating:
        """The rating of a bot before its first game."""
        before = self._predecessors.get(bot)
        while before is not None and before not in ratings:
            before = self._predecessors.get(before)
        return self.prior if before is None else Rating(ratings[before].mu, self.prior.sigma)

    def of(self, ruleset: str, bot: str) -> Rating:
        """The rating of a bot that has played. Raises KeyError for any other."""
        return self._ratings[ruleset][bot]

    def table(self) -> Table:
        """The ratings by ruleset, then bot, each in the order of the alphabet."""
        return {
            ruleset: dict(sorted(ratings.items()))
            for ruleset, ratings in sorted(self._ratings.items())
        }

    @classmethod
    def restore(
        cls,
        table: Table,
        settings: Settings | None = None,
        *,
        predecessors: Mapping[str, str] | None = None,
    ) -> Self:
        """The ratings that a table was taken of: adding further games gives what it would have."""
        restored = cls(settings, predecessors=predecessors)
        restored._ratings = {ruleset: dict(ratings) for ruleset, ratings in table.items()}
        return restored


def rate(
    games: Iterable[RankedGame],
    settings: Settings | None = None,
    *,
    predecessors: Mapping[str, str] | None = None,
) -> Table:
    """The ratings by ruleset, then bot, after some games in schedule order; see `Ratings`."""
    ratings = Ratings(settings, predecessors=predecessors)
    for game in games:
        ratings.add(game)
    return ratings.table()


class RoundGame(RankedGame, Protocol):
    """What must be known of a game beside, to tell how ratings came to be."""

    @property
    def tournament(self) -> str:
        """Its tournament."""
        ...

    @property
    def round(self) -> int:
        """Its round there, from 0."""
        ...


class Point(NamedTuple):
    """A bot's rating after a round."""

    tournament: str
    round: int
    games: int
    """That the bot had played by then."""
    rating: Rating


def history(
    games: Iterable[RoundGame],
    bot: str,
    settings: Settings | None = None,
    *,
    predecessors: Mapping[str, str] | None = None,
) -> dict[str, list[Point]]:
    """A bot's rating after each round it played in, by ruleset; games come in schedule order."""
    ratings = Ratings(settings, predecessors=predecessors)
    played = Counter[str]()
    points: dict[str, dict[tuple[str, int], Point]] = {}
    for game in games:
        ratings.add(game)
        if bot in game.bots:
            played[game.ruleset] += 1
            points.setdefault(game.ruleset, {})[game.tournament, game.round] = Point(
                game.tournament,
                game.round,
                played[game.ruleset],
                ratings.of(game.ruleset, bot),
            )
    return {ruleset: list(each.values()) for ruleset, each in sorted(points.items())}
