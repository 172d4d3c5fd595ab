"""Play one game from the deal to its record.

`play_game` requests each decision from the player on the seat that must decide. After a fault of the
player, `play_game` charges the seat with the fault, and the stand-in decides. `EventLog` keeps the events for each seat.
This module knows nothing of bot processes. It uses only the protocol `Player` in `referee/records.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from referee.clocks import Clocks, DecisionTime, SeatClock
from referee.errors import BotFault, Cause, Evidence, Forfeit, Strike
from referee.match import stand_in_action
from referee.records import (
    BotId,
    Fault,
    GameRecord,
    Move,
    Player,
    Reply,
    Request,
    final_ranks,
    forfeited_seats,
)
from referee.rules.actions import Action, Decision, action_text
from referee.rules.events import Drawn, Event, is_private, redact
from referee.rules.game import Game, IllegalActionError, Outcome
from referee.rules.ruleset import Ruleset

FREE_GAME_MAX_STRIKES = 3
"""The number of strikes at which a seat forfeits a game outside of tournaments."""


class EventLog:
    """Keep the events of a game, and give each seat the events that the seat has not seen yet.

    One list serves all seats, because all events except draws from the deck look the same to every seat.

    Args:
        seats: the number of seats.
    """

    def __init__(self, seats: int) -> None:
        self._public: list[Event] = []
        """Every event. In draws from the deck the card is hidden."""
        self._private: list[list[tuple[int, Drawn]]] = [[] for _ in range(seats)]
        """For each seat: its draws from the deck since its last `take`, unredacted. Each one comes with its index in `_public`."""
        self._seen = [0] * seats
        """For each seat: how many events it has seen."""

    def add(self, events: Iterable[Event]) -> None:
        """Append unredacted events."""
        public = self._public
        for event in events:
            if is_private(event):
                seat = event.seat
                self._private[seat].append((len(public), event))
                public.append(redact(event, (seat + 1) % len(self._seen)))
            else:
                public.append(event)

    def take(self, seat: int) -> tuple[Event, ...]:
        """Return the redacted events that `seat` has not seen yet, and mark them as seen."""
        public, start = self._public, self._seen[seat]
        self._seen[seat] = len(public)
        events = public[start:]
        private = self._private[seat]
        if private:
            for index, event in private:
                events[index - start] = event
            private.clear()
        return tuple(events)


Watcher = Callable[[Decision, Move, tuple[Event, ...], tuple[Fault, ...]], None]
"""A function that is called after every move, except the moves of the opening. Its arguments are the decision, the move, the
unredacted events of the move, and the faults since the previous call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameSetup:
    """Everything that is fixed before a game."""

    game_id: str
    ruleset: Ruleset
    seating: tuple[BotId, ...]
    """The bot of each seat, seat 0 first."""
    deck: tuple[int, ...]
    """The cards in drawing order."""
    clocks: Clocks
    max_strikes: int
    """The number of strikes at which a seat forfeits the game."""
    isolation: str
    """The rung of the bots and the protections that are off, as text for the record."""
    opening: tuple[Action, ...] = ()
    """The actions that lead to a position of another game. They are made before the first request, and the players play on from
    this position."""


@dataclass(frozen=True, slots=True)
class RecordedGame:
    """The record of a finished game, and the events that happened after the last request of each seat."""

    record: GameRecord
    unseen_events: tuple[tuple[Event, ...], ...]
    """For each seat: the redacted events since its last request, or all events if it got none."""


class _Seat:
    """The player, the clock and the strikes of one seat."""

    def __init__(self, player: Player | Forfeit, clocks: Clocks) -> None:
        self.player: Player | None = None if isinstance(player, Forfeit) else player
        """None once the seat has forfeited."""
        self.clock = SeatClock(clocks)
        self.strikes = 0


async def play_game(
    setup: GameSetup,
    players: Sequence[Player | Forfeit],
    *,
    now_us: Callable[[], int],
    monotonic_ns: Callable[[], int],
    game: Game | None = None,
    watch: Watcher | None = None,
    add_evidence: Callable[[int, Evidence], Awaitable[Evidence]] | None = None,
    on_forfeit: Callable[[int], None] | None = None,
) -> RecordedGame:
    """Play a game to its end.

    Args:
        setup: what is fixed before the game.
        players: one for each seat; a `Forfeit` replaces a player that cannot start.
        now_us: returns the current time in microseconds since 1970; only for the record.
        monotonic_ns: returns the time of any monotonic clock in nanoseconds; only for the
            duration in the record.
        game: an unstarted game built from `setup`; created here if None.
        watch: called after every move that is not of the opening.
        add_evidence: awaited at every fault in a decision, with the number of the seat and the evidence. Returns
            the evidence for the record, for example with the standard error of the bot's process.
        on_forfeit: called with the number of a seat as soon as the seat forfeits. The seat gets no
            further request. `on_forfeit` is not called for a seat whose player could not start.

    If a player raises `BotFault`, the fault is recorded and the game goes on. If a player raises `VoidGame` or
    any other exception, the game ends and the caller gets the exception. The record has no resource usage; the
    caller adds it.
    """
    started_at_us, began_ns = now_us(), monotonic_ns()
    game = game or Game(setup.ruleset, len(players), setup.deck)
    run = _Run(
        setup,
        game,
        players,
        monotonic_ns=monotonic_ns,
        watch=watch,
        add_evidence=add_evidence,
        on_forfeit=on_forfeit,
    )
    outcome = await run.play()
    record = GameRecord(
        game_id=setup.game_id,
        ruleset=setup.ruleset,
        seating=setup.seating,
        deck=setup.deck,
        moves=tuple(run.moves),
        faults=tuple(run.faults),
        termination=outcome.termination,
        scores=outcome.scores,
        ranks=final_ranks(outcome.ranks, run.faults),
        forfeited=forfeited_seats(run.faults),
        usage=(None,) * len(players),
        clocks=setup.clocks,
        max_strikes=setup.max_strikes,
        isolation=setup.isolation,
        started_at_us=started_at_us,
        duration_us=max(0, (monotonic_ns() - began_ns - run.awaited_ns) // 1000) + run.spent_us,
    )
    return RecordedGame(record, tuple(map(run.event_log.take, range(len(players)))))


def _illegal_action(reply: Reply, decision: Decision) -> Strike:
    detail = f"{action_text(reply.action)} is not a legal reply to {decision.kind.value}"
    return Strike(
        Cause.ILLEGAL,
        Evidence(
            detail=detail,
            elapsed_us=reply.elapsed_us + reply.lag_us,
            wall_us=reply.wall_us,
            batch_size=reply.batch_size,
        ),
    )


class _Run:
    """Hold the state of a game while it is played."""

    def __init__(
        self,
        setup: GameSetup,
        game: Game,
        players: Sequence[Player | Forfeit],
        *,
        monotonic_ns: Callable[[], int],
        watch: Watcher | None,
        add_evidence: Callable[[int, Evidence], Awaitable[Evidence]] | None,
        on_forfeit: Callable[[int], None] | None,
    ) -> None:
        self.awaited_ns = 0
        """The time spent waiting for replies and for `add_evidence`. It includes time in which the players served other games."""
        self.spent_us = 0
        """The charged times and the lags of all requests of this game, added up."""
        self._monotonic_ns = monotonic_ns
        self.game = game
        self.seats = [_Seat(player, setup.clocks) for player in players]
        self.event_log = EventLog(len(players))
        self.moves: list[Move] = []
        self.faults: list[Fault] = []
        self._max_strikes = setup.max_strikes
        self._watch = watch
        self._add_evidence = add_evidence
        self._on_forfeit = on_forfeit
        for action in setup.opening:
            self._make_opening_move(action)
        self._shown_faults = 0
        """The number of faults that the watcher has already got."""
        for seat, player in enumerate(players):
            if isinstance(player, Forfeit):
                self._charge(seat, player)

    def _make_opening_move(self, action: Action) -> None:
        assert self.game.decision is not None  # noqa: S101 - the opening ends before the game is over
        seat = self.game.decision.seat
        self.event_log.add(self.game.apply(action))
        self.moves.append(Move(seat, action, elapsed_us=0, lag_us=0, stand_in=False))

    async def play(self) -> Outcome:
        """Request every decision from its seat or from the stand-in, until the game is over."""
        game, event_log, moves = self.game, self.event_log, self.moves
        while (decision := game.decision) is not None:
            number = decision.seat
            seat = self.seats[number]
            player, clock = seat.player, seat.clock
            if player is None:
                self._let_stand_in_decide(decision)
                continue
            time = clock.decision_time()
            if time.limit_us <= 0:  # send no request, because 0 in it would mean "no limit"
                empty_bank = Forfeit(Cause.OUT_OF_TIME, Evidence(detail="the bank is empty"))
                await self._handle_fault(decision, empty_bank, time)
                continue
            events = event_log.take(number)
            request = Request(len(moves) + 1, game.view(number), decision, events, time)
            began_ns = self._monotonic_ns()
            try:
                reply = await player.decide(request)
            except BotFault as fault:
                self.awaited_ns += self._monotonic_ns() - began_ns
                self.spent_us += fault.evidence.elapsed_us
                await self._handle_fault(decision, fault, time)
                continue
            self.awaited_ns += self._monotonic_ns() - began_ns
            self.spent_us += reply.elapsed_us + reply.lag_us
            try:
                events = game.apply(reply.action)
            except IllegalActionError:
                await self._handle_fault(decision, _illegal_action(reply, decision), time)
                continue
            clock.spend(reply.elapsed_us)
            move = Move(
                number,
                reply.action,
                reply.elapsed_us,
                reply.lag_us,
                stand_in=False,
                wall_us=reply.wall_us,
                batch_size=reply.batch_size,
            )
            self._record_move(decision, move, events)
        assert game.outcome is not None  # noqa: S101 - a game without a decision is over
        return game.outcome

    async def _handle_fault(self, decision: Decision, fault: BotFault, time: DecisionTime) -> None:
        """Charge the seat with the fault and let the stand-in decide."""
        if self._add_evidence is not None:
            began_ns = self._monotonic_ns()
            fault = type(fault)(
                fault.cause, await self._add_evidence(decision.seat, fault.evidence)
            )
            self.awaited_ns += self._monotonic_ns() - began_ns
        spent_us = fault.evidence.elapsed_us
        elapsed_us = min(spent_us, time.limit_us)
        self.seats[decision.seat].clock.spend(elapsed_us)
        self._charge(decision.seat, fault)
        self._let_stand_in_decide(
            decision,
            elapsed_us=elapsed_us,
            lag_us=spent_us - elapsed_us,
            wall_us=fault.evidence.wall_us,
            batch_size=fault.evidence.batch_size,
        )

    def _let_stand_in_decide(
        self,
        decision: Decision,
        *,
        elapsed_us: int = 0,
        lag_us: int = 0,
        wall_us: int = 0,
        batch_size: int = 1,
    ) -> None:
        """Apply the stand-in's action. The arguments are fields of `Move`. The defaults are for a bot that got no request."""
        action = stand_in_action(decision)
        move = Move(
            decision.seat,
            action,
            elapsed_us,
            lag_us,
            stand_in=True,
            wall_us=wall_us,
            batch_size=batch_size,
        )
        self._record_move(decision, move, self.game.apply(action))

    def _record_move(self, decision: Decision, move: Move, events: tuple[Event, ...]) -> None:
        self.moves.append(move)
        self.event_log.add(events)
        if self._watch is not None:
            faults = tuple(self.faults[self._shown_faults :])
            self._shown_faults = len(self.faults)
            self._watch(decision, move, events, faults)

    def _charge(self, number: int, fault: BotFault) -> None:
        """Record a fault of seat `number`. After strike number `max_strikes`, also record the forfeit."""
        seat = self.seats[number]
        forfeit, move = isinstance(fault, Forfeit), len(self.moves)
        self.faults.append(Fault(number, fault.cause, forfeit, move, fault.evidence))
        if not forfeit:
            seat.strikes += 1
            if seat.strikes < self._max_strikes:
                return
            evidence = Evidence(
                detail=f"this is strike {seat.strikes} of {self._max_strikes}",
                stderr_tail=fault.evidence.stderr_tail,
            )
            self.faults.append(
                Fault(number, Cause.STRIKES, forfeit=True, move=move, evidence=evidence)
            )
        if seat.player is not None:
            seat.player = None
            if self._on_forfeit is not None:
                self._on_forfeit(number)
