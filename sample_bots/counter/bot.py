"""Remember the known cards of every hand, and avoid plays that will be snatched.

All players see most of the cards that enter a hand, because they are taken, reclaimed, or drawn from the
display. This bot has a memory, so it is a class. The SDK creates one instance for each game.
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
DEALT_JOKERS = 2  # the jokers that each player of a duel is dealt


class Counter(Bot):
    """Play one game."""

    def start(self, game: Game) -> None:
        """Begin without known cards, except for the two jokers of each hand in the duel."""
        self.rules = game.ruleset
        jokers = DEALT_JOKERS if self.rules.ghost else 0
        self.known = [[0] * JOKER + [jokers] for _ in range(game.players)]

    def decide(self, request: Request) -> Action:
        """Learn from the new events, then choose an action."""
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
            case _ if Choice.PASS in request.legal and self.somebody_is_about_to_go_out(view):
                return Choice.PASS
            case _:  # a draw, or a set of the ghost
                return max(request.legal, key=lambda action: worth(view, action))

    def learn(self, event: Event) -> None:
        """Update the cards that each seat is certain to hold."""
        match event:
            case Taken(seat, layer) | Reclaimed(seat, layer) | GhostSnatched(seat, layer):
                gained: tuple[int, ...] = layer.cards
            case Drawn(seat, _, cards):
                gained = cards
            case Played(seat, layer):
                gained = ()
                for card in layer.cards:  # any of them may be a known copy
                    self.known[seat][card] = max(0, self.known[seat][card] - 1)
            case _:
                return
        for card in gained:
            if card != HIDDEN:
                self.known[seat][card] += 1

    def gain(self, request: Request, play: Play) -> tuple[int, int, int]:
        """Rate a play by the cards that the others lose, and by its own cards if they are safe."""
        layer, view = play.layer, request.view
        stays = not any(self.can_snatch(seat, layer) for seat in view.opponents)
        return layer.size * (len(request.victims(layer)) + stays), -layer.jokers, layer.value

    def can_snatch(self, seat: int, layer: Layer) -> bool:
        """Return True if a seat is known to hold cards that snatch a layer."""
        size = layer.size
        *known, jokers = self.known[seat]
        attackers = [
            Layer(value, min(count, size), max(0, size - count))
            for value, count in enumerate(known)
            if count and count + jokers >= size
        ]
        if jokers >= size:
            attackers.append(Layer(JOKER, 0, size))
        return any(self.rules.snatches(attacker, layer) for attacker in attackers)

    def somebody_is_about_to_go_out(self, view: View) -> bool:
        """Return True if an opponent's whole hand may be one layer of known cards."""
        return any(
            view.hand_sizes[seat] <= max(1, max(self.known[seat][:JOKER]) + self.known[seat][JOKER])
            for seat in view.opponents
        )


def is_worth_having(view: View) -> bool:
    """Return True if the snatched layer is large or matches cards of your hand."""
    layer = view.snatched
    return layer is not None and (layer.size >= MANY or view.hand[layer.value] >= 1)


def worth(view: View, action: Action) -> int:
    """Rate a draw: a joker is best, then the card of which you hold the most copies."""
    match action:
        case DrawDisplay(_, cards):
            return max(1000 if card == JOKER else 100 * view.hand[card] + card for card in cards)
        case SnatchGhost(value):
            return 100 * view.hand[value] + value
        case Choice.PASS:
            return 99  # below every card that you hold already, above every other card
        case _:
            return 6  # the deck, whose card is unknown


if __name__ == "__main__":
    run(Counter, max_games=64)
