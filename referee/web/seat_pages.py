"""Serve the seat for people: choose a game, play it, and look at it afterwards.

All addresses below `/sit/` contain the token of the lobby, so that only people who know the token can play. POST requests are
accepted only at these addresses. Neither browsers nor the server may keep the responses, because a game changes all the time.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from referee.errors import NotFoundError, RefereeError, UserError
from referee.records import GameRecord
from referee.rules.ruleset import RULESETS
from referee.web import pages
from referee.web.board import board_data, board_script
from referee.web.lobby import YOU, Lobby, Wish
from referee.web.sitting import Sitting, Storage
from referee.web.templates import LINKS, Page, render

SEAT = "/sit"
"""All pages of the seat have addresses that begin with this path."""
SCRIPT = "text/javascript"
_PATIENCE_S = 20.0
"""How long a request for news waits at most, in seconds. `sit.js` waits longer before it gives up a request."""
_FORM_BYTES = 4096
"""The limit of a form, in bytes. The form of the lobby has less than half of this, even with the longest names."""
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_SEE_OTHER = 303
_BAD_REQUEST = 400
_CONFLICT = 409
_TOO_LARGE = 413

Endpoint = Callable[[Request], Awaitable[Response]]


def seat_routes(lobby: Lobby) -> list[BaseRoute]:
    """Return the routes of the seat."""
    seat = _Seat(lobby)
    lobby_path, game_path = f"{SEAT}/{{token}}", f"{SEAT}/{{token}}/{{game}}"
    return [
        Route(SEAT, _explain),
        Route(lobby_path, seat.guarded(seat.show_lobby, seat.start), methods=["GET", "POST"]),
        Route(game_path, seat.guarded(seat.show_game, seat.choose), methods=["GET", "POST"]),
        Route(f"{game_path}/moves", seat.guarded(seat.send_news)),
        Route(f"{game_path}/leave", seat.guarded(seat.leave), methods=["POST"]),
        Route(f"{game_path}/replay", seat.guarded(seat.show_replay)),
        Route(f"{game_path}/board.js", seat.guarded(seat.send_board)),
    ]


async def _explain(_request: Request) -> Response:
    return _show(Page("sit_down.html", "Sit down", live=False))


class _Seat:
    """The endpoints of the seat. Each is called only with the right token."""

    def __init__(self, lobby: Lobby) -> None:
        self._lobby = lobby
        self._address = f"{SEAT}/{lobby.token}"

    def guarded(self, endpoint: Endpoint, post: Endpoint | None = None) -> Endpoint:
        """Return an endpoint that also refuses a wrong token, and tells browsers not to keep the response.

        If `post` is given, it answers the POST requests. `endpoint` answers all other requests.
        """

        async def respond(request: Request) -> Response:
            token = request.path_params["token"]
            if not hmac.compare_digest(token.encode(), self._lobby.token.encode()):
                raise NotFoundError(
                    "This address is wrong. `referee serve` prints the right one when it starts."
                )
            is_post = request.method == "POST"
            response = await (post if post and is_post else endpoint)(request)
            response.headers["cache-control"] = "no-store"
            return response

        return respond

    async def show_lobby(self, _request: Request) -> Response:
        """Show the form for a new game, and the games that the lobby has."""
        return await self._show_lobby(None)

    async def start(self, request: Request) -> Response:
        """Start the game that the form describes. If that is not possible, show the form again and say why."""
        wish = Wish.read(await _read_form(request))
        try:
            sitting_id = await self._lobby.start(wish)
        except RefereeError as error:
            return await self._show_lobby(wish, self._lobby.explain(error))
        return RedirectResponse(self._address_of(sitting_id), _SEE_OTHER)

    async def _show_lobby(self, wish: Wish | None, problem: str | None = None) -> Response:
        bots = [str(row.bot) for row in await run_in_threadpool(self._lobby.bots)]
        values = {
            "address": self._address,
            "problem": problem,
            "bots": bots,
            "rulesets": list(RULESETS.values()),
            "wish": wish or Wish.example(bots),
            "you": YOU,
            "games": [
                (self._address_of(sitting_id), game, _heading(game))
                for sitting_id, game in self._lobby.games()
            ],
        }
        status = 200 if problem is None else _BAD_REQUEST
        return _show(Page("lobby.html", "Sit down", values, live=False), status)

    async def show_game(self, request: Request) -> Response:
        """Show the page on which the person plays."""
        sitting_id, game = self._game(request)
        values = {
            "heading": _heading(game),
            "address": self._address_of(sitting_id),
            "seat": game.order.seat,
            "lobby": self._address,
        }
        return _show(Page("sit.html", _heading(game), values, live=False))

    async def send_news(self, request: Request) -> Response:
        """Send what the page does not know yet, as JSON; wait if there is nothing new."""
        _, game = self._game(request)
        after, decision = (_number(request.query_params, key) for key in ("after", "decision"))
        return JSONResponse(await game.news(moves=after, decision=decision, patience_s=_PATIENCE_S))

    async def choose(self, request: Request) -> Response:
        """Take the action that the person has chosen. The status is 409 if the decision is not pending, or has no action with the chosen index."""
        _, game = self._game(request)
        form = await _read_form(request)
        is_taken = game.choose(_number(form, "number"), _number(form, "choice"))
        return Response(status_code=204 if is_taken else _CONFLICT)

    async def leave(self, request: Request) -> Response:
        """End a game, and redirect to the lobby."""
        sitting_id, _ = self._game(request)
        await self._lobby.leave(sitting_id)
        return RedirectResponse(self._address, _SEE_OTHER)

    async def show_replay(self, request: Request) -> Response:
        """Show the replay of a finished game. If the league has stored the game, redirect to its page in the league."""
        sitting_id, game = self._game(request)
        record = _record(game)
        if game.shown.storage is Storage.DONE and (address := LINKS.game(record.game_id)):
            return RedirectResponse(address, _SEE_OTHER)
        return _show(pages.unstored_game_page(record, f"{self._address_of(sitting_id)}/board.js"))

    async def send_board(self, request: Request) -> Response:
        """Send the data of the replay of a finished game."""
        _, game = self._game(request)
        record = _record(game)
        return Response(board_script(record.game_id, board_data(record)), media_type=SCRIPT)

    def _game(self, request: Request) -> tuple[str, Sitting]:
        sitting_id: str = request.path_params["game"]
        return sitting_id, self._lobby.game(sitting_id)

    def _address_of(self, sitting_id: str) -> str:
        return f"{self._address}/{sitting_id}"


def _heading(game: Sitting) -> str:
    """Return the title of a game, such as `basic: you against greedy and bait`."""
    names = [name for seat, name in enumerate(game.names) if seat != game.order.seat]
    others = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{game.order.ruleset.name}: you against {others}"


def _record(game: Sitting) -> GameRecord:
    if game.shown.record is None:
        raise NotFoundError("This game has no replay, because it is not finished.")
    return game.shown.record


def _show(page: Page, status: int = 200) -> Response:
    return HTMLResponse(render(page, LINKS), status)


async def _read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises HTTPException if the form is too large or incomplete, and UserError if it is not ASCII."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > _FORM_BYTES:
                raise HTTPException(_TOO_LARGE, "The form is too large.")
    except ClientDisconnect:
        raise HTTPException(_BAD_REQUEST, "The form is not complete.") from None
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True))
    except ValueError:
        raise UserError("This is not the form of a page of this server.") from None


def _number(fields: Mapping[str, str], key: str) -> int:
    """Return a number from a query or a form. Raises UserError if it is missing, is no integer, or has more than 9 digits."""
    text = fields.get(key, "")
    if not _NUMBER.fullmatch(text):
        raise UserError(f"{key}: {text!r} is not a number")
    return int(text)
