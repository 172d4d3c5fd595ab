"""Save low cards until there are many of one value, and play them together.

The rulebooks describe this tactic and call low cards small beasts. They are easy to get, because nobody
wants them, and a layer of six 2s is hard to beat.
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
PACK = 4  # the number of cards that are played together
TOO_FEW_CARDS = 3  # when a hand is this small, it is too late to save cards


def decide(request: Request) -> Action:
    """Choose an action by the kind of the decision."""
    view = request.view
    match request.kind:
        case DecisionKind.PLAY:
            return max(request.plays, key=lambda play: gain(request, play))
        case DecisionKind.TAKE_OR_LEAVE:
            return Choice.TAKE if is_beast(view) else Choice.LEAVE
        case DecisionKind.RECLAIM_OR_DISCARD:
            return Choice.RECLAIM if is_beast(view) else Choice.DISCARD
        case _:  # a draw, or a set of the ghost
            return max(request.legal, key=lambda action: worth(view, action))


def gain(request: Request, play: Play) -> tuple[bool, int, int, int]:
    """Rate a play: saved cards last, then by the cards that you gain and the others lose."""
    layer = play.layer
    in_time = min(request.view.hand_sizes) > TOO_FEW_CARDS
    grows = in_time and layer.value <= BEAST and layer.size < PACK
    cards = layer.size * (1 + len(request.victims(layer)))
    return not grows, cards, -layer.jokers, layer.value


def is_beast(view: View) -> bool:
    """Return True if the snatched layer has low cards or matches cards of your hand."""
    layer = view.snatched
    return layer is not None and (layer.value <= BEAST or view.hand[layer.value] > 0)


def worth(view: View, action: Action) -> int:
    """Rate a draw: a joker is best, then the card that you hold most often, then the lower card."""
    match action:
        case DrawDisplay(_, cards):
            return max(1000 if card == JOKER else 100 * view.hand[card] - card for card in cards)
        case SnatchGhost(value):
            return 100 * view.hand[value] - value
        case Choice.PASS:
            return 50  # below every card that you hold already, above every other card
        case _:
            return -6  # the deck, whose card is unknown


if __name__ == "__main__":
    run(decide, max_games=64)
