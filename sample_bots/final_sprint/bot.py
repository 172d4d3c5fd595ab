"""Collect cards at first, and get rid of them when the end of the game is near.

The rulebooks describe this tactic. Watch the sizes of the other hands, because the game may end soon. Near
the end, do not take snatched layers.
"""

from referee.sdk import (
    JOKER,
    Action,
    Choice,
    DecisionKind,
    DrawDisplay,
    Play,
    Request,
    SnatchGhost,
    View,
    run,
)

FEW_IN_HAND = 3
FEW_TO_DRAW = 20


def decide(request: Request) -> Action:
    """Choose an action: sprint near the end, collect before."""
    return sprint(request) if is_near_the_end(request.view) else collect(request)


def is_near_the_end(view: View) -> bool:
    """Return True if a hand or the supply of cards is nearly empty."""
    on_display = sum(1 for cards in view.display if cards)
    return min(view.hand_sizes) <= FEW_IN_HAND or view.deck_size + on_display <= FEW_TO_DRAW


def sprint(request: Request) -> Action:
    """Play as many cards as possible and take none."""
    match request.kind:
        case DecisionKind.PLAY:
            return max(request.plays, key=lambda play: (play.layer.size, play.layer.value))
        case DecisionKind.TAKE_OR_LEAVE:
            return Choice.LEAVE
        case DecisionKind.OPTIONAL_DRAW | DecisionKind.GHOST_SET if Choice.PASS in request.legal:
            return Choice.PASS
        case _:
            return collect(request)


def collect(request: Request) -> Action:
    """Collect cards of the same values."""
    view = request.view
    match request.kind:
        case DecisionKind.PLAY:
            return max(request.plays, key=lambda play: gain(request, play))
        case DecisionKind.TAKE_OR_LEAVE:
            return Choice.TAKE
        case DecisionKind.RECLAIM_OR_DISCARD:
            return Choice.RECLAIM
        case _:  # a draw, or a set of the ghost
            return max(request.legal, key=lambda action: worth(view, action))


def gain(request: Request, play: Play) -> tuple[int, int, int]:
    """Rate a play by the cards that you gain and the others lose, then by few jokers, then by value."""
    layer = play.layer
    return layer.size * (1 + len(request.victims(layer))), -layer.jokers, layer.value


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
    run(decide, max_games=64)
