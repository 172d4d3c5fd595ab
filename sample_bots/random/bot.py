"""Choose legal actions at random. This is the smallest bot, and every other bot should beat it."""

from referee.sdk import Action, Request, run


def decide(request: Request) -> Action:
    """Choose with the random numbers of the game, so that the game can be repeated."""
    return request.game.random.choice(request.legal)


if __name__ == "__main__":
    run(decide, max_games=64)
