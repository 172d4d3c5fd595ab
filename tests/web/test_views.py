"""Test the speed of a tournament and the time that is left, and pages whose parts were read at different times."""

from __future__ import annotations

import asyncio
import shutil

import pytest
from sample_league import NOW_US, SAMPLE_BOTS, SampleLeague

from referee.reports.selection import GameFilter
from referee.store.league import League
from referee.tournament.config_reader import load_tournament
from referee.tournament.create import create_tournament
from referee.web import cache
from referee.web.bot_pages import bot_page
from referee.web.pages import league_page, tournament_page
from referee.web.templates import LINKS, render
from referee.web.views import LeagueViews, Speed, speed

SECOND_US = 1_000_000


def ends(*seconds):
    return [round(second * SECOND_US) for second in seconds]


def test_even_games_give_their_speed_and_the_time_left():
    assert speed(ends(0, 0.5, 1, 1.5, 2), missing=10) == Speed(2.0, 5 * SECOND_US)


def test_order_of_the_ends_does_not_matter():
    assert speed(ends(2, 0, 1), missing=3) == speed(ends(0, 1, 2), missing=3)


def test_games_before_the_last_minute_do_not_count():
    assert speed(ends(0, 1, 2, 100, 104), missing=1) == Speed(0.25, 4 * SECOND_US)


def test_finished_tournament_has_no_time_left():
    assert speed(ends(0, 1), missing=0) == Speed(1.0, 0)


def test_too_few_games_have_no_speed():
    assert speed([], missing=5) is None
    assert speed(ends(7), missing=5) is None
    assert speed(ends(7, 7), missing=5) is None
    assert speed(ends(0, 60), missing=5) is None


CUP = GameFilter(tournament="cup")
FIRST_STAGE, SECOND_STAGE = slice(6), slice(6, 8)
"""Games of the sample league: in classic, and in the duel."""


@pytest.fixture
def sample(tmp_path):
    return SampleLeague(tmp_path)


@pytest.fixture
def views(sample, monkeypatch):
    """Return the views of the sample league. Every value is kept for long."""
    monkeypatch.setattr(cache, "DELAY_FACTOR", 1e9)
    with League.open_read_only(sample.league.folder) as league:
        yield LeagueViews(league)


def test_new_tournament_has_its_page_while_the_list_is_outdated(sample, views, tmp_path):
    render(league_page(views, LINKS), LINKS)
    (tmp_path / "next.toml").write_text((tmp_path / "cup.toml").read_text().replace("cup", "next"))
    config = load_tournament(tmp_path / "next.toml")
    specs = [sample.roster.spec(row.bot) for row in sample.league.bots()]
    create_tournament(sample.league, config, specs, seed=bytes(32), now_us=NOW_US)
    assert [row.tournament for row in views.tournaments()] == ["cup"]
    assert "<h1><bdi>next</bdi></h1>" in render(tournament_page(views, LINKS, "next"), LINKS)


def test_new_bot_has_its_page_while_the_list_is_outdated(sample, views, tmp_path):
    render(bot_page(views, LINKS, "greedy"), LINKS)
    folder = shutil.copytree(SAMPLE_BOTS / "greedy", tmp_path / "fresh")
    manifest = (folder / "bot.toml").read_text().replace('name = "greedy"', 'name = "fresh"')
    (folder / "bot.toml").write_text(manifest)
    asyncio.run(sample.roster.submit(folder, now_us=NOW_US))
    assert "fresh@1.0" not in {row.bot for row in views.bots()}
    assert "fresh@1.0" in render(bot_page(views, LINKS, "fresh"), LINKS)


def test_ruleset_that_is_newer_than_the_ratings_is_left_out(sample, views, monkeypatch):
    sample.play(FIRST_STAGE)
    before = LeagueViews(views.league).ratings(CUP)
    sample.play(SECOND_STAGE)
    monkeypatch.setattr(views, "ratings", lambda _choice: before)
    assert list(views.analyses(CUP)) == ["classic", "duel"]
    page = tournament_page(views, LINKS, "cup")
    assert [part.ruleset for part in page.values["rulesets"]] == ["classic"]


def test_ruleset_whose_first_game_is_stored_while_games_are_rated_makes_no_error(
    sample, views, monkeypatch
):
    monkeypatch.setattr(cache, "DELAY_FACTOR", 0)
    sample.play(FIRST_STAGE)
    read, stages = views.league.columns, iter([SECOND_STAGE])

    def read_and_play(**words):
        found = read(**words)
        for games in stages:
            sample.play(games)
        return found

    monkeypatch.setattr(views.league, "columns", read_and_play)
    for rulesets in ({"classic"}, {"classic", "duel"}):
        rows = views.ratings(CUP).rows
        assert {row.ruleset for row in rows} == rulesets
