"""Ratings that grow game by game, and the state they can be kept in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, Protocol, Self

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
        """Rate one game.

        Raises ValueError, and nothing has changed, when a bot sits at the table twice, when there is
        one seat only, or when there are not as many ranks as seats.
        """
        if len(set(game.bots)) != len(game.bots) or len(game.bots) < 2:  # noqa: PLR2004 - a game
            raise ValueError(f"a game of {', '.join(game.bots)} says nothing about who is better")
        ratings = self._ratings.get(game.ruleset, {})
        before = [ratings.get(bot) or self._first(bot, ratings) for bot in game.bots]
        after = self._model.update(before, game.ranks)
        self._ratings.setdefault(game.ruleset, ratings).update(zip(game.bots, after, strict=True))

    def _first(self, bot: str, ratings: Mapping[str, Rating]) -> Rating:
        """The rating of a bot before its first game."""
        before = self._predecessors.get(bot)
        while before is not None and before not in ratings:
            before = self._predecessors.get(before)
        return self.prior if before is None else Rating(ratings[before].mu, self.prior.sigma)

    def of(self, ruleset: str, bot: str) -> Rating:
        """The rating of a bot that has played. Raises KeyError for any other."""
        return self._ratings[ruleset][bot]

    def table(self) -> dict[str, dict[str, Rating]]:
        """The ratings by ruleset, then bot, each in the order of the alphabet."""
        return {
            ruleset: dict(sorted(ratings.items()))
            for ruleset, ratings in sorted(self._ratings.items())
        }

    def snapshot(self) -> dict[str, Any]:
        """The state as plain data that survives JSON bit by bit."""
        return {
            "settings": asdict(self._settings),
            "predecessors": dict(self._predecessors),
            "ratings": {
                ruleset: {bot: list(rating) for bot, rating in ratings.items()}
                for ruleset, ratings in self.table().items()
            },
        }

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any]) -> Self:
        """The ratings that a snapshot was taken of: adding further games gives what it would have.

        Raises ValueError when the data is no snapshot.
        """
        try:
            restored = cls(
                Settings(**snapshot["settings"]), predecessors=dict(snapshot["predecessors"])
            )
            restored._ratings = {
                ruleset: {bot: Rating(*map(float, rating)) for bot, rating in ratings.items()}
                for ruleset, ratings in snapshot["ratings"].items()
            }
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"no snapshot of ratings: {error}") from error
        return restored


def rate(
    games: Iterable[RankedGame],
    settings: Settings | None = None,
    *,
    predecessors: Mapping[str, str] | None = None,
) -> dict[str, dict[str, Rating]]:
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
