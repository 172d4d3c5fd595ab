"""The standings while a tournament is played."""

from __future__ import annotations

from collections.abc import Sequence

from referee.cli.results import Choice, Finished, charged, of_record, of_row, sequential
from referee.ratings import Ratings
from referee.records import GameRecord
from referee.reports import StandingRow, Tally
from referee.schedule import ScheduledGame
from referee.store import League
from referee.tournament.conduct import Tournament


class LiveTable:
    """The standings after the games that are played without a gap, in schedule order.

    Games finish in another order than the schedule's, on which ratings must not depend: a game that
    is ahead of its turn waits here.
    """

    def __init__(self, league: League, tournament: Tournament) -> None:
        self._tally = Tally()
        self._name = tournament.name
        self._waiting: dict[int, Finished] = {}
        results = league.results(tournament=tournament.name)
        self.games = len(results)
        """Played before."""
        numbers = enumerate(results)
        self._next = next((number for number, row in numbers if row.index != number), self.games)
        self._ratings = _ratings(league, tournament.name, self._next)
        for row in results[: self._next]:
            self._tally.add(of_row(row))
        for row in results[self._next :]:
            self._waiting[row.index] = of_row(row)
        for fault in league.faults(tournament=tournament.name):
            self._tally.charge(fault)

    def add(self, game: ScheduledGame, record: GameRecord) -> None:
        """Count a game just played."""
        for fault in record.faults:
            self._tally.charge(charged(record, fault))
        self._add(game.index, of_record(self._name, game, record))

    def rows(self) -> Sequence[StandingRow]:
        """The standings now."""
        return self._tally.rows(self._ratings.table())

    def _add(self, index: int, game: Finished) -> None:
        self._waiting[index] = game
        while (following := self._waiting.pop(self._next, None)) is not None:
            self._ratings.add(following)
            self._tally.add(following)
            self._next += 1


def _ratings(league: League, tournament: str, games: int) -> Ratings:
    """Those after so many games of a tournament, the first ones."""
    if not games:
        return Ratings()
    choice = Choice(tournament=tournament)
    return sequential(league, choice, choice.columns(league).first(games))
