"""What `referee bots check` does: a bot is built, started and played with, and every step is told.

Nothing here prints, and nothing is judged by taste: a step fails where the guide for bot authors
(`proto/README.md`) says otherwise. What the bot is asked comes from fixed seeds, so that the same bot is
asked the same.

`check.check` is the list of steps; `decisions`, `games` and `endings` are the steps that speak with the
bot, `bench` starts it for them, `meter` measures it, `report` is what comes out.
"""

from referee.check.report import Latency, Report, Step, Strength, Usage, Verdict
from referee.check.steps import check

__all__ = ["Latency", "Report", "Step", "Strength", "Usage", "Verdict", "check"]
