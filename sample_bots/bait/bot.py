"""Lays out lonely low cards to be snatched, and draws better ones for them.

The rulebooks' bait: whoever loses a layer and does not get it back draws as many cards, and may
choose them from the display.
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
TOO_FEW_CARDS = 4  # in anybody's hand: too late to draw for


def decide(request: Request) -> Action:
    """Answer by the kind of the decision."""
    view = request.view
    match request.kind:
        case DecisionKind.PLAY:
            return bait(request) or max(request.plays, key=lambda play: gain(request, play))
        case DecisionKind.TAKE_OR_LEAVE:
            return Choice.TAKE if fits(view) else Choice.LEAVE
        case DecisionKind.RECLAIM_OR_DISCARD:
            return Choice.DISCARD  # the bait is taken: draw
        case _:  # a draw or one of the ghost's sets
            return max(request.legal, key=lambda action: worth(view, action))


def bait(request: Request) -> Play | None:
    """The lowest card that is alone in your hand, while there is something good to draw for it."""
    view = request.view
    on_display = [card for cards in view.display for card in cards]
    tempting = any(card == JOKER or view.hand[card] for card in on_display)
    if not tempting or not view.deck_size or min(view.hand_sizes) <= TOO_FEW_CARDS:
        return None
    singles = (play for play in request.plays if play.layer.size == 1)
    lonely = (play for play in singles if view.hand[play.layer.value] == 1)
    return min((play for play in lonely if play.layer.value <= LOW), default=None)


def gain(request: Request, play: Play) -> tuple[int, int, int]:
    """Cards for your table and off the others'; then spare the jokers."""
    layer = play.layer
    return layer.size * (1 + len(request.victims(layer))), -layer.jokers, layer.value


def fits(view: View) -> bool:
    """Whether you hold cards of the snatched layer's value."""
    return view.snatched is not None and view.hand[view.snatched.value] > 0


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
    run(decide)
