"""The lobby gives games room, remembers finished games for a while, and does not wait for people who have gone."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from referee.errors import NotFoundError, StoreError, UserError
from referee.roster.roster import SAMPLE_BOTS, Roster
from referee.roster.workshop import Workshop
from referee.sandbox import Rung
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store.league import League
from referee.web import lobby as lobbies
from referee.web.lobby import AWAY_S, GAMES, KEPT, SEATS, YOU, Lobby, Wish

WISH = Wish("anna", "classic", (YOU, "random@1.0", "", "", ""), store=False)


class FakeSitting:
    """A game without a process. The test says when it is over."""

    def __init__(self, order, store):
        self.order = order
        self.store = store
        self.shown = SimpleNamespace(is_over=False)
        self.seen_at_s = time.monotonic()
        self.closed = False

    async def close(self):
        self.closed = True


@pytest.fixture
async def lobby(tmp_path, monkeypatch):
    monkeypatch.setattr(lobbies, "Sitting", FakeSitting)
    with League.open(tmp_path / "league", create=True) as league:
        workshop = Workshop(league.folder, ProcessGroupLauncher(), on_build=print)
        await Roster(league, workshop).submit(SAMPLE_BOTS / "random", now_us=1)
        yield Lobby(league, lambda: League.open(league.folder, create=False), Rung.NONE)


async def test_another_game_is_refused_until_one_is_over(lobby):
    games = [lobby.game(await lobby.start(WISH)) for _ in range(GAMES)]
    with pytest.raises(UserError, match=f"{GAMES} games are being played here"):
        await lobby.start(WISH)
    assert not any(game.closed for game in games)
    games[1].shown.is_over = True
    await lobby.start(WISH)


async def test_game_that_nobody_looks_at_gives_way(lobby):
    numbers = [await lobby.start(WISH) for _ in range(GAMES)]
    games = [lobby.game(number) for number in numbers]
    games[2].seen_at_s -= AWAY_S + 1
    await lobby.start(WISH)
    assert [game.closed for game in games] == [number == 2 for number in range(GAMES)]
    with pytest.raises(NotFoundError):
        lobby.game(numbers[2])


async def test_newest_finished_games_are_remembered(lobby):
    numbers = []
    for _ in range(KEPT + 3):
        numbers.append(await lobby.start(WISH))
        lobby.game(numbers[-1]).shown.is_over = True
    assert [number for number, _ in lobby.games()] == numbers[: -KEPT - 2 : -1]


async def test_close_ends_every_game(lobby):
    games = [lobby.game(await lobby.start(WISH)) for _ in range(GAMES)]
    await lobby.close()
    assert all(game.closed for game in games)
    assert list(lobby.games()) == []


async def test_game_is_stored_only_on_request(lobby):
    without = lobby.game(await lobby.start(WISH))
    stored = lobby.game(await lobby.start(Wish(WISH.name, WISH.ruleset, WISH.seats, store=True)))
    assert without.store is None
    assert stored.store is not None


def test_example_seats_the_person_and_three_bots():
    assert Wish.example([]).seats == (YOU, "", "", "", "")
    assert Wish.example(list("abcdef")).seats == (YOU, "a", "b", "c", "")


def test_form_with_missing_fields_is_a_wish_for_nothing():
    assert Wish.read({"store": "on"}) == Wish("", "", ("",) * SEATS, store=True)


async def test_game_that_could_not_be_stored_at_its_end_is_refused_at_its_start(lobby, monkeypatch):
    def refuse():
        raise StoreError("the folder is read-only")

    monkeypatch.setattr(lobby, "_open_league", refuse)
    with pytest.raises(StoreError, match="read-only"):
        await lobby.start(Wish(WISH.name, WISH.ruleset, WISH.seats, store=True))
    assert list(lobby.games()) == []
    await lobby.start(WISH)
