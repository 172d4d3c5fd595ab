"""Judge the bots of a league: which bots are ahead, which are equal, and which verdicts are still open.

If a tournament has `until` in its configuration, its newest look gives the verdicts, so a repeated command makes no new
test. `find_judged_tournament` finds this tournament. Without such a tournament, each command makes a single test of all
selected games.

This module also makes the rows and sentences for the test of `ratings.transitivity`: does one number per bot explain the results?
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from referee.errors import RefereeError, UserError, count_text
from referee.ratings.analysis import Analysis, PairFigures
from referee.ratings.intervals import Estimate
from referee.ratings.judge import Judge, PairVerdict, Verdict, Verdicts
from referee.ratings.stopping import CONFIDENCE, MARGIN, StopCondition
from referee.ratings.transitivity import DeviationFigures, Transitivity
from referee.reports.formats import (
    Column,
    chance,
    decimal,
    distinct_percents,
    percent,
    percent_estimate,
    row_from,
    visible,
)
from referee.reports.selection import GameFilter, analyses
from referee.reports.statistics import NeighbourRow, PairRow, make_pair_row, neighbour_rows
from referee.result_columns import ResultColumns
from referee.store.league import League
from referee.tournament.config import TournamentConfig, count_rounds, list_look_rounds
from referee.tournament.course import take_looks
from referee.tournament.create import TournamentState, find_state

_NAMED = 3
"""Largest number of pairs that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow(PairRow):
    """How two bots compare, and the verdict about them."""

    verdict: Annotated[str, Column("verdict")]
    """`ahead`: `bot` is surely better. `behind`: `other` is surely better. `equal`: the fits surely differ by less than the
    margin. `open`: not settled."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdicts about the bots of some games."""

    verdicts: Verdicts
    condition: StopCondition
    look_sentence: str = ""
    """Says which look of which tournament gave the verdicts, or that the tournament has had no look yet. Empty for a single test."""
    stoppable: tuple[TournamentConfig, ...] = ()
    """All tournaments that have games and can stop early (`until`), if this is a single test and no tournament is selected.
    Else empty."""

    def basis(
        self, rulesets: Collection[str], bots: Collection[str] = (), *, on_page: bool = False
    ) -> str:
        """Say which look gave the verdicts, or why a single test is wrong more often than its confidence says.

        Return "" if there is nothing to say.

        Args:
            rulesets: the names of the rulesets of the verdicts.
            bots: the bots that the verdicts are about, each as `name@version`; empty for all bots.
            on_page: whether the text is for a web page, which has no options.
        """
        found = [
            each
            for each in self.stoppable
            if any(stage.ruleset.name in rulesets for stage in each.stages)
        ]
        if not found:
            return self.look_sentence
        text = (
            f"These tournaments can stop early: {', '.join(each.name for each in found)}."
            " If a single test includes their games, it is wrong more often than its confidence says."
        )
        with_bots = [
            each.name for each in found if {entry.text for entry in each.bots}.issuperset(bots)
        ]
        if with_bots:
            name = with_bots[0]
            choose = (
                "open the page of this tournament"
                if on_page
                else f"choose this tournament (--tournament {name})"
            )
            text += f" To see the verdicts of {name} alone, {choose}."
        return text

    def neighbour_rows(self, ruleset: str | None = None) -> list[NeighbourRow]:
        """Return a row for each pair of neighbours, ruleset by ruleset. None means all rulesets."""
        return [
            row
            for name, table in self.verdicts.neighbours.items()
            if ruleset in (None, name)
            for row in neighbour_rows(name, table)
        ]

    def conclusions(self) -> tuple[str, ...]:
        """Return a text about each pair of neighbours.

        These texts are printed at the end of a tournament that has two bots and the key `until`.
        """
        tables = self.verdicts.neighbours
        return tuple(
            f"{f'{ruleset}: ' if len(tables) > 1 else ''}{self._conclude(ruleset, pair)}{self._name_forfeits(ruleset)}"
            for ruleset, table in tables.items()
            for pair in table
        )

    def _name_forfeits(self, ruleset: str) -> str:
        """Return a space and a sentence with the forfeits of each bot that has forfeited. Return "" if no bot has."""
        counts = [
            f"{each.bot} {each.forfeits}"
            for each in self.verdicts.analyses[ruleset].bots()
            if each.forfeits
        ]
        return f" Forfeited games: {', '.join(counts)}." if counts else ""

    def _conclude(self, ruleset: str, pair: PairVerdict) -> str:
        games = len(self.verdicts.analyses[ruleset].results)
        margin = f"{self.condition.margin:.12g}"
        if pair.verdict is Verdict.AHEAD:
            return f"{pair.bot} is better than {pair.below}, known after {games} games."
        if pair.verdict is Verdict.EQUAL:
            return (
                f"{pair.bot} and {pair.below} are equal within {margin}, known after {games} games."
            )
        return (
            f"Not known after {games} games: neither {pair.bot} nor {pair.below} is surely better, and they are not surely"
            f" equal within {margin}. More games would be needed."
        )

    def compare(self, bot: str, other: str) -> dict[str, Comparison]:
        """Return the comparison of two bots in each ruleset in which both have played."""
        return {
            ruleset: Comparison(
                ruleset,
                analysis.pair(bot, other),
                self.verdicts.compare(ruleset, bot, other),
                self.condition,
                self.verdicts.needed_chance(ruleset, bot, other),
            )
            for ruleset, analysis in self.verdicts.analyses.items()
            if {bot, other} <= set(analysis.results.bots)
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two bots in a ruleset."""

    ruleset: str
    figures: PairFigures
    verdict: PairVerdict
    condition: StopCondition
    needed: float
    """See `Verdicts.needed_chance`."""

    def row(self) -> ComparisonRow:
        """Return the comparison as a row."""
        verdict = self.verdict.verdict.value
        if self.verdict.verdict is Verdict.AHEAD and self.verdict.bot != self.figures.first:
            verdict = "behind"
        return make_pair_row(ComparisonRow, self.ruleset, self.figures, verdict=verdict)

    def sentence(self) -> str:
        """Return a sentence that says which of the two bots is better, and with which probability."""
        pair, lead = self.figures, self.figures.rating_lead
        bot, below = self.verdict.bot, self.verdict.below
        if bot != pair.first:
            lead = lead.negate()
        met = (
            f"in {count_text(pair.meetings, 'game')} of {count_text(pair.matches, 'match')}"
            if pair.meetings
            else "without a common game"
        )
        if self.verdict.chance is None:
            return f"{self.ruleset}: too little is known to compare {pair.first} and {pair.second}, {met}."
        details = f"{bot} minus {below}: fit {lead.value:+z.2f}"
        if lead.low is not None and lead.high is not None:
            details += f", 95 % interval {lead.low:+z.2f} to {lead.high:+z.2f}"
        elif lead.low is not None:
            details += f", 95 % interval above {lead.low:+z.2f}"
        elif lead.high is not None:
            details += f", 95 % interval below {lead.high:+z.2f}"
        probability, needed = distinct_percents(self.verdict.chance, self.needed, 1)
        is_direct = self.verdict.chance >= self.needed
        sure = (
            f"{chance(self.verdict.chance)} sure"
            if is_direct
            else "because of the verdicts about other bots"
        )
        found = {
            Verdict.AHEAD: f"{bot} is better than {below}, {sure}",
            Verdict.EQUAL: f"{bot} and {below} are equally strong within {self.condition.margin:.12g}",
            Verdict.OPEN: f"it is not settled whether {bot} is better than {below}: the probability is {probability}, and this test needs {needed}",
        }
        return f"{self.ruleset}: {found[self.verdict.verdict]} ({details}; {met})."


def judge_games(
    league: League, choice: GameFilter, *, confidence: float | None, margin: float | None
) -> Judgement:
    """Return the verdicts about the bots of the selected games.

    If `find_judged_tournament` returns a tournament, its newest look gives the verdicts, for all rulesets of the tournament.

    Args:
        league: the league of the games.
        choice: the filter that selects the games.
        confidence: `StopCondition.confidence`. If None, the value of the tournament is used, or the default without a tournament.
        margin: `StopCondition.margin`. For None, see `confidence`.

    Raises UserError if `find_judged_tournament` returns a tournament and `confidence`, `margin` or `choice.seats` is not None.
    Also raises all errors of `find_judged_tournament`.
    """
    state = find_judged_tournament(league, choice)
    if state is None:
        condition = StopCondition(
            confidence=CONFIDENCE if confidence is None else confidence,
            margin=MARGIN if margin is None else margin,
        )
        return judge_once(league, choice, analyses(choice.columns(league)), condition)
    for option, value in (("confidence", confidence), ("margin", margin), ("seats", choice.seats)):
        if value is not None:
            raise UserError(
                f"--{option}: tournament {state.name} is judged by the key `until` of its file, over all its"
                f" games; omit --{option}"
            )
    games = GameFilter(tournament=state.name).columns(league)
    return judge_newest_look(state, games)


def find_judged_tournament(league: League, choice: GameFilter) -> TournamentState | None:
    """Return the tournament that gives the verdicts about the selected games; None if there is no such tournament.

    If a tournament is selected, it is the candidate. Else all tournaments that have games are considered. If a ruleset is
    selected, those without a stage with this ruleset are left out, but a damaged one stays, because its stages are not known.
    If exactly one tournament is left, it is the candidate. The candidate gives the verdicts if its configuration has `until`.

    Raises UserError for an unknown tournament or ruleset. Also raises all errors of `find_state`.
    """
    choice.check(league)
    name = choice.tournament
    if name is None:
        played = [
            row.name
            for row in league.tournaments()
            if row.stored and _can_have_games(league, row.name, choice.ruleset)
        ]
        if len(played) != 1:
            return None
        [name] = played
    state = find_state(league, name)
    return None if state.config.until is None else state


def _can_have_games(league: League, name: str, ruleset: str | None) -> bool:
    """Return True if a tournament has a stage with the ruleset, or if `ruleset` is None.

    Also return True for a damaged tournament, because its stages are not known.
    """
    if ruleset is None:
        return True
    try:
        stages = find_state(league, name).config.stages
    except RefereeError:
        return True
    return any(stage.ruleset.name == ruleset for stage in stages)


def judge_once(
    league: League, choice: GameFilter, analysed: Mapping[str, Analysis], condition: StopCondition
) -> Judgement:
    """Return the verdicts of a single test.

    Args:
        league: the league of the games.
        choice: the filter that selects the games.
        analysed: the analyses of the selected games.
        condition: confidence and margin of the test.
    """
    stoppable = () if choice.tournament else tuple(_find_stoppable(league))
    return Judgement(Judge(condition).look(analysed), condition, stoppable=stoppable)


def _find_stoppable(league: League) -> Iterator[TournamentConfig]:
    """Yield the configuration of each tournament that has games and can stop early. Skip damaged tournaments."""
    for row in league.tournaments():
        with suppress(RefereeError):
            if row.stored and (config := find_state(league, row.name).config).until is not None:
                yield config


def judge_newest_look(state: TournamentState, games: ResultColumns) -> Judgement:
    """Return the verdicts of the newest look of a tournament with `until`; before its first look, there are none.

    Args:
        state: the tournament.
        games: its stored games in schedule order.
    """
    config = state.config
    assert config.until is not None  # noqa: S101 - callers check it
    taken = take_looks(config, games)
    if taken is None:
        first = list_look_rounds(config)[0]
        sentence = f"{state.name} has no verdicts yet: its first look is after round {first}."
        return Judgement(Judge(config.until).look({}), config.until, sentence)
    sentence = (
        f"These are the verdicts of {state.name} after {taken.look.rounds} of"
        f" {count_text(count_rounds(config), 'round')}, with"
        f" confidence {config.until.confidence:.12g} and margin {config.until.margin:.12g}."
    )
    return Judgement(taken.verdicts, config.until, sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitivityRow:
    """How often a bot ranks higher than another one, and how often the fit predicts that it does."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    """The bot of the pair that ranks higher more often than predicted."""
    other: Annotated[str, Column("other", wrap=True)]
    matches: Annotated[int, Column("matches", right=True, drop=2)]
    """Number of matches with a decided comparison of the pair."""
    decided: Annotated[int, Column("decided", right=True, drop=1)]
    """Number of games in which one of the two bots ranked higher and neither forfeited."""
    ahead_in: Annotated[
        Estimate, Column("ahead in [95 %]", right=True, show=percent_estimate, interval=True)
    ]
    """Share of the decided comparisons in which `bot` ranked higher.

    A game at a table of k seats has the weight 2 / k.
    """
    predicted: Annotated[float, Column("predicted", right=True, show=percent)]
    """The value of `ahead_in` that the fit predicts. This fit is made from the decided comparisons of all pairs."""
    deviates: Annotated[bool, Column("deviates", show=lambda yes: "surely" if yes else "")]
    """True if the pair surely deviates from the prediction. If one number per bot explains the results, the chance that this is
    True for one or more pairs is at most 5 %."""
    p_value: Annotated[float | None, Column("p value", right=True, show=decimal(3), data_only=True)]
    """Probability of deviations at least as large as the real ones, if one number per bot explains the results. It is about all
    pairs of the ruleset together, so all its rows have the same value. None if there are too few results, or if skills can
    explain any result; see `Transitivity.p_value`."""


def transitivity_rows(ruleset: str, test: Transitivity) -> tuple[TransitivityRow, ...]:
    """Return a row for each pair of a ruleset, those that deviate most surely first."""
    return tuple(
        row_from(
            TransitivityRow,
            each,
            ruleset=ruleset,
            ahead_in=each.share,
            deviates=each.sure,
            p_value=test.p_value,
        )
        for each in test.pairs
    )


def name_deviations(analysed: Mapping[str, Analysis]) -> Iterator[str]:
    """Yield a sentence for each ruleset in which one number per bot surely does not explain the results.

    The sentence names at most `_NAMED` pairs that deviate surely.

    Args:
        analysed: the analysis of the games of each ruleset, by the name of the ruleset.
    """
    for ruleset, analysis in analysed.items():
        if analysis.transitivity.misleads:
            yield _name_pairs(ruleset, analysis.transitivity.pairs)


def describe_tests(analysed: Mapping[str, Analysis]) -> Iterator[str]:
    """Yield the result of the test for each ruleset as text.

    If `name_deviations` has a sentence for the ruleset, the text is this sentence with the p value.
    """
    for ruleset, analysis in analysed.items():
        test = analysis.transitivity
        if test.misleads:
            yield f"{_name_pairs(ruleset, test.pairs)} p = {test.p_value:.3f}."
        elif test.p_value is None:
            yield f"{ruleset}: too few results to test whether one number per bot explains them."
        else:
            yield (
                f"{ruleset}: the results do not contradict one number per bot, p = {test.p_value:.3f}."
            )


def _name_pairs(ruleset: str, pairs: tuple[DeviationFigures, ...]) -> str:
    named = [each for each in pairs if each.sure][:_NAMED]
    if not named:
        return f"{ruleset}: one number per bot does not explain all results, but no single pair deviates surely."
    parts = [
        f"{each.bot} beats {each.other} more often than its rating says"
        f" ({' instead of '.join(distinct_percents(each.share.value, each.predicted, 0))})"
        for each in named
    ]
    return visible(f"{ruleset}: one number misleads: {', and '.join(parts)}.")
