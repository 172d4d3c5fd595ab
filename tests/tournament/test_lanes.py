"""What the driver gives to which worker, and what it does when one dies."""

from __future__ import annotations

import pytest

from referee.errors import RefereeError
from referee.rules.ruleset import RULESETS
from referee.schedule import Stage, round_robin
from referee.tournament.lanes import MAX_BUNDLE, MAX_LOSSES, Lanes

BOTS = ("a", "b", "c", "d")


def schedule(matches: int = 4, lanes: int = 4):
    return round_robin("t", BOTS, [Stage(RULESETS["classic"], 3, matches)], lanes=lanes)


def drain(lanes: Lanes, workers: int, capacities=()) -> list[tuple[int, tuple[str, ...]]]:
    """Everything that is handed out when every worker finishes at once: (worker, game ids)."""
    out = []
    while True:
        bundles = [(worker, lanes.take(worker)) for worker in range(workers)]
        if not any(bundle for _, bundle in bundles):
            return out
        for worker, bundle in bundles:
            if bundle:
                out.append((worker, tuple(game.game_id for game in bundle.games)))
                for game in bundle.games:
                    lanes.played(game, ())
                lanes.finished(bundle.lane, capacities)


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 5])
def test_every_game_is_handed_out_once_to_the_worker_of_its_lane(workers):
    games = schedule()
    handed = drain(Lanes(games, workers=workers, suspend_after=0), workers)
    assert sorted(game for _, ids in handed for game in ids) == sorted(g.game_id for g in games)
    lane_of = {game.game_id: game.lane for game in games}
    assert all(lane_of[game] % workers == worker for worker, ids in handed for game in ids)


def test_a_lane_has_one_assignment_at_a_time():
    lanes = Lanes(schedule(), workers=2, suspend_after=0)
    first, second = lanes.take(0), lanes.take(0)
    assert {first.lane, second.lane} == {0, 2}
    assert lanes.take(0) is None
    lanes.finished(first.lane, ())
    third = lanes.take(0)
    assert third.lane == first.lane
    assert third.games[0].index > first.games[0].index


def test_several_games_at_once_only_when_every_bot_can_hold_them():
    games = schedule(matches=8, lanes=4)
    lanes = Lanes(games, workers=1, suspend_after=0)
    bundle = lanes.take(0)
    assert len(bundle.games) == 1  # nobody has said hello yet
    lanes.finished(bundle.lane, [("a", 3), ("b", 9), ("c", 4), ("d", 2)])
    bundle = lanes.take(0)
    assert 1 <= len(bundle.games) <= 3
    limit = {"a": 3, "b": 9, "c": 4, "d": 2}
    assert len(bundle.games) <= min(limit[bot] for game in bundle.games for bot in game.bots)
    assert len({game.lane for game in bundle.games}) == 1
    assert len({game.deal_id for game in bundle.games}) == len(bundle.games)


def test_what_one_lane_learns_of_its_bots_another_does_not_know():
    lanes = Lanes(schedule(matches=8), workers=1, suspend_after=0)
    first = lanes.take(0)
    second = lanes.take(0)
    lanes.finished(first.lane, [(bot, 8) for bot in BOTS])
    lanes.finished(second.lane, ())
    sizes = {}
    while bundle := lanes.take(0):
        sizes.setdefault(bundle.lane, len(bundle.games))
    assert sizes[first.lane] == 8
    assert {size for lane, size in sizes.items() if lane != first.lane} == {1}


def test_a_bundle_is_never_longer_than_the_limit():
    lanes = Lanes(schedule(matches=40), workers=1, suspend_after=0)
    for _ in range(4):
        lanes.finished(lanes.take(0).lane, [(bot, 10_000) for bot in BOTS])
    sizes = {len(bundle.games) for bundle in iter(lambda: lanes.take(0), None)}
    assert max(sizes) == MAX_BUNDLE


def test_games_of_a_dead_worker_come_first_again_and_in_order():
    lanes = Lanes(schedule(), workers=1, suspend_after=0)
    bundle = lanes.take(0)
    lanes.lost(bundle)
    assert lanes.take(0) == bundle


def test_games_that_kill_their_worker_every_time_stop_the_run():
    lanes = Lanes(schedule(), workers=1, suspend_after=0)
    for _ in range(MAX_LOSSES - 1):
        lanes.lost(lanes.take(0))
    with pytest.raises(RefereeError, match=r"died 3 times while it played t-1"):
        lanes.lost(lanes.take(0))


def play_lane(lanes: Lanes, forfeiting: str) -> list[tuple[int, frozenset[str]]]:
    """Play everything with one bot forfeiting each game: (lane, who was suspended) a bundle."""
    out = []
    while bundle := lanes.take(0):
        out.append((bundle.lane, bundle.suspended))
        for game in bundle.games:
            seats = [seat for seat, bot in enumerate(game.bots) if bot == forfeiting]
            lanes.played(game, seats)
        lanes.finished(bundle.lane, ())
    return out


def test_a_bot_that_keeps_forfeiting_is_suspended_lane_by_lane():
    lanes = Lanes(schedule(matches=10), workers=1, suspend_after=3)
    history = play_lane(lanes, "b")
    assert all("b" not in suspended for _, suspended in history[:12])
    assert {suspended for _, suspended in history[-4:]} == {frozenset({"b"})}
    assert lanes.suspended() == {"b"}


def test_suspension_can_be_switched_off():
    history = play_lane(Lanes(schedule(), workers=1, suspend_after=0), "b")
    assert {suspended for _, suspended in history} == {frozenset()}


def test_a_finished_game_ends_the_row_of_forfeits():
    games = schedule(matches=10, lanes=3)
    lanes = Lanes(games, workers=1, suspend_after=2)
    mine = [game for game in games if game.lane == 0 and "a" in game.bots]
    for number, game in enumerate(mine[:6]):
        lanes.played(game, [game.bots.index("a")] if number % 2 else [])
    assert lanes.suspended() == frozenset()
    for game in mine[6:8]:
        lanes.played(game, [game.bots.index("a")])
    assert lanes.suspended() == {"a"}


def test_who_is_suspended_does_not_depend_on_the_number_of_workers():
    def suspended(workers: int) -> dict[str, frozenset[str]]:
        lanes = Lanes(schedule(matches=10), workers=workers, suspend_after=3)
        out = {}
        while bundles := [b for w in range(workers) if (b := lanes.take(w))]:
            for bundle in bundles:
                for game in bundle.games:
                    out[game.game_id] = bundle.suspended
                    lanes.played(game, [s for s, bot in enumerate(game.bots) if bot == "c"])
                lanes.finished(bundle.lane, ())
        return out

    assert suspended(1) == suspended(2) == suspended(4)


def test_forfeits_of_an_earlier_run_count_after_a_resume():
    games = schedule(matches=10)
    whole = Lanes(games, workers=1, suspend_after=3)
    uninterrupted = play_lane(whole, "b")
    half = len(games) // 2
    lanes = Lanes(games[half:], workers=1, suspend_after=3)
    for game in games[:half]:
        lanes.played(game, [seat for seat, bot in enumerate(game.bots) if bot == "b"])
    assert play_lane(lanes, "b") == uninterrupted[half:]
