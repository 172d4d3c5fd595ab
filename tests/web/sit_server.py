"""A small server for the page of a running game. It can be out of reach and lose replies. Its bots decide at once and at random."""

from __future__ import annotations

import json
import random
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from played import record
from replay_page import STATIC

from referee.records import Move
from referee.rules.actions import Action, Decision
from referee.rules.events import redact
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, full_deck, list_cards
from referee.tournament.person import Dealt, Ended, Failed, Moved, Requested
from referee.web.board import decision_data, phrases_script
from referee.web.sitting import ShownGame
from referee.web.templates import Links, Page, render

ADDRESS = "/sit/token/ab12cd"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
LONGEST_WAIT_S = 20


class ScriptedGame:
    """A game between one person and bots that choose at random.

    Args:
        seat: the seat of the person.
        names: the name of each seat.
        started: False to deal only when `deal` is called.
    """

    def __init__(
        self, ruleset: str, seats: int, *, seat: int, seed: int, names: list[str], started: bool
    ) -> None:
        self._chance = random.Random(seed)
        rules = RULESETS[ruleset]
        deck = list_cards(full_deck(rules))
        self._chance.shuffle(deck)
        self.game = Game(rules, seats, deck)
        self.seat = seat
        self.shown = ShownGame(ruleset, names)
        self.posted: list[tuple[int, int]] = []
        """For each accepted action, the number of its decision and the index of the action."""
        self.left = False
        self.moves = 0
        self.number = 0
        """Number of decisions of the person. In a real game, the number of a decision counts those of all seats."""
        if started:
            self.deal()

    def deal(self) -> None:
        """Start the game."""
        self.shown.take(Dealt("game", self.game.view(self.seat)))
        self._let_bots_decide()

    def fail(self, reason: str) -> None:
        """End the game without a result."""
        self.shown.take(Failed(reason))

    @property
    def decision(self) -> Decision:
        """The pending decision of the person."""
        decision = self.game.decision
        assert decision is not None
        assert decision.seat == self.seat
        return decision

    @property
    def choices(self) -> list[dict[str, object]]:
        """The actions of the pending decision, as the page gets them."""
        view = self.game.view(self.seat)
        return list(decision_data(self.number, self.decision, view)["choices"])

    def _let_bots_decide(self) -> None:
        while (decision := self.game.decision) is not None and decision.seat != self.seat:
            self._apply(self._chance.choice(decision.legal))
        self.number += 1
        outcome = self.game.outcome
        if decision is not None:
            self.shown.take(Requested(self.number, decision, self.game.view(self.seat)))
        elif outcome is not None:
            sample = record(self.game.ruleset.name, self.game.players)
            result = {"scores": outcome.scores, "ranks": outcome.ranks, "forfeited": ()}
            self.shown.take(Ended(replace(sample, termination=outcome.termination, **result)))

    def _apply(self, action: Action) -> None:
        decision = self.game.decision
        assert decision is not None
        events = tuple(redact(event, self.seat) for event in self.game.apply(action))
        move = Move(decision.seat, action, 2_500, 0, stand_in=False)
        self.shown.take(Moved(decision, move, events))
        self.moves += 1

    def choose(self, number: int, choice: int) -> bool:
        """Apply an action of the person. Return False if it does not fit the pending decision."""
        if not self.shown.choose(number, choice):
            return False
        self.posted.append((number, choice))
        self._apply(self.decision.legal[choice])
        self._let_bots_decide()
        return True


class SitServer(ThreadingHTTPServer):
    """Serve the page of one running game."""

    daemon_threads = True

    def __init__(self, running: ScriptedGame) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.running = running
        self.changed = threading.Condition()
        self.is_reachable = True
        self.has_game = True
        """False: reply with status 404 to requests about the game, as a server that was started again."""
        self.loses_reply = False
        """Lose the reply to the next action, but apply the action."""
        self.posts = 0
        self.url = f"http://127.0.0.1:{self.server_port}{ADDRESS}"

    def change(self, **values: object) -> None:
        """Set attributes of the server, and let all waiting requests look again."""
        with self.changed:
            for name, value in values.items():
                setattr(self, name, value)
            self.changed.notify_all()

    def wait_for_action(self, number: int) -> None:
        """Wait until the person has acted in the decision with this number."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.running.number != number, LONGEST_WAIT_S)

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing about a browser that has closed its connection; show any other error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: SitServer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if not self.server.is_reachable:
            return
        if url.path == f"{ADDRESS}/moves":
            self._send_moves(parse_qs(url.query))
        elif url.path == ADDRESS:
            running = self.server.running
            values = {"heading": "A game", "address": ADDRESS, "seat": running.seat}
            page = Page("sit.html", "A game", values | {"lobby": "/lobby"}, live=False)
            self._send(200, render(page, Links()), "text/html; charset=utf-8")
        elif url.path == "/phrases.js":
            self._send(200, phrases_script(), "text/javascript")
        elif url.path.startswith("/static/"):
            file = STATIC / url.path.removeprefix("/static/")
            self._send(200, file.read_text(encoding="utf-8"), TYPES[file.suffix[1:]])
        else:
            self._send(200, "<!DOCTYPE html><title>Another page</title>", "text/html")

    def do_POST(self) -> None:
        server = self.server
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        if not server.is_reachable:
            return
        if self.path == f"{ADDRESS}/leave":
            server.running.left = True
            self.send_response(303)
            self.send_header("location", "/lobby")
            self.end_headers()
            return
        form = parse_qs(body)
        if not server.has_game:
            self._send(404, "", "text/plain")
            return
        with server.changed:
            server.posts += 1
            is_taken = server.running.choose(int(form["number"][0]), int(form["choice"][0]))
            is_lost, server.loses_reply = server.loses_reply, False
            server.changed.notify_all()
        if not is_lost:
            self._send(204 if is_taken else 409, "", "text/plain")

    def _send_moves(self, query: dict[str, list[str]]) -> None:
        server, running = self.server, self.server.running
        after, number = int(query["after"][0]), int(query["decision"][0])
        with server.changed:
            server.changed.wait_for(
                lambda: (
                    not (server.is_reachable and server.has_game)
                    or running.shown.has_news(after, number)
                ),
                LONGEST_WAIT_S,
            )
            news = json.dumps(running.shown.news(after))
        if not server.has_game:
            self._send(404, "", "text/plain")
        elif server.is_reachable:
            self._send(200, news, "application/json")

    def _send(self, status: int, text: str, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-security-policy", POLICY)
        self.send_header("content-type", kind)
        self.end_headers()
        if status != 204:
            self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass
