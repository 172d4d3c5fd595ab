"""Measure what a batch saves the sample bot `learner`: `python tests/bench/bench_learner.py [--seconds S]`.

The bot gets the same 64 requests of 64 games, one in each message, and all in one message. Times are CPU times. They contain the
messages of the protocol, but no stream.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sample_bots"))

from bot_games import bot, start_games

from referee.pb import play_pb2
from referee.rules.ruleset import RULESETS
from referee.sdk import Session

GAMES = 64
SEATS = 4
WANTED = 5
"""Times as many decisions a second."""


def decisions_per_second(session: Session, requests: list[bytes], seconds: float) -> float:
    """Return the decisions per second of CPU time for these messages, sent again and again."""
    decisions, began_s = 0, time.process_time()
    while time.process_time() - began_s < seconds:
        for request in requests:
            session.receive_bytes(request)
        decisions += GAMES
    return decisions / (time.process_time() - began_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="CPU seconds for each line")
    seconds = parser.parse_args().seconds
    session = Session(bot("learner"))
    requests = start_games(session, [(RULESETS["basic"], SEATS)] * GAMES, random.Random(1))
    together = play_pb2.RefereeMessage()
    for request in requests:
        together.MergeFromString(request)
    session.receive_bytes(requests[0])  # loads the weights
    single = decisions_per_second(session, requests, seconds)
    batch = decisions_per_second(session, [together.SerializeToString()], seconds)
    print(f"one at a time: {single:,.0f} decisions/s")
    print(
        f"{GAMES} at a time: {batch:,.0f} decisions/s, {batch / single:.1f} times (target: {WANTED})"
    )


if __name__ == "__main__":
    main()
