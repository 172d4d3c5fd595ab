"""Remembers what every seat is known to hold, and does not build where it will be robbed.

Most cards enter a hand in everybody's sight: they are taken, reclaimed, or drawn from the display. So
this bot is a class: the SDK makes one instance for every game, and what it remembers stays in it.
"""

from referee.sdk import (
    HIDDEN,
    JOKER,
    Action,
    Bot,
    Choice,
    DecisionKind,
    DrawDisplay,
    Drawn,
    Event,
    Game,
    GhostSnatched,
    Layer,
    Play,
    Played,
    Reclaimed,
    Request,
    SnatchGhost,
    Taken,
    View,
    run,
)

MANY = 3
DEALT_JOKERS = 2  # in the duel, to each player


class Counter(Bot):
    """Plays one game."""

    def start(self, game: Game) -> None:
        """Nothing is known of any hand but, in the duel, its two jokers."""
        jokers = DEALT_JOKERS if game.ruleset.ghost else 0
        self.known = [[0] * JOKER + [jokers] for _ in range(game.players)]

    def decide(self, request: Request) -> Action:
        """First take in what happened, then answer."""
        for event in request.events:
            self.learn(event)
        view = request.view
        match request.kind:
            case DecisionKind.PLAY:
                return max(request.plays, key=lambda play: self.gain(request, play))
            case DecisionKind.TAKE_OR_LEAVE if self.somebody_is_about_to_go_out(view):
                return Choice.LEAVE
            case DecisionKind.TAKE_OR_LEAVE:
                return Choice.TAKE if is_worth_having(view) else Choice.LEAVE
            case DecisionKind.RECLAIM_OR_DISCARD:
                return Choice.RECLAIM if is_worth_having(view) else Choice.DISCARD
            case DecisionKind.OPTIONAL_DRAW if self.somebody_is_about_to_go_out(view):
                return Choice.PASS
            case _:  # a draw or one of the ghost's sets
                return max(request.legal, key=lambda action: worth(view, action))

    def learn(self, event: Event) -> None:
        """Keep the least that each seat must hold."""
        match event:
            case Taken(seat, layer) | Reclaimed(seat, layer) | GhostSnatched(seat, layer):
                gained: tuple[int, ...] = layer.cards
            case Drawn(seat, _, cards):
                gained = cards
            case Played(seat, layer):
                gained = ()
                for (
                    card
                ) in layer.cards:  # it may have been a copy nobody saw: the least is less by 1
                    self.known[seat][card] = max(0, self.known[seat][card] - 1)
            case _:
                return
        for card in gained:
            if card != HIDDEN:
                self.known[seat][card] += 1

    def gain(self, request: Request, play: Play) -> tuple[int, int, int]:
        """Cards off the others' tables, and for your own if they will stay there."""
        layer, view = play.layer, request.view
        stays = not any(self.can_snatch(seat, layer) for seat in view.opponents)
        return layer.size * (len(request.victims(layer)) + stays), -layer.jokers, layer.value

    def can_snatch(self, seat: int, layer: Layer) -> bool:
        """Whether a seat is known to hold enough of something higher."""
        known = self.known[seat]
        higher = range(layer.value + 1, JOKER)
        return known[JOKER] >= layer.size or any(
            known[value] and known[value] + known[JOKER] >= layer.size for value in higher
        )

    def somebody_is_about_to_go_out(self, view: View) -> bool:
        """Whether an opponent is known to hold cards of one value and jokers only."""
        return any(
            view.hand_sizes[seat] <= max(1, max(self.known[seat][:JOKER]) + self.known[seat][JOKER])
            for seat in view.opponents
        )


def is_worth_having(view: View) -> bool:
    """Whether the snatched layer would make a good layer in your own hand."""
    layer = view.snatched
    return layer is not None and (layer.size >= MANY or view.hand[layer.value] >= 1)


def worth(view: View, action: Action) -> int:
    """What a draw brings: best a joker, then the cards of which you hold the most."""
    match action:
        case DrawDisplay(_, cards):
            return max(1000 if card == JOKER else 100 * view.hand[card] + card for card in cards)
        case SnatchGhost(value):
            return 100 * view.hand[value] + value
        case Choice.PASS:
            return 99  # less than any card you hold, more than any you do not
        case _:
            return 6  # the deck: an unknown card


if __name__ == "__main__":
    run(Counter)
