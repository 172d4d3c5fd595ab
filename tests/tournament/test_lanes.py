"""`Lanes` gives every game once, to the worker of its lane, and suspends bots lane by lane."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace

import pytest

from referee.errors import RefereeError
from referee.rules.ruleset import RULESETS
from referee.schedule import Stage
from referee.schedule.round_robin import round_robin
from referee.tournament.assignments import MAX_LOSSES, Forfeits, Lanes
from referee.tournament.conduct import Feeder
from referee.tournament.workers import WorkerLostError

BOTS = ("a", "b", "c", "d")
LOST = WorkerLostError("worker 0 died")


def schedule(matches: int = 4, lanes: int = 4):
    return round_robin("t", BOTS, [Stage(RULESETS["classic"], 3, matches)], lanes=lanes)


def make_lanes(games, *, stored=(), games_in_flight=1, workers=1, suspend_after=0) -> Lanes:
    return Lanes(
        games,
        dict.fromkeys(stored, ()),
        games_in_flight=games_in_flight,
        workers=workers,
        suspend_after=suspend_after,
    )


class LosingWorkers:
    """Workers that are lost with every stretch; the first `waiting` stretches only wait.

    When the last of them is lost, the feeder is drained.
    """

    stretch_s = 1.0

    def __init__(self, waiting: int, lost: int) -> None:
        self._waiting, self._lost = waiting, lost
        self.submitted = 0
        self.feeder = Feeder(
            SimpleNamespace(make_task=lambda game: game),
            make_lanes([SimpleNamespace(game_id="cup-1", lane=0, index=0, bots=BOTS)]),
            self,
            store_games=None,
            on_small_portion=None,
        )

    async def submit(self, _number, _assignment):
        self.submitted += 1
        if self.submitted == self._waiting + self._lost:
            self.feeder.drain()
        raise WorkerLostError("worker 0 died", was_waiting=self.submitted <= self._waiting)

    def drain(self) -> None:
        """Do nothing: nothing waits."""


def finish(lanes: Lanes, stretch) -> None:
    """Say that all games of a stretch are played."""
    lanes.release(stretch, {game.game_id for game in stretch.games})


def drain(lanes: Lanes, workers: int) -> list[tuple[int, tuple[str, ...]]]:
    """Take all bundles, with workers that finish at once; return the worker and the game ids of each bundle."""
    out = []
    while True:
        bundles = [(worker, lanes.take(worker)) for worker in range(workers)]
        if not any(bundle for _, bundle in bundles):
            return out
        for worker, bundle in bundles:
            if bundle:
                out.append((worker, tuple(game.game_id for game in bundle.games)))
                for game in bundle.games:
                    lanes.note_result(game, ())
                finish(lanes, bundle)


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 5])
def test_every_game_is_given_once_to_the_worker_of_its_lane(workers):
    games = schedule()
    bundles_taken = drain(make_lanes(games, workers=workers), workers)
    assert sorted(game for _, ids in bundles_taken for game in ids) == sorted(
        g.game_id for g in games
    )
    lane_of = {game.game_id: game.lane for game in games}
    assert all(lane_of[game] % workers == worker for worker, ids in bundles_taken for game in ids)


def test_a_lane_gives_one_bundle_at_a_time():
    lanes = make_lanes(schedule(), workers=2)
    first, second = lanes.take(0), lanes.take(0)
    assert {first.lane, second.lane} == {0, 2}
    assert lanes.take(0) is None
    finish(lanes, first)
    third = lanes.take(0)
    assert third.lane == first.lane
    assert third.games[0].index > first.games[0].index


@pytest.mark.parametrize("size", [1, 3, 4, 100])
def test_bundles_do_not_depend_on_the_number_of_workers(size):
    games = schedule(matches=8)
    alone = drain(make_lanes(games, games_in_flight=size), 1)
    shared = drain(make_lanes(games, games_in_flight=size, workers=3), 3)
    assert {ids for _, ids in alone} == {ids for _, ids in shared}
    for lane in range(4):
        own = [game.game_id for game in games if game.lane == lane]
        cut = [tuple(own[first : first + size]) for first in range(0, len(own), size)]
        assert [ids for _, ids in alone if ids[0] in own] == cut


def test_a_resumed_run_has_the_same_bundles_without_the_stored_games():
    games = schedule(matches=8)
    whole = [ids for _, ids in drain(make_lanes(games, games_in_flight=4), 1)]
    stored = {*whole[0], whole[1][2]}
    rest = [ids for _, ids in drain(make_lanes(games, stored=stored, games_in_flight=4), 1)]
    kept = [tuple(game for game in ids if game not in stored) for ids in whole]
    assert set(rest) == set(filter(None, kept))


def test_the_bundle_of_a_lost_worker_is_given_again_first():
    lanes = make_lanes(schedule())
    bundle = lanes.take(0)
    lanes.put_back(bundle, LOST)
    assert lanes.take(0) == bundle


def test_games_that_the_worker_did_not_play_are_given_again_first_in_the_same_bundles():
    games = schedule(matches=8, lanes=3)
    lanes = make_lanes(games, games_in_flight=4)
    run = lanes.take(0, games=8)
    (first, *rest), second = run.bundles[0], run.bundles[1]
    lanes.release(run, {first.game_id, *(game.game_id for game in second[:2])})
    others = [lanes.take(0) for _ in range(2)]
    again = lanes.take(0, games=5)
    assert run.lane not in {other.lane for other in others}
    assert again.bundles == (tuple(rest), second[2:])


def test_several_bundles_are_taken_for_many_games_and_given_again_in_order():
    games = schedule(matches=8)
    single = [ids for _, ids in drain(make_lanes(games, games_in_flight=4), 1)]
    lanes = make_lanes(games, games_in_flight=4)
    run = lanes.take(0, games=9)
    lanes.put_back(run, LOST)
    assert lanes.take(0, games=9) == run
    bundles = [tuple(game.game_id for game in bundle) for bundle in run.bundles]
    assert len(bundles) == 3
    assert bundles == [ids for ids in single if ids[0] in {g.game_id for g in run.games}]


def test_a_bundle_that_loses_its_worker_three_times_stops_the_run():
    lanes = make_lanes(schedule())
    for _ in range(MAX_LOSSES - 1):
        lanes.put_back(lanes.take(0), LOST)
    with pytest.raises(
        RefereeError,
        match=r"^the worker was lost 3 times in a row while it played t-1; the last time: worker 0 died$",
    ):
        lanes.put_back(lanes.take(0), LOST)


def test_error_about_a_lost_stretch_names_its_first_and_its_last_game():
    lanes = make_lanes(schedule())
    for _ in range(MAX_LOSSES - 1):
        lanes.put_back(lanes.take(0), LOST)
    stretch = lanes.take(0, games=3)
    first, _, last = (game.game_id for game in stretch.games)
    with pytest.raises(RefereeError, match=f"it played games of a lane from {first} to {last}; "):
        lanes.put_back(stretch, LOST)


def test_stretch_that_only_waited_is_given_again_without_counting_the_loss():
    lanes = make_lanes(schedule())
    for _ in range(MAX_LOSSES - 1):
        lanes.put_back(lanes.take(0), LOST)
    waiting = lanes.take(0)
    lanes.put_back(waiting, None)
    assert lanes.take(0) == waiting
    with pytest.raises(RefereeError, match=r"^the worker was lost 3 times in a row"):
        lanes.put_back(waiting, LOST)


def test_a_finished_bundle_resets_the_count_of_lost_workers():
    lanes = make_lanes(schedule(lanes=3), workers=3)
    for _ in range(2):
        for _ in range(MAX_LOSSES - 1):
            lanes.put_back(lanes.take(0), LOST)
        finish(lanes, lanes.take(0))


def test_a_bundle_keeps_the_forfeits_before_it():
    lanes = make_lanes(schedule(lanes=3), workers=3, suspend_after=1)
    bundle = lanes.take(0)
    (game,) = bundle.games
    lanes.note_result(game, [0])
    assert bundle.forfeits.suspended() == frozenset()
    finish(lanes, bundle)
    assert find_suspended(lanes) == {game.bots[0]}


def play_lane(lanes: Lanes, forfeiting: str) -> list[tuple[int, frozenset[str]]]:
    """Let one bot forfeit all of its games; return the lane and the suspended bots of each bundle."""
    out = []
    while bundle := lanes.take(0):
        out.append((bundle.lane, bundle.forfeits.suspended()))
        for game in bundle.games:
            seats = [seat for seat, bot in enumerate(game.bots) if bot == forfeiting]
            lanes.note_result(game, seats)
        finish(lanes, bundle)
    return out


def find_suspended(lanes: Lanes) -> frozenset[str]:
    """Return the bots that are suspended in the lane of the next bundle."""
    bundle = lanes.take(0)
    lanes.put_back(bundle, LOST)
    return bundle.forfeits.suspended()


def test_a_bot_that_keeps_forfeiting_is_suspended_lane_by_lane():
    lanes = make_lanes(schedule(matches=10), suspend_after=3)
    history = play_lane(lanes, "b")
    assert all("b" not in suspended for _, suspended in history[:12])
    assert {suspended for _, suspended in history[-4:]} == {frozenset({"b"})}


def test_no_bot_is_suspended_if_suspension_is_switched_off():
    history = play_lane(make_lanes(schedule()), "b")
    assert {suspended for _, suspended in history} == {frozenset()}


def test_a_game_without_a_forfeit_resets_the_count_of_forfeits():
    games = schedule(matches=10, lanes=3)
    lanes = make_lanes(games, suspend_after=2)
    mine = [game for game in games if game.lane == 0 and "a" in game.bots]
    for number, game in enumerate(mine[:6]):
        lanes.note_result(game, [game.bots.index("a")] if number % 2 else [])
    assert find_suspended(lanes) == frozenset()
    for game in mine[6:8]:
        lanes.note_result(game, [game.bots.index("a")])
    assert find_suspended(lanes) == {"a"}


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_suspensions_do_not_depend_on_the_order_of_the_games_in_a_bundle(order):
    results = [(0, [0]), (1, [0]), (2, []), (3, [0])]
    noted = Forfeits(2)
    for place in order:
        index, seats = results[place]
        noted.note(index, ("a", "b"), seats)
    assert noted.suspended() == frozenset()
    noted.note(4, ("b", "a"), [1])
    assert noted.suspended() == {"a"}


@pytest.mark.parametrize(("suspend_after", "suspended"), [(3, {"a"}), (0, set())])
def test_number_of_kept_forfeits_is_limited(suspend_after, suspended):
    noted = Forfeits(suspend_after)
    for index in range(1000):
        noted.note(index, ("a", "b"), [0])
    assert len(noted.newest_forfeits.get("a", ())) == suspend_after
    assert noted.suspended() == suspended
    noted.note(996, ("a", "b"), [])
    assert noted.suspended() == suspended
    noted.note(997, ("a", "b"), [])
    assert noted.suspended() == set()


def test_suspensions_do_not_depend_on_the_number_of_workers():
    def suspended(workers: int) -> dict[str, frozenset[str]]:
        lanes = make_lanes(schedule(matches=10), workers=workers, suspend_after=3)
        out = {}
        while bundles := [b for w in range(workers) if (b := lanes.take(w))]:
            for bundle in bundles:
                for game in bundle.games:
                    out[game.game_id] = bundle.forfeits.suspended()
                    lanes.note_result(game, [s for s, bot in enumerate(game.bots) if bot == "c"])
                finish(lanes, bundle)
        return out

    assert suspended(1) == suspended(2) == suspended(4)


def test_forfeits_of_an_earlier_run_count_after_a_resume():
    games = schedule(matches=10)
    whole = make_lanes(games, suspend_after=3)
    uninterrupted = play_lane(whole, "b")
    half = len(games) // 2
    lanes = make_lanes(games[half:], suspend_after=3)
    for game in games[:half]:
        lanes.note_result(game, [seat for seat, bot in enumerate(game.bots) if bot == "b"])
    assert play_lane(lanes, "b") == uninterrupted[half:]


def test_no_bundle_has_games_of_two_parts():
    games = schedule(lanes=4)
    parts = (0, 7, 20)
    lanes = Lanes(games, {}, bounds=parts, games_in_flight=3, workers=1, suspend_after=0)
    numbers = [[int(name.removeprefix("t-")) - 1 for name in names] for _, names in drain(lanes, 1)]
    assert sorted(number for bundle in numbers for number in bundle) == list(range(len(games)))
    for bundle in numbers:
        assert len({sum(number >= first for first in parts) for number in bundle}) == 1
    assert max(map(len, numbers)) == 3


async def test_feeder_does_not_count_losses_of_a_stretch_that_only_waited():
    workers = LosingWorkers(waiting=3 * MAX_LOSSES, lost=1)
    await workers.feeder.feed_worker(0)
    assert workers.submitted == 3 * MAX_LOSSES + 1


async def test_feeder_stops_when_a_worker_is_lost_too_often_with_what_it_plays():
    workers = LosingWorkers(waiting=2, lost=MAX_LOSSES + 5)
    with pytest.raises(RefereeError, match="lost 3 times in a row"):
        await workers.feeder.feed_worker(0)
    assert workers.submitted == 2 + MAX_LOSSES
