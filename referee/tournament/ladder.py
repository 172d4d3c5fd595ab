"""Follow a ladder: at each look, choose the tables that tell most about the order of its bots.

A ladder is a tournament of one stage. `schedule.ladder` plans its rounds. Before each round, a look chooses the bots
at all tables of this round. Later rounds stay as planned until their own looks. The choice depends only on the
results before the look and on what the ladder started with (`LadderStart`), which is part of the committed
configuration. So anybody who has the results can compute the same tables.

The first two bots of a table are the pair whose match has the largest gain; `ratings.information` defines the gain.
Each further bot is the one whose matches against the bots already at the table have the largest sum of gains. Little is
known about a new bot, so its matches have the largest gains at first. Later it meets its neighbours in the order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from referee.ratings.information import Beliefs, PairSums
from referee.records import ScheduledGame
from referee.result_columns import Floats, ResultColumns
from referee.schedule import Match
from referee.schedule.adaptive import SeatOrders, collect_matches
from referee.schedule.extension import LADDER
from referee.tournament.config import LadderStart, TournamentConfig
from referee.tournament.course import Course, Look

MAX_LADDER_BOTS = 200
"""With more bots, a look takes too long: with 200 bots, about 15 s for a round of 100 matches on one busy core."""
_DIGITS = 6
"""Gains and their sums are divided by the largest gain and rounded to this many decimals, because processors can
compute different last bits. After the rounding, this almost never changes a table."""


def make_course(config: TournamentConfig) -> Course:
    """Return a `LadderCourse` for a ladder, and a `Course` for any other tournament. No look is taken yet.

    Raises ValueError as `plan_games` does, and if the configuration of a ladder is invalid.
    """
    return Course(config) if config.ladder is None else LadderCourse(config)


class LadderCourse(Course):
    """The games of a ladder, as they follow from the configuration and from the looks so far.

    Args:
        config: the stored configuration of a ladder.

    Raises ValueError as `make_course` does.
    """

    def __init__(self, config: TournamentConfig) -> None:
        start = _check(config)
        super().__init__(config)
        self._stage = config.stages[0]
        self._earlier = PairSums.from_meetings(len(self._bots), start.earlier)
        self._looks = _list_looks(self.games)
        self._looks_taken = 0

    @property
    def stops(self) -> Sequence[int]:
        """See `Course.stops`."""
        return [look.rounds for look in self._looks[1:]]

    @property
    def next_look(self) -> Look | None:
        """See `Course.next_look`."""
        is_over = self.stopped_after is not None or self._looks_taken == len(self._looks)
        return None if is_over else self._looks[self._looks_taken]

    def take_look(self, results: ResultColumns) -> None:
        """Take the next look: choose the tables of the round after it.

        Raises ValueError if the fit does not converge. This happens only if somebody has edited the sums of earlier
        games in the configuration.
        """
        look = self.next_look
        assert look is not None  # noqa: S101 - callers check it
        self._looks_taken += 1
        following = self.next_look
        played = results.select(slice(look.games)).by_ruleset().get(self._stage.ruleset.name)
        sums = self._earlier
        if played is not None:
            sums += PairSums.from_results(self._bots, played)
        matches = collect_matches(self._bots, self.games)
        first = look.games // self._stage.seats
        end = len(matches) if following is None else following.games // self._stage.seats
        try:
            beliefs = Beliefs.from_sums(sums)
        except ArithmeticError as error:
            raise ValueError(f"ladder: earlier: {error}") from error
        tables = _choose_tables(
            beliefs,
            self._stage.seats,
            [match.order for match in matches[:first]],
        )
        new = [Match(0, match.round, next(tables)) for match in matches[first:end]]
        self._set_matches([*matches[:first], *new, *matches[end:]])

    def stop(self) -> bool:
        """Stop at the newest look: the games before it are the last ones. Return True."""
        newest = self._looks[self._looks_taken - 1]
        self.stopped_after = newest.rounds
        self.games = self.games[: newest.games]
        return True


def _check(config: TournamentConfig) -> LadderStart:
    """Return what the ladder starts with. Raises ValueError if the configuration of the ladder is invalid."""
    start, bots = config.ladder, len(config.bots)
    if start is None:
        raise ValueError("the configuration has no ladder")
    if config.until is not None:
        raise ValueError("a ladder has no until")
    if config.schedule != LADDER:
        raise ValueError(f"a ladder has the schedule {LADDER}, not {config.schedule}")
    if len(config.stages) != 1 or not config.stages[0].balanced or config.challengers:
        raise ValueError("a ladder has one stage, balanced and without challengers")
    if bots > MAX_LADDER_BOTS:
        raise ValueError(f"a ladder has at most {MAX_LADDER_BOTS} bots, not {bots}")
    if any(each.second >= bots for each in start.earlier):
        raise ValueError(f"ladder: earlier: there are only {bots} bots")
    if len({each[:2] for each in start.earlier}) < len(start.earlier):
        raise ValueError("ladder: earlier: a pair is listed twice")
    return start


def _list_looks(games: Sequence[ScheduledGame]) -> list[Look]:
    """Return the looks of a ladder with these planned games: one before each round."""
    looks = [Look(0, 0)]
    for number, group in groupby(games, key=lambda game: game.round):
        end = max(game.index for game in group) + 1
        if end < len(games):
            looks.append(Look(number, end))
    return looks


def _choose_tables(
    beliefs: Beliefs, seats: int, so_far: Sequence[Sequence[int]]
) -> Iterator[tuple[int, ...]]:
    """Yield, for each further match, its bots in clockwise order. Each match counts as played for the next choice.

    Args:
        beliefs: what is known before the next match.
        seats: the number of seats of a table.
        so_far: the clockwise order of the bots in each earlier match.
    """
    orders = SeatOrders(so_far)
    played = Counter(bot for order in so_far for bot in order)
    while True:
        table = _fill_table(beliefs.gains(), seats, played)
        yield orders.choose(sorted(table))
        beliefs = beliefs.after_match(table)
        played.update(table)


def _fill_table(gains: Floats, seats: int, played: Counter[int]) -> list[int]:
    """Return the bots of the table with the largest gains.

    The module's docstring explains the choice. If gains or sums are equal, the bot that has played less comes first, and
    then the one that is listed first.
    """
    table: list[int] = []
    scale = gains.max()
    while len(table) < seats:
        # the first bot is one of the pair with the largest gain
        sums = gains[table].sum(axis=0) if table else gains.max(axis=0)
        ranked = [
            (-round(float(value / scale), _DIGITS), played[bot], bot)
            for bot, value in enumerate(sums)
            if bot not in table
        ]
        table.append(min(ranked)[2])
    return table
