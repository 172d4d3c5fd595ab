"""Follow the schedule of a tournament from look to look.

At each look of a tournament with `until`, the verdicts decide whether the tournament stops, and who plays the matches up to the next
look. A `Course` computes both from the configuration and the results alone. `conduct` stores what the course says, and `verify`
compares it with what is stored.
"""

from __future__ import annotations

from referee.ratings.judge import Verdict
from referee.result_columns import ResultColumns
from referee.schedule import Stage, expand_matches
from referee.schedule.adaptive import Pair, collect_matches, redraw
from referee.tournament.config import TournamentConfig, count_rounds, plan_games
from referee.tournament.looks import Look, TakenLook, find_next_look, take_look


class Course:
    """The games of a tournament without extensions, as they follow from the configuration and from the looks so far.

    Args:
        config: the stored configuration.

    Raises ValueError and KeyError as `plan_games` does.
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
    def next_look(self) -> Look | None:
        """The next look before the end; None if there is none."""
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
        assert self._config.lanes is not None  # noqa: S101 - stored configurations have a number of lanes
        self.games = expand_matches(
            self._config.name, self._bots, self._config.stages, matches, lanes=self._config.lanes
        )
        if len(self.games) == look.games:
            self.stopped_after = look.rounds

    def _list_open(self, taken: TakenLook, stage: Stage) -> list[Pair] | None:
        """Return the open pairs of a stage as `redraw` takes them: None if no pair is settled."""
        table = taken.verdicts.neighbours[stage.ruleset.name]
        pairs = [
            (self._bots.index(each.bot), self._bots.index(each.below))
            for each in table
            if each.verdict is Verdict.OPEN
        ]
        return pairs if len(pairs) < len(table) else None
