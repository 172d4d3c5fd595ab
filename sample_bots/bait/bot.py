"""Play low single cards as bait: if they are snatched, draw better cards for them.

The rulebooks describe this tactic. A player who loses a layer draws as many cards, and may choose them
from the display.
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

LOW = 6
TOO_FEW_CARDS = 4  # when a hand is this small, it is too late to draw cards


def decide(request: Request) -> Action:
    """Choose an action by the kind of the decision."""
    view = request.view
    match request.kind:
        case DecisionKind.PLAY:
            return bait(request) or max(request.plays, key=lambda play: gain(request, play))
        case DecisionKind.TAKE_OR_LEAVE:
            return Choice.TAKE if fits(view) else Choice.LEAVE
        case DecisionKind.RECLAIM_OR_DISCARD:
            return Choice.DISCARD  # the bait worked: draw cards
        case _:  # a draw, or a set of the ghost
            return max(request.legal, key=lambda action: worth(view, action))


def bait(request: Request) -> Play | None:
    """Return the play of the lowest card that you hold once; None if the bait is not worth it.

    It is worth it while the display has a joker or a card of which you hold copies.
    """
    view = request.view
    on_display = [card for cards in view.display for card in cards]
    tempting = any(card == JOKER or view.hand[card] for card in on_display)
    if not tempting or not view.deck_size or min(view.hand_sizes) <= TOO_FEW_CARDS:
        return None
    singles = (play for play in request.plays if play.layer.size == 1)
    lonely = (play for play in singles if view.hand[play.layer.value] == 1)
    return min((play for play in lonely if play.layer.value <= LOW), default=None)


def gain(request: Request, play: Play) -> tuple[int, int, int]:
    """Rate a play by the cards that you gain and the others lose, then by few jokers, then by value."""
    layer = play.layer
    return layer.size * (1 + len(request.victims(layer))), -layer.jokers, layer.value


def fits(view: View) -> bool:
    """Return True if you hold cards of the snatched layer's value."""
    return view.snatched is not None and view.hand[view.snatched.value] > 0


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
