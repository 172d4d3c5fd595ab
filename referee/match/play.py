"""What has happened in a game, and how much of it each seat has been told.

Who decides when a bot cannot: fixed, deterministic, simple and fit for play.

It is documented for bot authors in `proto/README.md`, and `referee verify` holds every stand-in move
of a record to it.

One game from deal to record: asks the players, charges faults, lets the stand-in step in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from referee.clocks import Budget, Clocks, SeatClock
from referee.errors import BotFault, Cause, Evidence, Forfeit, Strike
from referee.records import (
    BotId,
    Fault,
    GameRecord,
    Move,
    Player,
    Reply,
    Request,
    Result,
    final_ranks,
)
from referee.rules.actions import Action, Choice, Decision, DecisionKind, Play
from referee.rules.cards import Layer
from referee.rules.events import Drawn, Event, is_private, seen_by
from referee.rules.game import Game, IllegalActionError
from referee.rules.ruleset import Ruleset
from referee.rules.scoring import Outcome


class News:
    """Keeps one list for all seats: nearly every event is the same for all, and each is told to each.

    Args:
        seats: how many.
    """

    def __init__(self, seats: int) -> None:
        self._public: list[Event] = []
        """Every event, as it looks to those whom it does not concern."""
        self._private: list[list[tuple[int, Drawn]]] = [[] for _ in range(seats)]
        """For each seat: what it alone saw and has not been told, and its place in that list."""
        self._told = [0] * seats
        """For each seat: how many of them it has been told."""

    def add(self, events: Iterable[Event]) -> None:
        """Something has happened; unredacted."""
        public = self._public
        for event in events:
            if is_private(event):
                seat = event.seat
                self._private[seat].append((len(public), event))
                public.append(seen_by(event, (seat + 1) % len(self._told)))
            else:
                public.append(event)

    def take(self, seat: int) -> tuple[Event, ...]:
        """What has happened since this seat last took its news, as it may know it."""
        public, told = self._public, self._told[seat]
        self._told[seat] = len(public)
        news = public[told:]
        private = self._private[seat]
        if private:
            for place, event in private:
                news[place - told] = event
            private.clear()
        return tuple(news)


_ANSWERS = {
    DecisionKind.TAKE_OR_LEAVE: Choice.LEAVE,
    DecisionKind.RECLAIM_OR_DISCARD: Choice.DISCARD,
    DecisionKind.OPTIONAL_DRAW: Choice.PASS,
}


def stand_in(decision: Decision) -> Action:
    """The stand-in's action for a decision.

    It plays the layer with the most cards, of those the one with the fewest jokers, of those the
    lowest; leaves what it snatches, discards what is left to it, and passes. It draws from the deck,
    or from the leftmost slot when there is none, and snatches the ghost's lowest set. (It discards
    because two that reclaim for ever need never end a game: ruling R12.)
    """
    if decision.kind is DecisionKind.PLAY:
        return max(decision.legal, key=_strength)
    return _ANSWERS.get(decision.kind, decision.legal[0])


def _strength(action: Action) -> tuple[int, int, int]:
    assert isinstance(action, Play)  # noqa: S101 - a play decision lists plays
    layer: Layer = action.layer
    return layer.size, -layer.jokers, -layer.value


Watcher = Callable[[Event], None]
"""Sees every event of a game as it happens, unredacted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameSetup:
    """What is settled of a game before it is played."""

    game_id: str
    ruleset: Ruleset
    seating: tuple[BotId, ...]
    """Seat 0 first."""
    deck: tuple[int, ...]
    clocks: Clocks
    max_strikes: int
    """The strike that forfeits the game."""
    isolation: str


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """A finished game, and what its seats have not been told yet."""

    record: GameRecord
    news: tuple[tuple[Event, ...], ...]
    """For each seat, redacted: what happened since it was last asked."""


class _Seat:
    """One seat's side of a game."""

    def __init__(self, player: Player | Forfeit, clocks: Clocks) -> None:
        self.player: Player | None = None if isinstance(player, Forfeit) else player
        """None from the forfeit on."""
        self.clock = SeatClock(clocks)
        self.strikes = 0


async def play_game(
    setup: GameSetup,
    players: Sequence[Player | Forfeit],
    *,
    now_us: Callable[[], int],
    monotonic_us: Callable[[], int],
    game: Game | None = None,
    watch: Watcher | None = None,
    on_forfeit: Callable[[int], None] | None = None,
) -> PlayedGame:
    """Play a game to its end.

    Args:
        setup: what is fixed before the game.
        players: one for each seat; a `Forfeit` in the place of one that cannot play.
        now_us: the time of day in microseconds since 1970, for the record only.
        monotonic_us: any monotonic clock in microseconds, for the record's duration only.
        game: an unstarted game built from `setup`; created here if omitted.
        watch: is shown every event.
        on_forfeit: is told every seat that forfeits during the game, at once; it is not asked again.

    A player's faults are charged to it and never end the game. `VoidGame` and anything else that a
    player raises goes through. What the players took of the machine is not known here.
    """
    started_at_us, began_us = now_us(), monotonic_us()
    game = game or Game(setup.ruleset, len(players), setup.deck)
    run = _Run(setup, game, players, watch, on_forfeit)
    outcome = await run.play()
    record = GameRecord(
        game_id=setup.game_id,
        ruleset=setup.ruleset,
        seating=setup.seating,
        deck=setup.deck,
        moves=tuple(run.moves),
        faults=tuple(run.faults),
        result=result(outcome, run.faults),
        usage=(None,) * len(players),
        clocks=setup.clocks,
        max_strikes=setup.max_strikes,
        isolation=setup.isolation,
        started_at_us=started_at_us,
        duration_us=monotonic_us() - began_us,
    )
    return PlayedGame(record, tuple(map(run.news.take, range(len(players)))))


def result(outcome: Outcome, faults: Sequence[Fault]) -> Result:
    """The final result: the outcome by the rules, then forfeits behind everybody else."""
    forfeits = [(fault.seat, fault.move) for fault in faults if fault.forfeit]
    return Result(
        outcome.termination,
        outcome.scores,
        final_ranks(outcome.ranks, forfeits),
        tuple(sorted(seat for seat, _ in forfeits)),
    )


def _illegal(answer: Reply, decision: Decision) -> Strike:
    detail = f"{answer.action} is no legal answer to {decision.kind.value}"
    return Strike(Cause.ILLEGAL, Evidence(detail=detail, elapsed_us=answer.elapsed_us))


class _Run:
    """The state of a game being played."""

    def __init__(
        self,
        setup: GameSetup,
        game: Game,
        players: Sequence[Player | Forfeit],
        watch: Watcher | None,
        on_forfeit: Callable[[int], None] | None,
    ) -> None:
        self.game = game
        self.seats = [_Seat(player, setup.clocks) for player in players]
        self.news = News(len(players))
        self.moves: list[Move] = []
        self.faults: list[Fault] = []
        self._max_strikes = setup.max_strikes
        self._watch = watch
        self._on_forfeit = on_forfeit
        for number, player in enumerate(players):
            if isinstance(player, Forfeit):
                self._charge(number, player)

    async def play(self) -> Outcome:
        """Put each decision to its seat, or to the stand-in, and apply the answer, to the game's end."""
        game, news, moves = self.game, self.news, self.moves
        while (decision := game.decision) is not None:
            number = decision.seat
            seat = self.seats[number]
            player, clock = seat.player, seat.clock
            if player is None:
                self._stand_in(decision, 0, 0)
                continue
            budget = clock.budget()
            ask = Request(len(moves) + 1, game.view(number), decision, news.take(number), budget)
            try:
                if budget.limit_us <= 0:  # spent to the last microsecond; on the wire 0 is no limit
                    raise Forfeit(Cause.OUT_OF_TIME, Evidence(detail="the bank is empty"))
                answer = await player.decide(ask)
            except BotFault as fault:
                self._fault(decision, fault, budget)
                continue
            try:
                events = game.apply(answer.action)
            except IllegalActionError:
                self._fault(decision, _illegal(answer, decision), budget)
                continue
            elapsed_us = answer.elapsed_us
            clock.spend(elapsed_us)
            moves.append(Move(number, answer.action, elapsed_us, answer.lag_us, stand_in=False))
            self._tell(events)
        assert game.outcome is not None  # noqa: S101 - a game without a decision is over
        return game.outcome

    def _fault(self, decision: Decision, fault: BotFault, budget: Budget) -> None:
        """Charge a seat with a decision that it lost."""
        taken_us = fault.evidence.elapsed_us
        elapsed_us = min(taken_us, budget.limit_us)
        self.seats[decision.seat].clock.spend(elapsed_us)
        self._charge(decision.seat, fault)
        self._stand_in(decision, elapsed_us, taken_us - elapsed_us)

    def _stand_in(self, decision: Decision, elapsed_us: int, lag_us: int) -> None:
        """Take a decision in the place of a bot, which had so long for it before."""
        action = stand_in(decision)
        self.moves.append(Move(decision.seat, action, elapsed_us, lag_us, stand_in=True))
        self._tell(self.game.apply(action))

    def _tell(self, events: tuple[Event, ...]) -> None:
        self.news.add(events)
        if self._watch is not None:
            for event in events:
                self._watch(event)

    def _charge(self, number: int, fault: BotFault) -> None:
        seat = self.seats[number]
        forfeit = isinstance(fault, Forfeit)
        at = len(self.moves)
        self.faults.append(Fault(number, fault.cause, forfeit, at, fault.evidence))
        if not forfeit:
            seat.strikes += 1
            if seat.strikes < self._max_strikes:
                return
            evidence = Evidence(detail=f"strike {seat.strikes} of {self._max_strikes}")
            self.faults.append(
                Fault(number, Cause.STRIKES, forfeit=True, move=at, evidence=evidence)
            )
        if seat.player is not None:
            seat.player = None
            if self._on_forfeit is not None:
                self._on_forfeit(number)
