"""Tournaments: from a file to a schedule, from a schedule to played games.

`config` reads the file, `lanes` keeps the books, `workers` and `worker` are the two ends of the
executors, `run` plays what is missing, `conduct` ties it to a league.
"""
