"""A bot made with the Python SDK that replies at once with the first legal action."""

from referee.sdk import run

if __name__ == "__main__":
    run(lambda request: request.legal[0], max_games=64)
