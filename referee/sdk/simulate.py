'''Return random games that fit what a seat has seen, so that a bot can search them.

This is the forward model of the SDK. An `Observer` remembers which cards everybody saw going into a hand. For a request
it returns an `InformationSet`: all games in which the seat would have seen the same. `InformationSet.draw` returns a
random one of these games, in the position of the request. It is a `Game` of `referee.rules`, so it plays by the rules of
the referee:

- `game.decision` is the next decision, with its `seat` and `legal` actions; None when the game is over.
- `game.apply(action)` plays on to the next decision.
- `game.copy()` returns an independent game in the same position.
- `game.outcome` has the `scores` and `ranks` of a game that is over.
- `game.table` has all hands, the layers and the deck.

This bot tries each legal action in games that it draws, plays these games out at random, and chooses the action with the
best results:

    import time

    from referee.sdk import Action, Bot, Game, Request, run
    from referee.sdk.simulate import Observer

    SHARE_OF_TIME = 0.1
    MOST_S = 0.1

    class Searcher(Bot):
        def start(self, game: Game) -> None:
            self.observer = Observer(game)

        def decide(self, request: Request) -> Action:
            information_set = self.observer.observe(request)  # at every request, even if you do not search
            legal = list(request.legal)
            totals = [0.0] * len(legal)
            seconds = min(MOST_S, SHARE_OF_TIME * request.time_left_us / 1e6 or MOST_S)
            end = time.monotonic() + seconds
            while len(legal) > 1 and time.monotonic() < end:
                drawn = information_set.draw(request.game.random)
                for number, action in enumerate(legal):
                    totals[number] += self.play_out(drawn.copy(), action, request)
            return legal[totals.index(max(totals))]

        def play_out(self, game, action, request) -> float:
            """Return how good the end of a random game is for your seat."""
            chance, seat = request.game.random, request.view.seat
            game.apply(action)
            while game.decision is not None:
                game.apply(chance.choice(game.decision.legal))
            return game.outcome.scores[seat] - 10 * game.outcome.ranks[seat]

    if __name__ == "__main__":
        run(Searcher)
'''

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from referee.rules.actions import Action, DecisionKind
from referee.rules.events import Drawn, Event, GhostSnatched, Played, Reclaimed, Taken
from referee.rules.game import Game
from referee.rules.ruleset import EMPTY, FULL, HIDDEN, JOKER, JOKERS_DEALT, card_name, list_cards
from referee.rules.table import Table
from referee.sdk.bot import Game as StartedGame
from referee.sdk.request import Request, View

__all__ = ["Game", "ImpossibleViewError", "InformationSet", "Observer"]


class ImpossibleViewError(ValueError):
    """A request does not fit the events that were observed. Perhaps the bot did not observe every request once."""


class InformationSet:
    """All games that a seat cannot tell apart at a request.

    A card that everybody saw enter a hand is *known*. The two jokers that each seat of a duel gets are known too. When a
    seat with known 7s plays a 7, one 7 fewer is known, because the played card may be a known one. The same holds for the
    other values and for jokers. The cards that are neither known nor visible are *unseen*. Each unseen card is in the
    deck or in the hand of another seat. Every way to deal the unseen cards to these places is equally likely. So the
    model does not learn from what other seats choose. For example, when a seat plays a single 7, the model does not
    conclude that the seat has no second 7.

    Args:
        table: the position without the unseen cards. The hands of other seats have only their known cards, and the deck
            is empty.
        kind: the kind of the decision in the request.
        unseen: the unseen cards.
        deck_size: how many of them are in the deck.
    """

    def __init__(
        self, table: Table, kind: DecisionKind, unseen: Sequence[int], deck_size: int
    ) -> None:
        self.unseen = tuple(unseen)
        """The unseen cards, the lowest first."""
        self._table = table
        self._kind = kind
        table.deck_size = deck_size
        missing = [
            size - sum(hand) for size, hand in zip(table.hand_sizes, table.hands, strict=True)
        ]
        self._missing = [(seat, count) for seat, count in enumerate(missing) if count]
        """Each seat with unseen cards in its hand, and the number of these cards."""

    def draw(self, chance: Random) -> Game:
        """Return a random one of the games.

        Every way to deal the unseen cards has the same chance, with copies of a card counted as different cards. The
        returned game is independent of all others. To try several actions in it, apply them to copies of it.
        """
        cards = list(self.unseen)
        chance.shuffle(cards)
        table = self._table.copy()
        begin = 0
        for seat, count in self._missing:
            hand, end = table.hands[seat], begin + count
            for card in cards[begin:end]:
                hand[card] += 1
            begin = end
        table.deck = tuple(cards[begin:])
        return Game.from_table(table, self._kind)


class Observer:
    """What a seat knows about the cards in all hands during a game.

    Args:
        game: the game that the SDK passes to `Bot.start`.
    """

    def __init__(self, game: StartedGame) -> None:
        self._ruleset = game.ruleset
        self._seat = game.seat
        self._sizes = list(game.view.hand_sizes)
        self._known = [list(EMPTY) for _ in self._sizes]
        """The known cards in each hand. In the own hand, all cards are known."""
        if game.ruleset.ghost:
            for known in self._known:
                known[JOKER] = JOKERS_DEALT
        self._known[game.seat] = list(game.view.hand)

    def observe(self, request: Request) -> InformationSet:
        """Learn from the events of a request, and return the games that are possible now.

        Call this method once for each request of the game, in the order of the requests. Raises ImpossibleViewError if the
        view and the legal actions of the request do not fit the events so far.
        """
        for event in request.events:
            self._learn(event)
        view, kind = request.view, request.kind
        self._check_hands(view)
        unseen = self._unseen(view)
        information_set = InformationSet(self._table(view), kind, unseen, view.deck_size)
        _check_decision(information_set, tuple(request.legal), view.seat)
        return information_set

    def _learn(self, event: Event) -> None:
        match event:
            case Played(seat, layer):
                known = self._known[seat]
                # The played cards may be known ones, so they are subtracted from the known cards.
                known[layer.value] = max(0, known[layer.value] - layer.naturals)
                known[JOKER] = max(0, known[JOKER] - layer.jokers)
                self._sizes[seat] -= layer.size
            case Taken(seat, layer) | Reclaimed(seat, layer) | GhostSnatched(seat, layer):
                self._gain(seat, layer.cards)
            case Drawn(seat, _, cards):
                self._gain(seat, cards)

    def _gain(self, seat: int, cards: Sequence[int]) -> None:
        self._sizes[seat] += len(cards)
        for card in cards:
            if card != HIDDEN:
                self._known[seat][card] += 1

    def _check_hands(self, view: View) -> None:
        for seat, (size, known) in enumerate(zip(self._sizes, self._known, strict=True)):
            if size != view.hand_sizes[seat]:
                raise ImpossibleViewError(
                    f"by the events the hand of seat {seat} has the size {size}, but {view.hand_sizes[seat]} in the view;"
                    " observe every request of the game once"
                )
            if sum(known) > size:
                raise ImpossibleViewError(
                    f"by the events the hand of seat {seat} has at least the size {sum(known)}, but {size} in the view;"
                    " observe every request of the game once"
                )
        if tuple(self._known[view.seat]) != view.hand:
            raise ImpossibleViewError(
                f"by the events the hand of your seat {view.seat} is {_names(self._known[view.seat])},"
                f" but {_names(view.hand)} in the view"
            )

    def _unseen(self, view: View) -> list[int]:
        """Return the cards that are neither known nor visible."""
        layers = [layer for table in view.tables for layer in table]
        if view.snatched:
            layers.append(view.snatched)
        counts = list(FULL)
        for layer in layers:
            counts[layer.value] -= layer.naturals
            counts[JOKER] -= layer.jokers
        for group in view.display:
            for card in group:
                counts[card] -= 1
        for seen in (view.discards, view.ghost or EMPTY, *self._known):
            for card, copies in enumerate(seen):
                counts[card] -= copies
        for card, copies in enumerate(counts):
            if copies < 0:
                raise ImpossibleViewError(
                    f"the card {card_name(card)} is seen {FULL[card] - copies} times, but there are {FULL[card]}"
                )
        places = sum(self._sizes) - sum(map(sum, self._known)) + view.deck_size
        if sum(counts) != places:
            raise ImpossibleViewError(
                f"the number of unseen cards is {sum(counts)}, but the number of their places in hands and deck is {places}"
            )
        return list_cards(tuple(counts))

    def _table(self, view: View) -> Table:
        """Return the table of a view. The hands of other seats have only their known cards, and the deck is empty."""
        table = Table(self._ruleset, view.players)
        table.hands = [list(known) for known in self._known]
        table.hand_sizes = list(view.hand_sizes)
        table.layers = list(view.tables)
        table.display = view.display
        table.discards = view.discards
        table.ghost = view.ghost
        table.active = view.active_seat
        table.turn = view.turn
        table.snatched = view.snatched
        table.victim = view.victim
        table.cards_to_draw = view.cards_to_draw
        return table


def _check_decision(information_set: InformationSet, legal: tuple[Action, ...], seat: int) -> None:
    """Raise ImpossibleViewError unless `seat` has the next decision in these games, with exactly these legal actions.

    One game is enough for the check, because the legal actions of a seat follow from what it sees.
    """
    try:
        decision = information_set.draw(Random(0)).decision  # noqa: S311 - any game will do
    except ValueError as error:
        raise ImpossibleViewError(f"the view does not fit the decision: {error}") from None
    if decision is None or decision.seat != seat or decision.legal != legal:
        raise ImpossibleViewError(f"the legal actions of seat {seat} do not follow from its view")


def _names(counts: Sequence[int]) -> str:
    return " ".join(map(card_name, list_cards(tuple(counts))))
