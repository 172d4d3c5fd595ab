"""Store leagues: bots, tournaments with their schedules and seeds, and every game.

Only this package uses a database. Other packages open a `League`.
"""
