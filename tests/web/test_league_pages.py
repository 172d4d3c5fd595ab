"""The pages of tournaments, bots and pairs show what the command line prints of the same league."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
import zipfile
import zlib
from contextlib import closing
from dataclasses import replace
from unittest.mock import MagicMock
from urllib.parse import quote

import pytest
from client import Client, make_app
from html_tables import read_page
from markupsafe import escape
from real_runs import SEED

from referee.errors import Cause, Evidence, UserError
from referee.protocol import record as wire
from referee.reports.formats import chance, visible
from referee.store.league import League
from referee.web import bot_pages, pages
from referee.web.background import BackgroundRatings
from referee.web.cache import NotReadyError
from referee.web.pages import game_page, unstored_game_page
from referee.web.templates import Links, render
from referee.web.views import DETAIL_HIDDEN, NEXT_GAMES, STDERR_HIDDEN, LeagueViews

HOSTILE = (
    "<script>alert(1)<b>\u202egnp.exe\x1b[31m\u2028 'quote\" " + 10_000 * "x" + "&amp;{{ 7 * 7 }}"
)
REPORT = json.dumps(
    {
        "bot": HOSTILE,
        "ok": True,
        "steps": [
            {
                "number": 1,
                "name": HOSTILE,
                "verdict": "pass",
                "expected": HOSTILE,
                "came": HOSTILE,
                "output": HOSTILE,
                "elapsed_s": 1.0,
            }
        ],
    }
)
BOTS = ["bait@1.0", "crashes@1", "greedy@1.0", "random@1.0"]
PAGES = (
    "/",
    "/games",
    "/tournaments/cup",
    "/bots/greedy@1.0",
    "/bots/crashes@1",
    "/histories/greedy@1.0",
    "/pairs/bait@1.0/greedy@1.0",
)


@pytest.fixture(scope="module")
def client(league):
    return Client(make_app(LeagueViews(league)))


@pytest.fixture
def show(client):
    """Return a function that reads the tables, charts and links of a page."""

    def read(path):
        response = client.get(path)
        assert response.status_code == 200, response.text
        return read_page(response.text)

    return read


@pytest.fixture
def printed(here):
    """Return a function that runs a command with `--json` and returns the value."""

    def run(*words):
        done = here.referee(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def column(table, title):
    titles, *rows = table
    return [row[titles.index(title)] for row in rows]


def test_standings_of_a_tournament_are_those_of_the_command(show, printed):
    rows = printed("tournament", "standings", "cup")
    table = show("/tournaments/cup").tables["Ratings, classic"]
    assert column(table, "bot") == [row["bot"] for row in rows]
    assert column(table, "mu") == [f"{row['mu']:.2f}" for row in rows]
    assert column(table, "rating") == [f"{row['rating']:.2f}" for row in rows]
    assert column(table, "points") == [str(row["points"]) for row in rows]
    assert column(table, "forfeits") == [str(row["forfeits"]) for row in rows]


def test_chart_of_intervals_has_the_figures_of_the_standings(show, printed):
    rows = printed("tournament", "standings", "cup")
    (chart,) = show("/tournaments/cup").charts
    shown = [(each["fit"], each["low"], each["high"]) for each in chart["data"]["values"]]
    ends = [
        [row["fit"] if row[key] is None else row[key] for key in ("fit_low", "fit_high")]
        for row in rows
    ]
    assert shown == [(row["fit"], *each) for row, each in zip(rows, ends, strict=True)]


def test_crosstable_has_the_counts_of_the_pairs_best_bot_first(show, printed):
    order = [row["bot"] for row in printed("tournament", "standings", "cup")]
    found = {}
    for row in printed("stats", "pairs", "--tournament", "cup"):
        won, drawn, lost = row["wins"], row["draws"], row["losses"]
        found[row["bot"], row["other"]] = f"{100 * row['ahead_in']:.0f} {won}-{drawn}-{lost}"
        found[row["other"], row["bot"]] = f"{100 - 100 * row['ahead_in']:.0f} {lost}-{drawn}-{won}"
    page = show("/tournaments/cup")
    lines = page.tables["Crosstable, classic"][1:]
    assert [line[1] for line in lines] == order
    assert [line[2:] for line in lines] == [
        tuple(found.get((bot, other), "·") for other in order) for bot in order
    ]
    assert "/pairs/bait@1.0/greedy@1.0" in page.addresses


def test_settled_places_and_effects_are_those_of_the_commands(show, printed):
    tables = show("/tournaments/cup").tables
    settled = printed("stats", "settled", "--tournament", "cup")
    assert column(tables["Settled places, classic"], "verdict") == [
        row["verdict"] for row in settled
    ]
    assert column(tables["Settled places, classic"], "P better") == [
        chance(row["p_better"]) for row in settled
    ]
    seats = printed("stats", "seats", "--tournament", "cup")
    assert column(tables["Seats, classic"], "seat") == [str(row["seat"]) for row in seats]
    assert len(tables["Luck, classic"]) == 1 + len(printed("stats", "luck", "--tournament", "cup"))


def test_faults_of_a_tournament_are_those_of_its_status(show, printed):
    faults = printed("tournament", "status", "cup")["faults"]
    table = show("/tournaments/cup").tables["Faults"]
    assert column(table, "cause") == [row["cause"] for row in faults]
    assert column(table, "games") == [str(row["games"]) for row in faults]


@pytest.mark.parametrize("kind", ["standings", "pairs"])
def test_downloads_are_what_the_commands_print(client, here, kind):
    words = {
        "standings": ("tournament", "standings", "cup"),
        "pairs": ("stats", "pairs", "--tournament", "cup"),
    }
    for ending in ("csv", "json"):
        response = client.get(f"/downloads/cup.{kind}.{ending}")
        assert response.status_code == 200
        assert response.headers["content-disposition"] == "attachment"
        assert response.text == here.referee(*words[kind], f"--{ending}").stdout
    rows = list(csv.DictReader(io.StringIO(client.get(f"/downloads/cup.{kind}.csv").text)))
    assert {row[key] for row in rows for key in ("bot", "other") if key in row} == set(BOTS)


def test_archive_of_a_finished_tournament_is_the_one_of_the_command(client, here):
    exported = here.referee("tournament", "export", "cup", "--output", "cup.zip")
    assert exported.returncode == 0, exported.stderr
    assert client.get("/downloads/cup.zip").content == (here.folder / "cup.zip").read_bytes()
    assert zipfile.is_zipfile(here.folder / "cup.zip")


def test_archive_of_a_large_tournament_is_refused_with_its_command(client, monkeypatch):
    monkeypatch.setattr(pages, "_ARCHIVED", 1)
    response = client.get("/downloads/cup.zip")
    assert response.status_code == 404
    assert "cup is too large" in response.text
    assert "referee tournament export cup" in response.text


def test_bot_page_has_the_figures_of_the_commands(show, printed):
    tables = show("/bots/greedy@1.0").tables
    about = printed("bots", "show", "greedy")
    rounds = printed("ratings", "--history", "greedy")
    pairs = printed("stats", "pairs")
    wins = {row["bot"]: row["losses"] for row in pairs if row["other"] == "greedy@1.0"}
    wins |= {row["other"]: row["wins"] for row in pairs if row["bot"] == "greedy@1.0"}
    (rating,) = about["ratings"]
    assert column(tables["Ratings, classic"], "mu") == [f"{rating['mu']:.2f}"]
    assert column(tables["Rating history, classic"], "mu") == [f"{row['mu']:.2f}" for row in rounds]
    others = column(tables["Opponents, classic"], "other")
    assert sorted(others) == ["bait@1.0", "crashes@1", "random@1.0"]
    assert column(tables["Opponents, classic"], "wins") == [str(wins[other]) for other in others]
    assert column(tables["Results, classic"], "games")[0] == str(rating["games"])
    assert column(tables["Results, classic"], "seat") == ["all", "0", "1"]


def test_history_of_a_bot_has_its_chart_on_both_pages(show, printed):
    rounds = printed("ratings", "--history", "greedy")
    for path in ("/bots/greedy@1.0", "/histories/greedy@1.0"):
        chart = show(path).charts[0]
        assert [each["mu"] for each in chart["data"]["values"]] == [row["mu"] for row in rounds]


def test_page_of_a_history_that_is_not_computed_says_how_far_it_is(league, monkeypatch):
    monkeypatch.setattr(LeagueViews, "history", lambda *_args, **_words: None)
    monkeypatch.setattr(LeagueViews, "history_share", lambda *_: 0.255)
    page = Client(make_app(LeagueViews(league))).get("/histories/greedy@1.0")
    assert page.status_code == 200
    assert "The history is being computed: 25.5 % of the games are rated." in page.text


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/", "Ratings"),
        ("/tournaments/cup", "Ratings"),
        ("/tournaments/cup", "Settled places"),
        ("/bots/greedy@1.0", "Ratings"),
        ("/bots/greedy@1.0", "Opponents"),
    ],
)
def test_page_whose_ratings_are_not_computed_says_so_and_shows_the_rest(
    league, monkeypatch, path, title
):
    text = "The ratings are being computed"
    client = Client(make_app(LeagueViews(league, patience_s=0)))
    with monkeypatch.context() as patch:
        patch.setattr(BackgroundRatings, "rate", MagicMock(side_effect=NotReadyError))
        early = client.get(path)
    assert text in early.text
    assert not any(each.startswith(title) for each in read_page(early.text).tables)
    assert float(early.headers["x-newer-in-s"]) > 0
    ready = Client(make_app(LeagueViews(league))).get(path)
    assert text not in ready.text
    assert any(each.startswith(title) for each in read_page(ready.text).tables)


def test_pair_whose_ratings_are_not_computed_has_its_games(league, monkeypatch):
    path = "/pairs/greedy@1.0/random@1.0"
    client = Client(make_app(LeagueViews(league, patience_s=0)))
    with monkeypatch.context() as patch:
        patch.setattr(BackgroundRatings, "rate", MagicMock(side_effect=NotReadyError))
        early = client.get(path)
    assert "The ratings are being computed" in early.text
    assert any(each.startswith("Games") for each in read_page(early.text).tables)
    ready = Client(make_app(LeagueViews(league))).get(path)
    assert "The ratings are being computed" not in ready.text


@pytest.mark.parametrize("file", ["standings.csv", "pairs.json"])
def test_download_of_ratings_that_are_not_computed_is_to_be_tried_again(league, monkeypatch, file):
    client = Client(make_app(LeagueViews(league, patience_s=0)))
    with monkeypatch.context() as patch:
        patch.setattr(BackgroundRatings, "rate", MagicMock(side_effect=NotReadyError))
        early = client.get(f"/downloads/cup.{file}")
    assert (early.status_code, int(early.headers["retry-after"]) > 0) == (503, True)
    assert "The ratings are being computed." in early.text


@pytest.mark.parametrize("file", ["standings.xml", "pairs.xml"])
def test_unknown_ending_of_a_download_is_refused_before_ratings_are_computed(
    league, monkeypatch, file
):
    monkeypatch.setattr(BackgroundRatings, "rate", MagicMock(side_effect=NotReadyError))
    response = Client(make_app(LeagueViews(league, patience_s=0))).get(f"/downloads/cup.{file}")
    assert (response.status_code, "there is no such download" in response.text) == (404, True)


def test_error_of_the_database_is_not_kept_as_the_page_of_a_game(league, monkeypatch):
    client = Client(make_app(LeagueViews(league)))
    with monkeypatch.context() as patch:
        patch.setattr(league, "record", MagicMock(side_effect=UserError("the disk has failed")))
        assert client.get("/games/cup-1").status_code == 400
    page = client.get("/games/cup-1")
    assert (page.status_code, "the disk has failed" in page.text) == (200, False)


def test_record_that_contradicts_itself_is_said_on_its_page_and_left_out_of_others(
    here, league, tmp_path
):
    record = league.record("cup-1")
    wrong = replace(record, scores=record.scores[:1])
    with closing(sqlite3.connect(copy_league(here, tmp_path))) as database:
        database.execute(
            "UPDATE records SET record = ? WHERE game_id = (SELECT id FROM games WHERE name = 'cup-1')",
            (zlib.compress(wire.dumps(wrong)),),
        )
        database.commit()
    with League.open_read_only(tmp_path / "league") as damaged:
        client = Client(make_app(LeagueViews(damaged)))
        page = client.get("/games/cup-1")
        assert page.status_code == 200
        assert "the record has 2 seats, but 1 score and 2 ranks" in page.text
        for bot in record.seating:
            assert client.get(f"/bots/{bot}").status_code == 200


def test_first_page_names_a_tournament_that_cannot_be_read_and_shows_all_else(here, tmp_path):
    with closing(sqlite3.connect(copy_league(here, tmp_path))) as database:
        database.execute("UPDATE tournaments SET config = '{}' WHERE name = 'cup'")
        database.commit()
    with League.open_read_only(tmp_path / "league") as damaged:
        client = Client(make_app(LeagueViews(damaged)))
        page = client.get("/")
        assert page.status_code == 200
        assert "tournament cup is damaged: its configuration" in page.text
        assert "greedy@1.0" in page.text
        assert "No tournaments yet" not in page.text
        assert client.get("/games").status_code == 200


def test_times_of_decisions_are_shown_for_a_bot_that_decided(show):
    page = show("/bots/greedy@1.0")
    bars = page.charts[-1]["data"]["values"]
    table = page.tables["Time of decisions"]
    assert [str(each["decisions"]) for each in bars] == column(table, "decisions")
    assert sum(each["decisions"] for each in bars) > 10
    assert "Time of decisions" not in show("/bots/crashes@1").tables


def test_faults_of_a_bot_have_their_evidence(client, printed):
    text = client.get("/bots/crashes@1").text
    faults = printed("bots", "log", "crashes", "--limit", "20")
    assert "Ouch\n" in [fault["stderr_tail"] for fault in faults]
    for fault in faults:
        assert str(escape(fault["detail"])) in text
        assert f"<b>{fault['cause']}</b>" in text
    assert "Ouch" in text


def test_fault_has_the_same_move_on_the_pages_of_its_bot_and_its_game(client, printed):
    fault = printed("bots", "log", "crashes")[-1]
    move = f"after move {fault['move']}"
    text = client.get("/bots/crashes@1").text
    assert re.search(rf"{fault['game_id']}</bdi></a>, {move}</p>", text)
    assert f"{move}</a>" in client.get(f"/games/{fault['game_id']}").text


def test_standard_error_is_hidden_while_games_with_the_same_cards_are_missing(league, monkeypatch):
    faults = league.faults(bot="crashes")
    fault = next(each for each in faults if "Ouch" in each.fault.evidence.stderr_tail)
    shown = [bot_pages.bot_page(LeagueViews(league), Links(), fault.bot)]
    shown.append(game_page(LeagueViews(league), Links(), fault.game_id))
    monkeypatch.setattr(LeagueViews, "is_spoiler", lambda _views, _game_id: True)
    hidden = [bot_pages.bot_page(LeagueViews(league), Links(), fault.bot)]
    hidden.append(game_page(LeagueViews(league), Links(), fault.game_id))
    for page in shown:
        text = render(page, Links())
        assert "Ouch" in text
        assert STDERR_HIDDEN not in text
    for page in hidden:
        text = render(page, Links())
        assert "Ouch" not in text
        assert STDERR_HIDDEN in text


@pytest.mark.parametrize("cause", [Cause.ILLEGAL, Cause.CRASH])
def test_numbers_that_a_bot_chose_are_hidden_while_games_with_the_same_cards_are_missing(
    league, monkeypatch, cause
):
    charged = league.faults(bot="crashes")[0]
    evidence = Evidence(detail="play {value: 1234567890}", exit_code=1234567890)
    fault = replace(charged.fault, cause=cause, evidence=evidence)
    record = replace(league.record(charged.game_id), faults=(fault,))
    monkeypatch.setattr(league, "record", lambda _: record)
    monkeypatch.setattr(league, "faults", lambda **_: [replace(charged, fault=fault)])

    def details_are_hidden():
        made = (
            bot_pages.bot_page(LeagueViews(league), Links(), charged.bot),
            game_page(LeagueViews(league), Links(), charged.game_id),
        )
        texts = [render(page, Links()) for page in made]
        assert all(("1234567890" in text) is (DETAIL_HIDDEN not in text) for text in texts)
        return [DETAIL_HIDDEN in text for text in texts]

    monkeypatch.setattr(LeagueViews, "is_spoiler", lambda _views, _game_id: False)
    assert details_are_hidden() == [False, False]
    monkeypatch.setattr(LeagueViews, "is_spoiler", lambda _views, _game_id: True)
    assert details_are_hidden() == [True, True]


def test_id_of_a_fault_does_not_change_when_an_earlier_game_is_stored_late(league, monkeypatch):
    faults = league.faults(bot="crashes")
    assert len({each.game_id for each in faults}) > 2

    def ids(shown):
        monkeypatch.setattr(league, "faults", lambda **_: shown)
        page = bot_pages.bot_page(LeagueViews(league), Links(), shown[0].bot)
        return {fault_id: row.game_id for fault_id, row in page.values["evidence"]}

    late = faults[1].game_id
    before = ids([each for each in faults if each.game_id != late])
    after = ids(faults)
    assert len(after) == len(faults)
    assert before == {fault_id: game for fault_id, game in after.items() if game != late}


def test_links_of_the_opponents_have_different_ids(client):
    page = client.get("/bots/greedy@1.0").text
    found = re.findall(r'id="(Opponents[^"]*)"', page)
    assert len(found) > 1
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(set(ids)) == len(ids)


def test_page_of_a_game_that_is_not_stored_shows_standard_error(league):
    faults = league.faults(bot="crashes")
    fault = next(each for each in faults if "Ouch" in each.fault.evidence.stderr_tail)
    page = unstored_game_page(league.record(fault.game_id), "board.js")
    assert "Ouch" in render(page, Links())


def test_bot_page_has_the_evidence_of_the_faults_that_were_stored_last(league, monkeypatch):
    monkeypatch.setattr(bot_pages, "_EVIDENCE", 2)
    last = league.faults(bot="crashes@1", limit=2)
    assert len(league.faults(bot="crashes@1")) > len(last)
    page = bot_pages.bot_page(LeagueViews(league), Links(), "crashes")
    assert [row.game_id for _, row in page.values["evidence"]] == [
        each.game_id for each in last[::-1]
    ]
    note = f"The evidence of the 2 faults that were stored last, of {len(league.faults(bot='crashes@1'))}."
    assert note in render(page, Links())


def test_pages_count_faults_without_their_texts(league, monkeypatch):
    read, limits = league.faults, []

    def note_limit(**words):
        limits.append(words.get("limit"))
        return read(**words)

    monkeypatch.setattr(league, "faults", note_limit)
    client = Client(make_app(LeagueViews(league)))
    for path in ("/", "/tournaments/cup", "/bots/crashes@1"):
        assert client.get(path).status_code == 200
    assert limits == [bot_pages._EVIDENCE]


def test_bot_without_a_version_means_the_newest(client):
    assert client.get("/bots/greedy").text == client.get("/bots/greedy@1.0").text


@pytest.mark.parametrize(
    ("query", "selected"),
    [
        ("bot=greedy@1.0", ["greedy@1.0"]),
        ("bot=greedy", ["greedy"]),
        ("other=bait&bot=greedy&ruleset=duel", ["greedy", "bait", "duel"]),
        ("bot=eve&cause=&termination=", ["eve"]),
        ("", []),
    ],
)
def test_filter_shows_what_restricts_the_list(client, query, selected):
    text = client.get(f"/games?{query}").text
    assert re.findall(r'<option value="([^"]*)" selected>', text) == selected
    options = re.findall(r'<option value="([^"]+)"', re.split("</select>", text)[1])
    assert len(options) == len(set(options))


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("page=x", "page: 'x' is not the number of a page"),
        (
            "fault=crash",
            "unknown key 'fault' in the address; choose one of page, tournament, bot, other, ruleset",
        ),
        (
            "bots=greedy",
            "unknown key 'bots' in the address (did you mean 'bot'?); choose one of page",
        ),
        ("bot=greedy&other=bait&bot=random", "bot: given more than once"),
        (
            "ruleset=dual",
            "ruleset: unknown value 'dual' (did you mean 'duel'?); choose one of classic",
        ),
        ("cause=zzz", "cause: unknown value 'zzz'; choose one of no_start"),
        ("termination=x", "termination: unknown value 'x'; choose one of "),
    ],
)
def test_wrong_filter_is_refused(client, query, says):
    assert client.get("/games").status_code == 200
    response = client.get(f"/games?{query}")
    assert response.status_code == 400
    assert str(escape(says)) in response.text


def test_pair_page_has_the_sentence_of_the_command(client, here, show):
    sentence = here.referee("ratings", "compare", "bait", "greedy").stdout.strip()
    assert str(escape(sentence)) in client.get("/pairs/bait@1.0/greedy@1.0").text
    games = show("/pairs/bait@1.0/greedy@1.0").tables["Games"]
    assert all("bait@1.0" in bots and "greedy@1.0" in bots for bots in column(games, "bots"))
    assert len(games) == 1 + 6


@pytest.mark.parametrize(
    "path",
    [
        "/tournaments/nothing",
        "/bots/nobody",
        "/bots/greedy@9",
        "/histories/nobody",
        "/pairs/greedy@1.0/nobody",
        "/pairs/greedy@1.0/greedy@1.0",
        "/downloads/nothing.standings.csv",
        "/downloads/cup.standings.exe",
        "/downloads/cup.seed.json",
        "/downloads/cup",
    ],
)
def test_what_does_not_exist_leads_back_to_the_league(client, path):
    response = client.get(path)
    assert response.status_code == 404
    assert '<a href="/">Back to the league</a>' in response.text


def test_seed_is_shown_only_after_the_end(here, client, tmp_path):
    assert SEED in client.get("/tournaments/cup").text
    with closing(sqlite3.connect(copy_league(here, tmp_path))) as database:
        database.execute("UPDATE tournaments SET finished_at_us = NULL")
        database.commit()
    with League.open_read_only(tmp_path / "league") as league:
        running = Client(make_app(LeagueViews(league)))
        page = running.get("/tournaments/cup")
        assert page.status_code == 200
        assert SEED not in page.text
        assert "published when all games are played" in page.text
        archive = running.get("/downloads/cup.zip")
        assert (archive.status_code, "cup is not finished yet" in archive.text) == (404, True)


def test_tournament_without_games_says_so(here, tmp_path):
    with closing(sqlite3.connect(copy_league(here, tmp_path))) as database:
        delete_games_after(database, 0)
        database.execute("UPDATE tournaments SET finished_at_us = NULL")
        database.commit()
    with League.open_read_only(tmp_path / "league") as league:
        empty = Client(make_app(LeagueViews(league)))
        for path in PAGES:
            assert empty.get(path).status_code == 200
        assert "No games yet." in empty.get("/tournaments/cup").text
        assert "No rated games yet." in empty.get("/").text
        bot = empty.get("/bots/greedy@1.0").text
        assert "No opponents in rated games yet." in bot
        assert "No results of rated games yet." in bot


def test_one_game_is_counted_in_the_singular(here, client, tmp_path):
    with closing(sqlite3.connect(copy_league(here, tmp_path))) as database:
        delete_games_after(database, 1)
        database.execute("UPDATE tournaments SET finished_at_us = NULL")
        database.commit()
    with League.open_read_only(tmp_path / "league") as league:
        one = Client(make_app(LeagueViews(league)))
        text = one.get("/games").text
        [bots] = column(read_page(text).tables["Games"], "bots")
        pair = "/pairs/" + "/".join(bots.split())
        bot = "/bots/" + bots.split()[0]
        assert '<p role="status">1 game</p>' in text
        assert ">The game in which both bots played</a>" in one.get(pair).text
        assert re.search(r"added [^·]+ · 1 game\b", one.get(bot).text)
    assert ">All 6 games in which both bots played</a>" in client.get(pair).text
    assert re.search(r"added [^·]+ · [0-9]+ games\b", client.get(bot).text)


def test_unfinished_tournament_shows_its_next_games(here, client, tmp_path):
    assert "Next games" not in client.get("/tournaments/cup").text
    with closing(sqlite3.connect(copy_league(here, tmp_path))) as database:
        delete_games_after(database, 4)
        database.commit()
    with League.open_read_only(tmp_path / "league") as league:
        views = LeagueViews(league)
        expected = league.schedule("cup")[4 : 4 + NEXT_GAMES]
        page = read_page(Client(make_app(views)).get("/tournaments/cup").text)
    titles, *shown = page.tables["Next games"]
    assert titles == ("game", "round", "match", "lane", "bots")
    assert shown == [
        (game.game_id, *map(str, (game.round, game.match, game.lane)), " ".join(game.bots))
        for game in expected
    ]
    assert len(shown) > 10


def delete_games_after(database, number):
    """Delete all games but the first `number` games of the league."""
    for table in ("faults", "seats", "records", "results"):
        database.execute(f"DELETE FROM {table} WHERE game_id > ?", (number,))  # noqa: S608


def copy_league(here, folder):
    """Copy the database of the league; return its file."""
    (folder / "league").mkdir()
    target = folder / "league" / "league.db"
    with here.database() as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    return target


@pytest.fixture(scope="module")
def hostile(here, tmp_path_factory):
    """A client of the same league, in which strangers have chosen all names and texts."""
    folder = tmp_path_factory.mktemp("hostile")
    with closing(sqlite3.connect(copy_league(here, folder))) as database:
        (config,) = database.execute("SELECT config FROM tournaments").fetchone()
        values = json.loads(config) | {"name": HOSTILE}
        for entry in values["bots"]:
            entry["text"] = entry["text"].replace("greedy@", f"{HOSTILE}@")
        changed = {
            "tournaments SET name = ?, config = ?": (HOSTILE, json.dumps(values)),
            "bots SET author = ?, folder = ?, check_report = ?": (HOSTILE, HOSTILE, REPORT),
            "bots SET name = ? WHERE name = 'greedy'": (HOSTILE,),
            "faults SET detail = ?, stderr_tail = ?": (HOSTILE, HOSTILE),
            "games SET name = name || ?": (HOSTILE,),
        }
        for change, parameters in changed.items():
            database.execute(f"UPDATE {change}", parameters)
        database.commit()
    with League.open_read_only(folder / "league") as league:
        yield Client(make_app(LeagueViews(league)))


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/games", 200),
        ("/games?bot={}", 200),
        ("/tournaments/{}", 200),
        ("/tournaments/{}!", 404),
        ("/bots/{}@1.0", 200),
        ("/bots/{}!", 404),
        ("/bots/crashes@1", 200),
        ("/histories/{}@1.0", 200),
        ("/pairs/{}@1.0/bait@1.0", 200),
    ],
)
def test_hostile_texts_appear_only_escaped(hostile, path, status):
    response = hostile.get(path.format(quote(HOSTILE, safe="")))
    assert response.status_code == status
    assert "<script>alert" not in response.text
    assert (str(escape(visible(HOSTILE[:50]))) in response.text) is (status == 200)
    shown = re.sub(' value="[^"]*"', "", response.text)  # of a list of games: the exact name
    assert not {"\u202e", "\x1b", "\u2028"} & set(shown)


def test_whole_output_of_a_bot_is_shown_escaped(hostile):
    text = hostile.get("/bots/crashes@1").text
    assert str(escape(visible(HOSTILE, lines=True))) in text
