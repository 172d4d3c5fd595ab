"""Test verdicts and what one number per bot does not explain, as sentences and as rows, and where these are shown."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "ratings"))
sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
sys.path.insert(0, str(Path(__file__).parents[1] / "web"))
from client import Client, make_app
from records import NAMES, SEED, add_bot, bot, played
from simulated import BETA, cycle, play, tables

from referee.cli import ratings, stats
from referee.cli import tournament as tournament_command
from referee.ratings.analysis import Analysis, PairFigures
from referee.ratings.intervals import Estimate
from referee.ratings.judge import PairVerdict, Verdict
from referee.ratings.stopping import StopCondition
from referee.records import BotId
from referee.reports.verdicts import (
    Comparison,
    Judgement,
    describe_tests,
    name_deviations,
    transitivity_rows,
)
from referee.rules.ruleset import RULESETS
from referee.store.league import League
from referee.tournament.config_reader import load_tournament
from referee.tournament.create import create_tournament
from referee.web.views import LeagueViews

NOTE = "classic: one number misleads: "


def compare(verdict, chance, *, bot="a@1", low=-1.0, high=5.0, meetings=8):
    """Return the comparison of a@1 and b@1. `bot` is the one with the higher rating, or the better one."""
    value = 2.0 if bot == "a@1" else -2.0
    figures = PairFigures(
        first="a@1",
        second="b@1",
        meetings=meetings,
        matches=2,
        wins=2,
        draws=0,
        losses=6,
        better=0.25,
        lead=Estimate(1.0, 0.5, 1.5),
        rating_lead=Estimate(value, low, high),
        chance=0.5,
    )
    below = "b@1" if bot == "a@1" else "a@1"
    found = PairVerdict(bot=bot, below=below, chance=chance, verdict=verdict)
    return Comparison("basic", figures, found, StopCondition(margin=1.5), 0.975)


@pytest.mark.parametrize(
    ("comparison", "sentence", "verdict"),
    [
        (
            compare(Verdict.AHEAD, 0.998),
            "better than b@1, 99.8 % sure (a@1 minus b@1: fit +2.00, 95 % interval -1.00 to +5.00; in 8",
            "ahead",
        ),
        (
            compare(Verdict.AHEAD, 1.0, low=1.0, high=None),
            "sure (a@1 minus b@1: fit +2.00, 95 % interval above +1.00; in 8",
            "ahead",
        ),
        (
            compare(Verdict.AHEAD, 1.0, bot="b@1", low=None, high=-1.0),
            "sure (b@1 minus a@1: fit +2.00, 95 % interval above +1.00; in 8",
            "behind",
        ),
        (
            compare(Verdict.AHEAD, 1.0, bot="b@1"),
            "basic: b@1 is better than a@1, > 99.9 % sure (b@1 minus a@1: fit +2.00, ",
            "behind",
        ),
        (
            compare(Verdict.EQUAL, 0.6),
            "basic: a@1 and b@1 are equally strong within 1.5 (a@1 minus b@1: ",
            "equal",
        ),
        (
            compare(Verdict.OPEN, 0.9, bot="b@1"),
            "basic: it is not settled whether b@1 is better than a@1: the probability is 90.0 %, and this test needs 97.5 % (b@1 minus a@1: fit +2.00, ",
            "open",
        ),
        (
            replace(compare(Verdict.OPEN, 0.99931), needed=0.99977),
            "better than b@1: the probability is 99.93 %, and this test needs 99.98 % (",
            "open",
        ),
        (
            compare(Verdict.OPEN, 0.97496),
            "better than b@1: the probability is 97.496 %, and this test needs 97.500 % (",
            "open",
        ),
        (
            compare(Verdict.OPEN, None, low=None, high=None),
            "basic: too little is known to compare a@1 and b@1, in 8 games of 2 matches.",
            "open",
        ),
        (compare(Verdict.AHEAD, 0.998, meetings=1), "; in 1 game of 2 matches).", "ahead"),
        (
            compare(Verdict.AHEAD, 0.998, high=None, meetings=0),
            "99.8 % sure (a@1 minus b@1: fit +2.00, 95 % interval above -1.00; without a common game).",
            "ahead",
        ),
        (
            compare(Verdict.AHEAD, 0.43),
            "basic: a@1 is better than b@1, because of the verdicts about other bots (a@1 minus",
            "ahead",
        ),
        (
            compare(Verdict.AHEAD, 0.96),  # above the confidence, but less than the test needs
            "basic: a@1 is better than b@1, because of the verdicts about other bots (a@1 minus",
            "ahead",
        ),
    ],
)
def test_verdict_is_a_sentence_and_a_row(comparison, sentence, verdict):
    assert sentence in comparison.sentence()
    row = comparison.row()
    assert (row.bot, row.other, row.verdict) == ("a@1", "b@1", verdict)


def judgement(forfeits=(0, 0), games=40, more=0, **verdicts):
    """Return the judgement of a@1 and b@1, with a verdict by each ruleset, and the forfeits of both bots in each ruleset.

    `games` is the number of games of the first ruleset; each further ruleset has `more` games more.
    """
    figures = [
        SimpleNamespace(bot=bot, forfeits=count)
        for bot, count in zip(("a@1", "b@1"), forfeits, strict=True)
    ]
    analyses = {
        ruleset: SimpleNamespace(bots=lambda: figures, results=range(games + place * more))
        for place, ruleset in enumerate(verdicts)
    }
    tables = {
        ruleset: (PairVerdict(bot="a@1", below="b@1", chance=0.9, verdict=verdict),)
        for ruleset, verdict in verdicts.items()
    }
    verdicts = SimpleNamespace(neighbours=tables, analyses=analyses)
    return Judgement(verdicts, StopCondition(margin=0.5), "")


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (Verdict.AHEAD, "a@1 is better than b@1, known after 40 games."),
        (Verdict.EQUAL, "a@1 and b@1 are equal within 0.5, known after 40 games."),
        (
            Verdict.OPEN,
            (
                "Not known after 40 games: neither a@1 nor b@1 is surely better, and they are not surely equal within 0.5."
                " More games would be needed."
            ),
        ),
    ],
)
def test_tournament_of_two_bots_ends_with_its_verdict(verdict, sentence):
    assert judgement(basic=verdict).conclusions() == (sentence,)


def test_verdict_about_a_bot_that_forfeited_says_so():
    [both] = judgement(forfeits=(10, 3), basic=Verdict.AHEAD).conclusions()
    assert both.endswith("known after 40 games. Forfeited games: a@1 10, b@1 3.")
    [one] = judgement(forfeits=(0, 3), basic=Verdict.AHEAD).conclusions()
    assert one.endswith("known after 40 games. Forfeited games: b@1 3.")


def test_conclusions_of_several_rulesets_name_the_ruleset_and_count_its_games():
    found = judgement(games=24, more=14, basic=Verdict.AHEAD, duel=Verdict.EQUAL)
    assert found.conclusions() == (
        "basic: a@1 is better than b@1, known after 24 games.",
        "duel: a@1 and b@1 are equal within 0.5, known after 38 games.",
    )


def simulated(effects=None):
    rng = np.random.default_rng(3)
    return Analysis(play(np.full(6, 25.0), tables(6, 2, 30), rng, effects=effects))


def ranks(bots):
    """Return the ranks of a duel. Each bot of NAMES beats the next one, and the last one the first; of other bots, the first seat wins."""
    names = [each.partition("@")[0] for each in bots]
    if not set(names) <= set(NAMES):
        return (1, 2)
    first, second = map(NAMES.index, names)
    return (2, 1) if (second + 1) % len(NAMES) == first else (1, 2)


@pytest.fixture(scope="module")
def league(tmp_path_factory):
    """The folder of a league in which four bots beat each other in a circle."""
    return make_league(tmp_path_factory.mktemp("circle") / "league", "")


@pytest.fixture
def stopping(tmp_path):
    """The folder of a league like `league`, but its tournament could stop by its results."""
    return make_league(tmp_path / "league", "[until]\n")


def make_league(folder, end):
    """Make a league with a tournament in which four bots beat each other in a circle; `end` is the end of its file."""
    with League.open(folder, create=True) as store:
        for name in NAMES:
            add_bot(store, bot(name))
    add_played(folder, "cup", end)
    return folder


def add_played(folder, name, end="", *, names=NAMES, ruleset="classic"):
    """Add a tournament `name` to a league, with all its games."""
    file = folder.with_name(f"{name}.toml")
    file.write_text(
        f'name = "{name}"\nruleset = "{ruleset}"\nseats = 2\nmatches = 10\nbots = {list(names)}\n{end}'
    )
    specs = [SimpleNamespace(bot=BotId(name, "1.0")) for name in names]
    with League.open(folder, create=False) as store:
        cup = create_tournament(store, load_tournament(file), specs, seed=SEED, now_us=0)
        for row in cup.schedule:
            store.add_game(replace(played(row), ranks=ranks(row.bots), ruleset=RULESETS[ruleset]))


def run(app, *words):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    return " ".join(done.output.split())


def test_results_in_a_circle_are_named_below_the_ratings(league):
    shown = run(ratings.app, "--league", str(league))
    assert NOTE in shown
    assert "dee@1.0 beats ann@1.0 more often than its rating says (100 % instead of 50 %)" in shown
    assert NOTE not in run(ratings.app, "--league", str(league), "--json")


@pytest.mark.extended("measures large schedules and long statistics")
def test_single_test_warns_of_tournaments_that_can_stop_early(stopping):
    words = ("settled", "--league", str(stopping))
    warning = "These tournaments can stop early: cup."
    assert warning not in run(stats.app, *words)
    add_played(stopping, "more")
    assert warning in run(stats.app, *words)
    assert "(--tournament cup)." in run(stats.app, *words)
    assert warning not in run(stats.app, *words, "--tournament", "cup")
    assert warning not in run(stats.app, *words, "--tournament", "more")


def test_page_of_two_bots_recommends_no_option(stopping):
    add_played(stopping, "more")
    with League.open_read_only(stopping) as store:
        shown = Client(make_app(LeagueViews(store))).get("/pairs/ann@1.0/bob@1.0").text
    assert " To see the verdicts of cup alone, open the page of this tournament.</p>" in shown


def test_tournament_of_another_ruleset_is_not_named(stopping):
    """A tournament of another ruleset is not named, and one without the two bots is not recommended."""
    with League.open(stopping, create=True) as store:
        for name in ("eve", "fay"):
            add_bot(store, bot(name))
    add_played(stopping, "duel", "[until]\n", names=("eve", "fay"), ruleset="basic")
    words = ("compare", "--league", str(stopping))
    shown = run(ratings.app, *words, "eve", "fay")
    assert "can stop early: duel." in shown
    assert "(--tournament duel)." in shown
    shown = run(ratings.app, *words, "ann", "bob")
    assert "can stop early: cup." in shown
    assert "(--tournament cup)." in shown
    add_played(stopping, "other", "[until]\n", names=("eve", "ann"))
    shown = run(ratings.app, *words, "eve", "bob")
    assert "can stop early: cup, other." in shown
    assert "--tournament" not in shown


@pytest.mark.extended("measures large schedules and long statistics")
def test_tournament_of_another_ruleset_leaves_the_verdicts_of_a_ruleset_to_the_newest_look(
    stopping,
):
    with League.open(stopping, create=True) as store:
        for name in ("eve", "fay"):
            add_bot(store, bot(name))
    add_played(stopping, "duel", names=("eve", "fay"), ruleset="basic")
    words = ("settled", "--league", str(stopping))
    look = "These are the verdicts of cup after 10 of 10 rounds"
    assert look in run(stats.app, *words, "--ruleset", "classic")
    assert look not in run(stats.app, *words, "--ruleset", "basic")
    assert look not in run(stats.app, *words)
    add_played(stopping, "more")
    assert look not in run(stats.app, *words, "--ruleset", "classic")


def test_results_in_a_circle_are_named_below_the_standings(league):
    assert NOTE in run(tournament_command.app, "standings", "cup", "--league", str(league))


def test_command_names_the_pairs_and_gives_the_p_value(league):
    shown = run(stats.app, "transitivity", "--league", str(league))
    assert NOTE in shown
    assert "p = 0.001." in shown
    assert "surely" in shown


def test_results_in_a_circle_are_named_on_the_web_pages(league):
    with League.open(league, create=False) as store:
        client = Client(make_app(LeagueViews(store)))
        assert NOTE in client.get("/").text
        assert NOTE in client.get("/tournaments/cup").text


def test_sentence_names_at_most_three_pairs():
    analysed = {"basic": simulated(cycle(6, 3 * BETA))}
    [sentence] = name_deviations(analysed)
    assert sentence.startswith("basic: one number misleads: bot0")
    assert sentence.count(" beats ") == 3
    rows = transitivity_rows("basic", analysed["basic"].transitivity)
    assert sum(row.deviates for row in rows) > 3
    assert {row.p_value for row in rows} == {analysed["basic"].transitivity.p_value}
    assert all(row.ahead_in.value >= row.predicted for row in rows)


def test_sentence_has_the_decimals_that_tell_the_shares_of_a_pair_apart():
    pair = SimpleNamespace(
        sure=True, bot="ann", other="dee", share=Estimate(0.6384, 0.63, 0.65), predicted=0.6361
    )
    test = SimpleNamespace(misleads=True, pairs=(pair,))
    [sentence] = name_deviations({"basic": SimpleNamespace(transitivity=test)})
    assert sentence.endswith("(63.8 % instead of 63.6 %).")


def test_sentence_names_no_pair_if_none_deviates_surely():
    unsure = SimpleNamespace(sure=False, bot="ann", other="dee")
    test = SimpleNamespace(misleads=True, pairs=(unsure,))
    [sentence] = name_deviations({"basic": SimpleNamespace(transitivity=test)})
    assert sentence == (
        "basic: one number per bot does not explain all results, but no single pair deviates surely."
    )


def test_no_sentence_if_one_number_explains_the_results():
    analysed = {"basic": simulated()}
    assert list(name_deviations(analysed)) == []
    [sentence] = describe_tests(analysed)
    assert sentence.startswith("basic: the results do not contradict one number per bot, p = 0.")


def test_too_few_results_are_said():
    two = Analysis(play(np.full(2, 25.0), tables(2, 2, 5), np.random.default_rng(1)))
    [sentence] = describe_tests({"basic": two})
    assert sentence == "basic: too few results to test whether one number per bot explains them."


def test_damaged_tournament_may_have_games_of_any_ruleset(stopping):
    add_played(stopping, "more", ruleset="basic")
    with closing(sqlite3.connect(stopping / "league.db")) as database, database:
        database.execute("UPDATE tournaments SET seed = x'00' WHERE name = 'more'")
    shown = run(stats.app, "settled", "--league", str(stopping), "--ruleset", "classic")
    assert "classic" in shown
    assert "These are the verdicts of cup after" not in shown
