"""The replay of a changed record raises a `Difference` that names the first difference."""

from __future__ import annotations

from dataclasses import replace

import pytest
from players import FunctionPlayer, chance, play, setup

from referee.clocks import Clocks
from referee.errors import START_CAUSES, STRIKE_CAUSES, Cause, Evidence, Forfeit, Strike
from referee.match.replay import Difference, check_record, replay_moves
from referee.records import Fault, Machine, Reply, final_ranks, forfeited_seats
from referee.rules.actions import Choice
from referee.rules.ruleset import RULESETS

LIMIT_US = Clocks().decision_us
BANK = Clocks(decision_us=50, bank_us=100, increment_us=2)


@pytest.fixture
async def record():
    return (await play(setup(), [FunctionPlayer(chance(seat)) for seat in range(3)])).record


async def test_replay_yields_every_decision_with_its_move(record):
    steps = list(replay_moves(record))
    assert [step.move for step in steps] == list(record.moves)
    assert all(step.move.action in step.decision.legal for step in steps)
    assert steps[-1].game.outcome.scores == record.scores


def tamper(record, index, **changes):
    moves = list(record.moves)
    moves[index] = replace(moves[index], **changes)
    return replace(record, moves=tuple(moves))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: replace(r, moves=r.moves[:-1]), "not over"),
        (lambda r: replace(r, moves=(*r.moves, r.moves[-1])), "the game is over after"),
        (lambda r: tamper(r, 4, seat=(r.moves[4].seat + 1) % 3), "move 5: seat"),
        (lambda r: tamper(r, 0, action=Choice.PASS), "move 1: Choice.PASS is not legal"),
        (lambda r: tamper(r, 0, stand_in=True), "move 1: the stand-in decides without a fault"),
        (lambda r: replace(r, deck=r.deck[1:]), "deck"),
        (
            lambda r: replace(r, scores=(99, 0, 0)),
            "result: the record says",
        ),
        (
            lambda r: replace(r, ranks=r.ranks[::-1]),
            "result: the record says",
        ),
        (lambda r: replace(r, seating=r.seating[:1]), "is for 2 to 5 players"),
    ],
)
async def test_changed_record_differs_from_its_replay(record, change, message):
    check_record(record)
    with pytest.raises(Difference, match=message):
        check_record(change(record))


async def test_move_of_a_bot_after_its_forfeit_is_a_difference():
    cannot = Forfeit(Cause.NO_START, Evidence(detail="no such file"))
    table = [cannot, *(FunctionPlayer(chance(seat)) for seat in range(2))]
    record = (await play(setup(), table)).record
    check_record(record)
    with pytest.raises(Difference, match="move 1: seat 0 decides after its forfeit"):
        check_record(tamper(record, 0, stand_in=False))


async def test_stand_in_move_against_its_policy_is_a_difference():
    cannot = Forfeit(Cause.NO_START, Evidence(detail="no such file"))
    table = [cannot, *(FunctionPlayer(chance(seat)) for seat in range(2))]
    record = (await play(setup(), table)).record
    other = next(iter(replay_moves(record))).decision.legal[0]
    assert other != record.moves[0].action
    with pytest.raises(Difference, match=r"move 1: .* is not the stand-in's action"):
        check_record(tamper(record, 0, action=other))


async def play_with_strikes(times):
    """Play a game in which seat 1 sends no reply to its first `times` requests."""
    silent = iter(range(times))
    choose = chance(1)

    def late(request):
        if next(silent, None) is not None:
            raise Strike(Cause.TIMEOUT, Evidence(detail="no reply", elapsed_us=LIMIT_US + 60))
        return choose(request)

    table = [FunctionPlayer(chance(0)), FunctionPlayer(late), FunctionPlayer(chance(2))]
    record = (await play(setup(), table)).record
    check_record(record)
    return record


async def test_wrong_number_of_strikes_for_a_forfeit_is_a_difference():
    two, three = await play_with_strikes(2), await play_with_strikes(3)
    second, third = (fault.move + 1 for fault in three.faults[1:3])
    assert [fault.cause for fault in three.faults] == [*[Cause.TIMEOUT] * 3, Cause.STRIKES]
    for changed, message in (
        (
            replace(two, max_strikes=2),
            (
                "seat 1 has 2 strikes, and a seat forfeits at strike 2;"
                f" expected: a forfeit because of strikes at move {second}; recorded: no such forfeit"
            ),
        ),
        (
            replace(three, max_strikes=4),
            (
                "seat 1 has 3 strikes, and a seat forfeits at strike 4;"
                f" expected: no such forfeit; recorded: a forfeit because of strikes at move {third}"
            ),
        ),
        (
            replace(three, max_strikes=2),
            f"at move {second}; recorded: a forfeit because of strikes at move {third}",
        ),
        (
            replace(three, faults=three.faults[:-1]),
            f"at move {third}; recorded: no such forfeit",
        ),
        (
            replace(three, faults=three.faults[1:]),
            f"expected: no such forfeit; recorded: a forfeit because of strikes at move {third}",
        ),
        (replace(three, faults=three.faults[::-1]), "seat 1 has a fault after its forfeit"),
    ):
        with pytest.raises(Difference, match=message):
            check_record(changed)


async def test_strike_without_a_stand_in_move_is_a_difference():
    record = await play_with_strikes(2)
    at = record.faults[0].move
    needed = rf"a strike \(timeout\): the stand-in must make move {at + 1}"
    twice = replace(record, faults=(record.faults[0], record.faults[0]))
    of_other_seat = replace(record.faults[0], seat=0)
    for changed, message in (
        (tamper(record, at, stand_in=False), f"seat 1: {needed}"),
        (twice, "seat 1: faults must be at different moves, in their order"),
        (replace(record, faults=(of_other_seat, record.faults[1])), f"seat 0: {needed}"),
    ):
        with pytest.raises(Difference, match=message):
            check_record(changed)


def charge(record, seat, cause, move):
    """Return a record in which a seat also forfeits; the result fits."""
    forfeit = Fault(seat, cause, forfeit=True, move=move, evidence=Evidence(detail="invented"))
    faults = (*record.faults, forfeit)
    ranks = final_ranks(record.ranks, faults)
    return replace(record, faults=faults, ranks=ranks, forfeited=forfeited_seats(faults))


@pytest.mark.parametrize("cause", [Cause.CRASH, Cause.OUT_OF_TIME, Cause.NO_START, Cause.SUSPENDED])
@pytest.mark.parametrize("number", [-1, 0, 5, "last move of the seat", "end", 10**9])
async def test_invented_forfeit_is_a_difference(record, cause, number):
    seat = record.winners[0]
    last = max(index for index, move in enumerate(record.moves) if move.seat == seat)
    move = {"last move of the seat": last, "end": len(record.moves)}.get(number, number)
    with pytest.raises(Difference, match=rf"seat {seat}: a forfeit|decides after its forfeit"):
        check_record(charge(record, seat, cause, move))


@pytest.mark.parametrize("cause", [Cause.OUT_OF_TIME, Cause.STRIKES])
async def test_forfeit_at_a_decision_cannot_come_before_the_first_request(cause):
    cannot = Forfeit(Cause.NO_START, Evidence(detail="no such file"))
    table = [*(FunctionPlayer(chance(seat)) for seat in range(2)), cannot]
    record = (await play(setup(), table)).record
    check_record(record)
    (fault,) = record.faults
    assert record.moves[fault.move].seat != fault.seat
    with pytest.raises(Difference, match=r"seat 2: a forfeit .*: the stand-in must make move 1"):
        check_record(replace(record, faults=(replace(fault, cause=cause),)))


@pytest.mark.parametrize("cause", sorted(set(Cause) - STRIKE_CAUSES, key=lambda each: each.value))
async def test_strike_of_a_cause_that_costs_the_game_is_a_difference(cause):
    record = await play_with_strikes(2)
    other = replace(record.faults[0], cause=cause)
    with pytest.raises(Difference, match=rf"seat 1: a strike \({cause.value}\) is impossible"):
        check_record(replace(record, faults=(other, record.faults[1])))


async def play_with_forfeit(cause, at):
    """Play a game in which seat 0 forfeits at its decision number `at`, from 1."""
    choose, numbers = chance(0), iter(range(1, 10**9))

    def fail(request):
        if next(numbers) == at:
            raise Forfeit(cause, Evidence(detail="gone", elapsed_us=11))
        return choose(request)

    table = [FunctionPlayer(fail), *(FunctionPlayer(chance(seat)) for seat in (1, 2))]
    return (await play(setup(), table)).record


@pytest.mark.parametrize("cause", sorted(STRIKE_CAUSES, key=lambda each: each.value))
async def test_forfeit_of_a_cause_that_costs_one_decision_is_a_difference(cause):
    with pytest.raises(Difference, match=rf"seat 0: a forfeit \({cause.value}\) is impossible"):
        check_record(await play_with_forfeit(cause, 3))


@pytest.mark.parametrize("cause", sorted(START_CAUSES, key=lambda each: each.value))
async def test_fault_of_the_start_after_the_first_request_is_a_difference(cause):
    record = await play_with_forfeit(cause, 3)
    with pytest.raises(Difference, match=rf"seat 0: a forfeit \({cause.value}\) must come before"):
        check_record(record)
    (fault,) = record.faults
    check_record(replace(record, faults=(replace(fault, cause=Cause.HANDSHAKE),)))


async def test_forfeit_at_the_move_of_an_earlier_strike_is_a_difference():
    record = await play_with_strikes(2)
    at = record.faults[1].move
    with pytest.raises(Difference, match="seat 1: faults must be at different moves"):
        check_record(charge(record, 1, Cause.CRASH, at))


@pytest.mark.parametrize("opening", [0, 1, 3])
async def test_bot_that_cannot_start_forfeits_a_game_that_ends_before_its_first_decision(opening):
    """The games end in the first turn of seat 0, or with the opening in that of seat 1."""
    rules = RULESETS["basic"].with_options(max_turns=1 if opening < 3 else 2)
    what = replace(setup(), ruleset=rules)
    table = [FunctionPlayer(chance(seat)) for seat in range(3)]
    whole = (await play(what, table)).record
    assert len(whole.moves) > opening
    cannot = Forfeit(Cause.NO_START, Evidence(detail="no such file"))
    record = (
        await play(replace(what, opening=whole.actions[:opening]), [*table[:2], cannot])
    ).record
    assert all(move.seat != 2 for move in record.moves)
    assert [fault.move for fault in record.faults] == [opening]
    assert [step.move for step in replay_moves(record)] == list(record.moves)


async def test_faults_of_two_seats_in_the_wrong_order_are_a_difference():
    class Failing(FunctionPlayer):
        async def decide(self, request):
            await super().decide(request)
            if len(self.requests) == 2:
                raise Strike(Cause.MALFORMED, Evidence(detail="no action", elapsed_us=5))
            return Reply(request.decision.legal[0], 7, 0)

    record = (await play(setup(), [Failing(chance(seat)) for seat in range(3)])).record
    check_record(record)
    assert len(record.faults) == 3
    changed = replace(record, faults=record.faults[::-1])
    with pytest.raises(Difference, match="the faults are not in the order of their moves"):
        check_record(changed)


@pytest.mark.parametrize("seat", [-1, 3])
async def test_fault_of_a_seat_that_does_not_exist_is_a_difference(seat):
    record = await play_with_strikes(1)
    changed = replace(record, faults=(*record.faults, replace(record.faults[0], seat=seat)))
    with pytest.raises(Difference, match=f"charged to seat {seat}, which does not exist"):
        check_record(changed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"elapsed_us": 9_000_000}, "move 4: 9000000 us are charged, but the limit was 5000000 us"),
        ({"elapsed_us": -1}, "move 4: a time is negative"),
        ({"lag_us": -1}, "move 4: a time is negative"),
        ({"lag_us": 1}, "move 4: the move has a lag, but the charge of 7 us is below the limit"),
        ({"batch_size": 0}, "move 4: the batch of its request has 0 requests"),
        ({"wall_us": 8}, "move 4: a single request has the time of a batch, 8 us"),
        (
            {"batch_size": 2, "wall_us": 6},
            "move 4: the batch took 6 us, but this request alone 7 us",
        ),
        (
            {"batch_size": 2, "wall_us": 60_000_000},
            "move 4: the batch of 2 requests took 60000000 us, but their limits are 10000000 us",
        ),
        (
            {"batch_size": 64, "wall_us": 9_000_000},
            "move 4: 7 us are charged for one of 64 requests that took 9000000 us",
        ),
        ({"elapsed_us": 0}, "move 4: the bot has replied after 0 us"),
        (
            {"elapsed_us": 0, "batch_size": 2},
            "move 4: the bot has replied after 0 us",
        ),
        ({"elapsed_us": LIMIT_US, "lag_us": 1}, r"the game lasted \d+ us, but its decisions took"),
    ],
)
async def test_impossible_time_of_a_move_is_a_difference(record, change, message):
    with pytest.raises(Difference, match=message):
        check_record(tamper(record, 3, **change))


async def test_time_at_the_limit_and_in_a_batch_is_possible(record):
    longer = replace(record, duration_us=record.duration_us + LIMIT_US + 1000)
    check_record(tamper(longer, 3, elapsed_us=LIMIT_US, lag_us=9))
    check_record(tamper(longer, 3, batch_size=3, wall_us=23, lag_us=2))
    check_record(tamper(longer, 3, batch_size=3, wall_us=2, elapsed_us=0))


@pytest.mark.parametrize("size", [1, 3, None], ids=["1", "3", "whole game"])
async def test_opening_is_a_difference(record, size):
    moves = tuple(replace(move, elapsed_us=0) for move in record.moves[:size])
    opened = replace(record, moves=moves + record.moves[len(moves) :])
    assert [step.move for step in replay_moves(opened)] == list(opened.moves)
    with pytest.raises(Difference, match=r"^move 1: the bot has replied after 0 us$"):
        check_record(opened)


async def test_game_that_is_shorter_than_its_decisions_with_their_lags_is_a_difference(record):
    late = tamper(record, 3, elapsed_us=LIMIT_US, lag_us=9)
    needed_us = sum(move.elapsed_us + move.lag_us for move in late.moves)
    check_record(replace(late, duration_us=needed_us))
    with pytest.raises(Difference, match=f"but its decisions took {needed_us} us"):
        check_record(replace(late, duration_us=needed_us - 1))


@pytest.mark.parametrize("noise", [-0.1, 1.1, float("nan"), float("inf")])
async def test_impossible_noise_is_a_difference(record, noise):
    machine = Machine(host="host", cpu="cpu", speed=1, noise=1.0)
    check_record(replace(record, machine=machine))
    with pytest.raises(Difference, match=f"the noise of the machine is {noise};"):
        check_record(replace(record, machine=replace(machine, noise=noise)))


async def test_fault_and_its_move_must_have_the_same_times():
    record = await play_with_strikes(2)
    fault, at = record.faults[0], record.faults[0].move
    assert (record.moves[at].elapsed_us, record.moves[at].lag_us) == (LIMIT_US, 60)
    early = replace(fault, evidence=replace(fault.evidence, elapsed_us=9))
    for changed, message in (
        (tamper(record, at, lag_us=0), "the times of the fault differ"),
        (
            replace(tamper(record, at, elapsed_us=9, lag_us=0), faults=(early, record.faults[1])),
            f"move {at + 1}: a timeout after 9 us, but the limit was {LIMIT_US} us",
        ),
    ):
        with pytest.raises(Difference, match=message):
            check_record(changed)


@pytest.mark.parametrize(
    ("clocks", "kind", "cause", "message"),
    [
        (Clocks(), Forfeit, Cause.OUT_OF_TIME, "is out_of_time, but the bank was not empty"),
        (replace(BANK, bank_us=50), Strike, Cause.TIMEOUT, "is timeout, but the bank was empty"),
    ],
)
async def test_cause_of_a_late_reply_must_fit_the_bank(clocks, kind, cause, message):
    def be_late(request):
        raise kind(cause, Evidence(detail="late", elapsed_us=request.time.limit_us))

    table = [FunctionPlayer(be_late), *(FunctionPlayer(chance(seat)) for seat in (1, 2))]
    record = (await play(setup(clocks=clocks), table)).record
    with pytest.raises(Difference, match=f"move 1: the fault {message} after it"):
        check_record(record)


async def test_time_after_a_forfeit_is_a_difference():
    record = await play_with_strikes(3)
    after = max(index for index, move in enumerate(record.moves) if move.seat == 1)
    with pytest.raises(Difference, match=f"move {after + 1}: seat 1 got no request, but the move"):
        check_record(tamper(record, after, elapsed_us=1))


async def play_with_bank():
    """Play a game in which seat 0 takes 50 us for each decision. Its bank is 100 us, and 2 us more after each decision."""
    table = [FunctionPlayer(chance(seat), elapsed_us=each) for seat, each in enumerate((50, 1, 1))]

    def decide(request, player=table[0].decide):
        if request.time.ends_the_bank:
            left_us = request.time.bank_left_us
            raise Forfeit(Cause.OUT_OF_TIME, Evidence(detail="late", elapsed_us=left_us))
        return player(request)

    table[0].decide = decide
    record = (await play(setup(clocks=BANK), table)).record
    check_record(record)
    return record


async def test_move_of_a_bot_that_could_not_start_has_no_times():
    cannot = Forfeit(Cause.CONNECT_TIMEOUT, Evidence(detail="no hello", elapsed_us=20_000_000))
    table = [cannot, *(FunctionPlayer(chance(seat)) for seat in range(2))]
    record = (await play(setup(), table)).record
    check_record(record)
    assert record.moves[0].seat == 0
    with pytest.raises(Difference, match="move 1: the times of the fault differ"):
        check_record(tamper(record, 0, elapsed_us=9))


async def test_crash_and_its_move_must_have_the_same_times():
    def crash(_request):
        raise Forfeit(Cause.CRASH, Evidence(detail="gone", elapsed_us=11))

    table = [FunctionPlayer(crash), *(FunctionPlayer(chance(seat)) for seat in range(2))]
    record = (await play(setup(), table)).record
    check_record(record)
    with pytest.raises(Difference, match="move 1: the times of the fault differ"):
        check_record(tamper(record, 0, elapsed_us=12))


async def test_illegal_action_and_its_move_must_have_the_same_times():
    table = [FunctionPlayer(lambda _request: Choice.TAKE), *(FunctionPlayer(chance(1)),) * 2]
    record = (await play(setup(), table)).record
    check_record(record)
    assert (record.faults[0].cause, record.faults[0].evidence.elapsed_us) == (Cause.ILLEGAL, 7)
    with pytest.raises(Difference, match="move 1: the times of the fault differ"):
        check_record(tamper(record, 0, elapsed_us=0))


async def test_decision_with_an_empty_bank_is_a_difference():
    table = [FunctionPlayer(chance(seat), elapsed_us=1) for seat in range(3)]
    played = (await play(setup(clocks=BANK), table)).record
    record = tamper(played, 0, elapsed_us=0, batch_size=2, wall_us=1)
    check_record(record)
    with pytest.raises(Difference, match="move 1: seat 0 decides with an empty bank"):
        check_record(replace(record, clocks=replace(BANK, bank_us=0)))


async def test_charge_of_a_batch_need_not_be_an_equal_share_if_there_is_a_bank():
    clocks = Clocks(bank_us=60_000_000)
    table = [FunctionPlayer(chance(seat)) for seat in range(3)]
    record = tamper((await play(setup(clocks=clocks), table)).record, 3, batch_size=2, wall_us=60)
    check_record(record)
    with pytest.raises(Difference, match="7 us are charged for one of 2 requests that took 60 us"):
        check_record(replace(record, clocks=Clocks()))


async def test_bank_that_does_not_add_up_is_a_difference():
    record = await play_with_bank()
    mine = [index for index, move in enumerate(record.moves) if move.seat == 0]
    assert [record.moves[index].elapsed_us for index in mine[:4]] == [50, 50, 4, 0]
    with pytest.raises(
        Difference, match=f"move {mine[2] + 1}: a timeout after 4 us, but the limit"
    ):
        check_record(tamper(record, mine[0], elapsed_us=10))
    other = replace(record, clocks=replace(BANK, bank_us=90))
    with pytest.raises(
        Difference, match=f"move {mine[1] + 1}: 50 us are charged, but the limit was 42"
    ):
        check_record(other)
