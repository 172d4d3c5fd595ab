"""Grabs the most at every decision and looks no further.

It remembers nothing, so it is a plain function. What it does is laid down step by step in the README
of the sample bots; a bot in any language that follows those steps gives the same answers.
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
    """Answer by the kind of the decision."""
    match request.kind:
        case DecisionKind.PLAY:
            return max(request.plays, key=lambda play: gain(request, play))
        case DecisionKind.TAKE_OR_LEAVE:
            return Choice.TAKE if is_worth_having(request) else Choice.LEAVE
        case DecisionKind.RECLAIM_OR_DISCARD:
            return Choice.RECLAIM if is_worth_having(request) else Choice.DISCARD
        case _:  # a draw or one of the ghost's sets
            return max(request.legal, key=lambda action: worth(request, action))


def gain(request: Request, play: Play) -> tuple[int, int, int]:
    """Cards for your table and off the others'; then spare the jokers; then play the higher value."""
    layer = play.layer
    return layer.size * (1 + len(request.victims(layer))), -layer.jokers, layer.value


def is_worth_having(request: Request) -> bool:
    """Whether the snatched layer would make a good layer in your own hand."""
    layer, hand = request.view.snatched, request.view.hand
    return layer is not None and (layer.size >= MANY or hand[layer.value] >= 1)


def worth(request: Request, action: Action) -> int:
    """What a draw brings: best the cards of which you hold the most; of equals the first is drawn."""
    match action:
        case DrawDisplay(_, cards):
            return max(value_of(request, card) for card in cards)
        case SnatchGhost(value):
            return value_of(request, value)
        case Choice.PASS:
            return 99  # less than any card you hold, more than any you do not
        case _:
            return 6  # the deck: an unknown card


def value_of(request: Request, card: int) -> int:
    """A joker before all, then what you hold most of, then the higher card."""
    return 1000 if card == JOKER else 100 * request.view.hand[card] + card


if __name__ == "__main__":
    run(decide, max_games=16)
