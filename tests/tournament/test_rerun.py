"""A stored seat gets the same requests again, and the outcomes are compared with the stored ones."""

import random
from dataclasses import replace

import pytest
from played import record
from sample_league import SampleLeague

from referee.clocks import Clocks, DecisionTime
from referee.errors import Cause, Evidence, Forfeit, Strike
from referee.match.play import GameSetup, play_game
from referee.match.replay import Difference
from referee.records import BotId, Fault, Move, Reply, Request, Usage
from referee.rules.actions import Choice, Decision, DecisionKind
from referee.tournament.rerun import Exchange, StoredSeat, find_stored_seat

CLOCKS = Clocks(decision_us=400, bank_us=2_000, increment_us=90)


class Recorder:
    """Chooses by chance, keeps its requests, and raises the faults of `faults` by the number of the request."""

    def __init__(self, seed, faults):
        self._chance = random.Random(seed)
        self._faults = faults
        self.requests = []

    async def decide(self, request):
        self.requests.append(request)
        if fault := self._faults.get(len(self.requests)):
            raise fault
        elapsed_us = min(100 + self._chance.randrange(9), request.time.limit_us)
        return Reply(self._chance.choice(request.decision.legal), elapsed_us, 0)


def fault(kind, cause, elapsed_us=50):
    return kind(cause, Evidence(detail="x", elapsed_us=elapsed_us))


async def play(faults, first=None, clocks=CLOCKS):
    """Play a game with `first` on seat 0, by default a Recorder without faults. Return the record and the players."""
    dealt = record("duel", 2)
    players = [first or Recorder(0, {}), Recorder(1, faults)]
    setup = GameSetup(
        game_id="cup-1",
        ruleset=dealt.ruleset,
        seating=(BotId("a", "1"), BotId("b", "1")),
        deck=dealt.deck,
        clocks=clocks,
        max_strikes=3,
        isolation="none",
    )
    played = await play_game(setup, players, now_us=int, monotonic_ns=int)
    usage = tuple(None if isinstance(each, Forfeit) else Usage(0.1, 100) for each in players)
    return replace(played.record, usage=usage), players


def stored_seat(game, seat):
    return StoredSeat(record=game, seat=seat, opaque_id="g", seed=1, names=())


def test_game_outside_tournaments_may_have_an_id_that_begins_like_one(tmp_path):
    sample = SampleLeague(tmp_path, "cup.toml")
    game = replace(record("duel", 2), game_id="cup-0a1b")
    assert find_stored_seat(sample.league, game, 1).opaque_id == "cup-0a1b"
    sample.league.close()


@pytest.mark.parametrize(
    "faults",
    [
        {},
        {2: fault(Strike, Cause.TIMEOUT), 4: fault(Strike, Cause.MALFORMED)},
        {3: fault(Forfeit, Cause.CRASH)},
        {3: fault(Forfeit, Cause.CRASH, elapsed_us=0)},
    ],
    ids=["no fault", "strikes", "a forfeit", "a crash before the request"],
)
async def test_requests_are_those_of_the_game(faults):
    game, players = await play(faults)
    for seat, player in enumerate(players):
        again = list(stored_seat(game, seat).requests())
        assert [request for request, _ in again] == player.requests
        assert all(game.moves[request.number - 1] is move for request, move in again)


@pytest.mark.parametrize("cause", [Cause.NO_START, Cause.CRASH])
async def test_bot_that_was_not_seated_gets_no_request(cause):
    """A bot is not seated for a game in which it has crashed in an earlier attempt."""
    game, (_, second) = await play({}, first=fault(Forfeit, cause))
    assert game.moves[0].seat == game.faults[0].seat == 0
    assert list(stored_seat(game, 0).requests()) == []
    assert [request for request, _ in stored_seat(game, 1).requests()] == second.requests


async def test_forfeit_because_of_an_empty_bank_has_no_request():
    game, players = await play({}, clocks=Clocks(decision_us=400, bank_us=250))
    assert [fault.cause for fault in game.faults] == [Cause.OUT_OF_TIME] * 2
    for seat, player in enumerate(players):
        again = list(stored_seat(game, seat).requests())
        assert len(again) == 3
        assert [request for request, _ in again] == player.requests


def test_record_that_breaks_the_rules_has_no_requests():
    game = record()
    with pytest.raises(Difference):
        list(stored_seat(replace(game, moves=game.moves[:-1]), 0).requests())


PASS, DECK = Choice.PASS, Choice.DRAW_DECK
CRASHED, ILLEGAL, LATE = Cause.CRASH, Cause.ILLEGAL, Cause.TIMEOUT


@pytest.mark.parametrize(
    ("outcome", "cause", "is_as_stored"),
    [
        (Reply(PASS, 1, 0), None, True),
        (Reply(DECK, 1, 0), None, False),
        (Reply(PASS, 1, 0), CRASHED, False),
        (Reply(Choice.TAKE, 1, 0), ILLEGAL, True),
        (Reply(Choice.TAKE, 1, 0), None, False),
        (Reply(PASS, 1, 0), LATE, False),
        (Reply(PASS, 1, 7), LATE, True),
        (Forfeit(CRASHED, Evidence(detail="x")), CRASHED, True),
        (Forfeit(CRASHED, Evidence(detail="x")), ILLEGAL, False),
        (Forfeit(CRASHED, Evidence(detail="x")), None, False),
    ],
)
def test_outcome_is_compared_with_the_stored_move_or_fault(outcome, cause, is_as_stored):
    decision = Decision(0, DecisionKind.OPTIONAL_DRAW, (PASS, DECK))
    request = Request(1, None, decision, (), DecisionTime(5, None, 0))
    charged = cause and Fault(0, cause, forfeit=False, move=0, evidence=Evidence(detail="x"))
    move = Move(0, PASS, 1, 0, stand_in=cause is not None)
    assert Exchange(request, move, charged, outcome, "").is_as_stored == is_as_stored


@pytest.mark.parametrize(("cause", "is_late"), [(LATE, True), (ILLEGAL, False)])
def test_slow_reply_is_late_as_stored_only_if_the_stored_one_was_late(cause, is_late):
    decision = Decision(0, DecisionKind.OPTIONAL_DRAW, (PASS, DECK))
    request = Request(1, None, decision, (), DecisionTime(5, None, 0))
    charged = Fault(0, cause, forfeit=False, move=0, evidence=Evidence(detail="x"))
    move = Move(0, PASS, 1, 0, stand_in=True)
    assert Exchange(request, move, charged, Reply(PASS, 1, 7), "").is_late_as_stored == is_late
