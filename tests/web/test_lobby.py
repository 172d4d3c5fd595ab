"""The lobby gives games room, remembers finished games for a while, and does not wait for people who have gone."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from referee.errors import NotFoundError, RefereeError, StoreError, UserError
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

    def __init__(self, order, store, explain):
        self.order = order
        self.store = store
        self.explain = explain
        self.shown = SimpleNamespace(is_over=False)
        self.seen_at_s = time.monotonic()
        self.closed = False

    async def close(self):
        await asyncio.sleep(0)
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


async def test_parallel_starts_do_not_exceed_the_limit_or_fail(lobby):
    for _ in range(KEPT + 2):
        lobby.game(await lobby.start(WISH)).shown.is_over = True
    for _ in range(GAMES):
        lobby.game(await lobby.start(WISH)).seen_at_s -= AWAY_S + 1
    started = await asyncio.gather(*(lobby.start(WISH) for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(each, str) for each in started) == GAMES
    refused = [str(each) for each in started if not isinstance(each, str)]
    assert refused == [f"{GAMES} games are being played here; wait until one of them is over"] * 4


async def test_closed_lobby_starts_no_game(lobby):
    starting = asyncio.create_task(lobby.start(WISH))
    await asyncio.sleep(0)
    await lobby.close()
    with pytest.raises(UserError, match="the server ends"):
        await starting
    assert list(lobby.games()) == []


async def test_bot_that_was_built_in_another_place_is_refused(lobby, monkeypatch):
    monkeypatch.setattr(Roster, "is_ready", lambda _roster, _bot: False)
    with pytest.raises(
        UserError, match="was built in another place, or its copy was changed; play it once"
    ):
        await lobby.start(WISH)


@pytest.mark.parametrize("twin", ["random@1.0", "random"])
async def test_bot_with_two_places_is_refused(lobby, twin):
    wish = replace(WISH, seats=(YOU, "random@1.0", twin, "", ""))
    with pytest.raises(UserError, match=r"players: random@1\.0 has more than one place"):
        await lobby.start(wish)


async def test_machine_without_resources_refuses_the_game(lobby, monkeypatch):
    def fail(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(lobbies, "Sitting", fail)
    with pytest.raises(RefereeError, match=r"cannot be started: .*Too many open files"):
        await lobby.start(WISH)


async def test_game_is_stored_when_the_database_is_free_again(lobby, monkeypatch):
    monkeypatch.setattr("referee.store.database._TRY_S", 0.0)
    sitting = lobby.game(await lobby.start(replace(WISH, store=True)))
    stored, opened = [], lobby._open_league
    tries = iter([StoreError("locked"), StoreError("locked"), None])

    def open_league():
        if error := next(tries):
            raise error
        return opened()

    monkeypatch.setattr(lobby, "_open_league", open_league)
    monkeypatch.setattr(League, "add_game", lambda _league, record: stored.append(record))
    sitting.store("the record")
    assert stored == ["the record"]
    assert [str(row.bot) for row in lobby._league.bots()][-1] == "anna@person"


async def test_game_explains_errors_without_the_place_of_the_league(lobby):
    sitting = lobby.game(await lobby.start(WISH))
    error = StoreError(f"{lobby._league.folder / 'league.db'}: the disk is full")
    assert sitting.explain(error) == lobby.explain(error)
    assert lobby.explain(error).startswith("The database of the league does not work")
    error = UserError(f"{lobby._league.where}: there is no bot ann")
    assert sitting.explain(error) == lobby.explain(error) == "there is no bot ann"


async def test_close_ends_every_game(lobby):
    games = [lobby.game(await lobby.start(WISH)) for _ in range(GAMES)]
    await lobby.close()
    assert all(game.closed for game in games)
    assert list(lobby.games()) == []


async def test_close_ends_every_game_also_while_somebody_leaves_one(lobby):
    numbers = [await lobby.start(WISH) for _ in range(GAMES)]
    games = [lobby.game(number) for number in numbers]
    leaving = asyncio.create_task(lobby.leave(numbers[0]))
    await asyncio.sleep(0)
    await lobby.close()
    await leaving
    assert all(game.closed for game in games)


async def test_game_is_stored_only_on_request(lobby):
    without = lobby.game(await lobby.start(WISH))
    stored = lobby.game(await lobby.start(replace(WISH, store=True)))
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
        await lobby.start(replace(WISH, store=True))
    assert list(lobby.games()) == []
    await lobby.start(WISH)
