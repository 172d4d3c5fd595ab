"""Check a bot for `referee bots check`: build it, start it, play with it, and report on every step.

Nothing here prints. A step fails only where the bot breaks the guide for bot authors (`proto/README.md`).
All deals and positions come from fixed seeds, so the same bot always gets the same requests.

`conformance` has the list of steps and runs them. `lifecycle_steps`, `decision_steps` and `game_steps` have the
steps themselves. `bot_under_test` starts the bot for them, `games` plays with it, `report` has the results.
"""
