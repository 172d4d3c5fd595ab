"""Play one game between players, and replay its record.

A player is anything that decides (the `Player` protocol of `referee.records`). Processes and streams
belong to `referee.bots`.
"""
