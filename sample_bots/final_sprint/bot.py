"""Collects while there is time, and drops everything when the end is near.

The rulebooks' final sprint: watch how many cards the others hold, for the game may end sooner than
you think; near the end do not take what you snatch.
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
    """Sprint or collect."""
    return sprint(request) if is_near_the_end(request.view) else collect(request)


def is_near_the_end(view: View) -> bool:
    """Whether somebody may soon be out, or the cards may soon be used up."""
    on_display = sum(1 for cards in view.display if cards)
    return min(view.hand_sizes) <= FEW_IN_HAND or view.deck_size + on_display <= FEW_TO_DRAW


def sprint(request: Request) -> Action:
    """Get rid of cards, and let none in that need not be."""
    match request.kind:
        case DecisionKind.PLAY:
            return max(request.plays, key=lambda play: (play.layer.size, play.layer.value))
        case DecisionKind.TAKE_OR_LEAVE:
            return Choice.LEAVE
        case DecisionKind.OPTIONAL_DRAW:
            return Choice.PASS
        case _:
            return collect(request)


def collect(request: Request) -> Action:
    """Gather cards of the same values."""
    view = request.view
    match request.kind:
        case DecisionKind.PLAY:
            return max(request.plays, key=lambda play: gain(request, play))
        case DecisionKind.TAKE_OR_LEAVE:
            return Choice.TAKE
        case DecisionKind.RECLAIM_OR_DISCARD:
            return Choice.RECLAIM
        case _:  # a draw or one of the ghost's sets
            return max(request.legal, key=lambda action: worth(view, action))


def gain(request: Request, play: Play) -> tuple[int, int, int]:
    """Cards for your table and off the others'; then spare the jokers."""
    layer = play.layer
    return layer.size * (1 + len(request.victims(layer))), -layer.jokers, layer.value


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
