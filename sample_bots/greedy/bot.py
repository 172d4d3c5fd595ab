"""Play greedily: take the most cards at every decision, without a plan.

This bot has no memory, so it is a plain function. The README of the sample bots defines its policy step
by step. A bot in any language that follows those steps gives the same replies.
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
    run,
)

MANY = 3


def decide(request: Request) -> Action:
    """Choose an action by the kind of the decision."""
    match request.kind:
        case DecisionKind.PLAY:
            return max(request.plays, key=lambda play: gain(request, play))
        case DecisionKind.TAKE_OR_LEAVE:
            return Choice.TAKE if is_worth_having(request) else Choice.LEAVE
        case DecisionKind.RECLAIM_OR_DISCARD:
            return Choice.RECLAIM if is_worth_having(request) else Choice.DISCARD
        case _:  # a draw, or a set of the ghost
            return max(request.legal, key=lambda action: worth(request, action))


def gain(request: Request, play: Play) -> tuple[int, int, int]:
    """Rate a play by the cards that you gain and the others lose, then by few jokers, then by value."""
    layer = play.layer
    return layer.size * (1 + len(request.victims(layer))), -layer.jokers, layer.value


def is_worth_having(request: Request) -> bool:
    """Return True if the snatched layer is large or matches cards of your hand."""
    layer, hand = request.view.snatched, request.view.hand
    return layer is not None and (layer.size >= MANY or hand[layer.value] >= 1)


def worth(request: Request, action: Action) -> int:
    """Rate a draw by its best card. Of equally good draws, the first one is chosen."""
    match action:
        case DrawDisplay(_, cards):
            return max(value_of(request, card) for card in cards)
        case SnatchGhost(value):
            return value_of(request, value)
        case Choice.PASS:
            return 99  # below every card that you hold already, above every other card
        case _:
            return 6  # the deck, whose card is unknown


def value_of(request: Request, card: int) -> int:
    """Rate a card: jokers first, then by the number of copies in your hand, then by value."""
    return 1000 if card == JOKER else 100 * request.view.hand[card] + card


if __name__ == "__main__":
    run(decide, max_games=64)
