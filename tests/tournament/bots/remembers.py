"""A bot that keeps what it sees of every deal, and exits with 77 when it meets one again.

Two games have the same deal when the same cards lie in the display at the start: it knows then which
hand it had at the other seat, and so what somebody else holds now. It remembers in its process and in
its scratch folder, which another process might have left to it.
"""

import os
import sys
from pathlib import Path

from referee.sdk import Bot, run

MEMORY = Path(os.environ["HOME"]) / "memory"
SEEN = dict(eval(line) for line in MEMORY.open()) if MEMORY.exists() else {}  # noqa: S307 - its own


class Remembers(Bot):
    def start(self, game):
        view = game.view
        display = tuple(map(tuple, view.display))
        self.met = SEEN.get(display)
        SEEN[display] = tuple(view.hand)
        with MEMORY.open("a") as memory:
            memory.write(f"{(display, tuple(view.hand))!r}\n")

    def decide(self, request):
        if self.met is not None:  # not before: who dies at the start is given another one
            sys.stderr.write(f"met this deal before, with the hand {self.met} at a seat\n")
            sys.stderr.flush()
            os._exit(77)
        return request.game.random.choice(request.legal)


if __name__ == "__main__":
    run(Remembers)
