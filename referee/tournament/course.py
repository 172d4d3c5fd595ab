"""Follow the schedule of a tournament from look to look.

At a look, the results so far decide who plays next. A look takes place after whole rounds; the first look of a ladder takes place before
the first round. Two kinds of tournaments have looks:

- A tournament that may stop early (key `until` of its file): each look tests whether the standings are settled. The verdicts decide
  whether the tournament stops, and if not, who plays the matches up to the next look. If all neighbours of a ruleset are settled, no
  further match of this ruleset is played. So the number of games before a look depends on the looks before it.
- A ladder (module `ladder`): each look chooses the matches of the next round, so that they tell most about the order of the bots.

A look uses only the games before it, and later games do not start before the look is over. Therefore a tournament plays the same games and
stops at the same look with any number of workers, and in a resumed run. Only a ladder can stop at a different look each time, because it
stops when its minutes are over.

A `Course` computes looks and games from the configuration and the results alone. `conduct` stores what the course says, and
`verify` compares it with what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from referee.ratings.analysis import Analysis
from referee.ratings.judge import Judge, Verdict, Verdicts
from referee.result_columns import ResultColumns
from referee.schedule import Match, Stage, count_games, expand_matches
from referee.schedule.adaptive import Pair, collect_matches, redraw
from referee.schedule.extension import shorten
from referee.tournament.config import TournamentConfig, count_rounds, list_look_rounds, plan_games


@dataclass(frozen=True, slots=True)
class Look:
    """A point in the schedule at which the results decide who plays next. It takes place when all games before it are stored."""

    rounds: int
    """Number of rounds before the look."""
    games: int
    """Number of games before the look. They are the first games of the schedule."""


@dataclass(frozen=True, slots=True)
class TakenLook:
    """A look that has taken place in a tournament with `until`, and its verdicts."""

    look: Look
    verdicts: Verdicts

    def plays_on(self, stage: Stage) -> bool:
        """Return True if a pair of neighbours in the ruleset of `stage` is open. Then the stage goes on, if it has rounds left."""
        table = self.verdicts.neighbours[stage.ruleset.name]
        return any(each.verdict is Verdict.OPEN for each in table)


def find_next_look(config: TournamentConfig, taken: TakenLook | None) -> Look | None:
    """Return the look after `taken`, or the first look if `taken` is None. Return None if no look follows.

    There is no next look in three cases: `taken` was the last one; all standings are settled; or the stages with open
    neighbours have no rounds left. In the first case the tournament can end with open verdicts, in the third it always does.
    """
    done, games = (0, 0) if taken is None else (taken.look.rounds, taken.look.games)
    ahead = [rounds for rounds in list_look_rounds(config) if rounds > done]
    if not ahead:
        return None
    rounds, bots = ahead[0], len(config.bots)
    stages = [stage for stage in config.stages if taken is None or taken.plays_on(stage)]
    added = count_games(shorten(stages, rounds), bots) - count_games(shorten(stages, done), bots)
    return Look(rounds, games + added) if added else None


def take_look(
    config: TournamentConfig, games: ResultColumns, look: Look, before: TakenLook | None
) -> TakenLook:
    """Take a look of a tournament. The configuration must have `until`.

    Args:
        config: the configuration of the tournament.
        games: the games in schedule order, at least those before the look.
        look: the look after `before`, as `find_next_look` returns it.
        before: the look before this one; None if this is the first.
    """
    assert config.until is not None  # noqa: S101 - callers check it
    judge = Judge(config.until, list_look_rounds(config))
    by_ruleset = games.select(slice(look.games)).by_ruleset()
    analyses = {ruleset: Analysis(results) for ruleset, results in by_ruleset.items()}
    earlier = None if before is None else before.verdicts
    return TakenLook(look, judge.look(analyses, look.rounds, earlier))


def take_looks(config: TournamentConfig, games: ResultColumns) -> TakenLook | None:
    """Take each look for which all games before it are stored, and return the newest one. Return None if there is none.

    Args:
        config: the configuration of the tournament. It must have `until`.
        games: the stored games in schedule order.
    """
    taken = None
    while (look := find_next_look(config, taken)) is not None and look.games <= len(games):
        taken = take_look(config, games, look, taken)
    return taken


class Course:
    """The games of a tournament as they follow from its configuration and its looks so far. Games of extensions are left out.

    Args:
        config: the stored configuration.

    Raises ValueError as `plan_games` does.
    """

    def __init__(self, config: TournamentConfig) -> None:
        self._config = config
        self._bots = [entry.text for entry in config.bots]
        self._taken: TakenLook | None = None
        self.games = plan_games(config)
        """All games in schedule order. Those after the next look may still change."""
        self.stopped_after: int | None = None
        """How many rounds were played when the tournament stopped early; None if it has not stopped early."""

    @property
    def stops(self) -> Sequence[int]:
        """After how many rounds the tournament may stop early."""
        return list_look_rounds(self._config)[:-1]  # after the last look no game is left

    def stop(self) -> bool:
        """Stop a ladder at its newest look, and return True. For any other tournament do nothing, and return False.

        `conduct` calls this when the minutes of a ladder are over. `verify` calls it if a tournament has stopped at its newest
        look, but the results are no reason to stop.
        """
        return False

    @property
    def next_look(self) -> Look | None:
        """The next look that has games after it; None if there is none."""
        if self._config.until is None:
            return None
        look = find_next_look(self._config, self._taken)
        return look if look is not None and look.games < len(self.games) else None

    def take_look(self, results: ResultColumns) -> None:
        """Take the next look: change `games` after the look, and set `stopped_after` if no game is left to play.

        Args:
            results: the results in schedule order, at least those of all games before the look.
        """
        look = self.next_look
        assert look is not None  # noqa: S101 - callers check it
        self._taken = taken = take_look(self._config, results, look, self._taken)
        following = find_next_look(self._config, taken)
        matches = redraw(
            self._config.stages,
            collect_matches(self._bots, self.games),
            [self._list_open(taken, stage) for stage in self._config.stages],
            rounds=look.rounds,
            next_rounds=count_rounds(self._config) if following is None else following.rounds,
        )
        self._set_matches(matches)
        if len(self.games) == look.games:
            self.stopped_after = look.rounds

    def _set_matches(self, matches: Iterable[Match]) -> None:
        """Replace the games of the course by those of `matches`."""
        config = self._config
        assert config.lanes is not None  # noqa: S101 - stored configurations have a number of lanes
        self.games = expand_matches(
            config.name, self._bots, config.stages, matches, lanes=config.lanes
        )

    def _list_open(self, taken: TakenLook, stage: Stage) -> list[Pair] | None:
        """Return the open pairs of a stage for `redraw`. The list is empty if all pairs are settled. Return None if no pair is settled."""
        table = taken.verdicts.neighbours[stage.ruleset.name]
        pairs = [
            (self._bots.index(each.bot), self._bots.index(each.below))
            for each in table
            if each.verdict is Verdict.OPEN
        ]
        return pairs if len(pairs) < len(table) else None
