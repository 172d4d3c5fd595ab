"""Does anything that is legal: the least a bot can be, and the mark that every other must beat."""

from referee.sdk import Action, Request, run


def decide(request: Request) -> Action:
    """Choose by the game's own chance, so that the same game can be played again."""
    return request.game.random.choice(request.legal)


if __name__ == "__main__":
    run(decide)
