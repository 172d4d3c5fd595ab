"""Select games of a league, analyse them, and make the rows of their ratings.

The command line and the web pages use these functions, so both show the same figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from referee.errors import StoreError, UserError, did_you_mean
from referee.ratings.analysis import Analysis
from referee.ratings.checkpoint import rate_from_checkpoint
from referee.ratings.trueskill import Ratings
from referee.records import GameResult
from referee.reports.rating_rows import RatingRow, rating_rows
from referee.result_columns import ResultColumns
from referee.roster import predecessors
from referee.rules.ruleset import RULESETS
from referee.store.league import League


@dataclass(frozen=True, slots=True, kw_only=True)
class GameFilter:
    """Selects games of a league. A field that is None does not restrict the games."""

    tournament: str | None = None
    ruleset: str | None = None
    seats: int | None = None
    """Number of seats of the table."""

    def games(self, league: League) -> list[GameResult]:
        """Return the selected games in schedule order. Raises UserError for an unknown tournament or ruleset."""
        self.check(league)
        return [
            row
            for row in league.results(tournament=self.tournament)
            if self.ruleset in (None, row.ruleset) and self.seats in (None, len(row.bots))
        ]

    def columns(self, league: League) -> ResultColumns:
        """Return the selected games as result columns. Raises UserError for an unknown tournament or ruleset."""
        self.check(league)
        games = league.columns(tournament=self.tournament)
        if self.ruleset is not None:
            # a ruleset without games gets the next free number, so no game is selected
            number = (*games.rulesets, self.ruleset).index(self.ruleset)
            games = games.select(games.ruleset == number)
        return games if self.seats is None else games.select(games.seats == self.seats)

    def check(self, league: League) -> None:
        """Raise UserError for an unknown tournament or ruleset."""
        if self.tournament is not None:
            league.check_tournament(self.tournament)
        if self.ruleset is not None and self.ruleset not in RULESETS:
            known = ", ".join(RULESETS)
            similar = did_you_mean(self.ruleset, RULESETS)
            raise UserError(
                f"--ruleset: unknown ruleset {self.ruleset!r}{similar}; choose one of {known}"
            )

    def options(self) -> str:
        """Return this filter as options of the command line, such as `--ruleset duel --seats 2`."""
        values = (
            ("--tournament", self.tournament),
            ("--ruleset", self.ruleset),
            ("--seats", self.seats),
        )
        return " ".join(f"{option} {value}" for option, value in values if value is not None)

    def predecessors(self, league: League) -> Mapping[str, str]:
        """Map each version of a bot to its predecessor.

        If a tournament is selected, the map is empty, because all bots start with equal mu in the ratings of one tournament.
        """
        return predecessors(league) if self.tournament is None else {}


def analyses(games: ResultColumns) -> dict[str, Analysis]:
    """Return an `Analysis` of the games of each ruleset, by the name of the ruleset."""
    return {ruleset: Analysis(each) for ruleset, each in games.by_ruleset().items()}


class CurrentRatings(NamedTuple):
    """The ratings in the selected games, and the analyses of these games."""

    rows: list[RatingRow]
    """All bots that played, ruleset by ruleset, best bot first."""
    analysed: dict[str, Analysis]
    """The analysis of the selected games of each ruleset, by the name of the ruleset."""


def current_ratings(league: League, choice: GameFilter) -> CurrentRatings:
    """Return the ratings of all bots that played in the selected games."""
    games = choice.columns(league)
    analysed = analyses(games)
    return CurrentRatings(standings(league, choice, games, analysed), analysed)


def standings(
    league: League, choice: GameFilter, games: ResultColumns, analysed: Mapping[str, Analysis]
) -> list[RatingRow]:
    """Return the ratings of all bots that played, ruleset by ruleset, best bot first. The caller has analysed the games.

    Args:
        league: the league of the games; it stores the checkpoint of the ratings.
        choice: the filter that selected the games.
        games: `choice.columns(league)`.
        analysed: `analyses(games)`.
    """
    return rating_table(rate_in_order(league, choice, games), games, analysed)


def rating_table(
    ratings: Ratings, games: ResultColumns, analysed: Mapping[str, Analysis]
) -> list[RatingRow]:
    """Return the rows of `standings`. The caller has already computed `ratings` from `games`."""
    by_ruleset, strikes = ratings.table(), _strikes(games)
    return [
        row
        for name, analysis in analysed.items()
        for row in rating_rows(name, by_ruleset[name], analysis, strikes[name])
    ]


def rate_in_order(league: League, choice: GameFilter, games: ResultColumns) -> Ratings:
    """Return the TrueSkill ratings after `games`, which must be in schedule order.

    The computation continues from the checkpoint that the league has for the filter `choice`, if the checkpoint still
    fits the games. If at least 200 games had to be rated, a new checkpoint is stored.
    """
    ratings, new_checkpoint = rate_from_checkpoint(
        stored_checkpoint(league, choice), games, predecessors=choice.predecessors(league)
    )
    if new_checkpoint is not None:
        # Storing fails if the league is read-only. This does no harm: the next command only takes longer.
        with suppress(StoreError, UserError):
            league.keep_checkpoint(_checkpoint_name(choice), new_checkpoint)
    return ratings


def stored_checkpoint(league: League, choice: GameFilter) -> bytes | None:
    """Return the checkpoint that `rate_in_order` has stored for `choice`, or None."""
    return league.checkpoint(_checkpoint_name(choice))


def _checkpoint_name(choice: GameFilter) -> str:
    return f"ratings: {choice}"


def _strikes(games: ResultColumns) -> dict[str, Counter[str]]:
    """Return the number of strikes of each bot, by ruleset."""
    strikes = {name: Counter[str]() for name in games.rulesets}
    for game, seat in zip(*games.strikes.nonzero(), strict=True):
        ruleset, bot = games.rulesets[games.ruleset[game]], games.bots[games.bot[game, seat]]
        strikes[ruleset][bot] += int(games.strikes[game, seat])
    return strikes


def find_played_bot(store: League, choice: GameFilter, played: set[str], text: str) -> str:
    """Return the `name@version` of the bot that `text` means. Raises UserError if this bot is not in `played`.

    Args:
        store: the league.
        choice: the filter that selected the games.
        played: the bots that played in the selected games.
        text: a `name@version`, or only a name, which means the newest version of this name in `played`.
    """
    known = [str(row.bot) for row in store.bots() if str(row.bot) in played]
    versions = [bot for bot in known if text in (bot, bot.rpartition("@")[0])]
    if not versions:
        options = choice.options()
        where, games = (f"a game with {options}", "such games") if options else ("here", "games")
        others = f"there are {', '.join(known)}" if known else f"there are no {games}"
        names = {*known, *(bot.rpartition("@")[0] for bot in known)}
        similar = did_you_mean(text, names)
        raise UserError(f"{store.where}: no bot {text!r} has played {where}{similar}; {others}")
    return versions[-1]
