"""Send the requests of a seat of a stored game to a bot again, to find out what the bot does and why.

The record of a game has the deck and every move. So the requests are the same as in the game, and they name the same time
limits. The rerun does not enforce these limits, so the bot may run in a debugger. Whatever the bot replies, the game goes on
with the stored moves. The bot gets a process of its own, which plays only this game. In the tournament, the bot's process
may have played other games before, or at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from referee import deals
from referee.bots import BotSpec
from referee.bots.logs import LogSettings
from referee.bots.player import OUTPUT_DELAY_S, BotPlayer, SeatStart
from referee.bots.process import BotProcess
from referee.clocks import UNLIMITED_US, SeatClock
from referee.errors import PROCESS_CAUSES, BotFault, Cause, Forfeit, NotFoundError
from referee.match.play import EventLog
from referee.match.replay import has_no_times, make_game, replay_moves
from referee.protocol import messages
from referee.records import Fault, GameRecord, Move, Reply, Request
from referee.sandbox.folders import run_folder
from referee.sandbox.launcher import Launcher, Output
from referee.store.league import League
from referee.tournament.config import find_part
from referee.tournament.create import find_state

_LATE = {Cause.TIMEOUT, Cause.OUT_OF_TIME}
"""The causes of faults that cannot happen in a rerun, because it enforces no time limits."""
_CHECK_EVERY_S = 0.5
"""Seconds between two checks for dropped messages of the bot, while a request is pending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSeat:
    """A seat of a stored game, with all that its bot was told."""

    record: GameRecord
    seat: int
    opaque_id: str
    seed: int | None
    """The seed for the bot's random numbers; None if it is not stored, as in games outside of tournaments."""
    names: tuple[str, ...]
    """The names of the bots on all seats, if the tournament shows them to the bots; otherwise empty."""

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults of the seat."""
        return tuple(fault for fault in self.record.faults if fault.seat == self.seat)

    def requests(self) -> Iterator[tuple[Request, Move]]:
        """Yield each request to the seat, and the move that was made at this decision.

        Raises `referee.match.replay.Difference` if the record breaks the rules.
        """
        record, seat = self.record, self.seat
        for _ in replay_moves(record):  # checks the record
            pass
        end = self._end_of_requests()
        game = make_game(record)
        events, clock = EventLog(len(record.seating)), SeatClock(record.clocks)
        for number, move in enumerate(record.moves):
            decision = game.decision
            assert decision is not None  # noqa: S101 - the record was checked
            if move.seat == seat and number < end:
                time, unseen = clock.decision_time(), events.take(seat)
                yield Request(number + 1, game.view(seat), decision, unseen, time), move
                clock.spend(move.elapsed_us)
            events.add(game.apply(move.action))

    def _end_of_requests(self) -> int:
        """Return the index of the move from which on the seat gets no request because of its forfeit.

        Without a forfeit, return the number of moves. At the move of its forfeit, a bot got no request in three cases: it was not
        seated, its bank was empty, or its process failed before the request was sent. In the third case the rerun sends the
        request nevertheless, because otherwise the rerun would end before the process can fail again.
        """
        moves = self.record.moves
        forfeit = next((fault for fault in self.faults if fault.forfeit), None)
        if forfeit is None:
            return len(moves)
        was_seated = self.record.usage[self.seat] is not None
        has_failed = was_seated and forfeit.cause in PROCESS_CAUSES
        is_requested = has_failed or not has_no_times(moves[forfeit.move])
        return forfeit.move + is_requested


def find_stored_seat(league: League, record: GameRecord, seat: int) -> StoredSeat:
    """Return a seat of a game of the league. Raises UserError or RefereeError if the tournament cannot be read."""
    game_id = record.game_id
    name, _, number = game_id.rpartition("-")
    try:
        state = find_state(league, name if number.isdecimal() else "")
    except NotFoundError:  # a game outside of tournaments
        return StoredSeat(record=record, seat=seat, opaque_id=game_id, seed=None, names=())
    secret = find_part(state.parts, int(number) - 1).seed
    assert secret is not None  # noqa: S101 - a league has all seeds
    return StoredSeat(
        record=record,
        seat=seat,
        opaque_id=deals.opaque_id(secret, game_id),
        seed=deals.bot_seed(secret, game_id, seat),
        names=tuple(bot.name for bot in record.seating) if state.config.show_names else (),
    )


class Exchange(NamedTuple):
    """A request of a rerun, and the bot's reply or fault."""

    request: Request
    stored: Move
    """The move that followed in the stored game."""
    stored_fault: Fault | None
    """The fault that caused the stored move of the stand-in; None if the bot made the move."""
    outcome: Reply | BotFault
    """The reply, which may be illegal, or the fault."""
    printed: str
    """What the bot has printed since the previous exchange. Control characters are escaped."""
    dropped: int = 0
    """How many messages of the bot were dropped since the previous exchange; see `GameRecord.dropped`."""

    @property
    def is_illegal(self) -> bool:
        """Whether the outcome is a reply with an action that is not legal."""
        reply = self.outcome
        return isinstance(reply, Reply) and reply.action not in self.request.decision.legal

    @property
    def is_as_stored(self) -> bool:
        """Whether the bot has done the same as in the stored game: it has given the same reply, or it has the same fault.

        Faults are the same if they have the same cause. A rerun waits beyond the limit, so a late reply is no fault in a rerun. If
        the bot was late in the stored game, a late legal reply in the rerun counts as the same.
        """
        outcome, fault = self.outcome, self.stored_fault
        if isinstance(outcome, BotFault):
            return fault is not None and fault.cause is outcome.cause
        if fault is None:
            return outcome.action == self.stored.action
        if self.is_illegal:
            return fault.cause is Cause.ILLEGAL
        return self.is_late_as_stored

    @property
    def is_late_as_stored(self) -> bool:
        """Whether the reply was late, as in the stored game."""
        outcome, fault = self.outcome, self.stored_fault
        is_late = isinstance(outcome, Reply) and outcome.lag_us > 0
        return is_late and fault is not None and fault.cause in _LATE


class DroppedMessage(NamedTuple):
    """While a request is pending, the bot has sent a message that belongs to no pending request."""

    pending: Request


async def rerun(
    stored: StoredSeat,
    spec: BotSpec,
    launcher: Launcher,
    *,
    last_move: int,
    logs: LogSettings | None = None,
) -> AsyncIterator[Request | DroppedMessage | Exchange]:
    """Start the bot, and send it the requests of the seat. The bot is ended afterwards.

    Yield each request just before it is sent, then at most one `DroppedMessage`, then the `Exchange`.

    Args:
        stored: the seat whose requests the bot gets.
        spec: the bot.
        launcher: starts the bot.
        last_move: a request is sent only if the game has at most this many moves before it.
        logs: where to write what the bot prints; None for nowhere.

    After a `Forfeit` of the bot no request follows. Raises `Forfeit` if the bot does not start or is not ready for the game,
    and `VoidGame` if the machine lacks resources.
    """
    faults = {fault.move: fault for fault in reversed(stored.faults)}
    with run_folder() as folder:
        process = await BotProcess.start(
            spec, launcher=launcher, folder=folder, limit_us=UNLIMITED_US, bots={}, logs=logs
        )
        printed = _Printed(process)
        try:
            process.change_games(1)
            player = await BotPlayer.join(process, _make_seat_start(stored), UNLIMITED_US)
            dropped = player.dropped
            for request, move in stored.requests():
                if request.number > last_move + 1:
                    return
                yield request
                outcome: Reply | BotFault
                deciding = asyncio.ensure_future(player.decide(request))
                try:
                    while not deciding.done():
                        await asyncio.wait((deciding,), timeout=_CHECK_EVERY_S)
                        if not deciding.done() and player.dropped > dropped:
                            yield DroppedMessage(request)
                            break
                    outcome = await deciding
                except BotFault as fault:
                    outcome = fault
                finally:
                    deciding.cancel()
                await asyncio.sleep(OUTPUT_DELAY_S)
                fault_then = faults.get(request.number - 1) if move.stand_in else None
                newly_dropped, dropped = player.dropped - dropped, player.dropped
                yield Exchange(request, move, fault_then, outcome, printed.take(), newly_dropped)
                if isinstance(outcome, Forfeit):
                    return
        finally:
            await process.stop()


def _make_seat_start(stored: StoredSeat) -> SeatStart:
    record = stored.record
    start = messages.game_start(
        stored.opaque_id,
        rules=record.ruleset,
        view=make_game(record).view(stored.seat),
        clocks=record.clocks,
        seed=stored.seed or 0,
        names=stored.names,
        max_strikes=record.max_strikes,
    )
    encoder = messages.RequestEncoder(stored.opaque_id)
    return SeatStart(stored.opaque_id, start, encoder, is_timed=False, log_name=record.game_id)


class _Printed:
    """What a process has printed, piece by piece."""

    def __init__(self, process: BotProcess) -> None:
        self._outputs: tuple[Output, ...] = (process.output, process.error_output)
        self._seen = [0, 0]

    def take(self) -> str:
        """Return what is new on standard output, and after it what is new on standard error."""
        new = ""
        for place, output in enumerate(self._outputs):
            size, self._seen[place] = output.total - self._seen[place], output.total
            if size:
                new += output.tail(size)
        return new
