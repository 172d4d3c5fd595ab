"""`play_game` records games of function players, and faults cost what they must."""

from __future__ import annotations

from dataclasses import replace

import pytest
from players import FunctionPlayer, chance, first_legal, play, setup

from referee.clocks import Clocks
from referee.errors import Cause, Evidence, Forfeit, Strike, VoidGame
from referee.match import stand_in_action
from referee.match.play import play_game
from referee.match.replay import check_record, replay_moves
from referee.records import Reply, Request
from referee.rules.actions import Choice, Decision, DecisionKind, DrawDisplay, Play, SnatchGhost
from referee.rules.events import Drawn, GameOver, Played
from referee.rules.ruleset import RULESETS, Layer


def players(count: int, *, seed: int = 0) -> list[FunctionPlayer]:
    return [FunctionPlayer(chance(seed + number)) for number in range(count)]


class Faulty:
    """A player that raises a fault at decision `at`, `times` times, and else plays the first action."""

    def __init__(self, fault: Exception, at: int = 1, times: int = 1) -> None:
        self._fault, self._at, self._until = fault, at, at + times
        self.requests: list[Request] = []

    @property
    def request_count(self) -> int:
        return len(self.requests)

    async def decide(self, request: Request) -> Reply:
        self.requests.append(request)
        if self._at <= self.request_count < self._until:
            raise self._fault
        return Reply(first_legal(request), 5, 0)


def strike(cause: Cause = Cause.TIMEOUT, elapsed_us: int = Clocks().decision_us) -> Strike:
    return Strike(cause, Evidence(detail="too late", elapsed_us=elapsed_us))


def crash() -> Forfeit:
    return Forfeit(Cause.CRASH, Evidence(detail="gone", signal="SIGSEGV", elapsed_us=11))


@pytest.mark.parametrize("ruleset", RULESETS)
async def test_record_replays_to_its_own_result(ruleset):
    seats = 2 if ruleset == "duel" else 4
    for seed in range(5):
        played = await play(setup(ruleset, seats, seed=seed), players(seats, seed=seed))
        check_record(played.record)
        assert played.record.faults == ()
        assert min(played.record.ranks) == 1
        assert played.record.winners


async def test_record_has_every_decision_with_its_times():
    table = [FunctionPlayer(chance(seat), elapsed_us=100 + seat, lag_us=1) for seat in range(3)]
    record = (await play(setup(), table)).record
    request_count = sum(len(player.requests) for player in table)
    assert len(record.moves) == request_count
    assert {(move.seat, move.elapsed_us, move.lag_us) for move in record.moves} == {
        (0, 100, 1),
        (1, 101, 1),
        (2, 102, 1),
    }
    assert not any(move.stand_in for move in record.moves)
    assert sorted(request.number for player in table for request in player.requests) == list(
        range(1, request_count + 1)
    )


async def test_requests_of_a_seat_have_every_event_once_in_order_and_redacted():
    table = players(3)
    seen = []
    played = await play(setup(), table, watch=lambda *move: seen.extend(move[2]))
    for seat, player in enumerate(table):
        received = [event for request in player.requests for event in request.events] + list(
            played.unseen_events[seat]
        )
        assert len(received) == len(seen)
        for redacted, event in zip(received, seen, strict=True):
            hidden = isinstance(event, Drawn) and event.slot is None and event.seat != seat
            assert redacted == (Drawn(event.seat, None, (0,)) if hidden else event)
        assert isinstance(received[-1], GameOver)


async def test_strike_costs_one_decision_which_the_stand_in_takes():
    faulty = Faulty(strike(), at=2)
    record = (await play(setup(), [FunctionPlayer(chance(1)), faulty, *players(1)])).record
    (fault,) = record.faults
    assert (fault.seat, fault.cause, fault.forfeit) == (1, Cause.TIMEOUT, False)
    struck = record.moves[fault.move]
    assert (struck.seat, struck.stand_in, struck.elapsed_us) == (1, True, 5_000_000)
    assert [move.stand_in for move in record.moves].count(True) == 1
    assert record.forfeited == ()
    assert faulty.request_count == sum(move.seat == 1 for move in record.moves)
    check_record(record)


async def test_third_strike_forfeits_the_game():
    faulty = Faulty(strike(Cause.MALFORMED), times=100)
    record = (await play(setup(), [FunctionPlayer(chance(1)), faulty, *players(1)])).record
    assert [fault.cause for fault in record.faults] == [Cause.MALFORMED] * 3 + [Cause.STRIKES]
    assert [fault.forfeit for fault in record.faults] == [False, False, False, True]
    assert faulty.request_count == 3
    assert record.forfeited == (1,)
    assert record.ranks[1] == 3
    assert all(move.stand_in for move in record.moves if move.seat == 1)
    check_record(record)


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (Choice.TAKE, "CHOICE_TAKE"),
        (Play(Layer(99, 1, 0)), "play {value 99, naturals 1, jokers 0}"),
        (Play(Layer(1, 0, 0)), "play {value 1, naturals 0, jokers 0}"),
        (Play(Layer(14, 1, 9)), "play {value 14, naturals 1, jokers 9}"),
        (Play(Layer(5, 9, 0)), "play {value 5, naturals 9, jokers 0}"),
        (DrawDisplay(5, (7, 14)), "draw_display {slot 5} (7+J)"),
        (DrawDisplay(6), "draw_display {slot 6} (empty)"),
        (SnatchGhost(12), "ghost_value 12"),
    ],
)
async def test_illegal_action_is_a_strike_that_names_the_action(action, text):
    seen = []

    def cheat(request: Request) -> object:
        seen.append(request)
        return action if len(seen) == 1 else first_legal(request)

    record = (await play(setup(), [FunctionPlayer(cheat), *players(2)])).record
    (fault,) = record.faults
    assert (fault.seat, fault.cause, fault.forfeit, fault.move) == (0, Cause.ILLEGAL, False, 0)
    assert fault.evidence.detail == f"{text} is not a legal reply to play"
    assert fault.evidence.elapsed_us == 7
    check_record(record)


async def test_lag_of_an_illegal_reply_is_recorded():
    """Every reply comes 25 s after the limit, as in a game without clocks."""
    limit_us, lag_us = Clocks().decision_us, 25_000_000
    cheat = FunctionPlayer(lambda _request: Choice.TAKE, elapsed_us=limit_us, lag_us=lag_us)
    record = (await play(setup(), [cheat, *players(2)])).record
    fault, move = record.faults[0], record.moves[0]
    assert fault.evidence.elapsed_us == limit_us + lag_us
    assert (move.elapsed_us, move.lag_us) == (limit_us, lag_us)
    check_record(record)


async def test_evidence_is_added_at_once_to_every_fault_in_a_decision():
    """Seat 0 has an illegal action at its first two decisions, and seat 1 could not start."""
    cheat = FunctionPlayer(lambda _request: Choice.TAKE)

    async def add_evidence(seat, evidence):
        return replace(evidence, stderr_tail=f"seat {seat} after {len(cheat.requests)} requests")

    cannot = Forfeit(Cause.NO_START, Evidence(detail="no such file"))
    game = await play_game(
        replace(setup(), max_strikes=2),
        [cheat, cannot, *players(1)],
        now_us=lambda: 0,
        monotonic_ns=lambda: 0,
        add_evidence=add_evidence,
    )
    assert [(fault.cause, fault.evidence.stderr_tail) for fault in game.record.faults] == [
        (Cause.NO_START, ""),
        (Cause.ILLEGAL, "seat 0 after 1 requests"),
        (Cause.ILLEGAL, "seat 0 after 2 requests"),
        (Cause.STRIKES, "seat 0 after 2 requests"),
    ]
    assert game.record.faults[0].evidence.detail == "no such file"


async def test_crash_forfeits_and_the_other_seats_play_on():
    faulty = Faulty(crash(), at=3)
    record = (await play(setup(), [faulty, *players(2)])).record
    (fault,) = record.faults
    assert (fault.seat, fault.cause, fault.forfeit) == (0, Cause.CRASH, True)
    assert fault.evidence.signal == "SIGSEGV"
    assert faulty.request_count == 3
    mine = [move for move in record.moves if move.seat == 0]
    assert [move.stand_in for move in mine] == [False, False] + [True] * (len(mine) - 2)
    assert [move.elapsed_us for move in mine][:4] == [5, 5, 11, 0]
    assert record.ranks[0] == 3
    check_record(record)


async def test_later_forfeit_ranks_ahead_of_an_earlier_one():
    table = [Faulty(crash(), at=1), Faulty(crash(), at=4), Faulty(crash(), at=2), *players(1)]
    record = (await play(setup(seats=4), table)).record
    assert record.ranks == (4, 2, 3, 1)
    assert record.winners == (3,)
    assert record.forfeited == (0, 1, 2)


async def test_game_in_which_no_bot_starts_has_no_winner():
    cannot = Forfeit(Cause.NO_START, Evidence(detail="no such file"))
    record = (await play(setup(), [cannot] * 3)).record
    assert [fault.cause for fault in record.faults] == [Cause.NO_START] * 3
    assert record.winners == ()
    assert record.ranks == (1, 1, 1)
    assert all(move.stand_in and move.elapsed_us == 0 for move in record.moves)
    check_record(record)


async def test_bank_loses_the_time_of_a_decision_and_gains_the_increment():
    clocks = Clocks(decision_us=1_000, bank_us=900, increment_us=10)
    player = FunctionPlayer(chance(1), elapsed_us=50)
    await play(setup(clocks=clocks), [player, *players(2)])
    times = [request.time for request in player.requests]
    assert [time.bank_left_us for time in times[:3]] == [900, 860, 820]
    assert [time.limit_us for time in times[:3]] == [900, 860, 820]
    assert [time.last_elapsed_us for time in times[:3]] == [0, 50, 50]
    assert all(time.ends_the_bank for time in times)


async def test_delay_of_the_referee_is_not_charged_to_the_bank():
    """The strike came after 999 us, but the limit is 900 us. The referee noticed it 99 us late."""
    clocks = Clocks(decision_us=900, bank_us=5000)
    faulty = Faulty(strike(elapsed_us=999))
    record = (await play(setup(clocks=clocks), [faulty, *players(2)])).record
    assert (record.moves[0].elapsed_us, record.moves[0].lag_us) == (900, 99)
    assert faulty.requests[1].time.bank_left_us == 4100
    check_record(record)


async def test_lag_of_a_reply_is_not_charged_to_the_bank():
    clocks = Clocks(decision_us=50, bank_us=900)
    player = FunctionPlayer(chance(1), elapsed_us=50, lag_us=9)
    record = (await play(setup(clocks=clocks), [player, *players(2)])).record
    banks = [request.time.bank_left_us for request in player.requests]
    assert banks[:3] == [900, 850, 800]
    check_record(record)


async def test_empty_bank_forfeits_without_a_request():
    clocks = Clocks(decision_us=1_000, bank_us=100)
    player = FunctionPlayer(chance(1), elapsed_us=50)
    others = [FunctionPlayer(chance(seat), elapsed_us=1) for seat in range(2)]
    record = (await play(setup(clocks=clocks), [player, *others])).record
    (fault,) = record.faults
    assert (fault.seat, fault.cause, fault.forfeit) == (0, Cause.OUT_OF_TIME, True)
    assert len(player.requests) == 2
    check_record(record)


async def test_bot_with_an_empty_bank_still_gets_the_events_since_its_last_request():
    player = FunctionPlayer(chance(1), elapsed_us=50)
    seen = []
    played = await play(
        setup(clocks=Clocks(decision_us=1_000, bank_us=100)),
        [player, *players(2)],
        watch=lambda *move: seen.extend(move[2]),
    )
    received = [event for request in player.requests for event in request.events]
    received += played.unseen_events[0]
    assert len(received) == len(seen)
    assert isinstance(received[-1], GameOver)


async def test_decision_gets_a_request_while_a_microsecond_is_left_in_the_bank():
    player = FunctionPlayer(chance(1), elapsed_us=50)
    await play(setup(clocks=Clocks(bank_us=51)), [player, *players(2)])
    assert [request.time.limit_us for request in player.requests] == [51, 1]


async def test_duration_has_only_the_times_of_the_requests_though_the_game_waits_longer():
    """The players and `add_evidence` take a second each, as if the event loop served other games."""
    now_ns = 0

    class Waiting(Faulty):
        async def decide(self, request: Request) -> Reply:
            nonlocal now_ns
            now_ns += 10**9
            return await super().decide(request)

    async def add(_seat: int, evidence: Evidence) -> Evidence:
        nonlocal now_ns
        now_ns += 10**9
        return evidence

    record = (
        await play_game(
            setup(),
            [Waiting(strike(elapsed_us=30), at=seat + 1) for seat in range(3)],
            now_us=lambda: 1_000,
            monotonic_ns=lambda: now_ns,
            add_evidence=add,
        )
    ).record
    assert len(record.faults) == 3
    assert record.duration_us == 3 * 30 + 5 * (len(record.moves) - 3)


async def test_void_game_error_of_a_player_is_passed_on():
    with pytest.raises(VoidGame, match="no sockets left"):
        await play(setup(), [Faulty(VoidGame("no sockets left")), *players(2)])


async def test_game_of_stand_ins_ends_before_the_turn_limit_in_every_ruleset():
    for name in RULESETS:
        seats = 2 if name == "duel" else 5
        cannot = Forfeit(Cause.NO_START, Evidence(detail="no such file"))
        for seed in range(20):
            record = (await play(setup(name, seats, seed=seed), [cannot] * seats)).record
            assert record.termination.value != "turn-limit"


def test_stand_in_plays_most_cards_then_fewest_jokers_then_the_lowest_value():
    plays = [
        Play(Layer(13, 3, 0)),
        Play(Layer(2, 3, 1)),
        Play(Layer(9, 4, 0)),
        Play(Layer(4, 4, 0)),
    ]
    assert stand_in_of(plays) == Play(Layer(4, 4, 0))
    assert stand_in_of(plays[:2]) == Play(Layer(2, 3, 1))


def test_stand_in_snatches_the_lowest_set_of_the_ghost_even_if_it_may_pass():
    legal = (SnatchGhost(3), SnatchGhost(9), Choice.PASS)
    assert stand_in_action(Decision(0, DecisionKind.GHOST_SET, legal)) == SnatchGhost(3)


def stand_in_of(legal):
    return stand_in_action(Decision(0, DecisionKind.PLAY, tuple(legal)))


async def test_watcher_gets_each_move_with_its_decision_and_events():
    seen = []
    table = [FunctionPlayer(first_legal), Faulty(strike(), at=2), *players(1)]
    record = (await play(setup(), table, watch=lambda *move: seen.append(move))).record
    assert tuple(move for _, move, *_ in seen) == record.moves
    assert all(decision.seat == move.seat for decision, move, *_ in seen)
    assert all(move.action in decision.legal for decision, move, *_ in seen)
    replayed = [step.events for step in replay_moves(record)]
    assert [events for *_, events, _ in seen] == replayed
    assert replayed[0][0] == Played(0, record.moves[0].action.layer)


async def test_watcher_gets_each_fault_with_the_move_of_the_stand_in_after_it():
    seen = []
    table = [FunctionPlayer(first_legal), Faulty(strike(), at=2, times=3), crash()]
    record = (await play(setup(), table, watch=lambda *move: seen.append(move))).record
    charged = [(number, fault) for number, (*_, faults) in enumerate(seen) for fault in faults]
    assert charged == [(fault.move, fault) for fault in record.faults]
    assert [fault.seat for _, fault in charged] == [2, 1, 1, 1, 1]
    assert seen[0][3] == (record.faults[0],)


async def test_watcher_gets_all_faults_of_bots_that_did_not_start_with_the_first_move():
    seen = []
    table = [*players(1), crash(), crash()]
    record = (await play(setup(), table, watch=lambda *move: seen.append(move))).record
    assert [fault.seat for fault in record.faults] == [1, 2]
    assert seen[0][3] == record.faults


@pytest.mark.parametrize(
    ("fault", "request_count"), [(crash(), 2), (strike(), 4)], ids=["a crash", "the last strike"]
)
async def test_on_forfeit_is_called_once_and_at_once(fault, request_count):
    calls = []
    faulty = Faulty(fault, at=2, times=3)
    await play_game(
        setup(),
        [*players(1), faulty, crash()],  # the last one never started: no call
        now_us=int,
        monotonic_ns=int,
        on_forfeit=lambda seat: calls.append((seat, faulty.request_count)),
    )
    assert calls == [(1, request_count)]


@pytest.mark.parametrize(("ruleset", "seats"), [("basic", 3), ("duel", 2)])
async def test_game_from_a_position_goes_on_as_the_game_of_the_position(ruleset, seats):
    fixed = setup(ruleset, seats)
    first = players(seats)
    record = (await play(fixed, first)).record
    requests = {each.number: each for player in first for each in player.requests}
    position = len(record.moves) // 2
    later = [FunctionPlayer(lambda request: record.actions[request.number - 1]) for _ in first]
    again = (await play(replace(fixed, opening=record.actions[:position]), later)).record
    assert (again.actions, again.scores) == (record.actions, record.scores)
    assert {move.elapsed_us for move in again.moves[:position]} == {0}
    assert [step.move for step in replay_moves(again)] == list(again.moves)
    for seat, player in enumerate(later):
        request, *_ = player.requests
        assert request.number > position
        assert request.view == requests[request.number].view
        seen = [each.events for each in first[seat].requests if each.number <= request.number]
        assert request.events == tuple(event for events in seen for event in events)


async def test_opening_leaves_the_banks_as_they_are():
    whole = (await play(setup(seats=2), players(2))).record
    clocks = Clocks(decision_us=50, bank_us=100, increment_us=2)
    table = players(2)
    await play(replace(setup(seats=2, clocks=clocks), opening=whole.actions[:8]), table)
    assert [player.requests[0].time.bank_left_us for player in table] == [100, 100]


async def test_bot_that_cannot_start_forfeits_after_the_opening():
    fixed = setup(seats=2)
    record = (await play(fixed, players(2))).record
    crash = Forfeit(Cause.CRASH, Evidence(detail="gone"))
    opened = replace(fixed, opening=record.actions[:4])
    again = (await play(opened, [crash, *players(1)])).record
    assert [(fault.seat, fault.move) for fault in again.faults] == [(0, 4)]
    assert again.actions[:4] == record.actions[:4]
