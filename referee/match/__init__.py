"""Play one game between players, and replay its record.

A player is anything that decides for a seat (the protocol `Player` in `referee/records.py`). Processes and
streams of bots belong to `referee.bots`.
"""
