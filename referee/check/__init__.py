"""Check a bot for `referee bots check`: build it, start it, play with it, and report on every step.

Nothing here prints. A step fails only where the bot breaks the guide for bot authors (`proto/README.md`).
All deals and positions come from fixed seeds, so the same bot always gets the same requests.

`steps` has the list of steps and runs them. The steps themselves are in `lifecycle`, `positions` and
`game_steps`. `bot_under_test` starts the bot for them, `games` plays with it, `report` has the results.
"""

from referee.check.report import Latency, Report, Step, Strength, Usage, Verdict
from referee.check.steps import check

__all__ = ["Latency", "Report", "Step", "Strength", "Usage", "Verdict", "check"]
