"""Saves low cards until there are many of a value, and plays them all at once.

The rulebooks' small beasts: low cards are easy to come by, for nobody wants them, and six 2s are hard
to beat.
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

BEAST = 5  # the highest small beast
PACK = 4  # how many go out together
TOO_FEW_CARDS = 3  # in anybody's hand: too late to save


def decide(request: Request) -> Action:
    """Answer by the kind of the decision."""
    view = request.view
    match request.kind:
        case DecisionKind.PLAY:
            return max(request.plays, key=lambda play: gain(request, play))
        case DecisionKind.TAKE_OR_LEAVE:
            return Choice.TAKE if is_beast(view) else Choice.LEAVE
        case DecisionKind.RECLAIM_OR_DISCARD:
            return Choice.RECLAIM if is_beast(view) else Choice.DISCARD
        case _:  # a draw or one of the ghost's sets
            return max(request.legal, key=lambda action: worth(view, action))


def gain(request: Request, play: Play) -> tuple[bool, int, int, int]:
    """Not a pack that still grows; then cards for your table and off the others'."""
    layer = play.layer
    in_time = min(request.view.hand_sizes) > TOO_FEW_CARDS
    grows = in_time and layer.value <= BEAST and layer.size < PACK
    cards = layer.size * (1 + len(request.victims(layer)))
    return not grows, cards, -layer.jokers, layer.value


def is_beast(view: View) -> bool:
    """Whether the snatched layer is one of low cards, or of cards you hold."""
    layer = view.snatched
    return layer is not None and (layer.value <= BEAST or view.hand[layer.value] > 0)


def worth(view: View, action: Action) -> int:
    """What a draw brings: best a joker, then what you hold the most of, then the lower card."""
    match action:
        case DrawDisplay(_, cards):
            return max(1000 if card == JOKER else 100 * view.hand[card] - card for card in cards)
        case SnatchGhost(value):
            return 100 * view.hand[value] - value
        case Choice.PASS:
            return 50  # less than any card you hold, more than any you do not
        case _:
            return -6  # the deck: an unknown card


if __name__ == "__main__":
    run(decide)
