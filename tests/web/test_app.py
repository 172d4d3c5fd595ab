"""Test what every response has, which requests are refused, and that pages are rendered once for all visitors."""

from __future__ import annotations

import asyncio
import shutil
import threading
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from client import HOST, Client, make_app
from real_runs import place
from starlette.datastructures import URL
from starlette.requests import Request

from referee.errors import RefereeError, StoreError, UserError
from referee.store.league import League
from referee.web import app, pages, problems, templates
from referee.web.views import LeagueViews, Speed

PATHS = ("/", "/games", "/static/style.css", "/nowhere", "/games?page=x")


@pytest.fixture(scope="module")
def league(tmp_path_factory):
    """Return an open league in which a short tournament was played."""
    with place(tmp_path_factory.mktemp("pages")) as here:
        done = here.referee("tournament", "run", here.tournament(matches=1))
        assert done.returncode == 0, done.stderr
        with League.open_read_only(here.folder / "league") as opened:
            yield opened


@pytest.fixture
def views(league):
    return LeagueViews(league)


@pytest.fixture
def client(views):
    return Client(make_app(views))


def fail(error):
    def fails(*_args):
        raise error

    return fails


@pytest.mark.parametrize("path", PATHS)
def test_every_response_has_a_strict_policy(client, path):
    headers = client.get(path).headers
    policy = dict(
        part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_refusals_and_bugs_have_the_policy_too(client, monkeypatch):
    wrong_host = client.get("/", headers={"host": "evil.test"})
    wrong_method = client.request("POST", "/")
    monkeypatch.setattr(pages, "league_page", fail(ZeroDivisionError("oops")))
    bug = client.get("/")
    assert [each.status_code for each in (wrong_host, wrong_method, bug)] == [400, 405, 500]
    for response in (wrong_host, wrong_method, bug):
        assert "script-src 'self'" in response.headers["content-security-policy"]
    assert "oops" not in bug.text


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (HOST, 200),
        (f"{HOST}:8080", 200),
        ("Referee.Test", 200),
        ("evil.test", 400),
        (f"evil.{HOST}", 400),
        (f"{HOST}.evil.test:80", 400),
        ("", 400),
        ("[::1]:80", 400),
        (f"{HOST}:8080/?", 400),
        (f"{HOST}:80@evil.test", 400),
        (f"{HOST}#", 400),
        ("[::1", 400),
    ],
)
def test_only_known_hosts_are_answered(client, host, status):
    assert client.get("/", headers={"host": host}).status_code == status


@pytest.mark.parametrize("host", ["[::1", "a/?", "a b", ""])
def test_malformed_host_is_refused_where_all_hosts_are_known(views, host):
    response = Client(make_app(views, ["*"])).get("/", headers={"host": host})
    assert (response.status_code, "The header Host" in response.text) == (400, True)


def test_page_is_kept_by_its_path_whatever_its_url_is_said_to_be(client, monkeypatch):
    monkeypatch.setattr(Request, "url", URL("http://referee.test/"))
    assert client.get("/games").text != client.get("/").text
    assert client.request("POST", "/sit/wrong/start").status_code == 404
    monkeypatch.setattr(Request, "url", URL("http://referee.test/sit/"))
    assert client.request("POST", "/").status_code == 405


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_only_reading_is_allowed(client, method):
    response = client.request(method, "/")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("method", ["PUT", "OPTIONS"])
@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/sit/token", {"GET", "HEAD", "POST"}),
        ("/sit/token/1", {"GET", "HEAD", "POST"}),
        ("/sit/token/1/moves", {"GET", "HEAD"}),
        ("/sit/token/1/leave", {"POST"}),
    ],
)
def test_refused_method_at_the_seat_gets_the_allowed_ones(client, method, path, allowed):
    response = client.request(method, path)
    assert (response.status_code, set(response.headers["allow"].split(", "))) == (405, allowed)
    assert "This address does not accept the method of this request." in response.text


def test_head_has_the_headers_of_the_page(client):
    got, head = client.get("/games"), client.request("HEAD", "/games")
    assert head.status_code == 200
    assert head.headers["etag"] == got.headers["etag"]


def test_unknown_address_leads_back_to_the_league(client):
    response = client.get("/nowhere")
    assert response.status_code == 404
    assert '<a href="/">Back to the league</a>' in response.text


def test_error_of_the_league_is_shown_as_text(client, monkeypatch):
    monkeypatch.setattr(pages, "league_page", fail(RefereeError("<b>broken</b>")))
    response = client.get("/")
    assert response.status_code == 500
    assert "&lt;b&gt;broken&lt;/b&gt;" in response.text


def test_long_error_is_shown_with_its_end(client, monkeypatch):
    reason = f"no bot 'gredy'; there are {', '.join(['greedy'] * 60)}; choose one of them"
    monkeypatch.setattr(pages, "league_page", fail(UserError(reason)))
    assert "choose one of them" in client.get("/").text
    monkeypatch.setattr(pages, "league_page", fail(UserError("x" * 10_000)))
    assert len(client.get("/").text) < 5_000


@pytest.mark.parametrize("path", ["/bots/nobody", "/tournaments/nothing", "/games/nothing"])
def test_error_does_not_say_where_the_league_is(client, league, path):
    response = client.get(path)
    assert response.status_code == 404
    assert str(league.folder) not in response.text
    assert path.rpartition("/")[2] in response.text


@pytest.mark.parametrize("is_missing", [True, False], ids=["missing", "damaged"])
def test_error_of_a_copy_of_a_bot_does_not_say_where_the_league_is(league, tmp_path, is_missing):
    folder = shutil.copytree(league.folder, tmp_path / "league")
    [copy] = (path for path in (folder / "bots" / "greedy").iterdir() if path.is_dir())
    manifest = copy / "bot" / "bot.toml"
    manifest.unlink() if is_missing else manifest.write_text("[wrong")
    with League.open_read_only(folder) as opened:
        response = Client(make_app(LeagueViews(opened))).get("/downloads/cup.zip")
    assert response.status_code == 400
    assert f"<p>{copy.relative_to(folder)}" in response.text
    assert str(tmp_path) not in response.text


@pytest.mark.parametrize("folder", ["league", "a/league", "."])
def test_explained_error_has_paths_relative_to_the_league_folder(tmp_path, folder):
    with chdir(tmp_path), League.open(Path(folder), create=True) as league:
        error = UserError(
            f"{league.folder / 'bots'}: see '{league.folder / 'bots/x'}', no-league/y"
        )
        assert league.explain(error) == "bots: see 'bots/x', no-league/y"
        error = UserError(f"{league.folder}: the league's bot is gone")
        assert league.explain(error) == "the league's bot is gone"


def test_error_of_the_database_does_not_say_where_its_file_is(client, league, monkeypatch):
    error = UserError(f"{league.folder / 'league.db'}: the disk is full")
    monkeypatch.setattr(pages, "league_page", fail(error))
    assert "<p>the disk is full</p>" in client.get("/").text


def test_failed_database_is_explained_in_the_terminal_only(client, monkeypatch):
    said = []
    monkeypatch.setattr(problems.LOG, "error", lambda form, *values: said.append(form % values))
    monkeypatch.setattr(pages, "league_page", fail(StoreError("db.example: connection refused")))
    response = client.get("/")
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert "The database of the league does not work at the moment." in response.text
    assert "connection refused" not in response.text
    assert said == ["db.example: connection refused"]


def test_kept_page_is_not_shown_after_the_database_was_replaced(league, tmp_path):
    copy = shutil.copytree(league.folder, tmp_path / "league")
    with League.open_read_only(copy) as opened:
        client = Client(make_app(LeagueViews(opened)))
        assert client.get("/").status_code == 200
        shutil.copy(copy / "league.db", tmp_path / "backup.db").replace(copy / "league.db")
        response = client.get("/")
    assert response.status_code == 503
    assert "The database of the league does not work at the moment." in response.text


@pytest.mark.parametrize("error", [RefereeError("the database is locked"), ValueError("a bug")])
def test_open_page_is_loaded_again_after_an_error(client, monkeypatch, error):
    monkeypatch.setattr(pages, "league_page", fail(error))
    assert float(client.get("/").headers["x-newer-in-s"]) > 0


def test_page_that_a_browser_has_is_not_sent_again(client):
    first = client.get("/")
    again = client.get("/", headers={"if-none-match": f'"x", {first.headers["etag"]}'})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["x-newer-in-s"] == ""


def test_page_is_compressed_for_browsers_that_can_read_it(client):
    plain = client.get("/", headers={"accept-encoding": "identity"})
    packed = client.get("/", headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    assert packed.content == plain.content
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("identity, gzip;q=0", False),
        ("GZIP ; q=0.000,br", False),
        ("gzip;q=0.01", True),
        ("br;q=0, gzip", True),
        ("gzip;q=1.0, *;q=0", True),
    ],
)
@pytest.mark.parametrize("path", ["/", "/static/style.css"])
def test_nothing_is_compressed_for_a_client_that_refuses_it(client, path, accepted, is_packed):
    response = client.get(path, headers={"accept-encoding": accepted})
    assert (response.headers.get("content-encoding") == "gzip") is is_packed
    assert response.headers["vary"] == "Accept-Encoding"


def test_page_is_rendered_once_for_all_visitors(client, monkeypatch):
    rendered = []
    render = app.render
    monkeypatch.setattr(
        app, "render", lambda page, links: rendered.append(page) or render(page, links)
    )
    for number in range(10):
        assert client.get(f"/?random={number}").status_code == 200
        assert client.get("/games?bot=greedy").status_code == 200
    assert [page.title for page in rendered] == ["League", "Games"]


async def test_requests_that_wait_for_the_first_making_of_a_page_hold_no_thread(views, monkeypatch):
    made, league_page = [], pages.league_page
    began, may_end = threading.Event(), threading.Event()

    def make(*words):
        made.append(words)
        began.set()
        assert may_end.wait(60)
        return league_page(*words)

    monkeypatch.setattr(pages, "league_page", make)
    transport = httpx.ASGITransport(make_app(views))
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
        visits = [asyncio.create_task(client.get("/")) for _ in range(100)]
        try:
            assert await asyncio.to_thread(began.wait, 60)
            for path in ("/static/style.css", "/games"):
                assert (await asyncio.wait_for(client.get(path), 20)).status_code == 200
        finally:
            may_end.set()
            shown = await asyncio.gather(*visits)
    assert {each.status_code for each in shown} == {200}
    assert len(made) == 1


def test_page_is_rendered_anew_after_a_change(league, monkeypatch):
    mark = SimpleNamespace(value=1)
    monkeypatch.setattr(league, "change_mark", lambda: mark.value)
    monkeypatch.setattr("referee.web.cache.DELAY_FACTOR", 0)
    client = Client(make_app(LeagueViews(league), ["*"]))
    assert "12:34 title" not in client.get("/").text
    monkeypatch.setattr(
        pages,
        "league_page",
        lambda *_: templates.Page("problem.html", "12:34 title", {"explanation": ""}),
    )
    assert "12:34 title" not in client.get("/").text
    mark.value = 2
    assert "12:34 title" in client.get("/").text


def test_asset_is_kept_by_browsers_only_at_the_address_of_its_version(client):
    page = client.get("/").text
    [address] = [part.split('"')[0] for part in page.split('href="') if "style.css" in part][:1]
    assert client.get(address).headers["cache-control"] == "max-age=86400"
    assert client.get("/static/style.css").headers["cache-control"] == "no-cache"


def test_page_that_does_not_change_has_no_stream(client):
    assert 'sse-connect="/events"' in client.get("/").text
    assert "sse-connect" not in client.get("/nowhere").text


def test_page_without_javascript_says_what_is_missing(client):
    assert "Live updates need JavaScript." in client.get("/").text


def test_unfinished_tournament_shows_its_speed_and_the_time_left(client, views, monkeypatch):
    assert "games/s" not in client.get("/tournaments/cup").text
    status = views.status("cup")
    missing = replace(status[-1], games=status[-1].games + 100)
    monkeypatch.setattr(views, "status", lambda _name: (*status[:-1], missing))
    monkeypatch.setattr(
        "referee.web.views.speed", lambda _ends_us, missing: Speed(2.5, missing * 400_000)
    )
    page = Client(make_app(views)).get("/tournaments/cup").text
    assert "2.5 games/s in the last minute of play; 40.0 s left at this speed" in page
