"""A bot that remembers every deal, and exits with 77 when it meets a deal again.

Two games have the same deal if their displays are the same at the start. The bot would then know the hand
that it had in the other seat, which is now the hand of an opponent. It remembers deals in its process and in
its scratch folder, because a later process might get the same folder.
"""

import os
import sys
from pathlib import Path

from referee.sdk import Bot, run

MEMORY = Path(os.environ["HOME"]) / "memory"
SEEN = dict(eval(line) for line in MEMORY.open()) if MEMORY.exists() else {}  # noqa: S307 - the bot wrote it


class Remembers(Bot):
    def start(self, game):
        view = game.view
        display = tuple(map(tuple, view.display))
        self.met = SEEN.get(display)
        SEEN[display] = tuple(view.hand)
        with MEMORY.open("a") as memory:
            memory.write(f"{(display, tuple(view.hand))!r}\n")

    def decide(self, request):
        if self.met is not None:  # not in `start`: the referee would start another process
            sys.stderr.write(f"met this deal before, with the hand {self.met} at a seat\n")
            sys.stderr.flush()
            os._exit(77)
        return request.game.random.choice(request.legal)


if __name__ == "__main__":
    run(Remembers)
