"""Play against bots on a real server without a browser: who may, what is refused, what is stored, and what is left behind."""

from __future__ import annotations

import random
import re
import signal
import socket
from contextlib import contextmanager

import httpx
import pytest
from real_runs import place
from served import PATIENCE_S, serving

from referee.store.league import League

LONGEST_NAME = 33 * "a"
MORE = pytest.mark.extended("plays more games of people")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Return a place with a league in which a short tournament was played."""
    with place(tmp_path_factory.mktemp("seat"), apart=True) as made:
        done = made.referee("tournament", "run", made.tournament(matches=1))
        assert done.returncode == 0, done.stderr
        yield made


@pytest.fixture(scope="module")
def served(here):
    with serving(here) as started:
        yield started


def form(*seats, **fields):
    """Return the fields of the form for a game. By default nothing is stored."""
    players = {f"seat-{seat}": player for seat, player in enumerate(seats)}
    return {"name": "anna", "ruleset": "classic"} | players | fields


GAME = form("you", "random@1.0")


class Visitor:
    """A person at the seat of a server."""

    def __init__(self, served, client):
        self._client = client
        self.lobby = served.seat

    def get(self, address):
        return self._client.get(address)

    def post(self, address, fields):
        return self._client.post(address, data=fields)

    def sit_down(self, fields=None):
        """Start a game, and return its address."""
        started = self.post(self.lobby, fields or GAME)
        assert started.status_code == 303, started.text
        return str(started.url.join(started.headers["location"]))

    def news(self, game, after=-1, decision=0):
        reply = self.get(f"{game}/moves?after={after}&decision={decision}")
        assert reply.status_code == 200
        return reply.json()

    def play_out(self, game, chance):
        """Choose actions at random until the game is over and not being stored. Return the last news and the number of moves."""
        news, moves = self.news(game), 0
        while not news["over"] or news["storage"] == "being stored":
            moves += len(news["moves"])
            if decision := news["decision"]:
                choice = chance.randrange(len(decision["choices"]))
                sent = self.post(game, {"number": decision["number"], "choice": choice})
                assert sent.status_code == 204
            news = self.news(game, moves)
        return news, moves + len(news["moves"])


@contextmanager
def visiting(served):
    with httpx.Client(timeout=PATIENCE_S, trust_env=False) as client:
        yield Visitor(served, client)


@pytest.fixture
def visitor(served):
    with visiting(served) as visitor:
        yield visitor


def stored_games(here):
    with League.open_read_only(here.folder / "league") as league:
        return {game.game_id for game in league.results(free=True)}


def ratings(here):
    return here.referee("ratings", "--json").stdout


@MORE
def test_game_is_played_stored_and_not_rated(visitor, served, here):
    before, rated = stored_games(here), ratings(here)
    game = visitor.sit_down(GAME | {"store": "on"})
    news, moves = visitor.play_out(game, random.Random(1))
    assert (news["storage"], news["problem"]) == ("stored", None)
    [stored] = stored_games(here) - before
    with League.open_read_only(here.folder / "league") as league:
        record = league.record(stored)
    assert [str(bot) for bot in record.seating] == ["anna@person", "random@1.0"]
    assert len(record.moves) == moves
    assert news["result"]["scores"] == list(record.scores)
    assert ratings(here) == rated
    replay = visitor.get(f"{game}/replay")
    assert (replay.status_code, replay.headers["location"]) == (303, f"/games/{stored}")
    assert served.shows(f"games/{stored}", "anna@person")
    assert here.referee("verify").returncode == 0


@MORE
def test_game_that_is_not_stored_has_its_replay_while_the_server_runs(visitor, here):
    before = stored_games(here)
    game = visitor.sit_down()
    _, moves = visitor.play_out(game, random.Random(2))
    page, board = visitor.get(f"{game}/replay"), visitor.get(f"{game}/board.js")
    assert page.status_code == board.status_code == 200
    assert f'src="{httpx.URL(game).path}/board.js"' in page.text
    assert "anna" in page.text
    assert board.text.startswith("linkoGame(")
    assert f"<dd>{moves}</dd>" in page.text
    assert stored_games(here) == before
    assert "finished" in visitor.get(visitor.lobby).text


def test_page_of_a_game_and_its_news_have_only_what_the_seat_may_see(visitor):
    game = visitor.sit_down(form("random@1.0", "you"))
    news = visitor.news(game)
    assert news["game"]["seat"] == 1
    assert news["game"]["start"]["hands"][0] == [13, *14 * [0]]
    assert sum(news["game"]["start"]["hands"][1][1:]) == 13
    page = visitor.get(game)
    assert "classic: you against random" in page.text
    assert 'data-seat="1"' in page.text
    for ending in ("replay", "board.js"):
        hidden = visitor.get(f"{game}/{ending}")
        assert hidden.status_code == 404
        assert "not finished" in hidden.text
    assert visitor.post(f"{game}/leave", {}).status_code == 303


@MORE
def test_choice_is_taken_once(visitor):
    game = visitor.sit_down()
    decision = None
    while decision is None:
        decision = visitor.news(game)["decision"]
    right = {"number": decision["number"], "choice": 0}
    for wrong in (right | {"number": 0}, right | {"choice": len(decision["choices"])}):
        assert visitor.post(game, wrong).status_code == 409
    assert [visitor.post(game, right).status_code for _ in range(2)] == [204, 409]
    for broken in ({}, right | {"choice": "x"}, right | {"number": "1" * 10}):
        assert visitor.post(game, broken).status_code == 400
    assert visitor.post(f"{game}/leave", {}).status_code == 303


@MORE
def test_game_that_is_left_ends_with_its_bots_and_is_forgotten(visitor, here, served):
    before = here.processes()
    game = visitor.sit_down()
    while visitor.news(game)["decision"] is None:
        pass
    assert len(here.processes()) > len(before)
    left = visitor.post(f"{game}/leave", {})
    assert left.headers["location"] == httpx.URL(served.seat).path
    assert {process.pid for process in here.processes()} == {process.pid for process in before}
    for path in ("", "/moves?after=0&decision=0", "/replay", "/board.js"):
        assert visitor.get(game + path).status_code == 404
    assert visitor.post(f"{game}/leave", {}).status_code == 404


@MORE
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (form("you"), "players: classic is for 2 to 5 players, not 1"),
        (form("you", "random@1.0", "greedy@1.0", ruleset="duel"), "is for 2 players, not 3"),
        (form("random@1.0", "greedy@1.0"), "players: choose one place for yourself"),
        (form("you", "you"), "players: choose one place for yourself"),
        (form("you", "random@1.0", "random@1.0"), "players: random@1.0 has more than one place"),
        (form("you", "random@9"), "there is no version &#39;9&#39; of &#39;random&#39;"),
        (form("you", "random@1.0", ruleset="<b>"), "there is no ruleset &#39;&lt;b&gt;&#39;"),
        (form("you", "random@1.0", name="random"), "is the name of a bot of this league"),
        (form("you", "random@1.0", name=""), "your name: &#39;&#39; is not a valid name"),
        (form("you", "random@1.0", name=LONGEST_NAME), "is not a valid name"),
        ({}, "ruleset: there is no ruleset"),
    ],
)
def test_game_that_cannot_be_played_is_refused_with_the_form(visitor, fields, problem):
    refused = visitor.post(visitor.lobby, fields)
    assert refused.status_code == 400
    assert problem in refused.text
    assert 'role="alert"' in refused.text
    assert '<option value="you" selected>' in refused.text or "you" not in fields.values()


@MORE
def test_database_that_cannot_be_written_is_explained_without_its_place(visitor, here):
    with here.database() as database:
        database.execute("BEGIN IMMEDIATE")
        refused = visitor.post(visitor.lobby, GAME | {"store": "on"})
    assert refused.status_code == 400
    assert "The database of the league does not work at the moment." in refused.text
    assert "league.db" not in refused.text


@MORE
def test_large_or_broken_form_is_refused(served):
    for content, status in ((b"a=" + 5000 * b"x", 413), (b"name=\xff", 400)):
        refused = httpx.post(served.seat, content=content, timeout=PATIENCE_S, trust_env=False)
        assert refused.status_code == status


@MORE
def test_form_that_breaks_off_is_no_error_of_the_server(here):
    with serving_apart(here) as (server, visitor):
        path = httpx.URL(server.seat).path
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\na="
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as connection:
            connection.sendall(head.encode())
            connection.shutdown(socket.SHUT_WR)
            connection.recv(100)  # the server has noticed
        assert visitor.get(visitor.lobby).status_code == 200
        server.process.terminate()
        assert server.process.wait(PATIENCE_S) == 130
        assert server.process.stdout.read() == ""


@MORE
def test_without_the_token_nobody_plays(served, visitor):
    game = visitor.sit_down()
    [token] = re.findall(r"/sit/([^/]+)/", game)
    assert len(token) >= 20
    for wrong in (token[:-1], token[:-1] + "~", token.lower() + "x"):
        address = game.replace(token, wrong)
        for path in ("", "/moves?after=0&decision=0", "/replay", "/board.js"):
            assert visitor.get(address + path).status_code == 404
        for path, fields in (("", {"number": 1, "choice": 0}), ("/leave", {})):
            assert visitor.post(address + path, fields).status_code == 404
        assert visitor.post(served.seat.replace(token, wrong), GAME).status_code == 404
    explained = served.request("sit")
    assert explained.status_code == 200
    assert token not in explained.text
    assert token not in served.request("").text
    assert visitor.get(game).status_code == 200
    assert visitor.post(f"{game}/leave", {}).status_code == 303


@MORE
def test_pages_of_the_seat_are_never_kept_and_have_the_strict_policy(visitor):
    game = visitor.sit_down()
    for address in (visitor.lobby, game, f"{game}/moves?after=-1&decision=0"):
        headers = visitor.get(address).headers
        assert headers["cache-control"] == "no-store"
        assert "script-src 'self'" in headers["content-security-policy"]
    for method in ("PUT", "DELETE"):
        refused = httpx.request(method, game, timeout=PATIENCE_S, trust_env=False)
        assert refused.status_code == 405
    assert visitor.post(f"{game}/leave", {}).status_code == 303


@contextmanager
def serving_apart(here, *words):
    with serving(here, *words) as server, visiting(server) as visitor:
        yield server, visitor


@MORE
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_signal_ends_the_server_with_all_games(here, number):
    before = {process.pid for process in here.processes()}
    with serving_apart(here) as (server, visitor):
        games = [visitor.sit_down() for _ in range(2)]
        for game in games:
            while visitor.news(game)["decision"] is None:
                pass
        server.process.send_signal(number)
        assert server.process.wait(PATIENCE_S) == 130
        assert server.process.stdout.read() == ""
    assert {process.pid for process in here.processes()} <= before


@MORE
def test_game_ends_with_a_server_that_is_killed(here):
    with serving_apart(here) as (server, visitor):
        game = visitor.sit_down()
        while visitor.news(game)["decision"] is None:
            pass
        own = [each for each in here.processes() if server.process.pid in pids_above(each)]
        assert len(own) >= 2
        server.process.kill()
        server.process.wait(PATIENCE_S)
    for process in own:
        process.wait(PATIENCE_S)


def pids_above(process):
    return [process.pid, *(parent.pid for parent in process.parents())]


@MORE
def test_only_four_games_are_played_at_a_time(here):
    with serving_apart(here) as (_, visitor):
        games = [visitor.sit_down() for _ in range(4)]
        refused = visitor.post(visitor.lobby, GAME)
        assert refused.status_code == 400
        assert "4 games are being played here" in refused.text
        assert visitor.post(f"{games[0]}/leave", {}).status_code == 303
        visitor.sit_down()


@MORE
def test_unknown_rung_is_refused(here):
    done = here.referee("serve", "--port", "0", "--isolation", "bunker")
    assert done.returncode == 2
    assert "--isolation: unknown rung 'bunker'" in done.stderr
