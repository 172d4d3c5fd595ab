"""`stats settled`, `ratings compare`, `until` and the web pages never contradict each other, at any look of a tournament."""

from __future__ import annotations

import json
import shutil
from itertools import combinations

import pytest
from real_runs import THREE, place

from referee.ratings.judge import Verdict
from referee.reports.selection import GameFilter
from referee.store.league import League
from referee.tournament.course import find_next_look, take_look, take_looks
from referee.tournament.create import find_state
from referee.web.views import LeagueViews

pytestmark = pytest.mark.extended("plays further tournaments")
UNTIL = "until = { confidence = 0.8, margin = 4 }\n"


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A league with a tournament of three bots that has stopped early."""
    with place(tmp_path_factory.mktemp("verdicts")) as made:
        file = made.tournament("cup", bots=THREE, matches=40, more=UNTIL)
        done = made.referee("tournament", "run", file, "--league", "league")
        assert done.returncode == 0, done.stderr
        with League.open(made.folder / "league", create=False) as league:
            made.state = find_state(league, "cup")
            made.looks = list(list_looks(made.state.config, league.columns(tournament="cup")))
        yield made


def list_looks(config, games):
    """Yield all looks that a tournament with these games has taken."""
    taken = None
    while (look := find_next_look(config, taken)) is not None:
        yield look
        taken = take_look(config, games, look, taken)


def read_json(here, *words):
    done = here.referee(*words, "--league", "cut", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def cut(here):
    """Return a function that makes the league `cut`: the league as it was when it had a number of games."""

    def make(games):
        shutil.rmtree(here.folder / "cut", ignore_errors=True)
        shutil.copytree(here.folder / "league", here.folder / "cut")
        with here.database("cut") as database:
            for table in ("faults", "seats", "records", "results"):
                later = "game_id IN (SELECT id FROM games WHERE position >= ?)"
                database.execute(f"DELETE FROM {table} WHERE {later}", (games,))  # noqa: S608
            database.execute("UPDATE tournaments SET finished_at_us = NULL, stopped_after = NULL")
        with League.open(here.folder / "cut", create=False) as league:
            return league.columns(tournament="cup"), LeagueViews(league).judge(
                GameFilter(tournament="cup")
            )

    yield make
    shutil.rmtree(here.folder / "cut")


def test_all_verdicts_agree_at_every_look(here, cut):
    stop = here.state.stopped_after
    assert len(here.looks) > 3
    seen, final = set(), {}
    for look in here.looks:
        games, page = cut(look.games)
        verdicts = take_looks(here.state.config, games).verdicts
        [table] = verdicts.neighbours.values()
        assert verdicts.are_settled == (look.rounds == stop)
        shown = [(each.bot, each.below, each.verdict.value) for each in table]
        settled = read_json(here, "stats", "settled", "--tournament", "cup")
        assert [(row["bot"], row["below"], row["verdict"]) for row in settled] == shown
        assert settled == read_json(here, "stats", "settled"), "it is the only tournament"
        assert [(row.bot, row.below, row.verdict) for row in page.neighbour_rows()] == shown
        for bot, other in combinations(games.bots, 2):
            [row] = read_json(here, "ratings", "compare", bot, other)
            found = verdicts.compare("classic", bot, other)
            behind = found.verdict is Verdict.AHEAD and found.bot == other
            assert row["verdict"] == ("behind" if behind else found.verdict.value)
            pair = frozenset((bot, other))
            assert row["verdict"] == final.get(pair, row["verdict"]), "a final verdict stays"
            if ("classic", pair) in verdicts.final:
                final[pair] = row["verdict"]
        seen |= {each.verdict for each in table}
    assert {Verdict.OPEN, Verdict.AHEAD} <= seen


def test_games_after_a_look_change_no_verdict(here, cut):
    *_, look, later = here.looks
    cut(look.games)
    before = read_json(here, "stats", "settled")
    cut(later.games - 1)
    assert read_json(here, "stats", "settled") == before
    cut(later.games)
    assert read_json(here, "stats", "settled") != before


def test_verdicts_say_to_which_look_they_belong(here):
    stop = here.state.stopped_after
    basis = f"These are the verdicts of cup after {stop} of 40 rounds, with confidence 0.8 and margin 4."
    for command in (("stats", "settled"), ("ratings", "compare", "greedy", "random")):
        done = here.referee(*command, "--tournament", "cup", "--league", "league")
        assert done.stdout.endswith(f"{basis}\n")


def test_before_the_first_look_there_is_no_verdict(here, cut):
    cut(5)
    assert read_json(here, "stats", "settled") == []
    assert read_json(here, "ratings", "compare", "greedy", "random") == []
    done = here.referee("ratings", "compare", "greedy", "random", "--league", "cut")
    assert done.stdout == "cup has no verdicts yet: its first look is after round 1.\n"


@pytest.mark.parametrize(
    "option",
    [("--confidence", "0.9"), ("--margin", "1"), ("--seats", "2")],
    ids=lambda each: each[0],
)
@pytest.mark.parametrize(
    "command", [("stats", "settled"), ("ratings", "compare", "greedy", "bait")]
)
def test_tournament_with_until_is_not_judged_in_another_way(here, command, option):
    done = here.referee(*command, *option, "--league", "league")
    assert done.returncode == 2
    assert done.stderr == (
        f"referee: {option[0]}: tournament cup is judged by the key `until` of its file, over all its games;"
        f" omit {option[0]}\n"
    )
